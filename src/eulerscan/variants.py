"""Variants of the transform: smooth (SECT), weighted (WECT), superlevel, derivative, spectra, per-dimension channels.

Each takes the arguments of :func:`ect` and is differentiable where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from ._devices import double
from ._validation import integer
from .complexes import Complex, Shape, as_complex
from .complexes.complex import Extend
from .functional import check_grid, downward, ect
from .harmonics import coefficients, degrees

Variant = Literal["ect", "sect", "superlevel", "channels"]


def sect(shape: Shape, directions: Tensor, thresholds: Tensor, *, scale: float | Tensor = math.inf) -> Tensor:
    """Smooth Euler characteristic transform (SECT): each curve minus its mean, integrated over height.

    Entry ``[b, i, j]`` is the integral, from ``thresholds[0]`` to ``thresholds[j]``, of the curve of complex ``b`` in direction
    ``directions[i]`` minus its mean between the first and the last threshold. Curves are constant from one threshold to the
    next, and steps may differ in width. So the first and the last entry are zero, and the value at the last threshold does
    not count.

    If all heights of vertices are among the thresholds, this is the exact integral of the curve.

    Args:
        shape, directions, thresholds, scale: As in :func:`ect`.

    Returns:
        ``[B, T, H]``, in units of height.

    Example:
        >>> sect(torch.tensor([[0.]]), torch.tensor([[1.]]), torch.tensor([-1., 0., 1.]))
        tensor([[[ 0.0000, -0.5000,  0.0000]]])
    """
    return smoothed(ect(shape, directions, thresholds, scale=scale), thresholds)


def smoothed(curves: Tensor, thresholds: Tensor) -> Tensor:
    """Smooth transform of curves ``[..., H]``: each minus its mean, integrated over height, as in :func:`sect`."""
    if len(thresholds) < 2:
        return torch.zeros_like(curves)
    heights = double(thresholds)
    above_first = heights - heights[0]
    integrals = torch.nn.functional.pad((double(curves[..., :-1]) * above_first.diff()).cumsum(dim=-1), (1, 0))
    # Subtracting the mean at the end makes the last entry exactly zero.
    share = above_first / torch.where(above_first[-1] > 0, above_first[-1], 1.0)
    return (integrals - share * integrals[..., -1:]).to(curves)


def wect(
    shape: Shape,
    directions: Tensor,
    thresholds: Tensor,
    *,
    weights: Any = None,
    extend: Extend = "max",
    scale: float | Tensor = math.inf,
) -> Tensor:
    """Weighted Euler characteristic transform (WECT): every simplex counts with its weight.

    Entry ``[b, i, j]`` is the weight of the vertices minus that of the edges plus that of the triangles and so on, in the
    part of complex ``b`` at or below height ``thresholds[j]`` in direction ``directions[i]``.

    :func:`ect` gives the same for a weighted shape. This function also takes weights of the vertices, and raises an error
    if there are none.

    Args:
        shape, directions, thresholds, scale: As in :func:`ect`.
        weights: Of the vertices, ``[V]`` in the order of ``shape.points``, in place of those of the shape.
        extend: The weight of a simplex, given those of its vertices: their ``"max"``, as for images, their ``"min"`` or their
            ``"mean"``.

    Example:
        >>> edge = Complex(torch.tensor([[0.], [1.]]), [torch.tensor([[0], [1]])])
        >>> wect(edge, torch.tensor([[1.]]), torch.tensor([0., 1.]), weights=torch.tensor([2., 5.]))
        tensor([[[2., 2.]]])
    """
    complex = as_complex(shape)
    if weights is not None:
        complex = complex.with_weights(weights, extend)
    elif complex.weights is None:
        raise ValueError("weights must be given, [V], since the shape has none. For the unweighted transform use ect().")
    return ect(complex, directions, thresholds, scale=scale)


def superlevel(shape: Shape, directions: Tensor, thresholds: Tensor, *, scale: float | Tensor = math.inf) -> Tensor:
    """Superlevel Euler characteristic transform: the sweep goes downward.

    Entry ``[b, i, j]`` is the Euler characteristic of the part of complex ``b`` that lies at or above height
    ``thresholds[j]`` in direction ``directions[i]``: the simplices all of whose vertices do.

    Args:
        shape, directions, thresholds, scale: As in :func:`ect`.

    Example:
        >>> superlevel(torch.tensor([[0.], [1.]]), torch.tensor([[1.]]), torch.tensor([0., 0.5, 1., 2.]))
        tensor([[[2., 1., 1., 0.]]])
    """
    complex = as_complex(shape)
    check_grid(complex.points, directions, thresholds, complex.offsets)  # before they are negated
    return ect(complex, -directions, downward(thresholds), scale=scale).flip(-1)


def derivative(transform: Tensor) -> Tensor:
    """Difference of each curve from one threshold to the next.

    Entry ``[..., j]`` is the value at threshold ``j`` minus that at ``j - 1``; the first entry is the first value. A
    cumulative sum restores the curves.

    Args:
        transform: ``[B, T, H]``, or of any other shape with thresholds on the last axis.

    Example:
        >>> derivative(torch.tensor([[[1., 3., 2.]]]))
        tensor([[[ 1.,  2., -1.]]])
    """
    return torch.diff(transform, dim=-1, prepend=torch.zeros_like(transform[..., :1]))


def direction_spectrum(transform: Tensor) -> Tensor:
    """Magnitudes of the Fourier coefficients over the directions: features in the plane that do not change under rotation.

    Rotating a shape by the angle between directions shifts its curves by one position, which changes only the phases. Rotation
    by other angles changes the magnitudes little if there are enough directions. Mirror images have the same magnitudes.

    Args:
        transform: ``[B, T, H]`` in the T directions of :func:`directions.circle`, in their order. Center shapes first.

    Returns:
        ``[B, T // 2 + 1, H]``: entry ``[b, k, j]`` is that of frequency k at threshold ``j``, divided by the square root of T.

    Example:
        >>> from eulerscan import directions, thresholds
        >>> shape, grid = torch.tensor([[0.5, 0.1]]), (directions.circle(8), thresholds(9))
        >>> rotated = torch.tensor([[-0.1, 0.5]])  # by 90 degrees
        >>> torch.allclose(direction_spectrum(ect(shape, *grid)), direction_spectrum(ect(rotated, *grid)), atol=1e-6)
        True
    """
    if transform.ndim < 2:
        raise ValueError(f"transform must have shape [B, T, H], got {list(transform.shape)}.")
    if not transform.numel():  # an error of MKL
        return transform.new_zeros(*transform.shape[:-2], transform.shape[-2] // 2 + 1, transform.shape[-1])
    magnitudes: Tensor = torch.fft.rfft(transform, dim=-2, norm="ortho").abs()
    return magnitudes


def power_spectrum(transform: Tensor, directions: Tensor, *, degree: int | None = None, lag: int = 0) -> Tensor:
    """Power of the transform in the harmonics of each degree over directions, which does not change under rotation.

    Entry ``[b, n, j]`` is the sum, over the harmonics of degree n, of the squared coefficient at threshold ``j``. With a
    ``lag`` it is cross-power, between thresholds ``j`` and ``j + lag``. In the plane harmonics are a Fourier series, in space
    spherical harmonics (:mod:`eulerscan.harmonics`). The sum over degrees approaches the mean square over directions.

    Invariance is exact for a transform without harmonics beyond the degree of the quadrature. The exact transform has all
    of them; a smooth one, with a finite ``scale``, has few. A ``degree`` well below that of the quadrature keeps them away.
    Mirror images have the same power.

    Args:
        transform: ``[B, T, H]``, or of any other shape with directions and thresholds last. Center shapes first.
        directions: ``[T, dim]``, those of :func:`directions.quadrature`.
        degree: Largest degree L; by default half of the degree of the quadrature.
        lag: Number of thresholds from one factor to the other.

    Returns:
        ``[B, L + 1, H - lag]``.

    Example:
        >>> from eulerscan.directions import quadrature
        >>> grid = quadrature(16, dtype=torch.float64).directions, torch.linspace(-1, 1, 9, dtype=torch.float64)
        >>> shape, rotated = (torch.tensor([point], dtype=torch.float64) for point in ([0.5, 0.3, 0.1], [0.1, 0.5, 0.3]))
        >>> one, other = (power_spectrum(ect(points, *grid, scale=4.0), grid[0]) for points in (shape, rotated))
        >>> torch.allclose(one, other, rtol=1e-3, atol=1e-6)
        True
    """
    found = coefficients(transform, directions, degree)
    largest = max(0, found.shape[-1] - 1)
    lag = integer(lag, "lag", least=0)
    if lag > largest:
        raise ValueError(f"lag must be at most {largest}, got {lag}.")
    products = found[..., : found.shape[-1] - lag] * found[..., lag:]
    dim, count = directions.shape[1], products.shape[-2]
    degree = (count - 1) // 2 if dim == 2 else math.isqrt(count) - 1
    power = products.new_zeros(*products.shape[:-2], degree + 1, products.shape[-1])
    return power.index_add(-2, degrees(degree, dim).to(products.device), products)


def rotation_invariant(transform: Tensor, dim: int) -> Tensor:
    """What of transforms ``[B, T, H]`` does not change under rotation, up to the angle between directions.

    In the plane these are the magnitudes of the Fourier coefficients over directions (:func:`direction_spectrum`); in space
    the values at each height, sorted over directions.
    """
    return direction_spectrum(transform) if dim == 2 else transform.sort(dim=-2).values


def channels(
    shape: Shape,
    directions: Tensor,
    thresholds: Tensor,
    *,
    scale: float | Tensor = math.inf,
    max_dim: int | None = None,
) -> Tensor:
    """Per-dimension channels: vertices, edges, triangles and so on, each counted separately.

    Entry ``[b, k, i, j]`` is the number of k-simplices of complex ``b`` at or below height ``thresholds[j]`` in direction
    ``directions[i]``, or their weight. The sum over k with alternating signs is :func:`ect`.

    Args:
        shape, directions, thresholds, scale: As in :func:`ect`.
        max_dim: Dimension of the last channel, so that shapes with and without faces have equally many channels. By default
            the largest in the batch.

    Returns:
        ``[B, K, T, H]`` with ``K = max_dim + 1``.

    Example:
        >>> edge = Complex(torch.tensor([[0.], [1.]]), [torch.tensor([[0], [1]])])
        >>> channels(edge, torch.tensor([[1.]]), torch.tensor([0., 1.]))
        tensor([[[[1., 2.]],
        <BLANKLINE>
                 [[0., 1.]]]])
    """
    complex = as_complex(shape)
    largest = complex.max_dim
    last = max((0, *complex.dims)) if max_dim is None else integer(max_dim, "max_dim", least=0)
    if last < largest:
        raise ValueError(f"max_dim must be at least {largest}, since the shape has {largest}-simplices, got {max_dim}.")
    found = ect(_only(complex, 0), directions, thresholds, scale=scale)
    levels = [found, *[torch.zeros_like(found)] * last]
    for level, dim in enumerate(complex.dims, start=1):  # cells of one dimension may have several levels
        if not complex.counts[level]:  # of a shape that was selected from a mixed batch
            continue
        levels[dim] = levels[dim] + ect(_only(complex, level), directions, thresholds, scale=scale)
    return torch.stack(levels, dim=1)


def _only(complex: Complex, level: int) -> Complex:
    """The simplices of one level, with sign +1. Vertices of other levels keep their place but get weight 0."""
    counts, weights = complex.counts, complex.weights
    sign = -1 if level > 0 and complex.dims[level - 1] % 2 else 1
    own = sign * (complex.points.new_ones(counts[level]) if weights is None else weights[level])
    offsets = torch.zeros_like(complex.offsets)
    for kept in (0, level):  # not by a list of indices, which would be copied to the device
        offsets[kept] = complex.offsets[kept]
    empty = complex.packed.simplices[:0]
    simplices = empty if level == 0 else complex.simplices[level - 1].reshape(-1)
    packed = own if level == 0 else torch.cat([own.new_zeros(counts[0]), own])
    return Complex.from_packed(complex.packed._replace(offsets=offsets, simplices=simplices, weights=packed))


VARIANTS: Mapping[Variant, Callable[..., Tensor]] = {
    "ect": ect,
    "sect": sect,
    "superlevel": superlevel,
    "channels": channels,
}
"""By name, for configurations: each takes a shape, directions, thresholds and ``scale=``."""
