"""``eulerscan advise``: settings for a folder of shapes, and why."""

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
from .options import Files, find_files, parse_pairs, print_failures

SETTINGS = ("normalize", "radius", "num_thresholds", "num_directions", "scale", "divide_by")


def advise(
    files: Files,
    /,
    *,
    max_files: int = 64,
    tolerance: float = 0.1,
    normalize: Literal["auto", "unit_ball", "center", "none"] = "auto",
    data: tuple[str, ...] = (),
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Suggest directions, thresholds, radius and scale for your shapes, with the reason of each and the command to go on with.

    Thresholds are doubled until a curve is predicted well enough between two of them, and directions until it is by the curves
    of its neighbours. Where every sub-folder is a class, they tell whether size carries meaning. What cannot be read is
    reported and left out, and the exit code is then 1.

    Examples: `eulerscan advise skulls/`, `eulerscan advise digits/*.png --data weighted=true --tolerance 0.05`

    Args:
        files: Files of meshes, points, graphs or images, or folders of them.
        max_files: Files that are looked at, at most, chosen evenly from all.
        tolerance: The largest error that is taken, as a share of the mean difference between shapes.
        normalize: unit_ball centers each shape and scales it to norm 1, center keeps its size, none keeps its coordinates. auto
            decides by sizes and positions.
        data: Options of reading the files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        as_json: Print JSON instead of a table.
        quiet: Show no progress.
    """
    positive(max_files, "--max-files")
    if not 0 < tolerance < 1:
        raise ValueError(f"--tolerance must be a share between 0 and 1, such as 0.1, got {tolerance}.")
    listing = find_files(files)
    paths = listing.paths
    chosen = _evenly(paths, max_files)
    options = {"dtype": torch.float64} | parse_pairs(data)  # as they are transformed
    read, failures = read_all(chosen if quiet else progress(chosen, "reading files"), **options)
    dim = next((shape.dim for shape in read.values()), 0)
    shapes = {path: shape for path, shape in read.items() if shape.dim == dim}
    failures = [
        *listing.path_failures,
        *failures,
        *(
            Failure(path, f"points of dimension {shape.dim}, those of the first shape have {dim}.")
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
            looked = f"{len(shapes)} of {len(paths)}" if len(shapes) < len(paths) else f"{len(shapes)}"
            unseen = (
                " Those that were not may be larger."
                if len(chosen) < len(paths) and advice.config.normalize != "unit_ball"
                else ""
            )
            print(f"\n{looked} {'shape was' if looked == '1' else 'shapes were'} looked at.{unseen} Go on with\n")
            print(f"  {command}\n\nor in Python\n\n  {advice.python()}")
    return print_failures(failures, done=len(shapes))


def _evenly(paths: Sequence[Path], most: int) -> list[Path]:
    """At most so many, from the first to the last at equal distances."""
    if len(paths) <= most:
        return list(paths)
    return [paths[i * (len(paths) - 1) // max(1, most - 1)] for i in range(most)]


def _table(advice: Advice) -> str:
    width = max(40, shutil.get_terminal_size().columns - 26)
    rows = []
    for name in SETTINGS:
        value = getattr(advice.config, name)
        lines = textwrap.wrap(advice.reasons[name].replace(" %", "\N{NO-BREAK SPACE}%"), width)
        rows += [[name.replace("_", " "), _shown(value), lines[0]], *(["", "", line] for line in lines[1:])]
    return aligned(["setting", "value", "why"], rows).replace("\N{NO-BREAK SPACE}", " ")


def _shown(value: str | float | None) -> str:
    if isinstance(value, bool) or value is None:
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:g}"


def _command(files: Sequence[Path], advice: Advice, data: Sequence[str]) -> str:
    """The command that transforms the same files with these settings."""
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
        "looked_at": read,
        "dim": advice.dim,
        **settings,
        "reasons": advice.reasons,
        "command": command,
        "python": advice.python(),
    }
