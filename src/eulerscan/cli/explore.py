"""``eulerscan explore``: a page on which a shape can be swept by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ..config import ECTConfig
from ..explorer import write_page
from .options import check_output, parse_pairs, read_one


def explore(
    shape: Annotated[Positional[Path], arg(metavar="SHAPE")],
    /,
    *,
    output: Annotated[Path, arg(aliases=["-o"])],
    ect: ECTConfig = ECTConfig(num_directions=360, num_thresholds=128),  # noqa: B008
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
        ect: How the shape is transformed. The curve and the numbers beside it are exact at every height.
        data: Options of reading the file, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        title: Name of the shape on the page. Default: that of the file.
        overwrite: Replace the page if it is there already.
        quiet: Print nothing but errors.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--output must be a .html file, got {output.name!r}.")
    check_output(output, overwrite)
    write_page(read_one(shape, **parse_pairs(data)), output, name=title or shape.name, config=ect)
    if not quiet:
        print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")
