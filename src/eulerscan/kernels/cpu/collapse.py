"""The lower-star collapse: each simplex adds its signed weight to the coefficient of its top vertex.

It works on eight directions at once, in a *field* ``[vertices, 16]`` of one complex: columns 0 to 7 hold the heights of a
vertex, columns 8 to 15 its coefficients, so that in float32 a vertex fits one cache line. A simplex costs a comparison and
an addition, never a sigmoid.

If several vertices of a simplex have the same height, the one with the largest index is the top.
"""

from __future__ import annotations

import numpy as np

from .jit import address_of, array_at, entry, inlined, inner, item
from .simd import (
    WIDTH,
    add,
    and_not,
    any_lane,
    broadcast,
    cast,
    greater_equal,
    load,
    logical_or,
    multiply,
    not_equal,
    prefetch,
    select,
    store,
    sum_lanes,
)

HEIGHT, COEFFICIENT = 0, WIDTH
AHEAD = 64  # rows of given heights that are fetched in advance, since their columns are far apart in memory


@inlined
def load_directions(block, directions, first, width):
    """Copy ``width`` directions from ``first`` on to ``block [dim, 8]`` in float64."""
    block[:] = 0.0
    for axis in range(directions.shape[1]):
        for lane in range(width):
            block[axis, lane] = directions[first + lane, axis]


@inlined
def field_of(b, start, fields, scratch, offsets, float_zero):
    """The field of complex ``b`` in the directions from ``start`` on: part of ``fields`` if they are kept, else the scratch."""
    row = start // WIDTH * offsets[0, -1] + offsets[0, b]
    address = address_of(fields) + row * fields.strides[0] if len(fields) else address_of(scratch)
    return array_at(address, (offsets[0, b + 1] - offsets[0, b], 2 * WIDTH), float_zero)


@inner
def collapse(field, invalid, b, inputs, block, column, width):
    """Fill the field of complex ``b``. Returns False if a simplex has a vertex outside its complex.

    Heights are those in the directions ``block [dim, 8]``; if that is empty, they are ``width`` of the given ones from
    ``column`` on. ``invalid [1, 8]`` becomes 1 in the directions in which a height is NaN.
    """
    points, _, _, weights, simplices, offsets, levels = inputs
    start, count = offsets[0, b], offsets[0, b + 1] - offsets[0, b]
    if len(block):
        _compute_heights(field, invalid, start, count, points, block, weights)
    else:
        _copy_heights(field, invalid, start, count, points, column, width, weights)
    level_start, weight_start = 0, offsets[0, -1]
    for level in range(levels.shape[1]):
        size, length, sign = levels[0, level], offsets[level + 1, -1], field.dtype.type(levels[1, level])
        first, last = offsets[level + 1, b], offsets[level + 1, b + 1]
        where = (level_start, length, first, last, start, count, weight_start)
        if size == 2:
            inside = _collapse_edges(field, simplices, weights, where, sign)
        elif size == 3:
            inside = _collapse_triangles(field, simplices, weights, where, sign)
        else:
            inside = _collapse_simplices(field, simplices, weights, where, sign, size)
        if not inside:
            return False
        level_start += size * length
        weight_start += length
    return True


@inlined
def _compute_heights(field, invalid, start, count, points, block, weights):
    """Heights, summed in float64 and rounded once. The coefficient of a vertex starts with its own weight."""
    one = field.dtype.type(1)
    store(invalid, 0, 0, broadcast(0.0))
    for v in range(count):
        height = broadcast(0.0)
        for axis in range(points.shape[1]):
            height = add(height, multiply(broadcast(np.float64(entry(points, start + v, axis))), load(block, axis, 0)))
        store(field, v, HEIGHT, cast(height, field))
        store(field, v, COEFFICIENT, broadcast(weights[start + v] if len(weights) else one))
        if any_lane(not_equal(height, height)):
            store(invalid, 0, 0, select(not_equal(height, height), broadcast(1.0), load(invalid, 0, 0)))


@inner
def _copy_heights(field, invalid, start, count, heights, column, width, weights):
    """The given heights ``[V, T]`` from ``column`` on."""
    zero, one = field.dtype.type(0), field.dtype.type(1)
    store(invalid, 0, 0, broadcast(0.0))
    for v in range(count):
        prefetch(heights, start + v + AHEAD, column)
        if width == WIDTH:
            store(field, v, HEIGHT, load(heights, start + v, column))
        else:
            store(field, v, HEIGHT, broadcast(zero))
            for lane in range(width):
                field[v, HEIGHT + lane] = entry(heights, start + v, column + lane)
        store(field, v, COEFFICIENT, broadcast(weights[start + v] if len(weights) else one))
        height = load(field, v, HEIGHT)
        if any_lane(not_equal(height, height)):
            store(invalid, 0, 0, select(not_equal(height, height), broadcast(1.0), load(invalid, 0, 0)))


@inlined
def _collapse_edges(field, simplices, weights, where, sign):
    level_start, length, first, last, start, count, weight_start = where
    zero, one = broadcast(field.dtype.type(0)), broadcast(sign)
    for i in range(first, last):
        a, b = item(simplices, level_start + i) - start, item(simplices, level_start + length + i) - start
        a, b = min(a, b), max(a, b)
        if a < 0 or b >= count:
            return False
        weight = broadcast(sign * weights[weight_start + i]) if len(weights) else one
        b_is_top = greater_equal(load(field, b, HEIGHT), load(field, a, HEIGHT))
        _add_to_coefficient(field, b, select(b_is_top, weight, zero))
        _add_to_coefficient(field, a, select(b_is_top, zero, weight))
    return True


@inlined
def _collapse_triangles(field, simplices, weights, where, sign):
    level_start, length, first, last, start, count, weight_start = where
    zero, one = broadcast(field.dtype.type(0)), broadcast(sign)
    for i in range(first, last):
        a, b = item(simplices, level_start + i) - start, item(simplices, level_start + length + i) - start
        c = item(simplices, level_start + 2 * length + i) - start
        a, b = min(a, b), max(a, b)
        b, c = min(b, c), max(b, c)
        a, b = min(a, b), max(a, b)
        if a < 0 or c >= count:
            return False
        weight = broadcast(sign * weights[weight_start + i]) if len(weights) else one
        height_a, height_b = load(field, a, HEIGHT), load(field, b, HEIGHT)
        b_above_a = greater_equal(height_b, height_a)
        c_is_top = greater_equal(load(field, c, HEIGHT), select(b_above_a, height_b, height_a))
        unless_c = select(c_is_top, zero, weight)
        _add_to_coefficient(field, c, select(c_is_top, weight, zero))
        _add_to_coefficient(field, b, select(b_above_a, unless_c, zero))
        _add_to_coefficient(field, a, select(b_above_a, zero, unless_c))
    return True


@inlined
def _collapse_simplices(field, simplices, weights, where, sign, size):
    """Simplices with any number of vertices."""
    level_start, length, first, last, start, count, weight_start = where
    zero, one = broadcast(field.dtype.type(0)), broadcast(sign)
    descending = np.empty(size, np.intp)
    for i in range(first, last):
        for row in range(size):
            vertex = simplices[level_start + row * length + i] - start
            if vertex < 0 or vertex >= count:
                return False
            position = row
            while position > 0 and descending[position - 1] < vertex:
                descending[position] = descending[position - 1]
                position -= 1
            descending[position] = vertex
        top_height = load(field, descending[0], HEIGHT)
        for row in range(1, size):
            height = load(field, descending[row], HEIGHT)
            top_height = select(greater_equal(height, top_height), height, top_height)
        weight = broadcast(sign * weights[weight_start + i]) if len(weights) else one
        found = not_equal(zero, zero)
        for row in range(size):
            is_top = greater_equal(load(field, descending[row], HEIGHT), top_height)
            _add_to_coefficient(field, descending[row], select(and_not(is_top, found), weight, zero))
            found = logical_or(found, is_top)
    return True


@inlined
def _add_to_coefficient(field, vertex, amount):
    store(field, vertex, COEFFICIENT, add(load(field, vertex, COEFFICIENT), amount))


@inner
def backpropagate_to_weights(weight_gradient, field, b, inputs):
    """Add the gradient of complex ``b`` to that of the weights. The coefficients of the field hold their own gradient.

    This is the adjoint of :func:`collapse`: a weight gets the gradient of the coefficient of its simplex's top.
    """
    simplices, offsets, levels = inputs.simplices, inputs.offsets, inputs.levels
    start = offsets[0, b]
    for v in range(offsets[0, b + 1] - start):
        weight_gradient[start + v] += sum_lanes(load(field, v, COEFFICIENT))
    level_start, weight_start = 0, offsets[0, -1]
    for level in range(levels.shape[1]):
        size, length, sign = levels[0, level], offsets[level + 1, -1], field.dtype.type(levels[1, level])
        for i in range(offsets[level + 1, b], offsets[level + 1, b + 1]):
            top = simplices[level_start + i] - start
            top_height, gradient = load(field, top, HEIGHT), load(field, top, COEFFICIENT)
            for row in range(1, size):
                vertex = simplices[level_start + row * length + i] - start
                height = load(field, vertex, HEIGHT)
                is_higher = greater_equal(height, top_height)
                top_height = select(is_higher, height, top_height)
                gradient = select(is_higher, load(field, vertex, COEFFICIENT), gradient)
            weight_gradient[weight_start + i] += sign * sum_lanes(gradient)
        level_start += size * length
        weight_start += length
