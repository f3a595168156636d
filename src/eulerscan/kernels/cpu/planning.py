"""Whether a packed complex is in order, and how to divide the work.

Loops stand here instead of numpy's functions, which numba compiles with all that they could do: for seconds.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inner

MOST_ROWS = 2**16
FINE, OUTSIDE, DESCENDING, DISORDERED = range(4)  # what a kernel found: OUTSIDE is a vertex of another complex


@inner
def ascending(thresholds):
    """Whether all thresholds are finite and none is below the one before."""
    for j in range(len(thresholds)):
        if not math.isfinite(thresholds[j]) or (j > 0 and thresholds[j] < thresholds[j - 1]):
            return False
    return True


@inner
def consistent(weights, simplices, offsets, rows, num_points):
    """Whether the offsets of a packed complex ascend from zero and end with what there is."""
    if len(offsets) != len(rows) + 1 or offsets.shape[1] == 0 or offsets[0, -1] != num_points:
        return False
    total = entries = 0
    for level in range(len(offsets)):
        if offsets[level, 0] != 0 or (level > 0 and not 1 <= rows[level - 1] <= MOST_ROWS):
            return False
        if level > 0 and not 0 <= offsets[level, -1] <= len(simplices):  # so that no product below can overflow
            return False
        for b in range(offsets.shape[1] - 1):
            if offsets[level, b] > offsets[level, b + 1]:
                return False
        total += offsets[level, -1]
        entries += rows[level - 1] * offsets[level, -1] if level > 0 else 0
    return entries == len(simplices) and (len(weights) == 0 or len(weights) == total)


@inner
def flaw_of(thresholds, weights, simplices, offsets, rows, num_points):
    """What keeps a kernel from reading them, if anything."""
    if not ascending(thresholds):
        return DESCENDING
    return FINE if consistent(weights, simplices, offsets, rows, num_points) else DISORDERED


@inner
def before(offsets, b):
    """Number of simplices, vertices included, of all complexes before ``b``."""
    total = 0
    for level in range(len(offsets)):
        total += offsets[level, b]
    return total


@inner
def most_vertices(offsets):
    """Of any complex."""
    most = 0
    for b in range(offsets.shape[1] - 1):
        most = max(most, offsets[0, b + 1] - offsets[0, b])
    return most


@inner
def ranges_of(offsets, count):
    """Bounds ``[count + 1]`` of so many ranges of consecutive complexes, with about the same number of simplices."""
    num_complexes = offsets.shape[1] - 1
    total = before(offsets, num_complexes)
    bounds = np.empty(count + 1, np.int64)
    bounds[0], bounds[count] = 0, num_complexes
    b = 0
    for i in range(1, count):
        while before(offsets, b) < i * total / count:
            b += 1
        bounds[i] = b
    return bounds
