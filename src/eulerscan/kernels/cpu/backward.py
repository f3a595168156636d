"""The backward pass, compiled by numba. Its tasks are those of :mod:`.forward`.

No two tasks add to the same number, so that the sums do not depend on the threads. Points and weights have a copy of their
gradient per share, directions one per range, thresholds and scale one per task. Given heights have one copy, since each share
has columns of its own, and so have directions of each complex. The thread that finishes the last task adds the copies up, in
a fixed order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import moments, windows
from .arguments import INDEX_OUTSIDE, VALID, Arguments, inputs_of, max_vertices, split_into_ranges, validate
from .collapse import backpropagate_to_weights, collapse, field_of, load_directions
from .jit import address_of, array_at, cached, inlined
from .simd import WIDTH, broadcast, cast, load, store
from .threads import fetch_add


class Gradients(NamedTuple):
    """The copies that one task adds to. Empty if not needed."""

    points: NDArray[np.float64]  # [V, dim], or of the given heights [V, T]
    directions: NDArray[np.float64]  # [T, dim] or [B * T, dim]
    thresholds: NDArray[np.float64]  # [1, H + 8], lack a factor ``scale``
    scale: NDArray[np.float64]  # [1]
    weights: NDArray[np.float64]  # [W]


@cached
def backward(counters, num_shares, arguments, curve_gradient_address, gradient_addresses, partials, lengths):
    """Fill the gradients of points, directions, thresholds, scale and weights at the addresses, 0 for those not needed.

    ``partials`` holds the copies of each gradient, one after another; ``lengths`` are those of one copy, 0 if not needed.
    Heights and coefficients are computed again unless the forward pass kept them. Returns a status of :mod:`.arguments`.
    """
    named = Arguments(*arguments)
    inputs = inputs_of(named)
    status = validate(inputs)
    if status != VALID:
        return status
    points, directions, thresholds, offsets = inputs.points, inputs.directions, inputs.thresholds, inputs.offsets
    num_complexes, num_directions, num_thresholds = offsets.shape[1] - 1, len(directions) // named.num_sets, len(thresholds)
    upstream = array_at(curve_gradient_address, (num_complexes * num_directions, num_thresholds), named.float_zero)
    ranges = split_into_ranges(offsets, named.num_ranges)
    num_tasks, is_kept = named.num_ranges * num_shares, len(named.fields) > 0
    num_point_copies, num_direction_copies = (
        num_shares if directions.shape[1] else 1,
        1 if named.num_sets > 1 else named.num_ranges,
    )
    copies = _split_copies(partials, lengths, num_point_copies, num_direction_copies, num_shares, named.num_ranges)
    needs_weights = lengths[4] > 0
    grid = windows.make_grid(thresholds, named.scale, named.saturation)
    scratch = np.empty((max_vertices(offsets), 2 * WIDTH), points.dtype)
    bins = moments.make_bins(grid, points, len(scratch) if needs_weights else moments.max_nonzero(offsets))
    invalid = np.empty((1, WIDTH))
    block = np.empty((directions.shape[1], WIDTH))
    block_gradient = np.zeros((directions.shape[1] if lengths[1] else 0, WIDTH))
    curve_gradient = np.zeros((WIDTH, num_thresholds + WIDTH))
    suffix_sums = np.zeros((WIDTH, num_thresholds + WIDTH))
    while True:
        task = fetch_add(counters, 0)
        if task >= num_tasks:
            return VALID
        range_index, share = task // num_shares, task % num_shares
        gradients = _gradients_of(copies, task, range_index, share, points.shape[1])
        for start in range(share * WIDTH, num_directions, num_shares * WIDTH):
            width = min(WIDTH, num_directions - start)
            if named.num_sets == 1:
                load_directions(block, directions, start, width)
            for b in range(ranges[range_index], ranges[range_index + 1]):
                if named.num_sets > 1:
                    load_directions(block, directions, b * num_directions + start, width)
                field = field_of(b, start, named.fields, scratch, offsets, named.float_zero)
                if not is_kept and not collapse(field, invalid, b, inputs, block, start, width):
                    return INDEX_OUTSIDE
                _load_gradient(curve_gradient, upstream, b * num_directions + start, width)
                if moments.num_nonzero(offsets, b) >= bins.min_vertices:
                    moments.backpropagate(
                        gradients, block_gradient, curve_gradient, field, offsets[0, b], start, width, points, block, grid, bins
                    )
                elif not math.isinf(named.scale):
                    windows.backpropagate(
                        gradients, block_gradient, curve_gradient, field, offsets[0, b], start, width, points, block, grid
                    )
                if needs_weights:
                    for lane in range(width):
                        for j in range(num_thresholds - 1, -1, -1):
                            suffix_sums[lane, j] = suffix_sums[lane, j + 1] + curve_gradient[lane, j]
                    if len(field) >= bins.min_vertices:
                        moments.backpropagate_to_coefficients(field, curve_gradient, suffix_sums, width, grid, bins)
                    else:
                        windows.backpropagate_to_coefficients(field, curve_gradient, suffix_sums, width, grid)
                    backpropagate_to_weights(gradients.weights, field, b, inputs)
                if named.num_sets > 1:
                    _add_block(gradients.directions, b * num_directions + start, width, block_gradient)
            if named.num_sets == 1:
                _add_block(gradients.directions, start, width, block_gradient)
        if fetch_add(counters, 1) == num_tasks - 1:
            scale = 0.0 if math.isinf(named.scale) else named.scale
            counts = (lengths[0], lengths[1], num_thresholds, 1, lengths[4])
            _sum_copies(gradient_addresses, counts, copies, (1.0, 1.0, scale, 1.0, 1.0), named.float_zero)


@inlined
def _add_block(direction_gradient, first, width, block_gradient):
    """Add the gradient of a block of directions to that of all, from row ``first`` on, and clear it."""
    for axis in range(len(block_gradient)):
        for lane in range(width):
            direction_gradient[first + lane, axis] += block_gradient[axis, lane]
        store(block_gradient, axis, 0, broadcast(0.0))


@inlined
def _load_gradient(curve_gradient, upstream, row, width):
    """Copy the upstream gradient of one complex to ``curve_gradient [8, H + 8]`` in float64."""
    num_thresholds = upstream.shape[1]
    whole = num_thresholds - num_thresholds % WIDTH
    for lane in range(width):
        for j in range(0, whole, WIDTH):
            store(curve_gradient, lane, j, cast(load(upstream, row + lane, j), curve_gradient))
        for j in range(whole, num_thresholds):
            curve_gradient[lane, j] = upstream[row + lane, j]


@inlined
def _split_copies(partials, lengths, num_point_copies, num_direction_copies, num_shares, num_ranges):
    """The copies ``[copies, length]`` of each gradient, as arrays without a reference count."""
    first = address_of(partials)
    second = first + 8 * num_point_copies * lengths[0]
    third = second + 8 * num_direction_copies * lengths[1]
    fourth = third + 8 * num_ranges * num_shares * lengths[2]
    fifth = fourth + 8 * num_ranges * num_shares * lengths[3]
    return (
        array_at(first, (num_point_copies, lengths[0]), 0.0),
        array_at(second, (num_direction_copies, lengths[1]), 0.0),
        array_at(third, (num_ranges * num_shares, lengths[2]), 0.0),
        array_at(fourth, (num_ranges * num_shares, lengths[3]), 0.0),
        array_at(fifth, (num_shares, lengths[4]), 0.0),
    )


@inlined
def _gradients_of(copies, task, range_index, share, dim):
    """The copies that a task adds to."""
    points, directions, thresholds, scale, weights = copies
    return Gradients(
        points[min(share, len(points) - 1)].reshape(points.shape[1] // max(1, dim), dim),
        directions[min(range_index, len(directions) - 1)].reshape(directions.shape[1] // max(1, dim), dim),
        thresholds[task : task + 1],
        scale[task],
        weights[share],
    )


@inlined
def _sum_copies(addresses, counts, copies, factors, float_zero):
    """Fill the gradients at ``addresses``, ``counts`` numbers each, with the sum of their copies, which may be padded."""
    for k in range(len(addresses)):
        gradient = array_at(addresses[k], (counts[k] if addresses[k] else 0,), float_zero)
        for i in range(len(gradient)):
            total = 0.0
            for copy in range(len(copies[k])):
                total += copies[k][copy, i]
            gradient[i] = factors[k] * total
