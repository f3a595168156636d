"""Curves from heights and coefficients: sums over the vertices of a chunk in registers, then over the chunks of a complex.

Every sum has a fixed order, and depends on its own complex alone: a complex has the same bits alone and in any batch.
"""

import triton
import triton.language as tl

from .collapse import FIXED, coefficients_of
from .heights import heights
from .search import bound, chunk_of, first_chunk
from .sigmoid import sigmoid, slope

# What is summed, times the coefficient of each vertex.
VALUES = tl.constexpr(0)  # its sigmoid
THRESHOLD_SLOPES = tl.constexpr(1)  # the derivative of its sigmoid in the threshold
SCALE_SLOPES = tl.constexpr(2)  # the derivative in the scale


@triton.jit(do_not_specialize=["num_points", "B", "steps"])
def chunk_curves(
    points, directions, thresholds, scale, sums, weights, units, offsets, curves, num_points, B, T, H, stride, steps,
    DIM: tl.constexpr, KIND: tl.constexpr, MODE: tl.constexpr, SATURATION: tl.constexpr, CHUNK: tl.constexpr,
    BV: tl.constexpr, BT: tl.constexpr, BH: tl.constexpr,
):  # fmt: skip
    """``[chunks, T, H]``: the curves of one chunk in ``BT`` directions at ``BH`` thresholds."""
    chunk = tl.program_id(0).to(tl.int64)
    b, begin, end = chunk_of(offsets, chunk, B, num_points, steps, CHUNK)
    if begin >= end:  # an empty chunk, which is not read
        return
    columns = tl.program_id(1) * BT + tl.arange(0, BT)
    j = tl.program_id(2) * BH + tl.arange(0, BH)
    within = columns < T
    s = tl.load(scale)
    exact = s == float("inf")
    threshold = tl.load(thresholds + j, j < H, float("inf"))
    lowest = tl.load(thresholds + tl.program_id(2) * BH)
    highest = tl.load(thresholds + tl.minimum(tl.program_id(2) * BH + BH, H) - 1)
    unit = 1.0
    if DIM > 0:
        directions += b * stride
    if KIND == FIXED:
        unit = tl.load(units + b)
    total = tl.zeros((BV, BT, BH), s.dtype)
    for first in range(begin, end, BV):
        vertices = first + tl.arange(0, BV)
        inside = vertices < end
        both = inside[:, None] & within[None, :]
        height = heights(points, directions, vertices, vertices, columns, inside, within, stride, DIM, True)
        c = coefficients_of(sums, weights, unit, vertices, columns, inside, within, T, s.dtype, KIND)
        unknown = both & (height != height)
        if MODE == THRESHOLD_SLOPES:
            c = tl.where(unknown, 0.0, c)
        else:
            c = tl.where(unknown, float("nan"), c)
        # Vertices that count nothing do not matter: on a smooth mesh these are nearly all, and whole tiles of them.
        counts = both & (c != 0) & (height == height)
        bottom = tl.min(tl.where(counts, height, float("inf")))
        top = tl.max(tl.where(counts, height, -float("inf")))
        is_below = (bottom == float("inf")) | (s * (highest - bottom) < -SATURATION)
        is_above = s * (lowest - top) > SATURATION
        if (tl.max(unknown.to(tl.int32)) != 0) | ((is_below | is_above) == 0):
            distance = threshold[None, None, :] - height[:, :, None]
            if MODE == VALUES:
                if exact:  # the same for all programs
                    total += tl.where(distance < 0, 0.0, c[:, :, None])  # NaN is not below
                else:
                    total += c[:, :, None] * sigmoid(s * distance)
            else:
                if exact == 0:
                    value = slope(s * distance)
                    if MODE == SCALE_SLOPES:  # an infinite height has no slope
                        value = tl.where(value == 0, 0.0, value * distance)
                    else:
                        value = tl.where(value == value, value, 0.0) * s
                    total += c[:, :, None] * value
        elif MODE == VALUES:
            if is_below == 0:
                total += c[:, :, None]
    place = (chunk * T + columns)[:, None] * H + j[None, :]
    tl.store(curves + place, tl.sum(total, axis=0), within[:, None] & (j < H)[None, :])


@triton.jit(do_not_specialize=["num_points", "blocks"])
def sum_chunks(
    parts, offsets, thresholds, scale, status, result, num_points, H, width, stride, blocks,
    CHECKED: tl.constexpr, FLAGGED: tl.constexpr, CHUNK: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """``[B, width]``: the sum of the parts ``[chunks, width]`` of each complex, in float64. Its rows are ``stride`` apart.

    If checked, invalid arguments make everything NaN: thresholds that do not ascend, a scale that is not positive, and indices
    outside the points. An error would make the host wait.
    """
    b = (tl.program_id(0) // blocks).to(tl.int64)
    n = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    begin = first_chunk(offsets, b, num_points, CHUNK)
    size = tl.maximum(bound(offsets, b + 1, num_points) - bound(offsets, b, num_points), 0)
    end = begin + (size + CHUNK - 1) // CHUNK
    total = tl.zeros((BC, BN), tl.float64)
    for first in range(begin, end, BC):
        chunk = first + tl.arange(0, BC)
        mask = (chunk < end)[:, None] & (n < width)[None, :]
        total += tl.load(parts + chunk[:, None] * width + n[None, :], mask, 0.0).to(tl.float64)
    found = tl.sum(total, axis=0)
    if CHECKED:
        invalid = (tl.load(scale) > 0) == 0
        if FLAGGED:
            invalid = invalid | (tl.load(status) != 0)
        for first in range(0, H, 128):
            j = first + tl.arange(0, 128)
            threshold = tl.load(thresholds + j, j < H, 0.0)
            before = tl.load(thresholds + j - 1, (j > 0) & (j < H), -float("inf"))
            bad = (threshold - threshold != 0) | (threshold < before)
            invalid = invalid | (tl.max((bad & (j < H)).to(tl.int32)) != 0)
        found = tl.where(invalid, float("nan"), found)
    tl.store(result + b * stride + n, found.to(result.dtype.element_ty), n < width)
