"""Files that may hold several shapes. Each has a path below that of the file, as if the file were a folder."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..complexes import Complex
from .arrays import cloud
from .tables import read_table, text_of
from .tps import tps_specimens
from .wide_tables import MENTIONED, wide_specimens

_Array = np.ndarray[Any, Any]
_KINDS = {".tps": "tps", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}


def file_of(path: Path) -> Path:
    """The file in which the shape of a path is: itself, or the one above, if that may hold several."""
    above = path.parent
    return above if above.suffix.lower() in _KINDS and above.is_file() else path


def names_in(path: str | os.PathLike[str]) -> list[str]:
    """The names of the shapes in a file that holds several; none where it is one shape, or cannot be read."""
    kind = _KINDS.get(os.path.splitext(path)[1].lower())
    try:
        found = None if kind is None else _specimens(Path(path), kind)
    except (OSError, ValueError):  # whoever reads it says so
        found = None
    return list(found) if found is not None and len(found) > 1 else []


def shapes_in(path: str | os.PathLike[str]) -> list[Path]:
    """The paths under which :func:`read` finds the shapes of a file one by one: its own, where it is one shape.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "wings.csv"
    >>> _ = file.write_text("name,x1,y1,x2,y2\\nA1,0,0,1,0\\nB7,0,0,2,0\\n", encoding="utf-8")
    >>> [path.relative_to(file.parent).as_posix() for path in shapes_in(file)]
    ['wings.csv/A1', 'wings.csv/B7']
    """
    return [Path(path) / name for name in names_in(path)] or [Path(path)]


def read_several(path: Path, *, kind: str, dtype: torch.dtype | None = None) -> Complex:
    """The specimens of a file, or the one that the path names; of a table with a point a line the cloud."""
    file = file_of(path)
    found = _specimens(file, kind)
    if found is None:
        return read_table(path, kind=kind, dtype=dtype)
    if file == path:
        counts = torch.tensor([len(points) for points in found.values()])
        points = cloud(np.concatenate([*found.values()]), dtype).points
        return Complex(points, batch=torch.arange(len(found)).repeat_interleave(counts))
    if path.name not in found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise ValueError(f"{file.name} has no shape of this name. It has {', '.join(list(found)[:5])}{more}.")
    return cloud(found[path.name], dtype)


def _specimens(file: Path, kind: str) -> dict[str, _Array] | None:
    if kind == "csv":
        with file.open("rb") as content:
            if not MENTIONED.search(content.read(2**16).replace(b"\0", b"")):  # in UTF-16 every other byte
                return None
    state = file.stat()
    return _remembered(file, kind, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4)  # for as many calls as there are specimens
def _remembered(file: Path, kind: str, size: int, changed: int) -> dict[str, _Array] | None:
    text = text_of(file)
    return tps_specimens(text) if kind == "tps" else wide_specimens(text)
