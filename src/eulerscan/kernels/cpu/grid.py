"""The thresholds as the kernels want them: where a height falls, and what a sigmoid costs there.

Looking up goes through a table of buckets and ends with a comparison against the threshold itself, so that a height
on a threshold counts there, on any ascending grid. The exponentials of all thresholds are tabulated: a
vertex then needs a single exponential of its own, since

    exp(-scale (t - height)) = exp(-scale (t - centre)) * exp(scale (height - centre)).

That works while both factors stay in range. A grid too long for its scale has windows of a few thresholds
only, and tabulates them anew for every height.

``decay`` in that case, ``factors`` and ``slopes`` are written on the way: room for the vertex at hand that is made once a call.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .addresses import item
from .jit import inlined, inner
from .lanes import WIDTH

LARGEST_EXPONENT = 600.0
BUCKETS_A_THRESHOLD = 4


class Grid(NamedTuple):
    fenced: NDArray[np.float64]  # [H + 2], the thresholds between -inf and inf, to look up
    thresholds: NDArray[np.float64]  # [1, H + 8], the thresholds before zeros, to sum over
    buckets: NDArray[np.int64]  # [M + 1], first threshold at or above the lower end of a bucket
    density: float  # buckets a unit of height
    scale: float
    reach: float  # a sigmoid is saturated further than this from its height; 0 if exact
    centre: float
    decay: NDArray[np.float64]  # [1, H + 8], exp(-scale (threshold - centre))
    in_range: bool  # whether ``decay`` serves all heights
    factors: NDArray[np.float64]  # [1, 8], exp(scale (height - centre)) of the vertex at hand; 1 if not in range
    slopes: NDArray[np.float64]  # [1, 8], the gradients of its heights


@inlined
def make_grid(thresholds: NDArray[np.floating], scale: float, saturation: float) -> Grid:
    count = len(thresholds)
    fenced = np.empty(count + 2)
    fenced[0], fenced[-1] = -np.inf, np.inf
    padded = np.zeros((1, count + WIDTH))
    for j in range(count):
        fenced[1 + j] = padded[0, j] = thresholds[j]
    origin = fenced[1] if count else 0.0
    extent = fenced[count] - origin if count else 0.0
    num_buckets = BUCKETS_A_THRESHOLD * count
    density = num_buckets / extent if extent > 0 else 0.0
    buckets = np.empty(num_buckets + 1, np.int64)
    threshold = 0
    for bucket in range(num_buckets):
        while threshold < count and thresholds[threshold] < origin + bucket / density:
            threshold += 1
        buckets[bucket] = threshold
    buckets[num_buckets] = count

    centre = origin + extent / 2
    in_range = scale * extent / 2 <= LARGEST_EXPONENT
    decay = np.zeros((1, count + WIDTH))
    if in_range:
        for j in range(count):
            decay[0, j] = math.exp(-scale * (fenced[1 + j] - centre))
    factors, slopes = np.ones((1, WIDTH)), np.zeros((1, WIDTH))
    return Grid(fenced, padded, buckets, density, scale, saturation / scale, centre, decay, in_range, factors, slopes)


@inner
def tabulate(
    decay: NDArray[np.float64], fenced: NDArray[np.float64], scale: float, reach: float, height: float, first: int
) -> None:
    """Set ``decay`` to exp(-scale (threshold - height)) from ``first`` to the last group of eight in the window."""
    while first < len(fenced) - 2 and fenced[1 + first] < height + reach:
        for j in range(first, first + WIDTH):
            within = j < len(fenced) - 2 and fenced[1 + j] < height + reach
            decay[0, j] = math.exp(scale * (height - fenced[1 + j])) if within else 0.0
        first += WIDTH


@inlined
def first_at_least(fenced: NDArray[np.float64], buckets: NDArray[np.int64], density: float, height: float) -> int:
    """Index of the first threshold at or above ``height``; the number of thresholds if there is none."""
    count = len(fenced) - 2
    position = (height - item(fenced, 1)) * density
    if density == 0.0:  # all thresholds are equal
        low, high = 0, count
    elif not position > 0:  # NaN too
        low, high = 0, 0
    elif position >= len(buckets) - 1:
        low, high = count, count
    else:
        bucket = int(position)
        low, high = item(buckets, bucket), item(buckets, bucket + 1)
    while high - low > 1:  # only where thresholds crowd in one bucket
        middle = (low + high) // 2
        if item(fenced, 1 + middle) < height:
            low = middle + 1
        else:
            high = middle
    low += item(fenced, 1 + low) < height
    # The bucket was found with rounding; the thresholds themselves decide.
    while item(fenced, 1 + low) < height:
        low += 1
    while low > 0 and item(fenced, low) >= height:
        low -= 1
    return int(low)
