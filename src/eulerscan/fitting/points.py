"""Fit points, or the vertices of a shape, until their transform matches a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor

from .._progress import progress_bar
from .._validation import positive
from ..complexes import Complex, Shape
from ..grid import MARGIN
from ..nn.losses import edge_length_loss, edge_lengths, laplacian_loss
from .descent import DescentOptions, OptimizerFactory, OptimizerName, Stage, descend, warn_on_failure
from .inverse import TransformTarget, back_project, uniform_in_ball
from .objective import Objective, points_objective, single_complex
from .result import Fit, make_fit

Start = Literal["random", "back-projection"]
Term = Callable[[Complex], Tensor]

# Restarts from a given shape:
PERTURBATION = 0.06  # standard deviation, relative to the radius
LEARNING_RATE_FACTOR = 2.5
CONVERGED = 0.001  # loss relative to the first one, below which there is no restart


def fit_points(
    target: Shape | TransformTarget,
    *,
    num_points: int | None = None,
    start: Shape | Start | None = None,
    directions: Tensor | None = None,
    num_directions: int | None = None,
    num_thresholds: int = 64,
    scales: Sequence[float] | None = None,
    steps: int = 600,
    learning_rate: float | None = None,
    optimizer: OptimizerName | OptimizerFactory = "adam",
    restarts: int | None = None,
    tolerance: float = 0.0,
    laplacian: float | None = None,
    edge_length: float = 0.0,
    extra_loss: Callable[[Complex], Tensor] | None = None,
    progress: bool = True,
    callback: Callable[[int, float, Complex], object] | None = None,
    generator: torch.Generator | None = None,
) -> Fit:
    """Move points until their transform matches that of the target.

    A point cloud is fitted to the vertices of the target. It may have any number of points, since each transform is divided by
    the number of its points. If ``start`` is a graph or mesh, its vertices move, its connectivity stays, and the simplices of
    the target count too.

    The defaults were tuned with ``benchmarks/fitting.py``:

    - *Scales*: at 8, a point is attracted from half of the ball, so the result does not depend on the start, but details are
      blurred. At 4 divided by the spacing of the thresholds, the sigmoid rises within one step, the finest that the grid can
      resolve. There are four stages from one to the other.
    - *Learning rate*: a tenth of the rise of the sigmoid (0.05 at scale 8) for point clouds; a fiftieth for graphs and meshes,
      whose gradient is discontinuous where vertices change their order.
    - *Laplacian*: without it, a mesh reaches the target by folding. A weight of 0.01 keeps it smooth and fades as the scale
      rises, so that corners are not rounded.
    - *Restarts*: point clouds and meshes need none. Single vertices of a graph can get stuck; perturbing all of them frees
      those.

    Args:
        target: One shape, or a :class:`TransformTarget` if only its transform is known.
        num_points: Number of points of the cloud. Default: that of the target.
        start: A shape to start from; ``"random"``, uniform in the ball, the default; or ``"back-projection"``
            (:func:`back_project`), the default for a :class:`TransformTarget`.
        directions: ``[T, dim]``. Default: ``num_directions`` evenly spaced ones, over half of the sphere for point clouds, for
            which opposite directions are equivalent, and over all of it for graphs and meshes.
        num_directions: Default: 64 in the plane, 128 in space.
        num_thresholds: More of them resolve finer details.
        scales: Ascending, for coordinates in the unit ball (for a :class:`TransformTarget`, in its own coordinates).
        steps: Number of steps, divided equally among the scales.
        learning_rate: Step size, relative to the height ``4 / scale`` over which the sigmoid rises.
        optimizer: ``"adam"``, ``"lbfgs"``, or a function of parameters and ``lr`` that returns an optimizer.
        restarts: Number of starts. The result with the smallest loss is kept. If ``start`` is a shape, each further start is
            the best result so far, perturbed by about 0.06 of the radius and fitted with a larger learning rate, until the loss
            is a thousandth of the first one. Default: 1, but 10 if ``start`` has simplices and there is no regularization.
        tolerance: A stage ends when the loss is this small.
        laplacian: Weight of :func:`losses.laplacian_loss`, times the first scale over the current one. Default: 0.01 if
            ``start`` has triangles, else 0.
        edge_length: Weight of :func:`losses.edge_length_loss`, for the edge lengths of ``start``. Fades like ``laplacian``.
        extra_loss: Any other loss of the fitted complex, in the coordinates of the target. Does not fade.
        progress: Whether to show a progress bar, on a terminal with tqdm.
        callback: Called with the step, its loss, and the complex after it.
        generator: Random numbers for starts and perturbations. Default: torch's global generator for random starts, and seed 0
            for perturbations, so that a fit from a given shape is reproducible.

    Example:
        >>> circle = torch.nn.functional.normalize(torch.randn(100, 2), dim=1)
        >>> fit = fit_points(circle, num_points=50, steps=80, num_thresholds=32)
        >>> fit.shape
        Complex(num_complexes=1, dim=2, points=50)
        >>> fit.loss < 0.01 * fit.start_loss
        True
    """
    given = None if start is None or isinstance(start, str) else single_complex(start, "start")
    objective = points_objective(
        target,
        given,
        num_points=num_points,
        directions=directions,
        num_directions=num_directions,
        num_thresholds=num_thresholds,
        scales=scales,
    )
    method = "given" if given is not None else _start_method(start, target)
    initial = _initial_points(method, target, objective, generator) if given is None else objective.to_internal(given.points)
    source = Complex(initial) if given is None else given.to(objective.center.dtype)
    learning_rate = (0.02 if source.max_dim else 0.1) if learning_rate is None else learning_rate
    laplacian = (0.01 if source.of_dim(2).numel() else 0.0) if laplacian is None else laplacian
    regularized = bool(laplacian or edge_length or extra_loss)
    restarts = positive((10 if source.max_dim and not regularized else 1) if restarts is None else restarts, "restarts")
    options = DescentOptions(steps, learning_rate, optimizer, tolerance)
    stages = [
        _stage(source, objective, scale, _regularization(source, objective, scale, laplacian, edge_length, extra_loss))
        for scale in objective.scales
    ]
    plain_loss = _stage(source, objective, objective.scales[-1], []).loss
    with closing(progress_bar(steps * restarts, "fitting points", hidden=not progress)) as bar:

        def report(step: int, loss: float, points: Tensor) -> None:
            bar.set_postfix_str(f"loss {loss:.2e}")
            bar.update()
            if callback is not None:
                callback(step, loss, source.with_points(objective.from_internal(points)))

        noise = generator or torch.Generator().manual_seed(0)
        radius = objective.largest_height
        best = descend(initial, stages, plain_loss, options, radius=radius, callback=report)
        descents, converged = [best], max(tolerance, CONVERGED * best.start_loss)
        while len(descents) < restarts and (given is None or best.loss > converged):
            if given is None:
                initial, again = _initial_points(method, target, objective, generator), options
            else:
                initial = _perturbed(best.state, objective, noise)
                again = replace(options, learning_rate=LEARNING_RATE_FACTOR * learning_rate)
            descents.append(descend(initial, stages, plain_loss, again, radius=radius, callback=report))
            best = min(descents, key=lambda descent: descent.loss)
    if given is not None:
        best = best._replace(start_loss=descents[0].start_loss)
    warn_on_failure(best.stopped, len(best.losses), learning_rate)
    settings = {"start": method, "restarts": restarts, "laplacian": laplacian, "edge_length": edge_length}
    shape = source.with_points(objective.from_internal(best.state))
    return make_fit(objective, shape, objective.directions, best, descents, options, settings)


def _start_method(start: object, target: object) -> str:
    if start is None:
        return "back-projection" if isinstance(target, TransformTarget) else "random"
    if start in get_args(Start):
        return str(start)
    raise ValueError(f"start must be a shape or one of {', '.join(get_args(Start))}, got {start!r}.")


def _initial_points(
    method: str, target: Shape | TransformTarget, objective: Objective, generator: torch.Generator | None
) -> Tensor:
    """Initial points, in the coordinates of the heights."""
    if method == "random":
        ball = uniform_in_ball(objective.num_points, len(objective.center), generator)
        return ball.to(objective.center) * (objective.largest_height / MARGIN)
    if not isinstance(target, TransformTarget):
        # At this scale the sigmoid rises within one step: almost the exact transform.
        sharp = objective.scales[-1]
        target = TransformTarget(objective.values(sharp), objective.directions, objective.thresholds, sharp)
    return back_project(target, objective.num_points, generator=generator).to(objective.center)


def _perturbed(points: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
    """Add noise: points that are stuck may escape, the others return."""
    noise = torch.randn(points.shape, generator=generator, device=generator.device).to(points)
    return points + PERTURBATION * objective.largest_height / MARGIN * noise


def _stage(source: Complex, objective: Objective, scale: float, regularization: Sequence[Term]) -> Stage:
    difference = objective.difference(scale)

    def loss(points: Tensor) -> Tensor:
        complex = source.with_points(points)
        value = difference(complex, objective.directions).square().mean()
        for term in regularization:
            value = value + term(complex)
        return value

    return Stage(scale, loss)


def _regularization(
    source: Complex, objective: Objective, scale: float, laplacian: float, edge_length: float, extra_loss: Term | None
) -> list[Term]:
    terms: list[Term] = []
    fade = objective.scales[0] / scale
    if laplacian:
        terms.append(lambda moved: fade * laplacian * laplacian_loss(moved))
    if edge_length:
        lengths = edge_lengths(source) / objective.radius
        terms.append(lambda moved: fade * edge_length * edge_length_loss(moved, lengths))
    if extra_loss is not None:
        terms.append(lambda moved: extra_loss(moved.with_points(objective.from_internal(moved.points))))
    return terms
