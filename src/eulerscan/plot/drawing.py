"""What is drawn on one pair of axes: shapes, transforms, curves, directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._imports import require
from ..complexes import Complex, Shape, as_complex
from ..complexes.boundary import outer_triangles
from .figures import new_axes
from .simplices import draw_plain, draw_weighted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
EULER = "Euler characteristic"


def plot_shape(
    shape: Shape, ax: Axes | None = None, *, colour: str = "C0", size: float | None = None, weight_bar: bool = False
) -> Axes:
    """One complex in the plane or in space: triangles, edges and points of a ``size``.

    Weights are shades, of triangles in the plane and else of vertices; ``weight_bar`` explains them beside the picture. Of
    tetrahedra the surface is drawn.
    """
    complex = _one(shape)
    if complex.dim not in (2, 3):
        raise ValueError(f"shape must lie in the plane or in space to be drawn, got points of dimension {complex.dim}.")
    ax = ax or new_axes(projection="3d" if complex.dim == 3 else None)
    points = complex.points.detach().cpu().numpy()
    levels = {len(s): s.cpu().numpy() for s in complex.simplices if s.numel()}
    seen = outer_triangles(complex).cpu().numpy()
    if 3 in levels:
        levels[3] = levels[3][:, seen]
    size = max(2.0, min(16.0, 1600 / max(1, len(points)))) if size is None else size
    if complex.weights is None:
        draw_plain(ax, points, levels, colour, size)
    else:
        weights = {1: complex.weights[0]} | dict(zip(complex.rows, complex.weights[1:], strict=True))
        arrays = {rows: values.detach().cpu().numpy() for rows, values in weights.items()}
        shades = draw_weighted(ax, points, levels, arrays[1], arrays[3][seen] if 3 in levels else None, size, SEQUENTIAL)
        if weight_bar:
            ax.figure.colorbar(shades, ax=ax, label="weight", fraction=0.05)
    ax.set_aspect("equal")
    return ax


def plot_transform(
    transform: Tensor,
    ax: Axes | None = None,
    *,
    thresholds: Tensor | None = None,
    directions: Tensor | None = None,
    label: str = EULER,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """The transform ``[T, H]`` of one complex as an image: a row a direction, a column a threshold.

    Args:
        transform: ``[T, H]``.
        thresholds: ``[H]``, evenly spaced, for the axis. Without them the columns are numbered.
        directions: ``[T, 2]`` in the plane, evenly spaced (:func:`directions.circle`), for an axis of angles. Without them
            the rows are numbered.
        label: What the colours mean.
        limits: Least and largest value that the colours are for. ``None``: those of this transform. Transforms that are to be
            compared need the same: those of all of them, :func:`limits_of`.
    """
    values = _one_transform(transform)
    ax = ax or new_axes()
    left, right, bottom, top = -0.5, values.shape[1] - 0.5, len(values) - 0.5, -0.5
    if thresholds is not None:
        half = _step(thresholds) / 2  # a pixel lies around its threshold
        left, right = float(thresholds[0]) - half, float(thresholds[-1]) + half
    if directions is not None:
        if directions.ndim != 2 or directions.shape[1] != 2:
            raise ValueError(f"directions must lie in the plane, [T, 2], to have angles, got shape {list(directions.shape)}.")
        half = 180 / len(values)
        bottom, top = 360 - half, -half
    image = ax.imshow(
        values,
        **_shades(limits or limits_of(transform)),
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
    _explain(image, values, ax, label)
    return ax


def plot_polar(
    transform: Tensor,
    thresholds: Tensor,
    ax: Axes | None = None,
    *,
    label: str = EULER,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """The transform ``[T, H]`` of a shape in the plane, wound around: the angle is the direction, the radius the threshold.

    The lowest threshold is the centre and the highest the rim. Turning the shape turns the picture.

    Args:
        transform: ``[T, H]`` for directions at equal angles from (1, 0) on, counter-clockwise: :func:`directions.circle`.
        thresholds: ``[H]``, evenly spaced.
        ax: Polar axes, as ``figure.add_subplot(projection="polar")`` makes them.
        label: What the colours mean.
        limits: Least and largest value that the colours are for, as in :func:`plot_transform`.
    """
    values = _one_transform(transform)
    ax = ax or new_axes(projection="polar")
    if ax.name != "polar":
        raise ValueError(f'ax must be polar axes, add_subplot(projection="polar"), got {ax.name} ones.')
    polar: Any = ax
    half = _step(thresholds) / 2
    angles = (np.arange(len(values) + 1) - 0.5) * (2 * np.pi / len(values))
    radii = float(thresholds[0]) - half + 2 * half * np.arange(len(thresholds) + 1)
    image = polar.pcolormesh(angles, radii, values.T, **_shades(limits or limits_of(transform)), rasterized=True)
    polar.set_rlim(radii[0], radii[-1])
    polar.set_rgrids([0.0] if thresholds[0] < 0 < thresholds[-1] else [], angle=67.5, fmt="%g")
    polar.grid(color="0.6", linewidth=0.3, alpha=0.6)
    halo = require("matplotlib.patheffects", extra="plot").withStroke(linewidth=2, foreground="white")
    for tick in polar.get_yticklabels():
        tick.set_path_effects([halo])
    low, high = (f"{float(thresholds[end]):.3g}".replace("-", "−") for end in (0, -1))
    ax.set(xlabel=f"angle: direction\nradius: threshold, {low} to {high}")
    _explain(image, values, ax, label, pad=0.12)
    return ax


def plot_curves(
    transform: Tensor,
    thresholds: Tensor,
    ax: Axes | None = None,
    *,
    labels: Sequence[str] | None = None,
    steps: bool = True,
) -> Axes:
    """The curves of a transform ``[T, H]``, one line a direction.

    Args:
        transform: ``[T, H]``.
        thresholds: ``[H]``.
        labels: Names of the directions, for a legend.
        steps: Whether a curve keeps its value up to the next threshold, as the exact ones do; smooth ones are joined.
    """
    values, columns = _one_transform(transform), thresholds.detach().cpu().numpy()
    ax = ax or new_axes()
    # Around the circle the last direction is beside the first, and so are their colours. A few with names are told apart.
    colours: Sequence[Any] = [f"C{i}" for i in range(len(values))]
    if labels is None:
        colours = require("matplotlib", extra="plot").colormaps["twilight"](np.linspace(0, 1, len(values), endpoint=False))
    for i, (curve, colour) in enumerate(zip(values, colours, strict=True)):
        # Those that have a name get thinner and thinner, so that none hides another.
        name, width = (
            (None, 1.0) if labels is None else (labels[i], 0.8 + 1.2 * (len(values) - 1 - i) / max(1, len(values) - 1))
        )
        ax.plot(columns, curve, drawstyle="steps-post" if steps else "default", color=colour, linewidth=width, label=name)
    ax.set(xlabel="threshold", ylabel=EULER)
    if _whole(values):
        ax.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if labels is not None:
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
        ax.legend(frameon=False, ncols=len(labels), handlelength=1, columnspacing=1, handletextpad=0.4, **above)
    return ax


def plot_directions(directions: Tensor, ax: Axes | None = None, *, before: Tensor | None = None) -> Axes:
    """Directions as arrows from the centre of the circle or sphere; ``before``, if given, in grey behind them."""
    ends = directions.detach().cpu().numpy()
    dim = ends.shape[1]
    if dim not in (2, 3):
        raise ValueError(f"directions must lie in the plane or in space to be drawn, got dimension {dim}.")
    ax = ax or new_axes(projection="3d" if dim == 3 else None)
    angles = np.linspace(0, 2 * np.pi, 200)
    circles: list[tuple[Any, ...]] = [(np.cos(angles), np.sin(angles))]
    if dim == 3:
        zero = np.zeros_like(angles)
        circles = [(*circles[0], zero), (circles[0][0], zero, circles[0][1]), (zero, *circles[0])]
    for circle in circles:
        ax.plot(*circle, color="0.8", linewidth=0.8)
    for tips, colour in (() if before is None else ((before.detach().cpu().numpy(), "0.7"),)) + ((ends, "C0"),):
        for tip in tips:
            ax.plot(*zip(np.zeros(dim), tip, strict=True), color=colour, linewidth=1)
        ax.scatter(*tips.T, s=14, color=colour)  # type: ignore[misc]
    ax.set_aspect("equal")
    return ax


def limits_of(*transforms: Tensor) -> tuple[float, float]:
    """The least and the largest value of all transforms, and of zero: the colours of pictures that are to be compared.

    >>> limits_of(torch.tensor([[0.0, 2.0]]), torch.tensor([[-1.0, 1.0]]))
    (-1.0, 2.0)
    """
    arrays = [torch.as_tensor(transform).detach().cpu().numpy() for transform in transforms]
    return min(float(array.min(initial=0)) for array in arrays), max(float(array.max(initial=0)) for array in arrays)


def _one(shape: Shape) -> Complex:
    complex = as_complex(shape)
    if complex.num_complexes != 1:
        raise ValueError(f"shape must be one complex to be drawn, got {complex.num_complexes}. Choose one: shape[0]")
    return complex


def _one_transform(transform: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = torch.as_tensor(transform).detach().cpu().numpy()
    if array.ndim != 2:
        raise ValueError(
            f"transform must be that of one complex, [T, H], got shape {list(array.shape)}. Choose one: transform[0]"
        )
    return array


def _whole(values: np.ndarray[Any, Any]) -> bool:
    return bool((values == np.round(values)).all())


def _explain(image: Any, values: np.ndarray[Any, Any], ax: Axes, label: str, **place: float) -> None:
    """A colour bar, whose ticks are whole numbers where all values are."""
    bar = ax.figure.colorbar(image, ax=ax, label=label, fraction=0.05, **place)  # type: ignore[arg-type]
    if _whole(values):
        bar.locator = require("matplotlib.ticker", extra="plot").MaxNLocator(integer=True, nbins=6)
        bar.update_ticks()


def _step(thresholds: Tensor) -> float:
    return float(thresholds[-1] - thresholds[0]) / max(1, len(thresholds) - 1) or 1.0


def _shades(limits: tuple[float, float]) -> dict[str, Any]:
    """Colours that have zero at one end, or in the middle where there are values on both sides of it."""
    limit = max(abs(end) for end in limits) or 1.0
    signed = limits[0] < 0
    return {"cmap": DIVERGING if signed else SEQUENTIAL, "vmin": -limit if signed else 0.0, "vmax": limit}
