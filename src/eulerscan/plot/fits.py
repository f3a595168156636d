"""Figures and animations of a fit."""

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
from .figures import Up, figure, save
from .shapes import draw_grid, plot_shape


@dataclass
class Recorder:
    """A callback for :func:`fit_points` that records states.

    Args:
        every: Record every n-th step.

    Attributes:
        paths: Recorded states of each descent.
    """

    every: int = 10
    paths: list[list[Complex]] = field(default_factory=list)

    def __call__(self, step: int, loss: float, shape: Complex) -> None:
        if step == 1:  # a new descent
            self.paths.append([])
        if (step - 1) % self.every == 0:
            self.paths[-1].append(shape)

    def best(self, fit: Fit) -> list[Complex]:
        """The recorded states that lead to the result, which is the last one.

        From a given start, every restart continues from the best result so far, so the path joins all descents that improved
        on it.
        """
        losses = fit.restart_losses
        best = [i for i, loss in enumerate(losses) if loss < min(losses[:i], default=math.inf)]
        path = best if fit.settings["start"] == "given" else best[-1:]
        return [state for i in path for state in self.paths[i]] + [fit.shape]


def draw_fit(before: Complex, after: Complex, target: Complex, path: Path | str, *, up: Up = "z") -> None:
    """Save a figure of two states of a fit, the first step and the result, over the target. In space, ``up`` points up."""
    picture = figure(8, 4.5)
    for column, (shape, title) in enumerate(((before, "first step"), (after, "result"))):
        _draw_over(target, shape, _axes(picture, target.dim, 1, 2, 1 + column), up)
        picture.axes[-1].set_title(f"{title} in red, target in gray")
    save(picture, path, dpi=150)


def animate(shapes: Sequence[Complex], target: Complex, path: Path | str, *, up: Up = "z") -> None:
    """Save an animated GIF of the states of a fit over the target. In space, ``up`` points up."""
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise ValueError(f"path must end with .gif, got {path.name!r}.")
    frames = list(_frames(shapes, target, up))
    with replacing(path) as partial:
        frames[0].save(partial, format="GIF", save_all=True, append_images=frames[1:], duration=80, loop=0)


def _frames(shapes: Sequence[Complex], target: Complex, up: Up) -> Iterator[Any]:
    image = require("PIL.Image", extra="mesh")
    canvas = require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg
    for shape in shapes:
        picture = figure(4, 4)
        _draw_over(target, shape, _axes(picture, target.dim), up)
        drawn = canvas(picture)
        drawn.draw()
        yield image.fromarray(np.asarray(drawn.buffer_rgba())[..., :3].copy())


def _axes(picture: Any, dim: int, *position: int) -> Any:
    """In space, what is drawn last is in front, whatever its depth."""
    return (
        picture.add_subplot(*position, projection="3d", computed_zorder=False) if dim == 3 else picture.add_subplot(*position)
    )


def _draw_over(target: Complex, shape: Complex, ax: Any, up: Up) -> None:
    """Draw a shape over the larger gray points of the target, within the limits of the target."""
    plot_shape(Complex(target.points), ax, color="0.8", size=20, up=up)
    plot_shape(shape, ax, color="C3", size=8, up=up)
    low, high = target.points.amin(dim=0), target.points.amax(dim=0)
    margin = 0.15 * float((high - low).max())
    for axis, name in enumerate("xyz"[: target.dim]):
        ax.set(**{f"{name}lim": (float(low[axis]) - margin, float(high[axis]) + margin), f"{name}label": name})
        ax.locator_params(axis=name, nbins=4)
    ax.set_aspect("equal")  # in space, after setting the limits
    if target.dim == 3:
        draw_grid(ax)
