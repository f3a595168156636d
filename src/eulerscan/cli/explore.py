"""``eulerscan explore``: a page on which a shape can be swept by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from .._validation import positive
from ..explorer import write_page
from .options import check_output, parse_pairs, read_one


def explore(
    shape: Annotated[Positional[Path], arg(metavar="SHAPE")],
    /,
    *,
    output: Annotated[Path, arg(aliases=["-o"])],
    num_directions: int | None = None,
    num_thresholds: int = 128,
    radius: float | None = None,
    unit_ball: bool = True,
    centre: bool = False,
    data: tuple[str, ...] = (),
    title: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> None:
    """Write a page on which a shape can be swept by hand.

    Sliders turn the direction and move the height: the part of the shape at or below the plane lights up, its vertices, edges
    and faces are counted, and the curve and the transform are drawn. It is one file that needs no network: open it in any
    browser, send it to anybody.

    Examples: `eulerscan explore bunny.obj -o bunny.html`, `eulerscan explore digit.png --data weighted=true -o digit.html`

    Args:
        shape: File of a mesh, points, a graph or an image, in the plane or in space, of at most a million simplices.
        output: File for the page: .html.
        num_directions: Directions of the image of the transform. Default: 360 in the plane, 256 in space.
        num_thresholds: Thresholds of that image. The curve and the numbers beside it are exact at every height.
        radius: Largest height. Default: a tenth more than the largest norm of the shape.
        unit_ball: Centre the shape and scale it to norm 1, or take the coordinates as they are in the file.
        centre: Centre the shape and keep its size, in place of the unit ball.
        data: Options of reading the file, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        title: Name of the shape on the page. Default: that of the file.
        overwrite: Replace the page if it is there already.
        quiet: Print nothing but errors.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--output must be a .html file, got {output.name!r}.")
    check_output(output, overwrite)
    for name, count in (("--num-directions", num_directions), ("--num-thresholds", num_thresholds)):
        if count is not None:
            positive(count, name)
    write_page(
        read_one(shape, **parse_pairs(data)),
        output,
        name=title or shape.name,
        unit_ball=unit_ball,
        centre=centre,
        radius=radius,
        num_directions=num_directions,
        num_thresholds=num_thresholds,
    )
    if not quiet:
        print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")
