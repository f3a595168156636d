"""The files that are to be transformed, by name, in an order that does not change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..convert import READABLE, read


class Source(NamedTuple):
    """Files to be transformed: their names, which are paths below a folder, ascending; sizes; times of their last change."""

    folder: Path
    names: Sequence[str]
    sizes: Sequence[int]
    changed: Sequence[int]

    def part(self, number: int, shards: int) -> Source:
        """One of so many shards: as many files in each, up to one, in the order of the names."""
        begin, end = (i * len(self.names) // shards for i in (number, number + 1))
        return Source(self.folder, self.names[begin:end], self.sizes[begin:end], self.changed[begin:end])

    def fingerprint(self) -> str:
        """Another one for other names or sizes of files."""
        digest = hashlib.sha256()
        for name, size in zip(self.names, self.sizes, strict=True):
            digest.update(f"{name}\0{size}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()


def find_shapes(paths: Sequence[Path], *, besides: Sequence[Path] = ()) -> Source:
    """The files that are given, and those in given folders and their sub-folders that have the ending of a shape.

    Args:
        paths: Files and folders. The names of what one folder holds are relative to it; otherwise they are as given.
        besides: Files and folders that do not count, such as the output of an earlier run.
    """
    away = {path.resolve() for path in besides}
    single = len(paths) == 1 and paths[0].is_dir()
    found: dict[str, os.stat_result | None] = {}
    for path in paths:
        if not path.is_dir():
            # What is not there is a file that cannot be read, like others, and is reported with them.
            found[path.as_posix()] = path.stat() if path.exists() else None
            continue
        for place, folders, files in os.walk(path):
            here = Path(place)
            folders[:] = [name for name in folders if not name.startswith(".") and (here / name).resolve() not in away]
            for name in files:
                file = here / name
                hidden = name.startswith(".") or os.path.splitext(name)[1].lower() not in READABLE
                if not hidden and file.is_file() and (not away or file.resolve() not in away):
                    found[(file.relative_to(path) if single else file).as_posix()] = file.stat()
    names = sorted(found)
    sizes, changed = ([getattr(found[name], field, 0) for name in names] for field in ("st_size", "st_mtime_ns"))
    return Source(paths[0] if single else Path(), names, sizes, changed)


def first_dimension(source: Source, reading: dict[str, Any]) -> int:
    """Dimension of the space of the first shape that can be read."""
    first: Exception | None = None
    for name in source.names:
        try:
            return read(source.folder / name, **reading).dim
        except (ValueError, OSError) as error:
            first = first or error
    raise ValueError(f"none of {len(source.names)} files could be read. The first: {first}")
