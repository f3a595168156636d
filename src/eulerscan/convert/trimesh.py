"""Meshes, point clouds, paths and scenes of trimesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .._validation import check_bool, check_points
from ..complexes import Complex
from ..complexes.simplices import faces, missing, unique

_Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """One geometry: its vertices ``[V, dim]``, edges ``[2, n]`` and triangles ``[3, n]``."""

    vertices: _Array
    edges: _Array
    triangles: _Array


def from_trimesh(geometry: Any, *, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """Convert a ``Trimesh``, ``PointCloud``, ``Path2D``, ``Path3D`` or ``Scene`` of trimesh to one :class:`Complex`.

    Every triangle and edge counts once and brings its faces. Triangles with a repeated vertex are dropped, and so are
    unreferenced vertices of meshes and paths. The Euler characteristic of a mesh therefore equals trimesh's ``euler_number``
    of the merged mesh. All points of a point cloud are kept. Curves of a path become polylines.

    Args:
        geometry: The object, or a list of objects in the same space. A scene contributes all its geometries, in place.
        merge: Merge vertices with identical coordinates, also across the parts of a scene. STL files repeat the vertices of
            every triangle, and other formats repeat vertices where textures or materials meet.
        dtype: Of the coordinates. Default: ``torch.get_default_dtype()``.

    Example:
        >>> import trimesh
        >>> from_trimesh(trimesh.creation.box())
        Complex(num_complexes=1, dim=3, points=8, simplices=(18 edges, 12 triangles))
    """
    geometries = _geometries(geometry)
    dim = max((np.shape(item.vertices)[1] for item in geometries), default=3)
    parts = [_part(item.to_3D(np.eye(4)) if dim == 3 and hasattr(item, "to_3D") else item) for item in geometries]
    return assemble(parts, merge=merge, dtype=dtype)


def assemble(parts: Sequence[Part], *, merge: bool, dtype: torch.dtype | None) -> Complex:
    """Join the parts to one complex, as described in :func:`from_trimesh`."""
    check_bool(merge, "merge")
    points, edges, triangles, in_cloud = _join(parts)
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


def _join(parts: Sequence[Part]) -> tuple[_Array, _Array, _Array, _Array]:
    """All vertices, edges and triangles, and a mask of the vertices that belong to point clouds."""
    points = [np.empty((0, parts[0].vertices.shape[1] if parts else 3))]
    edges, triangles, in_cloud = [np.empty((2, 0), np.int64)], [np.empty((3, 0), np.int64)], [np.empty(0, bool)]
    start = 0
    for part in parts:
        points.append(part.vertices)
        edges.append(part.edges + start)
        triangles.append(part.triangles + start)
        in_cloud.append(np.full(len(part.vertices), not (part.edges.size or part.triangles.size)))
        start += len(part.vertices)
    return np.concatenate(points), np.concatenate(edges, axis=1), np.concatenate(triangles, axis=1), np.concatenate(in_cloud)


def _geometries(geometry: Any) -> list[Any]:
    if isinstance(geometry, Sequence):
        return [single for item in geometry for single in _geometries(item)]
    if hasattr(geometry, "dump") and hasattr(geometry, "graph"):  # a scene
        return list(geometry.dump())
    if not hasattr(geometry, "vertices") or np.ndim(geometry.vertices) != 2:
        raise TypeError(
            f"geometry must be a Trimesh, PointCloud, Path2D, Path3D or Scene of trimesh, got {type(geometry).__name__}."
        )
    return [geometry]


def _part(geometry: Any) -> Part:
    vertices = np.asarray(geometry.vertices, dtype=np.float64)
    if hasattr(geometry, "entities"):
        return _polylines(geometry, vertices)
    triangles = np.asarray(getattr(geometry, "faces", ()), dtype=np.int64).reshape(-1, 3).T
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(vertices)):
        bad = int(triangles.min()) if triangles.min() < 0 else int(triangles.max())
        raise IndexError(
            f"faces must hold indices from 0 to {len(vertices) - 1} (there are {len(vertices)} vertices), got {bad}."
        )
    return Part(vertices, np.empty((2, 0), np.int64), triangles)


def _polylines(path: Any, vertices: _Array) -> Part:
    """The entities of a path. A curve starts and ends at vertices of the path; the points in between are added."""
    added, edges, count = [vertices], [np.empty((2, 0), np.int64)], len(vertices)
    for entity in path.entities:
        line = np.asarray(entity.points, dtype=np.int64)
        if type(entity).__name__ != "Line":
            curve = np.asarray(entity.discrete(vertices, scale=path.scale), dtype=np.float64)
            if len(curve) < 2:  # a text entity
                continue
            first, last = line[0], line[0] if entity.closed else line[-1]
            away = np.linalg.norm(vertices[[first, last]] - curve[0], axis=1)
            added.append(curve[1:-1] if away[0] <= away[1] else curve[-2:0:-1])
            line = np.array([first, *range(count, count + len(curve) - 2), last])
            count += len(curve) - 2
        edges.append(np.stack([line[:-1], line[1:]]))
    return Part(np.concatenate(added), np.concatenate(edges, axis=1), np.empty((3, 0), np.int64))
