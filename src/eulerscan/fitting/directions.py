"""Fit directions: rotate them until the transform of a shape matches a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import torch
from torch import Tensor

from .. import directions as spheres
from .._progress import progress_bar
from .._validation import check_finite, check_floating, integer, positive
from ..complexes import Complex, Shape
from ..functional import ect
from ..grid import radius_of, soft_scale
from ..grid import thresholds as even_thresholds
from .descent import Descent, DescentOptions, OptimizerFactory, OptimizerName, Stage, descend, warn_on_failure
from .inverse import TransformTarget
from .objective import Objective, peak, scale_schedule, single_complex
from .result import Fit, make_fit

NUM_CANDIDATES = 256  # directions that a restart tries in the plane, 1.4 degrees apart; four times as many in space


def fit_directions(
    shape: Shape,
    target: Shape | TransformTarget,
    *,
    start: Tensor | None = None,
    num_directions: int = 32,
    num_thresholds: int = 32,
    on_sphere: bool = True,
    scales: Sequence[float] | None = None,
    steps: int = 500,
    learning_rate: float = 0.1,
    optimizer: OptimizerName | OptimizerFactory = "adam",
    restarts: int = 1,
    tolerance: float = 0.0,
    progress: bool = True,
    callback: Callable[[int, float, Tensor], object] | None = None,
    generator: torch.Generator | None = None,
) -> Fit:
    """Fit directions, so that the transform of a shape in them matches a target, row by row.

    Each direction has its own curve to match and can get stuck in a local minimum, for example on the wrong side of a nearly
    symmetric shape. So after the descent every direction is compared with many evenly spaced candidates, moved to the best one
    if that matches better, and fitted again.

    The transform stays as soft as in the paper: the sharper it is, the more directions get stuck. With the default learning
    rate, a step rotates a direction by at most about 0.05 radians.

    Args:
        shape: The shape to transform.
        target: A :class:`TransformTarget` (its directions are ignored), or a shape, which is transformed in ``num_directions``
            evenly spaced directions.
        start: Initial directions, ``[T, dim]``. Default: random ones.
        num_directions, num_thresholds: Grid of the transform, if ``target`` is a shape.
        on_sphere: Whether directions keep unit length. In the paper's figure they do not, and approach it anyway.
        scales: Scales, ascending. Default: a single one, 8 for thresholds up to 1.1.
        restarts: Number of restarts from better directions; 0 is plain descent.
        steps, learning_rate, optimizer, tolerance, progress, generator: As in :func:`fit_points`; ``steps`` per descent.
        callback: Called with the step, its loss, and the directions after it.

    Example:
        >>> cloud = torch.tensor([[0.9, 0.1], [-0.2, 0.4], [0.3, -0.5]])
        >>> rotated = cloud @ torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
        >>> fit = fit_directions(cloud, rotated, num_directions=8, steps=200)
        >>> fit.loss < 0.01 * fit.start_loss
        True
    """
    complex = single_complex(shape, "shape")
    integer(restarts, "restarts", least=0)
    objective = _objective(complex, target, num_directions, num_thresholds, scales)
    count, dim = objective.directions.shape
    initial = spheres.random(count, dim, generator) if start is None else _check_start(start, count, dim)
    options = DescentOptions(steps, learning_rate, optimizer, tolerance)
    stages = [_stage(complex, objective, scale, on_sphere) for scale in objective.scales]
    loss_of = stages[-1].loss
    descents: list[Descent] = []
    with closing(progress_bar(steps * (1 + restarts), "fitting directions", hidden=not progress)) as bar:

        def report(step: int, loss: float, weight: Tensor) -> None:
            bar.set_postfix_str(f"loss {loss:.2e}")
            bar.update()
            if callback is not None:
                callback(step, loss, _directions(weight, on_sphere).clone())

        def run(start: Tensor) -> Tensor:
            descents.append(descend(start, stages, loss_of, options, radius=1.0, callback=report))
            return descents[-1].state

        state = run(initial.to(objective.center))
        for _ in range(restarts):
            moved = _move_to_candidates(complex, objective, _directions(state, on_sphere))
            if moved is None:
                break
            again = run(moved)
            before, after = (_errors(complex, objective, _directions(weight, on_sphere)) for weight in (state, again))
            state = torch.where((after < before)[:, None], again, state)
    loss, first = float(loss_of(state)), descents[0]
    best = first._replace(
        state=state,
        loss=loss,
        stopped="steps" if first.stopped == "no improvement" and loss < first.start_loss else first.stopped,
        losses=[loss for descent in descents for loss in descent.losses],
        scales=[scale for descent in descents for scale in descent.scales],
    )
    warn_on_failure(best.stopped, len(first.losses), learning_rate)
    settings = {"start": "random" if start is None else "given", "restarts": restarts, "on_sphere": on_sphere}
    return make_fit(objective, complex, _directions(best.state, on_sphere), best, descents, options, settings)


def _objective(
    shape: Complex, target: Shape | TransformTarget, num_directions: int, num_thresholds: int, scales: Sequence[float] | None
) -> Objective:
    """The given transform, or that of another shape in evenly spaced directions."""
    like: dict[str, Any] = {"device": shape.device, "dtype": shape.points.dtype}
    values: Callable[[float], Tensor]
    if isinstance(target, TransformTarget):
        values, thresholds, own_scale = target.smoothed, target.thresholds.to(shape.points), target.scale
        directions = spheres.uniform(len(target.values), shape.dim, **like)
    else:
        other, own_scale = single_complex(target, "target").to(shape.points.dtype), math.inf
        if other.dim != shape.dim:
            raise ValueError(f"target must have points of dimension {shape.dim} like the shape, got {other.dim}.")
        directions = spheres.uniform(positive(num_directions, "num_directions"), shape.dim, **like)
        thresholds = even_thresholds(positive(num_thresholds, "num_thresholds"), radius_of(shape, other), **like)

        def values(scale: float) -> Tensor:
            return ect(other, directions, thresholds, scale=scale)[0]

    soft = min(own_scale, soft_scale(float(thresholds.abs().max())))
    divisor = peak(values(math.inf))
    return Objective(
        values=lambda scale: values(scale).to(shape.points) / divisor,
        divisor=divisor,
        num_points=len(shape.points),
        directions=directions,
        thresholds=thresholds,
        scales=scale_schedule(scales, soft, soft, limit=own_scale),
        center=shape.points.new_zeros(shape.dim),
    )


def _stage(complex: Complex, objective: Objective, scale: float, on_sphere: bool) -> Stage:
    difference = objective.difference(scale)
    return Stage(scale, lambda weight: difference(complex, _directions(weight, on_sphere)).square().mean())


def _directions(weight: Tensor, on_sphere: bool) -> Tensor:
    return torch.nn.functional.normalize(weight, dim=1) if on_sphere else weight


def _errors(complex: Complex, objective: Objective, directions: Tensor) -> Tensor:
    """``[T]``: mean squared error of the curve of each direction."""
    return objective.difference(objective.scales[-1])(complex, directions).square().mean(dim=1)


def _move_to_candidates(complex: Complex, objective: Objective, directions: Tensor) -> Tensor | None:
    """Move directions to candidates with less than half their error; ``None`` if there are none."""
    scale, dim = objective.scales[-1], directions.shape[1]
    count = NUM_CANDIDATES if dim <= 2 else 4 * NUM_CANDIDATES
    candidates = spheres.uniform(count, dim, device=directions.device, dtype=directions.dtype)
    curves = ect(complex, candidates, objective.thresholds, scale=scale)[0] / objective.divisor
    distances = torch.cdist(objective.values(scale), curves, compute_mode="donot_use_mm_for_euclid_dist")  # [T, candidates]
    errors, nearest = (distances.square() / len(objective.thresholds)).min(dim=1)
    better = errors < 0.5 * _errors(complex, objective, directions)
    return torch.where(better[:, None], candidates[nearest], directions) if bool(better.any()) else None


def _check_start(start: Tensor, count: int, dim: int) -> Tensor:
    check_floating(start, "start")
    if start.shape != (count, dim):
        hint = " Did you pass it transposed?" if start.shape == (dim, count) else ""
        raise ValueError(
            f"start must have one direction per row of the target, shape [{count}, {dim}], got {list(start.shape)}.{hint}"
        )
    check_finite(start, "start")
    return start.detach()
