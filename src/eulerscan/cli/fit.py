"""``eulerscan fit``: points, or the vertices of a shape, moved until their transform is that of a target."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import torch
from tyro.conf import Positional, arg

from ..complexes import Complex
from ..fitting import Fit, fit_points
from ..io import WRITABLE, write
from ..plot.fits import Recorder, animate, draw_points
from .options import check_output, read_one
from .plot import FIGURES

MUCH = 0.1  # of the difference at the start: fits that succeed leave far less
LITTLE = 1e-4  # mean squared difference that is fine, whatever it was at the start


def fit(
    target: Annotated[Positional[Path], arg(metavar="FILE")],
    /,
    *,
    output: Annotated[Path, arg(aliases=["-o"])],
    num_points: int | None = None,
    start: Path | None = None,
    num_directions: int | None = None,
    num_thresholds: int = 64,
    steps: int = 600,
    restarts: int | None = None,
    seed: int = 0,
    figure: Path | None = None,
    animation: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Fit a cloud of points to the vertices of a shape, or bend one shape to another, by their transforms alone.

    Example: `eulerscan fit bunny.obj --num-points 500 --output sparse.ply --figure fit.png`

    Args:
        target: File of the wanted shape: a mesh, points, a graph or an image. To a cloud only its vertices count.
        output: File for the result: .ply, .csv, .xyz, .npy, .npz for points; .ply, .obj, .off, .stl, .npz for meshes.
        num_points: Size of the cloud. Default: as many points as the target has vertices.
        start: File of a shape to begin with, whose connectivity stays and whose vertices move. Default: random points.
        num_directions: Directions to look from. Default: 64 in the plane, 128 in space.
        num_thresholds: Thresholds in each direction; more see finer details.
        steps: Steps of descent in all.
        restarts: Starts to try; the best result is kept. After --start they are the best result so far, moved at random, until
            little is left. Default: 1, and up to 10 where --start is a graph.
        seed: Of random starts and moves.
        figure: Picture of start, result and target: .png, .pdf or .svg.
        animation: Moving picture of the fit: .gif.
        overwrite: Replace files that are there already.
    """
    if output.suffix.lower() not in WRITABLE:
        raise ValueError(f"--output must end with one of {', '.join(WRITABLE)}, got {output.name!r}.")
    if figure is not None and figure.suffix.lower() not in FIGURES:
        raise ValueError(f"--figure must end with one of {', '.join(FIGURES)}, got {figure.name!r}.")
    if animation is not None and animation.suffix.lower() != ".gif":
        raise ValueError(f"--animation must be a .gif file, got {animation.name!r}.")
    for path in (output, figure, animation):
        check_output(path, overwrite)
    wanted = read_one(target)
    begin = time.perf_counter()
    recorder = Recorder(every=max(1, steps // 60))
    found = fit_points(
        wanted,
        num_points=num_points,
        start=None if start is None else read_one(start),
        num_directions=num_directions,
        num_thresholds=num_thresholds,
        steps=steps,
        restarts=restarts,
        callback=recorder if figure or animation else None,
        generator=torch.Generator().manual_seed(seed),
    )
    seconds = time.perf_counter() - begin
    write(found.shape, output)
    if figure is not None:
        draw_points(recorder.best(found)[0], found.shape, wanted, figure)
    if animation is not None:
        animate(recorder.best(found), wanted, animation)
    print(
        f"{output}: {len(found.shape.points)} points; mean squared difference of the transforms {found.loss:.3g}, "
        f"{found.start_loss:.3g} at the start; {seconds:.1f} s"
    )
    _report_rest(found, wanted, bent=start is not None)


def _report_rest(found: Fit, wanted: Complex, *, bent: bool) -> None:
    """Say on standard error that much is left, and why, if that is known."""
    if found.loss <= max(LITTLE, MUCH * found.start_loss):
        return
    ours, theirs = (int(shape.euler_characteristic().sum()) for shape in (found.shape, wanted))
    if found.shape.max_dim > 0 and ours != theirs:  # clouds are compared with the vertices of the target alone
        why = f"the start has the Euler characteristic {ours}, the target {theirs}, which no move of vertices changes"
    else:
        why = f"more --steps or --restarts, or {'another --start' if bent else 'more points'}, may help"
    print(f"warning: {found.loss / found.start_loss:.0%} of the difference at the start is left: {why}", file=sys.stderr)
