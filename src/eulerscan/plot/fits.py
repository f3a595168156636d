"""Pictures of a fit: before and after, and all that was between."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._imports import require
from .._storage import replacing
from ..complexes import Complex
from ..fitting import Fit
from .drawing import plot_shape
from .figures import figure, save


@dataclass
class Recorder:
    """A callback of :func:`fit_points` that keeps some of the states it passes through.

    Args:
        every: Steps between two states.
    """

    every: int = 10
    paths: list[list[Complex]] = field(default_factory=list)

    def __call__(self, step: int, loss: float, shape: Complex) -> None:
        if step == 1:  # of another start
            self.paths.append([])
        if (step - 1) % self.every == 0:
            self.paths[-1].append(shape)

    def best(self, fit: Fit) -> list[Complex]:
        """The states on the way from the start that came furthest, from the first step to the result.

        Where the start was given, every further one was the best end so far: the way leads through all ends that were the best.
        """
        losses = fit.restart_losses
        best = [i for i, loss in enumerate(losses) if loss < min(losses[:i], default=math.inf)]
        way = best if fit.settings["start"] == "given" else best[-1:]
        return [state for i in way for state in self.paths[i]] + [fit.shape]


def draw_points(before: Complex, after: Complex, target: Complex, path: Path | str) -> None:
    """Two pictures side by side: the target in grey, and on it the state after the first step, and the last."""
    picture = figure(8, 4.5)
    for column, (shape, title) in enumerate(((before, "first step"), (after, "result"))):
        _draw_over(target, shape, _axes(picture, target.dim, 1, 2, 1 + column))
        picture.axes[-1].set_title(f"{title} in red, target in grey")
    save(picture, path, dpi=150)


def animate(shapes: Sequence[Complex], target: Complex, path: Path | str) -> None:
    """A GIF of the states of a fit, the target in grey behind them."""
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise ValueError(f"path of an animation must end with .gif, got {path.name!r}.")
    pictures = list(_pictures(shapes, target))
    with replacing(path) as partial:
        pictures[0].save(partial, format="GIF", save_all=True, append_images=pictures[1:], duration=80, loop=0)


def _pictures(shapes: Sequence[Complex], target: Complex) -> Iterator[Any]:
    image = require("PIL.Image", extra="mesh")
    canvas = require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg
    for shape in shapes:
        picture = figure(4, 4)
        _draw_over(target, shape, _axes(picture, target.dim))
        drawn = canvas(picture)
        drawn.draw()
        yield image.fromarray(np.asarray(drawn.buffer_rgba())[..., :3].copy())


def _axes(picture: Any, dim: int, *place: int) -> Any:
    """In space what is drawn last lies in front, however near."""
    return picture.add_subplot(*place, projection="3d", computed_zorder=False) if dim == 3 else picture.add_subplot(*place)


def _draw_over(target: Complex, shape: Complex, ax: Any) -> None:
    """The points of the target in grey, larger than those of the shape on top of them, and nothing far away from it."""
    plot_shape(Complex(target.points), ax, colour="0.8", size=20)
    plot_shape(shape, ax, colour="C3", size=8)
    low, high = target.points.amin(dim=0), target.points.amax(dim=0)
    margin = 0.15 * float((high - low).max())
    for axis, name in enumerate("xyz"[: target.dim]):
        ax.set(**{f"{name}lim": (float(low[axis]) - margin, float(high[axis]) + margin), f"{name}label": name})
        ax.locator_params(axis=name, nbins=4)
    ax.set_aspect("equal")  # in space the limits come first
