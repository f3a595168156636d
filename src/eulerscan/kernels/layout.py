"""The layout of a complex in a kernel: a few flat tensors, and how to split them.

Every kernel has the signature

    ect(points, directions, thresholds, scale, weights, simplices, offsets, rows, dims) -> [B, T, H]

    points      [V, dim]       coordinates, one complex after another; heights [V, T] if there are no directions
    directions  [T, dim]       or [B, T, dim], if each complex has its own; None if the heights are given: a filtration by
                               the values of the vertices
    thresholds  [H]            ascending
    scale       []             ``inf`` for the exact transform
    weights     [V + n + ...]  of the vertices, then of the simplices of each level; None if all are one
    simplices   [...]          vertex indices of each level ``[rows, n]``, flattened; cells with vertices of any number too
    offsets     [1 + L, B + 1] complex ``b`` owns the points ``offsets[0, b] : offsets[0, b + 1]``
                               and the simplices ``offsets[i, b] : offsets[i, b + 1]`` of level ``i``
    rows        L integers     vertices per simplex of a level: 2 for edges, 3 for triangles
    dims        L integers     dimension of the cells of a level; None if all are simplices: rows - 1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Level(NamedTuple):
    """The simplices of one dimension; the vertices themselves are the first level."""

    vertices: Tensor  # [rows, n]
    owner: Tensor  # [n], index of the complex of each simplex
    weights: Tensor | None  # [n]
    sign: int


def heights_of(points: Tensor, directions: Tensor | None, offsets: Tensor) -> Tensor:
    """``[V, T]``: inner products, in the dtype of the points even under autocast; the points if heights are given."""
    if directions is None:
        return points
    if directions.ndim == 3:
        own = directions.index_select(0, owners(offsets[0], len(points)))  # [V, T, dim]
        return (points.unsqueeze(1) * own).sum(dim=-1)
    with torch.autocast(points.device.type, enabled=False):
        return points @ directions.T


def owners(offsets: Tensor, count: int) -> Tensor:
    """``[count]``: index of the complex of each entry."""
    complexes = torch.arange(len(offsets) - 1, device=offsets.device)
    return torch.repeat_interleave(complexes, offsets.diff(), output_size=count)


def split_weights(weights: Tensor, counts: Sequence[int]) -> tuple[Tensor, ...]:
    """The weights of each level, as views."""
    return torch.split(weights, list(counts))


def split_simplices(simplices: Tensor, rows: Sequence[int], counts: Sequence[int]) -> tuple[Tensor, ...]:
    """The simplices of each level ``[rows, n]``, as views."""
    parts = torch.split(simplices, [r * n for r, n in zip(rows, counts, strict=True)])
    return tuple(part.view(r, n) for part, r, n in zip(parts, rows, counts, strict=True))


def signs_of(rows: Sequence[int], dims: Sequence[int] | None) -> list[int]:
    """What a cell of each level counts: 1 if its dimension is even, else -1."""
    return [-1 if dim % 2 else 1 for dim in ([r - 1 for r in rows] if dims is None else dims)]


def levels(
    weights: Tensor | None, simplices: Tensor, offsets: Tensor, rows: Sequence[int], dims: Sequence[int] | None = None
) -> Iterator[Level]:
    """The levels of a packed complex, the vertices first."""
    counts = [int(n) for n in offsets[:, -1].tolist()]
    vertices = torch.arange(counts[0], device=simplices.device)[None]
    tensors = (vertices, *split_simplices(simplices, rows, counts[1:]))
    weighted = [None] * len(tensors) if weights is None else split_weights(weights, counts)
    signs = [1, *signs_of(rows, dims)]
    for level, (tensor, weight, sign) in enumerate(zip(tensors, weighted, signs, strict=True)):
        yield Level(tensor, owners(offsets[level], counts[level]), weight, sign)
