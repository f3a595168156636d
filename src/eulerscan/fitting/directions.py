"""Fit directions: turn them until the transform of a shape is the wanted one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import torch
from torch import Tensor

from .. import directions as spheres
from .._progress import progress_bar
from .._validation import positive
from ..complexes import Complex, Shape
from ..functional import ect
from ..grid import MARGIN, soft_scale
from ..grid import thresholds as even_thresholds
from .descent import Descent, MakeOptimiser, Optimiser, Stage, descend, warn_of
from .inverse import Transform
from .objective import Goal, checked_scales, not_sharper, one_complex, peak
from .result import Fit, found

PLACES = 256  # to look for a better direction on the circle: less than one and a half degrees apart


def fit_directions(
    shape: Shape,
    target: Shape | Transform,
    *,
    start: Tensor | None = None,
    num_directions: int = 32,
    num_thresholds: int = 32,
    on_sphere: bool = True,
    scales: Sequence[float] | None = None,
    steps: int = 500,
    learning_rate: float = 0.1,
    optimiser: Optimiser | MakeOptimiser = "adam",
    restarts: int = 1,
    tolerance: float = 0.0,
    progress: bool = True,
    callback: Callable[[int, float, Tensor], object] | None = None,
    generator: torch.Generator | None = None,
) -> Fit:
    """Turn directions until the transform of a shape in them is the wanted one, row by row.

    Every direction has a curve of its own to match. On its way over the sphere it can be caught where the curve is merely
    similar (on the wrong side of a nearly symmetric shape); so afterwards every direction is compared with many evenly spread
    ones, goes to the one that matches best if that is better than where it is, and descends again.

    The transform stays as soft as in the paper: the sharper it is, the more directions are caught. One step turns a
    direction by at most 0.05 or so by default.

    Args:
        shape: What is looked at.
        target: A :class:`Transform` (its own directions are not looked at), or a shape whose transform is wanted, in
            ``num_directions`` evenly spread directions.
        start: Directions to begin with, ``[T, dim]``; random ones by default.
        num_directions, num_thresholds: Where ``target`` is a shape.
        on_sphere: Whether directions keep unit length. In the paper's figure they do not, and come close to it by themselves.
        scales: From soft to sharp; by default one, 8 for thresholds up to 1.1.
        restarts: How often to look for better places afterwards; 0 is plain descent.
        steps, learning_rate, optimiser, tolerance, progress, generator: As in :func:`fit_points`; steps for each descent.
        callback: Called with the step, its loss, and the directions after it.

    Example:
        >>> cloud = torch.tensor([[0.9, 0.1], [-0.2, 0.4], [0.3, -0.5]])
        >>> turned = cloud @ torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
        >>> fit = fit_directions(cloud, turned, num_directions=8, steps=200)
        >>> fit.loss < 0.01 * fit.start_loss
        True
    """
    complex = one_complex(shape, "shape")
    if restarts < 0:
        raise ValueError(f"restarts must not be negative, got {restarts}.")
    goal = _goal(complex, target, num_directions=num_directions, num_thresholds=num_thresholds, scales=scales)
    count, dim = goal.directions.shape
    begin = spheres.random(count, dim, generator) if start is None else _check_directions(start, count, dim)
    how = Descent(steps, learning_rate, optimiser, tolerance)
    stages = [_stage(complex, goal, scale, on_sphere) for scale in goal.scales]
    plain = stages[-1].loss
    with closing(progress_bar(steps * (1 + restarts), "fitting directions", hidden=not progress)) as bar:

        def report(step: int, loss: float, weight: Tensor) -> None:
            bar.set_postfix_str(f"loss {loss:.2e}")
            bar.update()
            if callback is not None:
                callback(step, loss, _directions(weight, on_sphere).clone())

        courses = [descend(begin.to(goal.centre), stages, plain, how, reach=1.0, report=report)]
        state = courses[0].state
        for _ in range(restarts):
            elsewhere = _better_places(complex, goal, _directions(state, on_sphere))
            if elsewhere is None:
                break
            courses.append(descend(elsewhere, stages, plain, how, reach=1.0, report=report))
            before, after = (_errors(complex, goal, _directions(one, on_sphere)) for one in (state, courses[-1].state))
            state = torch.where((after < before)[:, None], courses[-1].state, state)
    loss, stopped = float(plain(state)), courses[0].stopped
    best = courses[0]._replace(
        state=state,
        loss=loss,
        stopped="steps" if stopped == "no improvement" and loss < courses[0].start_loss else stopped,
        losses=[loss for course in courses for loss in course.losses],
        scales=[scale for course in courses for scale in course.scales],
    )
    warn_of(best.stopped, len(courses[0].losses), how)
    settings = {"start": "random" if start is None else "given", "restarts": restarts, "on_sphere": on_sphere}
    return found(goal, complex, _directions(best.state, on_sphere), best, courses, how, settings)


def _goal(
    shape: Complex,
    target: Shape | Transform,
    *,
    num_directions: int,
    num_thresholds: int,
    scales: Sequence[float] | None,
) -> Goal:
    """The goal of directions: the given transform, or that of another shape in evenly spread directions."""
    like: dict[str, Any] = {"device": shape.device, "dtype": shape.points.dtype}
    at: Callable[[float], Tensor]
    if isinstance(target, Transform):
        at, thresholds, own = target.at, target.thresholds.to(shape.points), target.scale
        spread = spheres.uniform(len(target.values), shape.dim, **like)
    else:
        other, own = one_complex(target, "target").to(shape.points.dtype), math.inf
        if other.dim != shape.dim:
            raise ValueError(f"target must have points of dimension {shape.dim} like the shape, got {other.dim}.")
        largest = max(float(torch.linalg.vector_norm(one.points, dim=1).max()) for one in (shape, other)) or 1.0
        spread = spheres.uniform(positive(num_directions, "num_directions"), shape.dim, **like)
        thresholds = even_thresholds(positive(num_thresholds, "num_thresholds"), MARGIN * largest, **like)

        def at(scale: float) -> Tensor:
            return ect(other, spread, thresholds, scale=scale)[0]

    soft = min(own, soft_scale(float(thresholds.abs().max())))
    total = peak(at(math.inf))
    return Goal(
        values=lambda scale: at(scale).to(shape.points) / total,
        divisor=total,
        num_points=len(shape.points),
        directions=spread,
        thresholds=thresholds,
        scales=not_sharper(own, checked_scales(scales, soft, soft)),
        centre=shape.points.new_zeros(shape.dim),
    )


def _stage(complex: Complex, goal: Goal, scale: float, on_sphere: bool) -> Stage:
    difference = goal.difference(scale)
    return Stage(scale, lambda weight: difference(complex, _directions(weight, on_sphere)).square().mean())


def _directions(weight: Tensor, on_sphere: bool) -> Tensor:
    return torch.nn.functional.normalize(weight, dim=1) if on_sphere else weight


def _errors(complex: Complex, goal: Goal, directions: Tensor) -> Tensor:
    """``[T]``: how far the curve of each direction is from the wanted one."""
    return goal.difference(goal.scales[-1])(complex, directions).square().mean(dim=1)


def _better_places(complex: Complex, goal: Goal, directions: Tensor) -> Tensor | None:
    """The directions, those that match twice as well elsewhere on the sphere moved there; ``None`` if there are none."""
    scale, dim = goal.scales[-1], directions.shape[1]
    places = spheres.uniform(PLACES if dim <= 2 else 4 * PLACES, dim, device=directions.device, dtype=directions.dtype)
    curves = ect(complex, places, goal.thresholds, scale=scale)[0] / goal.divisor
    distances = torch.cdist(goal.values(scale), curves, compute_mode="donot_use_mm_for_euclid_dist")  # [T, places]
    nearest, place = (distances.square() / len(goal.thresholds)).min(dim=1)
    better = nearest < 0.5 * _errors(complex, goal, directions)
    return torch.where(better[:, None], places[place], directions) if bool(better.any()) else None


def _check_directions(start: Tensor, count: int, dim: int) -> Tensor:
    if not isinstance(start, Tensor) or not start.is_floating_point():
        got = start.dtype if isinstance(start, Tensor) else type(start).__name__
        raise TypeError(f"start must be a torch.Tensor of floating point, got {got}.")
    if start.shape != (count, dim):
        hint = " Did you pass it transposed?" if start.shape == (dim, count) else ""
        raise ValueError(
            f"start must have one direction for each of the target, shape [{count}, {dim}], got {list(start.shape)}.{hint}"
        )
    if not bool(torch.isfinite(start).all()):
        raise ValueError(f"start must be finite, got {start[~torch.isfinite(start)][0].item()}.")
    return start.detach()
