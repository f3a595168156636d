"""Tables of points as text: CSV, TSV, TXT and XYZ, as written by spreadsheets and programs in any locale."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch

from ..complexes import Complex
from .arrays import point_cloud
from .formats import File

_Array = np.ndarray[Any, Any]
_Lines = Sequence[tuple[int, str]]  # line number and text
_SEPARATOR_LINE = re.compile(r"sep=.?\s*", re.IGNORECASE)  # a first line that only Excel uses
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NUMERIC = "+-0123456789.,' \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"
MISSING = ("na", "n/a", "nan", "null", "none")
_DECIMAL_HINT = " Use a decimal point, or a decimal comma if semicolons or tabs separate the columns."
_TEXT_HINT = " Text columns are ignored if the first line names columns x and y, and optionally z."


class Row(NamedTuple):
    number: int  # of its line
    cells: list[str]
    quoted: bool  # the first cell


def read_table(file: File, *, dtype: torch.dtype | None = None) -> Complex:
    """One point per line: columns of numbers, optionally under a header.

    - Columns are separated by semicolons, tabs, commas or spaces. Between semicolons or tabs, decimal commas are allowed.
    - If the header names columns x and y, and optionally z, only these are read, and others may hold text. Otherwise leading
      text columns are skipped, and so is a first column that alone has no name: pandas and R write row numbers like this.
    - A first line 0, 1, 2, ... is a header, as in pandas, if the first column has no name, or if there are at least three
      columns without any integer. Otherwise it is a point.
    - Empty lines, lines that begin with ``#``, and Excel's ``sep=;`` are ignored.
    - XYZ may have colors or normals after three coordinates, or be a molecule: number of atoms, comment line, atoms.
    """
    lines = content_lines(decode(file.content).splitlines(), molecules=file.format == "xyz")
    header, titles = "", split_cells(lines[0][1], find_separator(lines[:1])) if lines else []
    if lines and (not any(map(_looks_numeric, titles)) or _are_column_numbers(titles, lines[1:])):
        header, lines = lines[0][1], lines[1:]
    if not lines:
        raise ValueError("file holds no points: there is no line of numbers.")
    separator, names = _named_columns(header)
    row_numbers = header != "" and len(titles) > 1 and not titles[0] and all(titles[1:])  # in the first column
    plain = names == list("xyz"[: len(names)]) and not row_numbers  # or there are no such names
    if plain or not names:
        separator = find_separator(lines)
    table = _parse_plain(lines, separator) if plain else None
    if table is None or (names and file.format != "xyz" and table.shape[1] != len(names)):
        rows = [Row(i, split_cells(line, separator), line.lstrip().startswith('"')) for i, line in lines]
        if [row.cells[0] for row in rows] == titles[1:] and any(map(_is_text, titles)):
            raise ValueError("rows and columns have the same names: the table is a matrix, such as of distances, not a shape.")
        if names:
            columns = _coordinate_columns(rows, names)
        else:
            skip_first = row_numbers and len(rows[0].cells) == len(titles)
            columns = _number_columns(rows, len(split_cells(header, separator)), skip_first=skip_first)
        table = parse_numbers(rows, columns, decimal_comma=separator in (";", "\t"))
    return point_cloud(table[:, :3] if file.format == "xyz" else table, dtype)


def decode(content: bytes) -> str:
    """UTF-8, UTF-16 with a byte order mark, or else cp1252: numbers look the same in all legacy code pages."""
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = "\0" if encoding == "utf-16" or _CONTROL.search(content) else content.decode("cp1252", "replace")
    if "\0" in text:
        raise ValueError("file is binary, expected text in UTF-8, or in UTF-16 with a byte order mark.")
    return text.replace("\N{MINUS SIGN}", "-")


def content_lines(text: Sequence[str], *, molecules: bool) -> _Lines:
    """The lines with points, and the header."""
    atoms = int(text[0]) if molecules and text and text[0].strip().isdecimal() else None
    lines = [(i, line) for i, line in enumerate(text, 1) if _has_content(line.strip()) and (atoms is None or i > 2)]
    if atoms is not None and len(lines) != atoms:
        raise ValueError(f"file must hold the {atoms} atoms that its first line declares, got {len(lines)}.")
    return lines[1:] if lines and _SEPARATOR_LINE.fullmatch(lines[0][1]) else lines


def _has_content(line: str) -> bool:
    return line.strip(" \t;,") != "" and not line.startswith("#")


def find_separator(lines: _Lines) -> str | None:
    """The column separator, usually clear from the first line; ``None`` for any number of spaces and tabs."""
    first = re.sub('"[^"]*"', "", lines[0][1])
    if ";" in first:
        return ";"
    if "\t" in first and not _has_tab_beside_comma(first):
        # Tabs equal spaces between numbers, but not if text contains spaces, or numbers contain commas.
        words = next((line for _, line in lines if "," in line), lines[0][1]).split()
        if any(parse_number(word) is None for word in words):  # quotes, too
            return "\t"
    return "," if "," in first else None


def _has_tab_beside_comma(line: str) -> bool:
    """Whether only white space is between a tab and a comma. A regular expression would take quadratic time."""
    pieces = line.split(",")
    after = any("\t" in piece[: len(piece) - len(piece.lstrip())] for piece in pieces[1:])
    return after or any("\t" in piece[len(piece.rstrip()) :] for piece in pieces[:-1])


def split_cells(line: str, separator: str | None) -> list[str]:
    """The cells of a line. Quoted cells may contain the separator."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(separator)]
    try:
        cells = next(csv.reader([line.strip(" ")], delimiter=separator or " ", skipinitialspace=True))
    except csv.Error:  # too long a cell: its quotes do not close
        return [line]
    return [cell.strip() for cell in cells]


def _named_columns(header: str) -> tuple[str | None, list[str]]:
    """The separator and the column names of a header, if x and y are among them."""
    for separator in (";", "\t", ",", None):
        names = [name.lower() for name in split_cells(header, separator)]
        if "x" in names and "y" in names:
            while not names[-1]:
                names.pop()
            return separator, names
    return None, []


def _are_column_numbers(titles: list[str], rest: _Lines) -> bool:
    """Whether the first line holds column numbers from 0 instead of a point, as far as one can tell.

    A point has no empty coordinate. Without an empty cell, pandas writes a decimal point for all numbers of a float array, even
    for 1.0. In two columns that is no proof: the top of a pentagon may be at 0,1.
    """
    numbers = titles[1:] if titles[0] == "" else titles
    if numbers != [str(i) for i in range(len(numbers))]:
        return False
    if numbers != titles:
        return True
    separator = find_separator(rest) if rest else None
    has_integer = any(cell.lstrip("+-").isdecimal() for _, line in rest for cell in split_cells(line, separator))
    return len(titles) > 2 and bool(rest) and not has_integer


def _parse_plain(lines: _Lines, separator: str | None) -> _Array | None:
    """A table of plain numbers; ``None`` for any other or invalid table."""
    text = "\n".join(line for _, line in lines)
    if separator in (";", "\t") and "," in text:
        return None
    try:
        return np.loadtxt(io.StringIO(text), delimiter=separator, ndmin=2)
    except ValueError:
        return None


def _coordinate_columns(rows: Sequence[Row], names: list[str]) -> dict[int, str]:
    """Index and description of the columns named x, y and optionally z, in this order."""
    wanted = [name for name in "xyz" if name in names]
    for name in wanted:
        if names.count(name) > 1:
            raise ValueError(f"header must have one column {name}, in lower or upper case, got {names.count(name)}.")
    if has_row_names(rows, len(names)):
        names = ["", *names]
    check_widths(rows, len(names), "header")
    return {names.index(name): f"a number for {name}" for name in wanted}


def _number_columns(rows: Sequence[Row], num_names: int, *, skip_first: bool) -> dict[int, str]:
    """Index and description of all columns, except row numbers, and leading text if two columns remain."""
    width = max(i for row in rows for i, cell in enumerate(row.cells, 1) if cell or i == 1)
    check_widths(rows, min(width, len(rows[0].cells)), "lines before")
    first = int(width > 1 and (skip_first or has_row_names(rows, num_names)))
    while first < width - 2 and all(_is_text(row.cells[first]) for row in rows):
        first += 1
    return dict.fromkeys(range(first, width), "numbers")


def has_row_names(rows: Sequence[Row], num_names: int) -> bool:
    """Row names as written by R: quoted, or text, in a first column that the header does not count."""
    return num_names > 1 and all(len(row.cells) == num_names + 1 and (row.quoted or _is_text(row.cells[0])) for row in rows)


def check_widths(rows: Sequence[Row], width: int, reference: str) -> None:
    """Every row must have ``width`` columns. More are allowed if they are empty."""
    for row in rows:
        if len(row.cells) < width or any(row.cells[width:]):
            raise ValueError(
                f"line {row.number} must have {width} column{'s' * (width > 1)} like the {reference}, got {len(row.cells)}."
            )


def parse_numbers(rows: Sequence[Row], columns: dict[int, str], *, decimal_comma: bool) -> _Array:
    """``[rows, columns]``: the numbers in some columns, given with the description for errors."""
    cells = [row.cells[i] for row in rows for i in columns]
    with suppress(ValueError):  # found again below, with its line
        if not any("_" in cell for cell in cells):
            return np.array(list(map(float, cells))).reshape(len(rows), len(columns))
    numbers = []
    for row in rows:
        for column, description in columns.items():
            cell = row.cells[column]
            number = parse_number(cell, decimal_comma=decimal_comma)
            if number is None:
                is_text = description == "numbers" and _is_text(cell)
                hint = _TEXT_HINT if is_text else _DECIMAL_HINT if _has_decimal_comma(cell) else ""
                raise ValueError(f"line {row.number} must hold {description}, got {shorten(cell)}.{hint}")
            numbers.append(number)
    signs = [next((row.cells[i] for row in rows for i in columns if sign in row.cells[i]), None) for sign in ",."]
    if None not in signs:
        raise ValueError(f"decimals must all have a point or all a comma, got {' and '.join(map(repr, signs))}.")
    return np.array(numbers).reshape(len(rows), len(columns))


def parse_number(cell: str, *, decimal_comma: bool = False) -> float | None:
    """The number in a cell; ``None`` if it holds something else."""
    if "_" in cell:  # Python accepts 1_0 as a number, other programs do not
        return None
    try:
        return float(cell.replace(",", ".") if decimal_comma and "." not in cell else cell)
    except ValueError:
        return None


def _looks_numeric(cell: str) -> bool:
    """Whether a cell is not a name: a number, also in an unsupported notation, or a word for a missing one."""
    known = parse_number(cell, decimal_comma=True) is not None or cell.lower() in MISSING
    return known or (cell != "" and not cell.strip(_NUMERIC))


def _has_decimal_comma(cell: str) -> bool:
    """Whether a cell has a decimal comma, or was cut at one: 5 2 is the middle of 1,5 2,25."""
    return "," in cell or (len(cell.split()) > 1 and all(parse_number(word) is not None for word in cell.split()))


def _is_text(cell: str) -> bool:
    return cell[:1].isalpha() and not _looks_numeric(cell)


def shorten(text: str) -> str:
    """The beginning of a text, quoted, for error messages."""
    return repr(re.sub(r"[^ -~]", "?", text[:30]))
