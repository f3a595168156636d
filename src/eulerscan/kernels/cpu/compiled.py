"""What numba compiles: both passes over the tasks of a transform.

A task is a range of complexes and a share of the blocks of eight directions. The kernels run on any number of threads;
each claims tasks until there are none.
"""

from __future__ import annotations

import math

import numpy as np

from .addresses import address_of, array_at, arrays_at
from .cells import make_cells, most_occupied, occupied
from .collapse import collapse, gather
from .grid import make_grid
from .jit import cached, inlined
from .lanes import WIDTH, add, cast, choose, differs, fill, load, store
from .moments import descend_cells, draw_cells, weigh_cells
from .planning import FINE, OUTSIDE, flaw_of, most_vertices, ranges_of
from .rows import turn
from .sweep import descend, draw, weigh
from .threads import claim


@cached
def forward(
    counters, shares, addresses, sizes, real, index, rows, num_ranges, scale, saturation, fields, result_address
):  # fmt: skip
    """Fill the result ``[B, T, H]``. Returns what is wrong with the arguments: see :mod:`.planning`.

    ``fields [blocks * V, 16]`` takes the fields of all complexes in all blocks for the backward pass, unless it is empty.
    """
    points, directions, thresholds, weights, simplices, offsets, rows = arrays_at(addresses, sizes, real, index, rows)
    flaw = flaw_of(thresholds, weights, simplices, offsets, rows, len(points))
    if flaw != FINE:
        return flaw
    num_complexes, num_directions, num_thresholds = offsets.shape[1] - 1, len(directions), len(thresholds)
    result = array_at(result_address, (num_complexes * num_directions, num_thresholds), real)
    ranges = ranges_of(offsets, num_ranges)
    grid = make_grid(thresholds, scale, saturation)
    own_field = np.empty((most_vertices(offsets), 2 * WIDTH), points.dtype)
    cells = make_cells(grid, points, most_occupied(offsets))
    invalid = np.empty((1, WIDTH))
    block = np.empty((points.shape[1], WIDTH))
    curves, risen = np.zeros((WIDTH, num_thresholds + WIDTH)), np.empty((WIDTH, WIDTH))
    jumps = np.zeros((num_thresholds + WIDTH, WIDTH))
    while True:
        task = claim(counters, 0)
        if task >= num_ranges * shares:
            return FINE
        range_index, share = task // shares, task % shares
        for start in range(share * WIDTH, num_directions, shares * WIDTH):
            width = _take_block(block, directions, start)
            for b in range(ranges[range_index], ranges[range_index + 1]):
                field = _field_of(b, start, fields, own_field, offsets, real)
                if not collapse(field, invalid, b, points, block, weights, simplices, offsets, rows):
                    return OUTSIDE
                count = offsets[0, b + 1] - offsets[0, b]
                if occupied(offsets, b) >= cells.worth:
                    draw_cells(curves, jumps, field, count, width, grid, cells)
                else:
                    draw(curves, jumps, field, count, width, grid)
                _harvest(result, b * num_directions + start, width, curves, jumps, risen, invalid)


@cached
def backward(
    counters, shares, addresses, sizes, real, index, rows, num_ranges, scale, saturation, fields,
    gradient_address, found_addresses, summed, lengths,
):  # fmt: skip
    """Fill the gradients of points, directions, thresholds, scale and weights at ``found_addresses``, 0 for what nobody needs.

    What the forward pass did not keep is computed anew. No two tasks add to the same place in ``summed``: points and weights
    have a copy a share, directions a copy a range, thresholds and scale a copy a task. ``lengths`` are those of one copy each,
    zero for what nobody needs. Whoever finishes the last task adds up the copies, in a fixed order. Returns what is wrong with
    the arguments, as the forward pass does.
    """
    points, directions, thresholds, weights, simplices, offsets, rows = arrays_at(addresses, sizes, real, index, rows)
    flaw = flaw_of(thresholds, weights, simplices, offsets, rows, len(points))
    if flaw != FINE:
        return flaw
    num_complexes, num_directions, num_thresholds = offsets.shape[1] - 1, len(directions), len(thresholds)
    gradient = array_at(gradient_address, (num_complexes * num_directions, num_thresholds), real)
    ranges = ranges_of(offsets, num_ranges)
    num_tasks, kept = num_ranges * shares, len(fields) > 0
    copies = (shares, num_ranges, num_tasks, num_tasks, shares)
    point_gradient, rest = _vectors(summed, copies[0], lengths[0], points.shape[1])
    direction_gradient, rest = _vectors(rest, copies[1], lengths[1], points.shape[1])
    threshold_gradient, rest = _part(rest, copies[2], lengths[2])
    scale_gradient, rest = _part(rest, copies[3], lengths[3])
    weight_gradient, _ = _part(rest, copies[4], lengths[4])
    of_grid = scale_gradient.shape[1] > 0
    grid = make_grid(thresholds, scale, saturation)
    own_field = np.empty((most_vertices(offsets), 2 * WIDTH), points.dtype)
    cells = make_cells(grid, points, len(own_field) if weight_gradient.shape[1] else most_occupied(offsets))
    invalid = np.empty((1, WIDTH))
    block = np.empty((points.shape[1], WIDTH))
    turned = np.zeros((points.shape[1] if direction_gradient.shape[1] else 0, WIDTH))
    gradients = np.zeros((WIDTH, num_thresholds + WIDTH))
    suffixes = np.zeros((WIDTH, num_thresholds + WIDTH))
    while True:
        task = claim(counters, 0)
        if task >= num_tasks:
            return FINE
        range_index, share = task // shares, task % shares
        for start in range(share * WIDTH, num_directions, shares * WIDTH):
            width = _take_block(block, directions, start)
            for b in range(ranges[range_index], ranges[range_index + 1]):
                field = _field_of(b, start, fields, own_field, offsets, real)
                if not kept and not collapse(field, invalid, b, points, block, weights, simplices, offsets, rows):
                    return OUTSIDE
                origin, count = offsets[0, b], offsets[0, b + 1] - offsets[0, b]
                _sow(gradients, gradient, b * num_directions + start, width)
                slope = 0.0
                if occupied(offsets, b) >= cells.worth:
                    slope = descend_cells(
                        point_gradient, share, turned, threshold_gradient, task,
                        gradients, field, origin, count, width, points, block, grid, cells, of_grid,
                    )  # fmt: skip
                elif not math.isinf(scale):
                    slope = descend(
                        point_gradient, share, turned, threshold_gradient, task,
                        gradients, field, origin, count, width, points, block, grid, of_grid,
                    )  # fmt: skip
                if of_grid:
                    scale_gradient[task, 0] += slope
                if weight_gradient.shape[1]:
                    for lane in range(width):
                        for j in range(num_thresholds - 1, -1, -1):
                            suffixes[lane, j] = suffixes[lane, j + 1] + gradients[lane, j]
                    if count >= cells.worth:
                        weigh_cells(field, gradients, suffixes, count, width, grid, cells)
                    else:
                        weigh(field, gradients, suffixes, count, width, grid)
                    gather(weight_gradient, share, field, b, simplices, offsets, rows)
            for axis in range(len(turned)):
                for lane in range(width):
                    direction_gradient[range_index, start + lane, axis] += turned[axis, lane]
                store(turned, axis, 0, fill(0.0))
        if claim(counters, 1) == num_tasks - 1:
            counts = (lengths[0], lengths[1], num_thresholds, 1, lengths[4])
            factors = (1.0, 1.0, 0.0 if math.isinf(scale) else scale, 1.0, 1.0)
            _collect(found_addresses, counts, summed, copies, lengths, factors, real)


@inlined
def _field_of(b, start, fields, own, offsets, real):
    """The field of complex ``b`` in the directions from ``start`` on, among the ``fields`` if they are kept, or in our own."""
    row = start // WIDTH * offsets[0, -1] + offsets[0, b]
    address = address_of(fields) + row * fields.strides[0] if len(fields) else address_of(own)
    return array_at(address, (offsets[0, b + 1] - offsets[0, b], 2 * WIDTH), real)


@inlined
def _harvest(result, row, width, curves, jumps, risen, invalid):
    """Sum up the jumps, write the curves of one complex to the rows of the result, and clear all that will be read again."""
    num_thresholds, nothing = result.shape[1], fill(0.0)
    sum = choose(differs(load(invalid, 0, 0), nothing), fill(math.nan), nothing)
    for start in range(0, num_thresholds, WIDTH):
        for j in range(start, start + WIDTH):
            sum = add(sum, load(jumps, j, 0))
            store(jumps, j, 0, sum)
        turn(risen, 0, 0, jumps, start, 0)
        for j in range(start, start + WIDTH):
            store(jumps, j, 0, nothing)
        for lane in range(width):
            curve = add(load(curves, lane, start), load(risen, lane, 0))
            store(curves, lane, start, nothing)
            if start + WIDTH <= num_thresholds:
                store(result, row + lane, start, cast(curve, result))
            else:
                store(risen, lane, 0, curve)
                for j in range(start, num_thresholds):
                    result[row + lane, j] = risen[lane, j - start]


@inlined
def _sow(gradients, gradient, row, width):
    """Copy the gradient of the curves of one complex to ``gradients [8, H + 8]``."""
    num_thresholds = gradient.shape[1]
    whole = num_thresholds - num_thresholds % WIDTH
    for lane in range(width):
        for j in range(0, whole, WIDTH):
            store(gradients, lane, j, cast(load(gradient, row + lane, j), gradients))
        for j in range(whole, num_thresholds):
            gradients[lane, j] = gradient[row + lane, j]


@inlined
def _part(summed, copies, length):
    """The first so many copies of so many numbers, and the rest."""
    return summed[: copies * length].reshape(copies, length), summed[copies * length :]


@inlined
def _vectors(summed, copies, length, dim):
    """The same where the numbers are vectors."""
    part, rest = _part(summed, copies, length)
    return part.reshape(copies, length // max(1, dim), dim), rest


@inlined
def _take_block(block, directions, start):
    """Copy up to eight directions into ``block [dim, 8]``; returns how many."""
    width = min(WIDTH, len(directions) - start)
    block[:] = 0.0
    for axis in range(directions.shape[1]):
        for lane in range(width):
            block[axis, lane] = directions[start + lane, axis]
    return width


@inlined
def _collect(addresses, counts, summed, copies, lengths, factors, real):
    """Fill the gradients at ``addresses``, ``counts`` numbers each, with the sums of their copies, which may be padded."""
    for k in range(len(addresses)):
        part, summed = _part(summed, copies[k], lengths[k])
        gradient = array_at(addresses[k], (counts[k] if addresses[k] else 0,), real)
        for i in range(len(gradient)):
            total = 0.0
            for copy in range(copies[k]):
                total += part[copy, i]
            gradient[i] = factors[k] * total
