"""A folder of files as a data set: every subfolder is a class, every file in it a shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._progress import progress
from ..complexes import collate
from ..io import READABLE, Failure, list_shapes, read_all
from .dataset import Dataset
from .splits import stratified

FEWEST = 4  # shapes of a class: two for training, one for validation, one for test


def load_folder(folder: Path, *, seed: int = 0, **options: Any) -> tuple[Dataset, list[Failure]]:
    """Load a folder with a subfolder for each class.

    Args:
        folder: ``folder/cat/1.obj``, ``folder/cat/2.ply``, ``folder/dog/1.png``, ... Files with other extensions are ignored.
        seed: Seed of the stratified split: 20 % for test, 20 % of the rest for validation.
        options: Options of :func:`eulerscan.read`.

    Returns:
        The data set, and the files that could not be read.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder.")
    subfolders = [sub for sub in sorted(folder.iterdir()) if sub.is_dir() and not sub.name.startswith(".")]
    listings = {sub.name: list_shapes(sub) for sub in subfolders}
    if len(listings) < 2:
        found = f"{len(listings)}: {', '.join(listings) or 'none'}"
        raise ValueError(f"{folder} must have a subfolder for each of at least two classes, got {found}.")
    for name, listing in listings.items():
        if not listing.names:
            raise ValueError(
                f"{folder / name} must hold shapes of its class, got no readable file ({', '.join(sorted(READABLE))})."
            )
    label_of = {path: label for label, listing in enumerate(listings.values()) for path in listing.paths}
    shapes, failures = read_all(progress(label_of, "reading files"), **options)
    failures = [*(failure for listing in listings.values() for failure in listing.path_failures), *failures]
    labels = torch.tensor([label_of[path] for path in shapes])
    examples: dict[int, Path] = {}
    for path, shape in shapes.items():
        examples.setdefault(shape.dim, path)
    if len(examples) > 1:
        found = " and ".join(f"{dim} in {path}" for dim, path in examples.items())
        raise ValueError(f"All shapes must have points of the same dimension, got {found}.")
    for label, name in enumerate(listings):
        count = int((labels == label).sum())
        if count < FEWEST:
            raise ValueError(
                f"{folder / name} must hold at least {FEWEST} readable shapes, for training, validation and test, got {count}."
            )
    splits, names = stratified(labels, seed=seed), tuple(map(str, shapes))
    return Dataset(folder.name, collate(list(shapes.values())), labels, tuple(listings), splits, names), failures
