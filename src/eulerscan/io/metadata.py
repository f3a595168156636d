"""Tables about shapes: the group and the covariates of each, in a CSV file beside them."""

from __future__ import annotations

import csv
import difflib
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from .._tables import unescaped
from .tables import MISSING, decode, parse_number
from .walk import Failure, Listing

_KEYS = ("name", "file", "filename", "shape", "id", "specimen")


class Metadata(NamedTuple):
    """A table with a row per shape.

    Attributes:
        path: The file.
        key: The column with the names of the shapes.
        columns: The other columns.
        rows: The cells of each row by column, by the name of the shape.
    """

    path: Path
    key: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, str]]

    def column(self, name: str, shapes: Sequence[str]) -> list[str | None]:
        """The cells of a column for the given shapes. ``None`` for shapes without a row, or with an empty cell or NA.

        Shapes are found by their path, their file name, or that name without its extension; else by a path that begins with
        more folders, the same in all rows, such as one below the current folder; else by these names in lower case.

        Args:
            name: The column.
            shapes: Names of the shapes, as in :class:`~eulerscan.io.Listing`.
        """
        if name not in self.columns:
            lower = {column.lower(): column for column in self.columns}
            near = difflib.get_close_matches(name.lower(), lower, n=1)
            hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
            raise ValueError(f"{self.path}: table has no column {name!r}. Its columns are {', '.join(self.columns)}.{hint}")
        found = self._match(shapes)
        cells = [self.rows[row][name] if row is not None else None for row in found]
        return [None if not cell or cell.lower() in MISSING else cell for cell in cells]

    def numbers(self, name: str, shapes: Sequence[str]) -> list[float | None]:
        """The numbers of a column for the given shapes, with a decimal point or comma. ``None`` as in :meth:`column`."""
        cells = self.column(name, shapes)
        found = [None if cell is None else parse_number(cell, decimal_comma=True) for cell in cells]
        for cell, number in zip(cells, found, strict=True):
            if cell is not None and number is None:
                raise ValueError(
                    f"{self.path}: column {name!r} must hold numbers, got {cell!r}. Columns of names are for label and strata."
                )
        return found

    def blocks(self, name: str, shapes: Sequence[str]) -> list[str]:
        """The block of each of the given shapes, such as its specimen, in a column. Every shape must have one."""
        cells = self.column(name, shapes)
        for shape, cell in zip(shapes, cells, strict=True):
            if cell is None:
                raise ValueError(f"{self.path}: column {name!r} must have a block for every shape, got none for {shape}.")
        return [cell or "" for cell in cells]

    def unmatched(self, shapes: Sequence[str]) -> list[str]:
        """The rows that belong to none of the shapes."""
        used = set(self._match(shapes))
        return [row for row in self.rows if row not in used]

    def _match(self, shapes: Sequence[str]) -> list[str | None]:
        """The row of each shape. Raises if two shapes have the same one, or if no shape has any."""
        rows = [next((name for name in _names(shape) if name in self.rows), None) for shape in shapes]
        ends = self._ends(set(rows))
        rows = [ends.get(shape) if row is None else row for shape, row in zip(shapes, rows, strict=True)]
        folded = self._match_in_lower_case([shape for shape, row in zip(shapes, rows, strict=True) if row is None], rows)
        rows = [folded.get(shape) if row is None else row for shape, row in zip(shapes, rows, strict=True)]
        owner: dict[str, str] = {}
        for shape, row in zip(shapes, rows, strict=True):
            if row is not None and owner.setdefault(row, shape) != shape:
                raise ValueError(f"{self.path}: row {row!r} belongs to both {owner[row]} and {shape}. Use paths as names.")
        if shapes and not owner:
            example = next(iter(self.rows))
            raise ValueError(
                f"{self.path}: column {self.key!r} must hold the names of the shapes, such as {_names(shapes[0])[1]!r}, got "
                f"{example!r}. If another column holds them, name it 'name'. Paths are relative to the folder of the shapes."
            )
        return rows

    def _ends(self, taken: set[str | None]) -> dict[str, str]:
        """The rows that are not taken, by their paths without some of the folders that all rows begin with."""
        folders = [row.split("/")[:-1] for row in self.rows]
        shared = next((i for i, names in enumerate(zip(*folders, strict=False)) if len({*names}) > 1), min(map(len, folders)))
        left = [row for row in self.rows if row not in taken]
        return {row.split("/", i)[-1]: row for i in range(1, shared + 1) for row in left}

    def _match_in_lower_case(self, shapes: Sequence[str], taken: Sequence[str | None]) -> dict[str, str]:
        """The rows of shapes by names in lower case, where one row and one shape have them."""
        rows = Counter(row.lower() for row in self.rows)
        left = {row.lower(): row for row in self.rows.keys() - set(taken) if rows[row.lower()] == 1}
        found = {shape: next((n for name in _names(shape) if (n := name.lower()) in left), None) for shape in shapes}
        shared = Counter(found.values())
        return {shape: left[name] for shape, name in found.items() if name is not None and shared[name] == 1}


def join_groups(
    listing: Listing, table: str | os.PathLike[str] | None, label: str | None
) -> tuple[dict[str, str], list[Failure]]:
    """The group of each shape by name: its label in a table, or its subfolder. Shapes without one are missing.

    Args:
        listing: The shapes.
        table: The table. ``None`` for subfolders.
        label: Its column with the groups.

    Returns:
        The groups; and, with a table, the shapes without a label and the rows that are none of the shapes.
    """
    if table is None or label is None:
        return {name: group for name, group in zip(listing.names, listing.groups, strict=True) if group}, []
    metadata = read_metadata(table)
    cells = zip(listing.names, metadata.column(label, listing.names), strict=True)
    groups = {name: cell for name, cell in cells if cell is not None}
    failures = [Failure(listing.folder / name, f"no {label} in {table}.") for name in listing.names if name not in groups]
    failures += [Failure(metadata.path, f"row {row!r} is none of the shapes.") for row in metadata.unmatched(listing.names)]
    return groups, failures


def _names(shape: str) -> tuple[str, str, str]:
    """The names by which a table may refer to a shape."""
    path = PurePosixPath(shape)
    return shape, path.name, path.stem


def _separator(header: str) -> str:
    """What separates the titles, outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    return next((separator for separator in ";\t" if separator in bare), ",")


def read_metadata(path: str | os.PathLike[str]) -> Metadata:
    """Read a table about shapes: CSV, TSV or a spreadsheet's export with semicolons, with a header.

    The names of the shapes are in the column ``name``, ``file``, ``filename``, ``shape``, ``id`` or ``specimen``, the first of
    these without repeated cells, else in the first column. A name is a path below the folder of the shapes, with slashes or
    backslashes, a file name, or a file name without its extension.

    Args:
        path: The file.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "skulls.csv"
        >>> _ = file.write_text("name,species,length\\na,gorilla,31.5\\nb,gibbon,\\n", encoding="utf-8")
        >>> table = read_metadata(file)
        >>> table.column("species", ["old/a.ply", "old/b.ply", "old/c.ply"])
        ['gorilla', 'gibbon', None]
    """
    path = Path(path)
    try:
        lines = decode(path.read_bytes()).splitlines()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    lines = [line for line in lines if line.strip()]
    if len(lines) < 2:
        raise ValueError(f"{path}: table must have a header and a row per shape, got {len(lines)} lines.")
    table = csv.reader(lines, delimiter=_separator(lines[0]), strict=True)
    try:
        header, *body = ([unescaped(cell.strip()) for cell in row] for row in table)
    except csv.Error as error:
        raise ValueError(f"{path}: not a table: {error}.") from None
    repeated = [title for title, count in Counter(filter(None, header)).items() if count > 1]
    if repeated:
        raise ValueError(f"{path}: columns must have different names, got {', '.join(repeated)} more than once.")
    known = sorted((title for title in header if title.lower() in _KEYS), key=lambda title: _KEYS.index(title.lower()))
    cells_of = dict(zip(header, zip(*body, strict=False), strict=False))
    # Several scans of a specimen, or names of species, are no names of shapes.
    different = (title for title in [*known, header[0]] if len(set(cells_of.get(title, ()))) == len(body))
    key = next(different, (known or header)[0])
    rows: dict[str, dict[str, str]] = {}
    for number, cells in enumerate(body, start=2):
        if len(cells) < len(header) or any(cells[len(header) :]):
            raise ValueError(f"{path}: row {number} must have {len(header)} cells like the header, got {len(cells)}.")
        row = dict(zip(header, cells, strict=False))
        row[key] = row[key].replace("\\", "/")
        if row[key] in rows:
            raise ValueError(f"{path}: each shape must have one row, got {row[key]!r} again in row {number}.")
        rows[row[key]] = row
    return Metadata(path, key, tuple(title for title in header if title and title != key), rows)
