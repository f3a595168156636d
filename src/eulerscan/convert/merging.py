"""Points with the same coordinates, of which one is enough."""

from __future__ import annotations

from typing import Any

import numpy as np

_Array = np.ndarray[Any, Any]


def first_of_equals(points: _Array, owner: _Array) -> _Array:
    """``[V]``: the first point of the same owner with the same coordinates.

    >>> first_of_equals(np.array([[0.0], [1.0], [-0.0], [0.0]]), np.array([0, 0, 0, 1]))
    array([0, 1, 0, 3])
    """
    order = np.lexsort((*points.T, owner))
    ordered, owners = points[order] + 0.0, owner[order]  # -0.0 is 0.0
    new = np.concatenate([[True] * bool(len(points)), (ordered[1:] != ordered[:-1]).any(axis=1) | (owners[1:] != owners[:-1])])
    target = np.empty(len(points), np.int64)
    # lexsort is stable, so that a group begins with its first point.
    target[order] = order[new.nonzero()[0]][np.cumsum(new) - 1] if len(points) else order
    return target
