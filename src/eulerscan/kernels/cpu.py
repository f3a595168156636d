"""The fast algorithm on the CPU: numba, forward and backward, on all cores.

A task is a range of complexes and some of the blocks of eight directions. The tasks depend on the
problem alone and their results are added in a fixed order, so any number of threads gives the same bits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from . import threads
from .collapse import collapse, gather
from .grid import make_grid
from .lanes import WIDTH, add, load, store
from .portable import SATURATION
from .sweep import descend, draw, weigh
from .threads import claim

SIMPLICES_A_TASK = 2048
WORTH_A_THREAD = 1 << 16  # simplices times directions; below, waking a thread takes longer than the work
MOST_RANGES = 64
MOST_COPIES = 8  # of the gradient of the points, when one complex is shared by several tasks


SOURCES = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()


def _compiled(function: Callable[..., Any]) -> Any:
    """Compile once a machine where the cache can be written, else once a process.

    numba's cache notices a change of this file only; the name brings in the files that it builds on.
    """
    function.__qualname__ += f"_{SOURCES[:16]}"
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:
        return njit(nogil=True, error_model="numpy")(function)


@_compiled
def _forward(
    counter, ranges, shares, points, directions, thresholds, weights, simplices, offsets, rows, scale, saturation, result
):  # fmt: skip
    """Do tasks until there are none; False if an index was out of its complex."""
    num_complexes, num_directions, num_thresholds = result.shape
    grid = make_grid(thresholds, scale, saturation)
    field = np.empty((np.diff(offsets[0]).max() if num_complexes else 0, 2 * WIDTH), points.dtype)
    invalid = np.empty((1, WIDTH))
    block = np.empty((points.shape[1], WIDTH))
    curves = np.empty((WIDTH, num_thresholds + WIDTH))
    jumps = np.empty((num_thresholds + WIDTH, WIDTH))
    while True:
        task = claim(counter)
        if task >= (len(ranges) - 1) * shares:
            return True
        chosen, share = task // shares, task % shares
        for start in range(share * WIDTH, num_directions, shares * WIDTH):
            width = _take_block(block, directions, start)
            for b in range(ranges[chosen], ranges[chosen + 1]):
                if not collapse(field, invalid, b, points, block, weights, simplices, offsets, rows):
                    return False
                curves[:] = 0.0
                jumps[:] = 0.0
                draw(curves, jumps, field, offsets[0, b + 1] - offsets[0, b], width, grid)
                for j in range(1, num_thresholds):
                    store(jumps, j, 0, add(load(jumps, j - 1, 0), load(jumps, j, 0)))
                for lane in range(width):
                    for j in range(num_thresholds):
                        result[b, start + lane, j] = math.nan if invalid[0, lane] else curves[lane, j] + jumps[j, lane]


@_compiled
def _backward(
    counter, ranges, shares, points, directions, thresholds, weights, simplices, offsets, rows, scale, saturation,
    gradient, point_gradient, direction_gradient, threshold_gradient, scale_gradient, weight_gradient,
):  # fmt: skip
    """As the forward pass, recomputing its field. The gradients have a row a task, or a copy a share."""
    num_complexes, num_directions, num_thresholds = gradient.shape
    grid = make_grid(thresholds, scale, saturation)
    field = np.empty((np.diff(offsets[0]).max() if num_complexes else 0, 2 * WIDTH), points.dtype)
    invalid = np.empty((1, WIDTH))
    block = np.empty((points.shape[1], WIDTH))
    gradients = np.zeros((WIDTH, num_thresholds + WIDTH))
    suffixes = np.zeros((WIDTH, num_thresholds + WIDTH))
    while True:
        task = claim(counter)
        if task >= (len(ranges) - 1) * shares:
            return True
        chosen, share = task // shares, task % shares
        for start in range(share * WIDTH, num_directions, shares * WIDTH):
            width = _take_block(block, directions, start)
            for b in range(ranges[chosen], ranges[chosen + 1]):
                if not collapse(field, invalid, b, points, block, weights, simplices, offsets, rows):
                    return False
                origin, count = offsets[0, b], offsets[0, b + 1] - offsets[0, b]
                for lane in range(width):
                    for j in range(num_thresholds):
                        gradients[lane, j] = gradient[b, start + lane, j]
                if not math.isinf(scale):
                    scale_gradient[task] += descend(
                        point_gradient, share, direction_gradient, chosen, start, threshold_gradient, task,
                        gradients, field, origin, count, width, points, block, grid,
                    )  # fmt: skip
                if weight_gradient.shape[1]:
                    for lane in range(width):
                        for j in range(num_thresholds - 1, -1, -1):
                            suffixes[lane, j] = suffixes[lane, j + 1] + gradients[lane, j]
                    weigh(field, gradients, suffixes, count, width, grid)
                    gather(weight_gradient, share, field, b, simplices, offsets, rows)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _take_block(block, directions, start):
    """Copy up to eight directions into ``block [dim, 8]``; returns how many."""
    width = min(WIDTH, len(directions) - start)
    block[:] = 0.0
    for axis in range(directions.shape[1]):
        for lane in range(width):
            block[axis, lane] = directions[start + lane, axis]
    return width


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
    ranges = _ranges(arguments.offsets)
    shares = _num_blocks(directions) if len(ranges) <= MOST_RANGES // 2 else 1
    _run(_forward, ranges, shares, arguments, result.numpy())
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
    ranges = _ranges(arguments.offsets)
    shares = min(_num_blocks(directions), max(1, MOST_COPIES // (len(ranges) - 1)))
    num_tasks = (len(ranges) - 1) * shares
    num_weights = int(arguments.offsets[:, -1].sum())
    of_points = np.zeros((shares, len(points) if needs[0] else 0, points.shape[1]))
    of_directions = np.zeros((len(ranges) - 1, *directions.shape))
    of_thresholds = np.zeros((num_tasks, len(thresholds) + WIDTH))
    of_scale = np.zeros(num_tasks)
    of_weights = np.zeros((shares, num_weights if needs[4] else 0), arguments.points.dtype)
    gradients = (of_points, of_directions, of_thresholds, of_scale, of_weights)
    if needs[4] or not math.isinf(arguments.scale):
        _run(_backward, ranges, shares, arguments, gradient.detach().contiguous().numpy(), *gradients)
        of_thresholds *= arguments.scale if math.isfinite(arguments.scale) else 1.0
    return tuple(  # type: ignore[return-value]
        torch.as_tensor(array[0] if len(array) == 1 else array.sum(axis=0), dtype=points.dtype)
        if needed
        else points.new_empty(0)
        for array, needed in zip(
            (of_points, of_directions, of_thresholds[:, : len(thresholds)], of_scale, of_weights), needs, strict=True
        )
    )


def _run(kernel: Callable[..., bool], ranges: NDArray[np.int64], shares: int, common: _Arguments, *others: Any) -> None:
    num_tasks = (len(ranges) - 1) * shares
    work = len(common.directions) * int(common.offsets[:, -1].sum())
    num_threads = threads.useful(num_tasks) if work >= WORTH_A_THREAD else 1
    if not threads.run(kernel, num_threads, ranges, shares, *common, *others):
        raise IndexError("simplices must hold indices of points of their own complex, got one outside.")


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
    arguments = _Arguments(
        _array(points),
        _array(directions),
        _array(thresholds),
        _array(points.new_empty(0) if weights is None else weights),
        _array(simplices),
        _array(offsets),
        np.asarray(rows, np.int64),
        scale.item(),
        SATURATION[points.dtype],
    )
    same_space = directions.shape[1] == points.shape[1]
    if not same_space or not _consistent(
        arguments.weights, arguments.simplices, arguments.offsets, arguments.rows, len(points)
    ):
        raise ValueError("offsets must divide points, simplices and weights into complexes, in ascending order.")
    return arguments


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().contiguous().numpy()


@_compiled
def _consistent(weights, simplices, offsets, rows, num_points):
    """Whether the divisions of a packed complex ascend from zero and end with what there is."""
    if len(offsets) != len(rows) + 1 or offsets.shape[1] == 0 or offsets[0, -1] != num_points:
        return False
    for level in range(len(offsets)):
        if offsets[level, 0] != 0:
            return False
        for b in range(offsets.shape[1] - 1):
            if offsets[level, b] > offsets[level, b + 1]:
                return False
    entries = 0
    for level in range(len(rows)):
        entries += rows[level] * offsets[level + 1, -1]
    return entries == len(simplices) and (len(weights) == 0 or len(weights) == offsets[:, -1].sum())


def _num_blocks(directions: Tensor) -> int:
    return max(1, -(-len(directions) // WIDTH))


@_compiled
def _ranges(offsets):
    """Bounds of consecutive complexes with about the same number of simplices, ``[ranges + 1]``."""
    work = offsets.sum(axis=0)
    num_complexes, total = len(work) - 1, work[-1]
    count = max(1, min(num_complexes, MOST_RANGES, -(-total // SIMPLICES_A_TASK)))
    bounds = np.empty(count + 1, np.int64)
    bounds[0], bounds[count] = 0, num_complexes
    for i in range(1, count):
        bounds[i] = np.searchsorted(work, i * total / count)
    return bounds
