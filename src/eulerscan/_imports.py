"""Imports on use: optional dependencies, and numba."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


def require(module: str, extra: str) -> Any:
    """Import ``module``, or raise an error with the command that installs it.

    >>> require("json", extra="mesh").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"This needs {error.name}, which is not installed. Install the extra {extra!r}: "
            f'pip install "eulerscan[{extra}]", or ".[{extra}]" in a checkout.',
            name=error.name,
        ) from None


@contextmanager
def without_gc() -> Iterator[None]:
    """Pause garbage collection, which would scan everything that is imported again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def hidden(module: str) -> Iterator[None]:
    """Let imports of an optional module fail, unless it is loaded already.

    >>> with hidden("wave"):
    ...     import wave
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: import of wave halted; None in sys.modules
    >>> import wave
    """
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """A function compiled by numba on first use, not at import; once per machine if numba's cache is writable."""
    from numba import njit

    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
