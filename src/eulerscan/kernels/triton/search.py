"""Binary searches: the complex of a chunk or of a simplex, the window of a height.

A chunk is a number of consecutive vertices of one complex. A complex of n vertices has ``n // size + 1`` chunks, the last of
which may be empty, so that the first chunk of a complex is known without a prefix sum.
"""

import triton
import triton.language as tl


@triton.jit
def bound(offsets, b, num_points):
    """Where the vertices of complex b begin; within the points, whatever the offsets say."""
    return tl.minimum(tl.maximum(tl.load(offsets + b), 0), num_points)


@triton.jit
def first_chunk(offsets, b, num_points, SIZE: tl.constexpr):
    """The first chunk of complex b."""
    return bound(offsets, b, num_points) // SIZE + b


@triton.jit
def chunk_of(offsets, chunk, B, num_points, steps, SIZE: tl.constexpr):
    """The complex of a chunk, and where its vertices begin and end (exclusive). ``steps`` is the number of bits of B."""
    low = chunk * 0
    high = low + B
    for _ in range(steps):
        middle = (low + high) // 2
        reached = (middle < high) & (first_chunk(offsets, middle, num_points, SIZE) <= chunk)
        low, high = tl.where(reached, middle, low), tl.where(reached, high, middle)
    begin = bound(offsets, low, num_points) + (chunk - first_chunk(offsets, low, num_points, SIZE)) * SIZE
    return low, begin, tl.minimum(begin + SIZE, bound(offsets, low + 1, num_points))


@triton.jit
def complex_of(offsets, entry, B, steps):
    """``[n]``: the complex of vertices or simplices, the last one that begins at or before them: empty ones are passed."""
    low = entry * 0
    high = low + B
    for _ in range(steps):
        middle = (low + high) // 2
        reached = (middle < high) & (tl.load(offsets + middle) <= entry)
        low, high = tl.where(reached, middle, low), tl.where(reached, high, middle)
    return low


@triton.jit
def level_of(offsets, B, ROWS: tl.constexpr, LEVEL: tl.constexpr, INDEX: tl.constexpr):
    """Number of simplices of a level, and where its simplices and its weights begin. The vertices are level 0.

    The counts stay on the device: the host need not wait for them.
    """
    count = tl.load(offsets + LEVEL * (B + 1) + B).to(INDEX)
    simplices = count * 0
    weights = count * 0
    for level in tl.static_range(LEVEL):
        before = tl.load(offsets + level * (B + 1) + B).to(INDEX)
        weights += before
        if level > 0:
            simplices += ROWS[level - 1] * before
    return count, simplices, weights


@triton.jit
def window(thresholds, height, reach, exact, H, steps):
    """Where the thresholds at most ``reach`` from the heights begin and end (exclusive); none if exact."""
    first = _num_below(thresholds, height - reach, H, steps, False)
    last = _num_below(thresholds, height + reach, H, steps, True)
    return first, tl.where(exact, first, last)


@triton.jit
def _num_below(thresholds, height, H, steps, EQUAL: tl.constexpr):
    """Number of thresholds below the heights, or equal to them. None is below NaN."""
    low = tl.zeros(height.shape, tl.int32)
    high = low + H
    for _ in range(steps):
        middle = (low + high) // 2
        threshold = tl.load(thresholds + middle, middle < H, float("inf"))
        below = (threshold <= height) if EQUAL else (threshold < height)
        open = low < high
        low, high = tl.where(open & below, middle + 1, low), tl.where(open & (below == 0), middle, high)
    return low
