"""A folder of files as a data set. The class of a shape is its subfolder, or a column of a table."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._progress import progress_bar
from ..complexes import Complex
from ..io import Failure, list_shapes, read_all
from ..io.metadata import join_groups, read_metadata
from ..io.walk import name_of
from .dataset import Dataset
from .splits import stratified

FEWEST = 4  # shapes of a class, or blocks: two for training, one for validation, one for test


class LabeledShapes(NamedTuple):
    """The shapes in a folder, and the class of each."""

    shapes: Complex
    classes: list[str]
    paths: list[Path]
    failures: list[Failure]  # files that could not be read, or have no class
    strata: list[str] | None = None  # the block of each shape


def load_folder(
    folder: Path,
    *,
    table: str | os.PathLike[str] | None = None,
    label: str | None = None,
    strata: str | None = None,
    only: Sequence[str] = (),
    skip_small: bool = False,
    cache: bool = True,
    seed: int = 0,
    **options: Any,
) -> tuple[Dataset, list[Failure]]:
    """Load a folder with a subfolder for each class, or with a table of the classes.

    Args:
        folder: ``folder/cat/1.obj``, ``folder/cat/2.ply``, ``folder/dog/1.png``, ... Files with other extensions are ignored,
            and so are files directly in ``folder``.
        table: A table about the shapes (:func:`eulerscan.io.read_metadata`). Subfolders do not matter then, and ``folder`` may
            also be a file of specimens.
        label: The column of the table with the classes.
        strata: The column of the table with blocks, such as the specimen of several scans. The splits do not divide blocks.
        only: Extensions of the files to read, such as ``["off"]``. Default: all that can be read.
        skip_small: Leave out classes of fewer than four shapes, or blocks, which cannot be split, instead of raising an error.
        cache: Whether to keep the shapes in the cache folder, from where they load fast.
        seed: Seed of the stratified split: 20 % for test, 20 % of the rest for validation.
        options: Options of :func:`eulerscan.read`.

    Returns:
        The data set, and the files that could not be read or have no class.
    """
    labeled = read_labeled(folder, table=table, label=label, strata=strata, only=only, cache=cache, **options)
    shapes, classes, paths, failures, blocks = labeled
    count = Counter(classes if blocks is None else [name for name, _ in {*zip(classes, blocks, strict=True)}])
    unit, wanted = ("shapes", "readable shapes") if blocks is None else ("blocks", f"blocks in column {strata!r}")
    if table is None:
        subfolders = {sub for sub in folder.iterdir() if sub.is_dir() and not sub.name.startswith(".")}
        count.update({sub.name: 0 for sub in subfolders - _runs(folder)})
    small = {name: number for name, number in sorted(count.items()) if number < FEWEST}
    kept = sorted(count.keys() - small.keys())
    if small and not skip_small and len(count) > 1:
        listed = ", ".join(f"{name} with {number}" for name, number in small.items())
        raise ValueError(
            f"{folder}: every class must have at least {FEWEST} {wanted}, for training, validation and test, got "
            f"{listed}. Add shapes, or leave such classes out with skip_small (--skip-small)."
        )
    if len(kept) < 2:
        raise ValueError(
            f"{folder} must have at least two classes of at least {FEWEST} {unit}, each in a subfolder, got "
            f"{', '.join(kept) or 'none'}. If a table holds the classes, use table and label (--table t.csv --label group)."
        )
    if small:
        failures += [Failure(folder / name, f"class of {number} {unit}, left out.") for name, number in small.items()]
        inside = [i for i, name in enumerate(classes) if name in kept]
        shapes, classes, paths = shapes.select(inside), [classes[i] for i in inside], [paths[i] for i in inside]
        blocks = None if blocks is None else [blocks[i] for i in inside]
    labels = torch.tensor([kept.index(name) for name in classes])
    splits, names = stratified(labels, strata=blocks, seed=seed), tuple(map(str, paths))
    return Dataset(name_of(folder), shapes, labels, tuple(kept), splits, names, tuple(blocks or ())), failures


def read_labeled(
    folder: Path,
    *,
    table: str | os.PathLike[str] | None = None,
    label: str | None = None,
    only: Sequence[str] = (),
    strata: str | None = None,
    exclude: Sequence[str | os.PathLike[str]] = (),
    cache: bool = True,
    **options: Any,
) -> LabeledShapes:
    """Read the shapes in a folder, and the class of each.

    Other arguments are those of :func:`load_folder`. Runs of ``eulerscan train`` in the folder do not count.

    Args:
        exclude: Files and folders to exclude, such as the output of an earlier run.
    """
    if not folder.is_dir() and (table is None or not folder.is_file()):
        raise FileNotFoundError(f"{folder} is not a folder.")
    if (table is None) != (label is None):
        given, other = ("table", "label") if label is None else ("label", "table")
        raise ValueError(f"{given} needs {other}: a table of the shapes, and its column with the classes.")
    if strata is not None and table is None:
        raise ValueError("strata needs table: a table of the shapes, and its column with the blocks.")
    outside = [*exclude, *_runs(folder), *([] if table is None else [table])]
    listing = list_shapes(folder, exclude=outside, only=only)
    class_of, failures = join_groups(listing, table, label)
    class_of = {name: class_of[name] for name in sorted(class_of, key=lambda name: (class_of[name], name))}
    metadata = None if table is None or strata is None else read_metadata(table)
    if metadata is not None and strata is not None:
        metadata.column(strata, list(class_of))  # raises if there is none, before files are read
    shapes, names, unread = read_named(listing.folder, class_of, cache=cache, **options)
    classes, paths = [class_of[name] for name in names], [listing.folder / name for name in names]
    blocks = None if metadata is None or strata is None else metadata.blocks(strata, names)
    return LabeledShapes(shapes, classes, paths, [*listing.path_failures, *failures, *unread], blocks)


def read_named(
    folder: Path, names: Iterable[str], *, cache: bool = True, quiet: bool = False, **options: Any
) -> tuple[Complex, list[str], list[Failure]]:
    """Read shapes of one dimension.

    Args:
        folder: The folder that the names are relative to.
        names: Names, as in :class:`~eulerscan.io.Listing`.
        cache, options: As in :func:`load_folder`.
        quiet: Show no progress.

    Returns:
        The shapes, in the given order; their names; and the files that could not be read.
    """
    names = list(names)
    paths = [folder / name for name in names]
    with closing(progress_bar(len(paths), "reading files", hidden=quiet)) as bar:
        batches, failures = read_all(paths, cache=cache, progress=bar, **{"dtype": torch.float64} | options)
    if len(batches) > 1:
        found = "; ".join(
            f"dimension {dim} in {len(b.positions)}, such as {paths[b.positions[0]]}" for dim, b in batches.items()
        )
        raise ValueError(f"All shapes must have points of the same dimension, got {found}.")
    positions, shapes = next(iter(batches.values())) if batches else ([], Complex(torch.zeros(0, 2)))
    return shapes, [names[i] for i in positions], failures


def _runs(folder: Path) -> set[Path]:
    """Subfolders with runs of ``eulerscan train``, which by default writes into the current folder."""
    patterns = (f"{depth}/{kind}-*/config.json" for depth in ("*", "*/*") for kind in ("seed", "fold"))
    runs = (path for pattern in patterns for path in folder.glob(pattern))
    return {folder / path.relative_to(folder).parts[0] for path in runs}
