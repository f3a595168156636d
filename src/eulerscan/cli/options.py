"""What several commands have in common: options of the form key=value, files that come in, and those that go out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from ..complexes import Complex
from ..config import ECTConfig
from ..io import READABLE, Failure, Listing, list_shapes, read
from ..io.formats import EXTENSIONS, IMAGES
from ..io.images import has_light_background

Files = Annotated[Positional[tuple[Path, ...]], arg(metavar="FOLDER|FILE ...", help_behavior_hint="(required)")]
Run = Annotated[Positional[Path], arg(metavar="RUN")]


def parse_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """``("form=meshes", "seed=3", "weighted=true")`` as a dictionary with values of the right types.

    >>> parse_pairs(("form=meshes", "seed=3", "weighted=true"))
    {'form': 'meshes', 'seed': 3, 'weighted': True}
    """
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"An option must have the form name=value, got {pair!r}.")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = {"True": True, "False": False, "None": None}.get(value, value)
    return options


def check_output(path: Path | None, overwrite: bool) -> None:
    """What is there already is replaced only if one wants."""
    if path is not None and path.exists() and not overwrite:
        raise FileExistsError(f"{path} is there already. Use --overwrite to replace it.")


def find_files(files: Sequence[Path], *, besides: Sequence[Path] = (), sort: bool = False) -> Listing:
    """The shapes in the files and folders of a command line, at least one."""
    listing = list_shapes(files, besides=besides, sort=sort)
    if not listing.names:
        why = f" There are {_endings(listing.skipped)}." if listing.skipped else ""
        for failure in listing.failures[:1]:
            why += f" The first that cannot be used: {failure.path}: {failure.reason}"
        raise ValueError(f"Name files, or folders that hold files with one of the endings {' '.join(READABLE)}.{why}")
    return listing


def read_one(path: Path, **options: Any) -> Complex:
    """The shape in a file that must hold no other."""
    shape = read(path, **options)
    if shape.num_complexes > 1:
        raise ValueError(
            f"{path}: it holds {shape.num_complexes} shapes. Name one of them, such as {list_shapes(path).paths[0]}"
        )
    return shape


def check_radius(ect: ECTConfig) -> None:
    """Before any file is read: a radius is needed unless shapes go to the unit ball."""
    if ect.normalize != "unit_ball" and ect.radius is None:
        raise ValueError(
            f"--normalize {ect.normalize or 'none'} needs a --radius: a little more than the largest norm of the shapes. "
            "`eulerscan advise` suggests one."
        )


def report_beyond(count: int, radius: float) -> None:
    """Say on standard error how many shapes were cut off, if any."""
    if count:
        shapes = "1 shape reaches" if count == 1 else f"{count} shapes reach"
        print(f"warning: {shapes} beyond --radius {radius:g}, and what lies there is left out", file=sys.stderr)


def report_white(paths: Iterable[Path], reading: Mapping[str, Any]) -> None:
    """Say on standard error that a background is taken for the shape, where the first image looks like it."""
    first = next((path for path in paths if EXTENSIONS.get(path.suffix.lower()) in IMAGES), None)
    if first is not None and not {"invert", "threshold"} & set(reading) and has_light_background(first):
        print(
            f"warning: {first} is light at its corners, and what is light is taken for the shape. For dark shapes on white use "
            "--data invert=true; invert=false says that it is meant so",
            file=sys.stderr,
        )


def report_others(others: Mapping[str, int]) -> None:
    """Say on standard error which files in folders were passed over, if any."""
    if others:
        count = sum(others.values())
        files = "1 file was" if count == 1 else f"{count} files were"
        print(f"{files} not looked at, by ending: {_endings(others)}", file=sys.stderr)


def _endings(others: Mapping[str, int]) -> str:
    return " ".join(sorted(ending or "none" for ending in others))


def report_failures(failures: Sequence[Failure], *, done: int = 1) -> int:
    """Say on standard error what could not be read; the exit code for it, another one if nothing was done."""
    for failure in failures:
        print(f"skipped {failure.path}: {failure.reason}", file=sys.stderr)
    if failures and not done:
        print("error: nothing is left to work with", file=sys.stderr)
        return 2
    return 1 if failures else 0
