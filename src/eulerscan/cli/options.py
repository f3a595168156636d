"""What several commands share: key=value options, input and output files, warnings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
from tyro.conf import Positional, arg

from .._tables import printable
from ..analysis.quality import describe_topology
from ..complexes import Complex
from ..io import READABLE, Failure, Listing, list_shapes, read
from ..io.formats import IMAGE_EXTENSIONS
from ..io.images import has_light_background
from ..io.metadata import join_groups
from .help import OPTIONAL

DOUBLE = {"dtype": torch.float64}  # of shapes that are read: in float32, those far from the origin would lose their form
MAX_NAMED = 3  # files that are skipped for the same reason

T = TypeVar("T")
Maybe = Annotated[T | None, OPTIONAL]  # for arguments with default None
Output = Annotated[Path, arg(aliases=["-o"])]
MaybeOutput = Annotated[Path | None, OPTIONAL, arg(aliases=["-o"])]
Dim = Annotated[int | None, OPTIONAL, arg(help="Dimension of the ambient space. Default: that of the first shape.")]
Overwrite = Annotated[bool, arg(help="Replace the output if it exists.")]
Quiet = Annotated[bool, arg(help="Hide progress and summaries; print only warnings and errors.")]
Data = Annotated[
    tuple[str, ...],
    arg(
        metavar="NAME=VALUE ...",
        help_behavior_hint="(optional)",
        help="Options for reading files, such as `invert=true` for dark shapes on white, `weighted=true` or `threshold=0.3`.",
    ),
]
Files = Annotated[Positional[tuple[Path, ...]], arg(metavar="FOLDER|FILE ...", help_behavior_hint="(required)")]
Shapes = Annotated[Files, arg(metavar="SHAPE ...")]
OneShape = Annotated[Positional[Path], arg(metavar="SHAPE")]
Run = Annotated[Positional[Path], arg(metavar="RUN")]


@dataclass(frozen=True)
class Input:
    """Which files are read, and how.

    Args:
        only: Extensions of the files to read in folders, such as `--only off`. Default: all that can be read.
        table: CSV table with one row per shape. Its column `name` or `file`, or its first one, holds paths or file names, with
            or without extension.
        label: Column of --table with the class of each shape. Default: the subfolder.
        cache: Keep the shapes in the cache folder, from where the next command loads them.
    """

    data: Data = ()
    only: Annotated[tuple[str, ...], arg(metavar="EXTENSION ...", help_behavior_hint="(optional)")] = ()
    table: Path | None = None
    label: str | None = None
    cache: bool = True

    def options(self) -> dict[str, Any]:
        """Options of :func:`eulerscan.read`. They are checked before any file is read, and so are the others."""
        if (self.table is None) != (self.label is None):
            raise ValueError("--table and --label belong together: a table of the shapes, and its column with the groups.")
        return parse_pairs(self.data)


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """Options of the form ``name=value`` as a dictionary, with numbers and booleans as in JSON.

    >>> parse_pairs(("form=meshes", "seed=3", "weighted=true"))
    {'form': 'meshes', 'seed': 3, 'weighted': True}
    """
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"options must have the form name=value, got {pair!r}.")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = {"True": True, "False": False, "None": None}.get(value, value)
    return options


def check_output(path: Path | None, overwrite: bool, extensions: Sequence[str] = (), *, option: str = "--output") -> None:
    """A file must have one of the extensions, if there are any. Existing files are replaced only with --overwrite."""
    if path is None:
        return
    if extensions and path.suffix.lower() not in extensions:
        wanted = extensions[0] if len(extensions) == 1 else f"one of {', '.join(extensions)}"
        raise ValueError(f"{option} must end with {wanted}, got {path.name!r}.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already. Use --overwrite to replace it.")


def check_output_folder(folder: Path, file: str, overwrite: bool) -> None:
    """A folder that holds this file already is replaced only with --overwrite."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"--output must be a folder, got the file {folder}.")
    check_output(folder / file, overwrite)


def find_files(
    files: Sequence[Path],
    *,
    input: Input | None = None,
    exclude: Sequence[Path] = (),
    sort: bool = False,
    join: bool = True,
    quiet: bool = False,
) -> Listing:
    """List the shapes in files and folders, at least one. Say on standard error which files in folders are skipped.

    Args:
        files, exclude, sort: As in :func:`eulerscan.io.list_shapes`.
        input: Which of the files to list. Its table is not a shape. By default all, without a warning of light backgrounds.
        join: Whether to take the labels from its table, with warnings of shapes without one and of rows without a shape.
        quiet: Do not list skipped files.
    """
    if input is not None and input.table is not None:
        exclude = [*exclude, input.table]
    listing = list_shapes(files, exclude=exclude, only=() if input is None else input.only, sort=sort)
    extensions = " ".join(sorted(printable(extension) or "(none)" for extension in listing.skipped))
    if not listing.names:
        why = f" Found only {extensions}." if extensions else ""
        for failure in listing.failures[:1]:
            why += f" Cannot use {failure.path}: {failure.reason}"
        raise ValueError(f"Name files, or folders with files of these formats: {' '.join(READABLE)}.{why}")
    if input is not None and input.table is not None and join:
        groups, unmatched = join_groups(listing, input.table, input.label)
        listing = replace(listing, labels=[groups.get(name, "") for name in listing.names])
        for _, line in _lines(unmatched):
            print(f"warning: {printable(line)}", file=sys.stderr)
    if extensions and not quiet:
        count = sum(listing.skipped.values())
        print(f"skipped {count} {'file' if count == 1 else 'files'} with unsupported extensions: {extensions}", file=sys.stderr)
    if input is not None and any(name.lower().endswith(IMAGE_EXTENSIONS) for name in listing.names):
        warn_light_background(listing.paths, input.options())
    return listing


def read_one(path: Path, **options: Any) -> Complex:
    """Read a file that must hold a single shape."""
    warn_light_background([path], options)
    shape = read(path, **DOUBLE | options)
    if shape.num_complexes > 1:
        example = list_shapes(path).paths[0]
        raise ValueError(f"{path}: file holds {shape.num_complexes} shapes. Name one of them, such as {example}")
    return shape


def light_background(paths: Iterable[str | Path], reading: Mapping[str, Any]) -> str | None:
    """A sentence about the first image if it has a light background, which is then taken for the shape."""
    image = next((path for path in paths if str(path).lower().endswith(IMAGE_EXTENSIONS)), None)
    if image is None or {"invert", "threshold"} & set(reading) or not has_light_background(image):
        return None
    return (
        f"{image} has a light background, which is taken for the shape. Use --data invert=true for dark shapes or invert=false "
        "to hide this warning."
    )


def warn_light_background(paths: Iterable[str | Path], reading: Mapping[str, Any]) -> None:
    """Warn if the first image has a light background."""
    if (warning := light_background(paths, reading)) is not None:
        print(f"warning: {printable(warning)}", file=sys.stderr)


def warn_beyond_radius(count: int, radius: float, *, trained: bool = False) -> None:
    """Warn of shapes that reach beyond the radius, such as pixels for a model that was trained on millimeters."""
    if not count:
        return
    shapes = "1 shape reaches" if count == 1 else f"{count} shapes reach"
    cut = f"--radius {radius:g}, and what lies there is cut off"
    strange = f"the radius {radius:g} of the model, so predictions are unreliable. Are the units those of the training shapes?"
    print(f"warning: {shapes} beyond {strange if trained else cut}", file=sys.stderr)


def warn_unusual_topology(euler: Sequence[tuple[str, int]]) -> None:
    """Warn if some shapes, by name and Euler characteristic, have many more pieces or holes than the others.

    These would dominate every comparison.
    """
    remark = describe_topology(torch.tensor([number for _, number in euler]), [name for name, _ in euler])
    if remark is not None:
        options = "largest_component=true, min_size=9 or fill_holes=true"
        print(f"warning: {printable(remark)} For images, --data takes {options}", file=sys.stderr)


def print_failures(failures: Sequence[Failure], *, done: int = 1, listed_in: Path | None = None) -> int:
    """Print the files that could not be read, and return the exit code: 1 for some, 2 if nothing was done.

    Many files with the same reason are one line.

    Args:
        failures: The files.
        done: Number of shapes that were read.
        listed_in: A file that lists all failures: only the first 20 lines are printed.
    """
    lines = _lines(failures)
    shown = lines if listed_in is None or not listed_in.exists() else lines[:20]
    for _, line in shown:
        print(f"skipped {printable(line)}", file=sys.stderr)
    if len(shown) < len(lines):
        print(f"and {sum(count for count, _ in lines[20:])} more, all listed in {listed_in}", file=sys.stderr)
    if failures and not done:
        print("error: no readable shapes", file=sys.stderr)
        return 2
    return 1 if failures else 0


def _lines(failures: Sequence[Failure]) -> list[tuple[int, str]]:
    """Files with the same reason: their number, and a line that names them."""
    paths_of: dict[str, list[Path]] = {}
    for failure in failures:
        paths_of.setdefault(failure.reason, []).append(failure.path)
    lines: list[tuple[int, str]] = []
    for reason, paths in paths_of.items():
        if len(paths) > MAX_NAMED:
            named = ", ".join(map(str, paths[:MAX_NAMED]))
            lines.append((len(paths), f"{len(paths)} files, {named}, ...: {reason}"))
        else:
            lines += [(1, f"{path}: {reason}") for path in paths]
    return lines
