"""Meshes, clouds, paths and scenes of trimesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .._validation import check_bool, check_points
from ..complexes import Complex
from ..complexes.simplices import unique
from .merging import first_of_equals

_Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """The vertices of one geometry and the columns ``[2, n]``, ``[3, n]`` that join them."""

    vertices: _Array
    edges: _Array
    triangles: _Array


def from_trimesh(geometry: Any, *, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """A ``Trimesh``, ``PointCloud``, ``Path2D``, ``Path3D`` or ``Scene`` of trimesh as one :class:`Complex`.

    Every triangle and edge counts once and brings its faces. Triangles with a repeated vertex are left out, and so
    are vertices of a mesh or path that nothing refers to. So the Euler characteristic of a mesh is trimesh's
    ``euler_number`` of the merged mesh. The points of a cloud all stay. Curved pieces of a path become polylines.

    Args:
        geometry: The object, or a list of several, which lie in one space. Of a scene, everything in it where it stands.
        merge: Make one vertex of those with identical coordinates, also of different parts of a scene. STL files repeat
            the vertices of every triangle, and other formats repeat those where textures or materials meet.
        dtype: Of the coordinates; torch's default where it is not given.

    Example:
        >>> import trimesh
        >>> from_trimesh(trimesh.creation.box())
        Complex(num_complexes=1, dim=3, points=8, simplices=(18 edges, 12 triangles))
    """
    geometries = _geometries(geometry)
    dim = max((np.shape(item.vertices)[1] for item in geometries), default=3)
    parts = [_part(item.to_3D(np.eye(4)) if dim == 3 and hasattr(item, "to_3D") else item) for item in geometries]
    return assembled(parts, merge=merge, dtype=dtype)


def assembled(parts: Sequence[Part], *, merge: bool, dtype: torch.dtype | None) -> Complex:
    """One complex of all parts, as :func:`from_trimesh` says."""
    check_bool(merge, "merge")
    points, edges, triangles, clouds = _joined(parts)
    check_points(torch.from_numpy(points))
    if merge:
        # The points of clouds are their own.
        target = first_of_equals(points, np.where(clouds, np.arange(1, len(points) + 1), 0))
        edges, triangles = target[edges], target[triangles]
    levels = [unique(torch.from_numpy(columns)) for columns in (edges, triangles)]
    used = torch.from_numpy(clouds).index_fill(0, torch.cat([level.reshape(-1) for level in levels]), True)
    position = used.cumsum(0) - 1
    kept = torch.from_numpy(points)[used].to(dtype or torch.get_default_dtype())
    return Complex(kept, [position[level] for level in levels if level.numel()]).closure()


def _joined(parts: Sequence[Part]) -> tuple[_Array, _Array, _Array, _Array]:
    """All vertices, edges and triangles, and which vertices belong to clouds."""
    points = [np.empty((0, parts[0].vertices.shape[1] if parts else 3))]
    edges, triangles, clouds = [np.empty((2, 0), np.int64)], [np.empty((3, 0), np.int64)], [np.empty(0, bool)]
    start = 0
    for part in parts:
        points.append(part.vertices)
        edges.append(part.edges + start)
        triangles.append(part.triangles + start)
        clouds.append(np.full(len(part.vertices), not (part.edges.size or part.triangles.size)))
        start += len(part.vertices)
    return np.concatenate(points), np.concatenate(edges, axis=1), np.concatenate(triangles, axis=1), np.concatenate(clouds)


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
    nothing = np.empty((2, 0), np.int64)
    if hasattr(geometry, "entities"):
        return _polylines(geometry, vertices)
    triangles = np.asarray(getattr(geometry, "faces", ()), dtype=np.int64).reshape(-1, 3).T
    if triangles.size and (triangles.min() < 0 or triangles.max() >= len(vertices)):
        bad = int(triangles.min()) if triangles.min() < 0 else int(triangles.max())
        raise IndexError(
            f"faces must hold indices from 0 to {len(vertices) - 1} (there are {len(vertices)} vertices), got {bad}."
        )
    return Part(vertices, nothing, triangles)


def _polylines(path: Any, vertices: _Array) -> Part:
    """The pieces of a path. A curve begins and ends at vertices of the path, and adds those between."""
    added, edges, count = [vertices], [np.empty((2, 0), np.int64)], len(vertices)
    for entity in path.entities:
        line = np.asarray(entity.points, dtype=np.int64)
        if type(entity).__name__ != "Line":
            curve = np.asarray(entity.discrete(vertices, scale=path.scale), dtype=np.float64)
            if len(curve) < 2:  # a text
                continue
            first, last = line[0], line[0] if entity.closed else line[-1]
            away = np.linalg.norm(vertices[[first, last]] - curve[0], axis=1)
            added.append(curve[1:-1] if away[0] <= away[1] else curve[-2:0:-1])
            line = np.array([first, *range(count, count + len(curve) - 2), last])
            count += len(curve) - 2
        edges.append(np.stack([line[:-1], line[1:]]))
    return Part(np.concatenate(added), np.concatenate(edges, axis=1), np.empty((3, 0), np.int64))
