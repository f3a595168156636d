"""The error of all readers."""

from __future__ import annotations

import os
from pathlib import Path


class ReadError(ValueError):
    """A file cannot be read: it is damaged, not a shape, or too large. The message is ``<path>: <reason>``.

    Attributes:
        path: The file.
        reason: What is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(path, reason)  # what pickle makes it from
        self.path, self.reason = Path(path), reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def describe_error(error: Exception) -> str:
    """What an error of a parser means to the reader of a file. Libraries raise errors of any type for damaged files."""
    if isinstance(error, ReadError):
        return error.reason
    if isinstance(error, MemoryError | OverflowError):
        return f"file declares impossible sizes ({error})."
    if isinstance(error, RecursionError):
        return "file is damaged: it is nested too deeply."
    if isinstance(error, ValueError | IndexError) and str(error):
        return str(error)
    return f"file is truncated or corrupted ({type(error).__name__}: {error})."
