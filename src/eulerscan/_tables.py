"""Tables as text: aligned for a terminal, as Markdown, as CSV."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|inf|nan)", re.IGNORECASE)
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def aligned(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with aligned columns, numbers to the right.

    >>> print(aligned(["name", "size"], [["a", 1], ["bc", 20]]))
    name  size
    ----  ----
    a        1
    bc      20
    """
    lines = [[printable(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [all(_numeric(row[i]) for row in lines[1:]) for i in range(len(widths))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if r else cell.ljust(width) for cell, width, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown.

    >>> print(markdown(["name", "size"], [["a", 1]]))
    | name | size |
    |---|---|
    | a | 1 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in line) + "|" for line in lines)


def comma_separated(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in CSV, which ends with a line break."""
    return "".join(",".join(map(quoted, row)) + "\n" for row in (header, *rows))


def quoted(cell: Any) -> str:
    """A cell of a CSV table, quoted if necessary, with an apostrophe before text that spreadsheets would run as a formula.

    :mod:`csv` does not quote a carriage return, although its reader takes it for the end of a line. :func:`unescaped` restores
    the text.

    >>> print(quoted("plain"), quoted("one, two"), quoted(3), quoted(-0.5), quoted("=A1+1"), quoted("-a.ply"))
    plain "one, two" 3 -0.5 '=A1+1 '-a.ply
    """
    text = "" if cell is None else str(cell)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if any(character in text for character in ',"\r\n') else text


def unescaped(cell: str) -> str:
    """The text of a cell of a CSV table written by :func:`comma_separated`, as :mod:`csv` reads it.

    >>> unescaped("'=A1+1"), unescaped("'quote'"), unescaped("-0.5")
    ('=A1+1', "'quote'", '-0.5')
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def printable(text: str) -> str:
    r"""Text for a terminal, with control characters escaped: a file name may hold codes that a terminal would obey.

    >>> print(printable("naïve\x1b[2J.ply"))
    naïve\x1b[2J.ply
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else ascii(c)[1:-1] for c in text)


def _numeric(cell: str) -> bool:
    try:
        float(cell.replace("±", "").replace("%", "").replace(" ", "") or "0")
    except ValueError:
        return False
    return True
