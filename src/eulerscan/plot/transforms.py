"""Plots of transforms: as an image, a polar image or curves; and of their directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import directions as spheres
from .._devices import as_numpy
from .._imports import require
from .figures import CATEGORICAL, DIVERGING, SEQUENTIAL, Up, integer_ticks, new_axes
from .shapes import draw_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EULER = "Euler characteristic"
NUM_RINGS = 5
QUANTILE = 0.99  # of the absolute values other than zero: larger ones may be beyond the color limits
MAX_ROBUST = 2.0  # the largest value, if at most so many times the quantile, is within the limits
MAX_SHAPES = 4.0  # and a transform, if its quantile is at most so many times the median one


def plot_transform(
    transform: Tensor,
    ax: Axes | None = None,
    *,
    thresholds: Tensor | None = None,
    directions: Tensor | None = None,
    up: Up = "z",
    label: str = EULER,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """Plot the transform ``[T, H]`` of one complex as an image: one row per direction, one column per threshold.

    Args:
        transform: ``[T, H]``.
        ax: Axes to draw on. Default: new ones.
        thresholds: ``[H]``, evenly spaced, for the axis. Default: columns are numbered.
        directions: ``[T, 2]`` or ``[T, 3]``, to sort the rows: by angle in the plane, and in space ring by ring about an
            axis, in each ring by longitude. Default: rows are numbered.
        up: The axis of the rings, in space.
        label: Label of the colorbar.
        limits: Smallest and largest value of the colors. Default: the :func:`color_limits` of this transform. To compare
            several, use those of all of them. Colorbars with pointed ends have values beyond the limits.
    """
    values = _single_transform(transform)
    ax = ax or new_axes()
    left, right = -0.5, values.shape[1] - 0.5
    if thresholds is not None:
        half = _step(thresholds) / 2  # pixels are centered at their thresholds
        left, right = float(thresholds[0]) - half, float(thresholds[-1]) + half
    ax.set(xlabel="threshold", ylabel="direction")
    if directions is None:
        integer_ticks(ax.yaxis)
    else:
        if directions.ndim != 2 or directions.shape[1] not in (2, 3) or len(directions) != len(values):
            raise ValueError(
                f"directions must be in the plane or in space, [{len(values)}, 2 or 3], got shape {list(directions.shape)}."
            )
        axis = direction_axis(directions, up)
        values = values[axis.order.numpy()]
        ax.set_yticks(axis.ticks, axis.tick_labels)
        ax.set_ylabel(axis.label)
        for row in axis.bounds:
            ax.axhline(row, color="white", linewidth=0.8)
    image = ax.imshow(
        values,
        **_colors(limits or color_limits(transform)),
        aspect="auto",
        interpolation="nearest",
        extent=(left, right, len(values) - 0.5, -0.5),
        rasterized=True,
    )
    _add_colorbar(image, values, ax, label)
    return ax


def image_directions(n: int, dim: int, up: Up = "z") -> Tensor:
    """``n`` directions whose transform is an image with few seams: on a circle, or in space on five rings about an axis.

    Evenly spread over the sphere, neighboring rows would differ as much as any others.
    """
    if dim == 2:
        return spheres.circle(n, dtype=torch.float64)
    num_rings = max(1, min(NUM_RINGS, n // 4))
    polar = (torch.arange(num_rings, dtype=torch.float64) + 0.5) * (math.pi / num_rings)
    flat = [spheres.circle(len(ring), dtype=torch.float64) for ring in torch.arange(n).tensor_split(num_rings)]
    rings = [torch.cat([a.sin() * xy, a.cos().expand(len(xy), 1)], dim=1) for a, xy in zip(polar, flat, strict=True)]
    return torch.cat(rings)[:, [0, 1, 2] if up == "z" else [1, 2, 0]]


class DirectionAxis(NamedTuple):
    """How the rows of an image are sorted, and the ticks and the label of their axis."""

    order: Tensor  # [T]
    ticks: list[float]  # rows of the sorted image
    tick_labels: list[str]
    bounds: list[float]  # rows between rings that are not neighbors on the sphere
    label: str


def direction_axis(directions: Tensor, up: Up = "z") -> DirectionAxis:
    """The axis of directions: sorted by angle in the plane, and in space ring by ring about an axis, each by longitude.

    Directions that are not on few rings are assigned to rings as wide as directions are apart.
    """
    directions, count = torch.nn.functional.normalize(directions.detach().cpu().double(), dim=1), len(directions)
    if directions.shape[1] == 2:
        angles, quarters = _angle(directions), np.arange(0, 360, 90)
        order = angles.argsort(stable=True)
        once = angles[order].numpy()
        rows = np.interp(quarters, np.concatenate([once - 360, once, once + 360]), np.arange(-count, 2 * count))
        rows = (rows + 0.5) % count - 0.5  # the first row is next to the last
        return DirectionAxis(order, rows.tolist(), [f"{d}" for d in quarters], [], "direction (°)")
    standing = directions[:, [0, 1, 2] if up == "z" else [2, 0, 1]]
    polar = torch.rad2deg(torch.arccos(standing[:, 2].clamp(-1, 1)))
    exact, ring = polar.round(decimals=4).unique(return_inverse=True)
    few, num_rings = 4 * len(exact) <= count, max(1, round(math.sqrt(math.pi * count) / 2))
    degrees = 90 - exact.numpy() if few else np.arange(60.0, -61.0, -30.0)
    if not few:
        ring = (polar * (num_rings / 180)).long().clamp(max=num_rings - 1)
    order = torch.from_numpy(np.lexsort((_angle(standing), ring)))
    ends = np.cumsum([0, *torch.bincount(ring).tolist()]) - 0.5
    rows = (ends[1:] + ends[:-1]) / 2 if few else np.interp(90 - degrees, np.arange(len(ends)) * (180 / num_rings), ends)
    labels = [f"{d:.3g}".replace("-", "−") for d in degrees + 0.0]
    bounds = ends[1:-1].tolist() if few else []
    return DirectionAxis(order, rows.tolist(), labels, bounds, f"latitude of the direction\n(+{up} is 90°), then longitude")


def _angle(directions: Tensor) -> Tensor:
    """In degrees, from the first axis."""
    return torch.rad2deg(torch.atan2(directions[:, 1], directions[:, 0])).round(decimals=6) % 360


def plot_polar(
    transform: Tensor,
    thresholds: Tensor,
    ax: Axes | None = None,
    *,
    label: str = EULER,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """Plot the transform ``[T, H]`` of a shape in the plane in polar coordinates: direction as angle, threshold as radius.

    The lowest threshold is at the center. Rotating the shape rotates the picture.

    Args:
        transform: ``[T, H]``, in the directions of :func:`directions.circle`.
        thresholds: ``[H]``, evenly spaced.
        ax: Polar axes, ``figure.add_subplot(projection="polar")``. Default: new ones.
        label: Label of the colorbar.
        limits: Smallest and largest value of the colors, as in :func:`plot_transform`.
    """
    values = _single_transform(transform)
    ax = ax or new_axes(projection="polar")
    if ax.name != "polar":
        raise ValueError(f'ax must be polar axes, add_subplot(projection="polar"), got {ax.name} axes.')
    polar: Any = ax
    half = _step(thresholds) / 2
    angles = (np.arange(len(values) + 1) - 0.5) * (2 * np.pi / len(values))
    radii = float(thresholds[0]) - half + 2 * half * np.arange(len(thresholds) + 1)
    image = polar.pcolormesh(angles, radii, values.T, **_colors(limits or color_limits(transform)), rasterized=True)
    polar.set_rlim(radii[0], radii[-1])
    polar.set_rgrids([0.0] if thresholds[0] < 0 < thresholds[-1] else [], angle=67.5, fmt="%g")
    polar.grid(color="0.6", linewidth=0.3, alpha=0.6)
    halo = require("matplotlib.patheffects", extra="plot").withStroke(linewidth=2, foreground="white")
    for tick in polar.get_yticklabels():
        tick.set_path_effects([halo])
    low, high = (f"{float(thresholds[end]):.3g}".replace("-", "−") for end in (0, -1))
    ax.set(xlabel=f"angle: direction\nradius: threshold, {low} to {high}")
    _add_colorbar(image, values, ax, label, pad=0.12)
    return ax


def plot_curves(
    transform: Tensor,
    thresholds: Tensor,
    ax: Axes | None = None,
    *,
    labels: Sequence[str] | None = None,
    steps: bool = True,
) -> Axes:
    """Plot the curves of a transform ``[T, H]``, one line per direction.

    Args:
        transform: ``[T, H]``.
        thresholds: ``[H]``.
        ax: Axes to draw on. Default: new ones.
        labels: Names of the directions, for a legend.
        steps: Whether to draw steps, as exact curves have them, or to interpolate.
    """
    values, columns = _single_transform(transform), as_numpy(thresholds)
    ax = ax or new_axes()
    # A cyclic colormap, since the last direction of a circle is next to the first. Labeled curves get distinct colors.
    colors: Sequence[Any] = [CATEGORICAL[i % len(CATEGORICAL)] for i in range(len(values))]
    if labels is None:
        colors = require("matplotlib", extra="plot").colormaps["twilight"](np.linspace(0, 1, len(values), endpoint=False))
    for i, (curve, color) in enumerate(zip(values, colors, strict=True)):
        # Labeled curves get thinner and thinner, so that none hides another.
        name, width = (
            (None, 1.0) if labels is None else (labels[i], 0.8 + 1.2 * (len(values) - 1 - i) / max(1, len(values) - 1))
        )
        ax.plot(columns, curve, drawstyle="steps-post" if steps else "default", color=color, linewidth=width, label=name)
    ax.set(xlabel="threshold", ylabel=EULER)
    if _integral(values):
        integer_ticks(ax.yaxis)
    if labels is not None:
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
        ax.legend(frameon=False, ncols=len(labels), handlelength=1, columnspacing=1, handletextpad=0.4, **above)
    return ax


def plot_directions(directions: Tensor, ax: Axes | None = None, *, before: Tensor | None = None) -> Axes:
    """Plot directions ``[T, 2 or 3]`` as arrows in the unit circle or sphere; ``before``, if given, in gray behind them."""
    ends = as_numpy(directions)
    dim = ends.shape[1]
    if dim not in (2, 3):
        raise ValueError(f"directions must be in the plane or in space to be drawn, got dimension {dim}.")
    ax = ax or new_axes(projection="3d" if dim == 3 else None)
    angles = np.linspace(0, 2 * np.pi, 200)
    circles: list[tuple[Any, ...]] = [(np.cos(angles), np.sin(angles))]
    if dim == 3:
        zero = np.zeros_like(angles)
        circles = [(*circles[0], zero), (circles[0][0], zero, circles[0][1]), (zero, *circles[0])]
    for circle in circles:
        ax.plot(*circle, color="0.8", linewidth=0.8)
    for tips, color in (() if before is None else ((as_numpy(before), "0.7"),)) + ((ends, "C0"),):
        for tip in tips:
            ax.plot(*zip(np.zeros(dim), tip, strict=True), color=color, linewidth=1)
        ax.scatter(*tips.T, s=14, color=color)  # type: ignore[misc]
    ax.set_aspect("equal")
    if dim == 3:
        draw_grid(ax)
    return ax


def color_limits(*transforms: Tensor) -> tuple[float, float]:
    """Common color limits of pictures to compare: smallest and largest value of all transforms, and zero, without outliers.

    A few extreme values would leave all others in one color. If the largest absolute value of a transform is more than twice
    the 99 % quantile (of values other than zero), its limit is the quantile. Of several transforms, those whose limit is more
    than four times the median one are beyond the limits.

    >>> color_limits(torch.tensor([[0.0, 2.0]]), torch.tensor([[-1.0, 1.0]]))
    (-1.0, 2.0)
    >>> color_limits(torch.cat([torch.arange(999.0) % 3, torch.tensor([500.0])]))
    (0.0, 2.0)
    """
    arrays = [as_numpy(torch.as_tensor(transform)) for transform in transforms]
    sizes = np.array([_robust_maximum(np.abs(array[array != 0])) for array in arrays])
    limit = sizes[sizes <= MAX_SHAPES * np.median(sizes)].max(initial=0) if sizes.any() else 0.0
    low, high = (float(end([end(array, initial=0) for array in arrays])) for end in (np.min, np.max))
    return max(low, -float(limit)), min(high, float(limit))


def _robust_maximum(sizes: np.ndarray[Any, Any]) -> float:
    if not sizes.size:
        return 0.0
    usual, largest = float(np.quantile(sizes, QUANTILE, method="lower")), float(sizes.max())
    return largest if largest <= MAX_ROBUST * usual else usual


def _single_transform(transform: Tensor) -> np.ndarray[Any, Any]:
    array = as_numpy(torch.as_tensor(transform))
    if array.ndim != 2:
        raise ValueError(f"transform must be of one complex, [T, H], got shape {list(array.shape)}. Choose one: transform[0]")
    return array


def _integral(values: np.ndarray[Any, Any]) -> bool:
    return bool((values == np.round(values)).all())


def _add_colorbar(image: Any, values: np.ndarray[Any, Any], ax: Axes, label: str, **options: Any) -> None:
    """Add a colorbar, with integer ticks if all values are integers, and pointed ends if some are beyond the limits."""
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    ends = (["min"] if low < image.norm.vmin else []) + (["max"] if high > image.norm.vmax else [])
    if ends:
        label += f"\nvalues from {low:.4g} to {high:.4g}".replace("-", "−")
    extend = "both" if len(ends) == 2 else ends[0] if ends else "neither"
    bar = ax.figure.colorbar(image, ax=ax, label=label, fraction=0.05, extend=extend, **options)
    if _integral(values):
        bar.locator = require("matplotlib.ticker", extra="plot").MaxNLocator(integer=True, nbins=6)
        bar.update_ticks()


def _step(thresholds: Tensor) -> float:
    return float(thresholds[-1] - thresholds[0]) / max(1, len(thresholds) - 1) or 1.0


def _colors(limits: tuple[float, float]) -> dict[str, Any]:
    """Sequential colors from zero, or diverging ones around zero if some values are negative."""
    limit = max(abs(end) for end in limits) or 1.0
    signed = limits[0] < 0
    return {"cmap": DIVERGING if signed else SEQUENTIAL, "vmin": -limit if signed else 0.0, "vmax": limit}
