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
    if points.is_cpu:
        with torch.autocast("cpu", enabled=False):
            return points @ directions.T
    # A matrix product of a GPU may round to TF32, which moves heights across thresholds.
    heights = points[:, :1] * directions[:, 0]
    for axis in range(1, points.shape[1]):
        heights = torch.addcmul(heights, points[:, axis : axis + 1], directions[:, axis])
    return heights


def owners(offsets: Tensor, count: int) -> Tensor:
    """``[count]``: index of the complex of each entry."""
    complexes = torch.arange(offsets.shape[0] - 1, device=offsets.device)  # len() would be a constant in exported programs
    return torch.repeat_interleave(complexes, offsets.diff(), output_size=count)


def split_weights(weights: Tensor, counts: Sequence[int]) -> tuple[Tensor, ...]:
    """The weights of each level, as views."""
    return torch.split(weights, list(counts))


def split_simplices(simplices: Tensor, rows: Sequence[int], counts: Sequence[int]) -> tuple[Tensor, ...]:
    """The simplices of each level ``[rows, n]``, as views."""
    if not rows:  # an exported program with a split into no parts cannot be loaded
        return ()
    parts = torch.split(simplices, [r * n for r, n in zip(rows, counts, strict=True)])
    return tuple(part.view(r, n) for part, r, n in zip(parts, rows, counts, strict=True))


def signs_of(rows: Sequence[int], dims: Sequence[int] | None) -> list[int]:
    """What a cell of each level counts: 1 if its dimension is even, else -1."""
    return [-1 if dim % 2 else 1 for dim in ([r - 1 for r in rows] if dims is None else dims)]


def counts_of(num_points: int, simplices: Tensor, offsets: Tensor, rows: Sequence[int]) -> list[int]:
    """Number of vertices, then of simplices of each level."""
    if len(rows) < 2:  # known from shapes: the host need not wait for the device, and compiled programs may ask
        return [num_points, *(simplices.shape[0] // r for r in rows)]
    counts: list[int] = offsets[:, -1].tolist()
    return counts


def levels(
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
    *,
    num_points: int | None = None,
) -> Iterator[Level]:
    """The levels of a packed complex, the vertices first. With the number of points, fewer values are read."""
    counts = (
        [int(n) for n in offsets[:, -1].tolist()] if num_points is None else counts_of(num_points, simplices, offsets, rows)
    )
    vertices = torch.arange(counts[0], device=simplices.device)[None]
    tensors = (vertices, *split_simplices(simplices, rows, counts[1:]))
    weighted = [None] * len(tensors) if weights is None else split_weights(weights, counts)
    signs = [1, *signs_of(rows, dims)]
    for level, (tensor, weight, sign) in enumerate(zip(tensors, weighted, signs, strict=True)):
        yield Level(tensor, owners(offsets[level], counts[level]), weight, sign)


def check_inputs(
    points: Tensor,
    directions: Tensor | None,
    thresholds: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
) -> None:
    """Check dtypes, devices and shapes, without a look at values."""
    floats = [t for t in (points, directions, thresholds, weights) if t is not None]
    if points.dtype not in (torch.float32, torch.float64) or any(t.dtype != points.dtype for t in floats):
        raise TypeError(
            "points, directions, thresholds and weights must share the dtype float32 or float64, "
            f"got {', '.join(str(t.dtype) for t in floats)}."
        )
    if offsets.dtype != torch.int64 or simplices.dtype not in (torch.int32, torch.int64):
        raise TypeError(
            f"offsets must have the dtype int64, and simplices int32 or int64, got {offsets.dtype} and {simplices.dtype}."
        )
    tensors = [*floats, simplices, offsets]
    if any(t.device != points.device for t in tensors):
        raise ValueError(
            f"All tensors must be on {points.device} like points, got {', '.join(str(t.device) for t in tensors)}."
        )
    shapes, axes = [list(t.shape) for t in tensors], [t.ndim for t in (points, thresholds, simplices, offsets)]
    wrong = axes != [2, 1, 1, 2] or offsets.shape[1] < 1 or (weights is not None and weights.ndim != 1)
    if not wrong and directions is not None:
        *sets, _, dim = directions.shape if directions.ndim in (2, 3) else (0, 0, 0, 0)
        wrong = dim != points.shape[1] or dim == 0 or sets not in ([], [offsets.shape[1] - 1])
    if wrong:
        raise ValueError(
            "points, directions, thresholds, weights, simplices and offsets must have shapes [V, dim], [T, dim], [H], [W], [N] "
            f"and [1 + L, B + 1], got {', '.join(map(str, shapes))}."
        )
    if dims is not None and len(dims) != len(rows):
        raise ValueError(f"dims must have one entry a level, {len(rows)}, got {len(dims)}.")
    if len(offsets) != 1 + len(rows) or any(r < 1 for r in rows) or (len(rows) == 0 and len(simplices)):
        raise ValueError("offsets must split points, simplices and weights into complexes, in ascending order.")
    if weights is not None:
        least = len(points) + (len(simplices) // rows[0] if len(rows) == 1 else 0)
        if len(weights) < least or (len(rows) < 2 and len(weights) > least):
            raise ValueError(f"weights must have one number per simplex, vertices included, got {len(weights)}.")
