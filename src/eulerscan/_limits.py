"""A limit on the memory that the content of a file may take."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

VARIABLE = "EULERSCAN_MAX_BYTES"
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # versions 2 and 1
_ASSUMED = 8 * 2**30  # bytes of memory, where the system does not tell


class LimitError(ValueError):
    """A file needs more memory than the limit, or the limit is not a number."""


def max_bytes() -> int:
    """``EULERSCAN_MAX_BYTES``, by default a quarter of the memory of the machine or the container."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return _memory() // 4
    try:
        limit = int(float(given))
    except (ValueError, OverflowError):
        limit = 0
    if limit < 1:
        raise LimitError(f"{VARIABLE} must be a number of bytes, such as 8e9, got {given!r}.")
    return limit


def check_bytes(needed: float, what: str) -> None:
    """Raise unless so many bytes are within the limit, before anything is allocated.

    Args:
        needed: Bytes of memory, as the header of a file claims.
        what: What needs them, for the error: ``"an image of 3000 x 3000 pixels"``.
    """
    limit = max_bytes()
    if needed > limit:
        raise LimitError(
            f"{what} needs {_size(needed)} of memory, more than the limit of {_size(limit)}. Set {VARIABLE} to raise it."
        )


def _size(number: float) -> str:
    """
    >>> _size(2.5e9), _size(120_000_000), _size(800)
    ('2.5 GB', '120 MB', '800 bytes')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:.0f} bytes"


@cache
def _memory() -> int:
    """Bytes of memory of the machine, or of the container that this process runs in."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, OSError, ValueError):  # not on Windows
        found = [_ASSUMED]
    for path in _CGROUPS:
        try:
            found.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such limit
            continue
    return min(found)
