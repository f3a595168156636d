"""``eulerscan distances``: the matrix of distances between all shapes."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from torch import Tensor

from .._progress import progress_bar
from .._storage import write_text
from .._tables import comma_separated, printable
from ..analysis.distances import check_p, distance_matrix
from ..analysis.pairwise import PairwiseCheckpoint
from ..bulk import Settings, Transforms, holds_transforms, load_failures, load_transforms, transform_all
from ..config import ECTConfig
from ..plot.distances import order_path, save_distances
from ..plot.figures import FIGURES
from .align import check_align, distances_in_plane, distances_in_space, load_checkpoint
from .options import (
    Dim,
    Files,
    Input,
    Maybe,
    Output,
    Overwrite,
    Quiet,
    check_output,
    find_files,
    print_failures,
    warn_beyond_radius,
    warn_unusual_topology,
)

CLOUD = 10  # shapes with a larger Euler characteristic are taken for point clouds


def distances(
    files: Files,
    /,
    *,
    output: Output,
    plot: Maybe[Path] = None,
    p: float = 2,
    align: bool = False,
    ect: ECTConfig = ECTConfig(),  # noqa: B008
    dim: Dim = None,
    input: Input = Input(),  # noqa: B008
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Compute the distances between all shapes: the Lp norm of the difference of their transforms.

    Differences to the power p are averaged over the directions and integrated over the height, and the p-th root is taken.
    Files that cannot be read are reported and left out, and the exit code is then 1.

    Example: `eulerscan distances skulls/ -o distances.csv --plot distances.png`

    Args:
        files: Files of shapes, or folders of them; or an output of `eulerscan transform`: one .npz, .csv or .parquet file, or a
            folder of parts.
        output: CSV file for the matrix, with the names in its first row and column.
        plot: Figure of the matrix, with similar shapes next to each other, and of the tree of clusters: .png, .pdf or .svg.
            Several groups, the folders or those of --label, have a strip of colors. The order of the shapes is written to a
            table beside it, NAME.order.csv.
        p: At least 1; inf is the largest difference at any height in any direction.
        align: Rotate the second of two shapes to where it is closest to the first. In the plane, all rotations by multiples of
            the angle between directions are tried. In space, many rotations are tried, so the result is an upper bound. This
            takes about a second per pair, or more for large meshes. Run the command again to resume.
        ect: How shapes are transformed.
        input: Which files are read, and how.
    """
    check_output(output, overwrite, (".csv",))
    check_output(plot, overwrite, FIGURES, option="--plot")
    check_output(plot and order_path(plot), overwrite)
    written = [path for path in (output, plot, plot and order_path(plot)) if path is not None]
    if output in written[1:]:
        raise ValueError(f"--output must differ from the table beside --plot, got {output} for both.")
    check_p(p)
    transformed = len(files) == 1 and holds_transforms(files[0])
    if transformed:
        if ect != ECTConfig() or dim or input != Input():
            raise ValueError(f"{files[0]} holds transforms, so the options of the transform cannot be chosen.")
        found = load_transforms(files[0])
        failures = load_failures(files[0]) if files[0].is_dir() else []
    else:
        settings = Settings(dim, ect, input.options())
        if align:
            check_align(settings)
        listing = find_files(files, input=input, exclude=written, sort=True, quiet=quiet)
        with closing(progress_bar(len(listing.names), "transforming", hidden=quiet)) as bar:
            found, report = transform_all(listing, settings, progress=bar)
        warn_beyond_radius(report.num_beyond, ect.largest_height)
        warn_unusual_topology(report.euler)
        failures = report.failures
    if not found.names and failures:
        return print_failures(failures, done=0)
    if not found.names:
        raise ValueError(f"{files[0]} holds no shapes.")
    if align:
        check_align(found.settings, transformed=transformed)
    _warn_different_sizes(found)
    checkpoint: PairwiseCheckpoint | None = None
    if not align:
        # Differences from one threshold to the next are not curves to integrate.
        thresholds = None if found.settings.ect.derivative else found.settings.ect.thresholds()
        matrix = distance_matrix(found.transforms.double(), p=p, thresholds=thresholds)
    elif found.settings.dim == 2:
        matrix = distances_in_plane(found, p, quiet)
    else:
        checkpoint = load_checkpoint(output, listing, found, p)
        matrix = distances_in_space(found, listing.folder, p, checkpoint, quiet)
    rows = [[name, *(f"{value:.9g}" for value in row)] for name, row in zip(found.names, matrix.tolist(), strict=True)]
    write_text(output, comma_separated(["name", *found.names], rows))
    if plot is not None:
        label = f"L{'∞' if math.isinf(p) else f'{p:g}'} distance{' after alignment' if align else ''}"
        groups = [group or "(none)" for group in found.groups]
        save_distances(matrix, found.names, plot, groups=groups, label=label)
    if checkpoint is not None:
        checkpoint.remove()
    _warn_zero(matrix, found.names)
    if not quiet:
        note = "" if plot is None else f"; figure in {plot}, its order in {order_path(plot)}"
        print(f"{output}: {len(found.names)} x {len(found.names)} distances{note}")
    return print_failures(failures)


def _warn_zero(matrix: Tensor, names: Sequence[str]) -> None:
    """Warn if the distance of two shapes is 0: they are copies, or the grid is too coarse to tell them apart."""
    pairs = (matrix == 0).triu(1).nonzero().tolist()
    if pairs:
        i, j = pairs[0]
        count = "1 pair has" if len(pairs) == 1 else f"{len(pairs)} pairs have"
        print(
            f"warning: {count} distance 0, such as {printable(names[i])} and {printable(names[j])}. Unless they are copies, "
            "use more --num-thresholds and --num-directions",
            file=sys.stderr,
        )


def _warn_different_sizes(found: Transforms) -> None:
    """Warn if point clouds have different sizes: their curves end at the number of points, which dominates the distances."""
    ends = found.transforms[..., -1].flatten(1).median(dim=1).values  # Euler characteristics, if the radius is large enough
    low, high = float(ends.min()), float(ends.max())
    if found.settings.ect.is_plain and low >= CLOUD and high > 1.1 * low:
        print(
            f"warning: the point clouds have {low:g} to {high:g} points, and the distances mostly reflect that. Use "
            "--divide-by vertices for clouds of different sizes",
            file=sys.stderr,
        )
