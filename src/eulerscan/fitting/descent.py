"""Gradient descent from soft to sharp: the loop that all fits share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from .._validation import positive

Optimiser = Literal["adam", "lbfgs"]
MakeOptimiser = Callable[..., torch.optim.Optimizer]
Stopped = Literal["steps", "tolerance", "diverged", "no improvement"]
Report = Callable[[int, float, Tensor], None]
Loss = Callable[[Tensor], Tensor]

FAR = 10.0  # a state this many times further out than where it began, or than the heights looked at, will not come back


class Stage(NamedTuple):
    """One scale, and the loss at that scale as a function of what is fitted."""

    scale: float
    loss: Loss


@dataclass(frozen=True)
class Descent:
    """How to go down.

    Args:
        steps: In all; every stage has an equal part of them.
        learning_rate: Length of a step, as a fraction of the height ``4 / scale`` over which the sigmoid rises. Steps become
            shorter as the transform becomes sharper: a longer one would jump over what a gradient can see.
        optimiser: ``"adam"``, ``"lbfgs"`` (few points and a last bit of precision; it has a step length of its own), or a
            function of parameters and ``lr`` that returns a ``torch.optim.Optimizer``.
        tolerance: A stage ends where the loss is this small.
    """

    steps: int
    learning_rate: float
    optimiser: Optimiser | MakeOptimiser = "adam"
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        positive(self.steps, "steps")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive and finite, got {self.learning_rate}.")
        if not self.tolerance >= 0:
            raise ValueError(f"tolerance must not be negative, got {self.tolerance}.")
        if not callable(self.optimiser) and self.optimiser not in get_args(Optimiser):
            raise ValueError(
                f"optimiser must be one of {', '.join(get_args(Optimiser))} or a function of parameters and lr, "
                f"got {self.optimiser!r}."
            )

    def make(self, state: Tensor, scale: float) -> torch.optim.Optimizer:
        """An optimiser of the state, with the length of a step that suits the scale."""
        if self.optimiser == "lbfgs":
            return torch.optim.LBFGS(
                [state], lr=1, max_iter=1, history_size=20, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
            )
        lr = self.learning_rate * 4 / scale
        if callable(self.optimiser):
            return self.optimiser([state], lr=lr)
        # One point of thousands changes the loss by little: with the usual eps of 1e-8 steps would shrink as points grow more.
        return torch.optim.Adam([state], lr=lr, betas=(0.9, 0.99), eps=1e-16)


class Course(NamedTuple):
    """Where a descent came to, and how."""

    state: Tensor
    start_loss: float  # this and the next without extra terms, at the last scale
    loss: float
    losses: list[float]  # one a step, at the scale of that step
    scales: list[float]
    stopped: Stopped
    learning_rate: float


def descend(start: Tensor, stages: Sequence[Stage], plain: Loss, how: Descent, *, reach: float, report: Report) -> Course:
    """Go down from ``start`` through all stages, each from the best state of the one before.

    Losses at different scales cannot be compared, so the best state is that of the last stage, if it is better than the start
    there. Where the loss or the state is no longer finite, or the state is far beyond its start and ``reach``, the descent
    ends with the best state of that stage. ``plain`` is the last loss without extra terms, which is what the course reports.
    """
    state = start.detach().clone().requires_grad_()
    far = FAR * max(reach, float(start.abs().max()))
    losses: list[float] = []
    scales: list[float] = []
    stopped: Stopped = "steps"
    for number, stage in enumerate(stages):
        steps = how.steps * (number + 1) // len(stages) - how.steps * number // len(stages)
        before = len(losses)
        stopped = _descend_at(state, stage, how, steps, far, losses, report)
        scales += [stage.scale] * (len(losses) - before)
        if stopped == "diverged":
            break
    with torch.no_grad():
        at_start, at_end = (float(stages[-1].loss(one)) for one in (start, state))
        if not at_end < at_start and at_start > how.tolerance:
            stopped = stopped if stopped == "diverged" else "no improvement"
            state = start
        return Course(state.detach(), float(plain(start)), float(plain(state)), losses, scales, stopped, how.learning_rate)


def warn_of(stopped: Stopped, steps: int, how: Descent) -> None:
    """Say so where a fit did not end as it should."""
    if stopped in ("diverged", "no improvement"):
        what = f"diverged at step {steps}" if stopped == "diverged" else f"found nothing better than its start in {steps} steps"
        warnings.warn(
            f"The fit {what}; the best state is kept. A learning_rate smaller than {how.learning_rate:g} may help.",
            RuntimeWarning,
            stacklevel=3,
        )


def _descend_at(
    state: Tensor, stage: Stage, how: Descent, steps: int, far: float, losses: list[float], report: Report
) -> Literal["steps", "tolerance", "diverged"]:
    """Go down at one scale, and leave the best that was met in ``state``."""
    optimiser = how.make(state, stage.scale)
    with torch.no_grad():
        first = best = float(stage.loss(state))
    kept = state.detach().clone()
    unit = first if first > 0 else 1.0  # so that the optimiser sees a loss that begins at 1, however many points share it

    def keep(loss: float) -> None:
        nonlocal best
        if loss < best:
            best = loss
            kept.copy_(state.detach())

    def evaluate() -> float:
        optimiser.zero_grad()
        loss = stage.loss(state)
        (loss / unit).backward()
        value = float(loss.detach())
        keep(value)
        return value / unit

    stopped: Literal["steps", "tolerance", "diverged"] = "steps" if math.isfinite(first) else "diverged"
    for _ in range(steps if math.isfinite(first) else 0):
        loss = unit * optimiser.step(evaluate)  # that of the state before the step
        losses.append(loss)
        report(len(losses), loss, state.detach())
        if not (math.isfinite(loss) and float(state.detach().abs().max()) < far):
            stopped = "diverged"
            break
        if loss <= how.tolerance:
            stopped = "tolerance"
            break
    else:
        with torch.no_grad():
            keep(float(stage.loss(state)))
    with torch.no_grad():
        state.copy_(kept)
    return stopped
