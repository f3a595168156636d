"""What a fit found, and how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ..complexes import Complex
from .descent import Course, Descent, Stopped
from .objective import Goal


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found, and how it went.

    Attributes:
        shape: The fitted shape, in the coordinates of the target; of :func:`fit_directions` the given one.
        directions: ``[T, dim]``, those that the transforms were compared in; of :func:`fit_directions` the fitted ones.
        thresholds: ``[H]``. Heights are those of ``(points - centre) / radius``.
        centre, radius: ``[dim]`` and a number.
        start_loss, loss: Mean squared difference of the normalised transforms before and after, both at the last scale
            and without extra terms, so that one can be divided by the other.
        history: ``[steps]``, the loss at every step, extra terms included, each at the scale of its step.
        scales: ``[steps]``.
        stopped: ``"steps"`` (all were made), ``"tolerance"`` (the loss became that small), or, with a warning and the best
            state kept, ``"diverged"`` or ``"no improvement"``.
        restart_losses: The loss that each start came to; the best one is kept.
        settings: What it was called with, defaults filled in; and ``best_learning_rate``, that of the descent that was kept,
            which is larger than ``learning_rate`` where points were moved at random before it.
    """

    shape: Complex
    directions: Tensor
    thresholds: Tensor
    centre: Tensor
    radius: float
    start_loss: float
    loss: float
    history: Tensor
    scales: Tensor
    stopped: Stopped
    restart_losses: tuple[float, ...]
    settings: Mapping[str, Any]


def found(
    goal: Goal,
    shape: Complex,
    directions: Tensor,
    best: Course,
    courses: Sequence[Course],
    how: Descent,
    settings: Mapping[str, Any],
) -> Fit:
    """The best course as a result."""
    return Fit(
        shape=shape,
        directions=directions,
        thresholds=goal.thresholds,
        centre=goal.centre,
        radius=goal.radius,
        start_loss=best.start_loss,
        loss=best.loss,
        history=torch.tensor(best.losses),
        scales=torch.tensor(best.scales),
        stopped=best.stopped,
        restart_losses=tuple(course.loss for course in courses),
        settings={
            "num_points": goal.num_points,
            "num_directions": len(directions),
            "num_thresholds": len(goal.thresholds),
            "scales": goal.scales,
            **asdict(how),
            "best_learning_rate": best.learning_rate,
            **settings,
        },
    )
