"""Clouds with fewer points."""

from __future__ import annotations

import torch
from torch import Tensor

from ._validation import positive
from .complexes import Complex


def thin(clouds: Complex, num_points: int, *, at_random: bool = False) -> Complex:
    """The first so many points of each cloud, or some that torch's random numbers choose; all where there are no more.

    >>> thin(Complex(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), batch=torch.tensor([0, 0, 0, 1])), 2).points.flatten()
    tensor([1., 2., 4.])
    """
    positive(num_points, "num_points")
    if clouds.max_dim > 0:
        raise ValueError(f"num_points is for clouds of points, whose vertices hold nothing together, got {clouds}.")
    batch = clouds.batch
    order = _shuffled(batch) if at_random else torch.arange(len(batch), device=clouds.device)
    rank = torch.arange(len(batch), device=clouds.device) - clouds.offsets[0][batch]
    kept = order[rank < num_points].sort().values
    weights = None if clouds.weights is None else [clouds.weights[0][kept]]
    return Complex(clouds.points[kept], weights=weights, batch=batch[kept], num_complexes=clouds.num_complexes)


def _shuffled(batch: Tensor) -> Tensor:
    """The indices of all points, those of each cloud in random order."""
    anyhow = torch.randperm(len(batch), device=batch.device)
    return anyhow[batch[anyhow].argsort(stable=True)]
