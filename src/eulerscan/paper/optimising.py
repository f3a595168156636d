"""The figures of the section on optimisation: directions and points that are learned from a transform alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import __version__, directions, plot, thresholds
from ..atomic import replacing
from ..complexes import Complex
from ..extras import require
from ..fitting import Fit, Transform, fit_directions, fit_points
from ..functional import ect
from .running import machine, read

NOISE = 0.05
NUM_POINTS = 200


@dataclass
class Recorder:
    """A callback of a fit that keeps some of the states it passes through.

    Args:
        every: Steps between two states.
    """

    every: int = 10
    shapes: list[Complex] = field(default_factory=list)

    def __call__(self, step: int, loss: float, shape: Complex) -> None:
        if step % self.every == 1 or self.every == 1:
            self.shapes.append(shape)


def noisy_circle(generator: torch.Generator) -> Tensor:
    """Points near a circle that does not have its centre at the origin, so that no two directions see the same."""
    angles = 2 * torch.pi * torch.rand(NUM_POINTS, generator=generator)
    circle = torch.stack([angles.cos(), angles.sin()], dim=1)
    return 0.6 * circle + torch.tensor([0.2, 0.1]) + NOISE * torch.randn(NUM_POINTS, 2, generator=generator)


def learn_directions(seed: int, folder: Path) -> dict[str, Any]:
    """Directions that begin in one half of the circle, without the constraint to it."""
    generator = torch.Generator().manual_seed(seed)
    cloud, heights, wanted = noisy_circle(generator), thresholds(32), directions.circle(32)
    angles = torch.pi * torch.rand(32, generator=generator)
    start = torch.stack([angles.cos(), angles.sin()], dim=1)
    target = Transform(ect(cloud, wanted, heights, scale=8.0)[0], None, heights, 8.0)
    fit = fit_directions(cloud, target, start=start, on_sphere=False, generator=generator)
    if seed == 0:
        _draw_directions(cloud, start, fit, target, folder / "learn-directions")
    lengths = fit.directions.norm(dim=1)
    return {"loss": fit.loss, "start_loss": fit.start_loss, "shortest": float(lengths.min()), "longest": float(lengths.max())}


def learn_points(seed: int, folder: Path) -> dict[str, Any]:
    """Random points that become a circle."""
    generator = torch.Generator().manual_seed(seed)
    target, recorder = noisy_circle(generator), Recorder(every=10)
    fit = fit_points(target, callback=recorder, generator=generator)
    if seed == 0:
        for ending in ("png", "pdf"):
            draw_points(recorder.shapes[0], fit.shape, Complex(target), folder / f"learn-points.{ending}")
        animate([*recorder.shapes, fit.shape], Complex(target), folder / "learn-points.gif")
    return {"loss": fit.loss, "start_loss": fit.start_loss}


FIGURES: Mapping[str, Callable[[int, Path], dict[str, Any]]] = {
    "learn-directions": learn_directions,
    "learn-points": learn_points,
}


def run_figure(name: str, seeds: int, folder: Path) -> list[dict[str, Any]]:
    """Do the fits that ``<name>.jsonl`` lacks, a line each; the first seed draws the figure."""
    lines = folder / f"{name}.jsonl"
    records = read(lines)
    done = {record["seed"] for record in records}
    folder.mkdir(parents=True, exist_ok=True)
    for seed in sorted(set(range(seeds)) - done):
        begin = time.perf_counter()
        found = FIGURES[name](seed, folder)
        record = {"experiment": name, "seed": seed, **found, "left": found["loss"] / found["start_loss"]}
        record |= {"seconds": time.perf_counter() - begin, "version": __version__, "machine": machine()}
        with lines.open("a") as file:
            file.write(json.dumps(record) + "\n")
        records.append(record)
    return records


def draw_points(before: Complex, after: Complex, target: Complex, path: Path) -> None:
    """Two pictures side by side: the target in grey, and on it the first and the last state."""
    figure = plot.figure(8, 4)
    for column, (shape, title) in enumerate(((before, "before"), (after, "after"))):
        _draw_over(target, shape, figure.add_subplot(1, 2, 1 + column, projection="3d" if target.dim == 3 else None))
        figure.axes[-1].set_title(title)
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix.removeprefix(".") or "png", dpi=150)


def animate(shapes: Sequence[Complex], target: Complex, path: Path) -> None:
    """A GIF of the states of a fit, the target in grey behind them."""
    if path.suffix.lower() != ".gif":
        raise ValueError(f"An animation must be a .gif file, got {path.name!r}.")
    pictures = list(_pictures(shapes, target))
    with replacing(path) as partial:
        pictures[0].save(partial, format="GIF", save_all=True, append_images=pictures[1:], duration=80, loop=0)


def _pictures(shapes: Sequence[Complex], target: Complex) -> Iterator[Any]:
    image = require("PIL.Image", extra="mesh")
    canvas = require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg
    for shape in shapes:
        figure = plot.figure(4, 4)
        _draw_over(target, shape, figure.add_subplot(projection="3d" if target.dim == 3 else None))
        drawn = canvas(figure)
        drawn.draw()
        yield image.fromarray(np.asarray(drawn.buffer_rgba())[..., :3].copy())


def _draw_over(target: Complex, shape: Complex, ax: Any) -> None:
    """The points of the target in grey, larger than those of the shape on top of them, and nothing far away from it."""
    plot.plot_shape(Complex(target.points), ax, colour="0.75", size=30)
    plot.plot_shape(shape, ax, colour="C3", size=6)
    low, high = target.points.amin(dim=0), target.points.amax(dim=0)
    margin = 0.15 * float((high - low).max())
    for axis, name in enumerate("xyz"[: target.dim]):
        ax.set(**{f"{name}lim": (float(low[axis]) - margin, float(high[axis]) + margin)})


def _draw_directions(cloud: Tensor, start: Tensor, fit: Fit, target: Transform, path: Path) -> None:
    """Directions before and after around the cloud; below them the transforms, and the wanted one."""
    figure = plot.figure(10, 6)
    heights = target.thresholds
    for column, (vectors, title) in enumerate(((start, "before"), (fit.directions, "after"))):
        ax = figure.add_subplot(2, 3, 1 + column)
        plot.plot_shape(cloud, ax, colour="0.7")
        plot.plot_directions(vectors, ax).set_title(f"directions {title}")
        below = figure.add_subplot(2, 3, 4 + column)
        transform = ect(cloud, vectors, heights, scale=target.scale)[0]
        plot.plot_transform(transform, below, thresholds=heights).set_title(f"transform {title}")
    plot.plot_transform(target.values, figure.add_subplot(2, 3, 6), thresholds=heights).set_title("wanted")
    losses = figure.add_subplot(2, 3, 3)
    losses.semilogy(fit.history)
    losses.set(xlabel="step", ylabel="mean squared difference")
    for ending in ("png", "pdf"):
        with replacing(path.with_suffix(f".{ending}")) as partial:
            figure.savefig(partial, format=ending, dpi=150)
