"""Points from files: tables of text, and arrays of numpy."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..checks import check_points
from ..complexes import Complex
from ..simplices import NAMES, unique

_Array = np.ndarray[Any, Any]
_LEVELS = {name: rows for rows, name in NAMES.items()}
_DECIMALS = " Decimals have a point, not a comma."


def read_table(path: Path, *, kind: str, dtype: torch.dtype | None = None) -> Complex:
    """A point a line: columns of numbers, separated by commas, semicolons or blanks, perhaps under a line of names.

    Of columns named x and y, and perhaps z, among others, just these are read: the others may hold text. Empty lines and
    lines that begin with ``#`` do not count. XYZ may have colours or normals after three coordinates.
    """
    lines = [(i, line) for i, line in enumerate(_text(path).splitlines(), 1) if line.strip() and not line.startswith("#")]
    header = ""
    if lines and all(_number(entry) is None for entry in _entries(lines[0][1])):
        header, lines = lines[0][1], lines[1:]
    if not lines:
        raise ValueError("it holds no points: there is no line of numbers.")
    if header and (chosen := _coordinates(header, lines)) is not None:
        return _cloud(chosen, dtype)
    separator = next((s for s in ",;" if s in lines[0][1]), None)
    try:
        table = np.loadtxt(io.StringIO("\n".join(line for _, line in lines)), delimiter=separator, ndmin=2)
    except ValueError:
        table = _line_by_line(lines)
    return _cloud(table[:, :3] if kind == "xyz" else table, dtype)


def read_arrays(path: Path, *, kind: str, dtype: torch.dtype | None = None) -> Complex:
    """A file of numpy with one array of points ``[V, dim]``.

    Or NPZ with ``points``, and perhaps ``edges [2, n]``, ``triangles [3, n]``, ``tetrahedra [4, n]``.
    """
    arrays = _load(path)
    if len(arrays) == 1 and not set(arrays) & set(_LEVELS):
        return _cloud(next(iter(arrays.values())), dtype)
    # Not to lose what joins the points in an array of another name, every name must be known.
    if "points" not in arrays or set(arrays) - {"points", *_LEVELS}:
        known = ", ".join(_LEVELS)
        raise ValueError(f"it must hold an array points and perhaps {known}, got {', '.join(sorted(arrays)) or 'nothing'}.")
    simplices = [_columns(name, arrays[name], rows) for name, rows in _LEVELS.items() if name in arrays]
    points = _cloud(arrays["points"], dtype).points
    return Complex(points, [unique(columns) for columns in simplices if columns.numel()]).closure()


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError("it is binary, where a table of numbers was expected.")
    return text


def _entries(line: str) -> list[str]:
    separator = next((s for s in ",;" if s in line), None)
    return [entry.strip() for entry in line.split(separator)]


def _coordinates(header: str, lines: list[tuple[int, str]]) -> _Array | None:
    """The columns named x, y and perhaps z, in this order; ``None`` where there are none, or no others."""
    separator = next((s for s in ",;\t" if s in header), None)
    names = [name.strip().lower() for name in _cells(header, separator)]
    wanted = [name for name in "xyz" if name in names]
    if wanted[:2] != ["x", "y"] or (names[: len(wanted)] == wanted and not any(names[len(wanted) :])):
        return None
    for name in wanted:
        if names.count(name) > 1:
            raise ValueError(f"its line of names must have one {name}, small or capital, got {names.count(name)}.")
    places = [names.index(name) for name in wanted]
    rows = []
    for i, line in lines:
        cells = _cells(line, separator)
        if len(cells) != len(names):
            raise ValueError(f"line {i} must have {len(names)} columns like the line of names, got {len(cells)}.")
        try:
            rows.append([float(cells[place]) for place in places])
        except ValueError:
            place = next(place for place in places if _number(cells[place]) is None)
            hint = _DECIMALS if "," in cells[place] else ""
            raise ValueError(f"line {i} must hold a number for {names[place]}, got {_shown(cells[place])}.{hint}") from None
    return np.array(rows)


def _cells(line: str, separator: str | None) -> list[str]:
    """The entries of a line. Text may be in quotes, and hold the separator."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line.strip(" ")], delimiter=separator or " ", skipinitialspace=True))
    except csv.Error:  # an entry longer than any text: its quotes do not close
        return [line]


def _shown(entry: str) -> str:
    return repr(re.sub(r"[^ -~]", "?", entry.strip()[:30]))


def _number(entry: str) -> float | None:
    try:
        return float(entry)
    except ValueError:
        return None


def _line_by_line(lines: list[tuple[int, str]]) -> _Array:
    """Slowly, to find the line that is wrong."""
    rows: list[list[float]] = []
    for i, line in lines:
        entries = _entries(line)
        numbers = [_number(entry) for entry in entries]
        if None in numbers:
            entry = entries[numbers.index(None)]
            hint = _DECIMALS if "," in line and ";" in line else ""
            raise ValueError(f"line {i} must hold numbers, got {_shown(entry)}.{hint}")
        if rows and len(numbers) != len(rows[0]):
            raise ValueError(f"line {i} must have {len(rows[0])} columns like the lines before, got {len(numbers)}.")
        rows.append([number for number in numbers if number is not None])
    return np.array(rows)


def _load(path: Path) -> dict[str, _Array]:
    """The arrays of a file by name. Never a pickle, which could run anything."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return {"points": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError(
                "it holds Python objects, which are never loaded from a file, where numbers were expected."
            ) from None
        raise ValueError("it is truncated or damaged.") from None
    except (EOFError, OSError, KeyError, zipfile.BadZipFile, SyntaxError, NotImplementedError, UnicodeDecodeError):
        raise ValueError("it is truncated or damaged.") from None


def _cloud(array: _Array, dtype: torch.dtype | None) -> Complex:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"points must be numbers, got an array of {array.dtype}.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"points must have shape [V, dim], got {list(array.shape)}.")
    if not len(array):
        raise ValueError("it holds no points.")
    points = torch.from_numpy(array.astype(np.float64))
    check_points(points)
    points = points.to(dtype or torch.get_default_dtype())
    return Complex(points)


def _columns(name: str, array: _Array, rows: int) -> torch.Tensor:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got {array.dtype}.")
    if array.ndim != 2 or len(array) != rows:
        hint = " Is it transposed?" if array.ndim == 2 and array.shape[1] == rows else ""
        raise ValueError(f"{name} must have shape [{rows}, count], got {list(array.shape)}.{hint}")
    return torch.from_numpy(array.astype(np.int64))
