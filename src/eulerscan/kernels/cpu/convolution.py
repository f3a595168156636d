"""Convolutions of 3 x 3 and the maxima of squares of 2 x 2, in one pass over memory.

Images of transforms have few channels. A convolution of torch writes many more, which the pooling reads again, and that takes
longer than the arithmetic. Here eight images share a vector and the four sums of a square stay in the cache. The backward pass
needs to know which sum was the largest, and whether the ReLU kept it: four bits.

A task is eight images. The caller adds the gradients of the weights of all tasks, in order.
"""

from __future__ import annotations

import numpy as np

from . import threads
from .jit import cached, inlined
from .simd import (
    WIDTH,
    add,
    bitmask,
    broadcast,
    fma,
    greater_equal,
    load,
    logical_or,
    mask,
    not_equal,
    select,
    store,
    sum_lanes,
    transpose,
)

TAPS = 9  # weights of a pair of channels
CHOICES = 4  # three comparisons of the sums of a square, and the ReLU


@cached
def convolve(counters, images, height, width, weights, bias, rectify, result, choices):
    """Fill the result ``[B, D h w]`` and, for :func:`backpropagate`, the choices ``[tasks, D h w, 4]``.

    Images are ``[B, C height width]``, weights ``[D, 9 C]``; a ``rectify`` adds a ReLU. ``h`` is ``(height - 2) // 2``.
    """
    rows, columns = (height - 2) // 2, (width - 2) // 2
    block, pooled = np.empty((images.shape[1], WIDTH), images.dtype), np.empty((result.shape[1], WIDTH), images.dtype)
    sums = np.empty((4 * columns, WIDTH), images.dtype)
    while True:
        task = threads.fetch_add(counters, 0)
        if task * WIDTH >= len(images):
            return 0
        _gather(block, images, task * WIDTH)
        for d in range(len(weights)):
            for i in range(rows):
                for j in range(4 * columns):
                    store(sums, j, 0, broadcast(bias[d]))
                for c in range(weights.shape[1] // TAPS):
                    _convolve_row(sums, block, (c * height + 2 * i) * width, width, weights, d, TAPS * c)
                for j in range(columns):
                    _pool(pooled, choices[task], (d * rows + i) * columns + j, sums, 4 * j, rectify)
        _scatter(result, pooled, task * WIDTH)


@cached
def backpropagate(counters, images, height, width, weights, choices, gradient, of_images, of_weights):
    """Fill the gradients of the images ``[B, C height width]``, unless empty, and of weights and
    bias ``[tasks, D, 9 C + 1]``. The gradient of the result is ``[B, D h w]``.
    """
    rows, columns, channels = (height - 2) // 2, (width - 2) // 2, weights.shape[1] // TAPS
    block, pooled = np.empty((images.shape[1], WIDTH), images.dtype), np.empty((gradient.shape[1], WIDTH), images.dtype)
    spread = np.empty((of_images.shape[1], WIDTH), images.dtype)
    while True:
        task = threads.fetch_add(counters, 0)
        if task * WIDTH >= len(images):
            return 0
        _gather(block, images, task * WIDTH)
        _gather(pooled, gradient, task * WIDTH)
        spread[:] = 0
        for d in range(len(weights)):
            first = d * rows * columns
            for c in range(channels):
                start = c * height * width
                _correlate(of_weights[task], d, TAPS * c, pooled, choices[task], first, rows, columns, block, start, width)
                if len(spread):
                    _spread(spread, start, width, pooled, choices[task], first, rows, columns, weights, d, TAPS * c)
            zero = broadcast(gradient.dtype.type(0))
            total = zero
            for n in range(first, first + rows * columns):
                total = add(total, select(mask(choices[task, n, 3]), zero, load(pooled, n, 0)))
            of_weights[task, d, TAPS * channels] = sum_lanes(total)
        if len(spread):
            _scatter(of_images, spread, task * WIDTH)


@inlined
def _convolve_row(sums, block, start, width, weights, row, tap):
    """Add one channel to the four sums of each square of a row."""
    u, v, w = _three(weights, row, tap), _three(weights, row, tap + 3), _three(weights, row, tap + 6)
    for j in range(0, len(sums), 4):
        at = start + j // 2
        first, second = _four(block, at), _four(block, at + width)
        third, fourth = _four(block, at + 2 * width), _four(block, at + 3 * width)
        store(sums, j, 0, _left(first, u, _left(second, v, _left(third, w, load(sums, j, 0)))))
        store(sums, j + 1, 0, _right(first, u, _right(second, v, _right(third, w, load(sums, j + 1, 0)))))
        store(sums, j + 2, 0, _left(second, u, _left(third, v, _left(fourth, w, load(sums, j + 2, 0)))))
        store(sums, j + 3, 0, _right(second, u, _right(third, v, _right(fourth, w, load(sums, j + 3, 0)))))


@inlined
def _pool(pooled, choices, row, sums, j, rectify):
    """The largest of four sums, the first of equal ones, or NaN if there is one."""
    largest, zero = load(sums, j, 0), broadcast(sums.dtype.type(0))
    for k in range(3):
        following = load(sums, j + 1 + k, 0)
        stays = logical_or(greater_equal(largest, following), not_equal(largest, largest))
        largest = select(stays, largest, following)
        choices[row, k] = bitmask(stays)
    choices[row, 3] = 0
    if rectify:
        vanishes = greater_equal(zero, largest)
        largest = select(vanishes, zero, largest)
        choices[row, 3] = bitmask(vanishes)
    store(pooled, row, 0, largest)


@inlined
def _shares(pooled, choices, row):
    """Gradients of the four sums of a square: that of the result for the largest, zero for the others."""
    zero = broadcast(pooled.dtype.type(0))
    rest = select(mask(choices[row, 3]), zero, load(pooled, row, 0))
    stays = mask(choices[row, 2])
    d, rest = select(stays, zero, rest), select(stays, rest, zero)
    stays = mask(choices[row, 1])
    c, rest = select(stays, zero, rest), select(stays, rest, zero)
    stays = mask(choices[row, 0])
    return select(stays, rest, zero), select(stays, zero, rest), c, d


@inlined
def _correlate(result, row, tap, pooled, choices, first, rows, columns, block, start, width):
    """Gradients of the nine weights of a pair of channels."""
    zero = broadcast(block.dtype.type(0))
    u, v, w = (zero, zero, zero), (zero, zero, zero), (zero, zero, zero)
    for i in range(rows):
        for j in range(columns):
            a, b, c, d = _shares(pooled, choices, first + i * columns + j)
            at = start + 2 * (i * width + j)
            values = _four(block, at)
            u = _add_products(values, a, b, u)
            values = _four(block, at + width)
            u, v = _add_products(values, c, d, u), _add_products(values, a, b, v)
            values = _four(block, at + 2 * width)
            v, w = _add_products(values, c, d, v), _add_products(values, a, b, w)
            values = _four(block, at + 3 * width)
            w = _add_products(values, c, d, w)
    for k in range(3):
        result[row, tap + k] = sum_lanes(u[k])
        result[row, tap + 3 + k] = sum_lanes(v[k])
        result[row, tap + 6 + k] = sum_lanes(w[k])


@inlined
def _spread(result, start, width, pooled, choices, first, rows, columns, weights, row, tap):
    """Add the gradients of one channel of the images, by one channel of the result."""
    u, v, w = _three(weights, row, tap), _three(weights, row, tap + 3), _three(weights, row, tap + 6)
    for i in range(rows):
        for j in range(columns):
            a, b, c, d = _shares(pooled, choices, first + i * columns + j)
            at = start + 2 * (i * width + j)
            _set_four(result, at, _outer(u, a, b, _four(result, at)))
            _set_four(result, at + width, _outer(u, c, d, _outer(v, a, b, _four(result, at + width))))
            _set_four(result, at + 2 * width, _outer(v, c, d, _outer(w, a, b, _four(result, at + 2 * width))))
            _set_four(result, at + 3 * width, _outer(w, c, d, _four(result, at + 3 * width)))


@inlined
def _three(weights, row, tap):
    return broadcast(weights[row, tap]), broadcast(weights[row, tap + 1]), broadcast(weights[row, tap + 2])


@inlined
def _four(block, at):
    return load(block, at, 0), load(block, at + 1, 0), load(block, at + 2, 0), load(block, at + 3, 0)


@inlined
def _set_four(block, at, values):
    store(block, at, 0, values[0])
    store(block, at + 1, 0, values[1])
    store(block, at + 2, 0, values[2])
    store(block, at + 3, 0, values[3])


@inlined
def _left(values, weights, sum):
    return fma(values[2], weights[2], fma(values[1], weights[1], fma(values[0], weights[0], sum)))


@inlined
def _right(values, weights, sum):
    return fma(values[3], weights[2], fma(values[2], weights[1], fma(values[1], weights[0], sum)))


@inlined
def _add_products(values, left, right, sums):
    return (
        fma(values[1], right, fma(values[0], left, sums[0])),
        fma(values[2], right, fma(values[1], left, sums[1])),
        fma(values[3], right, fma(values[2], left, sums[2])),
    )


@inlined
def _outer(weights, left, right, sums):
    return (
        fma(weights[0], left, sums[0]),
        fma(weights[0], right, fma(weights[1], left, sums[1])),
        fma(weights[1], right, fma(weights[2], left, sums[2])),
        fma(weights[2], right, sums[3]),
    )


@inlined
def _gather(block, images, first):
    """Eight images ``[n, 8]``, with zeros for those beyond the last."""
    count, length = min(WIDTH, len(images) - first), images.shape[1]
    whole = length - length % WIDTH if count == WIDTH else 0
    for n in range(0, whole, WIDTH):
        transpose(block, n, 0, images, first, n)
    block[whole:] = 0
    for lane in range(count):
        for n in range(whole, length):
            block[n, lane] = images[first + lane, n]


@inlined
def _scatter(images, block, first):
    """The opposite of :func:`_gather`."""
    count, length = min(WIDTH, len(images) - first), images.shape[1]
    whole = length - length % WIDTH if count == WIDTH else 0
    for n in range(0, whole, WIDTH):
        transpose(images, first, n, block, n, 0)
    for lane in range(count):
        for n in range(whole, length):
            images[first + lane, n] = block[n, lane]
