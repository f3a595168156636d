"""The forward pass, compiled by numba.

A task is a range of complexes and a share of the blocks of eight directions. The kernel runs on any number of threads, each
of which claims tasks until none is left.
"""

from __future__ import annotations

import math

import numpy as np

from . import moments, windows
from .arguments import INDEX_OUTSIDE, VALID, Arguments, inputs_of, max_vertices, split_into_ranges, validate
from .collapse import collapse, field_of, load_directions
from .jit import array_at, cached, inlined
from .simd import WIDTH, add, broadcast, cast, load, not_equal, select, store, transpose
from .threads import fetch_add


@cached
def forward(counters, num_shares, arguments, result_address):
    """Fill the result ``[B, T, H]``. Returns a status of :mod:`.arguments`, which is also where ``arguments`` are named."""
    named = Arguments(*arguments)
    inputs = inputs_of(named)
    status = validate(inputs)
    if status != VALID:
        return status
    points, directions, thresholds, offsets = inputs.points, inputs.directions, inputs.thresholds, inputs.offsets
    num_complexes, num_directions, num_thresholds = offsets.shape[1] - 1, len(directions) // named.num_sets, len(thresholds)
    result = array_at(result_address, (num_complexes * num_directions, num_thresholds), named.float_zero)
    ranges = split_into_ranges(offsets, named.num_ranges)
    grid = windows.make_grid(thresholds, named.scale, named.saturation)
    search = windows.make_search(grid)
    bins = moments.make_bins(grid, points, moments.max_nonzero(offsets))
    uses_moments, is_exact, has_own = len(bins.end) > 0, math.isinf(named.scale), named.num_sets > 1
    scratch = np.empty((max_vertices(offsets), 2 * WIDTH), points.dtype)
    invalid = np.empty((1, WIDTH))
    block = np.empty((directions.shape[1], WIDTH))
    curves, transposed = np.zeros((WIDTH, num_thresholds + WIDTH)), np.empty((WIDTH, WIDTH))
    jumps = np.zeros((num_thresholds + WIDTH, WIDTH))
    while True:
        task = fetch_add(counters, 0)
        if task >= named.num_ranges * num_shares:
            return VALID
        range_index, share = task // num_shares, task % num_shares
        for start in range(share * WIDTH, num_directions, num_shares * WIDTH):
            width = min(WIDTH, num_directions - start)
            if not has_own:
                load_directions(block, directions, start, width)
            for b in range(ranges[range_index], ranges[range_index + 1]):
                if has_own:
                    load_directions(block, directions, b * num_directions + start, width)
                field = field_of(b, start, named.fields, scratch, offsets, named.float_zero)
                if not collapse(field, invalid, b, inputs, block, start, width):
                    return INDEX_OUTSIDE
                if uses_moments and moments.num_nonzero(offsets, b) >= bins.min_vertices:
                    moments.accumulate(curves, jumps, field, width, grid, bins)
                elif is_exact:
                    windows.count(jumps, field, search)
                else:
                    windows.accumulate(curves, jumps, field, width, grid)
                _write_curves(result, b * num_directions + start, width, curves, jumps, transposed, invalid)


@inlined
def _write_curves(result, row, width, curves, jumps, transposed, invalid):
    """Add the cumulative sum of the jumps, write the curves of one complex to the result, and clear curves and jumps."""
    num_thresholds, zero = result.shape[1], broadcast(0.0)
    sum = select(not_equal(load(invalid, 0, 0), zero), broadcast(math.nan), zero)
    for start in range(0, num_thresholds, WIDTH):
        for j in range(start, start + WIDTH):
            sum = add(sum, load(jumps, j, 0))
            store(jumps, j, 0, sum)
        transpose(transposed, 0, 0, jumps, start, 0)
        for j in range(start, start + WIDTH):
            store(jumps, j, 0, zero)
        for lane in range(width):
            curve = add(load(curves, lane, start), load(transposed, lane, 0))
            store(curves, lane, start, zero)
            if start + WIDTH <= num_thresholds:
                store(result, row + lane, start, cast(curve, result))
            else:
                store(transposed, lane, 0, curve)
                for j in range(start, num_thresholds):
                    result[row + lane, j] = transposed[lane, j - start]
