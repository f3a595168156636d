"""Data augmentation: random changes of shapes that keep their class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import rotations
from .._validation import check_bool, number, plain, set_fields
from ..complexes import Complex


@dataclass(frozen=True)
class Augmentation:
    """Random changes of every training shape, different in each epoch. The default is no change.

    Args:
        rotate: Largest angle of a random rotation in degrees, in the plane of the first two coordinates. In space, that is
            around the third axis.
        tumble: Rotate shapes by uniformly random rotations instead.
        stretch: Largest relative change of size: 0.1 scales by a factor from 0.9 to 1.1. Models that normalize shapes to the
            unit ball undo it.
        squeeze: The same for each axis separately.
        jitter: Standard deviation of Gaussian noise on every coordinate, relative to the largest distance of the shape's points
            from its centroid.

    Example:
        >>> square = Complex(torch.tensor([[0., 0], [1, 0], [1, 1], [0, 1]]))
        >>> Augmentation(rotate=180)(square, torch.Generator().manual_seed(0)).points.shape
        torch.Size([4, 2])
    """

    rotate: float = 0.0
    tumble: bool = False
    stretch: float = 0.0
    squeeze: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        set_fields(self, **plain(vars(self)))
        check_bool(self.tumble, "tumble")
        for name, most in (("rotate", 180), ("stretch", 1), ("squeeze", 1), ("jitter", math.inf)):
            value = number(getattr(self, name), name)
            if not (0 <= value <= most and value < math.inf):
                raise ValueError(f"{name} must be between 0 and {most}, got {value}.")

    def __bool__(self) -> bool:
        return self != Augmentation()

    def __str__(self) -> str:
        """Only what is changed.

        >>> str(Augmentation(rotate=10, jitter=0.01))
        'rotate 10, jitter 0.01'
        >>> str(Augmentation())
        'none'
        """
        changes = {name: value for name, value in vars(self).items() if value}
        return ", ".join(name if value is True else f"{name} {value:g}" for name, value in changes.items()) or "none"

    def __call__(self, complex: Complex, generator: torch.Generator) -> Complex:
        """Augment each complex of a batch independently."""
        points, batch, count, dim = complex.points, complex.batch, complex.num_complexes, complex.dim
        if self.tumble or self.rotate:
            if self.tumble:
                matrices = rotations.random(count, dim, generator)
            else:
                matrices = _in_the_first_plane(count, dim, self.rotate, generator)
            points = (matrices.to(points)[batch] @ points.unsqueeze(-1)).squeeze(-1)
        for most, axes in ((self.stretch, 1), (self.squeeze, dim)):
            if most:
                factors = 1 + most * (2 * torch.rand(count, axes, generator=generator) - 1)
                points = points * factors.to(points)[batch]
        if self.jitter:
            size = complex.with_points(points).normalized("center").largest_norms()
            noise = torch.randn(points.shape, generator=generator).to(points)
            points = points + self.jitter * size[batch, None] * noise
        return complex.with_points(points)


def _in_the_first_plane(count: int, dim: int, most: float, generator: torch.Generator) -> Tensor:
    """``[count, dim, dim]``: random rotations in the plane of the first two axes, by at most ``most`` degrees."""
    matrices = torch.eye(dim).repeat(count, 1, 1)
    if dim > 1:
        angle = math.radians(most) * (2 * torch.rand(count, generator=generator) - 1)
        matrices[:, :2, :2] = rotations.in_plane(angle)
    return matrices
