"""Directions of the transform: unit vectors ``[n, dim]``, one per row."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ._validation import integer, positive

GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def circle(n: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """``n`` directions in the plane at equal angles, counterclockwise from (1, 0).

    Axes and diagonals are exact: lattice points at the same height stay at the same height.

    >>> circle(4)
    tensor([[ 1.,  0.],
            [ 0.,  1.],
            [-1.,  0.],
            [ 0., -1.]])
    """
    quarters = 4 * torch.arange(positive(n, "n"))
    return torch.stack([_cosine(quarters, n), _cosine(quarters - n, n)], dim=1).to(device=device, dtype=_dtype(dtype))


def fibonacci(n: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """``n`` evenly spaced directions in space, along a Fibonacci spiral from pole to pole."""
    index = torch.arange(positive(n, "n"), dtype=torch.float64)
    z = 1 - (2 * index + 1) / n
    radius, angle = (1 - z.square()).sqrt(), GOLDEN_ANGLE * index
    spiral = torch.stack([radius * angle.cos(), radius * angle.sin(), z], dim=1)
    return spiral.to(device=device, dtype=_dtype(dtype))


def loop(n: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """``n`` directions in space along a closed curve that circles the sphere once and rises and falls three times.

    Consecutive directions are close on the sphere, the last and the first included, as a convolution over directions needs.
    The poles are not covered.
    """
    angle = torch.arange(positive(n, "n"), dtype=torch.float64) * (2 * math.pi / n)
    curve = torch.stack([angle.cos(), angle.sin(), 0.7 * (3 * angle).sin()], dim=1)
    return _unit(curve).to(device=device, dtype=_dtype(dtype))


def rings(n: int, num_rings: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """``n`` directions in space on rings around the third axis, ring by ring, evenly spaced from the equator to the pole.

    Rotating a shape about the third axis by the angle between neighbors shifts the curves of every ring by one position, so
    a convolution along the rings is equivariant. No two directions are opposite, as in :func:`half_sphere`.

    >>> rings(8, 2)[::2].round(decimals=2)
    tensor([[ 0.9200,  0.0000,  0.3800],
            [-0.9200,  0.0000,  0.3800],
            [ 0.3800,  0.0000,  0.9200],
            [-0.3800,  0.0000,  0.9200]])
    """
    if positive(n, "n") % positive(num_rings, "num_rings"):
        raise ValueError(f"n must be a multiple of num_rings, {num_rings}, got {n}.")
    around = circle(n // num_rings, dtype=torch.float64)
    elevation = (torch.arange(num_rings, dtype=torch.float64) + 0.5) * (math.pi / 2 / num_rings)
    flat = elevation.cos()[:, None, None] * around
    up = elevation.sin()[:, None, None].expand(-1, len(around), 1)
    return torch.cat([flat, up], dim=2).flatten(0, 1).to(device=device, dtype=_dtype(dtype))


def random(
    n: int,
    dim: int,
    generator: torch.Generator | None = None,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """``n`` independent random directions, uniform on the sphere."""
    normal = torch.randn(positive(n, "n"), positive(dim, "dim"), generator=generator, dtype=torch.float64)
    return _unit(normal).to(device=device, dtype=_dtype(dtype))


def uniform(n: int, dim: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """``n`` evenly spaced directions in any dimension, deterministic.

    In dimension 1 they alternate between 1 and -1; in the plane they are :func:`circle`, in space :func:`fibonacci`, in higher
    dimensions a low-discrepancy sequence.
    """
    if positive(dim, "dim") == 1:
        line = 1 - 2 * (torch.arange(positive(n, "n")) % 2)
        return line[:, None].to(device=device, dtype=_dtype(dtype))
    if dim == 2:
        return circle(n, device=device, dtype=dtype)
    if dim == 3:
        return fibonacci(n, device=device, dtype=dtype)
    return _low_discrepancy(n, dim).to(device=device, dtype=_dtype(dtype))


def half_sphere(n: int, dim: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> Tensor:
    """``n`` directions on one half of the sphere, no two of them opposite.

    Opposite directions see the same heights with the sign flipped, so half of the sphere is often enough.
    """
    if dim == 2:
        return circle(2 * positive(n, "n"), device=device, dtype=dtype)[:n]
    if dim == 3:
        return fibonacci(2 * positive(n, "n"), device=device, dtype=dtype)[:n]
    half = uniform(n, dim, dtype=torch.float64)
    return torch.where(half[:, -1:] < 0, -half, half).to(device=device, dtype=_dtype(dtype))


class Quadrature(NamedTuple):
    """Directions ``[T, dim]`` and their weights ``[T]``, which are positive and have sum 1. See :func:`quadrature`."""

    directions: Tensor
    weights: Tensor


def quadrature(
    degree: int, dim: int = 3, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> Quadrature:
    """Directions with weights that integrate exactly: the weighted sum of a polynomial of this degree is its mean.

    In space, the directions lie on rings whose heights are the nodes of Gauss and Legendre, ``degree // 2 + 1`` rings of
    ``degree + 1`` directions. In the plane they are ``circle(degree + 1)``, with equal weights.

    Coefficients of harmonics up to degree L are integrals of degree 2 L or more: see :func:`eulerscan.variants.power_spectrum`.

    Args:
        degree: Largest degree that is integrated exactly, 0 or more.
        dim: 2 or 3.

    Example:
        >>> directions, weights = quadrature(4, dtype=torch.float64)
        >>> directions.shape
        torch.Size([15, 3])
        >>> weights @ directions[:, 0] ** 4  # the mean of x ** 4 over the sphere is 1 / 5
        tensor(0.2000, dtype=torch.float64)
    """
    count = quadrature_size(degree, dim)
    like: dict[str, Any] = {"device": torch.get_default_device() if device is None else device, "dtype": _dtype(dtype)}
    with torch.device("cpu"):  # where the nodes are
        if dim == 2:
            return Quadrature(circle(count, **like), torch.full((count,), 1 / count, **like))
        num_rings, per_ring = degree // 2 + 1, degree + 1
        nodes = np.polynomial.legendre.leggauss(num_rings)
        up, weights = (torch.from_numpy(values).repeat_interleave(per_ring) for values in nodes)
        around = circle(per_ring, dtype=torch.float64).repeat(num_rings, 1)
        rings = torch.cat([(1 - up.square()).sqrt()[:, None] * around, up[:, None]], dim=1)
        return Quadrature(rings.to(**like), (weights / weights.sum()).to(**like))


def quadrature_size(degree: int, dim: int = 3) -> int:
    """Number of directions of :func:`quadrature`."""
    degree = integer(degree, "degree", least=0)
    if dim not in (2, 3):
        raise ValueError(f"dim must be 2 or 3 for a quadrature, got {dim}.")
    return degree + 1 if dim == 2 else (degree // 2 + 1) * (degree + 1)


def _cosine(quarters: Tensor, n: int) -> Tensor:
    """Cosine of ``quarters / n`` right angles. Reduced in integers: symmetric angles give the same bits."""
    quarters = quarters % (4 * n)
    quarters = torch.minimum(quarters, 4 * n - quarters)  # cos(-x) = cos(x)
    negative = quarters > n
    quarters = torch.where(negative, 2 * n - quarters, quarters)  # cos(pi - x) = -cos(x)
    # Beyond 45 degrees the sine is more accurate; at 45 degrees both must agree.
    angle = torch.minimum(quarters, n - quarters).double() * (math.pi / (2 * n))
    value = torch.where(2 * quarters > n, angle.sin(), angle.cos())
    value = torch.where(2 * quarters == n, math.sqrt(0.5), value)
    return torch.where(negative, -value, value)


def _low_discrepancy(n: int, dim: int) -> Tensor:
    """Additive recurrence in the unit cube, mapped to the sphere through normal quantiles."""
    root = 2.0
    for _ in range(64):  # the positive solution of root ** (dim + 1) == root + 1
        root = (1 + root) ** (1 / (dim + 1))
    steps = root ** -torch.arange(1, dim + 1, dtype=torch.float64)
    cube = (0.5 + torch.arange(1, positive(n, "n") + 1, dtype=torch.float64)[:, None] * steps) % 1
    return _unit(torch.special.ndtri(cube.clamp(1e-12, 1 - 1e-12)))


def _unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=1)


def _dtype(dtype: torch.dtype | None) -> torch.dtype:
    return dtype or torch.get_default_dtype()
