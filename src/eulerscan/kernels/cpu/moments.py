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

from .cells import CELLS_A_CHUNK, CHUNK, CHUNKS, expand
from .collapse import COEFFICIENT, HEIGHT
from .jit import inlined, inner
from .lanes import WIDTH, add, any_lane, cast, choose, differs, fill, fused, larger, load, multiply, smaller, store, total
from .rows import deposit, evaluate, real, turn, whole


@inner
def _place(field, first, last, cells, every):
    """Find the cells of the vertices from ``first`` to ``last`` that count, or of every one.

    Returns how many there are, and the lowest and highest of their cells; NaN falls in the lowest of all.
    """
    vertices, places, x, extremes = cells.vertices, cells.places, cells.x, cells.extremes
    bottom, density, top = fill(-cells.bottom), fill(cells.density), fill(float(len(cells.ends) - 1))
    lowest, highest, count = top, fill(0.0), 0
    for v in range(first, last):
        if every or any_lane(differs(load(field, v, COEFFICIENT), fill(field.dtype.type(0)))):
            position = multiply(add(cast(load(field, v, HEIGHT), extremes), bottom), density)
            position = smaller(larger(position, fill(0.0)), top)
            lowest, highest = smaller(position, lowest), larger(position, highest)
            cell = whole(position)
            inside = add(position, multiply(fill(-1.0), real(cell)))
            vertices[count] = v
            store(places, count, 0, cell)
            store(x, count, 0, cast(add(add(inside, inside), fill(-1.0)), x))
            count += 1
    store(extremes, 0, 0, lowest)
    store(extremes, 1, 0, highest)
    low, high = extremes[0, 0], extremes[1, 0]
    for lane in range(1, WIDTH):
        low, high = min(low, extremes[0, lane]), max(high, extremes[1, lane])
    return count, int(low), int(high)


@inner
def _collect(field, first, last, moments, cells):
    """Add the vertices from ``first`` to ``last`` to the moments: the lowest and the highest cell that they fall in."""
    vertices, places, x = cells.vertices, cells.places, cells.x
    lowest, highest = len(cells.ends), -1
    for begin in range(first, last, CHUNK):
        found, low, high = _place(field, begin, min(begin + CHUNK, last), cells, False)
        if found:
            lowest, highest = min(lowest, low), max(highest, high)
        for i in range(found):
            deposit(moments, places, i, load(field, vertices[i], COEFFICIENT), load(x, i, 0))
    return lowest, highest


@inlined
def _collect_by_parts(field, count, cells):
    """Add all vertices to the moments; in float32 some of them first to others of that dtype, which fit a faster cache.

    Good enough for the curves: where coefficients are whole numbers, the first moment stays exact, and the others count little.
    """
    moments, partial = cells.moments, cells.partial
    if not len(partial):
        return _collect(field, 0, count, moments, cells)
    lowest, highest = len(cells.ends), -1
    some = CHUNK * min(CHUNKS, 1 + len(cells.ends) // CELLS_A_CHUNK)
    for first in range(0, count, some):
        low, high = _collect(field, first, min(first + some, count), partial, cells)
        for row in range(WIDTH * low, WIDTH * (high + 1)):
            for k in range(0, moments.shape[1], WIDTH):
                store(moments, row, k, add(load(moments, row, k), cast(load(partial, row, k), moments)))
                store(partial, row, k, fill(partial.dtype.type(0)))
        lowest, highest = min(lowest, low), max(highest, high)
    return lowest, highest


@inlined
def _take(series, moments, cell):
    """Move the moments of a cell to ``series [terms, 8]``, those of one power side by side."""
    for k in range(0, moments.shape[1], WIDTH):
        turn(series, k, 0, moments, WIDTH * cell, k)
        for lane in range(WIDTH):
            store(moments, WIDTH * cell + lane, k, fill(0.0))


@inner
def draw_cells(curves, jumps, field, count, width, grid, cells):
    """Like :func:`.sweep.draw`, by moments."""
    firsts, ends, rows, table, moments, series, sums = (
        cells.firsts, cells.ends, cells.rows, cells.table, cells.moments, cells.series, cells.sums
    )  # fmt: skip
    lowest, highest = _collect_by_parts(field, count, cells)
    for cell in range(lowest, highest + 1):
        if not cells.ready[cell]:
            expand(cell, grid, cells)
        _take(series, moments, cell)
        for j in range(firsts[cell], ends[cell]):
            sum = load(sums, j, 0)
            for k in range(len(series)):
                sum = fused(fill(table[rows[cell] + j, k]), load(series, k, 0), sum)
            store(sums, j, 0, sum)
        store(jumps, ends[cell], 0, add(load(jumps, ends[cell], 0), load(series, 0, 0)))
    for j in range(len(sums)):
        for lane in range(width):
            curves[lane, j] += sums[j, lane]
        store(sums, j, 0, fill(0.0))


@inner
def _pull(cell, suffixes, grid, cells, derivative):
    """What the gradient of the curves, in ``cells.sums``, asks of each power of a cell, or of the slope there."""
    first, end, row, table, pulls, series, sums = (
        cells.firsts[cell], cells.ends[cell], cells.rows[cell], cells.table, cells.pulls, cells.series, cells.sums
    )  # fmt: skip
    if not cells.ready[cell]:
        expand(cell, grid, cells)
    steepness = grid.scale / cells.half_width
    store(series, len(series) - 1, 0, fill(0.0))
    for k in range(derivative, len(series)):
        pull = fill(0.0)
        for j in range(first, end):
            pull = fused(fill(table[row + j, k]), load(sums, j, 0), pull)
        store(series, k - derivative, 0, multiply(fill(k * steepness if derivative else 1.0), pull))
    if not derivative:
        store(series, 0, 0, add(load(series, 0, 0), load(suffixes, end, 0)))
    for k in range(0, len(series), WIDTH):
        turn(pulls, WIDTH * cell, k, series, k, 0)


@inlined
def _reach(low, high, lowest, highest, suffixes, grid, cells, derivative):
    """Fill the pulls from ``low`` to ``high`` too, where those from ``lowest`` to ``highest`` are there."""
    if highest < lowest:
        lowest, highest = low, low - 1
    while highest < high:
        highest += 1
        _pull(highest, suffixes, grid, cells, derivative)
    while lowest > low:
        lowest -= 1
        _pull(lowest, suffixes, grid, cells, derivative)
    return lowest, highest


@inlined
def _turn_gradients(sums, gradients, width):
    """Those of one threshold side by side; zero in the lanes without a direction."""
    for j in range(len(sums)):
        for lane in range(WIDTH):
            sums[j, lane] = gradients[lane, j] if lane < width else 0.0


@inner
def descend_cells(
    point_gradient, share, turned, threshold_gradient, task,
    gradients, field, origin, count, width, points, directions, grid, cells, of_grid,
):  # fmt: skip
    """Like :func:`.sweep.descend`, by moments; thresholds and scale only if ``of_grid``."""
    _turn_gradients(cells.sums, gradients, width)
    scale_gradient = _descend_to_grid(threshold_gradient, task, field, count, grid, cells) if of_grid else 0.0
    pulls, vertices, places, x, slopes = cells.pulls, cells.vertices, cells.places, cells.x, cells.slopes
    none = fill(field.dtype.type(0))
    lowest, highest = 0, -1
    for first in range(0, count, CHUNK):
        found, low, high = _place(field, first, min(first + CHUNK, count), cells, False)
        if not found:
            continue
        lowest, highest = _reach(low, high, lowest, highest, cells.sums, grid, cells, 1)
        for i in range(found):
            coefficients, heights = load(field, vertices[i], COEFFICIENT), load(field, vertices[i], HEIGHT)
            slope = multiply(coefficients, evaluate(pulls, places, i, load(x, i, 0)))
            slope = choose(differs(coefficients, none), slope, none)
            unknown = differs(heights, heights)
            if any_lane(unknown):
                slope = choose(differs(coefficients, none), choose(unknown, fill(field.dtype.type(math.nan)), slope), none)
                scale_gradient += total(slope) * 0.0
            store(slopes, i, 0, slope)
        for axis in range(points.shape[1]):
            if point_gradient.shape[1]:
                direction = cast(load(directions, axis, 0), field)
                for i in range(found):
                    point_gradient[share, origin + vertices[i], axis] += total(multiply(load(slopes, i, 0), direction))
            if len(turned):
                turn_of_chunk = none
                for i in range(found):
                    turn_of_chunk = fused(load(slopes, i, 0), fill(points[origin + vertices[i], axis]), turn_of_chunk)
                store(turned, axis, 0, add(load(turned, axis, 0), cast(turn_of_chunk, turned)))
    return scale_gradient


@inner
def _descend_to_grid(threshold_gradient, task, field, count, grid, cells):
    """Where the moments fall with a threshold; the place of a height in its cell matters to the scale."""
    firsts, ends, rows, table, moments, series, sums = (
        cells.firsts, cells.ends, cells.rows, cells.table, cells.moments, cells.series, cells.sums
    )  # fmt: skip
    thresholds, narrow, scale_gradient = grid.thresholds, fill(-cells.half_width / grid.scale), fill(0.0)
    lowest, highest = _collect(field, 0, count, moments, cells)
    for cell in range(lowest, highest + 1):
        middle = (cell + 0.5) / cells.density  # above the bottom: heights may be large and close to each other
        if not cells.ready[cell]:
            expand(cell, grid, cells)
        _take(series, moments, cell)
        for j in range(firsts[cell], ends[cell]):
            slope, shift = fill(0.0), fill(0.0)
            for k in range(1, len(series)):
                weight = fill(k * table[rows[cell] + j, k])
                slope = fused(weight, load(series, k - 1, 0), slope)
                shift = fused(weight, load(series, k, 0), shift)
            gradient = multiply(load(sums, j, 0), fill(-1 / cells.half_width))
            slope, shift = multiply(gradient, slope), multiply(gradient, shift)
            threshold_gradient[task, j] += total(slope)
            distance = fill(thresholds[0, j] - cells.bottom - middle)
            scale_gradient = add(scale_gradient, add(multiply(slope, distance), multiply(shift, narrow)))
    return total(scale_gradient)


@inner
def weigh_cells(field, gradients, suffixes, count, width, grid, cells):
    """Like :func:`.sweep.weigh`, by moments."""
    _turn_gradients(cells.sums, gradients, width)
    saturated = np.zeros((len(cells.sums) + 1, WIDTH))
    _turn_gradients(saturated, suffixes, width)
    lowest, highest = 0, -1
    for first in range(0, count, CHUNK):
        found, low, high = _place(field, first, min(first + CHUNK, count), cells, True)
        lowest, highest = _reach(low, high, lowest, highest, saturated, grid, cells, 0)
        for i in range(found):
            store(field, first + i, COEFFICIENT, evaluate(cells.pulls, cells.places, i, load(cells.x, i, 0)))
