"""Curves from vertices, and gradients of vertices from those of curves, by windows of thresholds.

A vertex with coefficient c at height h adds c to every threshold from h on. In the smooth transform it rises as a sigmoid
instead, which is evaluated only on the window of thresholds where it is neither 0 nor 1, eight thresholds at a time.
Arrays over thresholds are padded by eight columns, and a window ends with the last group of eight that it enters. If thresholds
are even, all windows have the same number of groups, enough for any of them: a processor that has to guess the number often
guesses wrong.

The exponentials of all thresholds are tabulated, so that a vertex needs only one exponential of its own:

    exp(-scale (t - height)) = exp(-scale (t - center)) * exp(scale (height - center)).

This works while both factors are in range. If the thresholds span too wide a range for the scale, windows hold
only a few thresholds each, and the table is computed again for every height.

All three passes repeat the loop over a window. In a function of its own, numba would count references to the arrays
of the grid for every vertex, a third more time on small complexes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .collapse import COEFFICIENT, HEIGHT
from .jit import entry, inlined, inner, item
from .simd import (
    EXP_LIMIT,
    WIDTH,
    add,
    any_lane,
    bitmask,
    broadcast,
    cast,
    count_trailing_zeros,
    divide,
    exp,
    fma,
    greater_equal,
    load,
    logical_or,
    maximum,
    minimum,
    multiply,
    not_equal,
    select,
    store,
    sum_lanes,
    to_float64,
    to_int32,
)

MAX_EXPONENT = 600.0
MAX_STEEPNESS = 100.0  # of a sigmoid, in steps: exponentials stay in range if a window starts half a step too low
BUCKETS_PER_THRESHOLD = 4
MAX_MARGIN = 0.25  # of a step: a height is then next to the threshold that it is nearest to
ROUNDING = 1e-6  # of a step, more than rounding can move a height
CHUNK = 64  # vertices at a time


class ThresholdGrid(NamedTuple):
    """The thresholds, prepared for lookup and sigmoids.

    ``starts``, ``factors``, ``slopes`` and an untabulated ``decay`` are scratch.
    """

    bounded: NDArray[np.float64]  # [H + 2], the thresholds between -inf and inf
    padded: NDArray[np.float64]  # [1, H + 8], the thresholds followed by zeros
    buckets: NDArray[np.int64]  # [M + 1], first threshold at or above the lower end of each bucket
    density: float  # buckets per unit of height
    scale: float
    reach: float  # a sigmoid is saturated beyond this distance from its height; 0 for the exact transform
    steps: float  # thresholds per unit of height if they are nearly even and not too far apart, else 0
    first: float  # a height at the first threshold has its window from this number of steps on, rounded down
    groups: int  # of eight thresholds in a window, at most
    above: float  # its last group starts at most so far above the height: ``reach``; inf if all windows have the same number
    starts: NDArray[np.int32]  # [1, 8], first threshold in the windows of the current vertex
    center: float
    decay: NDArray[np.float64]  # [1, H + 8], exp(-scale (threshold - center))
    is_tabulated: bool  # whether ``decay`` holds for all heights
    factors: NDArray[np.float64]  # [1, 8], exp(scale (height - center)) of the current vertex; 1 if not tabulated
    slopes: NDArray[np.float64]  # [1, 8], gradient of the heights of the current vertex


class Search(NamedTuple):
    """The thresholds, prepared for the exact transform."""

    bounded: NDArray[np.float64]  # as in the grid
    buckets: NDArray[np.int64]
    density: float
    steps: float  # thresholds per unit of height if they are nearly even, else 0
    margin: float  # of steps by which they may deviate from even ones, despite rounding
    places: NDArray[np.int32]  # [64, 16], scratch; empty for the smooth transform


@inlined
def make_grid(thresholds: NDArray[np.floating], scale: float, saturation: float) -> ThresholdGrid:
    count = len(thresholds)
    bounded = np.empty(count + 2)
    bounded[0], bounded[-1] = -np.inf, np.inf
    padded = np.zeros((1, count + WIDTH))
    for j in range(count):
        bounded[1 + j] = padded[0, j] = thresholds[j]
    origin = bounded[1] if count else 0.0
    extent = bounded[count] - origin if count else 0.0
    num_buckets = BUCKETS_PER_THRESHOLD * count
    density = num_buckets / extent if extent > 0 else 0.0
    buckets = np.empty(num_buckets + 1, np.int64)
    threshold = 0
    for bucket in range(num_buckets):
        while threshold < count and thresholds[threshold] < origin + bucket / density:
            threshold += 1
        buckets[bucket] = threshold
    buckets[num_buckets] = count

    center = origin + extent / 2
    is_tabulated = scale * extent / 2 <= MAX_EXPONENT
    decay = np.zeros((1, count + WIDTH))
    if is_tabulated:
        for j in range(count):
            decay[0, j] = math.exp(-scale * (bounded[1 + j] - center))
    factors, slopes = np.ones((1, WIDTH)), np.zeros((1, WIDTH))
    reach = saturation / scale
    steps, margin = _steps(bounded) if reach > 0 else (0.0, 0.0)
    steps = steps if scale <= MAX_STEEPNESS * steps else 0.0
    groups, above = count, reach if reach > 0 else -np.inf  # the window of the exact transform is empty
    if steps:
        groups, above = -(-(_largest_window(bounded, reach) + 1) // WIDTH), np.inf  # it may start one threshold too early
    starts = np.zeros((1, WIDTH), np.int32)
    return ThresholdGrid(
        bounded, padded, buckets, density, scale, reach, steps, 1.0 - margin - reach * steps, groups, above,
        starts, center, decay, is_tabulated, factors, slopes,
    )  # fmt: skip


@inlined
def make_search(grid: ThresholdGrid) -> Search:
    steps, margin = _steps(grid.bounded) if math.isinf(grid.scale) else (0.0, 0.0)
    places = np.empty((CHUNK if math.isinf(grid.scale) else 0, 2 * WIDTH), np.int32)
    return Search(grid.bounded, grid.buckets, grid.density, steps, margin, places)


@inner
def _steps(bounded: NDArray[np.float64]) -> tuple[float, float]:
    """Thresholds per unit of height, and their margin; zeros if they are not even."""
    count, margin = len(bounded) - 2, 0.0
    steps = (count - 1) / (bounded[count] - bounded[1]) if count > 1 else 0.0
    for j in range(count):
        deviation = abs((bounded[1 + j] - bounded[1]) * steps - j) + ROUNDING
        if not deviation < MAX_MARGIN:  # NaN too
            return 0.0, 0.0
        margin = max(margin, deviation)
    return steps, margin


@inner
def _largest_window(bounded: NDArray[np.float64], reach: float) -> int:
    """Number of thresholds in the fullest interval of length ``2 * reach``."""
    most = first = 0
    for last in range(len(bounded) - 2):
        while bounded[1 + last] - bounded[1 + first] > 2 * reach:
            first += 1
        most = max(most, last - first + 1)
    return most


@inlined
def locate(places, i, heights, row, column, search):
    """Set ``places[i, :8]`` to the first threshold at or above each of ``heights[row, column : column + 8]``.

    The thresholds are even: arithmetic finds it, unless a height all but lies on a threshold and has to be compared with it.
    """
    bounded, steps, margin = search.bounded, search.steps, search.margin
    position = multiply(add(cast(load(heights, row, column), bounded), broadcast(-item(bounded, 1))), broadcast(steps))
    place = minimum(maximum(add(position, broadcast(1.0)), broadcast(0.5)), broadcast(len(bounded) - 1.5))
    whole = to_int32(place)
    store(places, i, 0, whole)
    fraction = add(place, multiply(to_float64(whole), broadcast(-1.0)))
    if any_lane(logical_or(greater_equal(broadcast(margin), fraction), greater_equal(fraction, broadcast(1.0 - margin)))):
        store(places, i, 0, to_int32(add(place, broadcast(-0.5))))  # the nearest
        for lane in range(WIDTH):
            j = np.int64(entry(places, i, lane))
            j += np.int64(item(bounded, 1 + j) < np.float64(entry(heights, row, column + lane)))
            places[np.uint64(i), np.uint64(lane)] = j


@inlined
def _tabulate_window(decay, thresholds, scale, height, first):
    """Set ``decay`` to exp(-scale (threshold - height)) for eight thresholds from ``first`` on."""
    exponent = multiply(broadcast(-scale), add(load(thresholds, 0, first), broadcast(-height)))
    in_range = greater_equal(exponent, broadcast(-EXP_LIMIT))  # beyond it exp is not quite 0
    store(decay, 0, first, select(in_range, exp(exponent), broadcast(0.0)))


@inlined
def first_at_or_above(bounded: NDArray[np.float64], buckets: NDArray[np.int64], density: float, height: float) -> int:
    """Index of the first threshold at or above ``height``; the number of thresholds if there is none."""
    count = len(bounded) - 2
    position = (height - item(bounded, 1)) * density
    if density == 0.0:  # all thresholds are equal
        low, high = 0, count
    elif not position > 0:  # NaN too
        low, high = 0, 0
    elif position >= len(buckets) - 1:
        low, high = count, count
    else:
        bucket = int(position)
        low, high = item(buckets, bucket), item(buckets, bucket + 1)
    while high - low > 1:  # only if a bucket holds several thresholds
        middle = (low + high) // 2
        if item(bounded, 1 + middle) < height:
            low = middle + 1
        else:
            high = middle
    low += item(bounded, 1 + low) < height
    # The bucket comes from rounded arithmetic. Comparing with the thresholds themselves makes the result exact.
    while item(bounded, 1 + low) < height:
        low += 1
    while low > 0 and item(bounded, low) >= height:
        low -= 1
    return int(low)


@inlined
def _nonzero_lanes(field, v, width):
    """Bitmask of the directions in which the coefficient of vertex ``v`` is not zero."""
    return bitmask(not_equal(load(field, v, COEFFICIENT), broadcast(field.dtype.type(0)))) & ((1 << width) - 1)


@inlined
def _compute_factors(factors, field, v, scale, center):
    """Set ``factors`` to exp(scale (height - center)) of vertex ``v``."""
    offset = add(cast(load(field, v, HEIGHT), factors), broadcast(-center))
    store(factors, 0, 0, exp(multiply(broadcast(scale), offset)))


@inlined
def _find_windows(starts, field, v, bounded, steps, first):
    """Set ``starts`` to the first threshold in the window of vertex ``v`` in each direction, or to the one before."""
    offset = add(cast(load(field, v, HEIGHT), bounded), broadcast(-item(bounded, 1)))
    place = fma(offset, broadcast(steps), broadcast(first))
    store(starts, 0, 0, to_int32(minimum(maximum(place, broadcast(0.0)), broadcast(len(bounded) - 2.0))))


@inner
def accumulate(curves, jumps, field, width, grid):
    """Add all vertices of a field to ``curves [8, H + 8]``, and to ``jumps [H + 8, 8]`` where they saturate."""
    (
        bounded, thresholds, buckets, density, scale, reach, steps, first, groups, above,
        starts, center, decay, is_tabulated, factors, _,
    ) = grid  # fmt: skip
    last, one = len(bounded) - 2, broadcast(1.0)
    for v in range(len(field)):
        lanes = _nonzero_lanes(field, v, width)
        if not lanes:
            continue
        if steps:
            _find_windows(starts, field, v, bounded, steps, first)
        if is_tabulated:
            _compute_factors(factors, field, v, scale, center)
        while lanes:
            lane = count_trailing_zeros(lanes)
            lanes &= lanes - 1
            coefficient, height = np.float64(field[v, COEFFICIENT + lane]), np.float64(field[v, HEIGHT + lane])
            factor = broadcast(factors[0, lane])
            j = np.int64(entry(starts, 0, lane)) if steps else first_at_or_above(bounded, buckets, density, height - reach)
            end, limit = min(last, j + WIDTH * groups), height + above
            while j < end and item(bounded, 1 + j) <= limit:
                if not is_tabulated:
                    _tabulate_window(decay, thresholds, scale, height, j)
                sigmoid = divide(broadcast(coefficient), add(one, multiply(factor, load(decay, 0, j))))
                store(curves, lane, j, add(load(curves, lane, j), sigmoid))
                j += WIDTH
            jumps[j, lane] += coefficient


@inner
def count(jumps, field, search):
    """The exact transform: add all vertices of a field to ``jumps [H + 8, 8]``.

    Vertices that count in most directions are found first and added afterwards, some at a time: additions that wait for a
    search take twice as long.
    """
    bounded, buckets, density, steps, _, places = search
    for start in range(0, len(field), CHUNK):
        num_found = 0
        for v in range(start, min(start + CHUNK, len(field))):
            lanes = _nonzero_lanes(field, v, WIDTH)
            if not lanes:
                continue
            more = lanes & (lanes - 1)
            more &= more - 1
            if steps and more & (more - 1):  # four lanes at least
                locate(places, num_found, field, v, HEIGHT, search)
                places[np.uint64(num_found), np.uint64(WIDTH)] = v - start
                num_found += 1
                continue
            while lanes:
                lane = count_trailing_zeros(lanes)
                lanes &= lanes - 1
                j = first_at_or_above(bounded, buckets, density, np.float64(field[v, HEIGHT + lane]))
                jumps[j, lane] += np.float64(field[v, COEFFICIENT + lane])
        for i in range(num_found):
            row = start + np.int64(entry(places, i, WIDTH))
            for lane in range(WIDTH):
                jumps[np.uint64(entry(places, i, lane)), np.uint64(lane)] += np.float64(entry(field, row, COEFFICIENT + lane))


@inner
def backpropagate(gradients, block_gradient, curve_gradient, field, origin, column, width, points, block, grid):
    """Backpropagate ``curve_gradient [8, H + 8]`` to the heights, and from there to points and directions.

    Adds to the ``gradients`` of points, thresholds and scale that are needed; those of the thresholds lack a factor ``scale``.
    The gradient of the directions ``block [dim, 8]`` is added to ``block_gradient [dim, 8]``, if that is not empty. If there
    are no directions, the gradient of the given heights is added from ``column`` on.
    """
    (
        bounded, thresholds, buckets, density, scale, reach, steps, first, groups, above,
        starts, center, decay, is_tabulated, factors, slopes,
    ) = grid  # fmt: skip
    point_gradient, threshold_gradient, needs_grid = gradients.points, gradients.thresholds, len(gradients.scale) > 0
    last, one = len(bounded) - 2, broadcast(1.0)
    scale_gradient = 0.0
    for v in range(len(field)):
        lanes = _nonzero_lanes(field, v, width)
        if not lanes:
            continue
        if steps:
            _find_windows(starts, field, v, bounded, steps, first)
        if is_tabulated:
            _compute_factors(factors, field, v, scale, center)
        store(slopes, 0, 0, broadcast(0.0))
        while lanes:
            lane = count_trailing_zeros(lanes)
            lanes &= lanes - 1
            coefficient = np.float64(field[v, COEFFICIENT + lane])
            height = np.float64(field[v, HEIGHT + lane])
            if not height + reach >= item(bounded, 1):  # saturated at every threshold, or NaN
                if math.isnan(height):
                    slopes[0, lane] = scale_gradient = math.nan
                continue
            factor, sum, moment = broadcast(factors[0, lane]), broadcast(0.0), broadcast(0.0)
            j = np.int64(entry(starts, 0, lane)) if steps else first_at_or_above(bounded, buckets, density, height - reach)
            end, limit = min(last, j + WIDTH * groups), height + above
            while j < end and item(bounded, 1 + j) <= limit:
                if not is_tabulated:
                    _tabulate_window(decay, thresholds, scale, height, j)
                exponential = multiply(factor, load(decay, 0, j))
                sigmoid = divide(one, add(one, exponential))
                slope = multiply(load(curve_gradient, lane, j), multiply(exponential, multiply(sigmoid, sigmoid)))
                sum = add(sum, slope)
                if needs_grid:
                    slope = multiply(broadcast(coefficient), slope)
                    moment = fma(slope, add(load(thresholds, 0, j), broadcast(-height)), moment)
                    store(threshold_gradient, 0, j, add(load(threshold_gradient, 0, j), slope))
                j += WIDTH
            slopes[0, lane] = -scale * coefficient * sum_lanes(sum)
            if needs_grid:
                scale_gradient += sum_lanes(moment)
        height_gradient = load(slopes, 0, 0)
        if len(point_gradient) and len(block):
            for axis in range(len(block)):
                point_gradient[origin + v, axis] += sum_lanes(multiply(height_gradient, load(block, axis, 0)))
        elif len(point_gradient):
            for lane in range(width):
                point_gradient[origin + v, column + lane] += slopes[0, lane]
        for axis in range(len(block_gradient)):
            coordinate = broadcast(np.float64(points[origin + v, axis]))
            store(block_gradient, axis, 0, fma(height_gradient, coordinate, load(block_gradient, axis, 0)))
    if needs_grid:
        gradients.scale[0] += scale_gradient


@inner
def backpropagate_to_coefficients(field, curve_gradient, suffix_sums, width, grid):
    """Replace every coefficient of a field by its gradient.

    ``suffix_sums [8, H + 8]`` holds the sums of ``curve_gradient`` from each threshold on.
    """
    (
        bounded, thresholds, buckets, density, scale, reach, steps, first, groups, above,
        starts, center, decay, is_tabulated, factors, _,
    ) = grid  # fmt: skip
    last, one = len(bounded) - 2, broadcast(1.0)
    for v in range(len(field)):
        if steps:
            _find_windows(starts, field, v, bounded, steps, first)
        if is_tabulated:
            _compute_factors(factors, field, v, scale, center)
        for lane in range(WIDTH):
            gradient = 0.0
            if lane < width:
                factor, height = broadcast(factors[0, lane]), np.float64(field[v, HEIGHT + lane])
                j = np.int64(entry(starts, 0, lane)) if steps else first_at_or_above(bounded, buckets, density, height - reach)
                end, limit = min(last, j + WIDTH * groups), height + above
                while j < end and item(bounded, 1 + j) <= limit:
                    if not is_tabulated:
                        _tabulate_window(decay, thresholds, scale, height, j)
                    exponential = multiply(factor, load(decay, 0, j))
                    gradient += sum_lanes(divide(load(curve_gradient, lane, j), add(one, exponential)))
                    j += WIDTH
                gradient += suffix_sums[lane, j]
            field[v, COEFFICIENT + lane] = gradient
