"""Transforms of folders of any size, a part a shard: on one machine or many, stopped and taken up again."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._imports import require
from .._loading import uncollected
from .._storage import replacing
from .._tables import comma_separated
from ..complexes import Complex
from ..io.walk import Failure, Listing
from . import workers
from .files import load_manifest, parquet_metadata, part_paths, write_parquet
from .settings import Settings
from .shards import Told, transformed

SHARD = 1000  # files, where nobody says how many shards there shall be


class OtherRunError(ValueError):
    """A folder holds parts of other files, of files that were changed since, or of other settings."""


@dataclass(frozen=True)
class Job:
    """One part to be made: everything that another process or machine needs to know."""

    source: Listing
    settings: Settings
    part: Path
    fingerprint: str
    version: str


def write_part(job: Job) -> None:
    """Transform a shard and write its part, whole or not at all. Whoever does it writes the same bytes."""
    from .._version import __version__

    if job.version != __version__:
        raise RuntimeError(f"eulerscan is {__version__} on {socket.gethostname()} and {job.version} where the work began.")
    for folder in (job.source.folder, job.part.parent):
        if not folder.is_dir():
            raise FileNotFoundError(
                f"{folder} is not there on {socket.gethostname()}: all machines must see files and output under the same paths."
            )
    failures: list[Failure] = []
    beyond: list[int] = []

    def more() -> dict[str, Any]:
        listed = [[str(failure.path), failure.reason] for failure in failures]
        return {"fingerprint": job.fingerprint, "version": job.version, "failures": listed, "beyond": sum(beyond)}

    with replacing(job.part) as partial:
        pieces = transformed(job.source, job.settings, failures, beyond=beyond.append)
        write_parquet(partial, job.settings, pieces, more=more)


def prepare(settings: Settings) -> None:
    """Load what every process will need, so that forks have it."""
    with uncollected(), workers.one_thread():
        require("pyarrow.parquet", extra="bulk")
        settings.transform(Complex(torch.zeros(1, settings.dim, dtype=torch.float64)))


def transform_folder(
    source: Listing,
    settings: Settings,
    output: str | os.PathLike[str],
    *,
    shards: int | None = None,
    processes: int = 1,
    fork: bool = False,
    prepare: Callable[[Settings], None] = prepare,
    scheduler: str | None = None,
    ended: Told = lambda n: None,
    beyond: Told = lambda n: None,
) -> list[Failure]:
    """Write ``output/parts/part-00000.parquet`` and so on, a part a shard. What is finished is not done again.

    Beside them ``manifest.json`` says what they are made of, and ``failures.csv`` which files are missing in them and why.
    Parts are the same to the byte wherever they are made, by machines of one kind with one version.

    Args:
        source: The files. They must not change meanwhile.
        settings: What to do with each.
        output: Folder for the parts. One that was begun with other settings or other files is an error.
        shards: Number of shards, and so of parts. By default that of an earlier run, or one for every thousand files.
        processes: Of this machine.
        fork: Whether they are forks of this one, which start at once. Only for programs in which torch has not yet worked on
            several threads: a fork would wait for them.
        prepare: Loads what forks need, before the first of them.
        scheduler: Address of a dask scheduler whose workers do it instead.
        ended: Is told how many files more are done, finished parts first.
        beyond: Is told how many shapes more have points beyond the radius, which are cut off.

    Returns:
        The files that are in no part.
    """
    from .._version import __version__

    source = replace(source, folder=source.folder.resolve())
    output = Path(output).resolve()
    shards = _begin(source, settings, output, shards)
    parts = part_paths(output, shards)

    def job(number: int) -> Job:
        files = source.shard(number, shards)
        return Job(files, settings, parts[number], files.fingerprint(), __version__)

    made = {part: found for number, part in enumerate(parts) if (found := _finished(job(number))) is not None}
    before = set(made)
    ended(sum(len(source.shard(number, shards).names) for number, part in enumerate(parts) if part in before))
    # Made when they are handed out: all of them at once would hold every name a second time.
    jobs = (job(number) for number, part in enumerate(parts) if part not in before)
    if scheduler is None:
        processes = max(1, min(processes, shards - len(before)))
        if fork and processes > 1:
            prepare(settings)
        outcomes = workers.in_processes(write_part, jobs, processes=processes, fork=fork)
    else:
        outcomes = workers.on_dask(write_part, jobs, address=scheduler)
    undone: dict[Path, list[Failure]] = {}
    for done, problem in outcomes:
        ended(len(done.source.names))
        found = _finished(done)  # also after a problem: a worker may be lost after its part was written
        if found is not None:
            made[done.part] = found
        else:
            why = f"{done.part.name} is not done: {problem or 'it was damaged'}"
            undone[done.part] = [Failure(Path(name), why) for name in done.source.names]
    failures = list(source.failures)
    for part in parts:
        failures += undone[part] if part in undone else made[part].failures
        beyond(made[part].beyond if part in made else 0)
        # By processes that were killed. Others may be at work here, but not at what is finished.
        for left in () if part in before or part in undone else part.parent.glob(f".{part.name}.*.partial"):
            left.unlink(missing_ok=True)
    _write_if_new(output / "failures.csv", comma_separated(["name", "reason"], failures))
    return failures


def _begin(source: Listing, settings: Settings, output: Path, shards: int | None) -> int:
    """Say what the parts will be made of, or check that it is what they were begun with. The number of shards."""
    from .._version import __version__

    manifest = output / "manifest.json"
    before = load_manifest(output)
    if before is None and manifest.exists():
        raise ValueError(f"{manifest} is none of eulerscan, or it is damaged, and would be replaced. Choose another output.")
    default = max(1, -(-len(source.names) // SHARD)) if before is None else before["shards"]
    now = {
        "version": __version__,
        "shards": default if shards is None else shards,
        "files": len(source.names),
        "fingerprint": source.fingerprint(),
        "changed": source.state(),
        "settings": json.loads(json.dumps(settings.as_dict())),
    }
    if before is not None:  # what an older version did not ask was as it is by default
        before["settings"] = Settings(settings.dim).as_dict() | before["settings"]
    if before is not None and before != now:
        old, new = ({**entry, **entry["settings"]} for entry in (before, now))
        named = [name for name in new if name not in ("settings", "fingerprint", "changed") and old.get(name) != new[name]]
        changes = [f"{name} was {old.get(name)} and is {new[name]}" for name in named]
        if not changes and before["fingerprint"] != now["fingerprint"]:
            changes = ["files have other names or sizes"]
        if not changes:
            begun = manifest.stat().st_mtime_ns
            later = [name for name, changed in zip(source.names, source.changed, strict=True) if (changed or 0) > begun]
            changes = [f"{later[0] if later else 'a file'} was changed since"]
        raise OtherRunError(f"{output} was begun otherwise: {'; '.join(changes)}. Choose another output.")
    (output / "parts").mkdir(parents=True, exist_ok=True)
    _write_if_new(manifest, json.dumps(now, indent=1) + "\n")
    return int(now["shards"])


class Made(NamedTuple):
    """What a part says of the files that it was made of."""

    failures: list[Failure]
    beyond: int


def _finished(job: Job) -> Made | None:
    """What a finished part says; ``None`` if there is none, or if it is damaged."""
    try:
        found = parquet_metadata(job.part)
        made = Made([Failure(Path(name), reason) for name, reason in found["failures"]], int(found["beyond"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    if found.get("fingerprint") != job.fingerprint:
        raise OtherRunError(f"{job.part} was made of other files. Choose another output.")
    return made


def _write_if_new(path: Path, content: str) -> None:
    if not path.exists() or path.read_bytes() != content.encode():
        with replacing(path) as partial:
            partial.write_bytes(content.encode())
