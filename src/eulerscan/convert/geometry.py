"""Geometries: arrays of vertices, edges and triangles, as files and other libraries have them, joined to one complex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .._validation import check_bool, check_points
from ..complexes import Complex
from ..complexes.simplices import faces, missing, unique

_Array = np.ndarray[Any, Any]


class Geometry(NamedTuple):
    """Vertices ``[V, dim]``, edges ``[2, n]`` and triangles ``[3, n]``. Without edges and triangles it is a point cloud."""

    vertices: _Array
    edges: _Array
    triangles: _Array


def assemble(geometries: Sequence[Geometry], *, merge: bool, dtype: torch.dtype | None) -> Complex:
    """Join geometries to one complex.

    Every triangle and edge counts once and brings its faces. Triangles with a repeated vertex are dropped, and so are
    unreferenced vertices of meshes and paths. All points of a point cloud are kept.

    Args:
        geometries: In the same space.
        merge: Merge vertices with identical coordinates, also of different geometries, but for points of clouds.
        dtype: Of the coordinates. Default: ``torch.get_default_dtype()``.
    """
    check_bool(merge, "merge")
    points, edges, triangles, in_cloud = _join(geometries)
    check_points(torch.from_numpy(points))
    if merge:
        # Points of clouds are never merged: each has an owner of its own.
        target = first_duplicates(points, np.where(in_cloud, np.arange(1, len(points) + 1), 0))
        edges, triangles = target[edges], target[triangles]
    levels = [unique(torch.from_numpy(columns)) for columns in (edges, triangles)]
    used = torch.from_numpy(in_cloud).index_fill(0, torch.cat([level.reshape(-1) for level in levels]), True)
    position = used.cumsum(0) - 1
    levels[0] = torch.cat([levels[0], missing(faces(levels[1]), levels[0])], dim=1)
    kept = torch.from_numpy(points)[used].to(dtype or torch.get_default_dtype())
    return Complex(kept, [position[level] for level in levels if level.numel()])


def first_duplicates(points: _Array, owner: _Array) -> _Array:
    """``[V]``: index of the first point with the same coordinates and the same owner.

    >>> first_duplicates(np.array([[0.0], [1.0], [-0.0], [0.0]]), np.array([0, 0, 0, 1]))
    array([0, 1, 0, 3])
    """
    order = np.lexsort((*points.T, owner))
    ordered, owners = points[order] + 0.0, owner[order]  # -0.0 becomes 0.0
    new = np.concatenate([[True] * bool(len(points)), (ordered[1:] != ordered[:-1]).any(axis=1) | (owners[1:] != owners[:-1])])
    target = np.empty(len(points), np.int64)
    # lexsort is stable, so each group begins with its first point.
    target[order] = order[new.nonzero()[0]][np.cumsum(new) - 1] if len(points) else order
    return target


def _join(geometries: Sequence[Geometry]) -> tuple[_Array, _Array, _Array, _Array]:
    """All vertices, edges and triangles, and a mask of the vertices that belong to point clouds."""
    points = [np.empty((0, geometries[0].vertices.shape[1] if geometries else 3))]
    edges, triangles, in_cloud = [np.empty((2, 0), np.int64)], [np.empty((3, 0), np.int64)], [np.empty(0, bool)]
    start = 0
    for geometry in geometries:
        points.append(geometry.vertices)
        edges.append(geometry.edges + start)
        triangles.append(geometry.triangles + start)
        in_cloud.append(np.full(len(geometry.vertices), not (geometry.edges.size or geometry.triangles.size)))
        start += len(geometry.vertices)
    return np.concatenate(points), np.concatenate(edges, axis=1), np.concatenate(triangles, axis=1), np.concatenate(in_cloud)
