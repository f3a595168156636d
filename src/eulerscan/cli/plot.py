"""``eulerscan plot``: a figure of one or several shapes and their transforms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .._progress import progress
from .._validation import positive
from ..config import ECTConfig
from ..io import Failure, list_shapes, read_all
from ..plot.overview import draw_overview
from .options import Data, Maybe, Output, Shapes, check_output, parse_pairs, print_failures

FIGURES = (".png", ".pdf", ".svg")
MAX_ROWS = 12  # that fit on a page


def plot(
    shapes: Shapes,
    /,
    *,
    output: Output,
    ect: ECTConfig = ECTConfig(num_directions=180, num_thresholds=128),  # noqa: B008
    data: Data = (),
    title: Maybe[str] = None,
    dpi: int = 300,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Draw shapes and their transforms, for a paper or a talk.

    A row shows a shape, its transform as an image, the curves of a few directions and, in the plane, the polar view. All rows
    have the same thresholds, and rows of one kind (point clouds, graphs, meshes) the same color scale. Files that cannot be
    read are reported and left out, and the exit code is then 1.

    Examples: `eulerscan plot bunny.obj -o bunny.pdf`, `eulerscan plot a.png b.png --data weighted=true -o digits.png`

    Args:
        shapes: Files of meshes, points, graphs or images, in the plane or in space.
        output: File for the figure: .png, or .pdf or .svg for a paper.
        ect: How shapes are transformed. The image has a row per direction and a column per threshold. Default radius: that of
            the largest shape.
        data: Options for reading files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        title: Title of the figure.
        dpi: Dots per inch of .png files, and of the images in the other formats.
        overwrite: Replace the figure if it exists.
        quiet: Print nothing but errors.
    """
    if output.suffix.lower() not in FIGURES:
        raise ValueError(f"--output must end with one of {', '.join(FIGURES)}, got {output.name!r}.")
    check_output(output, overwrite)
    listing = list_shapes(shapes)
    paths = listing.paths
    if not 1 <= len(paths) <= MAX_ROWS:
        example = f" Name some of them, such as {paths[0]}" if len(paths) > len(shapes) else ""
        raise ValueError(f"a figure has 1 to {MAX_ROWS} shapes, one per row, got {len(paths)}.{example}")
    positive(dpi, "--dpi")
    read, failures = read_all(paths if quiet else progress(paths, "reading files"), **parse_pairs(data))
    found = {path: shape for path, shape in read.items() if shape.dim in (2, 3)}
    failures = [*listing.path_failures, *failures]
    failures += [
        Failure(path, f"points of dimension {shape.dim}, expected 2 or 3.")
        for path, shape in read.items()
        if shape.dim not in (2, 3)
    ]
    if found:
        draw_overview(list(found.values()), _titles(list(found)), output, config=ect, title=title, dpi=dpi)
        if not quiet:
            print(f"{output}: {len(found)} {'shape' if len(found) == 1 else 'shapes'}")
    return print_failures(failures, done=len(found))


def _titles(paths: Sequence[Path]) -> list[str]:
    """The names of the files, with their folders if two files have the same name."""
    unique = len({path.name for path in paths}) == len(paths)
    return [path.name if unique else f"{path.parent.name}/{path.name}" for path in paths]
