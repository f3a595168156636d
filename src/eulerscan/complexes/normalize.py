"""Normalization: of coordinates before a transform, and of the transform afterwards."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from .._validation import check_choice

Normalize = Literal["unit_ball", "center"]
"""``"unit_ball"`` centers a shape and scales it to largest norm 1; ``"center"`` only centers it."""

DivideBy = Literal["vertices", "simplices", "peak"]
"""The transform of a shape is divided by its number of vertices or simplices, or by its largest absolute value."""


def normalized(points: Tensor, offsets: Tensor, batch: Tensor, normalize: Normalize) -> Tensor:
    """Center each cloud of a batch, or move it to the unit ball.

    ``offsets [B + 1]`` separates the clouds, and ``batch [V]`` is the cloud of each point.
    """
    check_choice(normalize, "normalize", get_args(Normalize), optional=True)
    count = len(offsets) - 1
    # Relative to one of its own points, a cloud of coincident points is exactly zero.
    points = points - points[offsets[batch]]
    wide = torch.promote_types(points.dtype, torch.float32)  # a sum in half precision would overflow
    sums = points.new_zeros(count, points.shape[1], dtype=wide).index_add(0, batch, points.to(wide))
    points = points - (sums / offsets.diff().clamp(min=1).unsqueeze(1)).to(points.dtype)[batch]
    if normalize == "center":
        return points
    # Twice, since norms of very large or very small coordinates would overflow or vanish.
    points = points / nonzero(segment_max(points.abs().amax(dim=1), batch, count))[batch, None]
    return points / nonzero(segment_max(torch.linalg.vector_norm(points, dim=1), batch, count))[batch, None]


def divisors(transform: Tensor, offsets: Tensor, divide_by: DivideBy) -> Tensor:
    """``[B]``: what each transform ``[B, ...]`` is divided by; 1 instead of 0. ``offsets [1 + L, B + 1]`` are the complex's."""
    if divide_by == "peak":
        return nonzero(transform.abs().flatten(1).amax(dim=1))
    sizes = offsets.diff(dim=1)
    return nonzero((sizes[0] if divide_by == "vertices" else sizes.sum(dim=0)).to(transform.dtype))


def divided(transform: Tensor, offsets: Tensor, divide_by: DivideBy | None) -> Tensor:
    """Divide the transform ``[B, ...]`` of each complex by its :func:`divisors`.

    >>> sizes = torch.tensor([[0, 2, 5]])  # two clouds, of 2 and of 3 points
    >>> divided(torch.tensor([[[0.0, 2.0]], [[0.0, 3.0]]]), sizes, "vertices").tolist()
    [[[0.0, 1.0]], [[0.0, 1.0]]]
    """
    if divide_by is None:
        return transform
    return transform / divisors(transform, offsets, divide_by).reshape(-1, *[1] * (transform.ndim - 1))


def segment_max(values: Tensor, batch: Tensor, count: int) -> Tensor:
    """``[count]``: the largest of the non-negative values ``[V]`` in each segment, 0 for an empty one."""
    largest: Tensor = values.new_zeros(count).scatter_reduce(0, batch, values, "amax")
    return largest


def nonzero(values: Tensor) -> Tensor:
    """The values, with 1 in place of 0, to divide by."""
    return torch.where(values > 0, values, 1.0)
