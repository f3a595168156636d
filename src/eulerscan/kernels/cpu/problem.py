"""The fast algorithm on the CPU: from tensors to compiled kernels on all cores, and back.

The tasks depend on the problem alone and what they add is summed in a fixed order, so that any number of
threads gives the same bits.
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
from ..portable import SATURATION
from . import compiled, threads
from .addresses import addresses_of, plain
from .lanes import WIDTH
from .planning import DESCENDING, DISORDERED, OUTSIDE

WORTH_A_THREAD = 1 << 17  # comparisons, in all directions
VERTEX = 8  # comparisons that a vertex and its sigmoid are worth
WORK_A_RANGE = 1 << 12  # comparisons of a range in one direction
MOST_RANGES = 64
ENOUGH_RANGES = 32  # to keep all cores busy without dividing the directions too
MOST_COPIES = 8  # of the gradient of the points
UNWEIGHTED = {dtype: torch.empty(1, dtype=dtype, device="cpu") for dtype in SATURATION}  # never read: no weights
REALS: dict[torch.dtype, np.floating[Any]] = {torch.float32: np.float32(0), torch.float64: np.float64(0)}
INDICES = {torch.int32: np.int32(0), torch.int64: np.int64(0)}


class Problem(NamedTuple):
    """The arguments as the kernels take them, and how to divide the work."""

    tensors: tuple[Tensor, ...]  # points, directions, thresholds, weights, simplices and offsets
    shapes: list[torch.Size]  # of them
    arguments: tuple[Any, ...]  # their addresses and sizes, numbers like theirs, ...: what both kernels begin with
    scale: float
    shape: tuple[int, int, int]  # of the transform
    num_weights: int
    num_ranges: int  # of complexes
    is_small: bool  # whether waking a thread would take longer than the work

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        result = self.tensors[0].new_empty(*self.shape)  # two microseconds less than with a tuple
        shares = self.num_blocks if self.num_ranges < ENOUGH_RANGES and not self.is_small else 1
        self._run(compiled.forward, shares, (result,), result.data_ptr())
        return result

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        points, directions, thresholds, weights, *_ = self.tensors
        if gradient.shape != self.shape or gradient.dtype != points.dtype or not gradient.is_cpu:
            raise ValueError(
                "gradient must have shape, dtype and device of the transform, "
                f"got {list(gradient.shape)}, {gradient.dtype} on {gradient.device}."
            )
        of_points, of_directions, of_thresholds, of_scale, of_weights = needs
        of_weights = of_weights and self.num_weights > 0
        found = [
            torch.empty_like(points) if of_points else None,
            torch.empty_like(directions) if of_directions else None,
            torch.empty_like(thresholds) if of_thresholds else None,
            points.new_empty(()) if of_scale else None,
            torch.empty_like(weights) if of_weights else None,
        ]
        if math.isinf(self.scale) and not of_weights:
            return [None if g is None else g.zero_() for g in found]
        shares = 1 if self.is_small else min(self.num_blocks, max(1, MOST_COPIES // self.num_ranges))
        num_tasks = shares * self.num_ranges
        lengths = (
            points.numel() if of_points else 0,
            directions.numel() if of_directions else 0,
            self.shape[2] + WIDTH if of_thresholds or of_scale else 0,
            1 if of_thresholds or of_scale else 0,
            self.num_weights if of_weights else 0,
        )
        # As compiled.backward divides it: so many copies of each length.
        summed = np.zeros(
            shares * (lengths[0] + lengths[4]) + self.num_ranges * lengths[1] + num_tasks * (lengths[2] + lengths[3])
        )
        gradient = plain(gradient)
        addresses = tuple([0 if g is None else g.data_ptr() for g in found])
        self._run(compiled.backward, shares, (gradient, found), *addresses_of([gradient]), addresses, summed, lengths)
        return found

    def _run(self, kernel: Callable[..., int], shares: int, kept: object, *others: Any) -> None:
        """Call a kernel with what it takes beyond the arguments of both; ``kept`` is what addresses among that belong to."""
        num_threads = 1 if self.is_small else threads.useful(self.num_ranges * shares)
        flaw = threads.run(kernel, num_threads, shares, *self.arguments, *others, kept=(self.tensors, kept))
        if flaw == OUTSIDE:
            raise IndexError("simplices must hold indices of points of their own complex, got one outside.")
        if flaw == DESCENDING:
            raise ascending_error(self.tensors[2])
        if flaw == DISORDERED:
            raise ValueError("offsets must divide points, simplices and weights into complexes, in ascending order.")

    @property
    def is_current(self) -> bool:
        """Whether the tensors are still where they were, and as large."""
        same: bool = addresses_of(self.tensors) == self.arguments[0]
        return same and [tensor.shape for tensor in self.tensors] == self.shapes

    @property
    def num_blocks(self) -> int:
        return max(1, -(-self.shape[1] // WIDTH))


def prepare(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: float,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    *,
    keep: bool = False,
) -> Problem:
    """Where the tensors are. Their kinds and sizes are checked here, the numbers that bound others in the kernels.

    With ``keep`` the forward pass of a small problem leaves its fields for the backward pass, less than 2 MB, so it must come
    first. Not with weights, for whose gradients the backward pass overwrites them.
    """
    dtype = points.dtype
    if dtype not in SATURATION or directions.dtype != dtype or thresholds.dtype != dtype:
        raise TypeError(
            "points, directions and thresholds must share the dtype float32 or float64, "
            f"got {dtype}, {directions.dtype} and {thresholds.dtype}."
        )
    num_weights = 0 if weights is None else weights.numel()
    weights = UNWEIGHTED[dtype] if weights is None else weights
    if weights.dtype != dtype:
        raise TypeError(f"weights must have the dtype {dtype} like points, got {weights.dtype}.")
    if offsets.dtype != torch.int64 or simplices.dtype not in INDICES:
        raise TypeError(
            f"offsets must have the dtype int64, and simplices int32 or int64, got {offsets.dtype} and {simplices.dtype}."
        )
    tensors: tuple[Tensor, ...] = (points, directions, thresholds, weights, simplices, offsets)
    shapes = [tensor.shape for tensor in tensors]  # read once, since that takes its time
    if [len(shape) for shape in shapes] != [2, 2, 1, 1, 1, 2] or shapes[1][1] != shapes[0][1]:
        raise ValueError(
            "points, directions, thresholds, weights, simplices and offsets must have shapes [V, dim], [T, dim], [H], [W], [N] "
            f"and [1 + L, B + 1], got {', '.join(str(list(shape)) for shape in shapes)}."
        )
    if not (directions.is_cpu and thresholds.is_cpu and weights.is_cpu and simplices.is_cpu and offsets.is_cpu):
        raise ValueError(
            "directions, thresholds, weights, simplices and offsets must be on the CPU like points, "
            f"got {directions.device}, {thresholds.device}, {weights.device}, {simplices.device} and {offsets.device}."
        )
    for tensor in tensors:
        if tensor.is_neg() or not tensor.is_contiguous():
            tensors = tuple(map(plain, tensors))
            break
    (num_points, dim), (num_directions, _), (num_thresholds,), (count,), (num_entries,), (num_levels, num_bounds) = shapes
    if count == 0 and num_points:  # kernels take no weights for all ones
        raise ValueError("weights must have one number a simplex, vertices included, got none.")
    sizes = (num_points, dim, num_directions, num_thresholds, num_weights, num_entries, num_levels, num_bounds)
    work = VERTEX * num_points + num_entries // 2
    is_small = num_directions * work < WORTH_A_THREAD
    num_complexes = max(0, num_bounds - 1)  # without any bound the offsets are not in order, as a kernel will say
    num_ranges = max(1, min(num_complexes, MOST_RANGES, -(-work // WORK_A_RANGE)))
    num_fields = -(-num_directions // WIDTH) * num_points if keep and is_small and not num_weights else 0
    fields = np.empty((num_fields, 2 * WIDTH), type(REALS[dtype]))
    like = (REALS[dtype], INDICES[simplices.dtype])
    arguments = (addresses_of(tensors), sizes, *like, _rows(tuple(rows)), num_ranges, scale, SATURATION[dtype], fields)
    shape = (num_complexes, num_directions, num_thresholds)
    return Problem(tensors, shapes, arguments, scale, shape, num_weights, num_ranges, is_small)


@lru_cache(maxsize=64)
def _rows(rows: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(rows, np.int64)
