"""Complexes of so many simplices that one alone cannot be seen: quick to draw, and dots in every format."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._imports import require

MANY = 50_000  # simplices that are still drawn one by one
DOTS = 800  # of an image along the longest side of a weighted shape in the plane
CELLS = 96  # along the longest side of a shape in space: vertices in the same one are merged
TOGETHER = 1000  # simplices that are drawn as one path


def is_large(points: Any, levels: dict[int, Any]) -> bool:
    """Whether there are too many points, edges and triangles to draw them one by one."""
    return bool(len(points) + sum(columns.shape[1] for columns in levels.values()) > MANY)


def draw_together(ax: Any, points: Any, columns: Any, **look: Any) -> None:
    """Edges or triangles in the plane, ``[2 or 3, n]``, all of one look. The picture is that of single ones."""
    corners = _one_way_round(points[columns.T])
    paths = [_path(corners[i : i + TOGETHER]) for i in range(0, len(corners), TOGETHER)]
    made = require("matplotlib.collections", extra="plot").PathCollection(paths, rasterized=True, **look)
    made.set_transform(ax.transData)
    ax.add_collection(made)


def draw_shaded(ax: Any, points: Any, triangles: Any, weights: Any, cmap: str, **look: Any) -> Any:
    """Triangles in the plane ``[3, n]`` in the shades of their weights ``[n]``.

    Those that are smaller than a dot of an image become one, in which a dot is the mean of the weights in it.
    """
    shades = {"cmap": cmap, "vmin": float(weights.min()), "vmax": float(weights.max()), "rasterized": True}
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    side = float(extent.max()) / DOTS or 1.0
    corners = ((points - low) / side).T[:, triangles]  # [2, 3, n]
    small = (np.ptp(corners, axis=1) <= 1).all(axis=0)
    drawn = None
    if not small.all():
        drawn = ax.tripcolor(*points.T, triangles[:, ~small].T, facecolors=weights[~small], **look, **shades)
    if small.any():
        columns, rows = np.maximum(1, np.ceil(extent / side - 1e-6)).astype(np.int64)
        sums, counts = np.zeros(rows * columns), np.zeros(rows * columns)
        corners, weights = corners[..., small], weights[small]
        middles = corners.mean(axis=1)
        for place in (middles, *((middles + corners[:, i]) / 2 for i in range(3))):
            column, row = np.minimum(place.astype(np.int64), [[columns - 1], [rows - 1]])
            dots = row * columns + column
            sums += np.bincount(dots, weights, minlength=len(sums))
            counts += np.bincount(dots, minlength=len(counts))
        means = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0).reshape(rows, columns)
        right, top = low + side * np.array([columns, rows])
        box = (low[0], right, low[1], top)
        drawn = ax.imshow(means, extent=box, origin="lower", interpolation="nearest", zorder=1, **shades)
        drawn.sticky_edges.x.clear()  # a margin as around every other shape
        drawn.sticky_edges.y.clear()
    ax.autoscale_view()
    return drawn


def merged(points: Any, levels: dict[int, Any]) -> tuple[Any, dict[int, Any]]:
    """The shape with all vertices in one small cube merged into their mean, and without what vanishes or coincides then."""
    low = points.min(axis=0)
    side = float((points.max(axis=0) - low).max()) / CELLS or 1.0
    keys = np.ravel_multi_index(((points - low) / side).astype(np.int64).T, (CELLS + 1,) * points.shape[1])
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(numbers, axis) / counts for axis in points.T], axis=1)
    kept = {}
    for rows, columns in levels.items():
        simplices = np.sort(numbers[columns], axis=0)
        simplices = simplices[:, (simplices[1:] != simplices[:-1]).all(axis=0)]
        if simplices.size:
            kept[rows] = np.unique(simplices, axis=1)
    return means, kept


def _one_way_round(corners: Any) -> Any:
    """Triangles ``[n, 3, 2]`` counter-clockwise, as those of one path would otherwise cancel where they overlap."""
    if corners.shape[1] == 3:
        (a, b), (c, d) = (corners[:, 1] - corners[:, 0]).T, (corners[:, 2] - corners[:, 0]).T
        clockwise = a * d < b * c
        corners[clockwise] = corners[clockwise, ::-1]
    return corners


def _path(corners: Any) -> Any:
    """Edges or triangles ``[n, 2 or 3, 2]`` as one path."""
    path = require("matplotlib.path", extra="plot").Path
    codes = [path.MOVETO, path.LINETO]
    if corners.shape[1] == 3:
        corners, codes = corners[:, [0, 1, 2, 0]], [path.MOVETO, path.LINETO, path.LINETO, path.CLOSEPOLY]
    return path(corners.reshape(-1, 2), np.tile(np.array(codes, dtype=np.uint8), len(corners)))
