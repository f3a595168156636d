"""Arguments of the kernels: passed by address, named, and validated in compiled code.

Loops replace numpy functions here: numba takes seconds to compile those for every case they support.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .jit import address_of, array_at, inlined, inner

MAX_ROWS = 2**16
VALID, INDEX_OUTSIDE, NOT_ASCENDING, BAD_OFFSETS = range(4)  # status that a kernel returns


class Arguments(NamedTuple):
    """The arguments that the forward and the backward kernel share.

    Kernels take it as a plain tuple, ``tuple(arguments)``, and name the entries again by ``Arguments(*arguments)``: numba
    looks up the type of a plain tuple in C, but that of a named tuple in Python.
    """

    addresses: tuple[int, ...]  # of points, directions, thresholds, weights, simplices and offsets
    sizes: tuple[int, ...]  # of the same: see :func:`inputs_of`
    float_zero: np.floating[Any]  # zero in the dtype of the points
    index_zero: np.integer[Any]  # zero in the dtype of the simplices
    levels: NDArray[np.int64]  # [2, L], vertices per simplex of each level, and their signs
    num_sets: int  # of directions: one, or one for each complex
    num_ranges: int  # ranges of complexes that the work is split into
    scale: float
    saturation: float  # beyond this argument a sigmoid is 0 or 1 up to rounding
    fields: NDArray[np.floating]  # [blocks * V, 16], kept from the forward pass for the backward pass; may be empty


class Inputs(NamedTuple):
    """The tensors as arrays: see :mod:`eulerscan.kernels.layout`. ``weights`` is empty if all are one.

    ``directions [T, dim]`` are ``[B * T, dim]`` if each complex has its own. If the heights are given, ``points [V, T]`` are
    heights and ``directions [T, 0]`` have no axes.
    """

    points: NDArray[np.floating]
    directions: NDArray[np.floating]
    thresholds: NDArray[np.floating]
    weights: NDArray[np.floating]
    simplices: NDArray[np.integer]
    offsets: NDArray[np.int64]
    levels: NDArray[np.int64]  # [2, L], as in the arguments


def addresses_of(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Where the data of contiguous tensors currently is. The caller keeps the tensors alive."""
    try:
        addresses = tuple([tensor.data_ptr() for tensor in tensors])
    except RuntimeError as error:
        raise NotImplementedError(
            "The transform needs tensors with data of their own, got a wrapper or a fake tensor."
        ) from error
    if 0 in addresses and any(tensor.data_ptr() == 0 and tensor.numel() > 0 for tensor in tensors):
        raise ValueError("The transform needs tensors with memory, got one whose storage is empty. Was it resized to 0?")
    return addresses


def contiguous(tensor: Tensor) -> Tensor:
    """The tensor as contiguous memory, without a lazy negation."""
    return tensor if tensor.is_contiguous() and not tensor.is_neg() else tensor.resolve_neg().contiguous()


@inlined
def inputs_of(arguments):
    """The arrays behind the addresses."""
    addresses, number, index = arguments.addresses, arguments.float_zero, arguments.index_zero
    num_points, num_columns, num_directions, num_axes, num_thresholds, num_weights, num_entries, num_rows, num_bounds = (
        arguments.sizes
    )
    return Inputs(
        array_at(addresses[0], (num_points, num_columns), number),
        array_at(addresses[1], (num_directions * arguments.num_sets, num_axes), number),
        array_at(addresses[2], (num_thresholds,), number),
        array_at(addresses[3], (num_weights,), number),
        array_at(addresses[4], (num_entries,), index),
        array_at(addresses[5], (num_rows, num_bounds), 0),
        array_at(address_of(arguments.levels), (2, arguments.levels.shape[1]), 0),
    )


@inner
def validate(inputs):
    """The status of the arguments, ``VALID`` if they can be read safely. Indices are checked where they are used."""
    if not ascends(inputs.thresholds):
        return NOT_ASCENDING
    return VALID if _consistent(inputs) else BAD_OFFSETS


@inner
def ascends(thresholds):
    """Whether all thresholds are finite and none is below its predecessor."""
    for j in range(len(thresholds)):
        if not math.isfinite(thresholds[j]) or (j > 0 and thresholds[j] < thresholds[j - 1]):
            return False
    return True


@inner
def _consistent(inputs):
    """Whether the offsets ascend from zero and end with the number of points, simplices and weights."""
    offsets, rows, num_entries = inputs.offsets, inputs.levels[0], len(inputs.simplices)
    if len(offsets) != len(rows) + 1 or offsets.shape[1] == 0 or offsets[0, -1] != len(inputs.points):
        return False
    total = entries = 0
    for level in range(len(offsets)):
        if offsets[level, 0] != 0 or (level > 0 and not 1 <= rows[level - 1] <= MAX_ROWS):
            return False
        if level > 0 and not 0 <= offsets[level, -1] <= num_entries:  # so that no product below can overflow
            return False
        for b in range(offsets.shape[1] - 1):
            if offsets[level, b] > offsets[level, b + 1]:
                return False
        total += offsets[level, -1]
        entries += rows[level - 1] * offsets[level, -1] if level > 0 else 0
    return entries == num_entries and (len(inputs.weights) == 0 or len(inputs.weights) == total)


@inner
def max_vertices(offsets):
    """The number of vertices of the largest complex."""
    largest = 0
    for b in range(offsets.shape[1] - 1):
        largest = max(largest, offsets[0, b + 1] - offsets[0, b])
    return largest


@inner
def split_into_ranges(offsets, count):
    """Bounds ``[count + 1]`` of ranges of consecutive complexes with about the same number of simplices."""
    num_complexes = offsets.shape[1] - 1
    total = _num_simplices_before(offsets, num_complexes)
    bounds = np.empty(count + 1, np.int64)
    bounds[0], bounds[count] = 0, num_complexes
    b = 0
    for i in range(1, count):
        while _num_simplices_before(offsets, b) < i * total / count:
            b += 1
        bounds[i] = b
    return bounds


@inner
def _num_simplices_before(offsets, b):
    """Simplices, vertices included, of all complexes before ``b``."""
    total = 0
    for level in range(len(offsets)):
        total += offsets[level, b]
    return total
