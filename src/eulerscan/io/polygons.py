"""Polygons of mesh files, as triangles and edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..convert.geometry import Geometry

_Array = np.ndarray[Any, Any]


def geometry_of(vertices: _Array, sizes: _Array, corners: _Array) -> Geometry:
    """A geometry of polygons: those of two vertices are edges, larger ones become triangles, like a fan; others are dropped.

    Args:
        vertices: Coordinates ``[V, 3]``.
        sizes: Number of vertices of each polygon, ``[n]``.
        corners: Their indices, polygon after polygon.

    >>> geometry_of(np.zeros((5, 3)), np.array([4, 2]), np.array([0, 1, 2, 3, 3, 4])).triangles
    array([[0, 0],
           [1, 2],
           [2, 3]])
    """
    bad = corners[(corners < 0) | (corners >= len(vertices))]
    if len(bad):
        raise ValueError(
            f"faces must hold indices from 0 to {len(vertices) - 1} (there are {len(vertices)} vertices), got {bad[0]}."
        )
    starts = np.cumsum(sizes) - sizes
    edges, triangles = [np.empty((2, 0), np.int64)], [np.empty((3, 0), np.int64)]
    for size in np.unique(sizes[sizes > 1]).tolist():
        polygons = corners[starts[sizes == size] + np.arange(size)[:, None]].astype(np.int64)  # [size, n]
        if size == 2:
            edges.append(polygons)
        else:
            fans = [np.broadcast_to(polygons[:1], (size - 2, polygons.shape[1])), polygons[1:-1], polygons[2:]]
            triangles.append(np.stack(fans).reshape(3, -1))
    return Geometry(vertices, np.concatenate(edges, axis=1), np.concatenate(triangles, axis=1))


def numbers(type: type[int] | type[float], words: Iterable[bytes]) -> _Array:
    """Numbers in text."""
    words = list(words)
    if b"_" in b" ".join(words):
        raise ValueError("numbers must not have underscores.")  # Python accepts 1_0
    return np.fromiter(map(type, words), np.int64 if type is int else np.float64, len(words))


def check_sizes(sizes: list[int], found: list[int], what: str = "face", values: str = "vertices") -> None:
    """Raise if a row of the file, such as a face, has fewer values, such as vertices, than it says."""
    for i, (size, count) in enumerate(zip(sizes, found, strict=True)):
        if not 0 <= size <= count:
            row = f"the last {what}" if i == len(sizes) - 1 else f"{what} {i}"
            raise ValueError(f"file is truncated: {row} has {size} {values}, got {count}.")
