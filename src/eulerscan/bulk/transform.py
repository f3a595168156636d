"""Transforming listed files: in memory, or to a single file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from .._progress import Bar
from ..complexes import Complex
from ..io.batch import read_many
from ..io.walk import Failure, Listing, reason
from .output import Transforms, Write, open_output
from .settings import Settings

FILES_AT_ONCE, BYTES_AT_ONCE = 256, 2**23
TOO_LARGE = "coordinates are too large: the transform overflows."

_Array = np.ndarray[Any, Any]


class Report(NamedTuple):
    """The outcome of a run."""

    settings: Settings  # with the ambient dimension, unless no shape could be read
    num_shapes: int  # transformed
    failures: list[Failure]
    num_beyond: int  # shapes that reach beyond the radius
    euler: tuple[tuple[str, int], ...] = ()  # of shapes that are neither weighted nor clouds


def transform_files(
    listing: Listing, settings: Settings, output: str | os.PathLike[str], *, progress: Bar | None = None
) -> Report:
    """Transform files to a single file, as :func:`write_transforms` writes it. If no shape can be read, there is none.

    Args:
        listing: The files, as :func:`eulerscan.io.list_shapes` lists them.
        settings: How to read and transform them.
        output: The file: .npz, .csv or .parquet.
        progress: A progress bar over the files.
    """
    return transform_to(lambda settings: open_output(Path(output), settings), listing, settings, progress)


def transform_all(listing: Listing, settings: Settings, *, progress: Bar | None = None) -> tuple[Transforms, Report]:
    """Transform files in memory. Arguments are those of :func:`transform_files`."""
    names: list[str] = []
    groups: list[str] = []
    transforms: list[_Array] = []

    def keep(some: list[str], own: list[str], values: _Array) -> None:
        names.extend(some)
        groups.extend(own)
        transforms.append(values)

    report = transform_to(lambda settings: nullcontext(keep), listing, settings, progress)
    found = torch.from_numpy(np.concatenate(transforms)) if names else torch.empty(0)
    return Transforms(names, found, report.settings, groups), report


def transform_to(
    open_writer: Callable[[Settings], AbstractContextManager[Write]],
    listing: Listing,
    settings: Settings,
    progress: Bar | None = None,
) -> Report:
    """Transform files a few at a time, so that memory does not grow with their number. The first shape opens the writer."""
    num_shapes, failures, num_beyond = 0, list(listing.failures), 0
    euler: list[tuple[str, int]] = []
    group_of = dict(zip(listing.names, listing.groups, strict=True))
    with ExitStack() as stack:
        write: Write | None = None
        for begin, end in _split(listing.sizes):
            shard = transform_shard(listing.folder, listing.names[begin:end], settings)
            settings = shard.settings
            if shard.names:
                write = write or stack.enter_context(open_writer(settings))
                write(shard.names, [group_of[name] for name in shard.names], shard.transforms)
            num_shapes += len(shard.names)
            failures += shard.failures
            num_beyond += shard.num_beyond
            euler += shard.euler
            if progress is not None:
                progress.update(len(shard.names) + len(shard.failures))
    return Report(settings, num_shapes, failures, num_beyond, tuple(euler))


class Shard(NamedTuple):
    """The transforms of some files."""

    settings: Settings  # with the ambient dimension, unless no shape was read
    names: list[str]
    transforms: _Array  # [n, T, H] or [n, K, T, H]
    failures: list[Failure]
    num_beyond: int = 0  # shapes that reach beyond the radius
    euler: Sequence[tuple[str, int]] = ()  # names and Euler characteristics of shapes that are neither weighted nor clouds


@torch.no_grad()
def transform_shard(folder: str | os.PathLike[str], names: Sequence[str], settings: Settings) -> Shard:
    """Read and transform some files. The result for a file does not depend on the others.

    Args:
        folder: The folder of the files.
        names: Paths of the files below ``folder``.
        settings: How to read and transform them.

    Returns:
        The transforms of the files that could be read, in the order of ``names``, and why the others could not.
    """
    folder = Path(folder)
    batches, errors = read_many([os.path.join(folder, name) for name in names], **settings.reading, dtype=torch.float64)
    if settings.dim is None:
        settings = _with_dim(settings, {min(batch.positions): dim for dim, batch in batches.items()}, errors)
    transforms: dict[int, _Array] = {}
    reasons = {i: reason(error, folder / names[i]) for i, error in errors.items()}
    num_beyond = 0
    euler: dict[int, int] = {}
    for dim, (positions, complex) in batches.items():
        if dim == settings.dim:
            done, failed = _transform(positions, complex, settings)
            transforms |= done
            reasons |= failed
            num_beyond += settings.ect.num_beyond(complex)
            if complex.packed.weights is None:
                joined = complex.offsets[1:].diff(dim=1).any(dim=0).tolist()  # not a cloud
                numbers = complex.euler_characteristic().tolist()
                euler |= {i: number for i, number, more in zip(positions, numbers, joined, strict=True) if more}
        else:
            reasons |= dict.fromkeys(positions, f"points of dimension {dim}, expected {settings.dim}.")
    order = sorted(transforms)
    shape = () if settings.dim is None else settings.shape
    return Shard(
        settings,
        [names[i] for i in order],
        np.stack([transforms[i] for i in order]) if order else np.empty((0, *shape), np.float32),
        [Failure(Path(names[i]), reasons[i]) for i in sorted(reasons)],
        num_beyond,
        [(names[i], euler[i]) for i in order if i in euler],
    )


def find_dim(listing: Listing, settings: Settings) -> tuple[Settings, list[Failure]]:
    """The settings with the dimension of the first shape that can be read, and the files before it."""
    failures: list[Failure] = []
    for name in listing.names:
        batches, errors = read_many([listing.folder / name], **settings.reading)
        settings = _with_dim(settings, dict(enumerate(batches)), errors)
        if settings.dim is not None:
            break
        failures.append(Failure(Path(name), reason(errors[0], listing.folder / name)))
    return settings, failures


def _with_dim(settings: Settings, dims: dict[int, int], errors: dict[int, Exception]) -> Settings:
    """The settings with the first of the dimensions, which are given by position."""
    if dims:
        return replace(settings, dim=dims[min(dims)])
    for error in errors.values():
        if not isinstance(error, ValueError | OSError):  # not the fault of the files: an unknown option, say
            raise error
    return settings


def _transform(positions: list[int], complex: Complex, settings: Settings) -> tuple[dict[int, _Array], dict[int, str]]:
    """The transforms by position, and the reasons for which there are none."""
    try:
        transforms = settings.ect.transform(complex).float()
    except (ValueError, RuntimeError, MemoryError) as error:
        if len(positions) == 1:
            return {}, {positions[0]: str(error)}
        transformed: dict[int, _Array] = {}
        reasons: dict[int, str] = {}
        for i, position in enumerate(positions):  # find the one that fails
            done, failed = _transform([position], complex[i], settings)
            transformed |= done
            reasons |= failed
        return transformed, reasons
    finite = transforms.isfinite().flatten(1).all(dim=1).tolist()
    rows = dict(zip(positions, transforms.numpy(), strict=True))
    overflows = {i: TOO_LARGE for i, fine in zip(positions, finite, strict=True) if not fine}
    return {i: row for i, row in rows.items() if i not in overflows}, overflows


def _split(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of files that are small enough together; large files alone."""
    begin, total = 0, 0
    for i, size in enumerate(sizes):
        if i > begin and (i - begin == FILES_AT_ONCE or total + size > BYTES_AT_ONCE):
            yield begin, i
            begin, total = i, 0
        total += size
    if sizes:
        yield begin, len(sizes)
