"""Atomic writes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to a temporary file beside ``path``, which replaces it when the block ends.

    If the block raises, or its process is killed, ``path`` stays as it was. Of two processes that write at the same time, the
    last one wins.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.touch()  # raises an OSError if the folder is not writable; libraries may raise anything
        try:
            yield partial
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        if error.filename == str(partial):
            error.filename = str(path)  # the name that users know
        raise
