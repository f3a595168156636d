"""The fast algorithm on the CPU: from tensors to compiled kernels on all cores, and back.

The tasks depend on the problem alone and what they add is summed in a fixed order, so that any number of
threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..checks import ascending_error
from . import compiled, threads
from .addresses import addresses_of, plain
from .lanes import WIDTH
from .portable import SATURATION

WORTH_A_THREAD = 1 << 17  # comparisons
VERTEX = 8  # comparisons that a vertex and its sigmoid are worth
ENOUGH_RANGES = 32  # to keep all cores busy without dividing the directions too
MOST_COPIES = 8  # of the gradient of the points
NOTHING = {dtype: torch.empty(0, dtype=dtype, device="cpu") for dtype in SATURATION}
REALS = {torch.float32: np.float32(0), torch.float64: np.float64(0)}
INDICES = {torch.int32: np.int32(0), torch.int64: np.int64(0)}


class Problem(NamedTuple):
    """The arguments as the kernels take them, and how to divide the work."""

    tensors: tuple[Tensor, ...]  # points, directions, thresholds, weights, simplices and offsets
    arguments: tuple[Any, ...]  # their addresses and sizes, numbers like theirs, ...: what both kernels begin with
    scale: float
    shape: tuple[int, int, int]  # of the transform
    total: int  # number of simplices, vertices included
    num_ranges: int  # of complexes

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        result = self.tensors[0].new_empty(self.shape)
        shares = self.num_blocks if self.num_ranges < ENOUGH_RANGES and not self.is_small else 1
        self._run(compiled.forward, shares, result)
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
        of_weights, of_grid, finite = of_weights and weights.numel() > 0, of_thresholds or of_scale, math.isfinite(self.scale)
        shares = 1 if self.is_small else min(self.num_blocks, max(1, MOST_COPIES // self.num_ranges))
        num_tasks = shares * self.num_ranges
        copies = (shares, self.num_ranges, num_tasks, num_tasks, shares)
        lengths = (
            points.numel() if of_points else 0,
            directions.numel() if of_directions else 0,
            self.shape[2] + WIDTH if of_grid else 0,
            1 if of_grid else 0,
            self.total if of_weights else 0,
        )
        summed = np.zeros(sum(map(mul, copies, lengths)))
        if finite or of_weights:
            (gradient,) = plain([gradient])
            self._run(compiled.backward, shares, gradient, summed, lengths)
        nothing = NOTHING[points.dtype]
        found = (
            torch.empty_like(points) if of_points else nothing,
            torch.empty_like(directions) if of_directions else nothing,
            torch.empty_like(thresholds) if of_thresholds else nothing,
            points.new_empty(()) if of_scale else nothing,
            torch.empty_like(weights) if of_weights else nothing,
        )
        factors = (1.0, 1.0, self.scale if finite else 0.0, 1.0, 1.0)
        sizes = tuple([g.numel() for g in found])
        compiled.collect(summed, copies, lengths, REALS[points.dtype], addresses_of(found), sizes, factors)
        return [None if g is nothing else g for g in found]

    def _run(self, kernel: Callable[..., bool], shares: int, tensor: Tensor, *others: Any) -> None:
        """Call a kernel with the result that it fills, or the gradient of it."""
        num_threads = 1 if self.is_small else threads.useful(self.num_ranges * shares)
        arguments = (shares, *self.arguments, *addresses_of([tensor]), *others)
        if not threads.run(kernel, num_threads, *arguments, kept=(self.tensors, tensor)):
            raise IndexError("simplices must hold indices of points of their own complex, got one outside.")

    @property
    def is_current(self) -> bool:
        """Whether the tensors are still where they were, and as large."""
        addresses, sizes, *_ = self.arguments
        points, directions, thresholds, *_ = self.tensors
        same: bool = (*points.shape, *directions.shape[:1], *thresholds.shape) == sizes[:4]
        return same and addresses_of(self.tensors) == addresses

    @property
    def is_small(self) -> bool:
        """Whether waking a thread would take longer than the work."""
        return self.shape[1] * (self.total + VERTEX * self.tensors[0].shape[0]) < WORTH_A_THREAD

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
) -> Problem:
    """Where the tensors are. The kernels check no bounds but those of the simplices, so the rest is checked here."""
    dtype = points.dtype
    if dtype not in SATURATION or directions.dtype != dtype or thresholds.dtype != dtype:
        raise TypeError(
            "points, directions and thresholds must share the dtype float32 or float64, "
            f"got {dtype}, {directions.dtype} and {thresholds.dtype}."
        )
    weights = NOTHING[dtype] if weights is None else weights
    if weights.dtype != dtype:
        raise TypeError(f"weights must have the dtype {dtype} like points, got {weights.dtype}.")
    if offsets.dtype != torch.int64 or simplices.dtype not in INDICES:
        raise TypeError(
            f"offsets must have the dtype int64, and simplices int32 or int64, got {offsets.dtype} and {simplices.dtype}."
        )
    if points.ndim != 2 or directions.ndim != 2 or offsets.ndim != 2 or directions.shape[1] != points.shape[1]:
        raise ValueError(
            "points and directions must have shapes [V, dim] and [T, dim], and offsets [1 + L, B + 1], "
            f"got {list(points.shape)}, {list(directions.shape)} and {list(offsets.shape)}."
        )
    if thresholds.ndim != 1 or weights.ndim != 1 or simplices.ndim != 1:
        raise ValueError(
            f"thresholds, weights and simplices must have one axis, got {thresholds.ndim}, {weights.ndim} and {simplices.ndim}."
        )
    if not all(t.is_cpu for t in (directions, thresholds, weights, simplices, offsets)):
        raise ValueError(
            "directions, thresholds, weights, simplices and offsets must be on the CPU like points, "
            f"got {directions.device}, {thresholds.device}, {weights.device}, {simplices.device} and {offsets.device}."
        )
    tensors = plain((points, directions, thresholds, weights, simplices, offsets))
    # Not len(tensor), which torch looks up in Python.
    (num_directions, _), (num_levels, num_bounds), num_thresholds = directions.shape, offsets.shape, thresholds.numel()
    sizes = (*points.shape, num_directions, num_thresholds, weights.numel(), simplices.numel(), num_levels, num_bounds)
    layout = (addresses_of(tensors), sizes, REALS[dtype], INDICES[simplices.dtype], _rows(tuple(rows)))
    ascending, total, num_ranges = compiled.plan(*layout)
    if not ascending:
        raise ascending_error(thresholds)
    if total < 0:
        raise ValueError("offsets must divide points, simplices and weights into complexes, in ascending order.")
    shape = (num_bounds - 1, num_directions, num_thresholds)
    return Problem(tensors, (*layout, scale, SATURATION[dtype]), scale, shape, total, num_ranges)


@lru_cache(maxsize=64)
def _rows(rows: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(rows, np.int64)
