"""How many thresholds and directions it takes until those in between say nothing new."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .. import directions as spheres
from ..complexes import Complex
from ..functional import ect
from ..grid import thresholds as even_thresholds

FEWEST, MOST = 4, 512
"""Of directions, and of thresholds, that are tried."""

_PROBES = 64  # directions in between
_LOOK = (31, 65)  # directions and thresholds of the first look at the shapes


class Yardstick(NamedTuple):
    """What an error is compared with, and how it is called."""

    value: float
    name: str


class Sampled:
    """One shape, whose curves are measured in units of their mean absolute value."""

    def __init__(self, complex: Complex, radius: float) -> None:
        self.complex, self.radius, self.unit = complex, radius, 1.0
        self.first_look = self.curves(_spread(_LOOK[0], complex.dim), _LOOK[1])
        self.unit = float(self.first_look.abs().mean()) or 1.0
        self.first_look /= self.unit

    def curves(self, directions: Tensor, count: int, scale: float = math.inf) -> Tensor:
        """``[T, H]`` on so many thresholds."""
        thresholds = even_thresholds(count, self.radius, dtype=torch.float64)
        return ect(self.complex, directions, thresholds, scale=scale)[0] / self.unit


def yardstick_of(shapes: Sequence[Sampled]) -> Yardstick:
    """The mean difference between two of the shapes, or the mean value of the curves, which is 1, if that is less."""
    looks = torch.stack([shape.first_look.flatten() for shape in shapes])
    pairs = max(1, len(shapes) * (len(shapes) - 1))
    difference = float(torch.cdist(looks, looks, p=1).sum()) / looks.shape[1] / pairs
    # Equal but for rounding is equal: of several copies of a shape there is no difference to compare with.
    if 1e-6 < difference < 1:
        return Yardstick(difference, "the mean difference between shapes")
    return Yardstick(1.0, "the mean value of the curves")


def choose_thresholds(shapes: Sequence[Sampled], yardstick: Yardstick, tolerance: float) -> tuple[int, str]:
    """The number of thresholds, and the reason for it."""
    directions = _spread(_LOOK[0], shapes[0].complex.dim)

    def error(count: int) -> float:
        """Of the values halfway between neighbouring thresholds, from the mean of the two."""
        errors = []
        for shape in shapes:
            fine = shape.curves(directions, 2 * count - 1)
            errors.append(float((fine[:, 1::2] - (fine[:, :-1:2] + fine[:, 2::2]) / 2).abs().mean()))
        return sum(errors) / len(errors) / yardstick.value

    return _double(error, yardstick, tolerance, "halfway between two thresholds a curve", first=2 * FEWEST)


def choose_directions(shapes: Sequence[Sampled], count: int, yardstick: Yardstick, tolerance: float) -> tuple[int, str]:
    """The number of directions on ``count`` thresholds, and the reason for it."""
    dim = shapes[0].complex.dim
    if dim == 1:
        return 2, "On the line there are but two directions."
    scale = 4 / (2 * shapes[0].radius / (count - 1))

    def error(number: int) -> float:
        """Of the curves of directions in between, from the mean of those of the nearest ones, weighted by closeness."""
        directions, probes = _spread(number, dim), _somewhere(dim)
        near = (probes @ directions.T).clamp(-1, 1).topk(min(dim, number), dim=1)
        closeness = 1 / near.values.arccos().clamp(min=1e-9)
        shares = (closeness / closeness.sum(dim=1, keepdim=True))[..., None]
        errors = []
        for shape in shapes:
            known, found = shape.curves(directions, count, scale), shape.curves(probes, count, scale)
            errors.append(float((found - (known[near.indices] * shares).sum(dim=1)).abs().mean()))
        return sum(errors) / len(errors) / yardstick.value

    return _double(error, yardstick, tolerance, "a curve between neighbouring directions", first=FEWEST)


def _double(error: Callable[[int], float], yardstick: Yardstick, tolerance: float, what: str, *, first: int) -> tuple[int, str]:
    """The first number of those doubled for which the error is within the tolerance, and the sentence about it."""
    count, before = first, None
    now = error(count)
    while now > tolerance and count < MOST:
        count, before = 2 * count, now
        now = error(count)
    found = f"With {count} {what} is {percent(now)} off what they predict"
    if now > tolerance:
        return (
            count,
            f"{found}, of {yardstick.name}: more than the {percent(tolerance)} allowed, but this is the most that is tried.",
        )
    less = "" if before is None else f", with {count // 2} {percent(before)}"
    return count, f"{found}{less} ({percent(tolerance)} of {yardstick.name} are allowed)."


def _spread(count: int, dim: int) -> Tensor:
    return spheres.uniform(count, dim, dtype=torch.float64)


def _somewhere(dim: int) -> Tensor:
    """Directions without order, always the same: halfway between evenly spread ones a regular shape may look the same."""
    return spheres.random(_PROBES, dim, torch.Generator().manual_seed(0), dtype=torch.float64)


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.1234), percent(0.01234)
    ('12.3 %', '1.2 %')
    """
    return f"{100 * share:.3g} %" if share >= 0.1 else f"{100 * share:.2g} %"
