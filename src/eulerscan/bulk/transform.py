"""Transforming listed files: in memory, or to a single file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from .._progress import Bar
from ..io.walk import Failure, Listing
from .output import Transforms, Write, open_output
from .settings import Settings
from .shards import transform_shards


class Report(NamedTuple):
    """The outcome of a run."""

    settings: Settings  # with the ambient dimension, unless no shape could be read
    num_shapes: int  # transformed
    failures: list[Failure]
    num_beyond: int  # shapes that reach beyond the radius


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
    transforms: list[np.ndarray[Any, Any]] = []

    def keep(some: list[str], values: np.ndarray[Any, Any]) -> None:
        names.extend(some)
        transforms.append(values)

    report = transform_to(lambda settings: nullcontext(keep), listing, settings, progress)
    found = torch.from_numpy(np.concatenate(transforms)) if names else torch.empty(0)
    return Transforms(names, found, report.settings), report


def transform_to(
    open_writer: Callable[[Settings], AbstractContextManager[Write]],
    listing: Listing,
    settings: Settings,
    progress: Bar | None = None,
) -> Report:
    """Transform files, and write the transforms of some files at a time. The writer is opened at the first shape."""
    num_shapes, failures, num_beyond = 0, list(listing.failures), 0
    with ExitStack() as stack:
        write: Write | None = None
        for shard in transform_shards(listing, settings):
            settings = shard.settings
            if shard.names:
                write = write or stack.enter_context(open_writer(settings))
                write(shard.names, shard.transforms)
            num_shapes += len(shard.names)
            failures += shard.failures
            num_beyond += shard.num_beyond
            if progress is not None:
                progress.update(len(shard.names) + len(shard.failures))
    return Report(settings, num_shapes, failures, num_beyond)
