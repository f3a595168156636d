"""A folder of files as a data set: every sub-folder is a class, every file in it a shape."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._imports import progress
from ..complexes import Complex, collate
from ..io import READABLE, read, shapes_in
from . import Dataset
from .splits import stratified

_ENDINGS = frozenset(READABLE)
FEWEST = 4  # shapes of a class: two for training, one for validation, one for testing


class Failure(NamedTuple):
    """A file that could not be read, and why."""

    path: Path
    reason: str


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
    failures: list[Failure] = []
    classes = [sub for sub in sorted(folder.iterdir()) if sub.is_dir() and not sub.name.startswith(".")]
    files = {sub.name: readable(sub, failures) for sub in classes}
    if len(files) < 2:
        raise ValueError(
            f"{folder} must have a sub-folder for each of at least two classes, got {len(files)}: {', '.join(files) or 'none'}."
        )
    for name, paths in files.items():
        if not paths:
            raise ValueError(
                f"{folder / name} must hold shapes of its class, got no file that can be read ({', '.join(sorted(READABLE))})."
            )
    shapes: list[Complex] = []
    labels: list[int] = []
    sources: list[Path] = []
    pairs = [(path, label) for label, paths in enumerate(files.values()) for path in paths]
    for path, label in progress(pairs, "reading files"):
        shape = try_to_read(path, failures, **options)
        if shape is not None:
            shapes.append(shape)
            labels.append(label)
            sources.append(path)
    check_dimensions(shapes, sources)
    for label, name in enumerate(files):
        if labels.count(label) < FEWEST:
            raise ValueError(
                f"{folder / name} must hold at least {FEWEST} shapes, for training, validation and test, "
                f"got {labels.count(label)} that can be read."
            )
    targets, names = torch.tensor(labels), tuple(str(path) for path in sources)
    return Dataset(folder.name, collate(shapes), targets, tuple(files), stratified(targets, seed=seed), names), failures


def readable(folder: Path, failures: list[Failure] | None = None) -> list[Path]:
    """The shapes in a folder and its sub-folders, by the ending of their files, in order of their names.

    A file of several has a path for each (:func:`~eulerscan.io.shapes_in`). What cannot be opened or named goes to
    ``failures``, and is an error without such a list.
    """
    problems: list[Failure] = []
    files = sorted(shape for name, _ in walk(folder, problems) for shape in shapes_in(folder / name))
    if problems and failures is None:
        raise ValueError(f"{problems[0].path}: {problems[0].reason}")
    if failures is not None:
        failures += problems
    return files


def walk(
    folder: Path, failures: list[Failure], *, besides: Collection[Path] = (), others: Counter[str] | None = None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The same files as they come: their names below the folder, with slashes, and what the folder knows of them.

    Args:
        folder: Where to look. What begins with a dot does not count.
        failures: Gets sub-folders that cannot be opened, links that lead nowhere, and files whose names no table could hold.
        besides: Files and folders that do not count either, resolved.
        others: Gets the endings of files that are passed over because no reader knows them.
    """
    away = {path.name for path in besides}

    def counts(entry: os.DirEntry[str]) -> bool:
        # Most names tell already that an entry is none of them; a link may lead to one by another name.
        if not besides or (entry.name not in away and not entry.is_symlink()):
            return True
        return Path(os.path.realpath(entry.path)) not in besides  # Path.resolve() raises at a link to itself

    waiting = [("", os.fspath(folder))]
    while waiting:
        above, place = waiting.pop()
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            failures.append(Failure(Path(place), reason(error, Path(place))))
            continue
        for entry in entries:
            if entry.name.startswith(".") or not counts(entry):
                continue
            ending = os.path.splitext(entry.name)[1].lower()
            if _leads_to(entry, os.DirEntry.is_dir):
                if not entry.is_symlink():
                    waiting.append((f"{above}{entry.name}/", entry.path))
            elif ending not in _ENDINGS:
                if others is not None:
                    others[ending] += 1
            elif is_named(entry.path, failures):
                if _leads_to(entry, os.DirEntry.is_file):
                    yield above + entry.name, entry
                elif entry.is_symlink():
                    failures.append(Failure(Path(entry.path), "it is a link that leads to no file."))


def _leads_to(entry: os.DirEntry[str], kind: Callable[[os.DirEntry[str]], bool]) -> bool:
    try:
        return kind(entry)
    except OSError:  # such as a link to itself
        return False


def is_named(path: str | Path, failures: list[Failure]) -> bool:
    """Whether the name of a file is text; if not, one failure more, with what is no text escaped."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        escaped = str(path).encode(errors="backslashreplace").decode()
        failures.append(Failure(Path(escaped), "its name is not valid UTF-8: rename it."))
        return False
    return True


def try_to_read(path: Path, failures: list[Failure], **options: Any) -> Complex | None:
    """The shape in a file, or ``None`` and one failure more."""
    try:
        return read(path, **options)
    except (OSError, ValueError) as error:
        failures.append(Failure(path, reason(error, path)))
    return None


def reason(error: Exception, path: Path) -> str:
    """Why a file could not be read, without its name."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{path}: ") or type(error).__name__


def check_dimensions(shapes: Iterable[Complex], paths: Iterable[Path]) -> None:
    """All shapes must lie in spaces of the same dimension."""
    first: tuple[int, Path] | None = None
    for shape, path in zip(shapes, paths, strict=True):
        first = first or (shape.dim, path)
        if shape.dim != first[0]:
            raise ValueError(
                f"All shapes must have points of the same dimension, got {first[0]} in {first[1]} and {shape.dim} in {path}."
            )
