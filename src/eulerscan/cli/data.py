"""``eulerscan data``: list and prepare data sets."""

from __future__ import annotations

import time
from typing import Annotated

from tyro.conf import arg, subcommand

from .._tables import aligned
from ..complexes.simplices import name_of
from ..datasets import Description, describe, names, prepared
from ..io.cache import cache_folder
from .options import parse_pairs


def list_datasets() -> None:
    """List the data sets: content, size, origin, and which are prepared."""
    rows = [[about.name, about.content, about.size, about.origin, _prepared(about)] for about in map(describe, names())]
    print(aligned(["name", "content", "size", "origin", "prepared"], rows))
    print(f"\nPrepared data sets are in {cache_folder()} (EULERSCAN_DATA).")


def prepare(
    name: Annotated[str, arg(metavar="DATASET")],
    options: Annotated[tuple[str, ...], arg(metavar="[NAME=VALUE ...]", help_behavior_hint="(optional)")] = (),
    /,
) -> None:
    """Download and prepare a data set, and summarize it. After that, it loads quickly.

    Args:
        name: Name of a data set; `eulerscan data list` shows them.
        options: Options of the data set, such as `form=meshes` or `cleaned=true`.
    """
    about = describe(name)
    chosen = about.complete(parse_pairs(options))
    start = time.perf_counter()
    dataset = about.load(**chosen)
    seconds = time.perf_counter() - start
    shapes = dataset.shapes
    counts = [f"{count:,} {name_of(*kind)}" for kind, count in zip(shapes.packed.kinds, shapes.counts[1:], strict=True)]
    facts = {
        "options": ", ".join(f"{option}={value}" for option, value in chosen.items()) or "none",
        "shapes": f"{len(dataset):,} in {shapes.dim} dimensions",
        "simplices": ", ".join([f"{shapes.counts[0]:,} vertices", *counts]),
        "classes": f"{len(dataset.classes)}: {', '.join(dataset.classes)}",
        "splits": ", ".join(f"{split} {len(indices):,}" for split, indices in dataset.splits.items()),
        "seconds": f"{seconds:.1f}",
        "file": str(about.file(chosen)) if about.needs_files else "none: it is generated each time",
    }
    print(name)
    for fact, value in facts.items():
        print(f"  {fact:<10} {value}")


DataCommand = (
    Annotated[None, subcommand("list", constructor=list_datasets)] | Annotated[None, subcommand("prepare", constructor=prepare)]
)


def data(command: DataCommand) -> None:
    """List the data sets, and prepare them."""


def _prepared(about: Description) -> str:
    """The variants of a data set in the cache folder, for a table."""
    if not about.needs_files:
        return "needs no files"
    files = prepared.files_of(about.name)
    return ", ".join(f"{file.stem.rpartition('-')[0]} ({file.stat().st_size / 1e6:,.0f} MB)" for file in files) or "no"
