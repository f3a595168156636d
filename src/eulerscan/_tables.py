"""Tables as text: aligned for a terminal, as Markdown, as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def aligned(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with aligned columns, numbers to the right.

    >>> print(aligned(["name", "size"], [["a", 1], ["bc", 20]]))
    name  size
    ----  ----
    a        1
    bc      20
    """
    lines = [list(map(str, row)) for row in (header, *rows)]
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
    """A cell of a CSV table, quoted if necessary.

    :mod:`csv` does not quote a carriage return, although its reader takes it for the end of a line.

    >>> print(quoted("plain"), quoted("one, two"), quoted(3))
    plain "one, two" 3
    """
    text = "" if cell is None else str(cell)
    return '"' + text.replace('"', '""') + '"' if any(character in text for character in ',"\r\n') else text


def _numeric(cell: str) -> bool:
    try:
        float(cell.replace("±", "").replace("%", "").replace(" ", "") or "0")
    except ValueError:
        return False
    return True
