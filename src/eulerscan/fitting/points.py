"""Fit points, or the vertices of a shape, until their transform is the wanted one."""

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
from .descent import Descent, MakeOptimiser, Optimiser, Stage, descend, warn_of
from .inverse import Transform, back_project, uniform_in_ball
from .objective import Goal, for_points, one_complex
from .result import Fit, found

Start = Literal["random", "back-projection"]
Term = Callable[[Complex], Tensor]

KICK = 0.06  # of the radius
LONGER = 2.5  # times the learning rate, after a kick
ENOUGH = 0.001  # of the first loss


def fit_points(
    target: Shape | Transform,
    *,
    num_points: int | None = None,
    start: Shape | Start | None = None,
    directions: Tensor | None = None,
    num_directions: int | None = None,
    num_thresholds: int = 64,
    scales: Sequence[float] | None = None,
    steps: int = 600,
    learning_rate: float | None = None,
    optimiser: Optimiser | MakeOptimiser = "adam",
    restarts: int | None = None,
    tolerance: float = 0.0,
    laplacian: float | None = None,
    edge_length: float = 0.0,
    extra_loss: Callable[[Complex], Tensor] | None = None,
    progress: bool = True,
    callback: Callable[[int, float, Complex], object] | None = None,
    generator: torch.Generator | None = None,
) -> Fit:
    """Move points until their transform is that of the target.

    A cloud is fitted to the vertices of the target, with as many points or fewer or more: each transform is divided by the
    number of its points. Where ``start`` is a graph or mesh its connectivity stays, its vertices move, and the target's
    simplices count too.

    The defaults were chosen by trials; ``benchmarks/fitting.py`` measures what they reach. *Scales*: at 8 a point is drawn
    over half of the ball, so that the end does not depend on the start, but details are blurred; at four divided by the
    step of the grid a sigmoid rises within one step, the finest that the grid can tell apart; there are four stages from
    one to the other.
    *Learning rate*: a tenth of that rise (0.05 at scale 8) for clouds, a fiftieth for graphs and meshes, whose gradient jumps
    where vertices change their order. *Laplacian*: without it a mesh reaches the wanted transform by folding; 0.01 keeps it
    smooth, and fades as the scale rises, so that corners are not rounded in the end. *Restarts*: clouds and meshes need none.
    Single vertices of a graph can be caught in a wrong place; moving all of them at random sets those free.

    Args:
        target: One shape, or a :class:`Transform` where only that is known.
        num_points: Of the cloud; as many as the target has by default.
        start: A shape to begin with; ``"random"``, uniform in the ball, the default; or ``"back-projection"``, the
            default for a :class:`Transform` (:func:`inverse.back_project`).
        directions: To look from, ``[T, dim]``; by default ``num_directions`` evenly spread ones, over half of the sphere for
            clouds, of which opposite directions see the same, and over all of it for graphs and meshes.
        num_directions: 64 in the plane, 128 in space by default.
        num_thresholds: H. More of them see finer details.
        scales: From soft to sharp, for coordinates in the unit ball (of a :class:`Transform`: as they are).
        steps: In all. Every scale has an equal part.
        learning_rate: Length of a step, relative to the height ``4 / scale`` over which the sigmoid rises.
        optimiser: ``"adam"``, ``"lbfgs"``, or a function of parameters and ``lr`` that returns an optimiser.
        restarts: How many starts to try. The end with the smallest loss is kept. Where ``start`` is a shape, every further
            start is the best end so far, its points moved at random by about 0.06 of the radius, from where steps are longer;
            none follows once the loss is a thousandth of what it was. By default 1; up to 10 where ``start`` has simplices and
            there are no extra terms.
        tolerance: A stage ends where the loss is this small.
        laplacian: Weight of :func:`losses.laplacian_loss`; by default 0.01 where ``start`` has triangles, else 0. Times the
            first scale over the present one.
        edge_length: Weight of :func:`losses.edge_length_loss` for the edges as they are in ``start``; fades like ``laplacian``.
        extra_loss: Any other loss of the fitted complex, in the coordinates of the target. Does not fade.
        progress: Whether to show a bar, on a terminal and if tqdm is installed.
        callback: Called with the step, its loss, and the complex after it.
        generator: Where random starts come from, and the moves at random of a given one; by default torch's own for the
            former, and one with seed 0 for the latter, so that a fit from a given start is always the same.

    Example:
        >>> circle = torch.nn.functional.normalize(torch.randn(100, 2), dim=1)
        >>> fit = fit_points(circle, num_points=50, steps=80, num_thresholds=32)
        >>> fit.shape
        Complex(num_complexes=1, dim=2, points=50)
        >>> fit.loss < 0.01 * fit.start_loss
        True
    """
    given = None if start is None or isinstance(start, str) else one_complex(start, "start")
    goal = for_points(
        target,
        given,
        num_points=num_points,
        directions=directions,
        num_directions=num_directions,
        num_thresholds=num_thresholds,
        scales=scales,
    )
    where = "given" if given is not None else _where_to_start(start, target)
    begin = _start(where, target, goal, generator) if given is None else goal.inward(given.points)
    source = Complex(begin) if given is None else given.to(goal.centre.dtype)
    learning_rate = (0.02 if source.rows else 0.1) if learning_rate is None else learning_rate
    laplacian = (0.01 if 3 in source.rows else 0.0) if laplacian is None else laplacian
    plain_loss = not (laplacian or edge_length or extra_loss)
    restarts = positive((10 if source.rows and plain_loss else 1) if restarts is None else restarts, "restarts")
    how = Descent(steps, learning_rate, optimiser, tolerance)
    stages = [
        _points_stage(source, goal, scale, _extra_terms(source, goal, scale, laplacian, edge_length, extra_loss))
        for scale in goal.scales
    ]
    plain = _points_stage(source, goal, goal.scales[-1], []).loss
    with closing(progress_bar(steps * restarts, "fitting points", hidden=not progress)) as bar:

        def report(step: int, loss: float, points: Tensor) -> None:
            bar.set_postfix_str(f"loss {loss:.2e}")
            bar.update()
            if callback is not None:
                callback(step, loss, source.with_points(goal.outward(points)))

        kicks = generator or torch.Generator().manual_seed(0)
        best = descend(begin, stages, plain, how, reach=goal.reach, report=report)
        courses, enough = [best], max(tolerance, ENOUGH * best.start_loss)
        while len(courses) < restarts and (given is None or best.loss > enough):
            begin = _start(where, target, goal, generator) if given is None else _kicked(best.state, goal, kicks)
            again = how if given is None else replace(how, learning_rate=LONGER * learning_rate)
            courses.append(descend(begin, stages, plain, again, reach=goal.reach, report=report))
            best = min(courses, key=lambda course: course.loss)
    if given is not None:
        best = best._replace(start_loss=courses[0].start_loss)
    warn_of(best.stopped, len(best.losses), how)
    settings = {"start": where, "restarts": restarts, "laplacian": laplacian, "edge_length": edge_length}
    return found(goal, source.with_points(goal.outward(best.state)), goal.directions, best, courses, how, settings)


def _where_to_start(start: object, target: object) -> str:
    if start is None:
        return "back-projection" if isinstance(target, Transform) else "random"
    if start in get_args(Start):
        return str(start)
    raise ValueError(f"start must be a shape or one of {', '.join(get_args(Start))}, got {start!r}.")


def _start(where: str, target: Shape | Transform, goal: Goal, generator: torch.Generator | None) -> Tensor:
    """Points to begin with, in the coordinates of the heights."""
    if where == "random":
        ball = uniform_in_ball(goal.num_points, len(goal.centre), generator)
        return ball.to(goal.centre) * (goal.reach / MARGIN)
    if not isinstance(target, Transform):
        # Blurred less than a step, as good as exact.
        sharp = goal.scales[-1]
        target = Transform(goal.values(sharp), goal.directions, goal.thresholds, sharp)
    return back_project(target, goal.num_points, generator=generator).to(goal.centre)


def _kicked(points: Tensor, goal: Goal, generator: torch.Generator) -> Tensor:
    """The points moved at random: those that are caught in a wrong place find another way, the others come back."""
    kick = torch.randn(points.shape, generator=generator, device=generator.device).to(points)
    return points + KICK * goal.reach / MARGIN * kick


def _points_stage(source: Complex, goal: Goal, scale: float, terms: Sequence[Term]) -> Stage:
    difference = goal.difference(scale)

    def loss(points: Tensor) -> Tensor:
        complex = source.with_points(points)
        value = difference(complex, goal.directions).square().mean()
        for term in terms:
            value = value + term(complex)
        return value

    return Stage(scale, loss)


def _extra_terms(
    source: Complex, goal: Goal, scale: float, laplacian: float, edge_length: float, extra_loss: Term | None
) -> list[Term]:
    terms: list[Term] = []
    fade = goal.scales[0] / scale
    if laplacian:
        terms.append(lambda moved: fade * laplacian * laplacian_loss(moved))
    if edge_length:
        lengths = edge_lengths(source) / goal.radius
        terms.append(lambda moved: fade * edge_length * edge_length_loss(moved, lengths))
    if extra_loss is not None:
        terms.append(lambda moved: extra_loss(moved.with_points(goal.outward(moved.points))))
    return terms
