"""How tensors reach compiled code: by address and size.

A view of numpy for each of them takes longer to make than a small batch takes to transform. Whoever passes an address keeps
the tensor meanwhile, and answers for its being contiguous, on the CPU, as large as the sizes say, and still at that place:
a tensor may be given other data, and a storage be resized. Single numbers are read there by :func:`item` and :func:`entry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic
from torch import Tensor

from .jit import inlined


def addresses_of(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Where the numbers of contiguous tensors stand, right now."""
    try:
        addresses = tuple([tensor.data_ptr() for tensor in tensors])
    except RuntimeError as error:
        raise NotImplementedError(
            "The transform needs tensors that have memory of their own, got one that stands for others."
        ) from error
    if 0 in addresses and any(tensor.data_ptr() == 0 and tensor.numel() > 0 for tensor in tensors):
        raise ValueError("A tensor must have memory to be read, got one without.")
    return addresses


def plain(tensor: Tensor) -> Tensor:
    """The same numbers in one piece, without a sign that is still to be applied."""
    return tensor if tensor.is_contiguous() and not tensor.is_neg() else tensor.resolve_neg().contiguous()


@intrinsic
def _pointer(typing: Any, address: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.PointerType(context.get_data_type(like)))

    return types.CPointer(like)(types.int64, like), generate


@inlined
def array_at(address, shape, like):
    """The array of that shape that begins at ``address``, of numbers like ``like``."""
    return carray(_pointer(address, like), shape)


@inlined
def address_of(array):
    """Where an array begins. It must be in use for as long as the address is."""
    return np.int64(array.ctypes.data)


@inlined
def arrays_at(addresses, sizes, real, index, rows):
    """Points, directions, thresholds, weights, simplices and offsets, of numbers like ``real`` and ``index``; and ``rows``.

    Nobody counts references to them, which threads would do for every complex, waiting for each other.
    """
    num_points, dim, num_directions, num_thresholds, num_weights, num_entries, num_levels, num_bounds = sizes
    return (
        array_at(addresses[0], (num_points, dim), real),
        array_at(addresses[1], (num_directions, dim), real),
        array_at(addresses[2], (num_thresholds,), real),
        array_at(addresses[3], (num_weights,), real),
        array_at(addresses[4], (num_entries,), index),
        array_at(addresses[5], (num_levels, num_bounds), 0),
        array_at(address_of(rows), (len(rows),), 0),
    )


@intrinsic
def item(typing: Any, vector: Any, i: Any) -> Any:
    """``vector[i]`` of a contiguous vector, where ``i`` is not negative: numba would look at that every time.

    Used where it was measured to matter: a tenth of the work on a mesh.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return vector.dtype(vector, types.intp), generate


@intrinsic
def entry(typing: Any, matrix: Any, row: Any, column: Any) -> Any:
    """``matrix[row, column]`` likewise, of a C-contiguous matrix."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, row, column = arguments
        array = context.make_array(signature.args[0])(context, builder, array)
        index = builder.add(builder.mul(row, builder.extract_value(array.shape, 1)), column)
        return builder.load(builder.gep(array.data, [index]))

    return matrix.dtype(matrix, types.intp, types.intp), generate
