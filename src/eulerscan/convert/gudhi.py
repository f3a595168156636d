"""Simplex trees of gudhi."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._validation import as_tensor, check_points
from ..complexes import Complex


def from_simplex_tree(tree: Any, points: Tensor | np.ndarray[Any, Any] | None = None) -> Complex:
    """Convert a gudhi ``SimplexTree`` to a :class:`Complex`.

    A simplex tree has no coordinates: vertex ``i`` lies at ``points[i]``. Points that are not vertices of the tree are dropped.
    All simplices count, whatever their filtration value; call ``tree.prune_above_filtration(value)`` first to select some.

    Args:
        tree: The tree. Its vertex numbers need not be consecutive.
        points: Coordinates ``[n, dim]``, floating point, with a row for every number up to the largest vertex.

    Example:
        >>> import gudhi
        >>> tree = gudhi.SimplexTree()
        >>> _ = tree.insert([0, 1, 2])
        >>> from_simplex_tree(tree, torch.rand(3, 2))
        Complex(num_complexes=1, dim=2, points=3, simplices=(3 edges, 1 triangles))
    """
    if not hasattr(tree, "get_skeleton"):
        raise TypeError(f"tree must be a gudhi.SimplexTree, got {type(tree).__name__}.")
    if points is None:
        raise ValueError(
            "shape is a gudhi SimplexTree, which has no coordinates. Pass them: "
            "eulerscan.convert.from_simplex_tree(tree, points)"
        )
    points = as_tensor(points, "points")
    check_points(points)
    levels: dict[int, list[list[int]]] = {1: []}
    for simplex, _ in tree.get_skeleton(max(0, tree.dimension())):
        levels.setdefault(len(simplex), []).append(simplex)
    vertices = torch.tensor(levels.pop(1), dtype=torch.int64).reshape(-1).sort().values
    if len(vertices) and int(vertices[-1]) >= len(points):
        raise IndexError(
            f"points must have a row for every vertex of the tree, at least {int(vertices[-1]) + 1}, got {len(points)}."
        )
    position = torch.zeros(len(points), dtype=torch.int64)
    position[vertices] = torch.arange(len(vertices))
    simplices = [position[torch.tensor(levels[rows]).T].to(points.device) for rows in sorted(levels)]
    return Complex(points[vertices.to(points.device)], simplices)
