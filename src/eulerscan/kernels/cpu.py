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
from .portable import SATURATION

WORTH_A_THREAD = 1 << 16  # simplices times directions; below, waking a thread takes longer than the work
ENOUGH_RANGES = 32  # to keep all cores busy without dividing the directions too
MOST_COPIES = 8  # of the gradient of the points


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
    arguments = _arrays(points, directions, thresholds, scale, weights, simplices, offsets, rows)
    result = points.new_empty(offsets.shape[1] - 1, len(directions), len(thresholds))
    ranges = compiled.divide(arguments.offsets)
    shares = _num_blocks(directions) if len(ranges) <= ENOUGH_RANGES else 1
    _run(compiled.forward, ranges, shares, arguments, result.numpy())
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
    arguments = _arrays(points, directions, thresholds, scale, weights, simplices, offsets, rows)
    if gradient.shape != (offsets.shape[1] - 1, len(directions), len(thresholds)) or gradient.dtype != points.dtype:
        raise ValueError(f"gradient must have shape and dtype of the transform, got {list(gradient.shape)}, {gradient.dtype}.")
    ranges = compiled.divide(arguments.offsets)
    num_ranges = len(ranges) - 1
    shares = min(_num_blocks(directions), max(1, MOST_COPIES // num_ranges))
    of_points = np.zeros((shares, len(points) if needs[0] else 0, points.shape[1]))
    of_directions = np.zeros((num_ranges, *directions.shape))
    of_thresholds = np.zeros((num_ranges * shares, len(thresholds) + WIDTH))
    of_scale = np.zeros(num_ranges * shares)
    of_weights = np.zeros((shares, int(arguments.offsets[:, -1].sum()) if needs[4] else 0), arguments.points.dtype)
    if needs[4] or math.isfinite(arguments.scale):
        copies = (of_points, of_directions, of_thresholds, of_scale, of_weights)
        _run(compiled.backward, ranges, shares, arguments, _array(gradient), *copies)
        of_thresholds *= arguments.scale if math.isfinite(arguments.scale) else 0.0
    copies = (of_points, of_directions, of_thresholds[:, : len(thresholds)], of_scale, of_weights)
    gradients = (
        _sum(array, points.dtype) if needed else points.new_empty(0) for array, needed in zip(copies, needs, strict=True)
    )
    return tuple(gradients)  # type: ignore[return-value]


def _sum(copies: NDArray[Any], dtype: torch.dtype) -> Tensor:
    return torch.as_tensor(copies[0] if len(copies) == 1 else copies.sum(axis=0), dtype=dtype)


class _Arguments(NamedTuple):
    """What both passes take, as arrays."""

    points: NDArray[Any]
    directions: NDArray[Any]
    thresholds: NDArray[Any]
    weights: NDArray[Any]
    simplices: NDArray[Any]
    offsets: NDArray[np.int64]
    rows: NDArray[np.int64]
    scale: float
    saturation: float


def _arrays(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
) -> _Arguments:
    """Views of the tensors. The kernels check no bounds but those of the simplices, so the rest is checked here."""
    weights = points.new_empty(0) if weights is None else weights
    if not points.dtype == directions.dtype == thresholds.dtype == weights.dtype or points.dtype not in SATURATION:
        raise TypeError("points, directions, thresholds and weights must share the dtype float32 or float64.")
    if offsets.dtype != torch.int64 or simplices.dtype not in (torch.int32, torch.int64):
        raise TypeError("offsets must have the dtype int64, and simplices int32 or int64.")
    if [t.ndim for t in (points, directions, thresholds, weights, simplices, offsets)] != [2, 2, 1, 1, 1, 2]:
        raise ValueError("points, directions and offsets must have two axes; thresholds, weights and simplices one.")
    if directions.shape[1] != points.shape[1]:
        raise ValueError(f"directions must have dimension {points.shape[1]} like points, got {directions.shape[1]}.")
    arguments = _Arguments(
        _array(points),
        _array(directions),
        _array(thresholds),
        _array(weights),
        _array(simplices),
        _array(offsets),
        np.asarray(rows, np.int64),
        scale.item(),
        SATURATION[points.dtype],
    )
    if not compiled.consistent(arguments.weights, arguments.simplices, arguments.offsets, arguments.rows, len(points)):
        raise ValueError("offsets must divide points, simplices and weights into complexes, in ascending order.")
    return arguments


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()


def _num_blocks(directions: Tensor) -> int:
    return max(1, -(-len(directions) // WIDTH))


def _run(kernel: Callable[..., bool], ranges: NDArray[np.int64], shares: int, arguments: _Arguments, *others: Any) -> None:
    work = len(arguments.directions) * int(arguments.offsets[:, -1].sum())
    num_threads = threads.useful((len(ranges) - 1) * shares) if work >= WORTH_A_THREAD else 1
    if not threads.run(kernel, num_threads, ranges, shares, *arguments, *others):
        raise IndexError("simplices must hold indices of points of their own complex, got one outside.")
