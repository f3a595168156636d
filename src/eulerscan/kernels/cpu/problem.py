"""The fast algorithm on the CPU: from tensors to compiled kernels on all cores, and back.

Tasks depend on the problem alone, and their results are summed in a fixed order, so that any number of threads
gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._validation import ascending_error
from ..layout import signs_of
from ..portable import SATURATION
from . import threads
from .arguments import BAD_OFFSETS, INDEX_OUTSIDE, NOT_ASCENDING, Arguments, addresses_of, contiguous
from .backward import backward
from .forward import forward
from .histogram import histogram
from .simd import WIDTH

MIN_THREAD_WORK = 1 << 17  # comparisons, in all directions, that make a second thread worthwhile
MIN_THREAD_CELLS = 1 << 17  # to be counted, that do the same
VERTEX_WORK = 8  # comparisons that a vertex and its sigmoid cost
RANGE_WORK = 1 << 12  # comparisons of a range in one direction
MAX_RANGES = 64
ENOUGH_RANGES = 32  # to keep all cores busy without splitting the directions too
MAX_COPIES = 8  # of the gradient of the points
UNWEIGHTED = {dtype: torch.empty(1, dtype=dtype, device="cpu") for dtype in SATURATION}  # placeholder, never read
UNDIRECTED = {dtype: torch.empty(0, 0, dtype=dtype, device="cpu") for dtype in SATURATION}  # the same
FLOAT_ZEROS: dict[torch.dtype, np.floating[Any]] = {torch.float32: np.float32(0), torch.float64: np.float64(0)}
NO_FIELDS = {dtype: np.empty((0, 2 * WIDTH), type(zero)) for dtype, zero in FLOAT_ZEROS.items()}
INDEX_ZEROS: dict[torch.dtype, np.integer[Any]] = {torch.int32: np.int32(0), torch.int64: np.int64(0)}


class Problem(NamedTuple):
    """The arguments of the kernels, and how to split the work."""

    tensors: tuple[Tensor, ...]  # points, directions, thresholds, weights, simplices and offsets
    shapes: list[torch.Size]  # of the tensors
    arguments: Arguments
    shape: tuple[int, int, int]  # of the transform
    num_weights: int
    is_small: bool  # whether waking a thread would take longer than the work

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        result = self.tensors[0].new_empty(*self.shape)  # two microseconds faster than with a tuple
        num_shares = self.num_blocks if self.arguments.num_ranges < ENOUGH_RANGES and not self.is_small else 1
        self._run(forward, num_shares, result, result.data_ptr())
        return result

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        points, directions, thresholds, weights, *_ = self.tensors
        if gradient.shape != self.shape or gradient.dtype != points.dtype or not gradient.is_cpu:
            raise ValueError(
                "gradient must have the shape, dtype and device of the transform, "
                f"got {list(gradient.shape)}, {gradient.dtype} on {gradient.device}."
            )
        needs_points, needs_directions, needs_thresholds, needs_scale, needs_weights = needs
        needs_weights = needs_weights and self.num_weights > 0
        gradients = [
            torch.empty_like(points) if needs_points else None,
            torch.empty_like(directions) if needs_directions else None,
            torch.empty_like(thresholds) if needs_thresholds else None,
            points.new_empty(()) if needs_scale else None,
            torch.empty_like(weights) if needs_weights else None,
        ]
        if math.isinf(self.arguments.scale) and not needs_weights:
            return [None if g is None else g.zero_() for g in gradients]
        num_ranges = self.arguments.num_ranges
        num_shares = 1 if self.is_small else min(self.num_blocks, max(1, MAX_COPIES // num_ranges))
        lengths = (
            points.numel() if needs_points else 0,
            directions.numel() if needs_directions else 0,
            self.shape[2] + WIDTH if needs_thresholds or needs_scale else 0,
            1 if needs_thresholds or needs_scale else 0,
            self.num_weights if needs_weights else 0,
        )
        # Copies of each gradient: see backward.py.
        partials = np.zeros(
            (num_shares if directions.shape[-1] else 1) * lengths[0]
            + (1 if self.arguments.num_sets > 1 else num_ranges) * lengths[1]
            + num_shares * (num_ranges * (lengths[2] + lengths[3]) + lengths[4])
        )
        gradient = contiguous(gradient)
        addresses = tuple([0 if g is None else g.data_ptr() for g in gradients])
        self._run(backward, num_shares, (gradient, gradients), *addresses_of([gradient]), addresses, partials, lengths)
        return gradients

    def _run(self, kernel: Callable[..., int], num_shares: int, keep_alive: object, *others: Any) -> None:
        """Call a kernel; ``keep_alive`` owns the memory behind the addresses among the other arguments."""
        num_threads = 1 if self.is_small else threads.num_useful_threads(self.arguments.num_ranges * num_shares)
        owners = (self.tensors, keep_alive)
        status = threads.run(kernel, num_threads, num_shares, tuple(self.arguments), *others, keep_alive=owners)
        _raise_if_invalid(status, self.tensors[2])

    @property
    def is_current(self) -> bool:
        """Whether the tensors still have the same memory and shape."""
        same = addresses_of(self.tensors) == self.arguments.addresses
        return same and [tensor.shape for tensor in self.tensors] == self.shapes

    @property
    def num_blocks(self) -> int:
        """The number of blocks of eight directions."""
        return max(1, -(-self.shape[1] // WIDTH))


def prepare(
    points: Tensor,
    directions: Tensor | None,
    thresholds: Tensor,
    scale: float,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
    *,
    keep: bool = False,
) -> Problem:
    """Check dtypes, devices and shapes. The kernels check values.

    With ``keep``, the forward pass of a small problem saves its fields (less than 2 MB) for the backward pass, which must come
    second. Not with weights: for their gradients the backward pass overwrites the fields.
    """
    dtype = points.dtype
    is_given = directions is None  # the heights
    directions = UNDIRECTED.get(dtype, points) if directions is None else directions
    if dtype not in SATURATION or directions.dtype != dtype or thresholds.dtype != dtype:
        raise TypeError(
            "points, directions and thresholds must share the dtype float32 or float64, "
            f"got {dtype}, {directions.dtype} and {thresholds.dtype}."
        )
    num_weights = 0 if weights is None else weights.numel()
    weights = UNWEIGHTED[dtype] if weights is None else weights
    if weights.dtype != dtype:
        raise TypeError(f"weights must have the dtype {dtype} like points, got {weights.dtype}.")
    if offsets.dtype != torch.int64 or simplices.dtype not in INDEX_ZEROS:
        raise TypeError(
            f"offsets must have the dtype int64, and simplices int32 or int64, got {offsets.dtype} and {simplices.dtype}."
        )
    tensors: tuple[Tensor, ...] = (points, directions, thresholds, weights, simplices, offsets)
    shapes = [tensor.shape for tensor in tensors]  # read once, since each access costs time
    try:
        (num_points, dim), (*sets, num_directions, axes), (num_thresholds,), (count,), (num_entries,), offsets_shape = shapes
        num_levels, num_bounds = offsets_shape
    except ValueError:
        raise _shape_error(shapes) from None
    if is_given:
        num_directions = dim
    elif axes != dim or dim == 0 or (sets and sets != [num_bounds - 1]):  # no axes would mean that heights are given
        raise _shape_error(shapes)
    if not (directions.is_cpu and thresholds.is_cpu and weights.is_cpu and simplices.is_cpu and offsets.is_cpu):
        raise ValueError(
            "directions, thresholds, weights, simplices and offsets must be on the CPU like points, "
            f"got {directions.device}, {thresholds.device}, {weights.device}, {simplices.device} and {offsets.device}."
        )
    for tensor in tensors:
        if tensor.is_neg() or not tensor.is_contiguous():
            tensors = tuple(map(contiguous, tensors))
            break
    if count == 0 and num_points:  # to a kernel, no weights mean that all are one
        raise ValueError("weights must have one number per simplex, vertices included, got none.")
    work = VERTEX_WORK * num_points + num_entries // 2
    is_small = num_directions * work < MIN_THREAD_WORK
    num_complexes = max(0, num_bounds - 1)  # the kernel reports offsets without any bound
    num_ranges = max(1, min(num_complexes, MAX_RANGES, -(-work // RANGE_WORK)))
    num_sets = (num_complexes or 2) if sets else 1  # without a complex none is read
    sizes = (num_points, dim, num_directions, axes, num_thresholds, num_weights, num_entries, num_levels, num_bounds)
    float_zero, index_zero, fields = FLOAT_ZEROS[dtype], INDEX_ZEROS[simplices.dtype], NO_FIELDS[dtype]
    if keep and is_small and not num_weights:
        fields = np.empty((-(-num_directions // WIDTH) * num_points, 2 * WIDTH), fields.dtype)
    # By position, since keywords take a microsecond.
    levels = _levels(tuple(rows), None if dims is None else tuple(dims))
    arguments = Arguments(
        addresses_of(tensors), sizes, float_zero, index_zero, levels, num_sets, num_ranges, scale, SATURATION[dtype], fields
    )
    shape = (num_complexes, num_directions, num_thresholds)
    return Problem(tensors, shapes, arguments, shape, num_weights, is_small)


def coefficients(points: Tensor, directions: Tensor | None, weights: Tensor | None, *layout: Any) -> tuple[Tensor, Tensor]:
    """Heights and coefficients ``[V, T]``: the fields of a forward pass without thresholds."""
    problem = prepare(points, directions, points.new_empty(0), math.inf, weights, *layout)
    blocks, count = problem.num_blocks, len(points)
    fields = np.empty((blocks * count, 2 * WIDTH), NO_FIELDS[points.dtype].dtype)
    problem._replace(arguments=problem.arguments._replace(fields=fields)).transform()
    found = torch.from_numpy(fields).view(blocks, count, 2, WIDTH).permute(2, 1, 0, 3).reshape(2, count, blocks * WIDTH)
    return found[0, :, : problem.shape[1]], found[1, :, : problem.shape[1]]


def count(levels: Sequence[Tensor], signs: Sequence[int], offsets: Tensor, thresholds: Tensor) -> Tensor:
    """Exact curves ``[P, H]`` in integers of cells with values of their own: see :func:`.histogram.histogram`.

    Args:
        levels: Values of the cells, ``[n]`` for each level, in the dtype of the thresholds.
        signs: What a cell of each level counts.
        offsets: ``[L, P + 1]``: part ``p`` owns the cells ``offsets[i, p] : offsets[i, p + 1]`` of level ``i``.
        thresholds: Ascending values, ``[H]``.
    """
    if any(level.dtype != thresholds.dtype or level.ndim != 1 for level in levels):
        raise TypeError(f"levels must be vectors of {thresholds.dtype} like thresholds.")
    if not len(levels) == len(signs) == len(offsets):
        raise ValueError(f"signs and offsets must have one entry a level, {len(levels)}, got {len(signs)} and {len(offsets)}.")
    levels, thresholds = [contiguous(level) for level in levels], contiguous(thresholds)
    result = torch.empty(offsets.shape[1] - 1, len(thresholds), dtype=torch.int64)
    sizes = [len(level) for level in levels]
    num_threads = threads.num_useful_threads(len(result)) if sum(sizes) >= MIN_THREAD_CELLS else 1
    integers = [np.array(numbers, np.int64) for numbers in (addresses_of(levels), sizes, signs)]
    arrays = (*integers, *(tensor.numpy() for tensor in (contiguous(offsets), thresholds, result)))
    arguments = (FLOAT_ZEROS[thresholds.dtype], *arrays)
    _raise_if_invalid(threads.run(histogram, num_threads, *arguments, keep_alive=(levels, arrays)), thresholds)
    return result


def _raise_if_invalid(status: int, thresholds: Tensor) -> None:
    """Raise an error for the status of a kernel."""
    if status == INDEX_OUTSIDE:
        raise IndexError("simplices must hold indices of points of their own complex, got one outside.")
    if status == NOT_ASCENDING:
        raise ascending_error(thresholds)
    if status == BAD_OFFSETS:
        raise ValueError("offsets must split points, simplices and weights into complexes, in ascending order.")


def _shape_error(shapes: Sequence[torch.Size]) -> ValueError:
    return ValueError(
        "points, directions, thresholds, weights, simplices and offsets must have shapes [V, dim], [T, dim], [H], [W], [N] "
        f"and [1 + L, B + 1], got {', '.join(str(list(shape)) for shape in shapes)}."
    )


@lru_cache(maxsize=64)
def _levels(rows: tuple[int, ...], dims: tuple[int, ...] | None) -> NDArray[np.int64]:
    if dims is not None and len(dims) != len(rows):
        raise ValueError(f"dims must have one entry a level, {len(rows)}, got {len(dims)}.")
    return np.array([rows, signs_of(rows, dims)], np.int64).reshape(2, len(rows))
