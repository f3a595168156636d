"""Rotation matrices of the plane and of space: uniform samples, principal axes and their alignment, small perturbations."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from . import directions as spheres
from ._validation import positive

PSI = 1.533751168755204288118041  # constant of Alexa, "Super-Fibonacci Spirals" (2022)
NUM_PERTURBATIONS = 16


def uniform(n: int, dim: int) -> Tensor:
    """``[n, dim, dim]``: evenly spaced rotations, the identity first. In space they follow a super-Fibonacci spiral."""
    if dim not in (2, 3):
        raise ValueError(f"dim must be 2 or 3, got {dim}.")
    index = torch.arange(positive(n, "n"), dtype=torch.float64)
    if dim == 2:
        return in_plane(index * (2 * math.pi / n))
    fraction = (index + 0.5) / n
    alpha, beta = (2 * math.pi * (index + 0.5) / step for step in (math.sqrt(2), PSI))
    inner, outer = fraction.sqrt(), (1 - fraction).sqrt()
    x, y, z, w = inner * alpha.sin(), inner * alpha.cos(), outer * beta.sin(), outer * beta.cos()  # unit quaternions
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        *(2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        *(2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    ]
    spiral = torch.stack(rows, dim=1).view(n, 3, 3)
    rotations: Tensor = spiral @ spiral[0].T
    return rotations


def in_plane(angles: Tensor) -> Tensor:
    """``[n, 2, 2]``: rotations of the plane, counterclockwise, by angles ``[n]`` in radians."""
    cosine, sine = angles.cos(), angles.sin()
    return torch.stack([cosine, -sine, sine, cosine], dim=1).view(-1, 2, 2)


def random(n: int, dim: int, generator: torch.Generator | None = None) -> Tensor:
    """``[n, dim, dim]``: uniformly random rotations, in float64.

    >>> random(5, 3).shape
    torch.Size([5, 3, 3])
    """
    # The orthogonal factor of a Gaussian matrix is uniform once its signs are fixed. A last sign makes it a rotation.
    q: Tensor
    q, r = torch.linalg.qr(torch.randn(n, dim, dim, generator=generator, dtype=torch.float64))
    q = q * r.diagonal(dim1=1, dim2=2).sign().unsqueeze(1)
    q[:, :, 0] *= torch.linalg.det(q).unsqueeze(1)
    return q


def spacing(n: int, dim: int) -> float:
    """Approximate angle between neighbors among ``n`` evenly spaced rotations."""
    return float(2 * math.pi / n ** (1 / (2 * dim - 3)))


def principal_axes(points: Tensor, batch: Tensor, num_complexes: int) -> tuple[Tensor, Tensor]:
    """Sums of squares ``[B, dim]`` along the principal axes, ascending, and the axes, columns of ``[B, dim, dim]``.

    Args:
        points: Vertices ``[V, dim]``, about the origin.
        batch: The complex of each vertex, ``[V]``.
        num_complexes: B.
    """
    products = points[:, :, None] * points[:, None, :]
    moments = products.new_zeros(num_complexes, *products.shape[1:]).index_add(0, batch, products)
    squares, axes = torch.linalg.eigh(moments)
    return squares, axes


def align_principal_axes(points: Tensor, others: Tensor, *, reflections: bool = False) -> Tensor:
    """``[R, dim, dim]``: rotations of ``others`` onto the principal axes of ``points``, one for each choice of signs."""
    axes, other_axes = (torch.linalg.eigh(x.T @ x).eigenvectors for x in (points, others))
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * points.shape[1]).to(axes)
    matrices: Tensor = (axes * signs[:, None, :]) @ other_axes.T
    return matrices if reflections else matrices[torch.linalg.det(matrices) > 0]


def select_distinct(rotations: Tensor, errors: Tensor, count: int, min_angle: float) -> list[int]:
    """Indices of the rotations with the smallest errors, no two closer than ``min_angle`` (non-maximum suppression)."""
    selected: list[int] = []
    min_norm = math.sqrt(8) * math.sin(min(min_angle, math.pi) / 2)  # of the difference of two matrices
    free = torch.ones(len(rotations), dtype=torch.bool)
    for index in errors.argsort(stable=True).tolist():
        if free[index]:
            selected.append(index)
            free &= (torch.linalg.matrix_norm(rotations - rotations[index]) >= min_norm).cpu()
        if len(selected) == count:
            break
    return selected


def perturb(rotations: Tensor, angles: Tensor, seed: int) -> Tensor:
    """``[R, NUM_PERTURBATIONS, dim, dim]``: each rotation followed by rotations by at most its angle, about random axes."""
    generators, fractions = (x.to(rotations) for x in _perturbations(rotations.shape[-1], seed))
    angle = (angles[:, None] * fractions)[..., None, None]
    identity = torch.eye(rotations.shape[-1]).to(rotations)
    # Rodrigues' formula.
    small = identity + angle.sin() * generators + (1 - angle.cos()) * (generators @ generators)
    perturbed: Tensor = small @ rotations[:, None]
    return perturbed


def _perturbations(dim: int, seed: int) -> tuple[Tensor, Tensor]:
    """Skew-symmetric generators ``[NUM_PERTURBATIONS, dim, dim]`` of rotations, and fractions of the angle."""
    if dim == 2:
        quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
        return quarter.expand(NUM_PERTURBATIONS, 2, 2), torch.linspace(-1, 1, NUM_PERTURBATIONS, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    x, y, z = spheres.random(NUM_PERTURBATIONS, 3, generator, dtype=torch.float64).T
    zero = torch.zeros_like(x)
    skew = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).view(-1, 3, 3)
    return skew, torch.linspace(1 / NUM_PERTURBATIONS, 1, NUM_PERTURBATIONS, dtype=torch.float64)
