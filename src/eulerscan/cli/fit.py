"""``eulerscan fit``: move points, or the vertices of a shape, until their transform matches a target."""

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
from ..plot.figures import FIGURES
from ..plot.fits import Recorder, animate, draw_fit
from ..plot.shapes import guess_up
from .options import Data, Maybe, Output, check_output, parse_pairs, read_one

# A fit is poor if its loss is above both; successful fits end far below.
POOR_RATIO = 0.1  # to the loss at the start
POOR_LOSS = 1e-4


def fit(
    target: Annotated[Positional[Path], arg(metavar="FILE")],
    /,
    *,
    output: Output,
    num_points: Maybe[int] = None,
    start: Maybe[Path] = None,
    data: Data = (),
    num_directions: Maybe[int] = None,
    num_thresholds: int = 64,
    steps: int = 600,
    restarts: Maybe[int] = None,
    seed: int = 0,
    figure: Maybe[Path] = None,
    animation: Maybe[Path] = None,
    overwrite: bool = False,
) -> None:
    """Fit a point cloud to the vertices of a shape, or deform one shape into another, by their transforms alone.

    Example: `eulerscan fit bunny.obj --num-points 500 --output sparse.ply --figure fit.png`

    Args:
        target: Shape to fit to: file of a mesh, points, a graph or an image. A point cloud is fitted to its vertices only.
        output: File for the result: .ply, .csv, .xyz, .npy, .npz for points; .ply, .obj, .off, .stl, .npz for meshes.
        num_points: Number of points. Default: as many as the target has vertices.
        start: Shape to start from: its vertices move, its connectivity stays. Default: random points.
        num_directions: Number of directions. Default: 64 in the plane, 128 in space.
        num_thresholds: Number of thresholds. More resolve finer details.
        steps: Number of gradient steps.
        restarts: Number of attempts; the best result is kept. With --start, each restart perturbs the best result so far, until
            the fit has converged. Default: 1, or up to 10 if --start is a graph.
        seed: Seed of random starts and perturbations.
        figure: Figure of start, result and target: .png, .pdf or .svg.
        animation: Animation of the fit: .gif.
        overwrite: Replace existing files.
    """
    check_output(output, overwrite, WRITABLE)
    check_output(figure, overwrite, FIGURES, option="--figure")
    check_output(animation, overwrite, (".gif",), option="--animation")
    reading = parse_pairs(data)
    shape = read_one(target, **reading)
    begin = time.perf_counter()
    recorder = Recorder(every=max(1, steps // 60))
    result = fit_points(
        shape,
        num_points=num_points,
        start=None if start is None else read_one(start, **reading),
        num_directions=num_directions,
        num_thresholds=num_thresholds,
        steps=steps,
        restarts=restarts,
        callback=recorder if figure or animation else None,
        generator=torch.Generator().manual_seed(seed),
    )
    seconds = time.perf_counter() - begin
    write(result.shape, output)
    if figure is not None:
        draw_fit(recorder.best(result)[0], result.shape, shape, figure, up=guess_up(target))
    if animation is not None:
        animate(recorder.best(result), shape, animation, up=guess_up(target))
    print(
        f"{output}: {len(result.shape.points)} points; mean squared difference of the transforms {result.loss:.3g}, "
        f"{result.start_loss:.3g} at the start; {seconds:.1f} s"
    )
    _warn_poor_fit(result, shape, deformed=start is not None)


def _warn_poor_fit(fit: Fit, target: Complex, *, deformed: bool) -> None:
    """Warn of a large remaining loss, with the likely reason."""
    if fit.loss <= max(POOR_LOSS, POOR_RATIO * fit.start_loss):
        return
    ours, theirs = (int(shape.euler_characteristic().sum()) for shape in (fit.shape, target))
    if fit.shape.max_dim > 0 and ours != theirs:  # point clouds are compared with the vertices of the target alone
        why = f"the start has Euler characteristic {ours}, the target {theirs}, and moving vertices cannot change it"
    else:
        why = f"try more --steps or --restarts, or {'another --start' if deformed else 'more points'}"
    print(f"warning: {fit.loss / fit.start_loss:.0%} of the initial loss remains: {why}", file=sys.stderr)
