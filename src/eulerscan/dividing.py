"""Transforms of shapes of different sizes, made comparable: each divided by a number of its own."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from .complexes import Complex

DivideBy = Literal["vertices", "simplices", "peak"]


def check_divide_by(divide_by: str | None) -> None:
    """One of the words, or ``None`` to divide by nothing."""
    if divide_by is not None and divide_by not in get_args(DivideBy):
        raise ValueError(f"divide_by must be None or one of {', '.join(get_args(DivideBy))}, got {divide_by!r}.")


def divided(transform: Tensor, complex: Complex, divide_by: DivideBy | None) -> Tensor:
    """The transforms ``[B, ...]`` of complexes, each divided by the number of its vertices or simplices, or by its peak.

    >>> clouds = Complex(torch.zeros(5, 1), batch=torch.tensor([0, 0, 1, 1, 1]))
    >>> divided(torch.tensor([[[0.0, 2.0]], [[0.0, 3.0]]]), clouds, "vertices")
    tensor([[[0., 1.]],
    <BLANKLINE>
            [[0., 1.]]])
    """
    if divide_by is None:
        return transform
    return transform / divisors(transform, complex, divide_by).reshape(-1, *[1] * (transform.ndim - 1))


def divisors(transform: Tensor, complex: Complex, divide_by: DivideBy) -> Tensor:
    """``[B]``: what each of the transforms is divided by, 1 where that would be nothing."""
    if divide_by == "peak":
        size = transform.abs().flatten(1).amax(dim=1)
    else:
        sizes = complex.offsets.diff(dim=1)
        size = (sizes[0] if divide_by == "vertices" else sizes.sum(dim=0)).to(transform.dtype)
    return torch.where(size > 0, size, 1.0)
