"""Transforms of some files out of many: what is read at once, and what becomes of files that cannot be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..complexes import Complex
from ..io.batch import read_many
from ..io.walk import Failure, Listing, reason
from .files import Piece
from .settings import Settings

FILES_AT_ONCE, BYTES_AT_ONCE = 256, 2**23
TOO_LARGE = "its coordinates are too large: numbers overflow on the way to its transform."

Told = Callable[[int], object]  # is told a number more


class Shard(NamedTuple):
    """What became of some files."""

    names: list[str]
    transforms: np.ndarray[Any, Any]  # [n, T, H]
    failures: list[Failure]
    beyond: int = 0  # shapes with points beyond the radius


def transform_shard(folder: str | os.PathLike[str], names: Sequence[str], settings: Settings) -> Shard:
    """Read and transform files. What becomes of one depends on no other, nor on how many are read at once.

    Args:
        folder: Where the files are.
        names: Their paths below it.
        settings: What to do with each.

    Returns:
        The transforms of those that could be read, in the order of ``names``, and why others could not.
    """
    folder, beyond = Path(folder), 0
    batches, errors = read_many([os.path.join(folder, name) for name in names], **settings.reading, dtype=torch.float64)
    reasons = {i: reason(error, folder / names[i]) for i, error in errors.items()}
    values: dict[int, np.ndarray[Any, Any]] = {}
    for dim, (positions, complex) in batches.items():
        if dim == settings.dim:
            beyond += settings.ect.num_beyond(complex)
            _transform(positions, complex, settings, values, reasons)
        else:
            reasons |= dict.fromkeys(positions, f"points of dimension {dim}, where {settings.dim} was expected.")
    done = sorted(values)
    transforms = np.stack([values[i] for i in done]) if done else np.empty((0, *settings.shape), np.float32)
    failures = [Failure(Path(names[i]), reasons[i]) for i in sorted(reasons)]
    return Shard([names[i] for i in done], transforms, failures, beyond)


def _transform(
    positions: list[int], complex: Complex, settings: Settings, values: dict[int, np.ndarray[Any, Any]], reasons: dict[int, str]
) -> None:
    try:
        transforms = settings.transform(complex)
        finite = transforms.isfinite().flatten(1).all(dim=1).tolist()
        values |= {i: row for i, row, fine in zip(positions, transforms.numpy(), finite, strict=True) if fine}
        reasons |= {i: TOO_LARGE for i, fine in zip(positions, finite, strict=True) if not fine}
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(positions) == 1:
            reasons[positions[0]] = str(error)
            return
        for i, position in enumerate(positions):  # one of them is to blame
            _transform([position], complex[i], settings, values, reasons)


def transformed(
    source: Listing,
    settings: Settings,
    failures: list[Failure],
    *,
    ended: Told = lambda n: None,
    beyond: Told = lambda n: None,
) -> Iterator[Piece]:
    """The transforms of all files, some at a time, so that memory does not grow with their number.

    Args:
        source: The files.
        settings: What to do with each.
        failures: Gets those that cannot be read.
        ended: Is told how many files more are done.
        beyond: Is told how many shapes more have points beyond the radius, which are cut off.
    """
    failures += source.failures
    for begin, end in _portions(source.sizes):
        shard = transform_shard(source.folder, source.names[begin:end], settings)
        failures += shard.failures
        ended(end - begin)
        beyond(shard.beyond)
        yield shard.names, shard.transforms


def _portions(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of files that are small enough together, or one large file alone."""
    begin, total = 0, 0
    for i, size in enumerate(sizes):
        if i > begin and (i - begin == FILES_AT_ONCE or total + size > BYTES_AT_ONCE):
            yield begin, i
            begin, total = i, 0
        total += size
    if sizes:
        yield begin, len(sizes)
