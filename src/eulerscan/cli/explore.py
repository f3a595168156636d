"""``eulerscan explore``: an interactive page of one shape."""

from __future__ import annotations

from typing import Literal

from ..config import ECTConfig
from ..explorer import write_page
from ..plot.shapes import guess_up
from .options import Data, Maybe, OneShape, Output, Overwrite, Quiet, check_output, parse_pairs, read_one


def explore(
    shape: OneShape,
    /,
    *,
    output: Output,
    ect: ECTConfig = ECTConfig(num_directions=360, num_thresholds=128),  # noqa: B008
    data: Data = (),
    up: Literal["auto", "y", "z"] = "auto",
    title: Maybe[str] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write an interactive page that sweeps a shape in any direction.

    Sliders set the direction and the height. The page highlights the part of the shape at or below that height, counts its
    vertices, edges and faces, and draws the curve and the transform. It is a single file that needs no network: open it in any
    browser.

    Examples: `eulerscan explore bunny.obj -o bunny.html`, `eulerscan explore digit.png --data weighted=true -o digit.html`

    Args:
        shape: File of a mesh, points, a graph or an image, in the plane or in space, of at most a million simplices.
        output: File for the page: .html.
        ect: How the shape is transformed. The curve and its values are exact at every height.
        up: The axis that points up, in space: y in .obj, .off and .glb files and z in others if auto. No number depends on it.
        title: Name of the shape on the page. Default: the file name.
    """
    check_output(output, overwrite, (".html", ".htm"))
    axis = guess_up(shape) if up == "auto" else up
    write_page(read_one(shape, **parse_pairs(data)), output, name=title or shape.name, config=ect, up=axis)
    if not quiet:
        print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")
