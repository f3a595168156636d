"""``eulerscan plot``: a figure of one or several shapes and their transforms."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from .._progress import progress_bar
from .._validation import positive
from ..config import ECTConfig
from ..io import Failure, list_shapes, read_all
from ..plot.figures import FIGURES
from ..plot.overview import draw_overview
from ..plot.shapes import guess_up
from .options import DOUBLE, Data, Maybe, Output, Overwrite, Quiet, Shapes, check_output, parse_pairs, print_failures

MAX_ROWS = 12  # that fit on a page


def plot(
    shapes: Shapes,
    /,
    *,
    output: Output,
    ect: ECTConfig = ECTConfig(num_directions=180, num_thresholds=128),  # noqa: B008
    data: Data = (),
    up: Literal["auto", "y", "z"] = "auto",
    title: Maybe[str] = None,
    dpi: int = 300,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Draw shapes and their transforms, for a paper or a talk.

    A row shows a shape, its transform as an image, the curves of a few directions and, in the plane, the polar view. All rows
    have the same thresholds, and rows of one kind (point clouds, graphs, meshes) the same color scale. Shapes that keep their
    size (--normalize none or center) are drawn on one scale. Files that cannot be read are reported and left out, and the
    exit code is then 1.

    Examples: `eulerscan plot bunny.obj -o bunny.pdf`, `eulerscan plot a.png b.png --data weighted=true -o digits.png`

    Args:
        shapes: Files of meshes, points, graphs or images, in the plane or in space.
        output: File for the figure: .png, or .pdf or .svg for a paper.
        ect: How shapes are transformed. The image has a row per direction and a column per threshold. Default radius: that of
            the largest shape.
        up: The axis that points up in drawings of shapes in space: y in .obj, .off and .glb files and z in others if auto. No
            number depends on it.
        title: Title of the figure.
        dpi: Dots per inch of .png files, and of the images in the other formats.
    """
    check_output(output, overwrite, FIGURES)
    listing = list_shapes(shapes)
    paths = listing.paths
    if not 1 <= len(paths) <= MAX_ROWS:
        example = f" Name some of them, such as {paths[0]}" if len(paths) > len(shapes) else ""
        raise ValueError(f"a figure has 1 to {MAX_ROWS} shapes, one per row, got {len(paths)}.{example}")
    positive(dpi, "--dpi")
    with closing(progress_bar(len(paths), "reading files", hidden=quiet)) as bar:
        batches, failures = read_all(paths, cache=False, progress=bar, **DOUBLE | parse_pairs(data))
    shapes_at = {i: batch.complex[n] for batch in batches.values() for n, i in enumerate(batch.positions)}
    found = {paths[i]: shape for i, shape in sorted(shapes_at.items()) if shape.dim in (2, 3)}
    failures = [*listing.path_failures, *failures]
    failures += [
        Failure(paths[i], f"points of dimension {shape.dim}, expected 2 or 3.")
        for i, shape in shapes_at.items()
        if shape.dim not in (2, 3)
    ]
    if found:
        ups = [guess_up(path) if up == "auto" else up for path in found]
        draw_overview(list(found.values()), _titles(list(found)), output, config=ect, up=ups, title=title, dpi=dpi)
        if not quiet:
            guessed = up == "auto" and any(axis == "y" and found[path].dim == 3 for axis, path in zip(ups, found, strict=True))
            note = "; .obj, .off and .glb files are drawn with y up, use --up z if theirs is z" if guessed else ""
            print(f"{output}: {len(found)} {'shape' if len(found) == 1 else 'shapes'}{note}")
    return print_failures(failures, done=len(found))


def _titles(paths: Sequence[Path]) -> list[str]:
    """The names of the files, with their folders if two files have the same name."""
    unique = len({path.name for path in paths}) == len(paths)
    return [path.name if unique else f"{path.parent.name}/{path.name}" for path in paths]
