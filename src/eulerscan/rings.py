"""Directions from everywhere, in an order that tells without a search which of them is nearest to another."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor


class Rings:
    """About ``n`` directions in rings around the last axis, as far from ring to ring as along a ring; in the plane one ring.

    Attributes:
        directions: ``[N, dim]``, of unit length.
        step: The angle between neighbours.

    Example:
        >>> rings = Rings(4, 2)
        >>> rings.nearest(torch.tensor([[1.0, 0.1], [0.1, -1.0]], dtype=torch.float64))
        tensor([0, 3])
    """

    def __init__(self, n: int, dim: int, device: torch.device | None = None) -> None:
        rings = 1 if dim == 2 else max(1, round(math.sqrt(math.pi * n / 4)))
        self.step = 2 * math.pi / n if dim == 2 else math.pi / rings
        down = math.pi * (torch.arange(rings, dtype=torch.float64, device=device) + 0.5) / rings  # angles to the last axis
        self._sizes = (2 * math.pi / self.step * down.sin()).round()
        self._begins = self._sizes.cumsum(0) - self._sizes
        ring = torch.repeat_interleave(self._sizes.long())
        around = 2 * math.pi * (torch.arange(len(ring), device=device) - self._begins[ring]) / self._sizes[ring]
        circle = torch.stack([around.cos(), around.sin()], dim=1)
        down = down[ring, None]
        self.directions = circle if dim == 2 else torch.cat([circle * down.sin(), down.cos()], dim=1)

    def nearest(self, directions: Tensor) -> Tensor:
        """``[...]``: the place of the nearest in the nearest ring, for directions ``[..., dim]`` of unit length."""
        around = torch.atan2(directions[..., 1], directions[..., 0])
        if directions.shape[-1] == 2:
            ring = torch.zeros_like(around, dtype=torch.long)
        else:
            ring = (directions[..., 2].clamp(-1, 1).acos() / self.step).long().clamp_(max=len(self._sizes) - 1)
        sizes = self._sizes[ring]
        along = (around * sizes / (2 * math.pi)).round().remainder(sizes)
        return (self._begins[ring] + along).long()


@cache
def rings(n: int, dim: int, device: torch.device) -> Rings:
    """The same for all who ask."""
    return Rings(n, dim, device)
