"""What is seen of a solid from outside."""

from __future__ import annotations

import torch
from torch import Tensor

from .complexes import Complex
from .simplices import faces


def outer_triangles(complex: Complex) -> Tensor:
    """``[n]``: numbers of the triangles that are a face of fewer than two tetrahedra. Without tetrahedra these are all.

    Two tetrahedra that share a face hide it.

    >>> tetrahedra = Complex(torch.rand(5, 3), [torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])]).closure()
    >>> len(outer_triangles(tetrahedra)), tetrahedra.counts
    (6, (5, 9, 7, 2))
    """
    levels = {len(level): level.long() for level in complex.simplices}
    triangles = levels.get(3, torch.empty(3, 0, dtype=torch.int64))
    if 4 not in levels:
        return torch.arange(triangles.shape[1])
    found, counts = torch.unique(_keys(faces(levels[4]), complex), return_counts=True)
    keys = _keys(triangles, complex)
    place = torch.searchsorted(found, keys).clamp(max=max(0, len(found) - 1))
    hidden = (found[place] == keys) & (counts[place] > 1) if len(found) else torch.zeros_like(keys, dtype=torch.bool)
    return (~hidden).nonzero().squeeze(1)


def _keys(triangles: Tensor, complex: Complex) -> Tensor:
    """One integer a triangle, whatever the order of its vertices. It is enough for two million vertices."""
    low, middle, high = triangles.sort(dim=0).values
    keys: Tensor = (low * len(complex.points) + middle) * len(complex.points) + high
    return keys
