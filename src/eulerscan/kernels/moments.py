"""Many vertices at a soft scale: the sigmoids of a whole cell of heights at once.

Where a sigmoid is as wide as the range of thresholds, every vertex rises at all of them. But vertices of nearly the
same height rise nearly alike. So the heights are divided into cells, so narrow that a short power series holds inside,

    S(scale (t - height)) = sum over k of W[k](t) x^k,    x in [-1, 1] the place of the height in its cell,

up to the rounding of the dtype. The vertices of a cell then enter only through their moments, the sums of
coefficient * x^k: a vertex costs one addition of eight (in float64 sixteen) numbers, however many thresholds there are, and
only the cells, which are few, meet the thresholds. Backwards a cell collects what the thresholds ask of it, one
number for each power, and a vertex reads its slope off as a polynomial in x.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .cells import expand, inner
from .collapse import COEFFICIENT, HEIGHT
from .lanes import WIDTH, add, any_lane, at_least, cast, choose, differs, fill, load, multiply, powers, store, total


@njit(nogil=True, forceinline=True, error_model="numpy")
def _positions(field, v, bottom, density, top, like):
    """In which cell the heights of a vertex fall, and how far into it; of NaN, in the lowest."""
    position = multiply(add(cast(load(field, v, HEIGHT), like), fill(-bottom)), fill(density))
    position = choose(at_least(position, fill(0.0)), position, fill(0.0))
    return choose(at_least(position, fill(top)), fill(top), position)


@inner
def collect(field, count, width, cells):
    """Add all vertices of a field to the moments."""
    moments, scratch, bottom, density = cells.moments, cells.scratch, cells.bottom, cells.density
    top, many = float(len(cells.ends) - 1), cells.terms > WIDTH
    for v in range(count):
        if not any_lane(differs(load(field, v, COEFFICIENT), fill(field.dtype.type(0)))):
            continue
        store(scratch, 0, 0, _positions(field, v, bottom, density, top, scratch))
        for lane in range(width):
            coefficient = np.float64(field[v, COEFFICIENT + lane])
            if coefficient == 0.0:
                continue
            cell = int(scratch[0, lane])
            row, x = cell * WIDTH + lane, 2 * (scratch[0, lane] - cell) - 1
            series = multiply(fill(coefficient), powers(x))
            store(moments, row, 0, add(load(moments, row, 0), series))
            if many:
                x4 = x * x * (x * x)
                store(moments, row, WIDTH, add(load(moments, row, WIDTH), multiply(fill(x4 * x4), series)))


@njit(nogil=True, forceinline=True, error_model="numpy")
def _is_empty(moments, row, terms):
    empty = not any_lane(differs(load(moments, row, 0), fill(0.0)))
    return empty and (terms == WIDTH or not any_lane(differs(load(moments, row, WIDTH), fill(0.0))))


@inner
def draw_cells(curves, jumps, field, count, width, grid, cells):
    """Like :func:`.sweep.draw`, by moments."""
    collect(field, count, width, cells)
    _, _, _, terms, _, firsts, ends, places, ready, table, moments, _, _ = cells
    nothing = fill(0.0)
    for cell in range(len(ends)):
        for lane in range(width):
            row, place, end = cell * WIDTH + lane, places[cell], ends[cell]
            if _is_empty(moments, row, terms):
                continue
            if not ready[cell]:
                expand(cell, grid, cells)
            for j in range(firsts[cell], end, WIDTH):
                curve = load(curves, lane, j)
                for k in range(terms):
                    curve = add(curve, multiply(fill(moments[row, k]), load(table, place + k, 0)))
                store(curves, lane, j, curve)
                place += terms
            jumps[end, lane] += moments[row, 0]
            for k in range(0, terms, WIDTH):
                store(moments, row, k, nothing)


@inner
def _pull(field, count, gradients, width, grid, cells, derivative):
    """Fill the pulls of all cells that the field enters, or those of the derivative with respect to x."""
    _, bottom, density, terms, _, firsts, ends, places, ready, table, _, pulls, scratch = cells
    top = float(len(ends) - 1)
    lowest, highest = fill(top), fill(0.0)
    for v in range(count):
        position = _positions(field, v, bottom, density, top, scratch)
        lowest = choose(at_least(lowest, position), position, lowest)
        highest = choose(at_least(position, highest), position, highest)
    store(scratch, 0, 0, lowest)
    store(scratch, 1, 0, highest)
    for cell in range(int(scratch[0, :width].min()), int(scratch[1, :width].max()) + 1):
        if not ready[cell]:
            expand(cell, grid, cells)
        for lane in range(width):
            row = cell * WIDTH + lane
            pulls[row, terms - 1] = 0.0
            for k in range(derivative, terms):
                place, pull = places[cell] + k, fill(0.0)
                for j in range(firsts[cell], ends[cell], WIDTH):
                    pull = add(pull, multiply(load(gradients, lane, j), load(table, place, 0)))
                    place += terms
                pulls[row, k - derivative] = total(pull) * (k if derivative else 1)


@inner
def descend_cells(
    point_gradient, share, direction_gradient, range_index, start, threshold_gradient, task,
    gradients, field, origin, count, width, points, directions, grid, cells, of_grid,
):  # fmt: skip
    """Like :func:`.sweep.descend`, by moments; thresholds and scale only if ``of_grid``."""
    scale_gradient = _descend_to_grid(threshold_gradient, task, gradients, field, count, width, grid, cells) if of_grid else 0.0
    _pull(field, count, gradients, width, grid, cells, 1)
    pulls, scratch, bottom, density = cells.pulls, cells.scratch, cells.bottom, cells.density
    top, many, steepness = float(len(cells.ends) - 1), cells.terms > WIDTH, grid.scale / cells.half_width
    turns, none, nothing = np.zeros((points.shape[1], WIDTH)), fill(field.dtype.type(0)), fill(0.0)
    store(scratch, 1, 0, nothing)
    for v in range(count):
        coefficients = load(field, v, COEFFICIENT)
        if not any_lane(differs(coefficients, none)):
            continue
        store(scratch, 0, 0, _positions(field, v, bottom, density, top, scratch))
        for lane in range(width):
            if field[v, COEFFICIENT + lane] == 0:
                continue
            cell = int(scratch[0, lane])
            row, x = cell * WIDTH + lane, 2 * (scratch[0, lane] - cell) - 1
            series = powers(x)
            terms = multiply(load(pulls, row, 0), series)
            if many:
                x4 = x * x * (x * x)
                terms = add(terms, multiply(multiply(load(pulls, row, WIDTH), fill(x4 * x4)), series))
            scratch[1, lane] = steepness * total(terms)
        counts = differs(coefficients, none)
        slopes = choose(counts, multiply(cast(coefficients, scratch), load(scratch, 1, 0)), nothing)
        unknown = differs(load(field, v, HEIGHT), load(field, v, HEIGHT))
        if any_lane(unknown):
            slopes = choose(counts, choose(unknown, fill(math.nan), slopes), slopes)
            scale_gradient += total(slopes) * 0.0
        for axis in range(points.shape[1]):
            if point_gradient.shape[1]:
                point_gradient[share, origin + v, axis] += total(multiply(slopes, load(directions, axis, 0)))
            store(turns, axis, 0, add(load(turns, axis, 0), multiply(slopes, fill(np.float64(points[origin + v, axis])))))
    for lane in range(width):
        for axis in range(points.shape[1]):
            direction_gradient[range_index, start + lane, axis] += turns[axis, lane]
    return scale_gradient


@inner
def _descend_to_grid(threshold_gradient, task, gradients, field, count, width, grid, cells):
    """Where the moments fall with a threshold; the place of a height in its cell matters to the scale."""
    collect(field, count, width, cells)
    _, bottom, density, terms, half_width, firsts, ends, places, ready, table, moments, _, _ = cells
    thresholds, scale_gradient, narrow, nothing = grid.thresholds, 0.0, fill(-half_width / grid.scale), fill(0.0)
    for cell in range(len(ends)):
        middle = (cell + 0.5) / density  # above the bottom: heights may be large and close to each other
        for lane in range(width):
            row, place = cell * WIDTH + lane, places[cell]
            if _is_empty(moments, row, terms):
                continue
            if not ready[cell]:
                expand(cell, grid, cells)
            for j in range(firsts[cell], ends[cell], WIDTH):
                slope, shift = fill(0.0), fill(0.0)
                for k in range(1, terms):
                    weight = multiply(fill(np.float64(k)), load(table, place + k, 0))
                    slope = add(slope, multiply(fill(moments[row, k - 1]), weight))
                    shift = add(shift, multiply(fill(moments[row, k]), weight))
                gradient = multiply(load(gradients, lane, j), fill(-1 / half_width))
                slope, shift = multiply(gradient, slope), multiply(gradient, shift)
                store(threshold_gradient, task, j, add(load(threshold_gradient, task, j), slope))
                distance = add(add(load(thresholds, 0, j), fill(-bottom)), fill(-middle))
                scale_gradient += total(add(multiply(slope, distance), multiply(shift, narrow)))
                place += terms
            for k in range(0, terms, WIDTH):
                store(moments, row, k, nothing)
    return scale_gradient


@inner
def weigh_cells(field, gradients, suffixes, count, width, grid, cells):
    """Like :func:`.sweep.weigh`, by moments."""
    _pull(field, count, gradients, width, grid, cells, 0)
    pulls, scratch, bottom, density = cells.pulls, cells.scratch, cells.bottom, cells.density
    ends, top, many = cells.ends, float(len(cells.ends) - 1), cells.terms > WIDTH
    store(scratch, 1, 0, fill(0.0))
    for v in range(count):
        store(scratch, 0, 0, _positions(field, v, bottom, density, top, scratch))
        for lane in range(width):
            cell = int(scratch[0, lane])
            row, x = cell * WIDTH + lane, 2 * (scratch[0, lane] - cell) - 1
            series = powers(x)
            terms = multiply(load(pulls, row, 0), series)
            if many:
                x4 = x * x * (x * x)
                terms = add(terms, multiply(multiply(load(pulls, row, WIDTH), fill(x4 * x4)), series))
            scratch[1, lane] = total(terms) + suffixes[lane, ends[cell]]
        store(field, v, COEFFICIENT, cast(load(scratch, 1, 0), field))
