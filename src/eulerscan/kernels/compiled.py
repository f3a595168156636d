"""What numba compiles: both passes over the tasks of a transform.

A task is a range of complexes and a share of the blocks of eight directions. The kernels run on any number of threads;
each claims tasks until there are none.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from .cells import make_cells, most_occupied, occupied
from .collapse import collapse, gather
from .grid import make_grid
from .lanes import WIDTH, add, fill, load, store
from .moments import descend_cells, draw_cells, weigh_cells
from .sweep import descend, draw, weigh
from .threads import claim

SIMPLICES_A_RANGE = 2048
MOST_RANGES = 64
MOST_ROWS = 2**16
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
def forward(
    counter, ranges, shares, points, directions, thresholds, weights, simplices, offsets, rows, scale, saturation, result
):  # fmt: skip
    """Fill ``result [B, T, H]``; False if a simplex had a vertex outside its complex."""
    num_complexes, num_directions, num_thresholds = result.shape
    grid = make_grid(thresholds, scale, saturation)
    field = np.empty((np.diff(offsets[0]).max() if num_complexes else 0, 2 * WIDTH), points.dtype)
    cells = make_cells(grid, points, most_occupied(offsets))
    invalid = np.empty((1, WIDTH))
    block = np.empty((points.shape[1], WIDTH))
    curves = np.zeros((WIDTH, num_thresholds + WIDTH))
    jumps = np.zeros((num_thresholds + WIDTH, WIDTH))
    while True:
        task = claim(counter)
        if task >= (len(ranges) - 1) * shares:
            return True
        range_index, share = task // shares, task % shares
        for start in range(share * WIDTH, num_directions, shares * WIDTH):
            width = _take_block(block, directions, start)
            for b in range(ranges[range_index], ranges[range_index + 1]):
                if not collapse(field, invalid, b, points, block, weights, simplices, offsets, rows):
                    return False
                count = offsets[0, b + 1] - offsets[0, b]
                if occupied(offsets, b) >= cells.worth:
                    draw_cells(curves, jumps, field, count, width, grid, cells)
                else:
                    draw(curves, jumps, field, count, width, grid)
                _harvest(result, b, start, width, curves, jumps, invalid)


@_compiled
def backward(
    counter, ranges, shares, points, directions, thresholds, weights, simplices, offsets, rows, scale, saturation,
    gradient, of_grid, point_gradient, direction_gradient, threshold_gradient, scale_gradient, weight_gradient,
):  # fmt: skip
    """Add to the gradients, recomputing what the forward pass did.

    No two tasks add to the same place: points and weights have a copy a share, directions a copy a range, thresholds and scale
    a row a task. Gradients of points, directions or weights that nobody needs have no entries;
    those of thresholds and scale are complete only if ``of_grid``.
    """
    num_complexes, num_directions, num_thresholds = gradient.shape
    grid = make_grid(thresholds, scale, saturation)
    field = np.empty((np.diff(offsets[0]).max() if num_complexes else 0, 2 * WIDTH), points.dtype)
    cells = make_cells(grid, points, len(field) if weight_gradient.shape[1] else most_occupied(offsets))
    invalid = np.empty((1, WIDTH))
    block = np.empty((points.shape[1], WIDTH))
    gradients = np.zeros((WIDTH, num_thresholds + WIDTH))
    suffixes = np.zeros((WIDTH, num_thresholds + WIDTH))
    while True:
        task = claim(counter)
        if task >= (len(ranges) - 1) * shares:
            return True
        range_index, share = task // shares, task % shares
        for start in range(share * WIDTH, num_directions, shares * WIDTH):
            width = _take_block(block, directions, start)
            for b in range(ranges[range_index], ranges[range_index + 1]):
                if not collapse(field, invalid, b, points, block, weights, simplices, offsets, rows):
                    return False
                origin, count = offsets[0, b], offsets[0, b + 1] - offsets[0, b]
                for lane in range(width):
                    for j in range(num_thresholds):
                        gradients[lane, j] = gradient[b, start + lane, j]
                if occupied(offsets, b) >= cells.worth:
                    scale_gradient[task] += descend_cells(
                        point_gradient, share, direction_gradient, range_index, start, threshold_gradient, task,
                        gradients, field, origin, count, width, points, block, grid, cells, of_grid,
                    )  # fmt: skip
                elif not math.isinf(scale):
                    scale_gradient[task] += descend(
                        point_gradient, share, direction_gradient, range_index, start, threshold_gradient, task,
                        gradients, field, origin, count, width, points, block, grid,
                    )  # fmt: skip
                if weight_gradient.shape[1]:
                    for lane in range(width):
                        for j in range(num_thresholds - 1, -1, -1):
                            suffixes[lane, j] = suffixes[lane, j + 1] + gradients[lane, j]
                    if count >= cells.worth:
                        weigh_cells(field, gradients, suffixes, count, width, grid, cells)
                    else:
                        weigh(field, gradients, suffixes, count, width, grid)
                    gather(weight_gradient, share, field, b, simplices, offsets, rows)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _harvest(result, b, start, width, curves, jumps, invalid):
    """Sum up the jumps, write the curves of one complex to the result, and clear all that will be read again."""
    num_thresholds, nothing = result.shape[2], fill(0.0)
    for j in range(1, num_thresholds):
        store(jumps, j, 0, add(load(jumps, j - 1, 0), load(jumps, j, 0)))
    for lane in range(width):
        void = math.nan if invalid[0, lane] else 0.0
        for j in range(num_thresholds):
            result[b, start + lane, j] = curves[lane, j] + jumps[j, lane] + void
        for j in range(0, num_thresholds + 1, WIDTH):
            store(curves, lane, j, nothing)
    for j in range(len(jumps)):
        store(jumps, j, 0, nothing)


@njit(nogil=True, forceinline=True, error_model="numpy")
def _take_block(block, directions, start):
    """Copy up to eight directions into ``block [dim, 8]``; returns how many."""
    width = min(WIDTH, len(directions) - start)
    block[:] = 0.0
    for axis in range(directions.shape[1]):
        for lane in range(width):
            block[axis, lane] = directions[start + lane, axis]
    return width


@_compiled
def plan(thresholds, weights, simplices, offsets, rows, num_points):
    """Whether thresholds and offsets are in order, and how to divide the work.

    That is bounds ``[ranges + 1]`` of consecutive complexes with about the same number of simplices.
    """
    ascend = _ascend(thresholds)
    consistent = _consistent(weights, simplices, offsets, rows, num_points)
    return ascend, consistent, _divide(offsets) if consistent else np.zeros(2, np.int64)


@njit(nogil=True, error_model="numpy")
def _ascend(thresholds):
    """Whether all thresholds are finite and none is below the one before."""
    for j in range(len(thresholds)):
        if not math.isfinite(thresholds[j]) or (j > 0 and thresholds[j] < thresholds[j - 1]):
            return False
    return True


@njit(nogil=True, error_model="numpy")
def _consistent(weights, simplices, offsets, rows, num_points):
    """Whether the offsets of a packed complex ascend from zero and end with what there is."""
    if len(offsets) != len(rows) + 1 or offsets.shape[1] == 0 or offsets[0, -1] != num_points:
        return False
    total = entries = 0
    for level in range(len(offsets)):
        if offsets[level, 0] != 0 or (level > 0 and not 1 <= rows[level - 1] <= MOST_ROWS):
            return False
        if level > 0 and not 0 <= offsets[level, -1] <= len(simplices):  # so that no product below can overflow
            return False
        for b in range(offsets.shape[1] - 1):
            if offsets[level, b] > offsets[level, b + 1]:
                return False
        total += offsets[level, -1]
        entries += rows[level - 1] * offsets[level, -1] if level > 0 else 0
    return entries == len(simplices) and (len(weights) == 0 or len(weights) == total)


@njit(nogil=True, error_model="numpy")
def _divide(offsets):
    num_complexes, total = offsets.shape[1] - 1, offsets[:, -1].sum()
    count = max(1, min(num_complexes, MOST_RANGES, -(-total // SIMPLICES_A_RANGE)))
    bounds = np.empty(count + 1, np.int64)
    bounds[0], bounds[count] = 0, num_complexes
    if count > 1:
        work = offsets.sum(axis=0)
        for i in range(1, count):
            bounds[i] = np.searchsorted(work, i * total / count)
    return bounds


@_compiled
def add_up(copies, result):
    """``result [n]`` becomes the sum of ``copies [m, n]``, in their order."""
    for i in range(len(result)):
        total = 0.0
        for copy in range(len(copies)):
            total += copies[copy, i]
        result[i] = total
