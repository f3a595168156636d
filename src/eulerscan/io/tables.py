"""Points from tables of text, as programs and spreadsheets of all countries write them."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..complexes import Complex
from .arrays import cloud

_Array = np.ndarray[Any, Any]
_Lines = Sequence[tuple[int, str]]  # their numbers in the file, and they
_SEPARATOR = re.compile(r"sep=.?\s*", re.IGNORECASE)  # a first line that tells Excel, and nobody else
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_FIGURES = "+-0123456789.,' \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"
_MISSING = ("na", "n/a", "null", "none")
_DECIMALS = " Decimals have a point, or a comma where semicolons or tabs separate the columns."
_NAME_THEM = " Columns of text are left out if the first line names x and y, and perhaps z, besides others."


class Row(NamedTuple):
    number: int
    cells: list[str]
    quoted: bool  # its first cell


def read_table(path: Path, *, kind: str, dtype: torch.dtype | None = None) -> Complex:
    """A point a line: columns of numbers, perhaps under a line of names.

    Columns are separated by semicolons, tabs, commas or blanks. Between semicolons or tabs decimals may have a comma. Of
    columns named x and y, and perhaps z, among others, just these are read: the others may hold text. Without such names the
    first columns may hold text, and are passed over, and so is a first column that has no name where all others have one, as
    pandas and R number the rows. Columns may have their numbers, 0, 1, 2 and so on, for names, as in pandas: after a first
    column without a name, or above three columns and more of which no entry is a whole number. Else that line is a point.
    Empty lines and lines that begin with ``#`` do not count, nor does ``sep=;`` for Excel. XYZ may have colours or normals
    after three coordinates, or be a molecule: the number of atoms, a line of any text, the atoms.
    """
    lines = lines_of(text_of(path).splitlines(), molecules=kind == "xyz")
    header, titles = "", cells_of(lines[0][1], separator_of(lines[:1])) if lines else []
    if lines and (not any(map(_means_number, titles)) or _are_numbers_of_columns(titles, lines[1:])):
        header, lines = lines[0][1], lines[1:]
    if not lines:
        raise ValueError("it holds no points: there is no line of numbers.")
    separator, names = _coordinates(header)
    counted = header != "" and len(titles) > 1 and not titles[0] and all(titles[1:])  # the rows, in the first column
    plain = names == list("xyz"[: len(names)]) and not counted  # or there are no such names
    if plain or not names:
        separator = separator_of(lines)
    table = _fast(lines, separator) if plain else None
    if table is None or (names and kind != "xyz" and table.shape[1] != len(names)):
        rows = [Row(i, cells_of(line, separator), line.lstrip().startswith('"')) for i, line in lines]
        if [row.cells[0] for row in rows] == titles[1:] and any(map(_is_text, titles)):
            raise ValueError("its rows have the names of its columns: it is a matrix, such as one of distances, and no shape.")
        if names:
            places = _named(rows, names)
        else:
            places = _unnamed(rows, len(cells_of(header, separator)), counted=counted and len(rows[0].cells) == len(titles))
        table = numbers_of(rows, places, comma=separator in (";", "\t"))
    return cloud(table[:, :3] if kind == "xyz" else table, dtype)


def lines_of(text: Sequence[str], *, molecules: bool) -> _Lines:
    """Those that hold points, and perhaps a line of names before."""
    atoms = int(text[0]) if molecules and text and text[0].strip().isdecimal() else None
    lines = [(i, line) for i, line in enumerate(text, 1) if _counts(line.strip()) and (atoms is None or i > 2)]
    if atoms is not None and len(lines) != atoms:
        raise ValueError(f"it must hold the {atoms} atoms that its first line announces, got {len(lines)}.")
    return lines[1:] if lines and _SEPARATOR.fullmatch(lines[0][1]) else lines


def _counts(line: str) -> bool:
    """Whether it holds anything, and no comment."""
    return line.strip(" \t;,") != "" and not line.startswith("#")


def text_of(path: Path) -> str:
    """UTF-8, UTF-16 with its mark, or else the code page of older spreadsheets, in which numbers look the same as in any."""
    content = path.read_bytes()
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = "\0" if encoding == "utf-16" or _CONTROL.search(content) else content.decode("cp1252", "replace")
    if "\0" in text:
        raise ValueError("it is binary, where a table of numbers was expected. Text must be UTF-8, or UTF-16 with its mark.")
    return text.replace("\N{MINUS SIGN}", "-")


def separator_of(lines: _Lines) -> str | None:
    """What is between the columns; ``None`` for blanks and tabs in any number. The first line tells, in most cases."""
    first = re.sub('"[^"]*"', "", lines[0][1])
    if ";" in first:
        return ";"
    if "\t" in first and not re.search(r",\s*\t|\t\s*,", first):
        # Tabs are as good as blanks between numbers, but not where there are blanks in text, or commas in numbers.
        words = next((line for _, line in lines if "," in line), lines[0][1]).split()
        if any(_number(word) is None for word in words):  # quotes, too
            return "\t"
    return "," if "," in first else None


def _coordinates(header: str) -> tuple[str | None, list[str]]:
    """The names of the columns, and what is between them, if x and y are among them."""
    for separator in (";", "\t", ",", None):
        names = [name.lower() for name in cells_of(header, separator)]
        if "x" in names and "y" in names:
            while not names[-1]:
                names.pop()
            return separator, names
    return None, []


def _are_numbers_of_columns(titles: list[str], rest: _Lines) -> bool:
    """Whether a first line counts the columns from 0, and is no point, as far as one can know.

    A point has no empty coordinate. Without one, pandas writes decimals for all numbers of an array that has some, even 1.0;
    but so may look a pentagon, whose top is at 0,1.
    """
    counted = titles[1:] if titles[0] == "" else titles
    if counted != [str(i) for i in range(len(counted))]:
        return False
    if counted != titles:
        return True
    separator = separator_of(rest) if rest else None
    whole = any(cell.lstrip("+-").isdecimal() for _, line in rest for cell in cells_of(line, separator))
    return len(titles) > 2 and bool(rest) and not whole


def _fast(lines: _Lines, separator: str | None) -> _Array | None:
    """A table of plain numbers, ``None`` where there is more to it, or something is wrong."""
    text = "\n".join(line for _, line in lines)
    if separator in (";", "\t") and "," in text:
        return None
    try:
        return np.loadtxt(io.StringIO(text), delimiter=separator, ndmin=2)
    except ValueError:
        return None


def _named(rows: Sequence[Row], names: list[str]) -> dict[int, str]:
    """Where the columns named x, y and perhaps z are, in this order, and what they must hold."""
    wanted = [name for name in "xyz" if name in names]
    for name in wanted:
        if names.count(name) > 1:
            raise ValueError(f"its line of names must have one {name}, small or capital, got {names.count(name)}.")
    if has_row_names(rows, len(names)):
        names = ["", *names]
    check_widths(rows, len(names), "line of names")
    return {names.index(name): f"a number for {name}" for name in wanted}


def _unnamed(rows: Sequence[Row], num_names: int, *, counted: bool) -> dict[int, str]:
    """Where the numbers are: all columns but the first ones that hold text, if two are left, or that count the rows."""
    width = max(i for row in rows for i, cell in enumerate(row.cells, 1) if cell or i == 1)
    check_widths(rows, min(width, len(rows[0].cells)), "lines before")
    first = int(width > 1 and (counted or has_row_names(rows, num_names)))
    while first < width - 2 and all(_is_text(row.cells[first]) for row in rows):
        first += 1
    return dict.fromkeys(range(first, width), "numbers")


def has_row_names(rows: Sequence[Row], num_names: int) -> bool:
    """As R writes them: in quotes, in a first column that has no name itself."""
    return num_names > 1 and all(len(row.cells) == num_names + 1 and (row.quoted or _is_text(row.cells[0])) for row in rows)


def check_widths(rows: Sequence[Row], width: int, others: str) -> None:
    """Every row has so many columns, or more that are empty."""
    for row in rows:
        if len(row.cells) < width or any(row.cells[width:]):
            raise ValueError(
                f"line {row.number} must have {width} column{'s' * (width > 1)} like the {others}, got {len(row.cells)}."
            )


def numbers_of(rows: Sequence[Row], places: dict[int, str], *, comma: bool) -> _Array:
    """Some columns of all rows; ``comma``: decimals may have one."""
    numbers = []
    for row in rows:
        for place, what in places.items():
            cell = row.cells[place]
            number = _number(cell, comma=comma)
            if number is None:
                hint = _NAME_THEM if what == "numbers" and _is_text(cell) else _DECIMALS if _has_comma(cell) else ""
                raise ValueError(f"line {row.number} must hold {what}, got {_shown(cell)}.{hint}")
            numbers.append(number)
    signs = [next((row.cells[i] for row in rows for i in places if sign in row.cells[i]), None) for sign in ",."]
    if None not in signs:
        raise ValueError(f"decimals must all have a point or all a comma, got {' and '.join(map(repr, signs))}.")
    return np.array(numbers).reshape(len(rows), len(places))


def cells_of(line: str, separator: str | None) -> list[str]:
    """The entries of a line. They may be in quotes, and then hold the separator."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(separator)]
    try:
        cells = next(csv.reader([line.strip(" ")], delimiter=separator or " ", skipinitialspace=True))
    except csv.Error:  # an entry longer than any text: its quotes do not close
        return [line]
    return [cell.strip() for cell in cells]


def _number(cell: str, *, comma: bool = False) -> float | None:
    if "_" in cell:  # Python takes 1_0 for a number, and others do not
        return None
    try:
        return float(cell.replace(",", ".") if comma and "." not in cell else cell)
    except ValueError:
        return None


def _means_number(cell: str) -> bool:
    """Whether it is no name, but a number, one in a form that is not understood, or a word for one that is missing."""
    known = _number(cell, comma=True) is not None or cell.lower() in _MISSING
    return known or (cell != "" and not cell.strip(_FIGURES))


def _has_comma(cell: str) -> bool:
    """Whether there may be a decimal comma in it, or was at its ends: 5 2 is what is left of 1,5 2,25."""
    return "," in cell or (len(cell.split()) > 1 and all(_number(word) is not None for word in cell.split()))


def _is_text(cell: str) -> bool:
    """Whether it is a name for sure."""
    return cell[:1].isalpha() and not _means_number(cell)


def _shown(cell: str) -> str:
    return repr(re.sub(r"[^ -~]", "?", cell[:30]))
