"""The names by which specimens in one file are told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NO_NAME = re.compile(r"[/\\\x00-\x1f\x7f]+")  # what ends the name of a file, or cannot be in one


def choose_names(*candidates: Sequence[str], count: int) -> list[str]:
    """The first candidates that give every specimen a name of its own, and else their numbers in the file.

    >>> choose_names(["wing", "wing"], ["A/1", "A/2"], count=2)
    ['A_1', 'A_2']
    >>> choose_names(count=2)
    ['1', '2']
    """
    for given in candidates:
        names = [_NO_NAME.sub("_", name).strip() for name in given]
        if len(set(names)) == count and not {"", ".", ".."} & set(names):
            return names
    return [f"{number:0{len(str(count))}}" for number in range(1, count + 1)]
