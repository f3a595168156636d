"""Compilation by numba, and memory access without checks.

A numpy view of every tensor would take longer to create than a small batch takes to transform, so kernels receive
addresses. The caller of :func:`array_at` guarantees that the memory is contiguous, large enough and alive.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import event
from numba.extending import intrinsic

SOURCES = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()

inlined = njit(nogil=True, forceinline=True, error_model="numpy")
"""Inlined into its callers."""

inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called by compiled code only. It gets no Python wrapper, which can take longer to compile than the function."""


def cached(function: Callable[..., Any]) -> Any:
    """Called from Python. Compiled once per machine if numba's cache is writable, else once per process.

    numba's cache tracks only the file that defines the function. The hash in the name covers the other files of this folder.
    """
    function.__qualname__ += f"_{SOURCES[:16]}"
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:
        return njit(nogil=True, error_model="numpy")(function)


class Notice(event.Listener):
    """Says on a terminal, once, why the first transform takes long."""

    def __init__(self) -> None:
        self.is_said = False

    def on_start(self, event: Any) -> None:
        if self.is_said or not event.data["dispatcher"].py_func.__qualname__.endswith(SOURCES[:16]):
            return
        self.is_said = True
        with contextlib.suppress(AttributeError, OSError, ValueError):  # of what may stand in the place of standard error
            if sys.stderr.isatty():
                sys.stderr.write("Compiling the transform for this machine. This takes about half a minute, once.\n")

    def on_end(self, event: Any) -> None: ...


event.register("numba:compile", Notice())


@intrinsic
def _pointer(typing: Any, address: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.PointerType(context.get_data_type(like)))

    return types.CPointer(like)(types.int64, like), generate


@inlined
def array_at(address: Any, shape: Any, like: Any) -> Any:
    """C-contiguous array at ``address`` with the dtype of the scalar ``like``.

    It has no reference count. Threads that update a shared count for every complex would wait for each other.
    """
    return carray(_pointer(address, like), shape)


@inlined
def address_of(array: Any) -> Any:
    """Address of the first element. The array must outlive the address."""
    return np.int64(array.ctypes.data)


@intrinsic
def item(typing: Any, vector: Any, i: Any) -> Any:
    """``vector[i]`` of a contiguous vector for ``i >= 0``, without numba's test for negative indices.

    Used where it was measured to matter: it saves a tenth of the time on a mesh.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load(builder.gep(array.data, [arguments[1]]))

    return vector.dtype(vector, types.intp), generate


@intrinsic
def entry(typing: Any, matrix: Any, row: Any, column: Any) -> Any:
    """``matrix[row, column]`` of a C-contiguous matrix, like :func:`item`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, row, column = arguments
        array = context.make_array(signature.args[0])(context, builder, array)
        index = builder.add(builder.mul(row, builder.extract_value(array.shape, 1)), column)
        return builder.load(builder.gep(array.data, [index]))

    return matrix.dtype(matrix, types.intp, types.intp), generate
