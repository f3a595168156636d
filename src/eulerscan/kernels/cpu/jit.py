"""The three ways in which the kernels are compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

SOURCES = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()

inlined = njit(nogil=True, forceinline=True, error_model="numpy")
"""Part of whoever calls it."""

inner = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Called by kernels alone: without an entry from Python, which takes longer to compile than some of them."""


def cached(function: Callable[..., Any]) -> Any:
    """Called from Python: compiled once a machine where the cache can be written, else once a process.

    numba's cache notices a change of the file of a function only; the name brings in the files that it builds on.
    """
    function.__qualname__ += f"_{SOURCES[:16]}"
    try:
        return njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:
        return njit(nogil=True, error_model="numpy")(function)
