"""Transforming listed files to a folder of parts: on one machine or many, interrupted and resumed."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .._imports import hidden, require, without_gc
from .._progress import Bar
from .._storage import remove_stale
from .._tables import comma_separated
from .._version import __version__
from ..complexes import Complex
from ..io.walk import Failure, Listing
from . import workers
from .manifest import OtherRunError, load_manifest, part_paths, remove_parts, write_if_new, write_manifest
from .output import open_output, parquet_metadata
from .settings import Settings
from .transform import Report, find_dim, transform_to

FILES_PER_PART = 1000


@dataclass(frozen=True)
class Job:
    """A part to write, with everything that another process or machine needs to know."""

    listing: Listing
    settings: Settings
    part: Path
    fingerprint: str
    version: str


def transform_folder(
    listing: Listing,
    settings: Settings,
    output: str | os.PathLike[str],
    *,
    shards: int | None = None,
    processes: int = 1,
    fork: bool = False,
    scheduler: str | None = None,
    overwrite: bool = False,
    progress: Bar | None = None,
) -> Report:
    """Transform files to a folder of Parquet files ``output/parts/part-00000.parquet``, one per shard. A second call resumes.

    ``manifest.json`` in the folder records what the parts are made of, and ``failures.csv`` the files that they lack and why.
    Parts are equal to the byte wherever they are made, on machines of one type with the same versions.

    Args:
        listing: The files, as :func:`eulerscan.io.list_shapes` lists them. They must not change meanwhile.
        settings: How to read and transform them.
        output: The folder. One that holds a run with other files or settings is an error.
        shards: Number of shards, and so of parts. Default: that of the run to resume, or one per thousand files.
        processes: Number of processes of this machine.
        fork: Fork the processes, which start faster. For commands: it is safe only if torch has not used several threads, and
            numba does without the BLAS of scipy from then on.
        scheduler: Address of a dask scheduler, whose workers do the work instead.
        overwrite: Remove the parts of an earlier run first.
        progress: A progress bar over the files.
    """
    listing = replace(listing, folder=listing.folder.resolve())
    output = Path(output).resolve()
    if overwrite:
        remove_parts(output)
    before = load_manifest(output)
    if settings.dim is None and before is not None:
        settings = replace(settings, dim=before["settings"].get("dim"))
    if settings.dim is None:
        with workers.one_thread():
            settings, failures = find_dim(listing, settings)
        if settings.dim is None:
            return Report(settings, 0, [*listing.failures, *failures], 0)
    if shards is None:
        shards = max(1, -(-len(listing.names) // FILES_PER_PART)) if before is None else int(before["shards"])
    write_manifest(output, listing, settings, shards)
    parts = part_paths(output, shards)
    remove_stale((output / "parts").glob(".part-*.partial"))  # of processes that were killed

    def job(number: int) -> Job:
        files = listing.shard(number, shards)
        return Job(files, settings, parts[number], files.fingerprint(), __version__)

    reports: dict[Path, Report] = {}

    def add(job: Job, report: Report) -> None:
        reports[job.part] = report
        if progress is not None:
            progress.update(len(job.listing.names))

    for number in range(shards):
        if (report := _load_report(job(number))) is not None:
            add(job(number), report)
    finished = set(reports)
    # Made when a process is free: all of them at once would hold every name a second time.
    jobs = (job(number) for number in range(shards) if parts[number] not in finished)
    for done, problem in _run(jobs, settings, min(processes, shards - len(finished)), fork, scheduler):
        report = _load_report(done)  # also after a problem: a worker may be lost after it wrote its part
        add(done, report or _failed(done, problem or "it was damaged"))
    remove_stale((output / "parts").glob(".part-*.partial"))
    all_failures = [*listing.failures, *(failure for part in parts for failure in reports[part].failures)]
    write_if_new(output / "failures.csv", comma_separated(["name", "reason"], all_failures))
    num_shapes = sum(report.num_shapes for report in reports.values())
    return Report(settings, num_shapes, all_failures, sum(report.num_beyond for report in reports.values()))


def write_part(job: Job) -> None:
    """Transform a shard and write its part. The bytes are the same wherever this runs."""
    if job.version != __version__:
        raise RuntimeError(f"eulerscan is {__version__} on {socket.gethostname()}, but {job.version} where the run began.")
    for folder in (job.listing.folder, job.part.parent):
        if not folder.is_dir():
            host = socket.gethostname()
            raise FileNotFoundError(
                f"{folder} is not there on {host}: all machines must see files and output at the same paths."
            )
    metadata: dict[str, Any] = {"fingerprint": job.fingerprint, "version": job.version}
    with open_output(job.part, job.settings, metadata) as write:
        report = transform_to(lambda settings: nullcontext(write), job.listing, job.settings)
        metadata["failures"] = [[str(failure.path), failure.reason] for failure in report.failures]
        metadata["beyond"] = report.num_beyond


def _run(
    jobs: Iterator[Job], settings: Settings, processes: int, fork: bool, scheduler: str | None
) -> Iterator[tuple[Job, str | None]]:
    if scheduler is not None:
        return workers.on_dask(write_part, jobs, address=scheduler)
    if fork and processes > 1:  # load once what every process needs
        # numba imports scipy to look for BLAS, which no kernel uses. That would take 11 % of the time of a small run.
        with without_gc(), workers.one_thread(), hidden("scipy"):
            require("pyarrow.parquet", extra="bulk")
            settings.ect.transform(Complex(torch.zeros(1, settings.known_dim, dtype=torch.float64)))
    return workers.in_processes(write_part, jobs, processes=max(1, processes), fork=fork)


def _load_report(job: Job) -> Report | None:
    """The report in the metadata of a finished part; ``None`` if there is no part, or if it is damaged."""
    try:
        found = parquet_metadata(job.part)
        failures = [Failure(Path(name), reason) for name, reason in found["failures"]]
        report = Report(job.settings, len(job.listing.names) - len(failures), failures, int(found["beyond"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    if found.get("fingerprint") != job.fingerprint:
        raise OtherRunError(f"{job.part} was made of other files. Choose another output.")
    return report


def _failed(job: Job, problem: str) -> Report:
    reason = f"{job.part.name} was not written: {problem}"
    return Report(job.settings, 0, [Failure(Path(name), reason) for name in job.listing.names], 0)
