"""Gradient descent from soft to sharp scales: the loop that all fits share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .._validation import number, positive, positive_number

OptimizerName = Literal["adam", "lbfgs"]
OptimizerFactory = Callable[..., torch.optim.Optimizer]
StopReason = Literal["steps", "tolerance", "diverged", "no improvement"]
Callback = Callable[[int, float, Tensor], None]
Loss = Callable[[Tensor], Tensor]

DIVERGED = 10.0  # coordinates this many times larger than at the start, or than the largest height


class Stage(NamedTuple):
    """A scale, and the loss at that scale as a function of the fitted tensor."""

    scale: float
    loss: Loss


@dataclass(frozen=True)
class DescentOptions:
    """Options of gradient descent.

    Args:
        steps: Number of steps, divided equally among the stages.
        learning_rate: Step size, as a fraction of the height ``4 / scale`` over which the sigmoid rises. Steps shrink as the
            transform becomes sharper, because gradients then reach less far.
        optimizer: ``"adam"``, ``"lbfgs"`` (for few points and high precision; it ignores ``learning_rate``), or a function of
            parameters and ``lr`` that returns a ``torch.optim.Optimizer``.
        tolerance: A stage ends when the loss is this small.
    """

    steps: int
    learning_rate: float
    optimizer: OptimizerName | OptimizerFactory = "adam"
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        positive(self.steps, "steps")
        positive_number(self.learning_rate, "learning_rate", finite=True)
        number(self.tolerance, "tolerance", least=0)
        if not callable(self.optimizer) and self.optimizer not in get_args(OptimizerName):
            raise ValueError(
                f"optimizer must be one of {', '.join(get_args(OptimizerName))} or a function of parameters and lr, "
                f"got {self.optimizer!r}."
            )

    def make_optimizer(self, state: Tensor, scale: float) -> torch.optim.Optimizer:
        """An optimizer of the state, with a step size that suits the scale."""
        if self.optimizer == "lbfgs":
            return torch.optim.LBFGS(
                [state], lr=1, max_iter=1, history_size=20, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
            )
        lr = self.learning_rate * 4 / scale
        if callable(self.optimizer):
            return self.optimizer([state], lr=lr)
        # The gradient of one point of thousands is tiny: with the default eps of 1e-8, steps would shrink with their number.
        return torch.optim.Adam([state], lr=lr, betas=(0.9, 0.99), eps=1e-16)


class Descent(NamedTuple):
    """The result of one descent."""

    state: Tensor
    start_loss: float  # this and the next at the last scale, without regularization
    loss: float
    losses: list[float]  # one per step, at the scale of that step
    scales: list[float]
    stopped: StopReason
    learning_rate: float


def descend(
    start: Tensor, stages: Sequence[Stage], plain_loss: Loss, options: DescentOptions, *, radius: float, callback: Callback
) -> Descent:
    """Minimize the loss of each stage in turn, starting from the best state of the previous one.

    Losses at different scales are not comparable, so the result is the best state of the last stage, or the start if that is
    better. The descent ends early, with the best state of that stage, when the loss or the state is not finite, or the state
    lies far outside both ``radius`` and its start. ``plain_loss`` is the last loss without regularization, for the result.
    """
    state = start.detach().clone().requires_grad_()
    limit = DIVERGED * max(radius, float(start.abs().max()))
    losses: list[float] = []
    scales: list[float] = []
    stopped: StopReason = "steps"
    for i, stage in enumerate(stages):
        steps = options.steps * (i + 1) // len(stages) - options.steps * i // len(stages)
        before = len(losses)
        stopped = _run_stage(state, stage, options, steps, limit, losses, callback)
        scales += [stage.scale] * (len(losses) - before)
        if stopped == "diverged":
            break
    with torch.no_grad():
        first, last = (float(stages[-1].loss(tensor)) for tensor in (start, state))
        if not last < first and first > options.tolerance:
            stopped = stopped if stopped == "diverged" else "no improvement"
            state = start
        start_loss, loss = (float(plain_loss(tensor)) for tensor in (start, state))
    return Descent(state.detach(), start_loss, loss, losses, scales, stopped, options.learning_rate)


def warn_on_failure(stopped: StopReason, steps: int, learning_rate: float) -> None:
    """Warn if a fit diverged or did not improve."""
    if stopped in ("diverged", "no improvement"):
        what = f"diverged at step {steps}" if stopped == "diverged" else f"did not improve on its start in {steps} steps"
        warnings.warn(
            f"The fit {what}; the best state is kept. Try a learning_rate smaller than {learning_rate:g}.",
            RuntimeWarning,
            stacklevel=3,
        )


def _run_stage(
    state: Tensor, stage: Stage, options: DescentOptions, steps: int, limit: float, losses: list[float], callback: Callback
) -> Literal["steps", "tolerance", "diverged"]:
    """Run the steps of one stage, and leave its best state in ``state``."""
    optimizer = options.make_optimizer(state, stage.scale)
    with torch.no_grad():
        first = lowest = float(stage.loss(state))
    best = state.detach().clone()
    unit = first if first > 0 else 1.0  # the optimizer sees a loss that starts at 1, whatever the number of points

    def keep(loss: float) -> None:
        nonlocal lowest
        if loss < lowest:
            lowest = loss
            best.copy_(state.detach())

    def closure() -> float:
        optimizer.zero_grad()
        loss = stage.loss(state)
        (loss / unit).backward()
        value = float(loss.detach())
        keep(value)
        return value / unit

    stopped: Literal["steps", "tolerance", "diverged"] = "steps" if math.isfinite(first) else "diverged"
    for _ in range(steps if math.isfinite(first) else 0):
        loss = unit * optimizer.step(closure)  # of the state before the step
        losses.append(loss)
        callback(len(losses), loss, state.detach())
        if not (math.isfinite(loss) and float(state.detach().abs().max()) < limit):
            stopped = "diverged"
            break
        if loss <= options.tolerance:
            stopped = "tolerance"
            break
    else:
        with torch.no_grad():
            keep(float(stage.loss(state)))
    with torch.no_grad():
        state.copy_(best)
    return stopped
