"""Plots of transforms: as an image, a polar image or curves; and of their directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._imports import require
from .figures import DIVERGING, SEQUENTIAL, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EULER = "Euler characteristic"


def plot_transform(
    transform: Tensor,
    ax: Axes | None = None,
    *,
    thresholds: Tensor | None = None,
    directions: Tensor | None = None,
    label: str = EULER,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """Plot the transform ``[T, H]`` of one complex as an image: one row per direction, one column per threshold.

    Args:
        transform: ``[T, H]``.
        ax: Axes to draw on. Default: new ones.
        thresholds: ``[H]``, evenly spaced, for the axis. Default: columns are numbered.
        directions: ``[T, 2]`` in the plane, evenly spaced (:func:`directions.circle`), for an axis of angles. Default: rows
            are numbered.
        label: Label of the colorbar.
        limits: Smallest and largest value of the colors. Default: those of this transform. To compare several, use
            :func:`color_limits` of all of them.
    """
    values = _single_transform(transform)
    ax = ax or new_axes()
    left, right, bottom, top = -0.5, values.shape[1] - 0.5, len(values) - 0.5, -0.5
    if thresholds is not None:
        half = _step(thresholds) / 2  # pixels are centered at their thresholds
        left, right = float(thresholds[0]) - half, float(thresholds[-1]) + half
    if directions is not None:
        if directions.ndim != 2 or directions.shape[1] != 2:
            raise ValueError(f"directions must be in the plane, [T, 2], to have angles, got shape {list(directions.shape)}.")
        half = 180 / len(values)
        bottom, top = 360 - half, -half
    image = ax.imshow(
        values,
        **_colors(limits or color_limits(transform)),
        aspect="auto",
        interpolation="nearest",
        extent=(left, right, bottom, top),
        rasterized=True,
    )
    ax.set(xlabel="threshold", ylabel="direction" if directions is None else "direction (°)")
    if directions is None:
        ax.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    else:
        ax.set_yticks(range(0, 360, 90))
    _add_colorbar(image, values, ax, label)
    return ax


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
    values, columns = _single_transform(transform), thresholds.detach().cpu().numpy()
    ax = ax or new_axes()
    # A cyclic colormap, since the last direction of a circle is next to the first. Labeled curves get distinct colors.
    colors: Sequence[Any] = [f"C{i}" for i in range(len(values))]
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
        ax.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if labels is not None:
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
        ax.legend(frameon=False, ncols=len(labels), handlelength=1, columnspacing=1, handletextpad=0.4, **above)
    return ax


def plot_directions(directions: Tensor, ax: Axes | None = None, *, before: Tensor | None = None) -> Axes:
    """Plot directions ``[T, 2 or 3]`` as arrows in the unit circle or sphere; ``before``, if given, in gray behind them."""
    ends = directions.detach().cpu().numpy()
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
    for tips, color in (() if before is None else ((before.detach().cpu().numpy(), "0.7"),)) + ((ends, "C0"),):
        for tip in tips:
            ax.plot(*zip(np.zeros(dim), tip, strict=True), color=color, linewidth=1)
        ax.scatter(*tips.T, s=14, color=color)  # type: ignore[misc]
    ax.set_aspect("equal")
    return ax


def color_limits(*transforms: Tensor) -> tuple[float, float]:
    """Smallest and largest value of all transforms, and zero: the common color limits of pictures to compare.

    >>> color_limits(torch.tensor([[0.0, 2.0]]), torch.tensor([[-1.0, 1.0]]))
    (-1.0, 2.0)
    """
    arrays = [torch.as_tensor(transform).detach().cpu().numpy() for transform in transforms]
    return min(float(array.min(initial=0)) for array in arrays), max(float(array.max(initial=0)) for array in arrays)


def _single_transform(transform: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = torch.as_tensor(transform).detach().cpu().numpy()
    if array.ndim != 2:
        raise ValueError(f"transform must be of one complex, [T, H], got shape {list(array.shape)}. Choose one: transform[0]")
    return array


def _integral(values: np.ndarray[Any, Any]) -> bool:
    return bool((values == np.round(values)).all())


def _add_colorbar(image: Any, values: np.ndarray[Any, Any], ax: Axes, label: str, **options: float) -> None:
    """Add a colorbar, with integer ticks if all values are integers."""
    bar = ax.figure.colorbar(image, ax=ax, label=label, fraction=0.05, **options)  # type: ignore[arg-type]
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
