"""``eulerscan distances``: how much every shape differs from every other."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
from torch import Tensor
from tyro.conf import arg

from .._progress import progress_bar
from .._storage import replacing
from .._tables import comma_separated
from ..analysis.distances import check_p, distance_matrix
from ..analysis.pairwise import PairwiseCheckpoint
from ..bulk import Settings, Transforms, first_dimension, load_transforms, transformed
from ..bulk.files import holds_transforms, load_failures
from ..config import ECTConfig
from ..io import Failure, Listing
from ..plot.distances import draw_distances
from ..plot.figures import save
from .options import (
    Files,
    check_output,
    check_radius,
    find_files,
    parse_pairs,
    report_beyond,
    report_failures,
    report_others,
    report_white,
)
from .plot import FIGURES
from .turning import check_turned, in_plane, in_space, kept_pairs

CLOUD = 10  # Euler characteristic above which a shape is taken for a cloud of points


def distances(
    files: Files,
    /,
    *,
    output: Annotated[Path, arg(aliases=["-o"])],
    plot: Path | None = None,
    p: float = 2,
    turned: bool = False,
    ect: ECTConfig = ECTConfig(),  # noqa: B008
    dim: int | None = None,
    data: tuple[str, ...] = (),
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Distances between all shapes: the Lp norm of the difference of their transforms.

    Differences to the power p are averaged over the directions and integrated over the height, and the p-th root is taken.
    What cannot be read is reported and left out, and the exit code is then 1.

    Example: `eulerscan distances skulls/ -o distances.csv --plot distances.png`

    Args:
        files: Files of shapes, or folders of them; or what `eulerscan transform` wrote: one .npz, .csv or .parquet file, or a
            folder of parts.
        output: CSV file for the matrix, with the names in its first row and column.
        plot: Picture of the matrix, similar shapes side by side, and of the tree of clusters: .png, .pdf or .svg.
        p: At least 1; inf is the largest difference at any height in any direction.
        turned: Turn the second of two shapes to where it is closest to the first. In the plane all turns by whole steps of the
            directions are tried. In space the best of many rotations is taken, which is an approximation from above and takes
            half a second for each pair, and seconds for large meshes. A second call goes on where the first was stopped.
        ect: How shapes are transformed.
        dim: Dimension of the ambient space. Default: that of the first shape.
        data: Options for reading files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        overwrite: Replace the output if it is there already.
        quiet: Show no progress, and print nothing but errors.
    """
    if output.suffix.lower() != ".csv":
        raise ValueError(f"--output must end with .csv, got {output.name!r}.")
    if plot is not None and plot.suffix.lower() not in FIGURES:
        raise ValueError(f"--plot must end with one of {', '.join(FIGURES)}, got {plot.name!r}.")
    for path in (output, plot):
        check_output(path, overwrite)
    check_p(p)
    check_radius(ect)
    reading = parse_pairs(data)
    failures: list[Failure] = []
    made = len(files) == 1 and holds_transforms(files[0])
    if made and (ect != ECTConfig() or dim or data):
        raise ValueError(f"{files[0]} holds transforms already: how they are made cannot be chosen any more.")
    kept: PairwiseCheckpoint | None = None
    if made:
        found = load_transforms(files[0])
        if turned:
            check_turned(found.settings, made)
        failures = load_failures(files[0]) if files[0].is_dir() else []
    else:
        source = find_files(files, besides=[path for path in (output, plot) if path is not None], sort=True)
        if not quiet:
            report_others(source.skipped)
        settings = Settings(dim or first_dimension(source, reading), ect, reading)
        report_white((source.folder / name for name in source.names), settings.reading)
        if turned:
            check_turned(settings, made)
        found = _transform(source, settings, failures, quiet)
    if not found.names and failures:
        return report_failures(failures, done=0)
    if not found.names:
        raise ValueError(f"{files[0]} holds no shapes.")
    _report_sizes(found)
    if not turned:
        matrix = _matrix(found, p)
    elif found.settings.dim == 2:
        matrix = in_plane(found, p, quiet)
    else:
        kept = kept_pairs(output, source, found, p)
        matrix = in_space(found, source.folder, p, kept, quiet)
    with replacing(output) as partial:
        rows = [[name, *(f"{value:.9g}" for value in row)] for name, row in zip(found.names, matrix.tolist(), strict=True)]
        partial.write_text(comma_separated(["name", *found.names], rows), encoding="utf-8")
    if plot is not None:
        save(draw_distances(matrix, found.names, label=_label(p, turned)), plot)
    if kept is not None:
        kept.remove()
    if not quiet:
        print(f"{output}: {len(found.names)} x {len(found.names)} distances{'' if plot is None else f'; picture in {plot}'}")
    return report_failures(failures)


def _transform(source: Listing, settings: Settings, failures: list[Failure], quiet: bool) -> Transforms:
    beyond: list[int] = []
    bar = progress_bar(len(source.names), "transforming", hidden=quiet)
    try:
        pieces = list(transformed(source, settings, failures, ended=bar.update, beyond=beyond.append))
    finally:
        bar.close()
    report_beyond(sum(beyond), settings.ect.largest_height)
    names = [name for some, _ in pieces for name in some]
    return Transforms(names, torch.cat([torch.from_numpy(values) for _, values in pieces]), settings)


def _report_sizes(found: Transforms) -> None:
    """Say on standard error that clouds of different sizes are compared: what they end at outweighs how they rise."""
    ends = found.transforms[..., -1].flatten(1).median(dim=1).values  # Euler characteristics, where the radius is large enough
    low, high = float(ends.min()), float(ends.max())
    if (
        found.settings.ect == replace(found.settings.ect, variant="ect", derivative=False, divide_by=None)
        and low >= CLOUD
        and high > 1.1 * low
    ):
        print(
            f"warning: curves end at {low:g} to {high:g}, as those of clouds with so many points do, and distances tell little "
            "else. --divide-by vertices compares clouds of any size",
            file=sys.stderr,
        )


def _matrix(found: Transforms, p: float) -> Tensor:
    # Growth from threshold to threshold is no curve to be integrated.
    thresholds = None if found.settings.ect.derivative else found.settings.ect.thresholds()
    return distance_matrix(found.transforms.double(), p=p, thresholds=thresholds)


def _label(p: float, turned: bool) -> str:
    return f"L{'∞' if math.isinf(p) else f'{p:g}'} distance{' after turning' if turned else ''}"
