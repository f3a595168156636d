"""The files that are to be transformed, by name, in an order that does not change."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..datasets.folder import Failure, is_named, reason, walk
from ..io.batch import read_many
from ..io.landmarks import file_of, names_in


class Source(NamedTuple):
    """Files to be transformed: their names, which are paths below a folder, ascending; sizes; times of their last change,
    ``None`` for what is not there. Of a file with several shapes each is one here, below it, with its share of the size.

    ``failures`` are what was found and cannot even be named or opened, ``others`` the endings of files in folders that were
    passed over because no reader knows them.
    """

    folder: Path
    names: Sequence[str]
    sizes: Sequence[int]
    changed: Sequence[int | None]
    failures: Sequence[Failure] = ()
    others: Mapping[str, int] | None = None

    def shard(self, number: int, shards: int) -> Source:
        """One of so many shards: as many files in each, up to one, in the order of the names."""
        begin, end = (i * len(self.names) // shards for i in (number, number + 1))
        return Source(self.folder, self.names[begin:end], self.sizes[begin:end], self.changed[begin:end])

    def fingerprint(self) -> str:
        """Another one for other names or sizes of files."""
        digest = hashlib.sha256()
        for name, size in zip(self.names, self.sizes, strict=True):
            digest.update(f"{name}\0{size}\0".encode())
        return digest.hexdigest()

    def state(self) -> str:
        """Another one if a file was changed since."""
        return hashlib.sha256("\0".join(map(str, self.changed)).encode()).hexdigest()


def find_shapes(paths: Sequence[str | os.PathLike[str]], *, besides: Sequence[str | os.PathLike[str]] = ()) -> Source:
    """The files that are given, and those in given folders and their sub-folders that have the ending of a shape.

    Args:
        paths: Files and folders. The names of what one folder holds are relative to it; otherwise they are as given.
        besides: Files and folders that do not count, such as the output of an earlier run.
    """
    away = {Path(path).resolve() for path in besides}
    given = [Path(path) for path in paths]
    single = len(given) == 1 and given[0].is_dir()
    found: dict[str, tuple[int, int | None]] = {}
    failures: list[Failure] = []
    others: Counter[str] = Counter()
    for path in given:
        if path.is_dir():
            above = "" if single or path == Path() else f"{path.as_posix().removesuffix('/')}/"
            for name, entry in walk(path, failures, besides=away, others=others):
                found |= _states(above + name, entry)
        elif is_named(path, failures):
            # What is not there is a file that cannot be read, like others, and is reported with them.
            found |= _states(path.as_posix(), path)
    names = sorted(found)
    sizes, changed = [found[name][0] for name in names], [found[name][1] for name in names]
    if single:
        failures = [Failure(_below(failure.path, given[0]), failure.reason) for failure in failures]
    return Source(given[0] if single else Path(), names, sizes, changed, failures, others)


def _states(name: str, file: Path | os.DirEntry[str]) -> dict[str, tuple[int, int | None]]:
    """Size and last change of a file by its name, or of the shapes in it by theirs."""
    inside = names_in(file)
    try:
        state = (file_of(file) if isinstance(file, Path) else file).stat()
    except OSError:
        return {name: (0, None)}
    if not inside:
        return {name: (state.st_size, state.st_mtime_ns)}
    return {f"{name}/{one}": (state.st_size // len(inside), state.st_mtime_ns) for one in inside}


def _below(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


class NothingReadError(ValueError):
    """None of the files could be read; ``failures`` says why, for each."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        first = f" The first: {failures[0].path}: {failures[0].reason}" if failures else ""
        super().__init__(f"none of {len(failures)} files could be read.{first}")
        self.failures = failures


def first_dimension(source: Source, reading: dict[str, Any]) -> int:
    """Dimension of the space of the first shape that can be read."""
    failures = list(source.failures)
    for name in source.names:
        batches, errors = read_many([source.folder / name], **reading)
        if batches:
            return next(iter(batches))
        if not isinstance(errors[0], ValueError | OSError):
            raise errors[0]
        failures.append(Failure(Path(name), reason(errors[0], source.folder / name)))
    raise NothingReadError(failures)
