"""Mean shapes: a given outline or mesh, moved until its transform is the wanted one."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from ..complexes import Complex, Shape, as_complex
from ..config import ECTConfig
from ..fitting import TransformTarget, fit_points

STEPS = 240
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
    if config.variant != "ect" or config.derivative or config.divide_by is not None:
        raise ValueError("config must be that of the transform itself, without variant, derivative and division.")
    template = as_complex(start).to(torch.float64)
    if config.normalize is not None:
        template = template.normalized(config.normalize)
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
