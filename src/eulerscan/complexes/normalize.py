"""Normalization: of coordinates before a transform, and of the transform afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from .._validation import check_choice
from .centroids import centroids, nonzero, segment_max
from .packed import Packed

Normalize = Literal["unit_ball", "center", "vertices"]
"""``"unit_ball"`` centers a shape at its centroid and scales it to largest norm 1; ``"center"`` only centers it. The centroid
is that of the shape itself and does not depend on its mesh. ``"vertices"`` is the unit ball about the mean of the vertices."""

DivideBy = Literal["vertices", "simplices", "peak"]
"""The transform of a shape is divided by its number of vertices or simplices, or by its largest absolute value."""


def normalized(packed: Packed, batch: Tensor, simplices: Sequence[Tensor], normalize: Normalize) -> Tensor:
    """Coordinates ``[V, dim]``, each complex centered or in the unit ball. Batch and simplices as in :class:`Complex`."""
    check_choice(normalize, "normalize", get_args(Normalize), optional=True)
    offsets, count = packed.offsets[0], packed.offsets.shape[1] - 1
    # Relative to one of its own points, a complex of coincident points is exactly zero.
    points = packed.points - packed.points[offsets[batch]]
    centers = centroids(packed._replace(points=points), batch, simplices)
    points = points - centers.to(points.dtype)[batch]
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
