"""The lower-star collapse: every simplex becomes a number at its top vertex.

The work is done for eight directions at once on a *field* ``[vertices, 16]`` of one complex: columns 0 to 7 hold
the heights of a vertex, columns 8 to 15 its coefficients, so that in float32 one cache line holds all
that there is to know about a vertex. Simplices cost a comparison and an addition, never a sigmoid.

Where several vertices of a simplex are equally high, the one with the largest index is its top.
"""

from __future__ import annotations

import numpy as np

from .addresses import entry, item
from .jit import inlined
from .lanes import WIDTH, add, any_lane, at_least, but_not, cast, choose, differs, either, fill, load, multiply, store
from .lanes import total as total_of_lanes

HEIGHT, COEFFICIENT = 0, WIDTH


@inlined
def collapse(field, invalid, b, points, directions, weights, simplices, offsets, rows):
    """Fill the field of complex ``b``. False if a simplex has a vertex outside its complex.

    ``directions`` is ``[dim, 8]`` in float64. ``invalid [1, 8]`` becomes 1 in the directions in which a height is NaN.
    """
    start, count = offsets[0, b], offsets[0, b + 1] - offsets[0, b]
    _measure(field, invalid, start, count, points, directions, weights)
    packed, weighed = 0, offsets[0, -1]
    for level in range(len(rows)):
        size, length = rows[level], offsets[level + 1, -1]
        first, last = offsets[level + 1, b], offsets[level + 1, b + 1]
        if size == 2:
            inside = _edges(field, simplices, packed, length, first, last, start, count, weights, weighed)
        elif size == 3:
            inside = _triangles(field, simplices, packed, length, first, last, start, count, weights, weighed)
        else:
            inside = _simplices(field, simplices, packed, size, length, first, last, start, count, weights, weighed)
        if not inside:
            return False
        packed += size * length
        weighed += length
    return True


@inlined
def _measure(field, invalid, start, count, points, directions, weights):
    """Heights, summed in float64 and rounded once; the coefficient of a vertex starts with its own weight."""
    one = field.dtype.type(1)
    store(invalid, 0, 0, fill(0.0))
    for v in range(count):
        height = fill(0.0)
        for axis in range(points.shape[1]):
            height = add(height, multiply(fill(np.float64(entry(points, start + v, axis))), load(directions, axis, 0)))
        store(field, v, HEIGHT, cast(height, field))
        store(field, v, COEFFICIENT, fill(weights[start + v] if len(weights) else one))
        if any_lane(differs(height, height)):
            store(invalid, 0, 0, choose(differs(height, height), fill(1.0), load(invalid, 0, 0)))


@inlined
def _edges(field, simplices, packed, length, first, last, start, count, weights, weighed):
    nothing, minus = fill(field.dtype.type(0)), field.dtype.type(-1)
    for i in range(first, last):
        a, b = item(simplices, packed + i) - start, item(simplices, packed + length + i) - start
        a, b = min(a, b), max(a, b)
        if a < 0 or b >= count:
            return False
        weight = fill(minus * weights[weighed + i] if len(weights) else minus)
        b_is_top = at_least(load(field, b, HEIGHT), load(field, a, HEIGHT))
        _raise(field, b, choose(b_is_top, weight, nothing))
        _raise(field, a, choose(b_is_top, nothing, weight))
    return True


@inlined
def _triangles(field, simplices, packed, length, first, last, start, count, weights, weighed):
    nothing, one = fill(field.dtype.type(0)), field.dtype.type(1)
    for i in range(first, last):
        a, b = item(simplices, packed + i) - start, item(simplices, packed + length + i) - start
        c = item(simplices, packed + 2 * length + i) - start
        a, b = min(a, b), max(a, b)
        b, c = min(b, c), max(b, c)
        a, b = min(a, b), max(a, b)
        if a < 0 or c >= count:
            return False
        weight = fill(weights[weighed + i] if len(weights) else one)
        height_a, height_b = load(field, a, HEIGHT), load(field, b, HEIGHT)
        b_over_a = at_least(height_b, height_a)
        c_is_top = at_least(load(field, c, HEIGHT), choose(b_over_a, height_b, height_a))
        rest = choose(c_is_top, nothing, weight)
        _raise(field, c, choose(c_is_top, weight, nothing))
        _raise(field, b, choose(b_over_a, rest, nothing))
        _raise(field, a, choose(b_over_a, nothing, rest))
    return True


@inlined
def _simplices(field, simplices, packed, size, length, first, last, start, count, weights, weighed):
    """Simplices with any number of vertices."""
    nothing, sign = fill(field.dtype.type(0)), field.dtype.type(1 if size % 2 else -1)
    order = np.empty(size, np.intp)
    for i in range(first, last):
        for row in range(size):
            vertex = simplices[packed + row * length + i] - start
            if vertex < 0 or vertex >= count:
                return False
            place = row
            while place > 0 and order[place - 1] < vertex:
                order[place] = order[place - 1]
                place -= 1
            order[place] = vertex
        highest = load(field, order[0], HEIGHT)
        for row in range(1, size):
            height = load(field, order[row], HEIGHT)
            highest = choose(at_least(height, highest), height, highest)
        weight = fill(sign * weights[weighed + i] if len(weights) else sign)
        taken = differs(nothing, nothing)
        for row in range(size):
            is_highest = at_least(load(field, order[row], HEIGHT), highest)
            _raise(field, order[row], choose(but_not(is_highest, taken), weight, nothing))
            taken = either(taken, is_highest)
    return True


@inlined
def _raise(field, vertex, amount):
    store(field, vertex, COEFFICIENT, add(load(field, vertex, COEFFICIENT), amount))


@inlined
def gather(gradient, share, field, b, simplices, offsets, rows):
    """Add to the gradient of each weight what stands in the coefficients of its simplex's top.

    The adjoint of the collapse, for which the coefficients hold the derivative with respect to themselves.
    """
    start = offsets[0, b]
    for v in range(offsets[0, b + 1] - start):
        gradient[share, start + v] += total_of_lanes(load(field, v, COEFFICIENT))
    packed, weighed = 0, offsets[0, -1]
    for level in range(len(rows)):
        size, length = rows[level], offsets[level + 1, -1]
        sign = field.dtype.type(1 if size % 2 else -1)
        for i in range(offsets[level + 1, b], offsets[level + 1, b + 1]):
            top = simplices[packed + i] - start
            highest, value = load(field, top, HEIGHT), load(field, top, COEFFICIENT)
            for row in range(1, size):
                vertex = simplices[packed + row * length + i] - start
                height = load(field, vertex, HEIGHT)
                higher = at_least(height, highest)
                highest = choose(higher, height, highest)
                value = choose(higher, load(field, vertex, COEFFICIENT), value)
            gradient[share, weighed + i] += sign * total_of_lanes(value)
        packed += size * length
        weighed += length
