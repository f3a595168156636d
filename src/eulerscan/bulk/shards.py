"""Transforms of folders of any size, a shard at a time: on one machine or many, stopped and taken up again."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..atomic import replacing
from ..complexes import Complex
from ..convert.many import read_many
from ..extras import require
from ..folders import Failure, reason
from ..loading import hidden, uncollected
from ..tables import comma_separated
from . import workers
from .files import Piece, load_manifest, parquet_metadata, part_paths, write_parquet
from .settings import Settings
from .sources import Source

FILES_AT_ONCE, BYTES_AT_ONCE = 256, 2**23
TOO_LARGE = "its coordinates are too large: numbers overflow on the way to its transform."
SHARD = 1000  # files, where nobody says how many shards there shall be

Told = Callable[[int], object]  # is told a number more


class OtherRunError(ValueError):
    """A folder holds parts of other files, of files that were changed since, or of other settings."""


class Shard(NamedTuple):
    """What became of some files."""

    names: list[str]
    transforms: np.ndarray[Any, Any]  # [n, T, H]
    failures: list[Failure]
    beyond: int = 0  # shapes with points beyond the radius


def transform_shard(folder: str | os.PathLike[str], names: Sequence[str], settings: Settings) -> Shard:
    """Read and transform files. What becomes of one depends on no other, nor on how many are read at once.

    Args:
        folder: Where the files are.
        names: Their paths below it.
        settings: What to do with each.

    Returns:
        The transforms of those that could be read, in the order of ``names``, and why others could not.
    """
    folder, beyond = Path(folder), 0
    batches, errors = read_many([os.path.join(folder, name) for name in names], **settings.reading, dtype=torch.float64)
    reasons = {i: reason(error, folder / names[i]) for i, error in errors.items()}
    values: dict[int, np.ndarray[Any, Any]] = {}
    for dim, (positions, complex) in batches.items():
        if dim == settings.dim:
            beyond += settings.beyond(complex)
            _transform(positions, complex, settings, values, reasons)
        else:
            reasons |= dict.fromkeys(positions, f"points of dimension {dim}, where {settings.dim} was expected.")
    done = sorted(values)
    transforms = np.stack([values[i] for i in done]) if done else np.empty((0, *settings.shape), np.float32)
    failures = [Failure(Path(names[i]), reasons[i]) for i in sorted(reasons)]
    return Shard([names[i] for i in done], transforms, failures, beyond)


def _transform(
    positions: list[int], complex: Complex, settings: Settings, values: dict[int, np.ndarray[Any, Any]], reasons: dict[int, str]
) -> None:
    try:
        transforms = settings.apply(complex)
        finite = transforms.isfinite().flatten(1).all(dim=1).tolist()
        values |= {i: row for i, row, fine in zip(positions, transforms.numpy(), finite, strict=True) if fine}
        reasons |= {i: TOO_LARGE for i, fine in zip(positions, finite, strict=True) if not fine}
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(positions) == 1:
            reasons[positions[0]] = str(error)
            return
        for i, position in enumerate(positions):  # one of them is to blame
            _transform([position], complex[i], settings, values, reasons)


def transformed(
    source: Source,
    settings: Settings,
    failures: list[Failure],
    *,
    ended: Told = lambda n: None,
    beyond: Told = lambda n: None,
) -> Iterator[Piece]:
    """The transforms of all files, some at a time, so that memory does not grow with their number.

    Args:
        source: The files.
        settings: What to do with each.
        failures: Gets those that cannot be read.
        ended: Is told how many files more are done.
        beyond: Is told how many shapes more have points beyond the radius, which are cut off.
    """
    failures += source.failures
    for begin, end in _portions(source.sizes):
        shard = transform_shard(source.folder, source.names[begin:end], settings)
        failures += shard.failures
        ended(end - begin)
        beyond(shard.beyond)
        yield shard.names, shard.transforms


def _portions(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of files that are small enough together, or one large file alone."""
    begin, total = 0, 0
    for i, size in enumerate(sizes):
        if i > begin and (i - begin == FILES_AT_ONCE or total + size > BYTES_AT_ONCE):
            yield begin, i
            begin, total = i, 0
        total += size
    if sizes:
        yield begin, len(sizes)


@dataclass(frozen=True)
class Job:
    """One part to be made: everything that another process or machine needs to know."""

    source: Source
    settings: Settings
    part: Path
    fingerprint: str
    version: str


def write_part(job: Job) -> None:
    """Transform a shard and write its part, whole or not at all. Whoever does it writes the same bytes."""
    from .. import __version__

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


def transform_folder(
    source: Source,
    settings: Settings,
    output: str | os.PathLike[str],
    *,
    shards: int | None = None,
    processes: int = 1,
    fork: bool = False,
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
        fork: Whether they are forks of this one, which start at once. See :func:`eulerscan.bulk.workers.in_processes`.
        scheduler: Address of a dask scheduler whose workers do it instead.
        ended: Is told how many files more are done, finished parts first.
        beyond: Is told how many shapes more have points beyond the radius, which are cut off.

    Returns:
        The files that are in no part.
    """
    from .. import __version__

    source = source._replace(folder=source.folder.resolve())
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
            _prepare(settings)
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


def _prepare(settings: Settings) -> None:
    """Load what every process will need, so that forks have it. So small a shape starts no threads."""
    with uncollected(), hidden("scipy"):  # where numba would look for BLAS, which no kernel calls
        require("pyarrow.parquet", extra="bulk")
        settings.apply(Complex(torch.zeros(1, settings.dim, dtype=torch.float64)))


def _begin(source: Source, settings: Settings, output: Path, shards: int | None) -> int:
    """Say what the parts will be made of, or check that it is what they were begun with. The number of shards."""
    from .. import __version__

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
    if before is not None and before != now:
        old, new = ({**entry, **entry["settings"]} for entry in (before, now))
        named = [name for name in new if name not in ("settings", "fingerprint", "changed") and old.get(name) != new[name]]
        changes = [f"{name} was {old.get(name)} and is {new[name]}" for name in named]
        if not changes and before["fingerprint"] != now["fingerprint"]:
            changes = ["files have other names or sizes"]
        if not changes:
            begun = manifest.stat().st_mtime_ns
            later = [name for name, changed in zip(source.names, source.changed, strict=True) if changed > begun]
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
