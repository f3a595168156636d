"""The transform as in equation 7 of the paper: one sigmoid for every simplex, direction and threshold.

Slow and memory-hungry, but plain: every other kernel must equal it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .layout import heights_of, levels


def ect(
    points: Tensor,
    directions: Tensor | None,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
) -> Tensor:
    """Euler characteristic transform ``[B, T, H]``. The arguments are those of :mod:`.layout`."""
    heights = heights_of(points, directions, offsets)  # [V, T]
    result = heights.new_zeros(offsets.shape[1] - 1, heights.shape[1], len(thresholds))
    for level in levels(weights, simplices, offsets, rows, dims):
        tops = heights[level.vertices].max(dim=0).values  # [n, T]
        above = thresholds - tops.unsqueeze(-1)  # [n, T, H]
        counted = (above >= 0).to(above.dtype) if torch.isinf(scale) else torch.sigmoid(scale * above)
        if level.weights is not None:
            counted = counted * level.weights[:, None, None]
        result = result.index_add(0, level.owner, counted, alpha=level.sign)
    return result
