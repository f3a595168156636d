"""Packed storage of a :class:`~eulerscan.Complex`: a few flat tensors (:mod:`~eulerscan.kernels.layout`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._imports import compiled
from .._torch_internals import is_forward_mode, is_wrapped
from ..kernels.layout import split_simplices, split_weights

MOST_INT32 = 2**31 - 1
FEW = 4096  # entries below which indexing beats the start of a compiled loop
VERTEX = (0, 1)  # its kind
PLAIN = (torch.int32, torch.int64, torch.float32, torch.float64)


class Packed(NamedTuple):
    """The fields of a complex. Derive another one by name with ``_replace``.

    Attributes:
        points: ``[V, dim]``, complex after complex.
        offsets: ``[1 + L, B + 1]``: complex ``b`` has the vertices ``offsets[0, b] : offsets[0, b + 1]`` and, of level
            ``i`` (counted from 1), the simplices ``offsets[i, b] : offsets[i, b + 1]``.
        rows: Number of vertices of a simplex, for each of the L levels. A level is the simplices of one dimension.
        simplices: The levels one after the other, each ``[rows, n]`` flattened.
        weights: Of the vertices, then of the simplices of each level; ``None`` for an unweighted complex.
        dims: Dimension of the cells of each level; ``None`` if all are simplices.
    """

    points: Tensor
    offsets: Tensor
    rows: tuple[int, ...]
    simplices: Tensor
    weights: Tensor | None
    dims: tuple[int, ...] | None = None

    def map(self, floats: Callable[[Tensor], Tensor], integers: Callable[[Tensor], Tensor] | None = None) -> Packed:
        """Apply one function to points and weights, another to offsets and simplices: the same if only one is given."""
        integers = floats if integers is None else integers
        return self._replace(
            points=floats(self.points),
            offsets=integers(self.offsets),
            simplices=integers(self.simplices),
            weights=None if self.weights is None else floats(self.weights),
        )

    @property
    def kinds(self) -> tuple[tuple[int, int], ...]:
        """Dimension and number of vertices of the cells of each level."""
        return _kinds(self.rows, self.dims)


def pack(
    points: Tensor,
    simplices: Sequence[Tensor],
    weights: Sequence[Tensor] | None,
    batch: Tensor,
    num_complexes: int,
    dims: Sequence[int] | None = None,
) -> Packed:
    """Pack validated parts: levels by dimension, vertices and simplices by complex, in stable order."""
    kinds = _kinds([len(columns) for columns in simplices], dims)
    position = None
    if not _ascends(batch):
        order = batch.argsort(stable=True)
        position = torch.empty_like(order)
        position[order] = torch.arange(len(order), device=order.device)
        points = points[order]
        weights = None if weights is None else (weights[0][order], *weights[1:])
    offsets, parts, weight_parts = [_offsets(batch, num_complexes)], [], [] if weights is None else [weights[0]]
    levels = sorted(range(len(simplices)), key=lambda level: _order(kinds[level]))
    for level in levels:
        columns = simplices[level]
        owner = batch[columns[0]]
        by_complex = slice(None) if _ascends(owner) else owner.argsort(stable=True)
        offsets.append(_offsets(owner, num_complexes))
        parts.append((columns if position is None else position[columns])[:, by_complex])
        if weights is not None:
            weight_parts.append(weights[1 + level][by_complex])
    rows, dims = _rows_and_dims([kinds[level] for level in levels])
    all_weights = torch.cat(weight_parts) if weight_parts else None
    return Packed(points, torch.stack(offsets), rows, _flat(parts, points), all_weights, dims)


def join(items: Sequence[Packed]) -> Packed:
    """Concatenate packed complexes, in the given order."""
    kinds = sorted({kind for item in items for kind in item.kinds}, key=_order)
    counts = [item.offsets[:, -1].tolist() for item in items]
    levels: dict[tuple[int, int], list[Tensor]] = {kind: [] for kind in kinds}
    weights: dict[tuple[int, int], list[Tensor]] = {kind: [] for kind in (VERTEX, *kinds)}
    weighted = any(item.weights is not None for item in items)
    start, index = 0, _index_dtype(sum(count[0] for count in counts))
    for item, count in zip(items, counts, strict=True):
        for kind, columns in zip(item.kinds, split_simplices(item.simplices, item.rows, count[1:]), strict=True):
            levels[kind].append(columns.to(index) + start)
        if weighted:
            own = item.points.new_ones(sum(count)) if item.weights is None else item.weights
            for kind, weight in zip((VERTEX, *item.kinds), split_weights(own, count), strict=True):
                weights[kind].append(weight)
        start += len(item.points)
    points = torch.cat([item.points for item in items])
    sizes = torch.cat([_sizes(item, kinds) for item in items], dim=1)
    rows, dims = _rows_and_dims(kinds)
    return Packed(
        points,
        offsets_of(sizes),
        rows,
        _flat([torch.cat(level, dim=1) for level in levels.values()], points),
        torch.cat([weight for level in weights.values() for weight in level]) if weighted else None,
        dims,
    )


def take(item: Packed, chosen: Tensor) -> Packed:
    """Select complexes by index ``[n]``, in the given order, with repetition."""
    starts = item.offsets.index_select(1, chosen)
    sizes = item.offsets.index_select(1, chosen + 1) - starts
    offsets = offsets_of(sizes)
    points = ragged_gather(item.points, starts[0], sizes[0])
    counts = item.offsets[:, -1].tolist()
    # A complex has one run of the packed weights for each level, and one of the packed simplices for each row of a level.
    weights, begins = item.weights, list(itertools.accumulate(counts, initial=0))[:-1]
    if weights is not None:
        runs = torch.cat([start + begin for start, begin in zip(starts, begins, strict=True)])
        weights = ragged_gather(weights, runs, sizes.view(-1))
    simplices, levels = item.simplices, [i for i, rows in enumerate(item.rows, start=1) for _ in range(rows)]
    if levels:
        begins = list(itertools.accumulate((counts[i] for i in levels), initial=0))[:-1]
        runs = torch.cat([starts[i] + begin for i, begin in zip(levels, begins, strict=True)])
        shifts = (starts[0] - offsets[0, :-1]).repeat(len(levels))
        simplices = ragged_gather(simplices, runs, torch.cat([sizes[i] for i in levels]), shifts)
    return item._replace(points=points, offsets=offsets, simplices=simplices, weights=weights)


def _kinds(rows: Sequence[int], dims: Sequence[int] | None) -> tuple[tuple[int, int], ...]:
    return tuple(zip([r - 1 for r in rows] if dims is None else dims, rows, strict=True))


def _order(kind: tuple[int, int]) -> tuple[int, bool, int]:
    """The order of levels: by dimension, simplices before other cells, then by number of vertices."""
    dim, rows = kind
    return dim, rows != dim + 1, rows


def _rows_and_dims(kinds: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    rows, dims = tuple(rows for _, rows in kinds), tuple(dim for dim, _ in kinds)
    return rows, None if all(rows == dim + 1 for dim, rows in kinds) else dims


def _flat(levels: Sequence[Tensor], points: Tensor) -> Tensor:
    """All levels in one vector of int32, or int64 where that is too small."""
    index = _index_dtype(len(points))
    empty = torch.empty(0, dtype=index, device=points.device)
    return torch.cat([empty, *(level.reshape(-1).to(index) for level in levels)])


def _index_dtype(num_points: int) -> torch.dtype:
    return torch.int32 if num_points <= MOST_INT32 else torch.int64


def _offsets(owner: Tensor, num_complexes: int) -> Tensor:
    return offsets_of(torch.bincount(owner, minlength=num_complexes))


def offsets_of(sizes: Tensor) -> Tensor:
    """``[..., n + 1]``: where each of n parts of these sizes ``[..., n]`` begins and ends, one after another.

    >>> offsets_of(torch.tensor([3, 0, 2]))
    tensor([0, 3, 3, 5])
    """
    return torch.nn.functional.pad(sizes.cumsum(dim=-1), (1, 0))


def _sizes(item: Packed, kinds: Sequence[tuple[int, int]]) -> Tensor:
    """``[1 + L, B]``: number of simplices of each level in each complex of ``item``, 0 for levels that it lacks."""
    sizes = item.offsets.new_zeros(1 + len(kinds), item.offsets.shape[1] - 1)
    sizes[[0, *(1 + kinds.index(kind) for kind in item.kinds)]] = item.offsets.diff(dim=1)
    return sizes


def _ascends(values: Tensor) -> bool:
    return not bool((values[1:] < values[:-1]).any())


def ragged_indices(starts: Tensor, sizes: Tensor) -> Tensor:
    """Indices of slices: ``start, start + 1, ..., start + size - 1`` for each slice.

    >>> ragged_indices(torch.tensor([7, 2]), torch.tensor([3, 1]))
    tensor([7, 8, 9, 2])
    """
    ends = sizes.cumsum(dim=0)
    total = int(ends[-1]) if len(ends) else 0
    return torch.arange(total, device=starts.device) + (starts - ends + sizes).repeat_interleave(sizes, output_size=total)


def ragged_gather(values: Tensor, starts: Tensor, sizes: Tensor, shifts: Tensor | None = None) -> Tensor:
    """Concatenate the slices ``values[start : start + size]``, each minus its shift. Differentiable.

    All arguments must be on one device. Starts and sizes are not checked.

    >>> ragged_gather(torch.arange(0, 100, 10), torch.tensor([7, 2]), torch.tensor([3, 1]), torch.tensor([1, 2]))
    tensor([69, 79, 89, 18])
    """
    width = values[:1].numel() if len(values) else 0
    total = int(sizes.sum())
    simple = (
        total * width > FEW
        and values.device.type == "cpu"
        and values.dtype in PLAIN
        and values.is_contiguous()
        and not values.requires_grad
        and not torch.compiler.is_compiling()
    )
    if not simple or is_forward_mode() or is_wrapped(values):
        found = values[ragged_indices(starts, sizes)]
        return found if shifts is None else found - shifts.to(values.dtype).repeat_interleave(sizes, output_size=total)
    # One ordered pass over memory, without indices as long as the result, is several times faster.
    result = values.new_empty(total, *values.shape[1:])
    shifts = torch.zeros_like(starts) if shifts is None else shifts
    arrays = (values.view(-1), starts * width, sizes * width, shifts, result.view(-1))
    compiled(_copy)(*(array.numpy() for array in arrays))
    return result


def _copy(
    values: NDArray[Any], starts: NDArray[np.int64], sizes: NDArray[np.int64], shifts: NDArray[np.int64], result: NDArray[Any]
) -> None:
    end = 0
    for run in range(len(starts)):
        begin, end = end, end + sizes[run]
        source, target = values[starts[run] : starts[run] + sizes[run]], result[begin:end]
        shift = shifts[run]
        for i in range(len(target)):
            target[i] = source[i] - shift
