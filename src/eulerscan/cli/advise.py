"""``eulerscan advise``: suggested settings for given shapes, with reasons."""

from __future__ import annotations

import json
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from .._progress import progress_bar
from .._tables import aligned, printable
from .._validation import positive
from ..analysis.advice import Advice
from ..analysis.advice import advise as suggest
from ..io import Failure, read_all
from .options import DOUBLE, Files, Input, Quiet, find_files, print_failures

SETTINGS = ("normalize", "radius", "num_thresholds", "num_directions", "scale", "divide_by")


def advise(
    files: Files,
    /,
    *,
    max_files: int = 256,
    tolerance: float = 0.1,
    normalize: Literal["auto", "unit_ball", "center", "vertices", "none"] = "auto",
    input: Input = Input(),  # noqa: B008
    as_json: bool = False,
    quiet: Quiet = False,
) -> int:
    """Suggest directions, thresholds, radius and scale for your shapes, with a reason for each, and the next command.

    The number of thresholds doubles until interpolation reproduces the curves to within --tolerance; the number of directions,
    until neighboring directions predict each other. Subfolders, or the column --label of a table, are taken for classes: they
    tell whether size matters, and with five shapes or more in each, cross-validation tells whether a smaller grid is as good.
    Files that cannot be read are reported and left out, and the exit code is then 1.

    Examples: `eulerscan advise skulls/`, `eulerscan advise digits/*.png --data weighted=true --tolerance 0.05`

    Args:
        files: Files of meshes, points, graphs or images, or folders of them.
        max_files: Largest number of files to read, spread evenly over all.
        tolerance: Allowed interpolation error, as a fraction of the mean difference between shapes.
        normalize: unit_ball centers each shape at its centroid and scales it to norm 1, center keeps its size, vertices is the
            unit ball about the mean of its vertices, none keeps the coordinates. auto decides by sizes and positions.
        input: Which files are read, and how.
        as_json: Print JSON instead of a table.
    """
    positive(max_files, "--max-files")
    if not 0 < tolerance < 1:
        raise ValueError(f"--tolerance must be between 0 and 1, such as 0.1, got {tolerance}.")
    listing = find_files(files, input=input, quiet=quiet or as_json)
    groups = {name: group for name, group in zip(listing.names, listing.groups, strict=True) if group}
    chosen = _sample(listing.names, max_files)
    paths = [listing.folder / name for name in chosen]
    with closing(progress_bar(len(paths), "reading files", hidden=quiet)) as bar:
        read, failures = read_all(paths, cache=input.cache, progress=bar, **DOUBLE | input.options())
    failures = [*listing.path_failures, *failures]
    used = 0
    if read:
        dim = min(read, key=lambda dim: read[dim].positions[0])  # of the first shape
        for other in read.keys() - {dim}:
            failures += [Failure(paths[i], f"points of dimension {other}, expected {dim}.") for i in read[other].positions]
        names = [chosen[i] for i in read[dim].positions]
        kept = [i for i, name in enumerate(names) if name in groups]
        if len({groups[names[i]] for i in kept}) < 2:
            kept, groups = list(range(len(names))), {}
        advice = suggest(
            read[dim].complex.select(kept),
            labels=[groups[names[i]] for i in kept] if groups else None,
            normalize=None if normalize == "none" else normalize,
            tolerance=tolerance,
            names=[names[i] for i in kept],
        )
        command = _command(files, advice, input)
        used, total = len(kept), len(listing.names)
        if as_json:
            print(json.dumps(_record(advice, command, total, used), indent=2))
        else:
            print(_table(advice))
            for remark in advice.remarks:
                print("\n" + textwrap.fill(printable(f"Note: {remark}"), shutil.get_terminal_size().columns))
            count = "1 shape" if total == 1 else f"{total} shapes"
            based_on = count if used == total else f"{used} of {count}"
            larger = len(chosen) < total and advice.config.normalize in ("center", None)
            print(f"\nBased on {based_on}.{' The others may be larger.' if larger else ''} Next:\n")
            print(f"  {command}\n\nor in Python:\n\n  {advice.python()}")
    return print_failures(failures, done=used)


def _sample(names: Sequence[str], count: int) -> list[str]:
    """At most ``count`` names, evenly spaced from the first to the last."""
    if len(names) <= count:
        return list(names)
    return [names[i * (len(names) - 1) // max(1, count - 1)] for i in range(count)]


def _table(advice: Advice) -> str:
    width = max(40, shutil.get_terminal_size().columns - 26)
    rows = []
    for name in SETTINGS:
        value = getattr(advice.config, name)
        shown = f"{value:g}" if isinstance(value, int | float) else value or "none"
        lines = textwrap.wrap(advice.reasons[name].replace(" %", "\N{NO-BREAK SPACE}%"), width)
        rows += [[name.replace("_", " "), shown, lines[0]], *(["", "", line] for line in lines[1:])]
    return aligned(["setting", "value", "why"], rows).replace("\N{NO-BREAK SPACE}", " ")


def _command(files: Sequence[Path], advice: Advice, input: Input) -> str:
    """The command that transforms the files with these settings."""
    words = ["eulerscan", "transform", *map(str, files), "-o", "transforms.npz"]
    config = advice.config
    words += ["--num-directions", str(config.num_directions), "--num-thresholds", str(config.num_thresholds)]
    words += ["--radius", f"{config.radius:g}"]
    words += [] if config.normalize == "unit_ball" else ["--normalize", config.normalize or "none"]
    words += [] if config.divide_by is None else ["--divide-by", config.divide_by]
    words += ["--only", *input.only] if input.only else []
    words += ["--table", str(input.table), "--label", input.label] if input.table and input.label else []
    return shlex.join(words + (["--data", *input.data] if input.data else []))


def _record(advice: Advice, command: str, files: int, read: int) -> dict[str, object]:
    settings = {name: getattr(advice.config, name) for name in SETTINGS}
    return {
        "files": files,
        "read": read,
        "dim": advice.dim,
        **settings,
        "reasons": advice.reasons,
        "remarks": list(advice.remarks),
        "command": command,
        "python": advice.python(),
    }
