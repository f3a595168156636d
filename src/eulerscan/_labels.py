"""Labels of shapes, such as their groups or blocks, as names and as numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

_Array = np.ndarray[Any, Any]
Labels = Sequence[Hashable] | _Array | Tensor


def as_list(values: Labels) -> list[Any]:
    """The labels as objects of Python, whose names are the same whatever held them."""
    listed = values.tolist() if isinstance(values, np.ndarray | Tensor) else values
    return [value.item() if isinstance(value, Tensor | np.generic) else value for value in listed]


def numbered(values: Labels, count: int, name: str) -> tuple[_Array, list[Any]]:
    """The labels as numbers from 0, in sorted order, and their names."""
    found = _checked_list(values, count, name)
    kinds = sorted(set(found), key=lambda kind: (str(type(kind)), kind))
    number = {kind: i for i, kind in enumerate(kinds)}
    return np.array([number[value] for value in found], dtype=np.int64), kinds


def as_names(values: Labels, count: int, name: str) -> tuple[str, ...]:
    """The labels as text, one for each of ``count`` shapes."""
    return tuple(map(str, _checked_list(values, count, name)))


def _checked_list(values: Labels, count: int, name: str) -> list[Any]:
    found = as_list(values)
    if len(found) != count:
        raise ValueError(f"{name} must hold a value for each of {count} shapes, got {len(found)}.")
    missing = [i for i, value in enumerate(found) if value is None or value != value]
    if missing:
        raise ValueError(f"{name} must have no missing values, got one for shape {missing[0]}.")
    return found
