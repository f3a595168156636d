"""Curves and gradients by moments, for many vertices and a soft scale.

If a sigmoid is as wide as the range of thresholds, windows save nothing: each vertex rises at all thresholds. But vertices of
nearly the same height have nearly the same sigmoid. So heights are divided into bins, narrow enough for a short power series,

    S(scale (t - height)) = sum over k of W[k](t) x^k,    x in [-1, 1] the position of the height in its bin,

up to the rounding of the dtype. The vertices of a bin then enter only through their moments, the sums of coefficient * x^k.
A vertex costs one addition of eight numbers (sixteen in float64), however many thresholds there are, and only
the few bins meet the thresholds. In the backward pass each bin gets a polynomial, the gradient with respect to its moments,
and a vertex evaluates it at its x.

The series follow from the differential equation of the sigmoid, once per call and only for bins that hold vertices.
The lowest and the highest bin hold the heights that are saturated at every threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .collapse import COEFFICIENT, HEIGHT
from .jit import inlined, inner
from .simd import (
    WIDTH,
    add,
    add_powers,
    any_lane,
    broadcast,
    cast,
    divide,
    evaluate_polynomials,
    fma,
    load,
    maximum,
    minimum,
    multiply,
    not_equal,
    select,
    store,
    sum_lanes,
    to_float64,
    to_int32,
    transpose,
)
from .windows import ThresholdGrid

# The truncation error of a series is (half-width / pi) ** terms: 2e-9 in float32, 4e-15 in float64.
HALF_WIDTHS = (0.25, 0.375)
VERTICES_PER_BIN = 0.5  # and per term: from this density on moments are faster than windows
NONZERO_FRACTION = 8  # one vertex in eight is expected to have a nonzero coefficient if simplices may cancel the others
RESOLUTION = 2.0**-49  # bins that are not wider than this fraction of the heights would lose digits to rounding
MAX_TABLE_SIZE = 2**21  # numbers
CHUNK = 128  # vertices at a time, so that their bins stay in the L1 cache
MAX_CHUNKS = 16  # whose moments are summed in the dtype of the points before they are added in float64
BINS_PER_CHUNK = 8  # few enough chunks to keep that addition cheap


class Bins(NamedTuple):
    """Bins of heights, their series, and scratch memory."""

    min_vertices: float  # complexes with at least this many nonzero vertices use moments
    lower: float  # lower end of the first bin
    density: float  # bins per unit of height
    half_width: float  # of a bin, times scale
    first: NDArray[np.int64]  # [N], first threshold in the window of a bin
    end: NDArray[np.int64]  # [N], from this threshold on a bin is saturated
    row: NDArray[np.int64]  # [N], threshold j of a bin is row + j of the table
    is_ready: NDArray[np.bool_]  # [N], whether the table is filled
    table: NDArray[np.float64]  # [..., terms], the series of each bin and threshold in its window
    moments: NDArray[np.float64]  # [N * 8, terms], for each bin and direction; zeros between uses
    chunk_moments: NDArray[np.floating]  # [N * 8, terms], moments of some vertices in float32, else empty; zeros between uses
    polynomials: NDArray[np.floating]  # [N * 8, terms], gradient with respect to each moment
    series: NDArray[np.float64]  # [terms, 8], of the current bin
    columns: NDArray[np.float64]  # [H, 8], curves or their gradient, transposed; zeros between curves
    # The vertices of the current chunk, their bins, positions in the bins, slopes; and the lowest and highest bin.
    vertices: NDArray[np.int64]  # [CHUNK]
    bins: NDArray[np.int32]  # [CHUNK, 8]
    x: NDArray[np.floating]  # [CHUNK, 8]
    slopes: NDArray[np.floating]  # [CHUNK, 8]
    extremes: NDArray[np.float64]  # [2, 8]


@inner
def make_bins(grid: ThresholdGrid, like: NDArray[np.floating], max_vertices: int) -> Bins:
    """Bins for complexes of up to ``max_vertices`` in the dtype of ``like``. Empty if moments pay off for none of them."""
    bounded, scale, reach = grid.bounded, grid.scale, grid.reach
    num_thresholds = len(bounded) - 2
    terms, half_width = (WIDTH, HALF_WIDTHS[0]) if like.itemsize == 4 else (2 * WIDTH, HALF_WIDTHS[1])
    count, density, min_vertices = 0, scale / (2 * half_width), np.inf
    lower = bounded[1] - reach - 1 / density
    largest = abs(bounded[1]) + abs(bounded[num_thresholds])
    is_resolved = largest * RESOLUTION < 1 / density
    if grid.is_tabulated and num_thresholds and math.isfinite(lower) and is_resolved:
        num_inner = math.ceil((bounded[num_thresholds] - bounded[1] + 2 * reach) * density)
        min_vertices = VERTICES_PER_BIN * terms * num_inner
        count = num_inner + 2 if max_vertices >= min_vertices else 0
    first, end, row = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    low = high = next_row = 0
    for bin in range(1, count - 1):
        while low < num_thresholds and bounded[1 + low] < lower + bin / density - reach:
            low += 1
        high = max(low, high)
        while high < num_thresholds and bounded[1 + high] < lower + (bin + 1) / density + reach:
            high += 1
        first[bin], end[bin], row[bin] = low, high, next_row - low
        next_row += -(-(high - low) // WIDTH) * WIDTH
    dtype = like.dtype
    if count == 0 or max(next_row, count) * terms > MAX_TABLE_SIZE:
        empty, empty_like = np.empty((0, WIDTH)), np.empty((0, WIDTH), dtype)  # shared, since each array costs time
        return Bins(
            np.inf, lower, density, half_width, first, first, first, np.empty(0, np.bool_), empty,
            empty, empty_like, empty_like, empty, empty,
            first, np.empty((0, WIDTH), np.int32), empty_like, empty_like, empty,
        )  # fmt: skip
    first[-1] = end[-1] = num_thresholds
    return Bins(
        min_vertices, lower, density, half_width, first, end, row, np.zeros(count, np.bool_), np.empty((next_row, terms)),
        np.zeros((count * WIDTH, terms)), np.zeros((count * WIDTH if like.itemsize == 4 else 0, terms), dtype),
        np.empty((count * WIDTH, terms), dtype), np.empty((terms, WIDTH)), np.zeros((num_thresholds, WIDTH)),
        np.empty(CHUNK, np.int64), np.empty((CHUNK, WIDTH), np.int32), np.empty((CHUNK, WIDTH), dtype),
        np.empty((CHUNK, WIDTH), dtype), np.empty((2, WIDTH)),
    )  # fmt: skip


@inlined
def num_nonzero(offsets, b):
    """Estimated number of vertices of complex ``b`` with a nonzero coefficient. Each simplex may cancel one vertex."""
    vertices = offsets[0, b + 1] - offsets[0, b]
    simplices = 0
    for level in range(1, len(offsets)):
        simplices += offsets[level, b + 1] - offsets[level, b]
    return max(vertices - simplices, vertices // NONZERO_FRACTION)


@inner
def max_nonzero(offsets):
    """The largest :func:`num_nonzero` of any complex."""
    largest = 0
    for b in range(offsets.shape[1] - 1):
        largest = max(largest, num_nonzero(offsets, b))
    return largest


@inner
def _compute_series(bin, grid, bins):
    """Fill the table of a bin, eight thresholds at a time, from f' = -half_width f (1 - f)."""
    table, series, half_width, decay = bins.table, bins.series, bins.half_width, grid.decay
    factor = broadcast(math.exp(grid.scale * (bins.lower - grid.center + (bin + 0.5) / bins.density)))
    one, minus_one = broadcast(1.0), broadcast(-1.0)
    for j in range(bins.first[bin], bins.end[bin], WIDTH):
        exponential = multiply(factor, load(decay, 0, j))
        sigmoid = divide(one, add(one, exponential))
        complement = multiply(exponential, sigmoid)
        store(series, 0, 0, sigmoid)
        store(series, 1, 0, multiply(broadcast(-half_width), multiply(sigmoid, complement)))
        difference = add(complement, multiply(minus_one, sigmoid))
        for k in range(1, len(series) - 1):
            product = broadcast(0.0)
            for i in range(1, k):
                product = add(product, multiply(load(series, i, 0), load(series, k - i, 0)))
            derivative = add(multiply(difference, load(series, k, 0)), multiply(minus_one, product))
            store(series, k + 1, 0, multiply(broadcast(-half_width / (k + 1)), derivative))
        for k in range(0, len(series), WIDTH):
            transpose(table, bins.row[bin] + j, k, series, k, 0)
    bins.is_ready[bin] = True


@inner
def _find_bins(field, start, stop, bins, include_zeros):
    """Find the bins of the vertices from ``start`` to ``stop`` with a nonzero coefficient, or of all of them.

    Returns their number, and the lowest and highest bin. NaN falls in the lowest bin of all.
    """
    vertices, found_bins, x, extremes = bins.vertices, bins.bins, bins.x, bins.extremes
    lower, density, top = broadcast(-bins.lower), broadcast(bins.density), broadcast(float(len(bins.end) - 1))
    lowest, highest, count = top, broadcast(0.0), 0
    for v in range(start, stop):
        if include_zeros or any_lane(not_equal(load(field, v, COEFFICIENT), broadcast(field.dtype.type(0)))):
            position = multiply(add(cast(load(field, v, HEIGHT), extremes), lower), density)
            position = minimum(maximum(position, broadcast(0.0)), top)
            lowest, highest = minimum(position, lowest), maximum(position, highest)
            bin = to_int32(position)
            inside = add(position, multiply(broadcast(-1.0), to_float64(bin)))
            vertices[count] = v
            store(found_bins, count, 0, bin)
            store(x, count, 0, cast(add(add(inside, inside), broadcast(-1.0)), x))
            count += 1
    store(extremes, 0, 0, lowest)
    store(extremes, 1, 0, highest)
    low, high = extremes[0, 0], extremes[1, 0]
    for lane in range(1, WIDTH):
        low, high = min(low, extremes[0, lane]), max(high, extremes[1, lane])
    return count, int(low), int(high)


@inner
def _add_moments(field, start, stop, moments, bins):
    """Add the vertices from ``start`` to ``stop`` to the moments. Returns the lowest and the highest bin they fall in."""
    vertices, found_bins, x = bins.vertices, bins.bins, bins.x
    lowest, highest = len(bins.end), -1
    for chunk in range(start, stop, CHUNK):
        count, low, high = _find_bins(field, chunk, min(chunk + CHUNK, stop), bins, False)
        if count:
            lowest, highest = min(lowest, low), max(highest, high)
        for i in range(count):
            add_powers(moments, found_bins, i, load(field, vertices[i], COEFFICIENT), load(x, i, 0))
    return lowest, highest


@inlined
def _add_moments_by_chunks(field, bins):
    """Add all vertices to the moments. In float32 some of them are summed in float32 first, in a faster cache.

    This is accurate enough for curves: if coefficients are integers the first moment stays exact, and the others matter little.
    """
    moments, chunk_moments, count = bins.moments, bins.chunk_moments, len(field)
    if not len(chunk_moments):
        return _add_moments(field, 0, count, moments, bins)
    lowest, highest = len(bins.end), -1
    size = CHUNK * min(MAX_CHUNKS, 1 + len(bins.end) // BINS_PER_CHUNK)
    for start in range(0, count, size):
        low, high = _add_moments(field, start, min(start + size, count), chunk_moments, bins)
        for row in range(WIDTH * low, WIDTH * (high + 1)):
            for k in range(0, moments.shape[1], WIDTH):
                store(moments, row, k, add(load(moments, row, k), cast(load(chunk_moments, row, k), moments)))
                store(chunk_moments, row, k, broadcast(chunk_moments.dtype.type(0)))
        lowest, highest = min(lowest, low), max(highest, high)
    return lowest, highest


@inlined
def _pop_moments(series, moments, bin):
    """Move the moments of a bin to ``series [terms, 8]``, transposed, and clear them."""
    for k in range(0, moments.shape[1], WIDTH):
        transpose(series, k, 0, moments, WIDTH * bin, k)
        for lane in range(WIDTH):
            store(moments, WIDTH * bin + lane, k, broadcast(0.0))


@inner
def accumulate(curves, jumps, field, width, grid, bins):
    """Like :func:`.windows.accumulate`."""
    first, end, row, table, moments, series, columns = (
        bins.first, bins.end, bins.row, bins.table, bins.moments, bins.series, bins.columns
    )  # fmt: skip
    lowest, highest = _add_moments_by_chunks(field, bins)
    for bin in range(lowest, highest + 1):
        if not bins.is_ready[bin]:
            _compute_series(bin, grid, bins)
        _pop_moments(series, moments, bin)
        for j in range(first[bin], end[bin]):
            sum = load(columns, j, 0)
            for k in range(len(series)):
                sum = fma(broadcast(table[row[bin] + j, k]), load(series, k, 0), sum)
            store(columns, j, 0, sum)
        store(jumps, end[bin], 0, add(load(jumps, end[bin], 0), load(series, 0, 0)))
    for j in range(len(columns)):
        for lane in range(width):
            curves[lane, j] += columns[j, lane]
        store(columns, j, 0, broadcast(0.0))


@inner
def _compute_polynomial(bin, suffix_sums, grid, bins, derivative):
    """Gradient with respect to each moment of a bin, given that of the curves in ``bins.columns``.

    With ``derivative=1``, the derivative of that polynomial in height.
    """
    first, end, row, table, polynomials, series, columns = (
        bins.first[bin], bins.end[bin], bins.row[bin], bins.table, bins.polynomials, bins.series, bins.columns
    )  # fmt: skip
    if not bins.is_ready[bin]:
        _compute_series(bin, grid, bins)
    steepness = grid.scale / bins.half_width
    store(series, len(series) - 1, 0, broadcast(0.0))
    for k in range(derivative, len(series)):
        gradient = broadcast(0.0)
        for j in range(first, end):
            gradient = fma(broadcast(table[row + j, k]), load(columns, j, 0), gradient)
        store(series, k - derivative, 0, multiply(broadcast(k * steepness if derivative else 1.0), gradient))
    if not derivative:
        store(series, 0, 0, add(load(series, 0, 0), load(suffix_sums, end, 0)))
    for k in range(0, len(series), WIDTH):
        transpose(polynomials, WIDTH * bin, k, series, k, 0)


@inlined
def _extend_polynomials(low, high, lowest, highest, suffix_sums, grid, bins, derivative):
    """Compute the polynomials from ``low`` to ``high`` if they are outside ``lowest`` to ``highest``, which are ready."""
    if highest < lowest:
        lowest, highest = low, low - 1
    while highest < high:
        highest += 1
        _compute_polynomial(highest, suffix_sums, grid, bins, derivative)
    while lowest > low:
        lowest -= 1
        _compute_polynomial(lowest, suffix_sums, grid, bins, derivative)
    return lowest, highest


@inlined
def _transpose_gradient(columns, curve_gradient, width):
    """Thresholds first; zero in the lanes without a direction."""
    for j in range(len(columns)):
        for lane in range(WIDTH):
            columns[j, lane] = curve_gradient[lane, j] if lane < width else 0.0


@inner
def backpropagate(gradients, block_gradient, curve_gradient, field, origin, column, width, points, block, grid, bins):
    """Like :func:`.windows.backpropagate`."""
    point_gradient, needs_grid, scale_gradient = gradients.points, len(gradients.scale) > 0, 0.0
    _transpose_gradient(bins.columns, curve_gradient, width)
    if needs_grid:
        scale_gradient = _backpropagate_to_grid(gradients.thresholds, field, grid, bins)
    polynomials, vertices, found_bins, x, slopes = bins.polynomials, bins.vertices, bins.bins, bins.x, bins.slopes
    zero = broadcast(field.dtype.type(0))
    lowest, highest = 0, -1
    for start in range(0, len(field), CHUNK):
        count, low, high = _find_bins(field, start, min(start + CHUNK, len(field)), bins, False)
        if not count:
            continue
        lowest, highest = _extend_polynomials(low, high, lowest, highest, bins.columns, grid, bins, 1)
        for i in range(count):
            coefficients, heights = load(field, vertices[i], COEFFICIENT), load(field, vertices[i], HEIGHT)
            slope = multiply(coefficients, evaluate_polynomials(polynomials, found_bins, i, load(x, i, 0)))
            slope = select(not_equal(coefficients, zero), slope, zero)
            is_nan = not_equal(heights, heights)
            if any_lane(is_nan):
                nan = broadcast(field.dtype.type(math.nan))
                slope = select(not_equal(coefficients, zero), select(is_nan, nan, slope), zero)
                scale_gradient += sum_lanes(slope) * 0.0
            store(slopes, i, 0, slope)
        if len(point_gradient) and not len(block):
            for i in range(count):
                for lane in range(width):
                    point_gradient[origin + vertices[i], column + lane] += slopes[i, lane]
        for axis in range(len(block)):
            if len(point_gradient):
                direction = cast(load(block, axis, 0), field)
                for i in range(count):
                    point_gradient[origin + vertices[i], axis] += sum_lanes(multiply(load(slopes, i, 0), direction))
            if len(block_gradient):
                sum = zero
                for i in range(count):
                    sum = fma(load(slopes, i, 0), broadcast(points[origin + vertices[i], axis]), sum)
                store(block_gradient, axis, 0, add(load(block_gradient, axis, 0), cast(sum, block_gradient)))
    if needs_grid:
        gradients.scale[0] += scale_gradient


@inner
def _backpropagate_to_grid(threshold_gradient, field, grid, bins):
    """Add to the gradient of the thresholds, from the derivative of each bin in height. Returns the gradient of the scale."""
    first, end, row, table, moments, series, columns = (
        bins.first, bins.end, bins.row, bins.table, bins.moments, bins.series, bins.columns
    )  # fmt: skip
    thresholds, shrinkage, scale_gradient = grid.padded, broadcast(-bins.half_width / grid.scale), broadcast(0.0)
    lowest, highest = _add_moments(field, 0, len(field), moments, bins)
    for bin in range(lowest, highest + 1):
        middle = (bin + 0.5) / bins.density  # relative to the lower end: heights may be large and close to each other
        if not bins.is_ready[bin]:
            _compute_series(bin, grid, bins)
        _pop_moments(series, moments, bin)
        for j in range(first[bin], end[bin]):
            slope, shift = broadcast(0.0), broadcast(0.0)
            for k in range(1, len(series)):
                weight = broadcast(k * table[row[bin] + j, k])
                slope = fma(weight, load(series, k - 1, 0), slope)
                shift = fma(weight, load(series, k, 0), shift)
            gradient = multiply(load(columns, j, 0), broadcast(-1 / bins.half_width))
            slope, shift = multiply(gradient, slope), multiply(gradient, shift)
            threshold_gradient[0, j] += sum_lanes(slope)
            distance = broadcast(thresholds[0, j] - bins.lower - middle)
            scale_gradient = add(scale_gradient, add(multiply(slope, distance), multiply(shift, shrinkage)))
    return sum_lanes(scale_gradient)


@inner
def backpropagate_to_coefficients(field, curve_gradient, suffix_sums, width, grid, bins):
    """Like :func:`.windows.backpropagate_to_coefficients`."""
    _transpose_gradient(bins.columns, curve_gradient, width)
    saturated = np.zeros((len(bins.columns) + 1, WIDTH))
    _transpose_gradient(saturated, suffix_sums, width)
    lowest, highest = 0, -1
    for start in range(0, len(field), CHUNK):
        count, low, high = _find_bins(field, start, min(start + CHUNK, len(field)), bins, True)
        lowest, highest = _extend_polynomials(low, high, lowest, highest, saturated, grid, bins, 0)
        for i in range(count):
            store(field, start + i, COEFFICIENT, evaluate_polynomials(bins.polynomials, bins.bins, i, load(bins.x, i, 0)))
