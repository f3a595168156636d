"""``eulerscan local``: descriptors of the vertices of one shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from tyro.conf import arg

from .._storage import replacing
from .._validation import positive
from ..analysis.ordination import pca
from ..directions import uniform
from ..grid import thresholds
from ..io.colors import COLORED, write_colored
from ..local import local_ect
from ..plot.figures import FIGURES, save
from ..plot.local import draw_local
from ..plot.shapes import guess_up
from .help import OPTIONAL
from .options import Data, Maybe, OneShape, Output, Overwrite, Quiet, check_output, parse_pairs, read_one

NEAREST = 16  # points of the neighborhood in a cloud
Picture = Annotated[Path | None, OPTIONAL, arg(aliases=["-p"])]


def local(
    shape: OneShape,
    /,
    *,
    output: Output,
    picture: Picture = None,
    hops: Maybe[int] = None,
    radius: Maybe[float] = None,
    k: Maybe[int] = None,
    max_vertices: Maybe[int] = None,
    num_directions: int = 16,
    num_thresholds: int = 16,
    components: Maybe[int] = None,
    data: Data = (),
    up: Literal["auto", "y", "z"] = "auto",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Describe every vertex of a shape by the transform of its neighborhood.

    The table has a row per vertex: its coordinates, then the transform of its neighborhood, direction by direction. Every
    neighborhood is moved to the unit ball about the mean of its vertices first, so that its size does not count.

    Examples: `eulerscan local mesh.ply -o vertices.csv`, `eulerscan local bunny.obj --hops 4 --components 8 -o vertices.csv
    --picture bunny.png`

    Args:
        shape: File of a mesh, points, a graph or an image.
        output: File for the table: .csv, or .npy for the array [vertices, directions, thresholds] alone.
        picture: File for a picture of the shape, with the first principal components of the descriptors as colors: .png, .pdf
            or .svg, or .ply, .obj or .glb for a mesh with the first one.
        hops: Neighborhoods have the vertices at most this many edges away. Default: 2; 16 nearest points for clouds.
        radius: Or those at most this far away.
        k: Or this many nearest ones.
        max_vertices: Largest number of vertices in a neighborhood.
        num_directions: Number of directions, evenly spread.
        num_thresholds: Number of thresholds, from -1.1 to 1.1.
        components: Write this many principal components of the descriptors instead of all numbers; fewer if the descriptors
            span fewer dimensions. Default: all numbers.
        up: The axis that points up in the picture: y in .obj, .off and .glb files and z in others if auto.
    """
    check_output(output, overwrite, (".csv", ".npy"))
    check_output(picture, overwrite, (*FIGURES, *COLORED), option="--picture")
    if components is not None:
        positive(components, "--components")
    complex = read_one(shape, **parse_pairs(data))
    if hops is radius is k is None:
        hops, k = (2, None) if complex.max_dim else (None, min(NEAREST, max(1, len(complex.points) - 1)))
    grid = (uniform(num_directions, complex.dim).to(complex.points), thresholds(num_thresholds).to(complex.points))
    transform = local_ect(complex, *grid, hops=hops, radius=radius, k=k, max_vertices=max_vertices)[:, 0].float()
    written = transform if components is None else pca(transform, components).scores
    with replacing(output) as partial, partial.open("wb") as file:
        if output.suffix.lower() == ".npy":
            np.save(file, written.numpy(), allow_pickle=False)
        else:
            names = [f"direction{i}_height{j}" for i in range(num_directions) for j in range(num_thresholds)]
            names = names if components is None else [f"component{i}" for i in range(1, written.shape[1] + 1)]
            axes = ["x", "y", "z"][: complex.dim] if complex.dim <= 3 else [f"x{i}" for i in range(1, complex.dim + 1)]
            table = torch.cat([complex.points, written.flatten(1)], dim=1).numpy()
            digits = ["%.15g"] * complex.dim + ["%.7g"] * (table.shape[1] - complex.dim)
            np.savetxt(file, table, fmt=digits, delimiter=",", header=",".join([*axes, *names]), comments="")
    if picture is not None:
        axis = guess_up(shape) if up == "auto" else up
        if picture.suffix.lower() in FIGURES:
            save(draw_local(complex, transform, up=axis), picture)
        else:
            values = pca(transform, 1).scores[:, 0]
            write_colored(complex, picture, values, low=float(values.min()), high=float(values.max()) + 1e-9)
    if not quiet:
        print(f"{output}: {len(transform)} vertices, {written[0].numel() if len(written) else 0} numbers each")
