"""``eulerscan advise``: suggested settings for given shapes, with reasons."""

from __future__ import annotations

import json
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch

from .._progress import progress
from .._tables import aligned
from .._validation import positive
from ..analysis.advice import Advice
from ..analysis.advice import advise as suggest
from ..complexes import collate
from ..io import Failure, read_all
from ..io.landmarks import containing_file
from .options import Data, Files, find_files, parse_pairs, print_failures

SETTINGS = ("normalize", "radius", "num_thresholds", "num_directions", "scale", "divide_by")


def advise(
    files: Files,
    /,
    *,
    max_files: int = 64,
    tolerance: float = 0.1,
    normalize: Literal["auto", "unit_ball", "center", "vertices", "none"] = "auto",
    data: Data = (),
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Suggest directions, thresholds, radius and scale for your shapes, with a reason for each, and the next command.

    Thresholds are doubled until interpolation between them predicts the curves well enough, and directions until the curves
    of their neighbors do. If the shapes are in several folders, these are taken for classes, and tell whether size matters.
    Files that cannot be read are reported and left out, and the exit code is then 1.

    Examples: `eulerscan advise skulls/`, `eulerscan advise digits/*.png --data weighted=true --tolerance 0.05`

    Args:
        files: Files of meshes, points, graphs or images, or folders of them.
        max_files: Largest number of files to read, spread evenly over all.
        tolerance: Largest error, relative to the mean difference between shapes.
        normalize: unit_ball centers each shape at its centroid and scales it to norm 1, center keeps its size, vertices is the
            unit ball about the mean of its vertices, none keeps the coordinates. auto decides by sizes and positions.
        data: Options for reading files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        as_json: Print JSON instead of a table.
        quiet: Show no progress.
    """
    positive(max_files, "--max-files")
    if not 0 < tolerance < 1:
        raise ValueError(f"--tolerance must be between 0 and 1, such as 0.1, got {tolerance}.")
    listing = find_files(files, quiet=quiet or as_json)
    paths = listing.paths
    chosen = _sample(paths, max_files)
    options = {"dtype": torch.float64} | parse_pairs(data)  # as by eulerscan transform
    read, failures = read_all(chosen if quiet else progress(chosen, "reading files"), **options)
    dim = next((shape.dim for shape in read.values()), 0)
    shapes = {path: shape for path, shape in read.items() if shape.dim == dim}
    failures = [
        *listing.path_failures,
        *failures,
        *(
            Failure(path, f"points of dimension {shape.dim}, expected {dim}.")
            for path, shape in read.items()
            if shape.dim != dim
        ),
    ]
    if shapes:
        folders = [containing_file(path).parent.name for path in shapes]
        advice = suggest(
            collate(list(shapes.values())),
            labels=folders if len(set(folders)) > 1 else None,
            normalize=None if normalize == "none" else normalize,
            tolerance=tolerance,
        )
        command = _command(files, advice, data)
        if as_json:
            print(json.dumps(_record(advice, command, len(paths), len(shapes)), indent=2))
        else:
            print(_table(advice))
            count = "1 shape" if len(paths) == 1 else f"{len(paths)} shapes"
            based_on = count if len(shapes) == len(paths) else f"{len(shapes)} of {count}"
            larger = len(chosen) < len(paths) and advice.config.normalize in ("center", None)
            print(f"\nBased on {based_on}.{' The others may be larger.' if larger else ''} Next:\n")
            print(f"  {command}\n\nor in Python:\n\n  {advice.python()}")
    return print_failures(failures, done=len(shapes))


def _sample(paths: Sequence[Path], count: int) -> list[Path]:
    """At most ``count`` paths, evenly spaced from the first to the last."""
    if len(paths) <= count:
        return list(paths)
    return [paths[i * (len(paths) - 1) // max(1, count - 1)] for i in range(count)]


def _table(advice: Advice) -> str:
    width = max(40, shutil.get_terminal_size().columns - 26)
    rows = []
    for name in SETTINGS:
        value = getattr(advice.config, name)
        shown = f"{value:g}" if isinstance(value, int | float) else value or "none"
        lines = textwrap.wrap(advice.reasons[name].replace(" %", "\N{NO-BREAK SPACE}%"), width)
        rows += [[name.replace("_", " "), shown, lines[0]], *(["", "", line] for line in lines[1:])]
    return aligned(["setting", "value", "why"], rows).replace("\N{NO-BREAK SPACE}", " ")


def _command(files: Sequence[Path], advice: Advice, data: Sequence[str]) -> str:
    """The command that transforms the files with these settings."""
    words = ["eulerscan", "transform", *map(str, files), "-o", "transforms.npz"]
    config = advice.config
    words += ["--num-directions", str(config.num_directions), "--num-thresholds", str(config.num_thresholds)]
    words += ["--radius", f"{config.radius:g}"]
    words += [] if config.normalize == "unit_ball" else ["--normalize", config.normalize or "none"]
    words += [] if config.divide_by is None else ["--divide-by", config.divide_by]
    return shlex.join(words + (["--data", *data] if data else []))


def _record(advice: Advice, command: str, files: int, read: int) -> dict[str, object]:
    settings = {name: getattr(advice.config, name) for name in SETTINGS}
    return {
        "files": files,
        "read": read,
        "dim": advice.dim,
        **settings,
        "reasons": advice.reasons,
        "command": command,
        "python": advice.python(),
    }
