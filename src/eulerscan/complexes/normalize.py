"""Normalization: of coordinates before a transform, and of the transform afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from .._devices import has_float64
from .._torch_internals import is_forward_mode, is_recording, is_wrapped
from .._validation import check_choice
from ..kernels.layout import owners
from .packed import Packed

Normalize = Literal["unit_ball", "center", "vertices"]
"""``"unit_ball"`` centers a shape at its centroid and scales it to largest norm 1; ``"center"`` only centers it. The centroid
is that of the shape itself and does not depend on its mesh. ``"vertices"`` is the unit ball about the mean of the vertices."""

AT_ONCE = 1 << 18  # simplices
DEGENERATE = 1e-9  # measure of a shape of diameter 1 that is taken for 0
DivideBy = Literal["vertices", "simplices", "peak"]
"""The transform of a shape is divided by its number of vertices or simplices, or by its largest absolute value."""


def normalized(packed: Packed, batch: Tensor, simplices: Sequence[Tensor], normalize: Normalize) -> Tensor:
    """Coordinates ``[V, dim]``, each complex centered or in the unit ball. Batch and simplices as in :class:`Complex`."""
    check_choice(normalize, "normalize", get_args(Normalize), optional=True)
    dtype, offsets, count = packed.points.dtype, packed.offsets[0], packed.offsets.shape[1] - 1
    points = packed.points.to(torch.promote_types(dtype, torch.float32))  # differences in half precision may overflow
    points = relative(points, offsets, batch)
    centers = centroids(packed._replace(points=points), batch, simplices)
    points = points - centers.to(points.dtype)[batch]
    if normalize != "center":
        points = points / nonzero(largest_norms(points, batch, count))[batch, None]
    return points.to(dtype)


def centroids(packed: Packed, batch: Tensor, simplices: Sequence[Tensor]) -> Tensor:
    """``[B, dim]``: center of mass of each complex, in float64.

    The mass is that of the simplices of the largest dimension that have any: edges count by length, triangles and polygons by
    area, tetrahedra by volume; other cells do not count. Points, and complexes whose simplices are all degenerate, have the
    mean of their vertices. So refining a mesh does not move its centroid. Weights do not count.
    """
    if _can_compile(packed):
        from . import centroids as compiled

        return compiled.centroids(packed, simplices, DEGENERATE)
    points, offsets = packed.points, packed.offsets
    points = points.double() if has_float64(points.device) else points
    count = offsets.shape[1] - 1
    sums = points.new_zeros(count, points.shape[1]).index_add(0, batch, points)
    centers = sums / offsets[0].diff().clamp(min=1).unsqueeze(1)
    if not simplices:
        return centers
    # Coordinates of about 1, so that no power of them overflows or vanishes.
    size = nonzero(segment_max(points.detach().abs().amax(dim=1), batch, count))
    found, has_mass = mass_means(
        packed._replace(points=points / size[batch, None]), simplices, lambda corners: corners.mean(dim=0)
    )
    return torch.where(has_mass[:, None], size[:, None] * found, centers)


def relative(points: Tensor, offsets: Tensor, batch: Tensor) -> Tensor:
    """Coordinates relative to one of the points of the same complex: coincident points are exactly zero."""
    return points - points[offsets[batch]]


def mass_means(packed: Packed, simplices: Sequence[Tensor], mean: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Mean of a function over the mass of each complex, ``[B, ...]``, and whether the complex has mass, ``[B]``.

    The mass is that of :func:`centroids`. Coordinates should be of about 1.

    Args:
        mean: From the vertices ``[k + 1, n, dim]`` of simplices to the means over these, ``[n, ...]``.
    """
    points, offsets = packed.points, packed.offsets
    count, size = offsets.shape[1] - 1, mean(points[None, :0]).shape[1:]
    means, done = points.new_zeros(count, *size), torch.zeros(count, dtype=torch.bool, device=points.device)
    column = (count, *[1] * len(size))
    levels = [*zip(packed.kinds, simplices, offsets[1:], strict=True)]
    for dim in range(min(points.shape[1], max(dim for dim, _ in packed.kinds)), 0, -1):
        if points.is_cpu and not torch.compiler.is_compiling() and bool(done.all()):
            break
        mass, total = points.new_zeros(count), torch.zeros_like(means)
        for (its_dim, rows), columns, bounds in levels:
            if its_dim == dim and (rows == dim + 1 or dim == 2):
                its_mass, its_total = _masses(points, columns, bounds, dim, mean)
                mass, total = mass + its_mass, total + its_total
        usable = ~done & (mass > DEGENERATE)
        means = torch.where(usable.view(column), total / torch.where(usable, mass, 1.0).view(column), means)
        done = done | usable
    return means, done


def _masses(
    points: Tensor, columns: Tensor, bounds: Tensor, dim: int, mean: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Total measure ``[B]`` of the simplices or polygons of each complex, up to a factor, and the integral ``[B, ...]``."""
    count, size = len(bounds) - 1, mean(points[None, :0]).shape[1:]
    mass, total = points.new_zeros(count), points.new_zeros(count, *size)
    owner = owners(bounds, columns.shape[1])
    parts = [(columns, owner)]
    if not torch.compiler.is_compiling():  # in parts, to save memory
        parts = [*zip(columns.split(AT_ONCE, dim=1), owner.split(AT_ONCE), strict=True)]
    for part, own in parts:
        corners = points[part]
        if len(corners) == dim + 1:
            measure = measures(corners[1:] - corners[0])
            integral = measure.view(-1, *[1] * len(size)) * mean(corners)
        else:
            fan, signed, measure = _polygons(corners)
            integral = (signed.view(*signed.shape, *[1] * len(size)) * mean(fan.flatten(1, 2)).view(*signed.shape, *size)).sum(
                dim=0
            )
        mass, total = mass.index_add(0, own, measure), total.index_add(0, own, integral)
    return mass, total


def _polygons(corners: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Triangles ``[3, k - 2, n, dim]`` of polygons ``[k, n, dim]``, and twice the areas, ``[k - 2, n]`` and ``[n]``.

    Of the triangles of a fan, those outside of a polygon that is not convex count negative: by their part of its vector area.
    """
    edges, (i, j) = corners[1:] - corners[0], torch.triu_indices(corners.shape[2], corners.shape[2], 1, device=corners.device)
    one, two = edges[:-1], edges[1:]
    vectors = one[..., i] * two[..., j] - one[..., j] * two[..., i]
    whole = vectors.sum(dim=0)
    square = whole.square().sum(dim=1)
    area = torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), 0.0)  # the root has no derivative at 0
    fan = torch.stack([corners[:1].expand_as(one), corners[1:-1], corners[2:]])
    return fan, (vectors * whole).sum(dim=2) / nonzero(area), area


def measures(edges: Tensor) -> Tensor:
    """``[n]``: k! times the volume of the simplices with the edge vectors ``[k, n, dim]`` from one of their vertices."""
    # The last formula serves all cases, but factorizes a matrix for each simplex, which is slow.
    square: Tensor
    if len(edges) == 1:
        square = edges[0].square().sum(dim=1)
    elif edges.shape[::2] == (2, 2):
        return (edges[0, :, 0] * edges[1, :, 1] - edges[0, :, 1] * edges[1, :, 0]).abs()
    elif edges.shape[::2] == (2, 3):
        square = torch.linalg.cross(edges[0], edges[1]).square().sum(dim=1)
    elif edges.shape[::2] == (3, 3):
        volume: Tensor = (torch.linalg.cross(edges[0], edges[1]) * edges[2]).sum(dim=1).abs()
        return volume
    else:
        vectors = edges.transpose(0, 1)
        square = torch.linalg.det(vectors @ vectors.transpose(1, 2))
    positive = square > 0  # the square root has no derivative at 0
    return torch.where(positive, torch.where(positive, square, 1.0).sqrt(), 0.0)


def segment_max(values: Tensor, batch: Tensor, count: int) -> Tensor:
    """``[count]``: the largest of the non-negative values ``[V]`` in each segment, 0 for an empty one."""
    largest: Tensor = values.new_zeros(count).scatter_reduce(0, batch, values, "amax")
    return largest


def largest_norms(points: Tensor, batch: Tensor, count: int) -> Tensor:
    """``[count]``: the largest norm of the points ``[V, dim]`` in each segment, 0 for an empty one."""
    # Squares of very large or very small coordinates would overflow or vanish. A power of two adds no rounding. The logarithm
    # of the largest number may be rounded up to an exponent that the dtype does not have.
    most = math.frexp(torch.finfo(points.dtype).max)[1] - 1
    size = nonzero(points.detach().abs().amax(dim=1)).log2().floor().clamp(max=most).exp2()
    return segment_max(size * torch.linalg.vector_norm(points / size[:, None], dim=1), batch, count)


def nonzero(values: Tensor) -> Tensor:
    """The values, with 1 in place of 0, to divide by."""
    return torch.where(values > 0, values, 1.0)


def divisors(transform: Tensor, offsets: Tensor, divide_by: DivideBy) -> Tensor:
    """``[B]``: what each transform ``[B, ...]`` is divided by; 1 instead of 0. ``offsets [1 + L, B + 1]`` are the complex's."""
    if divide_by == "peak":
        return nonzero(transform.abs().flatten(1).amax(dim=1))
    sizes = offsets.diff(dim=1)
    return nonzero((sizes[0] if divide_by == "vertices" else sizes.sum(dim=0)).to(transform.dtype))


def divided(transform: Tensor, offsets: Tensor, divide_by: DivideBy | None) -> Tensor:
    """Divide the transform ``[B, ...]`` of each complex by its :func:`divisors`.

    >>> sizes = torch.tensor([[0, 2, 5]])  # two clouds, of 2 and of 3 points
    >>> divided(torch.tensor([[[0.0, 2.0]], [[0.0, 3.0]]]), sizes, "vertices").tolist()
    [[[0.0, 1.0]], [[0.0, 1.0]]]
    """
    if divide_by is None:
        return transform
    return transform / divisors(transform, offsets, divide_by).reshape(-1, *[1] * (transform.ndim - 1))


def _can_compile(packed: Packed) -> bool:
    """Whether the compiled loop serves: plain CPU tensors without gradients, and simplices of dimension 3 at most."""
    points = packed.points
    return (
        points.is_cpu
        and not torch.compiler.is_compiling()
        and not (points.requires_grad and torch.is_grad_enabled())
        and not is_wrapped(points)
        and not is_forward_mode()
        and not is_recording()
        and points.dtype in (torch.float32, torch.float64)
        and packed.dims is None
        and max(packed.rows, default=1) <= 4
        and points.shape[1] <= 3
    )
