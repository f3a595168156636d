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
from numba import njit

from .collapse import COEFFICIENT, HEIGHT
from .grid import first_at_least, tabulate
from .lanes import WIDTH, add, any_lane, differs, divide, fill, load, multiply, store, total


@njit(nogil=True, forceinline=True, error_model="numpy")
def _touched(field, v):
    """Whether vertex ``v`` is the top of anything that does not cancel, in any of the eight directions."""
    return any_lane(differs(load(field, v, COEFFICIENT), fill(field.dtype.type(0))))


@njit(nogil=True, forceinline=True, error_model="numpy")
def draw(curves, jumps, field, count, width, grid):
    """Add all vertices of a field to ``curves [8, H + 8]``, and to ``jumps [H + 8, 8]`` where they are saturated."""
    fenced, _, buckets, density, scale, reach, centre, decay, in_range = grid
    last, one = len(fenced) - 2, fill(1.0)
    for v in range(count):
        if not _touched(field, v):
            continue
        for lane in range(width):
            coefficient = np.float64(field[v, COEFFICIENT + lane])
            if coefficient == 0.0:
                continue
            height = np.float64(field[v, HEIGHT + lane])
            j = first_at_least(fenced, buckets, density, height - reach)
            if fenced[1 + j] < height + reach:
                if not in_range:
                    tabulate(decay, fenced, scale, reach, height, j)
                factor = fill(math.exp(scale * (height - centre)) if in_range else 1.0)
                while j < last and fenced[1 + j] < height + reach:
                    falling = multiply(factor, load(decay, 0, j))
                    risen = divide(fill(coefficient), add(one, falling))
                    store(curves, lane, j, add(load(curves, lane, j), risen))
                    j += WIDTH
            jumps[j, lane] += coefficient


@njit(nogil=True, forceinline=True, error_model="numpy")
def descend(
    point_gradient, share, direction_gradient, range_index, start, threshold_gradient, task,
    gradients, field, origin, count, width, points, directions, grid,
):  # fmt: skip
    """Propagate the ``gradients [8, H + 8]`` of the curves to heights, and from there to points and directions.

    The task adds to its own share, range and row of the gradients. That of the thresholds, which lacks a
    factor ``scale``, and that of the scale, which is returned, fall off on the way.
    """
    fenced, thresholds, buckets, density, scale, reach, centre, decay, in_range = grid
    last, one = len(fenced) - 2, fill(1.0)
    scale_gradient = 0.0
    for v in range(count):
        if not _touched(field, v):
            continue
        for lane in range(width):
            coefficient = np.float64(field[v, COEFFICIENT + lane])
            if coefficient == 0.0:
                continue
            height = np.float64(field[v, HEIGHT + lane])
            j = first_at_least(fenced, buckets, density, height - reach)
            if not fenced[1 + j] < height + reach and not math.isnan(height):
                continue
            if not in_range:
                tabulate(decay, fenced, scale, reach, height, j)
            factor = fill(math.exp(scale * (height - centre)) if in_range else 1.0)
            slopes, moments = fill(0.0), fill(0.0)
            while j < last and fenced[1 + j] < height + reach:
                falling = multiply(factor, load(decay, 0, j))
                sigmoid = divide(one, add(one, falling))
                slope = multiply(
                    multiply(fill(coefficient), load(gradients, lane, j)), multiply(falling, multiply(sigmoid, sigmoid))
                )
                slopes = add(slopes, slope)
                moments = add(moments, multiply(slope, add(load(thresholds, 0, j), fill(-height))))
                store(threshold_gradient, task, j, add(load(threshold_gradient, task, j), slope))
                j += WIDTH
            slope_of_height = math.nan if math.isnan(height) else total(slopes)
            scale_gradient += math.nan if math.isnan(height) else total(moments)
            for axis in range(points.shape[1]):
                if point_gradient.shape[1]:
                    point_gradient[share, origin + v, axis] -= scale * slope_of_height * directions[axis, lane]
                if direction_gradient.shape[1]:
                    direction_gradient[range_index, start + lane, axis] -= scale * slope_of_height * points[origin + v, axis]
    return scale_gradient


@njit(nogil=True, forceinline=True, error_model="numpy")
def weigh(field, gradients, suffixes, count, width, grid):
    """Replace every coefficient of a field by the derivative with respect to it.

    ``suffixes [8, H + 8]`` holds the sums of ``gradients`` from a threshold on.
    """
    fenced, _, buckets, density, scale, reach, centre, decay, in_range = grid
    last, one = len(fenced) - 2, fill(1.0)
    for v in range(count):
        for lane in range(WIDTH):
            pull = 0.0
            if lane < width:
                height = np.float64(field[v, HEIGHT + lane])
                j = first_at_least(fenced, buckets, density, height - reach)
                if fenced[1 + j] < height + reach:
                    if not in_range:
                        tabulate(decay, fenced, scale, reach, height, j)
                    factor = fill(math.exp(scale * (height - centre)) if in_range else 1.0)
                    while j < last and fenced[1 + j] < height + reach:
                        falling = multiply(factor, load(decay, 0, j))
                        pull += total(divide(load(gradients, lane, j), add(one, falling)))
                        j += WIDTH
                pull += suffixes[lane, j]
            field[v, COEFFICIENT + lane] = pull
