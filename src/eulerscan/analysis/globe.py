"""Directions from everywhere, in an order that tells without a search which of them is nearest to another."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor


class Globe:
    """About ``n`` directions on parallels as a globe has them, as far apart along a parallel as from one to the next.

    In the plane there is one, the circle.

    Attributes:
        directions: ``[N, dim]``, of unit length.
        step: The angle between neighbours.

    Example:
        >>> globe = Globe(4, 2)
        >>> globe.nearest(torch.tensor([[1.0, 0.1], [0.1, -1.0]], dtype=torch.float64))
        tensor([0, 3])
    """

    def __init__(self, n: int, dim: int, device: torch.device | None = None) -> None:
        parallels = 1 if dim == 2 else max(1, round(math.sqrt(math.pi * n / 4)))
        self.step = 2 * math.pi / n if dim == 2 else math.pi / parallels
        share = (torch.arange(parallels, dtype=torch.float64, device=device) + 0.5) / parallels
        down = math.pi * share  # the angle to the last axis
        self._sizes = (2 * math.pi / self.step * down.sin()).round()
        self._begins = self._sizes.cumsum(0) - self._sizes
        row = torch.repeat_interleave(self._sizes.long())
        around = 2 * math.pi * (torch.arange(len(row), device=device) - self._begins[row]) / self._sizes[row]
        circle = torch.stack([around.cos(), around.sin()], dim=1)
        down = down[row, None]
        self.directions = circle if dim == 2 else torch.cat([circle * down.sin(), down.cos()], dim=1)

    def nearest(self, directions: Tensor) -> Tensor:
        """``[...]``: the place of the nearest on the nearest parallel, for directions ``[..., dim]`` of unit length."""
        around = torch.atan2(directions[..., 1], directions[..., 0])
        if directions.shape[-1] == 2:
            row = torch.zeros_like(around, dtype=torch.long)
        else:
            row = (directions[..., 2].clamp(-1, 1).acos() / self.step).long().clamp_(max=len(self._sizes) - 1)
        sizes = self._sizes[row]
        along = (around * sizes / (2 * math.pi)).round().remainder(sizes)
        return (self._begins[row] + along).long()


@cache
def globe(n: int, dim: int, device: torch.device) -> Globe:
    """The same for all who ask."""
    return Globe(n, dim, device)
