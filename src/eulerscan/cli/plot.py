"""``eulerscan plot``: a figure of one or several shapes and their transforms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from .._progress import progress
from .._validation import positive
from ..config import ECTConfig
from ..io import Failure, list_shapes, read_all
from ..plot.overview import draw_overview
from .options import check_output, parse_pairs, print_failures

FIGURES = (".png", ".pdf", ".svg")
MOST_ROWS = 12  # more are no figure for a page


def plot(
    shapes: Annotated[Positional[tuple[Path, ...]], arg(metavar="SHAPE ...", help_behavior_hint="(required)")],
    /,
    *,
    output: Annotated[Path, arg(aliases=["-o"])],
    ect: ECTConfig = ECTConfig(num_directions=180, num_thresholds=128),  # noqa: B008
    data: tuple[str, ...] = (),
    title: str | None = None,
    dpi: int = 300,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Draw shapes and their transforms, for a paper or a talk.

    A row shows the shape, its transform as an image, the curves of a few directions and, in the plane, the polar view. Several
    shapes get a row each, on the same thresholds, and those of one kind (clouds, graphs, meshes) in the same colours. What
    cannot be read is reported and left out, and the exit code is then 1.

    Examples: `eulerscan plot bunny.obj -o bunny.pdf`, `eulerscan plot a.png b.png --data weighted=true -o digits.png`

    Args:
        shapes: Files of meshes, points, graphs or images, in the plane or in space.
        output: File for the figure: .png, or .pdf or .svg for a paper.
        ect: How the shapes are transformed: a row of the image for each direction, a column for each threshold. Default
            radius: that of the largest shape.
        data: Options of reading the files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        title: Written above the figure.
        dpi: Dots an inch of .png files, and of the images within the others.
        overwrite: Replace the figure if it is there already.
        quiet: Print nothing but errors.
    """
    if output.suffix.lower() not in FIGURES:
        raise ValueError(f"--output must end with one of {', '.join(FIGURES)}, got {output.name!r}.")
    check_output(output, overwrite)
    listing = list_shapes(shapes)
    paths = listing.paths
    if not 1 <= len(paths) <= MOST_ROWS:
        example = f" Name some of them, such as {paths[0]}" if len(paths) > len(shapes) else ""
        raise ValueError(f"SHAPE ... must name 1 to {MOST_ROWS} shapes, a row of the figure each, got {len(paths)}.{example}")
    positive(dpi, "--dpi")
    read, failures = read_all(paths if quiet else progress(paths, "reading files"), **parse_pairs(data))
    found = {path: shape for path, shape in read.items() if shape.dim in (2, 3)}
    failures = [*listing.path_failures, *failures]
    failures += [
        Failure(path, f"points of dimension {shape.dim}: only the plane and space can be drawn.")
        for path, shape in read.items()
        if shape.dim not in (2, 3)
    ]
    if found:
        draw_overview(
            list(found.values()),
            _titles(list(found)),
            output,
            config=ect,
            title=title,
            dpi=dpi,
        )
        if not quiet:
            print(f"{output}: {len(found)} {'shape' if len(found) == 1 else 'shapes'}")
    return print_failures(failures, done=len(found))


def _titles(paths: Sequence[Path]) -> list[str]:
    """The names of the files, with their folders if two files have the same name."""
    unique = len({path.name for path in paths}) == len(paths)
    return [path.name if unique else f"{path.parent.name}/{path.name}" for path in paths]
