"""Simplex trees of gudhi."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._validation import as_tensor, check_points
from ..complexes import Complex
from ..complexes.filtration import Filtration, Values, check_levels, monotone_values


def from_simplex_tree(tree: Any, points: Tensor | np.ndarray[Any, Any] | None = None) -> Complex:
    """Convert a gudhi ``SimplexTree`` to a :class:`Complex`.

    A simplex tree has no coordinates: vertex ``i`` lies at ``points[i]``. Points that are not vertices of the tree are dropped.
    All simplices count, whatever their filtration value; call ``tree.prune_above_filtration(value)`` first to select some, or
    keep the values with :func:`filtration_from_simplex_tree`.

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
    if points is None:
        raise ValueError(
            "shape is a gudhi SimplexTree, which has no coordinates. Pass them: "
            "eulerscan.convert.from_simplex_tree(tree, points)"
        )
    complex, _ = _convert(tree, points)
    return complex


def filtration_from_simplex_tree(tree: Any, points: Tensor | np.ndarray[Any, Any] | None = None) -> Filtration:
    """Convert a gudhi ``SimplexTree`` with its filtration values: alpha, Rips, or any other.

    Args:
        tree: The tree. A simplex must not appear before its faces; ``tree.make_filtration_non_decreasing()`` sees to that.
        points: Coordinates, as in :func:`from_simplex_tree`. A filtration does not need them: without, all are zero.

    Returns:
        The complex, and the values of its vertices and simplices, in the default dtype. The values of gudhi's alpha complexes
        are squared radii. ``es.ecc(*filtration_from_simplex_tree(tree), thresholds)`` is the curve.

    Example:
        >>> import gudhi
        >>> from eulerscan import ecc
        >>> tree = gudhi.RipsComplex(points=[[0.0], [1.0], [3.0]]).create_simplex_tree(max_dimension=1)
        >>> ecc(*filtration_from_simplex_tree(tree), torch.tensor([0.5, 1.0, 2.0]))
        tensor([[[3., 2., 1.]]])
    """
    complex, values = _convert(tree, points)
    levels = [torch.from_numpy(level).to(complex.device, torch.get_default_dtype()) for level in values]
    levels = monotone_values(complex, check_levels(levels, complex), "check")
    return Filtration(complex, Values(level[:, 0] for level in levels))


def _convert(tree: Any, points: Tensor | np.ndarray[Any, Any] | None) -> tuple[Complex, list[np.ndarray[Any, Any]]]:
    """The complex, and the filtration values of its vertices and of the simplices of each dimension."""
    if not hasattr(tree, "get_skeleton"):
        raise TypeError(f"tree must be a gudhi.SimplexTree, got {type(tree).__name__}.")
    pairs = list(tree.get_skeleton(max(0, tree.dimension())))
    sizes = np.fromiter((len(simplex) for simplex, _ in pairs), np.int64, len(pairs))
    filtration = np.fromiter((value for _, value in pairs), np.float64, len(pairs))
    flat = np.fromiter(itertools.chain.from_iterable(simplex for simplex, _ in pairs), np.int64, int(sizes.sum()))
    starts, levels, values = np.cumsum(sizes) - sizes, [], []
    for rows in np.unique(sizes):
        level = np.flatnonzero(sizes == rows)
        levels.append(torch.from_numpy(flat[starts[level] + np.arange(rows)[:, None]]))
        values.append(filtration[level])
    if not levels:
        levels, values = [torch.empty(1, 0, dtype=torch.int64)], [np.empty(0)]
    vertices, order = levels.pop(0)[0].sort()
    values[0] = values[0][order.numpy()]
    count = int(vertices[-1]) + 1 if len(vertices) else 0
    points = torch.zeros(count, 1) if points is None else as_tensor(points, "points")
    check_points(points)
    if count > len(points):
        raise IndexError(f"points must have a row for every vertex of the tree, at least {count}, got {len(points)}.")
    position = torch.zeros(len(points), dtype=torch.int64)
    position[vertices] = torch.arange(len(vertices))
    simplices = [position[level].to(points.device) for level in levels]
    return Complex(points[vertices.to(points.device)], simplices), values
