"""Harmonics: orthonormal functions of a direction, on the circle and on the sphere, and coefficients of the transform.

Rotating a shape mixes only coefficients of the same degree, by an orthogonal matrix. So their norms do not change.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._devices import double
from .directions import quadrature, quadrature_size

GUARD = 20  # degrees of a quadrature beyond twice those in use, where a soft transform has died away
TOLERANCE = 2e-2  # of products of harmonics under the weights of a quadrature, in bfloat16


def harmonics(directions: Tensor, degree: int) -> Tensor:
    """Real harmonics of unit vectors, in float64: Fourier series in the plane, spherical harmonics in space.

    Column by column they are the harmonics of degree 0, then those of degree 1, and so on: in space 2 n + 1 of degree n, with
    order 0 first, in the plane two of each degree from 1. They are orthogonal, and the mean square of each one is 1.

    Args:
        directions: Unit vectors ``[T, 2]`` or ``[T, 3]``.
        degree: Largest degree L.

    Returns:
        ``[T, M]`` with M = 2 L + 1 in the plane and (L + 1)^2 in space.

    Example:
        >>> harmonics(torch.tensor([[0., 0., 1.]]), 1)  # 1, then the square root of 3 times z, x and y
        tensor([[1.0000, 1.7321, 0.0000, 0.0000]], dtype=torch.float64)
    """
    quadrature_size(degree, directions.shape[1])  # checks both
    x, y, *up = double(directions).T
    # Real and imaginary parts of (x + i y)^m, for m = 0, 1, ...
    real, imaginary = [torch.ones_like(x)], [torch.zeros_like(x)]
    for _ in range(degree):
        last, other = real[-1], imaginary[-1]
        real.append(x * last - y * other)
        imaginary.append(x * other + y * last)
    if not up:
        columns = [f for m in range(1, degree + 1) for f in (math.sqrt(2) * real[m], math.sqrt(2) * imaginary[m])]
        return torch.stack([real[0], *columns], dim=1)
    legendre = _legendre(up[0], degree)
    columns = []
    for n in range(degree + 1):
        columns.append(legendre[n, 0])
        columns += [f for m in range(1, n + 1) for f in (legendre[n, m] * real[m], legendre[n, m] * imaginary[m])]
    return torch.stack(columns, dim=1)


def degrees(degree: int, dim: int) -> Tensor:
    """``[M]``: the degree of each column of :func:`harmonics`.

    >>> degrees(2, 3)
    tensor([0, 1, 1, 1, 2, 2, 2, 2, 2])
    """
    counts = [1, *((2 if dim == 2 else 2 * n + 1) for n in range(1, degree + 1))]
    return torch.tensor([n for n, count in enumerate(counts) for _ in range(count)])


def quadrature_degree(num_directions: int, dim: int) -> int:
    """Smallest degree of a quadrature with at least this many directions."""
    quadrature_size(0, dim)  # checks it
    degree = max(0, num_directions - 1 if dim == 2 else math.isqrt(2 * num_directions) - 2)  # at most the answer
    while quadrature_size(degree, dim) < num_directions:
        degree += 1
    return degree


def projection(directions: Tensor, degree: int | None = None) -> Tensor:
    """``[M, T]``, in float64: the matrix that maps values in T directions to their coefficients.

    Args:
        directions: Those of :func:`directions.quadrature`, in their order, perhaps rotated together.
        degree: Largest degree; by default the largest whose harmonics are orthogonal under the quadrature.
    """
    count, dim = directions.shape
    exact = quadrature_degree(count, dim)
    degree = exact // 2 if degree is None else degree
    hint = f"Use directions.quadrature({2 * degree}{', dim=2' if dim == 2 else ''}).directions."
    if quadrature_size(exact, dim) != count:
        raise ValueError(f"directions must be those of a quadrature, got {count}, which no quadrature has. {hint}")
    if 2 * degree > exact:
        raise ValueError(f"directions must integrate degree {2 * degree} exactly, got {count} for degree {exact}. {hint}")
    values = harmonics(directions, degree)
    weighted = (values * quadrature(exact, dim, device=values.device, dtype=torch.float64).weights[:, None]).T
    if not values.is_meta:
        error = float((weighted @ values - torch.eye(len(weighted), device=values.device)).abs().max())
        if not error < TOLERANCE:
            raise ValueError(
                f"directions must be those of a quadrature, got {count} others: products of harmonics are wrong by "
                f"{error:.2g}. {hint}"
            )
    return weighted


def coefficients(transform: Tensor, directions: Tensor, degree: int | None = None) -> Tensor:
    """Coefficients of a transform ``[..., T, H]`` in the harmonics of direction: ``[..., M, H]``, as in :func:`harmonics`.

    The transform is the sum of harmonics times coefficients, up to what lies beyond ``degree``.

    Args:
        transform: Values in T directions, on the last axis but one.
        directions, degree: As in :func:`projection`.
    """
    if transform.ndim < 2 or transform.shape[-2] != len(directions):
        raise ValueError(
            f"transform must have shape [..., {len(directions)}, H], since there are {len(directions)} directions, "
            f"got {list(transform.shape)}."
        )
    if not transform.is_floating_point():  # the matrix has fractions
        transform = transform.to(torch.get_default_dtype())
    device = "cpu" if transform.is_meta else transform.device.type  # autocast does not know "meta"
    with torch.autocast(device, enabled=False):
        return projection(directions, degree).to(transform) @ transform


def _legendre(z: Tensor, degree: int) -> dict[tuple[int, int], Tensor]:
    """Associated Legendre functions of degree n and order m, without the factor sin^m, by the usual recurrence.

    Times the real or imaginary part of (x + i y)^m, their mean square over the sphere is 1.
    """
    found: dict[tuple[int, int], Tensor] = {}
    for m in range(degree + 1):
        found[m, m] = torch.ones_like(z) if m == 0 else found[m - 1, m - 1] * math.sqrt((2 * m + 1) / (2 * m if m > 1 else 1))
        for n in range(m + 1, degree + 1):
            found[n, m] = math.sqrt((4 * n * n - 1) / (n * n - m * m)) * z * found[n - 1, m]
            if n > m + 1:
                factor = math.sqrt((2 * n + 1) * ((n - 1) ** 2 - m * m) / ((2 * n - 3) * (n * n - m * m)))
                found[n, m] = found[n, m] - factor * found[n - 2, m]
    return found
