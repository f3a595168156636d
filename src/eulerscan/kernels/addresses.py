"""How tensors reach compiled code: by address and size.

A view of numpy for each of them takes longer to make than a small batch takes to transform. Whoever passes an address keeps
the tensor meanwhile, and answers for its being contiguous and as large as the sizes say.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

Addresses = tuple[int, int, int, int, int, int]
Sizes = tuple[int, int, int, int, int, int, int, int]


@intrinsic
def _pointer(typing: Any, address: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.PointerType(context.get_data_type(like)))

    return types.CPointer(like)(types.int64, like), generate


@njit(nogil=True, forceinline=True, error_model="numpy")
def array_at(address, shape, like):
    """The array of that shape that begins at ``address``, of numbers like ``like``."""
    return carray(_pointer(address, like), shape)


@njit(nogil=True, forceinline=True, error_model="numpy")
def arrays_at(addresses, sizes, real, index):
    """Points, directions, thresholds, weights, simplices and offsets, of numbers like ``real`` and ``index``."""
    num_points, dim, num_directions, num_thresholds, num_weights, num_entries, num_levels, num_bounds = sizes
    return (
        array_at(addresses[0], (num_points, dim), real),
        array_at(addresses[1], (num_directions, dim), real),
        array_at(addresses[2], (num_thresholds,), real),
        array_at(addresses[3], (num_weights,), real),
        array_at(addresses[4], (num_entries,), index),
        array_at(addresses[5], (num_levels, num_bounds), 0),
    )
