"""Pictures for a paper or a talk. Every function draws on ``ax`` (a new one if ``None``) and returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .complexes import Complex
from .extras import require
from .shapes import Shape, as_complex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"


def plot_shape(shape: Shape, ax: Axes | None = None, *, colour: str = "C0", size: float | None = None) -> Axes:
    """One complex in the plane or in space: triangles, edges and points of a ``size``. Weights of vertices are shades."""
    complex = _one(shape)
    if complex.dim not in (2, 3):
        raise ValueError(f"shape must lie in the plane or in space to be drawn, got points of dimension {complex.dim}.")
    ax = ax or _new_axes(projection="3d" if complex.dim == 3 else None)
    points = complex.points.detach().cpu().numpy()
    levels = {len(s): s.cpu().numpy() for s in complex.simplices if s.numel()}
    size = max(2.0, min(16.0, 1600 / max(1, len(points)))) if size is None else size
    if complex.weights is None:
        _draw_plain(ax, points, levels, colour, size)
    else:
        _draw_weighted(ax, points, levels, complex.weights[0].detach().cpu().numpy(), size)
    ax.set_aspect("equal")
    return ax


def plot_transform(transform: Tensor, ax: Axes | None = None, *, thresholds: Tensor | None = None) -> Axes:
    """The transform ``[T, H]`` of one complex as an image: a row a direction, a column a threshold."""
    values = _matrix(transform)
    ax = ax or _new_axes()
    signed = values.min() < 0
    limit = float(np.abs(values).max()) or 1.0
    low, high = (-limit, limit) if signed else (0.0, limit)
    extent = None
    if thresholds is not None:
        half = float(thresholds[-1] - thresholds[0]) / max(1, len(thresholds) - 1) / 2  # a pixel lies around its threshold
        extent = (float(thresholds[0]) - half, float(thresholds[-1]) + half, len(values) - 0.5, -0.5)
    image = ax.imshow(
        values,
        cmap=DIVERGING if signed else SEQUENTIAL,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=extent,
    )
    ax.set(xlabel="threshold", ylabel="direction")
    ax.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    ax.figure.colorbar(image, ax=ax, label="Euler characteristic", fraction=0.05)
    return ax


def plot_curves(transform: Tensor, thresholds: Tensor, ax: Axes | None = None) -> Axes:
    """The curves of a transform ``[T, H]``, one line a direction."""
    values, heights = _matrix(transform), thresholds.detach().cpu().numpy()
    ax = ax or _new_axes()
    colours = require("matplotlib", extra="plot").colormaps["twilight"](np.linspace(0, 1, len(values), endpoint=False))
    for curve, colour in zip(values, colours, strict=True):
        ax.step(heights, curve, where="post", color=colour, linewidth=1)
    ax.set(xlabel="threshold", ylabel="Euler characteristic")
    return ax


def plot_directions(directions: Tensor, ax: Axes | None = None, *, before: Tensor | None = None) -> Axes:
    """Directions as arrows from the centre of the circle or sphere; ``before``, if given, in grey behind them."""
    ends = directions.detach().cpu().numpy()
    dim = ends.shape[1]
    if dim not in (2, 3):
        raise ValueError(f"directions must lie in the plane or in space to be drawn, got dimension {dim}.")
    ax = ax or _new_axes(projection="3d" if dim == 3 else None)
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


def plot_training(history: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Losses and validation accuracy over the epochs."""
    ax = ax or _new_axes()
    epochs = [record["epoch"] for record in history]
    ax.plot(epochs, [record["loss"] for record in history], label="training loss", color="C0")
    ax.set(xlabel="epoch", ylabel="cross entropy", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if "val_loss" in history[0]:
        ax.plot(epochs, [record["val_loss"] for record in history], label="validation loss", color="C1")
        right = ax.twinx()
        right.plot(epochs, [record["val_accuracy"] for record in history], color="C2", label="validation accuracy")
        right.set(ylabel="accuracy (%)", ylim=(None, 100))
        lines = [*ax.get_lines(), *right.get_lines()]
        ax.legend(lines, [str(line.get_label()) for line in lines], loc="center right")
    else:
        ax.legend()
    return ax


def plot_confusion(confusion: Tensor, classes: Sequence[str], ax: Axes | None = None) -> Axes:
    """A confusion matrix ``[C, C]``: a row for each true class, shaded by its fraction, with the counts."""
    counts = _matrix(confusion)
    ax = ax or _new_axes()
    fractions = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    if len(classes) <= 20:
        for (row, column), count in np.ndenumerate(counts.astype(int)):
            if count:
                colour = "white" if fractions[row, column] > 0.5 else "black"
                ax.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=7)
    ax.set_xticks(range(len(classes)), classes, rotation=90 if max(map(len, classes)) > 2 else 0)
    ax.set_yticks(range(len(classes)), classes)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def figure(*size: float) -> Figure:
    """An empty figure of so many inches that belongs to no window."""
    made: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=size, layout="constrained")
    return made


def _new_axes(projection: str | None = None) -> Axes:
    axes: Axes = require("matplotlib.pyplot", extra="plot").figure(layout="constrained").add_subplot(projection=projection)
    return axes


def _one(shape: Shape) -> Complex:
    complex = as_complex(shape)
    if complex.num_complexes != 1:
        raise ValueError(f"shape must be one complex to be drawn, got {complex.num_complexes}. Choose one: shape[0]")
    return complex


def _matrix(values: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = torch.as_tensor(values).detach().cpu().numpy()
    if array.ndim != 2:
        raise ValueError(f"a matrix is needed here, got shape {list(array.shape)}. Choose one complex: transform[0]")
    return array


def _draw_plain(ax: Any, points: Any, levels: dict[int, Any], colour: str, size: float) -> None:
    """Triangles and edges of one colour; points where there are no triangles."""
    collections = require("matplotlib.collections", extra="plot")
    in_space = points.shape[1] == 3
    if 3 in levels and in_space:
        ax.plot_trisurf(*points.T, triangles=levels[3].T, color=colour, alpha=0.5, linewidth=0)
    elif 3 in levels:
        ax.add_collection(collections.PolyCollection(points[levels[3].T], facecolors=colour, alpha=0.25, linewidths=0))
    if 2 in levels:
        lines = require("mpl_toolkits.mplot3d.art3d", extra="plot").Line3DCollection if in_space else collections.LineCollection
        ax.add_collection(lines(points[levels[2].T], colors=colour, linewidths=0.4 if 3 in levels else 0.8))
    if 3 not in levels:
        ax.scatter(*points.T, s=size, linewidths=0, color=colour)
    elif not in_space:
        ax.autoscale_view()


def _draw_weighted(ax: Any, points: Any, levels: dict[int, Any], weights: Any, size: float) -> None:
    """Triangles in the plane shaded by the weights of their vertices; otherwise the vertices alone."""
    if 3 in levels and points.shape[1] == 2:
        ax.tripcolor(*points.T, levels[3].T, weights, shading="gouraud", cmap=SEQUENTIAL)
    else:
        ax.scatter(*points.T, c=weights, cmap=SEQUENTIAL, s=size, linewidths=0)
