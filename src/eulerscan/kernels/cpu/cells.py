"""Cells of heights, each so narrow that a sigmoid is a short power series in it: see :mod:`.moments`.

The series come from the differential equation of the sigmoid, once a call, for the cells that vertices fall in.
Below and above all others lies one more cell, for the heights that are saturated at every threshold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .grid import Grid
from .jit import inlined, inner
from .lanes import WIDTH, add, divide, fill, load, multiply, store
from .rows import turn

# A series ends with an error of (half-width / pi) ** terms: 2e-9 in float32, 4e-15 in float64.
HALF_WIDTHS = (0.25, 0.375)
VERTICES_A_CELL = 0.5  # for each term: from there on moments are faster than windows
SPARSE = 8  # one vertex in so many is expected to count where simplices may cancel the others
LARGEST_TABLE = 2**21  # numbers
CHUNK = 128  # vertices at a time, whose places stay in the fastest cache
CHUNKS = 16  # at most, whose moments are summed in the dtype of the points before they are added up in float64
CELLS_A_CHUNK = 8  # and about as many chunks as keep the adding up cheap


class Cells(NamedTuple):
    worth: float  # so many vertices make it worth while
    bottom: float
    density: float  # cells a unit of height
    half_width: float  # of a cell, times scale
    firsts: NDArray[np.int64]  # [N], the window of a cell begins with this threshold
    ends: NDArray[np.int64]  # [N], and from this threshold on a cell is saturated
    rows: NDArray[np.int64]  # [N], the row of the table for threshold 0 of a cell, if its window began there
    ready: NDArray[np.bool_]  # [N], whether the table is filled
    table: NDArray[np.float64]  # [..., terms], for each cell and threshold in its window
    moments: NDArray[np.float64]  # [N * 8, terms], for each cell and direction; zeros between two uses
    partial: NDArray[np.floating]  # [N * 8, terms], moments of some vertices in float32, or nothing; zeros between two uses
    pulls: NDArray[np.floating]  # [N * 8, terms], what the gradient of the curves asks of each power
    series: NDArray[np.float64]  # [terms, 8], one cell at work
    sums: NDArray[np.float64]  # [H, 8], of the curves, or their gradient; zeros between two curves
    # The vertices at work, their cells, where in them they are, their slopes; and the lowest and highest cell.
    vertices: NDArray[np.int64]  # [CHUNK]
    places: NDArray[np.int32]  # [CHUNK, 8]
    x: NDArray[np.floating]  # [CHUNK, 8]
    slopes: NDArray[np.floating]  # [CHUNK, 8]
    extremes: NDArray[np.float64]  # [2, 8]


@inner
def make_cells(grid: Grid, like: NDArray[np.floating], most_vertices: int) -> Cells:
    """Cells for complexes of up to ``most_vertices``, in the dtype of ``like``; none where they are not worth while for any."""
    fenced, scale, reach = grid.fenced, grid.scale, grid.reach
    num_thresholds = len(fenced) - 2
    terms, half_width = (WIDTH, HALF_WIDTHS[0]) if like.itemsize == 4 else (2 * WIDTH, HALF_WIDTHS[1])
    count, density, worth = 0, scale / (2 * half_width), np.inf
    bottom = fenced[1] - reach - 1 / density
    if grid.in_range and num_thresholds and math.isfinite(bottom):
        within = math.ceil((fenced[num_thresholds] - fenced[1] + 2 * reach) * density)
        worth = VERTICES_A_CELL * terms * within
        count = within + 2 if most_vertices >= worth else 0
    firsts, ends, rows = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    first = end = row = 0
    for cell in range(1, count - 1):
        while first < num_thresholds and fenced[1 + first] < bottom + cell / density - reach:
            first += 1
        end = max(first, end)
        while end < num_thresholds and fenced[1 + end] < bottom + (cell + 1) / density + reach:
            end += 1
        firsts[cell], ends[cell], rows[cell] = first, end, row - first
        row += -(-(end - first) // WIDTH) * WIDTH
    dtype = like.dtype
    if count == 0 or max(row, count) * terms > LARGEST_TABLE:
        none, other = np.empty((0, WIDTH)), np.empty((0, WIDTH), dtype)  # few arrays, since each takes its time
        return Cells(
            np.inf, bottom, density, half_width, firsts, firsts, firsts, np.empty(0, np.bool_), none,
            none, other, other, none, none, firsts, np.empty((0, WIDTH), np.int32), other, other, none,
        )  # fmt: skip
    firsts[-1] = ends[-1] = num_thresholds
    return Cells(
        worth, bottom, density, half_width, firsts, ends, rows, np.zeros(count, np.bool_), np.empty((row, terms)),
        np.zeros((count * WIDTH, terms)), np.zeros((count * WIDTH if like.itemsize == 4 else 0, terms), dtype),
        np.empty((count * WIDTH, terms), dtype),
        np.empty((terms, WIDTH)), np.zeros((num_thresholds, WIDTH)),
        np.empty(CHUNK, np.int64), np.empty((CHUNK, WIDTH), np.int32), np.empty((CHUNK, WIDTH), dtype),
        np.empty((CHUNK, WIDTH), dtype), np.empty((2, WIDTH)),
    )  # fmt: skip


@inlined
def occupied(offsets, b):
    """About how many vertices of complex ``b`` count: all but one for each simplex, or a few where there are many."""
    vertices = offsets[0, b + 1] - offsets[0, b]
    simplices = 0
    for level in range(1, len(offsets)):
        simplices += offsets[level, b + 1] - offsets[level, b]
    return max(vertices - simplices, vertices // SPARSE)


@inner
def most_occupied(offsets):
    """The largest number of vertices that count in any complex."""
    most = 0
    for b in range(offsets.shape[1] - 1):
        most = max(most, occupied(offsets, b))
    return most


@inner
def expand(cell, grid, cells):
    """Write the series of a cell, eight thresholds at a time, from f' = -half_width f (1 - f)."""
    table, series, half_width, decay = cells.table, cells.series, cells.half_width, grid.decay
    factor = fill(math.exp(grid.scale * (cells.bottom - grid.centre + (cell + 0.5) / cells.density)))
    one, minus = fill(1.0), fill(-1.0)
    for j in range(cells.firsts[cell], cells.ends[cell], WIDTH):
        falling = multiply(factor, load(decay, 0, j))
        risen = divide(one, add(one, falling))
        fallen = multiply(falling, risen)
        store(series, 0, 0, risen)
        store(series, 1, 0, multiply(fill(-half_width), multiply(risen, fallen)))
        tilt = add(fallen, multiply(minus, risen))
        for k in range(1, len(series) - 1):
            product = fill(0.0)
            for i in range(1, k):
                product = add(product, multiply(load(series, i, 0), load(series, k - i, 0)))
            change = add(multiply(tilt, load(series, k, 0)), multiply(minus, product))
            store(series, k + 1, 0, multiply(fill(-half_width / (k + 1)), change))
        for k in range(0, len(series), WIDTH):
            turn(table, cells.rows[cell] + j, k, series, k, 0)
    cells.ready[cell] = True
