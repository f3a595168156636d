"""Random changes of shapes that leave their class alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..complexes import Complex


@dataclass(frozen=True)
class Augmentation:
    """What happens to every training shape anew in each epoch. All zeros: nothing.

    Args:
        rotate: Largest angle of a random rotation in degrees, in the plane of the first two coordinates: in space about the
            third axis.
        tumble: Whether to turn shapes by any rotation at all instead.
        stretch: Largest relative change of size: 0.1 scales by a factor from 0.9 to 1.1. Models that move shapes to the unit
            ball undo it.
        squeeze: The same for each axis by itself.
        jitter: Standard deviation of noise on every coordinate, relative to the largest norm of the shape's points.

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
        for name, value, most in (
            ("rotate", self.rotate, 180),
            ("stretch", self.stretch, 1),
            ("squeeze", self.squeeze, 1),
            ("jitter", self.jitter, math.inf),
        ):
            if not (0 <= value <= most and value < math.inf):
                raise ValueError(f"{name} must be between 0 and {most}, got {value}.")

    def __bool__(self) -> bool:
        return self != Augmentation()

    def __call__(self, complex: Complex, generator: torch.Generator) -> Complex:
        """Each complex changed by itself."""
        points, batch = complex.points, complex.batch
        if self.tumble or self.rotate:
            count, dim = complex.num_complexes, complex.dim
            turns = (
                rotations(count, dim, generator) if self.tumble else _about_the_third_axis(count, dim, self.rotate, generator)
            )
            turns = turns.to(points)
            points = (turns[batch] @ points.unsqueeze(-1)).squeeze(-1)
        for most, axes in ((self.stretch, 1), (self.squeeze, complex.dim)):
            if most:
                factors = 1 + most * (2 * torch.rand(complex.num_complexes, axes, generator=generator) - 1)
                points = points * factors.to(points)[batch]
        if self.jitter:
            size = complex.with_points(points).largest_norms()
            noise = torch.randn(points.shape, generator=generator).to(points)
            points = points + self.jitter * size[batch, None] * noise
        return complex.with_points(points)


def rotations(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """``[count, dim, dim]``: rotations, all equally likely, in float64."""
    # The orthogonal factor of Gaussian matrices is uniform once its signs are; a last sign makes it a rotation.
    q: Tensor
    q, r = torch.linalg.qr(torch.randn(count, dim, dim, generator=generator, dtype=torch.float64))
    q = q * r.diagonal(dim1=1, dim2=2).sign().unsqueeze(1)
    q[:, :, 0] *= torch.linalg.det(q).unsqueeze(1)
    return q


def _about_the_third_axis(count: int, dim: int, most: float, generator: torch.Generator) -> Tensor:
    """``[count, dim, dim]``: rotations in the plane of the first two axes, by at most so many degrees."""
    turns = torch.eye(dim).repeat(count, 1, 1)
    if dim > 1:
        angle = math.radians(most) * (2 * torch.rand(count, generator=generator) - 1)
        turns[:, 0, 0] = turns[:, 1, 1] = angle.cos()
        turns[:, 1, 0] = angle.sin()
        turns[:, 0, 1] = -angle.sin()
    return turns
