"""Plots of comparisons of groups: ordination with the shapes at their places, mean shapes, null distributions, spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._imports import require
from ..analysis.comparison import Comparison
from ..analysis.groups import Dispersion, PermutationTest
from ..analysis.means import Extreme
from ..analysis.ordination import Ordination
from ..complexes import Complex
from ..complexes.boundary import outer_edges
from .figures import CATEGORICAL, figure, new_axes, short_label
from .shapes import plot_shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND = 72  # characters of a row
SIDES = 20  # shapes are drawn at this fraction of the extent of an ordination
TICKS = 36  # characters below a box plot
FEWEST = 5  # shapes of a group with an ellipse
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
ELLIPSE = 2.4477  # Mahalanobis radius that holds 95 % of a normal distribution in the plane


def group_colors(groups: Sequence[str]) -> dict[str, str]:
    """A color for each group, in sorted order. More than eight groups share colors, and differ by markers."""
    return {group: CATEGORICAL[i % len(CATEGORICAL)] for i, group in enumerate(sorted(set(groups)))}


def plot_ordination(
    ordination: Ordination,
    groups: Sequence[str],
    ax: Axes | None = None,
    *,
    shapes: Complex | None = None,
    axes: tuple[int, int] = (0, 1),
) -> Axes:
    """Plot the shapes as points in the plane of two axes, with an ellipse of 95 % for each group of five shapes or more.

    Args:
        ordination: From :func:`~eulerscan.analysis.ordination.pca` or :func:`~eulerscan.analysis.ordination.mds`.
        groups: Group of each shape.
        ax: Axes to draw on. Default: new ones.
        shapes: The shapes, in the plane. As many as do not overlap much are drawn at their places.
        axes: Numbers of the two axes, from 0.
    """
    ax = ax or new_axes()
    scores = ordination.scores.double().numpy()
    first, second = (axes[0], axes[1]) if scores.shape[1] > max(axes) else (0, 0)
    places = np.stack([scores[:, first], scores[:, second] if second != first else np.zeros(len(scores))], axis=1)
    colors, kinds = group_colors(groups), sorted(set(groups))
    side = max(float(np.ptp(places, axis=0).max()), 1e-12) / SIDES  # half the size of a drawn shape
    drawn = _spread_out(places, 1.5 * side) if shapes is not None and shapes.dim == 2 else []
    owner = np.array([kinds.index(group) for group in groups])
    for i, kind in enumerate(kinds):
        own = places[owner == i]
        marker = MARKERS[i // len(CATEGORICAL) % len(MARKERS)]
        size, alpha = (20, 0.6) if drawn else (40, 0.8)
        ax.scatter(own[:, 0], own[:, 1], s=size, color=colors[kind], marker=marker, linewidths=0, alpha=alpha)
        ax.scatter([], [], color=colors[kind], marker=marker, s=30, label=f"{short_label(kind)} ({len(own)})")
        _draw_ellipse(ax, own, colors[kind])
        center = own.mean(axis=0)
        ax.scatter(center[0], center[1], color=colors[kind], marker="+", s=120, linewidths=2.5, zorder=4)
        if len(kinds) > len(CATEGORICAL):  # which share colors
            ax.annotate(short_label(kind), center, (3, 3), textcoords="offset points", fontsize=7, zorder=5)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    if drawn and shapes is not None:
        for k in drawn:
            shape = shapes[k].normalized("unit_ball")
            _draw_small(ax, shape, places[k], side, colors[groups[k]])
    share = [100 * float(ordination.explained[i]) for i in (first, second)]
    ax.set(xlabel=f"axis {first + 1} ({share[0]:.1f} %)", ylabel=f"axis {second + 1} ({share[1]:.1f} %)")
    columns = max(1, min(4, len(kinds), LEGEND // (8 + max(len(short_label(kind)) for kind in kinds))))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, frameon=False, fontsize=8)
    return ax


def plot_null(test: PermutationTest, ax: Axes | None = None, *, label: str = "pseudo-F") -> Axes:
    """Plot the statistic of a permutation test, and its distribution under permutation."""
    ax = ax or new_axes()
    counts, _, _ = ax.hist(test.null, bins=min(40, max(5, len(test.null) // 10)), color="0.75", label="permuted labels")
    top = 1.05 * float(np.max(counts))
    ax.plot([test.statistic] * 2, [0, top], color=CATEGORICAL[5], linewidth=2, label=f"the shapes, p = {test.p_value:.3g}")
    ax.set(xlabel=label, ylabel="number of permutations", ylim=(0, 1.35 * top))  # with room for the legend
    ax.legend(loc="upper center", frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plot_dispersion(dispersion: Dispersion, groups: Sequence[str], ax: Axes | None = None) -> Axes:
    """Plot the distances of the shapes to the center of their group, as one box for each group."""
    ax = ax or new_axes()
    kinds, colors = [kind for kind in sorted(set(groups)) if kind in dispersion.means], group_colors(groups)
    values = [np.array([d for d, group in zip(dispersion.distances, groups, strict=True) if group == kind]) for kind in kinds]
    boxes = ax.boxplot(values, widths=0.6, patch_artist=True, medianprops={"color": "black"}, flierprops={"markersize": 3})
    for box, kind in zip(boxes["boxes"], kinds, strict=True):
        box.set(facecolor=colors[kind], alpha=0.5)
    names = [short_label(kind) for kind in kinds]
    long = len(names) * (2 + max(map(len, names))) > TICKS
    ax.set_xticks(range(1, len(kinds) + 1), names, rotation=90 if long else 0, fontsize=8)
    ax.set(ylabel="distance to the center")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def draw_comparison(found: Comparison) -> Figure:
    """The ordination, the null distribution of PERMANOVA, and the spread of the groups."""
    picture = figure(10, 6.6)
    grid = picture.add_gridspec(2, 2, width_ratios=[1.9, 1])
    shapes = found.shapes if found.shapes.dim == 2 else None
    plot_ordination(found.ordination, found.groups, picture.add_subplot(grid[:, 0]), shapes=shapes)
    plot_null(found.permanova, picture.add_subplot(grid[0, 1])).set_title("do the groups differ? (PERMANOVA)", fontsize=9)
    if found.dispersion is not None:
        test = found.dispersion.test
        spread = plot_dispersion(found.dispersion, found.groups, picture.add_subplot(grid[1, 1]))
        spread.set_title(f"spread within groups (p = {test.p_value:.3g})", fontsize=9)
        spread.set_ylabel("distance to the center (all axes)")
    return picture


def draw_means(found: Comparison) -> Figure:
    """Small multiples: the mean shape of each group over the others, and shapes along the principal components."""
    colors = group_colors(found.groups)
    number = len(found.means) + len(found.extremes)
    columns = number if number <= 6 else max(4, min(6, len(found.means)))
    rows = 0 if number <= 6 else -(-len(found.means) // columns)  # before the extremes, which else follow in the same row
    grid_rows = rows + -(-len(found.extremes) // columns) if rows else 1
    points = torch.cat([shape.points for shape in (*found.means.values(), *(extreme.shape for extreme in found.extremes))])
    low, high = points.amin(dim=0), points.amax(dim=0)
    middle, half = (low + high) / 2, 0.54 * (high - low).clamp(min=0.1 * float((high - low).max()))
    box = list(zip((middle - half).tolist(), (middle + half).tolist(), strict=True))
    projection = "3d" if len(box) == 3 else None
    tall = 1.0 if projection else min(1.6, max(0.4, float(half[1] / half[0])))
    picture = figure(1.9 * columns + 0.2, (1.9 * tall + 0.4) * grid_rows + 0.2)
    grid = picture.add_gridspec(grid_rows, columns)
    for i, (group, shape) in enumerate(found.means.items()):
        ax = picture.add_subplot(grid[i // columns, i % columns], projection=projection)
        if projection is None:
            for other, second in found.means.items():
                if other != group:
                    _draw_small(ax, second, np.zeros(2), 1.0, "0.8", alpha=1.0, zorder=0)
        drawn = plot_shape(shape, ax, color=colors[group], size=_size(shape))
        marks = _marks(shape, group in found.poor_means, found.folded_means.get(group, 0))
        _finish(drawn, box, short_label(group) + marks)
    for i, extreme in enumerate(found.extremes):
        place = rows * columns + i if rows else len(found.means) + i
        ax = picture.add_subplot(grid[place // columns, place % columns], projection=projection)
        drawn = plot_shape(extreme.shape, ax, color="0.25", size=_size(extreme.shape))
        _finish(drawn, box, _title(extreme) + _marks(extreme.shape, extreme.poor, extreme.folded))
    return picture


def _size(shape: Complex) -> float:
    """Points of clouds are drawn, vertices of curves are not."""
    return 0.0 if shape.rows else 8.0


def _title(extreme: Extreme) -> str:
    sign = "−" if extreme.deviations < 0 else "+"
    return f"axis {extreme.axis + 1}, {sign}{abs(extreme.deviations):g} SD"


def _marks(shape: Complex, poor: bool, folded: int) -> str:
    """What a reader should know about a fit, below its title."""
    return "\n(poor fit)" * poor + f"\n({folded} of {shape.of_dim(2).shape[1]} triangles fold)" * bool(folded)


def _finish(ax: Any, box: Sequence[tuple[float, float]], title: str) -> None:
    ax.set_title(title, fontsize=9)
    ax.set(**{f"{axis}lim": bounds for axis, bounds in zip("xyz", box, strict=False)})
    if len(box) == 3:
        ax.set_box_aspect([high - low for low, high in box], zoom=1.5)
    ax.set_axis_off()


def _draw_small(ax: Any, shape: Complex, place: Any, side: float, color: str, *, alpha: float = 0.9, zorder: float = 3) -> None:
    """A shape in the plane at a place, as lines or points."""
    points = shape.points.double().numpy() * side + place
    collections = require("matplotlib.collections", extra="plot")
    edges = outer_edges(shape).numpy()  # the others would hide filled shapes
    if not edges.size:
        ax.scatter(*points.T, color=color, s=2, linewidths=0, alpha=alpha, zorder=zorder)
    else:
        lines = points[edges.T]
        ax.add_collection(
            collections.LineCollection(lines, colors=color, linewidths=0.8, alpha=alpha, zorder=zorder, rasterized=True)
        )


def _spread_out(places: Any, gap: float) -> list[int]:
    """Indices of places at least this far apart: the farthest from those before, one after another."""
    chosen = [int(np.linalg.norm(places - places.mean(axis=0), axis=1).argmin())]
    gaps = np.linalg.norm(places - places[chosen[0]], axis=1)
    while gaps.max() > gap:
        chosen.append(int(gaps.argmax()))
        gaps = np.minimum(gaps, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return chosen


def _draw_ellipse(ax: Any, places: Any, color: str) -> None:
    if len(places) < FEWEST:
        return
    values, vectors = np.linalg.eigh(np.cov(places.T))
    width, height = 2 * ELLIPSE * np.sqrt(values.clip(min=0))
    angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
    ellipse = require("matplotlib.patches", extra="plot").Ellipse
    ax.add_patch(ellipse(places.mean(axis=0), width, height, angle=angle, fill=False, edgecolor=color, linewidth=1.2))
