"""Exact curves of filtrations with a value for every cell: a histogram of the values, and its cumulative sum.

There is no top vertex to look for, and a cell counts 1 or -1. So values are read where they are, eight at a time, and counted
in integers, whose sums depend neither on their order nor on the threads.
"""

from __future__ import annotations

import math

import numpy as np

from .arguments import BAD_OFFSETS, NOT_ASCENDING, VALID, ascends
from .jit import array_at, cached, entry, inner
from .simd import WIDTH
from .threads import fetch_add
from .windows import first_at_or_above, locate, make_grid, make_search

COLUMNS = 4  # of counts, since an addition to the same number as the one before has to wait for it


@cached
def histogram(counters, float_zero, addresses, sizes, signs, offsets, thresholds, result):
    """Fill the result ``[P, H]``: the signs of the cells of each part at or below each threshold. Each part is a task.

    Part ``p`` owns the cells ``offsets[i, p] : offsets[i, p + 1]`` of level ``i``, whose ``sizes[i]`` values are at
    ``addresses[i]``. Returns a status of :mod:`.arguments`.
    """
    if not ascends(thresholds):
        return NOT_ASCENDING
    if not _consistent(offsets, sizes):
        return BAD_OFFSETS
    search = make_search(make_grid(thresholds, math.inf, 0.0))
    counts = np.zeros((len(thresholds) + 1, COLUMNS), np.int64)
    while True:
        part = fetch_add(counters, 0)
        if part >= len(result):
            return VALID
        for level in range(len(sizes)):
            values = array_at(addresses[level], (1, sizes[level]), float_zero)
            _count(counts, values, offsets[level, part], offsets[level, part + 1], signs[level], search)
        total = 0
        for j in range(len(thresholds)):
            total += counts[j].sum()
            result[part, j] = total
        counts[:] = 0


@inner
def _count(counts, values, first, last, sign, search):
    """Add ``sign`` to ``counts [H + 1, 4]`` for each of the values ``[1, n]`` from ``first`` to ``last``."""
    bounded, buckets, density, steps, _, places = search
    end = last - (last - first) % WIDTH if steps else first
    for i in range(first, end, WIDTH):
        locate(places, 0, values, 0, i, search)
        for lane in range(WIDTH):
            counts[np.uint64(entry(places, 0, lane)), np.uint64(lane % COLUMNS)] += sign
    for i in range(end, last):
        j = first_at_or_above(bounded, buckets, density, np.float64(values[0, i]))
        counts[j, i % COLUMNS] += sign


@inner
def _consistent(offsets, sizes):
    """Whether the offsets of each level ascend from zero to its size."""
    for level in range(len(sizes)):
        if offsets[level, 0] != 0 or offsets[level, -1] != sizes[level]:
            return False
        for part in range(offsets.shape[1] - 1):
            if offsets[level, part] > offsets[level, part + 1]:
                return False
    return True
