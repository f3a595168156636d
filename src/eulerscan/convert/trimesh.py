"""Meshes, point clouds, paths and scenes of trimesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..complexes import Complex
from .geometry import Geometry, assemble

_Array = np.ndarray[Any, Any]


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
    found = [_arrays(item.to_3D(np.eye(4)) if dim == 3 and hasattr(item, "to_3D") else item) for item in geometries]
    return assemble(found, merge=merge, dtype=dtype)


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


def _arrays(geometry: Any) -> Geometry:
    vertices = np.asarray(geometry.vertices, dtype=np.float64)
    if hasattr(geometry, "entities"):
        return _polylines(geometry, vertices)
    triangles = np.asarray(getattr(geometry, "faces", ()), dtype=np.int64).reshape(-1, 3).T
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(vertices)):
        bad = int(triangles.min()) if triangles.min() < 0 else int(triangles.max())
        raise IndexError(
            f"faces must hold indices from 0 to {len(vertices) - 1} (there are {len(vertices)} vertices), got {bad}."
        )
    return Geometry(vertices, np.empty((2, 0), np.int64), triangles)


def _polylines(path: Any, vertices: _Array) -> Geometry:
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
    return Geometry(np.concatenate(added), np.concatenate(edges, axis=1), np.empty((3, 0), np.int64))
