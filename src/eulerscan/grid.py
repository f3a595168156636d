"""How far shapes reach from the origin, and the radius that sees all of them."""

from __future__ import annotations

import torch
from torch import Tensor

from .complexes import Complex

MARGIN = 1.1
"""Times the largest norm: no vertex lies on the last threshold. It is the margin of ``thresholds()`` around the unit ball."""


def largest_norms(complex: Complex) -> Tensor:
    """``[B]``: the norm of the furthest vertex of each complex, 0 where there is none.

    >>> largest_norms(Complex(torch.tensor([[3.0, 4.0], [1.0, 0.0]])))
    tensor([5.])
    """
    norms = torch.linalg.vector_norm(complex.points, dim=1)
    largest: Tensor = norms.new_zeros(complex.num_complexes).scatter_reduce(0, complex.batch, norms, "amax")
    return largest


def radius_of(*complexes: Complex) -> float:
    """A tenth more than the largest norm of any vertex of any of the complexes.

    >>> radius_of(Complex(torch.tensor([[3.0, 4.0]])), Complex(torch.tensor([[1.0]])))
    5.5
    """
    return widened(max((float(norm) for complex in complexes for norm in largest_norms(complex)), default=0.0))


def widened(reach: float) -> float:
    """The radius for shapes that reach so far: a tenth more, or that of the unit ball where all vertices are at the origin."""
    return MARGIN * (reach or 1.0)
