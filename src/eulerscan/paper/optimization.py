"""Figures of the section on optimization: directions and points learned from a transform alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import plot, thresholds
from .._version import __version__
from ..complexes import Complex
from ..fitting import Fit, TransformTarget, fit_directions, fit_points
from ..functional import ect
from ..plot.fits import Recorder, animate, draw_fit
from .running import append, machine, read

NOISE = 0.05
NUM_POINTS = 200


def noisy_circle(generator: torch.Generator) -> Tensor:
    """Noisy points on a circle with its center off the origin, so that every direction has a different curve."""
    angles = 2 * torch.pi * torch.rand(NUM_POINTS, generator=generator)
    return 0.6 * _on_circle(angles) + torch.tensor([0.2, 0.1]) + NOISE * torch.randn(NUM_POINTS, 2, generator=generator)


def _on_circle(angles: Tensor) -> Tensor:
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def learn_directions(seed: int, folder: Path) -> dict[str, Any]:
    """Learn directions that start in one half of the circle, without constraining them to unit length.

    Plain gradient descent, as in the paper, then a restart from better directions.
    """
    generator = torch.Generator().manual_seed(seed)
    cloud = noisy_circle(generator)
    # Evenly spread, and halfway between the 256 candidates of a restart, none of which is a solution.
    solution = _on_circle(2 * torch.pi / 32 * (torch.arange(32) + 1 / 16))
    start = _on_circle(torch.pi * torch.rand(32, generator=generator))
    target = TransformTarget.of(cloud, solution, thresholds(32), scale=8.0)
    fit = fit_directions(cloud, target, start=start, on_sphere=False, steps=1500)
    if seed == 0:
        _draw_directions(cloud, start, fit, target, folder / "learn-directions")
    lengths = fit.directions.norm(dim=1)
    found = {"loss": fit.loss, "plain_loss": fit.restart_losses[0], "start_loss": fit.start_loss}
    return found | {"shortest": float(lengths.min()), "longest": float(lengths.max())}


def learn_points(seed: int, folder: Path) -> dict[str, Any]:
    """Learn points on a circle from random points."""
    generator = torch.Generator().manual_seed(seed)
    target, recorder = noisy_circle(generator), Recorder(every=10)
    fit = fit_points(target, callback=recorder, generator=generator)
    if seed == 0:
        states = recorder.best(fit)
        for extension in ("png", "pdf"):
            draw_fit(states[0], fit.shape, Complex(target), folder / f"learn-points.{extension}")
        animate(states, Complex(target), folder / "learn-points.gif")
    return {"loss": fit.loss, "start_loss": fit.start_loss}


FIGURES: Mapping[str, Callable[[int, Path], dict[str, Any]]] = {
    "learn-directions": learn_directions,
    "learn-points": learn_points,
}


def run_figure(name: str, seeds: int, folder: Path) -> list[dict[str, Any]]:
    """Run the fits that are missing in ``<name>.jsonl``, one line each. The first seed draws the figure."""
    lines = folder / f"{name}.jsonl"
    records = read(lines)
    done = {record["seed"] for record in records}
    folder.mkdir(parents=True, exist_ok=True)
    for seed in sorted(set(range(seeds)) - done):
        begin = time.perf_counter()
        found = FIGURES[name](seed, folder)
        record = {"experiment": name, "seed": seed, **found, "left": found["loss"] / found["start_loss"]}
        record |= {"seconds": time.perf_counter() - begin, "version": __version__, "machine": machine()}
        append(record, lines)
        records.append(record)
    return records


def _draw_directions(cloud: Tensor, start: Tensor, fit: Fit, target: TransformTarget, path: Path) -> None:
    """Draw the cloud with the directions before and after, and below them the transforms and the target."""
    figure = plot.figure(10, 6)
    chosen = {"before": start, "after": fit.directions}
    transforms = {
        f"transform {title}": ect(cloud, vectors, target.thresholds, scale=target.scale)[0] for title, vectors in chosen.items()
    } | {"target": target.values}
    limits = plot.color_limits(*transforms.values())
    for column, (title, vectors) in enumerate(chosen.items()):
        ax = figure.add_subplot(2, 3, 1 + column)
        plot.plot_shape(cloud, ax, color="0.7")
        plot.plot_directions(vectors, ax).set_title(f"directions {title}")
    for column, (title, transform) in enumerate(transforms.items()):
        below = figure.add_subplot(2, 3, 4 + column)
        plot.plot_transform(transform, below, thresholds=target.thresholds, limits=limits).set_title(title)
    losses = figure.add_subplot(2, 3, 3)
    losses.semilogy(fit.history)
    if len(fit.restart_losses) > 1:
        losses.axvline(fit.settings["steps"], color="0.5", linestyle=":")
        losses.set_title("loss; restart dotted")
    losses.set(xlabel="step", ylabel="mean squared difference")
    for extension in ("png", "pdf"):
        plot.save(figure, path.with_suffix(f".{extension}"), dpi=150)
