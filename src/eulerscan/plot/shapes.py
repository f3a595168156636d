"""Plots of shapes: points, edges and triangles in the plane or in space, with weights as colors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch

from .._devices import as_numpy
from .._imports import require
from .._validation import check_choice
from ..complexes import Shape, as_complex
from ..complexes.boundary import occurrences, outer_triangles
from ..complexes.simplices import faces
from .figures import SEQUENTIAL, Up, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIN_TRIANGLES_WITHOUT_EDGES = 12  # fewer are drawn with their edges
Y_UP = (".obj", ".off", ".glb", ".gltf")
MAX_TRIANGLES_WITH_EDGES = 500  # edges of more would hide the fill or the shading of a surface
# Larger shapes are simplified and rasterized: single simplices are not visible, and vector files would be huge.
LARGE = 50_000  # simplices
PIXELS = 800  # of an image, along the longest side of a weighted shape in the plane
CELLS = 96  # along the longest side of a shape in space: vertices in the same cell are merged
PATH_SIZE = 1000  # edges per path


def guess_up(path: Path | str) -> Up:
    """The axis that usually points up in files of this format: y in .obj, .off, .glb and .gltf files, otherwise z.

    >>> guess_up("bunny.obj"), guess_up("bunny.ply")
    ('y', 'z')
    """
    return "y" if Path(path).suffix.lower() in Y_UP else "z"


def plot_shape(
    shape: Shape,
    ax: Axes | None = None,
    *,
    color: str = "C0",
    size: float | None = None,
    weight_bar: bool = False,
    up: Up = "z",
) -> Axes:
    """Plot one complex in the plane or in space.

    Tetrahedra are drawn as their outer surface.

    Args:
        shape: One complex, or anything :func:`as_complex` understands.
        ax: Axes to draw on, with ``projection="3d"`` for shapes in space. Default: new ones.
        color: Color of an unweighted shape. Weights are shown as colors, of triangles in the plane and of vertices otherwise.
        size: Size of the points. Default: smaller for more points.
        weight_bar: Whether to add a colorbar for the weights.
        up: The axis that points up, in space. :func:`guess_up` guesses it from the name of a file.
    """
    check_choice(up, "up", get_args(Up))
    complex = as_complex(shape)
    if complex.num_complexes != 1:
        raise ValueError(f"shape must be one complex to be drawn, got {complex.num_complexes}. Choose one: shape[0]")
    if complex.dim not in (2, 3):
        raise ValueError(f"shape must be in the plane or in space to be drawn, got points of dimension {complex.dim}.")
    ax = ax or new_axes(projection="3d" if complex.dim == 3 else None)
    if complex.dim == 3:
        ax.view_init(ax.elev, ax.azim, vertical_axis=up)  # type: ignore[attr-defined]
    points = as_numpy(complex.points)
    # Of cells that are not simplices only the listed edges and triangles are drawn.
    levels = {len(s): s.cpu().numpy() for s in map(complex.of_dim, (1, 2, 3)) if s.numel()}
    visible = outer_triangles(complex).cpu().numpy()
    if 3 in levels:
        levels[3] = levels[3][:, visible]
    size = max(2.0, min(16.0, 1600 / max(1, len(points)))) if size is None else size
    if complex.weights is None:
        _draw_plain(ax, points, levels, color, size, up)
    else:
        weights = [as_numpy(values) for values in complex.weights]
        on_triangles = weights[1 + complex.packed.kinds.index((2, 3))][visible] if 3 in levels else None
        mappable = _draw_weighted(ax, points, levels, weights[0], on_triangles, size)
        if weight_bar:
            ax.figure.colorbar(mappable, ax=ax, label="weight", fraction=0.05)
    ax.set_aspect("equal")
    return ax


def draw_grid(ax: Any) -> float:
    """Name the axes in space, unless they are too short, and draw one grid for all. Returns its step.

    Numbers at the ticks of three axes overlap.
    """
    ticker = require("matplotlib.ticker", extra="plot")
    axes = {"x": ax.xaxis, "y": ax.yaxis, "z": ax.zaxis}
    lengths = {name: float(np.ptp(axis.get_view_interval())) for name, axis in axes.items()}
    ticks = ticker.MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(0, max(lengths.values()))
    step = float(ticks[1] - ticks[0])
    for name, axis in axes.items():
        long_enough = 4 * lengths[name] > max(lengths.values())
        axis.set_major_locator(ticker.MultipleLocator(step) if long_enough else ticker.NullLocator())
        axis.set_major_formatter(ticker.NullFormatter())
        axis.set_label_text(name if long_enough else "")
        axis.labelpad = -13
    return step


def _draw_plain(ax: Any, points: Any, levels: dict[int, Any], color: str, size: float, up: Up = "z") -> None:
    """Triangles and edges in one color; points if there are no triangles. ``levels`` maps rows to simplices ``[rows, n]``."""
    in_space, large = points.shape[1] == 3, _is_large(points, levels)
    many = 3 in levels and levels[3].shape[1] > MAX_TRIANGLES_WITH_EDGES
    rings = outline_rings(points, levels[3]) if 3 in levels and not in_space else []
    if rings and levels[3].shape[1] > MIN_TRIANGLES_WITHOUT_EDGES:
        # Triangles that only fill an outline, as those of images, say nothing about the shape.
        many |= len(np.unique(np.concatenate(rings))) == len(np.unique(levels[3]))
    outlined = many and 2 in levels
    if outlined:  # only the edges that are in no triangle
        lines, triangles = (torch.from_numpy(levels[rows].astype(np.int64)) for rows in (2, 3))
        free = (occurrences(lines, faces(triangles)) == 0).numpy() & (4 not in levels)  # triangles of solids are not all here
        levels = levels | {2: levels[2][:, free]}
    if large and in_space and levels:
        points, levels = _merge_vertices(points, levels)
    edges, width = levels.get(2), 0.4 if 3 in levels else 0.8
    if 3 in levels and in_space:
        _draw_surface(ax, points[levels[3].T], color, up, alpha=1.0 if many else 0.5)
    elif 3 in levels:
        # One path: between single triangles, or pixels, antialiasing would leave white lines.
        outline = _path([points[ring] for ring in rings])
        _add_paths(ax, [outline], facecolors=color, alpha=0.25, linewidths=0, rasterized=large)
        if outlined:
            _add_paths(ax, [outline], facecolors="none", edgecolors=color, linewidths=width, rasterized=large)
    if edges is not None and in_space:
        lines = require("mpl_toolkits.mplot3d.art3d", extra="plot").Line3DCollection
        ax.add_collection(lines(points[edges.T], colors=color, linewidths=width, rasterized=large))
    elif edges is not None and large:
        paths = [_path(points[edges[:, i : i + PATH_SIZE].T], closed=False) for i in range(0, edges.shape[1], PATH_SIZE)]
        _add_paths(ax, paths, facecolors="none", edgecolors=color, linewidths=width, rasterized=True)
    elif edges is not None:
        lines = require("matplotlib.collections", extra="plot").LineCollection
        ax.add_collection(lines(points[edges.T], colors=color, linewidths=width))
    if 3 not in levels:
        ax.scatter(*points.T, s=size, linewidths=0, color=color, rasterized=large)
    elif not in_space:
        ax.autoscale_view()


def brightness(corners: Any, up: Up, *, from_behind: bool = False) -> Any:
    """``[n, 1]``, 0 to 1: triangles ``[n, 3, 3]`` in space, lit from both sides, since the order of corners is arbitrary."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(normals.dtype).tiny)
    source = np.array([0.35, -0.55, 0.75]) / np.linalg.norm([0.35, -0.55, 0.75])
    source = source * (-1, -1, 1) if from_behind else source  # on the side of the viewer
    return np.abs(normals @ (source if up == "z" else np.roll(source, -1)))[:, None]


def _draw_surface(ax: Any, corners: Any, color: str, up: Up, alpha: float) -> None:
    """Triangles ``[n, 3, 3]`` in space."""
    light = brightness(corners, up)
    base = np.array(require("matplotlib.colors", extra="plot").to_rgb(color))
    colors = base * (0.45 + 0.55 * light) + 0.25 * light**8 * (1 - base)
    collection = require("mpl_toolkits.mplot3d.art3d", extra="plot").Poly3DCollection
    # Edges in the color of their triangle close the seams.
    ax.add_collection(collection(corners, facecolors=colors, edgecolors=colors, linewidths=0.1, alpha=alpha, rasterized=True))
    ax.auto_scale_xyz(*corners.reshape(-1, 3).T)


def _draw_weighted(
    ax: Any, points: Any, levels: dict[int, Any], vertex_weights: Any, triangle_weights: Any, size: float
) -> Any:
    """Triangles in the plane colored by weight; otherwise the vertices, on gray edges. Returns the mappable."""
    large = _is_large(points, levels)
    if 3 in levels and points.shape[1] == 2:
        style: dict[str, Any] = {"edgecolors": "face", "linewidth": 0.2}
        if large:
            return _draw_weighted_triangles(ax, points, levels[3], triangle_weights, **style)
        triangles = levels[3].T
        return ax.tripcolor(*points.T, triangles, facecolors=triangle_weights, cmap=SEQUENTIAL, rasterized=True, **style)
    if 2 in levels and 3 not in levels:
        _draw_plain(ax, points, {2: levels[2]}, "0.75", 0)
    return ax.scatter(*points.T, c=vertex_weights, cmap=SEQUENTIAL, s=size, linewidths=0, rasterized=large)


def _is_large(points: Any, levels: dict[int, Any]) -> bool:
    return bool(len(points) + sum(columns.shape[1] for columns in levels.values()) > LARGE)


def _add_paths(ax: Any, paths: list[Any], **style: Any) -> None:
    collection = require("matplotlib.collections", extra="plot").PathCollection(paths, **style)
    collection.set_transform(ax.transData)
    ax.add_collection(collection)


def _draw_weighted_triangles(ax: Any, points: Any, triangles: Any, weights: Any, **style: Any) -> Any:
    """Triangles in the plane ``[3, n]`` colored by weight ``[n]``. Returns the mappable.

    Triangles smaller than a pixel are drawn as an image, each pixel the mean of their weights.
    """
    colors = {"cmap": SEQUENTIAL, "vmin": float(weights.min()), "vmax": float(weights.max()), "rasterized": True}
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    side = float(extent.max()) / PIXELS or 1.0
    corners = ((points - low) / side).T[:, triangles]  # [2, 3, n]
    small = (np.ptp(corners, axis=1) <= 1).all(axis=0)
    mappable = None
    if not small.all():
        mappable = ax.tripcolor(*points.T, triangles[:, ~small].T, facecolors=weights[~small], **style, **colors)
    if small.any():
        columns, rows = np.maximum(1, np.ceil(extent / side - 1e-6)).astype(np.int64)
        sums, counts = np.zeros(rows * columns), np.zeros(rows * columns)
        corners, weights = corners[..., small], weights[small]
        centers = corners.mean(axis=1)
        for samples in (centers, *((centers + corners[:, i]) / 2 for i in range(3))):
            column, row = np.minimum(samples.astype(np.int64), [[columns - 1], [rows - 1]])
            pixels = row * columns + column
            sums += np.bincount(pixels, weights, minlength=len(sums))
            counts += np.bincount(pixels, minlength=len(counts))
        means = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0).reshape(rows, columns)
        right, top = low + side * np.array([columns, rows])
        extent = (low[0], right, low[1], top)
        mappable = ax.imshow(means, extent=extent, origin="lower", interpolation="nearest", zorder=1, **colors)
        mappable.sticky_edges.x.clear()  # the usual margin around a shape
        mappable.sticky_edges.y.clear()
    ax.autoscale_view()
    return mappable


def _merge_vertices(points: Any, levels: dict[int, Any]) -> tuple[Any, dict[int, Any]]:
    """Merge the vertices in each cell of a grid into their mean. Degenerate and duplicate simplices are removed."""
    low = points.min(axis=0)
    side = float((points.max(axis=0) - low).max()) / CELLS or 1.0
    keys = np.ravel_multi_index(((points - low) / side).astype(np.int64).T, (CELLS + 1,) * points.shape[1])
    _, cells, counts = np.unique(keys, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(cells, axis) / counts for axis in points.T], axis=1)
    merged = {}
    for rows, columns in levels.items():
        simplices = np.sort(cells[columns], axis=0)
        simplices = simplices[:, (simplices[1:] != simplices[:-1]).all(axis=0)]
        if simplices.size:
            merged[rows] = np.unique(simplices, axis=1)
    return means, merged


def outline_rings(points: Any, triangles: Any) -> list[Any]:
    """The outline of the union of triangles ``[3, n]`` in the plane, as closed rings of vertices.

    Counterclockwise triangles wind around every point that they cover at least once. An edge between two neighbors occurs in
    both directions, which cancel; what remains winds around the same points, overlapping triangles included.

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> [ring.tolist() for ring in outline_rings(square, np.array([[0, 0], [1, 2], [2, 3]]))]
    [[0, 1, 2, 3]]
    """
    (a, b), (c, d) = ((points[triangles[i]] - points[triangles[0]]).T for i in (1, 2))
    triangles = np.where(a * d < b * c, triangles[::-1], triangles).astype(np.int64)
    tails, heads = triangles.reshape(-1), np.roll(triangles, -1, axis=0).reshape(-1)
    keys, which = np.unique(np.minimum(tails, heads) * len(points) + np.maximum(tails, heads), return_inverse=True)
    left = np.bincount(which, np.where(tails < heads, 1, -1)).astype(np.int64)
    low, high = (np.repeat(ends, np.abs(left)) for ends in np.divmod(keys, len(points)))
    forward = np.repeat(left > 0, np.abs(left))
    following: dict[int, list[int]] = {}
    for tail, head in zip(np.where(forward, low, high).tolist(), np.where(forward, high, low).tolist(), strict=True):
        following.setdefault(tail, []).append(head)
    rings = []
    for start, heads_of_start in following.items():
        while heads_of_start:
            ring = [start]
            while (head := following[ring[-1]].pop()) != start:
                ring.append(head)
            rings.append(np.array(ring))
    return rings


def _path(lines: Any, closed: bool = True) -> Any:
    """Lines ``[m, 2]`` as one path."""
    path = require("matplotlib.path", extra="plot").Path
    corners = [np.concatenate([line, line[:1]]) for line in lines] if closed else list(lines)
    codes = np.full(sum(map(len, corners)), path.LINETO, dtype=np.uint8)
    ends = np.cumsum([len(line) for line in corners])
    codes[ends - 1] = path.CLOSEPOLY if closed else path.LINETO
    codes[[0, *ends[:-1]]] = path.MOVETO
    return path(np.concatenate(corners), codes)
