"""Large libraries, loaded in less time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage meanwhile: an import makes little, and looks through everything that it made again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def hidden(module: str) -> Iterator[None]:
    """Others do not find a module meanwhile that they could do without, unless it is loaded already.

    It comes back, but they do not look for it again: numba, loaded meanwhile, would do without BLAS until the process ends.
    So this is for commands, and not for what programs call.

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
