"""Simplices of one dimension: integer tensors ``[k + 1, n]``, a simplex a column."""

from __future__ import annotations

import torch
from torch import Tensor

NAMES = {2: "edges", 3: "triangles", 4: "tetrahedra"}
"""Names of simplices, by number of vertices."""


def name_of(dim: int, rows: int) -> str:
    """What cells of this dimension with this many vertices are called.

    >>> name_of(2, 3), name_of(5, 6), name_of(2, 4)
    ('triangles', '5-simplices', '2-cells of 4 vertices')
    """
    return NAMES.get(rows, f"{dim}-simplices") if rows == dim + 1 else f"{dim}-cells of {rows} vertices"


_LARGEST_KEY = 2**63 - 1


def faces(simplices: Tensor) -> Tensor:
    """All faces of codimension 1, ``[k, (k + 1) n]``; a face shared by two simplices appears twice."""
    rows = range(len(simplices))
    return torch.cat([simplices[[row for row in rows if row != left_out]] for left_out in rows], dim=1)


def sides(polygons: Tensor) -> Tensor:
    """The edges ``[2, k n]`` of polygons ``[k, n]``, whose vertices are listed around the boundary."""
    return torch.stack([polygons, polygons.roll(-1, 0)]).reshape(2, -1)


def unique(simplices: Tensor) -> Tensor:
    """Unique simplices, with sorted vertices, in lexicographic order; degenerate ones such as self-loops are removed.

    >>> unique(torch.tensor([[0, 1, 2, 3], [1, 0, 2, 1]]))
    tensor([[0, 1],
            [1, 3]])
    """
    columns = simplices.sort(dim=0).values
    columns = columns[:, (columns[1:] != columns[:-1]).all(dim=0)]
    return columns[:, _first_occurrences(columns)]


def missing(faces_of_simplices: Tensor, present: Tensor) -> Tensor:
    """The unique columns of the first tensor that are not in the second, with sorted vertices."""
    wanted = unique(faces_of_simplices)
    both = torch.cat([present.sort(dim=0).values, wanted], dim=1)
    first = _first_occurrences(both)
    return wanted[:, first[first >= present.shape[1]].sort().values - present.shape[1]]


def _first_occurrences(columns: Tensor) -> Tensor:
    """Positions of the first occurrences of the unique columns, in lexicographic order of the columns."""
    group = groups(columns)
    if not len(group):
        return group
    first = torch.full((int(group.max()) + 1,), len(group), dtype=group.dtype, device=group.device)
    positions = torch.arange(len(group), device=group.device)
    return first.scatter_reduce(0, group, positions, "amin")


def groups(columns: Tensor) -> Tensor:
    """``[n]``: equal columns get the same index, ascending in lexicographic order."""
    groups: Tensor
    base = int(columns.max()) + 1 if columns.numel() else 1
    if base ** len(columns) > _LARGEST_KEY:
        _, groups = torch.unique(columns, dim=1, return_inverse=True)
        return groups
    # One integer a column sorts many times faster than torch.unique(dim=1).
    key = torch.zeros(columns.shape[1], dtype=torch.int64, device=columns.device)
    for row in columns:
        key = key * base + row
    _, groups = torch.unique(key, return_inverse=True)
    return groups
