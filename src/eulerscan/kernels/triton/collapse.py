"""Coefficients: every simplex adds its sign to its top vertex, so that it needs no sigmoid of its own.

Simplices are added in any order, by integers, whose sums have no order: int32 if all weights are one, otherwise int64 in
fixed point. The unit of a complex is a power of two that leaves room for the sum of all its weights. A rounded weight is off
by less than 2 ** -61 of that sum.
"""

import triton
import triton.language as tl

from .heights import tops
from .search import complex_of, level_of

# What the coefficient of a vertex is made of.
ONE = tl.constexpr(0)  # no simplices, no weights
WEIGHT = tl.constexpr(1)  # no simplices
COUNT = tl.constexpr(2)  # int32 that simplices were added to; the vertex itself counts 1, which is not yet added
FIXED = tl.constexpr(3)  # int64, the same in fixed point


@triton.jit
def coefficients_of(sums, weights, unit, vertices, columns, inside, within, T, REAL: tl.constexpr, KIND: tl.constexpr):
    """``[v, t]``: coefficients of the vertices as real numbers, 0 where a mask is False.

    ``weights`` are those of the vertices, in fixed point if the sums are; ``unit`` is what 1 in fixed point is.
    """
    both = inside[:, None] & within[None, :]
    if KIND == ONE:
        found = tl.where(both, 1.0, 0.0).to(REAL)
    elif KIND == WEIGHT:
        found = tl.where(both, tl.load(weights + vertices, inside, 0.0)[:, None], 0.0).to(REAL)
    else:
        total = tl.load(sums + vertices[:, None] * T + columns[None, :], both, 0)
        if KIND == COUNT:
            found = tl.where(both, total + 1, 0).to(REAL)
        else:
            found = ((total + tl.load(weights + vertices, inside, 0)[:, None]).to(tl.float64) * unit).to(REAL)
    return found


@triton.jit(do_not_specialize=["num_points", "size", "num_weights", "B", "steps"])
def collapse(
    points, directions, simplices, offsets, fixed, sums, status, num_points, size, num_weights, T, B, stride, steps,
    ROWS: tl.constexpr, LEVEL: tl.constexpr, SIGN: tl.constexpr, DIM: tl.constexpr, SHARED: tl.constexpr,
    WEIGHTED: tl.constexpr, LONG: tl.constexpr, BS: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """Add the signs, or weights, of the simplices of a level to ``sums [V, T]``: ``[BS, BT]`` a program.

    ``status`` becomes 1 if an index is outside the points. Unless some index is ``LONG``, 32 bits suffice, which saves a
    sixth of the instructions.
    """
    INDEX: tl.constexpr = tl.int64 if LONG else tl.int32
    count, first, weighed = level_of(offsets, B, ROWS, LEVEL, INDEX)
    start = tl.program_id(0).to(INDEX) * BS
    if start >= count:  # the grid is as large as the level could be
        return
    simplex = start + tl.arange(0, BS)
    columns = tl.program_id(1) * BT + tl.arange(0, BT)
    inside, within = simplex < count, columns < T
    sets = simplex * 0
    if not SHARED:
        sets = complex_of(offsets + LEVEL * (B + 1), simplex, B, steps)
    top, valid = tops(
        points, directions, sets, simplices, first, count, size, num_points, simplex, inside, columns, within, stride,
        ROWS[LEVEL - 1], DIM, SHARED, INDEX,
    )  # fmt: skip
    if tl.max((inside & (valid == 0)).to(tl.int32)) != 0:
        tl.store(status, 1)
    if WEIGHTED:
        place = weighed + simplex
        weight = SIGN * tl.load(fixed + place, inside & (place < num_weights), 0)
        value = tl.broadcast_to(weight[:, None], top.shape)
    else:
        value = tl.full((BS, BT), SIGN, tl.int32)
    tl.atomic_add(sums + top * T + columns[None, :], value, (inside & valid)[:, None] & within[None, :], sem="relaxed")


@triton.jit(do_not_specialize=["num_weights", "B", "steps"])
def largest_exponents(weights, offsets, exponents, num_weights, B, steps, LEVELS: tl.constexpr, BW: tl.constexpr):
    """``[B]``: exponent of the largest weight of each complex, by its bits: a maximum has no order either."""
    place = tl.program_id(0).to(tl.int64) * BW + tl.arange(0, BW)
    inside = place < num_weights
    exponent = _exponent(tl.load(weights + place, inside, 0.0).to(tl.float64))
    b = _complex_of_weight(offsets, place, B, steps, LEVELS)
    lowest, highest = tl.min(tl.where(inside, b, B)), tl.max(tl.where(inside, b, 0))
    if lowest == highest:  # one atomic operation instead of many at the same place
        tl.atomic_max(exponents + lowest, tl.max(tl.where(inside, exponent, 0)), sem="relaxed")
    else:
        tl.atomic_max(exponents + b, exponent, inside, sem="relaxed")


@triton.jit(do_not_specialize=["B"])
def units_of(exponents, offsets, units, B, LEVELS: tl.constexpr, BB: tl.constexpr):
    """``[B]``: the unit of the fixed point of each complex; NaN if a weight is not finite."""
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    inside = b < B
    count = tl.zeros((BB,), tl.int64)
    for level in tl.static_range(LEVELS + 1):
        row = offsets + level * (B + 1)
        count += tl.load(row + b + 1, inside, 0) - tl.load(row + b, inside, 0)
    largest = tl.load(exponents + b, inside, 0)
    # Every weight is below 2 ** (largest - 1022), and so many of them below 2 ** (largest - 1022 + bits of the count).
    exponent = largest - 1022 + (_exponent(count.to(tl.float64)) - 1022) - 62
    exponent = tl.minimum(tl.maximum(exponent, -1022), 1022)
    unit = ((exponent + 1023).to(tl.int64) << 52).to(tl.float64, bitcast=True)
    tl.store(units + b, tl.where(largest == 2047, float("nan"), unit), inside)


@triton.jit(do_not_specialize=["num_weights", "B", "steps"])
def quantize(weights, offsets, units, fixed, num_weights, B, steps, LEVELS: tl.constexpr, BW: tl.constexpr):
    """Weights in fixed point."""
    place = tl.program_id(0).to(tl.int64) * BW + tl.arange(0, BW)
    inside = place < num_weights
    unit = tl.load(units + _complex_of_weight(offsets, place, B, steps, LEVELS), inside, 1.0)
    number = tl.load(weights + place, inside, 0.0).to(tl.float64) * (1.0 / unit)
    tl.store(fixed + place, tl.where(number == number, number, 0.0).to(tl.int64), inside)


@triton.jit
def _complex_of_weight(offsets, place, B, steps, LEVELS: tl.constexpr):
    """``[n]``: the complex that a weight belongs to."""
    found = complex_of(offsets, place, B, steps)
    first = tl.load(offsets + B)
    for level in tl.static_range(1, LEVELS + 1):
        row = offsets + level * (B + 1)
        found = tl.where(place < first, found, complex_of(row, tl.maximum(place - first, 0), B, steps))
        first += tl.load(row + B)
    return found


@triton.jit
def _exponent(number):
    """The exponent of float64, 0 for 0 and 2047 for infinity and NaN: below 2 ** (exponent - 1022)."""
    return ((number.to(tl.int64, bitcast=True) >> 52) & 2047).to(tl.int32)
