"""Listing the shapes in files and folders."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .errors import ReadError
from .formats import READABLE, SPECIMEN_EXTENSIONS
from .landmarks import containing_file, specimen_names

_READABLE = frozenset(READABLE)


class Failure(NamedTuple):
    """A file that could not be read, and the reason."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Listing:
    """The shapes in files and folders.

    Attributes:
        folder: The folder that the names are relative to.
        names: Paths of the shapes below ``folder``, with slashes. A specimen has a name below that of its file.
        sizes: File sizes in bytes. The specimens of a file share its size.
        changed: Modification times in nanoseconds; ``None`` for files that do not exist.
        failures: Folders that cannot be opened, broken links and invalid file names. Paths are relative to ``folder``.
        skipped: Number of files in folders with an unsupported extension, by extension.
        labels: Groups of the shapes that do not follow from their folders, such as those of a table.
        single: Whether the names are relative to a single folder that was given.
    """

    folder: Path
    names: Sequence[str]
    sizes: Sequence[int]
    changed: Sequence[int | None]
    failures: Sequence[Failure] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    labels: Sequence[str] | None = None
    single: bool = False

    @property
    def paths(self) -> list[Path]:
        """Paths of the shapes, for :func:`eulerscan.read`."""
        return [self.folder / name for name in self.names]

    @property
    def path_failures(self) -> list[Failure]:
        """The failures with paths like ``paths``, not relative to ``folder``."""
        return [Failure(self.folder / failure.path, failure.reason) for failure in self.failures]

    @property
    def groups(self) -> list[str]:
        """The group of each shape: its label, its subfolder of ``folder``, or the folder of its path; empty without one."""
        if self.labels is not None:
            return list(self.labels)
        return [name.partition("/")[0] if self.single and "/" in name else name.rpartition("/")[0] for name in self.names]

    def shard(self, number: int, shards: int) -> Listing:
        """Shard ``number`` of ``shards`` contiguous ones of equal size, up to one file."""
        part = slice(*(i * len(self.names) // shards for i in (number, number + 1)))
        labels = None if self.labels is None else self.labels[part]
        return Listing(self.folder, self.names[part], self.sizes[part], self.changed[part], labels=labels, single=self.single)

    def fingerprint(self) -> str:
        """A hash of names and sizes, and of labels."""
        digest = hashlib.sha256("".join(f"{label}\0" for label in self.labels or ()).encode())
        for name, size in zip(self.names, self.sizes, strict=True):
            digest.update(f"{name}\0{size}\0".encode())
        return digest.hexdigest()

    def state(self) -> str:
        """A hash of the modification times."""
        return hashlib.sha256("\0".join(map(str, self.changed)).encode()).hexdigest()


def list_shapes(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    exclude: Sequence[str | os.PathLike[str]] = (),
    only: Sequence[str] = (),
    sort: bool = False,
) -> Listing:
    """List the shapes in files and folders: a file with a supported extension is a shape, or several specimens.

    Sub-folders are included; hidden files and linked folders are not. A file that is given by its own path is always listed,
    also if it does not exist: reading it fails with the reason.

    Args:
        paths: Files and folders, or a single one. The names in a single folder are relative to it, else they are paths.
        exclude: Files and folders to exclude, such as the output of an earlier run.
        only: Extensions, such as ``"off"``: other files in folders are passed over.
        sort: Sort all names. By default they are in the order of ``paths``, and sorted within each folder.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "wings.csv"
        >>> _ = file.write_text("name,x1,y1,x2,y2\\nA1,0,0,1,0\\nB7,0,0,2,0\\n", encoding="utf-8")
        >>> list_shapes(file.parent).names
        ['wings.csv/A1', 'wings.csv/B7']
    """
    given = [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    single = len(given) == 1 and given[0].is_dir()
    walker = _Walker({Path(path).resolve() for path in exclude}, check_extensions(only))
    for path in given:
        if path.is_dir():
            walker.add_folder(path, "" if single or path == Path() else f"{path.as_posix().removesuffix('/')}/")
        else:
            walker.add_file(path.as_posix(), path)
    shapes, failures = walker.shapes, walker.failures
    if single:
        failures = [Failure(_relative(failure.path, given[0]), failure.reason) for failure in failures]
    names = sorted(shapes) if sort else list(shapes)
    sizes, changed = [shapes[name][0] for name in names], [shapes[name][1] for name in names]
    return Listing(given[0] if single else Path(), names, sizes, changed, failures, walker.skipped, single=single)


def name_of(path: str | os.PathLike[str]) -> str:
    """Name of a file or folder, also of ``.`` and ``..``."""
    return os.path.basename(os.path.abspath(path))


def check_extensions(only: Sequence[str]) -> frozenset[str]:
    """The extensions to list: those given, with or without a dot, else all that can be read."""
    chosen = [f".{extension.lower().removeprefix('.')}" for extension in only]
    for extension in chosen:
        if extension not in _READABLE:
            raise ValueError(f"only must hold extensions among {' '.join(READABLE)}, got {extension!r}.")
    return frozenset(chosen) or _READABLE


def reason(error: Exception, path: Path) -> str:
    """The message of an error of :func:`eulerscan.read`, without the path."""
    if isinstance(error, ReadError):
        return error.reason
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{path}: ") or type(error).__name__


class _Walker:
    """Collects size and modification time of shapes by name, failures, and extensions of skipped files."""

    def __init__(self, excluded: Collection[Path], extensions: Collection[str]) -> None:
        self.excluded, self.excluded_names = excluded, {path.name for path in excluded}
        self.extensions = extensions
        self.shapes: dict[str, tuple[int, int | None]] = {}
        self.failures: list[Failure] = []
        self.skipped: Counter[str] = Counter()

    def add_folder(self, folder: Path, prefix: str) -> None:
        before, self.shapes = self.shapes, {}
        pending = [(prefix, os.fspath(folder))]
        while pending:
            prefix, place = pending.pop()
            try:
                with os.scandir(place) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                self.failures.append(Failure(Path(place), reason(error, Path(place))))
                continue
            for entry in entries:
                if entry.name.startswith(".") or self._is_excluded(entry):
                    continue
                extension = os.path.splitext(entry.name)[1].lower()
                if _follow(entry, os.DirEntry.is_dir):
                    if not entry.is_symlink():
                        pending.append((f"{prefix}{entry.name}/", entry.path))
                elif extension not in self.extensions:
                    if self.extensions is _READABLE:  # the user did not ask for some only
                        self.skipped[extension] += 1
                elif _follow(entry, os.DirEntry.is_file):
                    self.add_file(prefix + entry.name, entry)
                elif entry.is_symlink() and self._is_valid_name(entry.path):
                    self.failures.append(Failure(Path(entry.path), "broken link."))
        self.shapes = before | dict(sorted(self.shapes.items()))

    def add_file(self, name: str, file: Path | os.DirEntry[str]) -> None:
        if not self._is_valid_name(file):
            return
        specimens = specimen_names(file) if os.path.splitext(file)[1].lower() in SPECIMEN_EXTENSIONS else []
        try:
            state = (containing_file(file) if isinstance(file, Path) else file).stat()
        except OSError:
            self.shapes[name] = (0, None)
            return
        size = state.st_size // max(1, len(specimens))
        for shape in [f"{name}/{specimen}" for specimen in specimens] or [name]:
            self.shapes[shape] = (size, state.st_mtime_ns)

    def _is_excluded(self, entry: os.DirEntry[str]) -> bool:
        # Resolving is slow, and only a link can lead to an excluded path by another name.
        if not self.excluded or (entry.name not in self.excluded_names and not entry.is_symlink()):
            return False
        return Path(os.path.realpath(entry.path)) in self.excluded  # Path.resolve() raises for a link to itself

    def _is_valid_name(self, path: str | os.PathLike[str]) -> bool:
        try:
            os.fspath(path).encode()
        except UnicodeEncodeError:
            escaped = os.fspath(path).encode(errors="backslashreplace").decode()
            self.failures.append(Failure(Path(escaped), "file name is not valid UTF-8. Rename it."))
            return False
        return True


def _follow(entry: os.DirEntry[str], test: Callable[[os.DirEntry[str]], bool]) -> bool:
    try:
        return test(entry)
    except OSError:  # such as a link to itself
        return False


def _relative(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path
