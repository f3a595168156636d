"""Rotations of the plane and of space: spread evenly, from axes to axes, and around others."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from . import directions as spheres

PLASTIC = 1.533751168755204288118041  # of the spirals of Alexa, "Super-Fibonacci Spirals" (2022)
NEIGHBOURS = 16  # turns around a rotation


def spread(n: int, dim: int) -> Tensor:
    """``[n, dim, dim]``: rotations spread evenly, the identity first."""
    index = torch.arange(n, dtype=torch.float64)
    if dim == 2:
        angle = index * (2 * math.pi / n)
        return torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).view(n, 2, 2)
    share = (index + 0.5) / n
    first, second = (2 * math.pi * (index + 0.5) / step for step in (math.sqrt(2), PLASTIC))
    near, far = share.sqrt(), (1 - share).sqrt()
    x, y, z, w = near * first.sin(), near * first.cos(), far * second.sin(), far * second.cos()
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        *(2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        *(2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    ]
    even = torch.stack(rows, dim=1).view(n, 3, 3)
    turned: Tensor = even @ even[0].T
    return turned


def angle_apart(n: int, dim: int) -> float:
    """About the angle between neighbours among so many."""
    return float(2 * math.pi / n ** (1 / (2 * dim - 3)))


def principal(points: Tensor, others: Tensor, *, reflections: bool = False) -> Tensor:
    """Rotations that take the principal axes of the other points to those of the first, which point either way."""
    axes, turned = (torch.linalg.eigh(x.T @ x).eigenvectors for x in (points, others))
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * points.shape[1]).to(axes)
    rotations = (axes * signs[:, None, :]) @ turned.T
    chosen: Tensor = rotations if reflections else rotations[torch.linalg.det(rotations) > 0]
    return chosen


def different(rotations: Tensor, errors: Tensor, count: int, apart: float) -> list[int]:
    """The places of the best rotations, of which no two are closer than an angle: neighbours end in one place."""
    chosen: list[int] = []
    closest = math.sqrt(8) * math.sin(min(apart, math.pi) / 2)  # as the difference of two matrices
    free = torch.ones(len(rotations), dtype=torch.bool)
    for place in errors.argsort(stable=True).tolist():
        if free[place]:
            chosen.append(place)
            free &= (torch.linalg.matrix_norm(rotations - rotations[place]) >= closest).cpu()
        if len(chosen) == count:
            break
    return chosen


def nearby(rotations: Tensor, angles: Tensor, round: int) -> Tensor:
    """``[R, NEIGHBOURS, dim, dim]``: each of the rotations turned by its angle or less, in other ways in every round."""
    generators, sizes = (x.to(rotations) for x in _turns(round, rotations.shape[-1]))
    by = (angles[:, None] * sizes)[..., None, None]
    one = torch.eye(rotations.shape[-1]).to(rotations)
    turned: Tensor = (one + by.sin() * generators + (1 - by.cos()) * (generators @ generators)) @ rotations[:, None]
    return turned


def _turns(round: int, dim: int) -> tuple[Tensor, Tensor]:
    """Generators of turns by a unit angle ``[NEIGHBOURS, dim, dim]``, and by what part of an angle to turn."""
    if dim == 2:
        quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
        return quarter.expand(NEIGHBOURS, 2, 2), torch.linspace(-1, 1, NEIGHBOURS, dtype=torch.float64)
    generator = torch.Generator().manual_seed(round)
    x, y, z = spheres.random(NEIGHBOURS, 3, generator, dtype=torch.float64).T
    zero = torch.zeros_like(x)
    skew = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).view(-1, 3, 3)
    return skew, torch.linspace(1 / NEIGHBOURS, 1, NEIGHBOURS, dtype=torch.float64)
