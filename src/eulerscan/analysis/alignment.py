"""Distances up to rotation, and the rotation that aligns one shape with another.

The transform of a rotated shape is that of the original in directions rotated back. So a shape is transformed once on a fine
grid of directions, and the distance after any rotation is looked up there, up to the spacing of the grid. The best rotations
found this way are refined with exact transforms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from .. import directions as spheres
from .. import rotations
from .._validation import positive
from ..complexes import Complex, Shape, as_complex
from ..functional import ect
from ..grid import thresholds as even_thresholds
from .distances import check_p, check_pair, distance, distance_matrix, num_pairs, pairwise_lp, scaled

__all__ = ["Alignment", "CachedTransforms", "align", "circular_distance", "rotation_distance"]

CANDIDATES, STARTS, ROUNDS = 512, 8, 32
LOOKUP_DIRECTIONS = 4096  # approximately
LOOKUP_STARTS = 8  # rotations refined by lookup for each one refined with exact transforms
MIN_ANGLE = 2.0**-12  # of the last perturbations, relative to the spacing of the lookup grid
CHUNK = 512  # rotations at a time


class Alignment(NamedTuple):
    """The best rotation that was found.

    Attributes:
        distance: Of the transforms after the rotation.
        rotation: ``[dim, dim]``: ``b.points @ rotation.T`` is closest to ``a``.
    """

    distance: float
    rotation: Tensor


def circular_distance(
    a: Tensor, b: Tensor, thresholds: Tensor | None = None, *, p: float = 2, reflections: bool = False
) -> Tensor:
    """Distances ``[B]`` of transforms in the plane up to rotation by multiples of the angle between directions.

    Rotating a shape by that angle shifts its curves by one position, so all shifts are compared. The distance of a shape to
    itself, rotated by any number of steps, is zero. It is symmetric and never larger than :func:`distance`, to the last bit.

    Args:
        a, b: ``[B, T, H]`` in the T directions of :func:`directions.circle`, in their order; one may have a single complex.
            Shapes are rotated about the origin, so center them first (``Complex.normalized``).
        thresholds, p: As in :func:`distance`.
        reflections: Whether to compare mirror images as well.

    Example:
        >>> import eulerscan as es
        >>> shape, grid = torch.tensor([[0.5, 0.1]]), (es.directions.circle(4), es.thresholds(9))
        >>> rotated = torch.tensor([[-0.1, 0.5]])  # by 90 degrees
        >>> circular_distance(es.ect(shape, *grid), es.ect(rotated, *grid))
        tensor([0.])
    """
    check_pair(a, b)
    if a.ndim != 3:
        raise ValueError(f"transforms must have shape [B, T, H], got {list(a.shape)}.")
    count, size = num_pairs(len(a), len(b)), a.shape[1]
    curves, others = (scaled(x.flatten(0, 1).unsqueeze(1), thresholds, p).view(len(x), size, -1) for x in (a, b))
    index = torch.arange(size, device=a.device)
    shifts = [index + index[:, None]] + ([index[:, None] - index] if reflections else [])
    partner = torch.cat(shifts) % max(1, size)  # [shifts, T]
    found = []
    for i in range(count):
        gaps = pairwise_lp(*_ordered(curves[i % len(curves)], others[i % len(others)]), p)  # [T, T]
        shifted = gaps[index, partner]
        if math.isinf(p):
            found.append(shifted.amax(dim=1).min())
        else:
            found.append(torch.linalg.vector_norm(shifted, ord=p, dim=1).min() / size ** (1 / p))
    if not found:
        return a.new_zeros(0)
    plain = distance(a.double(), b.double(), thresholds, p=p)  # rounding may put the same sum above it
    return torch.minimum(torch.stack(found), plain).to(torch.promote_types(a.dtype, b.dtype))


def _ordered(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors of equal shape in lexicographic order, so that rounding and the search do not depend on their names."""
    differs = (a != b).flatten().nonzero()
    swapped = len(differs) > 0 and bool(a.flatten()[differs[0]] > b.flatten()[differs[0]])
    return (b, a) if swapped else (a, b)


def rotation_distance(
    a: Shape,
    b: Shape,
    *,
    p: float = 2,
    num_directions: int = 64,
    num_thresholds: int = 64,
    radius: float = 1.1,
    candidates: int = CANDIDATES,
    starts: int = STARTS,
    rounds: int = ROUNDS,
    reflections: bool = False,
) -> Alignment:
    """Distance of two shapes in the plane or in space up to rotation.

    **This is an upper bound**: the best of many rotations is returned, and a better one may exist. The candidates are evenly
    spaced rotations and those that align the principal axes; the best of them are refined by smaller and smaller
    perturbations. The search is deterministic. Most rotations are evaluated by lookup: ``b`` is transformed once in some
    thousand directions, and the nearest ones are compared. The returned distance is always that of an exact transform, and the
    identity and the principal axes are always tried.

    The distance is :func:`distance` of the exact transforms in evenly spaced directions, integrated over evenly spaced
    thresholds: the mean of the distance of ``a`` to the rotated ``b`` and that of ``b`` to ``a``, rotated back. So it is
    symmetric, and never larger than the distance without rotation. Shapes are rotated about the origin, so center them first
    (``Complex.normalized``).

    Args:
        a, b: One shape each. ``b`` is rotated.
        p: As in :func:`distance`.
        num_directions, num_thresholds, radius: Grid of the transforms.
        candidates: Number of evenly spaced rotations.
        starts: Number of rotations refined with exact transforms. Each round continues with the better half.
        rounds: Largest number of refinement rounds. A round without improvement halves the angle.
        reflections: Whether to try mirror images as well.

    Example:
        >>> tripod = torch.tensor([[0.9, 0., 0.], [0., 0.6, 0.], [0., 0., 0.3]])
        >>> rotated = tripod @ torch.tensor([[0., 1, 0], [0, 0, 1], [1, 0, 0]])
        >>> rotation_distance(tripod, rotated).distance
        0.0
    """
    one, other = _single(a, "a"), _single(b, "b")
    if one.dim != other.dim or one.dim not in (2, 3):
        raise ValueError(f"a and b must both be in the plane or both in space, got dimensions {one.dim} and {other.dim}.")
    grid = {"num_directions": num_directions, "num_thresholds": num_thresholds}
    for name, number in {**grid, "candidates": candidates, "starts": starts, "rounds": rounds}.items():
        positive(number, name)
    check_p(p)
    first, second = (CachedTransforms(complex, **grid, radius=radius) for complex in (one, other))
    return align(first, second, p=p, candidates=candidates, starts=starts, rounds=rounds, reflections=reflections)


def _single(shape: Shape, name: str) -> Complex:
    complex = as_complex(shape).to(torch.float64)
    if complex.num_complexes != 1 or not len(complex.points):
        raise ValueError(f"{name} must be one shape with points, got {complex}.")
    return complex


class SphereGrid:
    """About ``n`` directions on circles of latitude, so that the nearest one is found without a search.

    The spacing along a circle is that between circles. In the plane there is a single circle.

    Attributes:
        directions: ``[N, dim]``, of unit length.
        spacing: Angle between neighbors.

    Example:
        >>> grid = SphereGrid(4, 2)
        >>> grid.nearest(torch.tensor([[1.0, 0.1], [0.1, -1.0]], dtype=torch.float64))
        tensor([0, 3])
    """

    def __init__(self, n: int, dim: int, device: torch.device | None = None) -> None:
        num_circles = 1 if dim == 2 else max(1, round(math.sqrt(math.pi * n / 4)))
        self.spacing = 2 * math.pi / n if dim == 2 else math.pi / num_circles
        polar = math.pi * ((torch.arange(num_circles, dtype=torch.float64, device=device) + 0.5) / num_circles)
        self._sizes = (2 * math.pi / self.spacing * polar.sin()).round()
        self._offsets = self._sizes.cumsum(0) - self._sizes
        row = torch.repeat_interleave(self._sizes.long())
        azimuth = 2 * math.pi * (torch.arange(len(row), device=device) - self._offsets[row]) / self._sizes[row]
        circle = torch.stack([azimuth.cos(), azimuth.sin()], dim=1)
        polar = polar[row, None]
        self.directions = circle if dim == 2 else torch.cat([circle * polar.sin(), polar.cos()], dim=1)

    def nearest(self, directions: Tensor) -> Tensor:
        """``[...]``: index of the nearest direction on the nearest circle, for unit vectors ``[..., dim]``."""
        azimuth = torch.atan2(directions[..., 1], directions[..., 0])
        if directions.shape[-1] == 2:
            row = torch.zeros_like(azimuth, dtype=torch.long)
        else:
            row = (directions[..., 2].clamp(-1, 1).acos() / self.spacing).long().clamp_(max=len(self._sizes) - 1)
        sizes = self._sizes[row]
        column = (azimuth * sizes / (2 * math.pi)).round().remainder(sizes)
        return (self._offsets[row] + column).long()


@cache
def _sphere_grid(n: int, dim: int, device: torch.device) -> SphereGrid:
    return SphereGrid(n, dim, device)


class CachedTransforms:
    """One shape and its transforms, computed once for any number of alignments.

    Args:
        complex: The shape, in float64.
        num_directions, num_thresholds, radius: Grid of the transforms.
    """

    def __init__(self, complex: Complex, num_directions: int, num_thresholds: int, radius: float) -> None:
        self.complex = complex
        self.directions = spheres.uniform(num_directions, complex.dim, dtype=torch.float64, device=complex.device)
        self.thresholds = even_thresholds(num_thresholds, radius, dtype=torch.float64, device=complex.device)

    @property
    def lookup_grid(self) -> SphereGrid:
        """The directions of :attr:`lookup`."""
        return _sphere_grid(LOOKUP_DIRECTIONS, self.complex.dim, self.complex.device)

    @cached_property
    def transform(self) -> Tensor:
        """``[1, T, H]``."""
        return ect(self.complex, self.directions, self.thresholds)

    @cached_property
    def lookup(self) -> Tensor:
        """``[N, H]``: curves on the lookup grid, in float32, since they only guide the search."""
        return ect(self.complex, self.lookup_grid.directions, self.thresholds)[0].float()


@torch.no_grad()
def align(
    a: CachedTransforms,
    b: CachedTransforms,
    *,
    p: float = 2,
    candidates: int = CANDIDATES,
    starts: int = STARTS,
    rounds: int = ROUNDS,
    reflections: bool = False,
) -> Alignment:
    """:func:`rotation_distance` of shapes with cached transforms on the same grid."""
    # The search is not symmetric, so it always starts from the same one of the two.
    if _ordered(a.transform, b.transform)[0] is not a.transform:
        found = align(b, a, p=p, candidates=candidates, starts=starts, rounds=rounds, reflections=reflections)
        return Alignment(found.distance, found.rotation.T)
    dim = a.complex.dim
    trial = rotations.uniform(candidates, dim).to(a.directions)
    principal = rotations.align_principal_axes(a.complex.points, b.complex.points, reflections=reflections)
    identity = torch.eye(dim).to(trial)
    always = torch.cat([identity[None], principal])
    if reflections:
        mirror = identity.clone()
        mirror[0, 0] = -1
        trial = torch.cat([trial, trial @ mirror])
    trial = torch.cat([trial, always])
    spacing, fine = rotations.spacing(candidates, dim), b.lookup_grid.spacing
    lookup_errors, exact_errors = _lookup_errors(a, b, p), _exact_errors(a, b, p)

    errors = lookup_errors(trial)
    best = rotations.select_distinct(trial, errors, LOOKUP_STARTS * starts, spacing)
    refined = _refine(lookup_errors, trial[best], errors[best], rounds, angle=spacing, min_angle=fine / 4)

    trial = torch.cat([always, refined])
    errors = exact_errors(trial)
    best = rotations.select_distinct(trial, errors, starts, fine)
    refined = _refine(exact_errors, trial[best], errors[best], rounds, angle=fine, min_angle=MIN_ANGLE * fine, halve=True)
    # The two distances differ a little: one compares curves in the directions, the other in the rotated directions.
    final = torch.cat([always, trial[best], refined])
    errors = (exact_errors(final) + _exact_errors(b, a, p)(final.mT)) / 2
    winner = int(errors.argmin())
    return Alignment(float(errors[winner]), final[winner])


Errors = Callable[[Tensor], Tensor]
"""Errors ``[R]`` of rotations ``[R, dim, dim]``."""


def _lookup_errors(a: CachedTransforms, b: CachedTransforms, p: float) -> Errors:
    """Approximate distance of ``a`` and the rotated ``b``, up to a constant factor."""
    gaps = distance_matrix(a.transform[0, :, None], b.lookup[:, None].double(), p=p, thresholds=a.thresholds)  # [T, N]
    index = torch.arange(len(gaps), device=gaps.device)

    def errors(matrices: Tensor) -> Tensor:
        nearest = (b.lookup_grid.nearest(a.directions @ chunk) for chunk in torch.split(matrices, CHUNK))
        return torch.cat([torch.linalg.vector_norm(gaps[index, columns], ord=p, dim=1) for columns in nearest])

    return errors


def _exact_errors(a: CachedTransforms, b: CachedTransforms, p: float) -> Errors:
    """Distance of ``a`` and the rotated ``b``. Rotating the shape is rotating the directions back."""

    def errors(matrices: Tensor) -> Tensor:
        found = []
        for chunk in torch.split(matrices, CHUNK // 8):
            rotated = ect(b.complex, (a.directions @ chunk).flatten(0, 1), a.thresholds)
            found.append(distance(a.transform, rotated.view(len(chunk), *a.transform.shape[1:]), a.thresholds, p=p))
        return torch.cat(found)

    return errors


def _refine(
    errors: Errors, matrices: Tensor, lowest: Tensor, rounds: int, *, angle: float, min_angle: float, halve: bool = False
) -> Tensor:
    """Refine rotations by random perturbations, whose angle is halved where none improves.

    With ``halve`` each round continues with the better half of the rotations.
    """
    angles = torch.full_like(lowest, angle)
    for seed in range(rounds):
        perturbed = rotations.perturb(matrices, angles, seed)
        found, index = errors(perturbed.flatten(0, 1)).view(len(matrices), -1).min(dim=1)
        better = found < lowest
        best = perturbed[torch.arange(len(index), device=index.device), index]
        matrices = torch.where(better[:, None, None], best, matrices)
        lowest, angles = torch.where(better, found, lowest), torch.where(better, angles, angles / 2)
        if halve:
            half = lowest.argsort(stable=True)[: math.ceil(len(lowest) / 2)]
            matrices, lowest, angles = matrices[half], lowest[half], angles[half]
        if bool((angles < min_angle).all()) or bool((lowest == 0).any()):
            break
    return matrices
