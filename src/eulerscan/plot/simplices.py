"""The simplices of one complex on axes of matplotlib: what :func:`eulerscan.plot.plot_shape` puts together."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._imports import require
from .many import draw_shaded, draw_together, is_large, merged

FEW_TRIANGLES = 500  # of which the edges are drawn; those of more would hide the light on a surface


def draw_plain(ax: Any, points: Any, levels: dict[int, Any], colour: str, size: float) -> None:
    """Triangles and edges of one colour; points where there are no triangles."""
    collections = require("matplotlib.collections", extra="plot")
    in_space, large = points.shape[1] == 3, is_large(points, levels)
    if large and in_space and levels:
        points, levels = merged(points, levels)
    if 3 in levels and in_space:
        _draw_surface(ax, points[levels[3].T], colour, alpha=0.5 if levels[3].shape[1] <= FEW_TRIANGLES else 1.0)
    elif 3 in levels and large:
        draw_together(ax, points, levels[3], facecolors=colour, alpha=0.25, linewidths=0)
    elif 3 in levels:
        ax.add_collection(collections.PolyCollection(points[levels[3].T], facecolors=colour, alpha=0.25, linewidths=0))
    width = 0.4 if 3 in levels else 0.8
    if 2 in levels and in_space and not (3 in levels and levels[3].shape[1] > FEW_TRIANGLES):
        lines = require("mpl_toolkits.mplot3d.art3d", extra="plot").Line3DCollection
        ax.add_collection(lines(points[levels[2].T], colors=colour, linewidths=width, rasterized=large))
    elif 2 in levels and not in_space and large:
        draw_together(ax, points, levels[2], facecolors="none", edgecolors=colour, linewidths=width)
    elif 2 in levels and not in_space:
        ax.add_collection(collections.LineCollection(points[levels[2].T], colors=colour, linewidths=width))
    if 3 not in levels:
        ax.scatter(*points.T, s=size, linewidths=0, color=colour, rasterized=large)
    elif not in_space:
        ax.autoscale_view()


def _draw_surface(ax: Any, corners: Any, colour: str, alpha: float) -> None:
    """Triangles ``[n, 3, 3]`` in space, lit from both sides: the order of the corners of a simplex says nothing."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(normals.dtype).tiny)
    light = np.abs(normals @ (np.array([0.35, -0.55, 0.75]) / np.linalg.norm([0.35, -0.55, 0.75])))
    base = np.array(require("matplotlib.colors", extra="plot").to_rgb(colour))
    colours = base * (0.45 + 0.55 * light[:, None]) + 0.25 * light[:, None] ** 8 * (1 - base)
    made = require("mpl_toolkits.mplot3d.art3d", extra="plot").Poly3DCollection
    # Edges of their own colour close the seams between triangles.
    ax.add_collection(made(corners, facecolors=colours, edgecolors=colours, linewidths=0.1, alpha=alpha, rasterized=True))
    ax.auto_scale_xyz(*corners.reshape(-1, 3).T)


def draw_weighted(
    ax: Any, points: Any, levels: dict[int, Any], of_vertices: Any, of_triangles: Any, size: float, cmap: str
) -> Any:
    """Triangles in the plane in the shades of their weights; otherwise the vertices, on edges in grey."""
    large = is_large(points, levels)
    if 3 in levels and points.shape[1] == 2:
        look: dict[str, Any] = {"edgecolors": "face", "linewidth": 0.2}
        if large:
            return draw_shaded(ax, points, levels[3], of_triangles, cmap, **look)
        return ax.tripcolor(*points.T, levels[3].T, facecolors=of_triangles, cmap=cmap, rasterized=True, **look)
    if 2 in levels and 3 not in levels:
        draw_plain(ax, points, {2: levels[2]}, "0.75", 0)
    return ax.scatter(*points.T, c=of_vertices, cmap=cmap, s=size, linewidths=0, rasterized=large)
