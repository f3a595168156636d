"""Landmarks of several specimens in one file: TPS files, and tables with one specimen per line.

A specimen has a path below its file, ``wings.tps/B7``, as if the file were a folder.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import torch

from ..complexes import Complex
from .arrays import point_cloud
from .formats import File, is_specimen, load
from .tables import (
    Row,
    check_widths,
    content_lines,
    decode,
    find_separator,
    has_row_names,
    parse_number,
    parse_numbers,
    read_table,
    shorten,
    split_cells,
)

_Array = np.ndarray[Any, Any]
_NOT_IN_NAMES = re.compile(r"[/\\\x00-\x1f\x7f]+")  # separators of paths, and control characters
_DIMS = {"LM": 2, "LM3": 3}
_TPS_KEY = re.compile(r"[A-Za-z]\w*")
_IMAGE_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,3}$")  # not the end of "Sp. 1"
_WIDE = re.compile(rb"[xX][._ -]?\d|\d[._ -]?[xX]")  # in the first bytes of every wide table, and of few others
_COLUMN = re.compile(  # R turns 1.X into X1.X
    r"(?P<axis>[xyz])[._ -]?(?P<number>\d+)|(x|(lm|landmark)[._ -]?)?(?P<before>\d+)[._ -]?(?P<after>[xyz])"
)
_DECIMAL = re.compile(r"[+-]?\d*[.,]\d+")


def containing_file(path: Path) -> Path:
    """The file that holds a shape: the path itself, or its parent for a specimen."""
    return path.parent if is_specimen(path) else path


def specimen_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the specimens in a file; none if the file holds a single shape or cannot be read."""
    try:
        specimens = _load_specimens(Path(path))
    except Exception:  # reported when the file is read
        specimens = None
    return list(specimens) if specimens is not None and len(specimens) > 1 else []


def read_landmarks(file: File, *, dtype: torch.dtype | None = None) -> Complex:
    """All specimens of a TPS file or a wide table, one complex each. Any other table is a point cloud."""
    specimens = _parse_specimens(file)
    if specimens is None:
        return read_table(file, dtype=dtype)
    counts = torch.tensor([len(points) for points in specimens.values()])
    points = point_cloud(np.concatenate([*specimens.values()]), dtype).points
    return Complex(points, batch=torch.arange(len(specimens)).repeat_interleave(counts))


def read_specimen(file: File, *, dtype: torch.dtype | None = None) -> Complex:
    """One specimen, by its path below the file that contains it."""
    path = Path(file.path)
    specimens = _load_specimens(path.parent)
    if specimens is None:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if path.name not in specimens:
        more = f" and {len(specimens) - 5} more" if len(specimens) > 5 else ""
        raise ValueError(f"{path.parent.name} has no specimen of this name. It has {', '.join(list(specimens)[:5])}{more}.")
    return point_cloud(specimens[path.name], dtype)


def _load_specimens(path: Path) -> dict[str, _Array] | None:
    if path.suffix.lower() != ".tps":
        with path.open("rb") as file:
            if not _may_be_wide(file.read(2**16)):
                return None
    state = path.stat()
    return _load_cached(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4)  # listing and reading the specimens of a file asks once for each of them
def _load_cached(path: Path, size: int, changed: int) -> dict[str, _Array] | None:
    return _parse_specimens(load(path))


def _parse_specimens(file: File) -> dict[str, _Array] | None:
    """The landmarks ``[V, dim]`` of each specimen by name; ``None`` if the file does not hold specimens."""
    if file.format == "tps":
        return parse_tps(decode(file.content))
    return parse_wide_table(decode(file.content)) if file.format == "csv" and _may_be_wide(file.content[: 2**16]) else None


def _may_be_wide(head: bytes) -> bool:
    return _WIDE.search(head.replace(b"\0", b"")) is not None  # every other byte of UTF-16


def choose_names(*candidates: Sequence[str], count: int) -> list[str]:
    """The first candidates that give every specimen a unique name, else the numbers of the specimens.

    >>> choose_names(["wing", "wing"], ["A/1", "A/2"], count=2)
    ['A_1', 'A_2']
    >>> choose_names(count=2)
    ['1', '2']
    """
    for candidate in candidates:
        names = [_NOT_IN_NAMES.sub("_", name).strip() for name in candidate]
        if len(set(names)) == count and not {"", ".", ".."} & set(names):
            return names
    return [f"{number:0{len(str(count))}}" for number in range(1, count + 1)]


@dataclass
class _Specimen:
    """One specimen of a TPS file."""

    line: int  # the first
    points: list[list[float]]
    entries: dict[str, str] = field(default_factory=dict)  # IMAGE, ID, ...
    scale: float | None = None


def parse_tps(text: str) -> dict[str, _Array]:
    """The landmarks ``[V, dim]`` of each specimen in a TPS file, as written by tpsDig.

    ``LM=`` gives the number of landmarks, followed by one line for each; ``LM3=`` for landmarks in space. Coordinates are
    multiplied by ``SCALE=``. The name is ``IMAGE=`` without its extension, or ``ID=`` if several specimens share an image.
    Curves, outlines and other entries are ignored.
    """
    lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    found: list[_Specimen] = []
    first, ignored = "", True  # the key of the first specimen; whether lines belong to ignored entries, such as curves
    for number, line in lines:
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not _TPS_KEY.fullmatch(key):
            if ignored:
                continue
            raise ValueError(
                f"line {number} must not be a landmark after the {len(found[-1].points)} declared, got {_got(line)}."
            )
        key = key.upper()
        ignored = key not in _DIMS
        if not ignored:
            first = first or key
            if key != first:
                raise ValueError(f"line {number} must begin a specimen with {first}= like those before, got {_got(line)}.")
            found.append(_Specimen(number, _landmarks(lines, number, line, value, _DIMS[key])))
        elif found and key == "SCALE":
            found[-1].scale = _scale(number, line, value)
        elif found:
            found[-1].entries.setdefault(key, value)
    if not found:
        raise ValueError("file holds no landmarks: there is no line LM= or LM3=.")
    unscaled = [specimen.line for specimen in found if specimen.scale is None]
    if 0 < len(unscaled) < len(found):  # sizes could not be compared
        raise ValueError(f"SCALE= must be given for all specimens or for none, but the one at line {unscaled[0]} has none.")
    images = [PureWindowsPath(specimen.entries.get("IMAGE", "")).name for specimen in found]  # accepts / and \
    ids = [specimen.entries.get("ID", "") for specimen in found]
    names = choose_names([_IMAGE_EXTENSION.sub("", image) for image in images], ids, count=len(found))
    return {name: np.array(specimen.points) * (specimen.scale or 1.0) for name, specimen in zip(names, found, strict=True)}


def _landmarks(lines: Iterator[tuple[int, str]], begin: int, head: str, value: str, dim: int) -> list[list[float]]:
    """The coordinates on the lines after the head of a specimen."""
    if not value.isdecimal():
        raise ValueError(f"line {begin} must give the number of landmarks, got {_got(head)}.")
    if int(value) == 0:
        raise ValueError(f"line {begin} must declare at least one landmark, got 0. Convert curves to landmarks with tpsUtil.")
    points = []
    for i in range(int(value)):
        number, line = next(lines, (None, ""))
        landmark = f"landmark {i + 1} of the {value} declared in line {begin}"
        if number is None:
            raise ValueError(f"file ends before {landmark}.")
        point = [_number(cell) for cell in line.split()]
        if len(point) != dim or None in point:
            hint = " Missing landmarks are not supported." if "na" in line.lower().split() else ""
            raise ValueError(f"line {number} must hold {dim} coordinates, {landmark}, got {_got(line)}.{hint}")
        points.append([coordinate for coordinate in point if coordinate is not None])
    return points


def _scale(number: int, line: str, value: str) -> float:
    scale = _number(value)
    if scale is None or scale <= 0:
        raise ValueError(f"line {number} must hold a positive scale, got {_got(line)}.")
    return scale


def _number(cell: str) -> float | None:
    """A finite number, with a decimal point or comma."""
    number = parse_number(cell, decimal_comma=True)
    return number if number is not None and math.isfinite(number) else None


def _got(line: str) -> str:
    return shorten(line.strip())


def parse_wide_table(text: str) -> dict[str, _Array] | None:
    """The landmarks ``[V, dim]`` of each line of a table with columns x1, y1, x2, y2, ..., as written by R and MorphoJ.

    The header names x and y, and optionally z, of every landmark: ``x1``, ``1.X`` or ``LM1_X``, in any order. The name of a
    specimen is the first column before the coordinates with unique entries. Row numbers without a title, as pandas and R write
    them, and columns of decimals are used only if there is no other. ``None`` for other tables.
    """
    lines = content_lines(text.splitlines(), molecules=False)
    separator = find_separator(lines[:1]) if lines else None
    titles = [title.lower() for title in split_cells(lines[0][1], separator)] if lines else []
    coordinates, dim = _wide_columns(titles)
    if not coordinates:
        return None
    rows = [Row(number, split_cells(line, separator), line.lstrip().startswith('"')) for number, line in lines[1:]]
    if not rows:
        raise ValueError("file holds no specimens: there is no line of numbers.")
    if has_row_names(rows, len(titles)):
        titles = ["", *titles]
    check_widths(rows, len(titles), "header")
    position = {title: i for i, title in enumerate(titles)}  # the titles of coordinates are unique
    columns = {position[title]: f"a number for {title}" for title in coordinates}
    before = [(titles[i], [row.cells[i] for row in rows]) for i in range(min(columns))]
    names = choose_names(*(cells for _, cells in sorted(before, key=_name_rank)), count=len(rows))
    points = parse_numbers(rows, columns, decimal_comma=separator in (";", "\t")).reshape(len(rows), -1, dim)
    return dict(zip(names, points, strict=True))


def _name_rank(column: tuple[str, list[str]]) -> int:
    """Names of specimens (0) rank before row numbers without a title (1), and these before decimals (2), such as sizes."""
    title, cells = column
    first = int(cells[0]) if cells[0].isdecimal() else 0
    row_numbers = title == "" and cells == [str(i) for i in range(first, first + len(cells))]
    return 1 if row_numbers else 2 if any(map(_DECIMAL.fullmatch, cells)) else 0


def _wide_columns(titles: Sequence[str]) -> tuple[list[str], int]:
    """The titles of the coordinates, landmark after landmark, and their dimension.

    There are none if the table has fewer than two landmarks, or columns x and y, which :func:`read_table` reads.
    """
    found: dict[tuple[int, str], str] = {}
    repeated: Counter[tuple[int, str]] = Counter()
    for title in titles:
        if match := _COLUMN.fullmatch(title):
            key = (int(match["number"] or match["before"]), match["axis"] or match["after"])
            if key in found:
                repeated[key] += 1
            found[key] = title
    numbers, axes = sorted({number for number, _ in found}), sorted({axis for _, axis in found})
    if len(numbers) < 2 or axes[:2] != ["x", "y"] or {"x", "y"} <= set(titles):
        return [], 0
    if repeated or len(found) != len(numbers) * len(axes):
        expected = [(number, axis) for number in numbers for axis in axes]
        number, axis = next(key for key in expected if key in repeated or key not in found)
        count = 1 + repeated[number, axis] if (number, axis) in found else "no"
        raise ValueError(
            f"header must have {' and '.join(axes)} once for every landmark, got {count} {axis}{number}. "
            "If a line is a point and not a specimen, rename the columns."
        )
    return [found[key] for key in sorted(found)], len(axes)
