"""Tables with a specimen in each line, as R and MorphoJ write them: columns x1, y1, x2, y2 and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .naming import choose_names
from .tables import Row, cells_of, check_widths, has_row_names, lines_of, numbers_of, separator_of

_Array = np.ndarray[Any, Any]
MENTIONED = re.compile(rb"[xX][._ -]?\d|\d[._ -]?[xX]")  # in the first bytes of every such table, and of hardly any other
_COLUMN = re.compile(  # R makes X1.X of 1.X
    r"(?P<axis>[xyz])[._ -]?(?P<number>\d+)|(x|(lm|landmark)[._ -]?)?(?P<before>\d+)[._ -]?(?P<after>[xyz])"
)
_DECIMAL = re.compile(r"[+-]?\d*[.,]\d+")


class _Layout(NamedTuple):
    """What the first line says: the names of the columns, landmark after landmark, and in how many dimensions they are."""

    columns: list[str]
    dim: int


def wide_specimens(text: str) -> dict[str, _Array] | None:
    """The landmarks ``[V, dim]`` of each line of a table whose first line names x and y, and perhaps z: ``x1`` or ``1.X``.

    The columns may be in any order. The first one before them that tells the specimens apart is their name, rather than one
    without a title that counts the rows, as pandas and R write it, or one of decimals; others are left out. ``None`` is any
    other table.
    """
    lines = lines_of(text.splitlines(), molecules=False)
    separator = separator_of(lines[:1]) if lines else None
    titles = [title.lower() for title in cells_of(lines[0][1], separator)] if lines else []
    layout = _layout(titles)
    if layout is None:
        return None
    rows = [Row(number, cells_of(line, separator), line.lstrip().startswith('"')) for number, line in lines[1:]]
    if not rows:
        raise ValueError("it holds no specimens: there is no line of numbers.")
    if has_row_names(rows, len(titles)):
        titles = ["", *titles]
    check_widths(rows, len(titles), "line of names")
    places = {titles.index(title): f"a number for {title}" for title in layout.columns}
    before = [(titles[i], [row.cells[i] for row in rows]) for i in range(min(places))]
    names = choose_names(*(cells for _, cells in sorted(before, key=_doubt)), count=len(rows))
    points = numbers_of(rows, places, comma=separator in (";", "\t")).reshape(len(rows), -1, layout.dim)
    return dict(zip(names, points, strict=True))


def _doubt(column: tuple[str, list[str]]) -> int:
    """How unlikely it holds names of specimens: without a title it may count the rows, and decimals are sizes and the like."""
    title, cells = column
    first = int(cells[0]) if cells[0].isdecimal() else 0
    counts = title == "" and cells == [str(i) for i in range(first, first + len(cells))]
    return 1 if counts else 2 if any(map(_DECIMAL.fullmatch, cells)) else 0


def _layout(titles: Sequence[str]) -> _Layout | None:
    """``None`` where x and y are not those of several landmarks, or plain x and y are there, which choose these columns."""
    found: dict[tuple[int, str], list[str]] = {}
    for title in titles:
        if match := _COLUMN.fullmatch(title):
            found.setdefault((int(match["number"] or match["before"]), match["axis"] or match["after"]), []).append(title)
    numbers, axes = sorted({number for number, _ in found}), sorted({axis for _, axis in found})
    if len(numbers) < 2 or axes[:2] != ["x", "y"] or {"x", "y"} <= set(titles):
        return None
    for key in ((number, axis) for number in numbers for axis in axes):
        if (count := len(found.get(key, ()))) != 1:
            raise ValueError(
                f"its line of names must have {' and '.join(axes)} once for every landmark, got {count or 'no'} "
                f"{key[1]}{key[0]}. If a line is a point and no specimen, give the columns other names."
            )
    return _Layout([title for _, (title,) in sorted(found.items())], len(axes))
