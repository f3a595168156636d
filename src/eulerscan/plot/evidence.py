"""Plots of evidence: scores as colors on the shapes, with the null beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._imports import require
from ..analysis.evidence import MEANING, Evidence, color_limits
from ..complexes import Complex
from ..complexes.boundary import outer_edges, outer_triangles
from ..io.colors import SCALE
from .figures import Up, figure, short_label
from .shapes import brightness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 2.6  # inches of one shape
INSIDE = "0.95"  # color of filled regions


def draw_evidence(
    found: Evidence,
    shapes: Sequence[int] | None = None,
    *,
    names: Sequence[str] | None = None,
    truth: Tensor | None = None,
    up: Up = "z",
) -> Figure:
    """Draw shapes with their evidence as colors and, beside each, its null: the scores under permuted labels.

    Shapes in space are seen from two sides.

    Args:
        found: From :func:`eulerscan.analysis.evidence`.
        shapes: Indices of the shapes. Default: the first of each group.
        names: Names of all shapes.
        truth: ``[V]``: vertices in which groups are known to differ, as in simulations, for another column.
        up: The axis that points up, in space.
    """
    complex, groups = found.shapes, found.groups
    if complex.dim not in (2, 3):
        raise ValueError(f"shapes must be in the plane or in space to be drawn, got points of dimension {complex.dim}.")
    shapes = [groups.index(group) for group in dict.fromkeys(groups)] if shapes is None else list(shapes)
    low, high = color_limits(found)
    colors = require("matplotlib.colors", extra="plot")
    mapping = require("matplotlib.cm", extra="plot").ScalarMappable(
        colors.Normalize(low, high), colors.LinearSegmentedColormap.from_list("evidence", SCALE)
    )
    columns: list[tuple[str, Tensor]] = [("evidence", found.scores), ("null: permuted labels", found.null)]
    if truth is not None:
        columns.insert(0, ("truth", truth.to(found.scores.dtype) * (high - low) + low))
    views = (0,) if complex.dim == 2 else (0, 180)
    picture = figure(SIDE * len(columns) * len(views), SIDE * _height(complex.select(shapes)) * len(shapes) + 0.9)
    spec = picture.add_gridspec(len(shapes), len(columns) * len(views))
    starts = complex.offsets[0].tolist()
    axes = []
    for row, i in enumerate(shapes):
        name = f"group {groups[i]}" if names is None else f"{names[i]} ({groups[i]})"
        for column, (title, values) in enumerate(columns):
            for side, turn in enumerate(views):
                place = spec[row, column * len(views) + side]
                ax = picture.add_subplot(place, projection="3d" if complex.dim == 3 else None)
                draw_values(ax, complex[i], values[starts[i] : starts[i + 1]], mapping, up, turn)
                if row == 0:
                    ax.set_title(title + (", from behind" if turn else ""), fontsize=9, y=1.02)
                if column == side == 0:
                    style: dict[str, Any] = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 9}
                    ax.annotate(short_label(name), (0, 0.5), xycoords="axes fraction", **style)
                axes.append(ax)
    bar = picture.colorbar(mapping, ax=axes, location="bottom", fraction=0.05, aspect=50, extend="both", shrink=0.7)
    bar.set_label(MEANING.replace(", relative", ",\nrelative"), fontsize=8)
    return picture


def _height(shapes: Complex) -> float:
    """Height of the drawings relative to their width: less for wide shapes in the plane."""
    if shapes.dim == 3:
        return 1.0
    points = [shapes[i].points for i in range(len(shapes))]
    sides = torch.stack([own.amax(dim=0) - own.amin(dim=0) for own in points])
    return float((sides[:, 1] / sides[:, 0].clamp(min=1e-12)).clamp(0.4, 1.0).max())


def draw_values(ax: Any, complex: Complex, values: Tensor, mapping: Any, up: Up, turn: float = 0) -> None:
    """Draw one shape with the colors of the values ``[V]`` of its vertices, in space turned by so many degrees."""
    points, colors = complex.points.numpy(), mapping.to_rgba(values.numpy())[:, :3]
    triangles = complex.of_dim(2)[:, outer_triangles(complex)].T.numpy()
    if len(triangles) and complex.dim == 3:
        corners = points[triangles]
        shaded = colors[triangles].mean(axis=1) * (0.6 + 0.4 * brightness(corners, up, from_behind=turn != 0))
        collection = require("mpl_toolkits.mplot3d.art3d", extra="plot").Poly3DCollection
        ax.add_collection(collection(corners, facecolors=shaded, edgecolors=shaded, linewidths=0.1, rasterized=True))
        ax.auto_scale_xyz(*points.T)
    else:
        edges, inside = complex.of_dim(1).numpy(), np.empty(0, dtype=np.int64)
        if len(triangles):  # a vertex inside of a region in the plane changes no curve: only its outline has evidence
            region = require("matplotlib.collections", extra="plot").PolyCollection
            ax.add_collection(region(points[triangles], facecolors=INSIDE, edgecolors=INSIDE, linewidths=0.3, rasterized=True))
            edges = outer_edges(complex).numpy()
            inside = np.setdiff1d(triangles, edges)
        if edges.size:
            name, module = (
                ("Line3DCollection", "mpl_toolkits.mplot3d.art3d")
                if complex.dim == 3
                else ("LineCollection", "matplotlib.collections")
            )
            lines = getattr(require(module, extra="plot"), name)
            ax.add_collection(lines(points[edges.T], colors=colors[edges].mean(axis=0), linewidths=2.5))
        shown = np.setdiff1d(np.arange(len(points)), inside)
        ax.scatter(*points[shown].T, c=colors[shown], s=6, linewidths=0)
    if complex.dim == 3:
        ax.view_init(20, -60 + turn, vertical_axis=up)
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        radius = np.linalg.norm(points - middle, axis=1).max() or 1.0
        ax.set(**{f"{axis}lim": (m - radius, m + radius) for axis, m in zip("xyz", middle, strict=True)})
        ax.set_box_aspect((1, 1, 1), zoom=1.45)
    else:
        ax.set_aspect("equal", adjustable="datalim")  # a smaller box would leave no room for titles
    ax.set_axis_off()
