"""The boundary of a solid: what is visible from outside."""

from __future__ import annotations

import torch
from torch import Tensor

from .complex import Complex
from .simplices import faces, groups


def outer_triangles(complex: Complex) -> Tensor:
    """``[n]``: indices of the triangles that are a face of fewer than two tetrahedra; all triangles if there are none.

    >>> tetrahedra = Complex(torch.rand(5, 3), [torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])]).closure()
    >>> len(outer_triangles(tetrahedra)), tetrahedra.counts
    (6, (5, 9, 7, 2))
    """
    levels = {
        rows: level.long()
        for (dim, rows), level in zip(complex.packed.kinds, complex.simplices, strict=True)
        if rows == dim + 1
    }
    triangles = levels.get(3, torch.empty(3, 0, dtype=torch.int64))
    if 4 not in levels:
        return torch.arange(triangles.shape[1])
    return (occurrences(triangles, faces(levels[4])) < 2).nonzero().squeeze(1)


def occurrences(simplices: Tensor, among: Tensor) -> Tensor:
    """``[n]``: number of occurrences of each simplex ``[k, n]`` among others ``[k, m]``, up to the order of vertices.

    >>> occurrences(torch.tensor([[0, 1], [1, 2]]), torch.tensor([[1, 0, 5], [0, 1, 6]]))
    tensor([2, 0])
    """
    numbers = groups(torch.cat([simplices, among], dim=1).sort(dim=0).values)
    own, others = numbers.split([simplices.shape[1], among.shape[1]])
    return torch.bincount(others, minlength=len(numbers))[own]
