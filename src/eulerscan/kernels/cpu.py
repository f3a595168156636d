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


def ect(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
) -> Tensor:
    """Euler characteristic transform ``[B, T, H]``; the arguments are those of :mod:`.layout`."""
    problem = _problem(points, directions, thresholds, scale, weights, simplices, offsets, rows)
    result = points.new_empty(problem.shape)
    shares = problem.num_blocks if problem.num_ranges < ENOUGH_RANGES else 1
    _run(compiled.forward, problem, shares, result.numpy())
    return result


def ect_backward(
    gradient: Tensor,
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    needs: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of points, directions, thresholds, scale and weights; empty where not needed."""
    needs = [*needs[:4], needs[4] and weights is not None]
    problem = _problem(points, directions, thresholds, scale, weights, simplices, offsets, rows)
    if gradient.shape != problem.shape or gradient.dtype != points.dtype:
        raise ValueError(f"gradient must have shape and dtype of the transform, got {list(gradient.shape)}, {gradient.dtype}.")
    num_points, dim = problem.points.shape
    _, num_directions, num_thresholds = problem.shape
    shares = min(problem.num_blocks, max(1, MOST_COPIES // problem.num_ranges))
    num_tasks, finite = problem.num_ranges * shares, math.isfinite(problem.scale)
    of_points = np.zeros((shares, num_points if needs[0] else 0, dim))
    of_directions = np.zeros((problem.num_ranges, num_directions, dim))
    of_thresholds = np.zeros((num_tasks, num_thresholds + WIDTH))
    of_scale = np.zeros(num_tasks)
    of_weights = np.zeros((shares, problem.total if needs[4] else 0), problem.points.dtype)
    copies = [of_points, of_directions, of_thresholds, of_scale, of_weights]
    if finite or needs[4]:
        _run(compiled.backward, problem, shares, _array(gradient), needs[2] or needs[3], *copies)
    if needs[2]:
        copies[2] = of_thresholds[:, :num_thresholds] * (problem.scale if finite else 0.0)
    inputs = (points, directions, thresholds, scale, points if weights is None else weights)
    gradients = (
        _sum(array, points.new_empty(like.shape)) if needed else points.new_empty(0)
        for array, like, needed in zip(copies, inputs, needs, strict=True)
    )
    return tuple(gradients)  # type: ignore[return-value]


def _sum(copies: NDArray[Any], result: Tensor) -> Tensor:
    compiled.add_up(copies.reshape(len(copies), -1), result.numpy().reshape(-1))
    return result


class _Problem(NamedTuple):
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


def _problem(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
) -> _Problem:
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
    return _Problem(*arrays, sizes, scale.item(), SATURATION[dtype], ranges)  # type: ignore[call-arg, arg-type]


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()


def _run(kernel: Callable[..., bool], problem: _Problem, shares: int, *others: Any) -> None:
    *arguments, ranges = problem
    few = len(problem.directions) * (problem.total + VERTEX * len(problem.points)) < WORTH_A_THREAD
    num_threads = 1 if few else threads.useful(problem.num_ranges * shares)
    if not threads.run(kernel, num_threads, ranges, shares, *arguments, *others):
        raise IndexError("simplices must hold indices of points of their own complex, got one outside.")
