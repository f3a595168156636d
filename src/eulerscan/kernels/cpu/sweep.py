"""From the coefficients of the vertices to curves, and from the gradient of curves back to the vertices.

A vertex with coefficient c at height h adds c to every threshold above it. The smooth transform lets it rise as a
sigmoid instead, evaluated on the window of thresholds where it is neither 0 nor 1, eight at a time:
arrays over thresholds are padded by eight columns, and a window ends with the last group of eight that it enters.

The windows are opened by hand in all three passes: in a function of its own numba counts references to the arrays of
the grid for every vertex, which takes a third more time on small complexes.
"""

from __future__ import annotations

import math

import numpy as np

from .addresses import item
from .collapse import COEFFICIENT, HEIGHT
from .exponential import exponential
from .grid import first_at_least, tabulate
from .jit import inlined
from .lanes import WIDTH, add, cast, differs, divide, fill, fused, load, lowest, marked, multiply, store, total


@inlined
def _touched(field, v, width):
    """The directions, as bits, in which vertex ``v`` is the top of anything that does not cancel."""
    return marked(differs(load(field, v, COEFFICIENT), fill(field.dtype.type(0)))) & ((1 << width) - 1)


@inlined
def _exponentiate(factors, field, v, scale, centre):
    """Set the factors to those of vertex ``v``: see :mod:`.grid`."""
    offset = add(cast(load(field, v, HEIGHT), factors), fill(-centre))
    store(factors, 0, 0, exponential(multiply(fill(scale), offset)))


@inlined
def draw(curves, jumps, field, count, width, grid):
    """Add all vertices of a field to ``curves [8, H + 8]``, and to ``jumps [H + 8, 8]`` where they are saturated."""
    fenced, _, buckets, density, scale, reach, centre, decay, in_range, factors, _ = grid
    last, one = len(fenced) - 2, fill(1.0)
    for v in range(count):
        touched = _touched(field, v, width)
        if not touched:
            continue
        if in_range:
            _exponentiate(factors, field, v, scale, centre)
        while touched:
            lane = lowest(touched)
            touched &= touched - 1
            coefficient = np.float64(field[v, COEFFICIENT + lane])
            height = np.float64(field[v, HEIGHT + lane])
            j = first_at_least(fenced, buckets, density, height - reach)
            if item(fenced, 1 + j) < height + reach:
                if not in_range:
                    tabulate(decay, fenced, scale, reach, height, j)
                factor = fill(factors[0, lane])
                while j < last and item(fenced, 1 + j) < height + reach:
                    falling = multiply(factor, load(decay, 0, j))
                    risen = divide(fill(coefficient), add(one, falling))
                    store(curves, lane, j, add(load(curves, lane, j), risen))
                    j += WIDTH
            jumps[j, lane] += coefficient


@inlined
def descend(
    point_gradient, share, turned, threshold_gradient, task,
    gradients, field, origin, count, width, points, directions, grid, of_grid,
):  # fmt: skip
    """Propagate the ``gradients [8, H + 8]`` of the curves to heights, and from there to points and directions.

    The task adds to its own share and row of the gradients of points and thresholds; those of the directions at hand go to
    ``turned [dim, 8]``. Only if ``of_grid`` are there gradients of the thresholds, which lack a factor ``scale``, and of
    the scale, which is returned.
    """
    fenced, thresholds, buckets, density, scale, reach, centre, decay, in_range, factors, slopes = grid
    last, one = len(fenced) - 2, fill(1.0)
    scale_gradient = 0.0
    for v in range(count):
        touched = _touched(field, v, width)
        if not touched:
            continue
        if in_range:
            _exponentiate(factors, field, v, scale, centre)
        store(slopes, 0, 0, fill(0.0))
        while touched:
            lane = lowest(touched)
            touched &= touched - 1
            coefficient = np.float64(field[v, COEFFICIENT + lane])
            height = np.float64(field[v, HEIGHT + lane])
            if math.isnan(height):
                slopes[0, lane] = scale_gradient = math.nan
                continue
            j = first_at_least(fenced, buckets, density, height - reach)
            if not item(fenced, 1 + j) < height + reach:
                continue
            if not in_range:
                tabulate(decay, fenced, scale, reach, height, j)
            factor = fill(factors[0, lane])
            summed, moments = fill(0.0), fill(0.0)
            while j < last and item(fenced, 1 + j) < height + reach:
                falling = multiply(factor, load(decay, 0, j))
                sigmoid = divide(one, add(one, falling))
                slope = multiply(load(gradients, lane, j), multiply(falling, multiply(sigmoid, sigmoid)))
                summed = add(summed, slope)
                if of_grid:
                    slope = multiply(fill(coefficient), slope)
                    moments = fused(slope, add(load(thresholds, 0, j), fill(-height)), moments)
                    store(threshold_gradient, task, j, add(load(threshold_gradient, task, j), slope))
                j += WIDTH
            slopes[0, lane] = -scale * coefficient * total(summed)
            if of_grid:
                scale_gradient += total(moments)
        pull = load(slopes, 0, 0)
        if point_gradient.shape[1]:
            for axis in range(points.shape[1]):
                point_gradient[share, origin + v, axis] += total(multiply(pull, load(directions, axis, 0)))
        for axis in range(len(turned)):
            place = fill(np.float64(points[origin + v, axis]))
            store(turned, axis, 0, fused(pull, place, load(turned, axis, 0)))
    return scale_gradient


@inlined
def weigh(field, gradients, suffixes, count, width, grid):
    """Replace every coefficient of a field by the derivative with respect to it.

    ``suffixes [8, H + 8]`` holds the sums of ``gradients`` from a threshold on.
    """
    fenced, _, buckets, density, scale, reach, centre, decay, in_range, factors, _ = grid
    last, one = len(fenced) - 2, fill(1.0)
    for v in range(count):
        if in_range:
            _exponentiate(factors, field, v, scale, centre)
        for lane in range(WIDTH):
            pull = 0.0
            if lane < width:
                height = np.float64(field[v, HEIGHT + lane])
                j = first_at_least(fenced, buckets, density, height - reach)
                if item(fenced, 1 + j) < height + reach:
                    if not in_range:
                        tabulate(decay, fenced, scale, reach, height, j)
                    factor = fill(factors[0, lane])
                    while j < last and item(fenced, 1 + j) < height + reach:
                        falling = multiply(factor, load(decay, 0, j))
                        pull += total(divide(load(gradients, lane, j), add(one, falling)))
                        j += WIDTH
                pull += suffixes[lane, j]
            field[v, COEFFICIENT + lane] = pull
