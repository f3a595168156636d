"""Mean shapes, and shapes between them: a given outline or mesh, moved until its transform is the wanted one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..complexes import Complex, Shape, as_complex
from ..config import ECTConfig
from ..fitting import TransformTarget, fit_points
from .ordination import Ordination
from .stages import Stages

STEPS = 240
MAX_VERTICES = 3000  # of a shape that is fitted
EXTREMES = 2.0  # standard deviations from the mean along an axis
POOR = 1.2  # a fit this many times as far from the wanted transform as the nearest shape says little
EDGE_LENGTH = 0.05  # weight of the term that keeps the edges of a curve about as long as they are
BENDING = 0.1  # weight of the term that makes neighbors on a curve move alike: a grid of heights says little about one vertex


def fit_shape(values: Tensor, start: Shape, config: ECTConfig, *, steps: int = STEPS) -> Complex:
    """The shape with a given transform, such as the mean of several or one at a place between them.

    The vertices of ``start`` move, its simplices stay. A mean of transforms need not be the transform of any shape: the
    result is a shape with a similar one, to look at.

    Args:
        values: The wanted transform ``[T, H]``, or a mean of several. Of the exact transform (``config.variant="ect"``).
        start: A similar shape, with the wanted connectivity.
        config: How ``values`` were computed.
        steps: Number of steps of gradient descent.

    Returns:
        The fitted shape. It has the coordinates of the transform and is normalized as ``config`` says.

    Example:
        >>> angle = torch.arange(24) * (2 * torch.pi / 24)
        >>> from eulerscan.convert import from_outline
        >>> shapes = from_outline([torch.stack([angle.cos(), y * angle.sin()], dim=1) for y in (0.4, 0.5, 0.6, 0.7, 0.8)])
        >>> config = ECTConfig(num_directions=32, num_thresholds=32)
        >>> mean = fit_shape(config.transform(shapes).mean(dim=0), shapes[0], config)
        >>> 0.55 < mean.points[:, 1].max() < 0.65
        tensor(True)
    """
    if not config.is_plain:
        raise ValueError("config must be that of the transform itself, without variant, derivative and division.")
    template = as_complex(start).to(torch.float64).normalized(config.normalize)
    target = TransformTarget(values.double(), config.directions(template.dim), config.thresholds(), config.scale)
    curve = template.rows == (2,) and bool(template.simplices[0].numel())
    with warnings.catch_warnings():
        # A template that is as good as any fit of it is the answer.
        warnings.filterwarnings("ignore", "The fit did not improve", RuntimeWarning)
        return fit_points(
            target,
            start=template,
            steps=steps,
            restarts=1,
            edge_length=EDGE_LENGTH if curve else 0.0,
            extra_loss=_bending(template) if curve else None,
            progress=False,
        ).shape


def _bending(template: Complex) -> Callable[[Complex], Tensor]:
    """How differently neighbors move: distance of displacements from the mean of their neighbors, relative to edge lengths."""
    ends = torch.cat([template.simplices[0], template.simplices[0].flip(0)], dim=1).long()
    degree = torch.bincount(ends[0], minlength=len(template.points))
    length = (template.points[ends[0]] - template.points[ends[1]]).square().sum(dim=1).mean().clamp(min=1e-12)

    def bending(moved: Complex) -> Tensor:
        displacements = moved.points - template.points
        means = torch.zeros_like(displacements).index_add(0, ends[0], displacements[ends[1]]) / degree.clamp(min=1)[:, None]
        loss: Tensor = BENDING * (displacements - means)[degree > 0].square().sum(dim=1).mean() / length
        return loss

    return bending


class Extreme(NamedTuple):
    """A shape at a place of the plane of principal components."""

    axis: int
    deviations: float  # standard deviations from the mean
    shape: Complex
    poor: bool  # whether the fit is poor
    folded: int  # number of triangles that folded


def can_fit(shapes: Complex, config: ECTConfig) -> bool:
    """Whether mean shapes can be fitted, rather than the nearest shapes shown."""
    exact = config.is_plain and math.isinf(config.scale)
    return exact and shapes.weights is None and int(shapes.offsets[0].diff().max()) <= MAX_VERTICES


def group_means(
    shapes: Complex,
    transforms: Tensor,
    labels: Sequence[str],
    config: ECTConfig,
    fitted: bool,
    stages: Stages,
    done: Callable[[int], object],
) -> tuple[dict[str, Complex], list[str], dict[str, int]]:
    """The mean shape of each group, fitted or else the shape nearest to the mean transform.

    Also the groups with a poor fit, and the number of folded triangles of the groups that have any.
    """
    found: dict[str, Complex] = {}
    poor, folded = [], {}
    for label in sorted(set(labels)):
        members = [i for i, own in enumerate(labels) if own == label]
        mean = transforms[members].mean(dim=0)
        nearest = shapes[members[int((transforms[members] - mean).flatten(1).norm(dim=1).argmin())]]
        nearest = nearest.normalized(config.normalize)
        found[label] = _fitted(mean, nearest, config, stages, f"mean-{len(found)}") if fitted else nearest
        if fitted and is_poor(found[label], mean, transforms, config):
            poor.append(label)
        if number := num_folded(found[label], nearest):
            folded[label] = number
        done(1)
    return found, poor, folded


def is_poor(fit: Complex, target: Tensor, transforms: Tensor, config: ECTConfig) -> bool:
    """Whether a fit is farther from the wanted transform than the nearest shape is, and so says little."""
    away = float((config.transform(fit)[0] - target).norm())
    return away > POOR * float((transforms - target).flatten(1).norm(dim=1).min())


def num_folded(fit: Complex, start: Complex) -> int:
    """Number of triangles whose normal turned by more than 90° in a fit: there the surface folds over itself.

    >>> square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> halves = Complex(square, [torch.tensor([[0, 0], [1, 2], [2, 3]])])
    >>> corner_over_the_diagonal = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.8, 0.2]])
    >>> num_folded(halves.with_points(corner_over_the_diagonal), halves)
    1
    """
    before, after = (_normals(shape) for shape in (start, fit))
    return int(((before * after).sum(dim=1) < 0).sum())


def _normals(shape: Complex) -> Tensor:
    """``[n, 3]``: normals of the triangles, in the plane or in space."""
    first, second, third = pad(shape.points, (0, 3 - shape.dim))[shape.of_dim(2)]
    normals: Tensor = torch.linalg.cross(second - first, third - first)
    return normals


def extreme_shapes(
    shapes: Complex,
    transforms: Tensor,
    plane: Ordination,
    config: ECTConfig,
    stages: Stages,
    done: Callable[[int], object],
) -> list[Extreme]:
    """Shapes that are fitted to the transforms at the ends of the first two axes."""
    found: list[Extreme] = []
    for axis, deviations, place in _ends(plane):
        nearest = shapes[int((plane.scores - place).norm(dim=1).argmin())]
        target = plane.transform_at(place)
        fit = _fitted(target, nearest, config, stages, f"extreme-{axis}-{len(found)}")
        poor = is_poor(fit, target, transforms, config)
        found.append(Extreme(axis, deviations, fit, poor, num_folded(fit, nearest)))
        done(1)
    return found


def _ends(plane: Ordination) -> Iterator[tuple[int, float, Tensor]]:
    """The ends of the first two axes: the axis, standard deviations from the mean, and the scores of the place."""
    for axis in range(min(2, plane.scores.shape[1])):
        for deviations in (-EXTREMES, EXTREMES):
            place = torch.zeros(plane.scores.shape[1], dtype=plane.scores.dtype)
            place[axis] = deviations * plane.scores[:, axis].std()
            yield axis, deviations, place


def warped_shapes(
    shapes: Complex,
    transforms: Tensor,
    labels: Sequence[str],
    plane: Ordination,
    config: ECTConfig,
    stages: Stages,
    done: Callable[[int], object],
) -> dict[str, Complex]:
    """The shape nearest to the mean, fitted to the mean transform and from there to the others: first those that fit."""
    mean = transforms.mean(dim=0)
    nearest = shapes[int((transforms - mean).flatten(1).norm(dim=1).argmin())]
    base = _fitted(mean, nearest, config, stages, "warp")
    targets: dict[str, Tensor] = {}
    for label in sorted(set(labels)):
        targets[f"mean of {label}"] = transforms[[i for i, own in enumerate(labels) if own == label]].mean(dim=0)
    targets["mean of all shapes"] = mean
    for axis, deviations, place in _ends(plane):
        targets[f"axis {axis + 1}, {'−' if deviations < 0 else '+'}{EXTREMES:g} SD"] = plane.transform_at(place)
    good: dict[str, Complex] = {}
    marked: dict[str, Complex] = {}
    for number, (name, target) in enumerate(targets.items()):
        fit = base if target is mean else _fitted(target, base, config, stages, f"warp-{number}")
        marks = " (poor fit)" * is_poor(fit, target, transforms, config) + " (folded)" * bool(num_folded(fit, nearest))
        (marked if marks else good)[name + marks] = fit
        done(1)
    return good | marked


def _fitted(values: Tensor, start: Complex, config: ECTConfig, stages: Stages, name: str) -> Complex:
    template = start.normalized(config.normalize)
    points = stages(name, lambda: {"points": fit_shape(values, template, config).points.numpy()})["points"]
    return template.with_points(torch.from_numpy(points))
