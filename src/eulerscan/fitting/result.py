"""The result of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ..complexes import Complex
from .descent import Descent, DescentOptions, StopReason
from .objective import Objective


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit.

    Attributes:
        shape: The fitted shape, in the coordinates of the target. For :func:`fit_directions`, the given shape.
        directions: ``[T, dim]``: directions of the transforms. For :func:`fit_directions`, the fitted ones.
        thresholds: ``[H]``, for the heights of ``(points - center) / radius``.
        center, radius: ``[dim]`` and a number.
        start_loss, loss: Mean squared difference of the normalized transforms before and after. Both are at the last scale and
            without regularization, so their ratio is meaningful.
        history: ``[steps]``: loss of every step, regularization included, at the scale of that step.
        scales: ``[steps]``: scale of every step.
        stopped: ``"steps"`` (all were made), ``"tolerance"`` (the loss became that small), or, with a warning and the best
            state kept, ``"diverged"`` or ``"no improvement"``.
        restart_losses: Final loss of every start. The best one is kept.
        settings: Arguments of the call, with defaults filled in, and ``best_learning_rate``, that of the descent that was kept:
            restarts from perturbed points use a larger one than ``learning_rate``.
    """

    shape: Complex
    directions: Tensor
    thresholds: Tensor
    center: Tensor
    radius: float
    start_loss: float
    loss: float
    history: Tensor
    scales: Tensor
    stopped: StopReason
    restart_losses: tuple[float, ...]
    settings: Mapping[str, Any]


def make_fit(
    objective: Objective,
    shape: Complex,
    directions: Tensor,
    best: Descent,
    descents: Sequence[Descent],
    options: DescentOptions,
    settings: Mapping[str, Any],
) -> Fit:
    """The result of the best of several descents."""
    return Fit(
        shape=shape,
        directions=directions,
        thresholds=objective.thresholds,
        center=objective.center,
        radius=objective.radius,
        start_loss=best.start_loss,
        loss=best.loss,
        history=torch.tensor(best.losses),
        scales=torch.tensor(best.scales),
        stopped=best.stopped,
        restart_losses=tuple(descent.loss for descent in descents),
        settings={
            "num_points": objective.num_points,
            "num_directions": len(directions),
            "num_thresholds": len(objective.thresholds),
            "scales": objective.scales,
            **asdict(options),
            "best_learning_rate": best.learning_rate,
            **settings,
        },
    )
