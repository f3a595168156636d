"""The grid on which curves are sampled: thresholds, the radius that they cover, and the scale that fits their step."""

from __future__ import annotations

import torch
from torch import Tensor

from ._validation import check_radius, positive, positive_number
from .complexes import Complex

MARGIN = 1.1
"""Radius over largest norm: no vertex lies on the last threshold."""


def thresholds(
    n: int, radius: float = MARGIN, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Evenly spaced heights from ``-radius`` to ``radius``, symmetric to the last bit.

    The default leaves a margin around the unit ball: a vertex of norm 1 does not lie on the last threshold.

    >>> thresholds(5, radius=1.0)
    tensor([-1.0000, -0.5000,  0.0000,  0.5000,  1.0000])
    """
    n = positive(n, "n")
    check_radius(radius)
    steps = 2 * torch.arange(n, dtype=torch.float64) - (n - 1)
    # Moved last: not every device has float64.
    return (steps * (radius / max(1, n - 1))).to(device=device, dtype=dtype or torch.get_default_dtype())


def scale_of_step(num_thresholds: int, radius: float = MARGIN, *, steps: float = 1.0) -> float:
    """The scale at which the sigmoid rises, from 12 % to 88 %, over ``steps`` steps of the grid.

    A much steeper sigmoid leaves gradients only to the few vertices close to a threshold. With a much flatter one,
    neighboring thresholds say the same.

    >>> scale_of_step(23, radius=1.1)
    40.0
    """
    positive(num_thresholds, "num_thresholds")
    check_radius(radius)
    return 4 / (positive_number(steps, "steps") * (2 * radius / max(1, num_thresholds - 1)))


def soft_scale(radius: float = MARGIN) -> float:
    """The scale at which the paper optimizes coordinates: 8 for a radius of 1.1, inversely proportional to the radius."""
    check_radius(radius)
    return 8.8 / radius


def radius_of(*complexes: Complex) -> float:
    """The largest norm of a vertex of any of the complexes, plus the margin.

    >>> radius_of(Complex(torch.tensor([[3.0, 4.0]])), Complex(torch.tensor([[1.0]])))
    5.5
    """
    return with_margin(max((float(norm) for complex in complexes for norm in complex.largest_norms()), default=0.0))


def with_margin(norm: float) -> float:
    """The radius for shapes of this largest norm; that of the unit ball for shapes of norm 0."""
    return MARGIN * (norm or 1.0)
