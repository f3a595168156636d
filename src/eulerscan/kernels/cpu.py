"""The fast algorithm on the CPU: from tensors to compiled kernels on all cores, and back.

The tasks depend on the problem alone and what they add is summed in a fixed order, so that any number of
threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import compiled, threads
from .lanes import WIDTH
from .portable import SATURATION, ascending_error

WORTH_A_THREAD = 1 << 17  # comparisons; below, waking a thread takes longer than the work
VERTEX = 8  # comparisons that a vertex and its sigmoid are worth
ENOUGH_RANGES = 32  # to keep all cores busy without dividing the directions too
MOST_COPIES = 8  # of the gradient of the points
UNWEIGHTED = {dtype: torch.empty(0, dtype=dtype, device="cpu") for dtype in SATURATION}


class Problem(NamedTuple):
    """The arguments as arrays, in the order in which the kernels take them, and how to divide the work."""

    points: NDArray[Any]
    directions: NDArray[Any]
    thresholds: NDArray[Any]
    weights: NDArray[Any]
    simplices: NDArray[Any]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    scale: float
    saturation: float
    ranges: NDArray[np.int64]
    dtype: torch.dtype

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        result = torch.empty(self.shape, dtype=self.dtype, device="cpu")
        shares = self.num_blocks if self.num_ranges < ENOUGH_RANGES else 1
        self._run(compiled.forward, shares, result.numpy())
        return result

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        needs = [*needs[:4], needs[4] and len(self.weights) > 0]
        if gradient.shape != self.shape or gradient.dtype != self.dtype:
            raise ValueError(
                f"gradient must have shape and dtype of the transform, got {list(gradient.shape)}, {gradient.dtype}."
            )
        num_points, dim = self.points.shape
        _, num_directions, num_thresholds = self.shape
        shares = min(self.num_blocks, max(1, MOST_COPIES // self.num_ranges))
        num_tasks, finite = self.num_ranges * shares, math.isfinite(self.scale)
        of_points = np.zeros((shares, num_points if needs[0] else 0, dim))
        of_directions = np.zeros((self.num_ranges, num_directions if needs[1] else 0, dim))
        of_thresholds = np.zeros((num_tasks, num_thresholds + WIDTH))
        of_scale = np.zeros(num_tasks)
        of_weights = np.zeros((shares, self.total if needs[4] else 0), self.points.dtype)
        copies = [of_points, of_directions, of_thresholds, of_scale, of_weights]
        if finite or needs[4]:
            self._run(compiled.backward, shares, _array(gradient), needs[2] or needs[3], *copies)
        if needs[2]:
            copies[2] = of_thresholds[:, :num_thresholds] * (self.scale if finite else 0.0)
        return [_sum(array, self.dtype) if needed else None for array, needed in zip(copies, needs, strict=True)]

    def _run(self, kernel: Callable[..., bool], shares: int, *others: Any) -> None:
        *arguments, ranges, _ = self
        few = len(self.directions) * (self.total + VERTEX * len(self.points)) < WORTH_A_THREAD
        num_threads = 1 if few else threads.useful(self.num_ranges * shares)
        if not threads.run(kernel, num_threads, ranges, shares, *arguments, *others):
            raise IndexError("simplices must hold indices of points of their own complex, got one outside.")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the transform."""
        return self.offsets.shape[1] - 1, len(self.directions), len(self.thresholds)

    @property
    def total(self) -> int:
        """Number of simplices, vertices included."""
        return sum(self.offsets[:, -1].tolist())

    @property
    def num_ranges(self) -> int:
        return len(self.ranges) - 1

    @property
    def num_blocks(self) -> int:
        return max(1, -(-len(self.directions) // WIDTH))


def prepare(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
) -> Problem:
    """Views of the tensors. The kernels check no bounds but those of the simplices, so the rest is checked here."""
    dtype = points.dtype
    if dtype not in SATURATION or directions.dtype != dtype or thresholds.dtype != dtype:
        raise TypeError("points, directions and thresholds must share the dtype float32 or float64.")
    weights = UNWEIGHTED[dtype] if weights is None else weights
    if weights.dtype != dtype:
        raise TypeError(f"weights must have the dtype {dtype} like points, got {weights.dtype}.")
    if offsets.dtype != torch.int64 or simplices.dtype not in (torch.int32, torch.int64):
        raise TypeError("offsets must have the dtype int64, and simplices int32 or int64.")
    if points.ndim != 2 or directions.ndim != 2 or offsets.ndim != 2 or directions.shape[1] != points.shape[1]:
        raise ValueError("points and directions must have shapes [V, dim] and [T, dim], and offsets [1 + L, B + 1].")
    if thresholds.ndim != 1 or weights.ndim != 1 or simplices.ndim != 1:
        raise ValueError("thresholds, weights and simplices must have one axis.")
    tensors = (points, directions, thresholds, weights, simplices, offsets)
    arrays = [_array(tensor) for tensor in tensors]
    sizes = np.array(rows, np.int64)
    ascend, consistent, ranges = compiled.plan(*arrays[2:], sizes, len(arrays[0]))
    if not ascend:
        raise ascending_error(thresholds)
    if not consistent:
        raise ValueError("offsets must divide points, simplices and weights into complexes, in ascending order.")
    return Problem(*arrays, sizes, scale.item(), SATURATION[dtype], ranges, dtype)  # type: ignore[call-arg, arg-type]


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()


def _sum(copies: NDArray[Any], dtype: torch.dtype) -> Tensor:
    result = torch.empty(copies.shape[1:], dtype=dtype, device="cpu")
    compiled.add_up(copies.reshape(len(copies), -1), result.numpy().reshape(-1))
    return result
