"""The dimension of the files that are to be transformed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..io.batch import read_many
from ..io.walk import Failure, Listing, reason


class NothingReadError(ValueError):
    """None of the files could be read; ``failures`` says why, for each."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        first = f" The first: {failures[0].path}: {failures[0].reason}" if failures else ""
        super().__init__(f"none of {len(failures)} files could be read.{first}")
        self.failures = failures


def first_dimension(source: Listing, reading: dict[str, Any]) -> int:
    """Dimension of the space of the first shape that can be read."""
    failures = list(source.failures)
    for name in source.names:
        batches, errors = read_many([source.folder / name], **reading)
        if batches:
            return next(iter(batches))
        if not isinstance(errors[0], ValueError | OSError):
            raise errors[0]
        failures.append(Failure(Path(name), reason(errors[0], source.folder / name)))
    raise NothingReadError(failures)
