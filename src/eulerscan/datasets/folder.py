"""A folder of files as a data set: every sub-folder is a class, every file in it a shape."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from .._progress import progress
from ..complexes import Complex, collate
from ..io import READABLE, Failure, list_shapes, read_all
from . import Dataset
from .splits import stratified

FEWEST = 4  # shapes of a class: two for training, one for validation, one for testing


def load_folder(folder: Path, *, seed: int = 0, **options: Any) -> tuple[Dataset, list[Failure]]:
    """Read a folder with a sub-folder for each class.

    Args:
        folder: ``folder/cat/1.obj``, ``folder/cat/2.ply``, ``folder/dog/1.png``, ... Files that no reader knows are not looked
            at.
        seed: Of the split into 80 % for training, of which 20 % are for validation, and 20 % for testing.
        options: Of :func:`eulerscan.read`.

    Returns:
        The data set, and the files that could not be read, which it lacks.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder.")
    classes = [sub for sub in sorted(folder.iterdir()) if sub.is_dir() and not sub.name.startswith(".")]
    files = {sub.name: list_shapes(sub) for sub in classes}
    if len(files) < 2:
        raise ValueError(
            f"{folder} must have a sub-folder for each of at least two classes, got {len(files)}: {', '.join(files) or 'none'}."
        )
    for name, listing in files.items():
        if not listing.names:
            raise ValueError(
                f"{folder / name} must hold shapes of its class, got no file that can be read ({', '.join(sorted(READABLE))})."
            )
    labels_of = {path: label for label, listing in enumerate(files.values()) for path in listing.paths}
    shapes, failures = read_all(progress(labels_of, "reading files"), **options)
    failures = [*(failure for listing in files.values() for failure in listing.path_failures), *failures]
    labels = [labels_of[path] for path in shapes]
    check_dimensions(shapes.values(), shapes)
    for label, name in enumerate(files):
        if labels.count(label) < FEWEST:
            raise ValueError(
                f"{folder / name} must hold at least {FEWEST} shapes, for training, validation and test, "
                f"got {labels.count(label)} that can be read."
            )
    targets, names = torch.tensor(labels), tuple(map(str, shapes))
    return Dataset(
        folder.name, collate(list(shapes.values())), targets, tuple(files), stratified(targets, seed=seed), names
    ), failures


def check_dimensions(shapes: Iterable[Complex], paths: Iterable[Path]) -> None:
    """All shapes must lie in spaces of the same dimension."""
    first: tuple[int, Path] | None = None
    for shape, path in zip(shapes, paths, strict=True):
        first = first or (shape.dim, path)
        if shape.dim != first[0]:
            raise ValueError(
                f"All shapes must have points of the same dimension, got {first[0]} in {first[1]} and {shape.dim} in {path}."
            )
