"""Gradients: every number is written by one program, which gathers what it needs. Nothing is scattered.

A sigmoid has a slope only near its height, so a vertex looks at its window of thresholds alone.
"""

import triton
import triton.language as tl

from .collapse import FIXED, coefficients_of
from .heights import heights, tops
from .search import chunk_of, complex_of, level_of, window
from .sigmoid import sigmoid, slope


@triton.jit(do_not_specialize=["num_points", "B", "steps", "searches"])
def height_gradients(
    points, directions, thresholds, scale, sums, weights, units, offsets, gradient, point_gradient, parts,
    num_points, B, T, H, stride, curve_stride, steps, searches,
    DIM: tl.constexpr, AXES: tl.constexpr, KIND: tl.constexpr, SATURATION: tl.constexpr, OF_POINTS: tl.constexpr,
    OF_DIRECTIONS: tl.constexpr, ADD: tl.constexpr, BV: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """From the gradient of the curves to that of the heights, of points and of directions: ``BV`` vertices a program.

    The gradient of the points is written, or added to; that of the directions has a part ``[T, dim]`` for each program. If
    the heights are given, theirs is that of the points. ``curve_stride`` is the distance from one complex to the next in
    ``gradient``.
    """
    chunk = tl.program_id(0).to(tl.int64)
    b, begin, end = chunk_of(offsets, chunk, B, num_points, steps, BV)
    vertices = begin + tl.arange(0, BV)
    inside = vertices < end
    axis = tl.arange(0, AXES)
    coordinates = inside[:, None] & (axis < DIM)[None, :]
    s = tl.load(scale)
    exact = s == float("inf")
    reach = SATURATION / s
    unit = 1.0
    if KIND == FIXED:
        unit = tl.load(units + b)
    if DIM > 0:
        directions += b * stride
        position = tl.load(points + vertices[:, None] * DIM + axis[None, :], coordinates, 0.0)
    moved = tl.zeros((BV, AXES), s.dtype)
    for start in range(0, T, BT):
        columns = start + tl.arange(0, BT)
        within = columns < T
        both = inside[:, None] & within[None, :]
        height = heights(points, directions, vertices, vertices, columns, inside, within, stride, DIM, True)
        c = coefficients_of(sums, weights, unit, vertices, columns, inside, within, T, s.dtype, KIND)
        counts = both & (c != 0)
        total = tl.zeros((BV, BT), s.dtype)
        if tl.max(counts.to(tl.int32)) != 0:
            first, last = window(thresholds, height, reach, exact, H, searches)
            row = b * curve_stride + columns * H
            for k in range(0, tl.max(tl.where(counts, last - first, 0))):
                j = first + k
                there = counts & (j < last)
                rise = slope(s * (tl.load(thresholds + j, there, 0.0) - height))
                total += tl.load(gradient + row[None, :] + j, there, 0.0) * tl.where(there, rise, 0.0)
            total = -s * c * total
            total = tl.where(exact, 0.0, tl.where(counts & (height != height), float("nan"), total))
            total = tl.where(both, total, 0.0)
        if DIM == 0:
            tl.store(point_gradient + vertices[:, None] * stride + columns[None, :], total, both)
        if OF_POINTS and DIM > 0:
            mask = within[:, None] & (axis < DIM)[None, :]
            direction = tl.load(directions + columns[:, None] * DIM + axis[None, :], mask, 0.0)
            moved += tl.sum(total[:, :, None] * direction[None, :, :], axis=1)
        if OF_DIRECTIONS:
            mask = within[:, None] & (axis < DIM)[None, :]
            part = tl.sum(total[:, :, None] * position[:, None, :], axis=0)
            tl.store(parts + (chunk * T + columns)[:, None] * DIM + axis[None, :], part, mask)
    if OF_POINTS and DIM > 0:
        place = point_gradient + vertices[:, None] * DIM + axis[None, :]
        if ADD:
            moved += tl.load(place, coordinates, 0.0)
        tl.store(place, moved, coordinates)


@triton.jit(do_not_specialize=["rows"])
def suffix_sums(gradient, sums, rows, T, H, curve_stride, BR: tl.constexpr):
    """``[B * T, H + 1]``: what a coefficient adds where its sigmoid is one, from each threshold on."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    inside = row < rows
    source = (row // T) * curve_stride + (row % T) * H
    total = tl.zeros((BR,), tl.float64)
    tl.store(sums + row * (H + 1) + H, total.to(sums.dtype.element_ty), inside)
    for k in range(1, H + 1):
        total += tl.load(gradient + source + H - k, inside, 0.0).to(tl.float64)
        tl.store(sums + row * (H + 1) + H - k, total.to(sums.dtype.element_ty), inside)


@triton.jit(do_not_specialize=["num_points", "B", "steps", "searches"])
def coefficient_gradients(
    points, directions, thresholds, scale, offsets, gradient, suffixes, found, num_points, B, T, H, stride, curve_stride,
    steps, searches, DIM: tl.constexpr, SATURATION: tl.constexpr, BV: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """``[V, T]``: the gradient of each coefficient."""
    chunk = tl.program_id(0).to(tl.int64)
    b, begin, end = chunk_of(offsets, chunk, B, num_points, steps, BV)
    vertices = begin + tl.arange(0, BV)
    columns = tl.program_id(1) * BT + tl.arange(0, BT)
    inside, within = vertices < end, columns < T
    both = inside[:, None] & within[None, :]
    s = tl.load(scale)
    if DIM > 0:
        directions += b * stride
    height = heights(points, directions, vertices, vertices, columns, inside, within, stride, DIM, True)
    first, last = window(thresholds, height, SATURATION / s, s == float("inf"), H, searches)
    total = tl.load(suffixes + (b * T + columns)[None, :] * (H + 1) + last, both, 0.0)
    row = b * curve_stride + columns * H
    for k in range(0, tl.max(tl.where(both, last - first, 0))):
        j = first + k
        there = both & (j < last)
        risen = sigmoid(s * (tl.load(thresholds + j, there, 0.0) - height))
        total += tl.load(gradient + row[None, :] + j, there, 0.0) * tl.where(there, risen, 0.0)
    total = tl.where(height == height, total, float("nan"))
    tl.store(found + vertices[:, None] * T + columns[None, :], total, both)


@triton.jit(do_not_specialize=["num_points", "size", "num_weights", "B", "steps"])
def weight_gradients(
    points, directions, simplices, offsets, coefficient_gradient, weight_gradient, num_points, size, num_weights, T, B, stride,
    steps, ROWS: tl.constexpr, LEVEL: tl.constexpr, SIGN: tl.constexpr, DIM: tl.constexpr, SHARED: tl.constexpr,
    ADD: tl.constexpr, LONG: tl.constexpr, BS: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """The gradient of the weights of a level: those of the coefficients of the top vertices, summed over the directions."""
    INDEX: tl.constexpr = tl.int64 if LONG else tl.int32
    count, first, weighed = level_of(offsets, B, ROWS, LEVEL, INDEX)
    start = tl.program_id(0).to(INDEX) * BS
    if start >= count:
        return
    simplex = start + tl.arange(0, BS)
    inside = simplex < count
    sets = simplex * 0
    if LEVEL > 0 and not SHARED:
        sets = complex_of(offsets + LEVEL * (B + 1), simplex, B, steps)
    total = tl.zeros((BS, BT), coefficient_gradient.dtype.element_ty)
    for begin in range(0, T, BT):
        columns = begin + tl.arange(0, BT)
        within = columns < T
        if LEVEL == 0:
            top = tl.broadcast_to(simplex[:, None], (BS, BT))
            valid = simplex < num_points
        else:
            top, valid = tops(
                points, directions, sets, simplices, first, count, size, num_points, simplex, inside, columns, within, stride,
                ROWS[LEVEL - 1], DIM, SHARED, INDEX,
            )  # fmt: skip
        mask = (inside & valid)[:, None] & within[None, :]
        total += tl.load(coefficient_gradient + top * T + columns[None, :], mask, 0.0)
    place = weighed + simplex
    mask = inside & (place < num_weights)
    found = SIGN * tl.sum(total, axis=1)
    if ADD:
        found += tl.load(weight_gradient + place, mask, 0.0)
    tl.store(weight_gradient + place, found, mask)
