"""Distances that do not change when a shape is turned."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from . import directions as spheres
from .checks import positive
from .complexes import Complex
from .distances import check_p, check_pair, common, direct, distance, scaled
from .functional import ect
from .functional import thresholds as even_thresholds
from .shapes import Shape, as_complex

PLASTIC = 1.533751168755204288118041  # of the spirals of Alexa, "Super-Fibonacci Spirals" (2022)
NEIGHBOURS = 24  # turns that are tried around one, in each round


def circular_distance(
    a: Tensor, b: Tensor, thresholds: Tensor | None = None, *, p: float = 2, reflections: bool = False
) -> Tensor:
    """Distances ``[B]`` of transforms in the plane, the second turned to where it is closest to the first.

    Turning a shape by one step of the circle moves its curves on by one place. So all turns by whole steps are tried,
    and none in between. It is zero between a shape and itself turned by whole steps, and never more than :func:`distance`.

    Args:
        a, b: ``[B, T, H]`` in the T directions of :func:`directions.circle`, in their order, of shapes turned about the
            origin (``unit_ball()`` centres them); one may have a single complex.
        thresholds, p: As in :func:`distance`.
        reflections: Whether the mirror image will do as well.

    Example:
        >>> import eulerscan as es
        >>> shape, grid = torch.tensor([[0.5, 0.1]]), (es.directions.circle(4), es.thresholds(9))
        >>> quarter_turn = torch.tensor([[-0.1, 0.5]])
        >>> circular_distance(es.ect(shape, *grid), es.ect(quarter_turn, *grid))
        tensor([0.])
    """
    check_pair(a, b)
    if a.ndim != 3:
        raise ValueError(f"transforms must have shape [B, T, H], got {list(a.shape)}.")
    count, size = common(len(a), len(b)), a.shape[1]
    curves, others = (scaled(x.flatten(0, 1).unsqueeze(1), thresholds, p).view(len(x), size, -1) for x in (a, b))
    here = torch.arange(size, device=a.device)
    turns = [here + here[:, None]] + ([here[:, None] - here] if reflections else [])
    partner = torch.cat(turns) % max(1, size)  # [turns, T]
    found = []
    for i in range(count):
        gaps = direct(curves[i % len(curves)], others[i % len(others)], p)  # [T, T]
        matched = gaps[here, partner]
        if math.isinf(p):
            found.append(matched.amax(dim=1).min())
        else:
            found.append(torch.linalg.vector_norm(matched, ord=p, dim=1).min() / size ** (1 / p))
    return torch.stack(found).to(torch.promote_types(a.dtype, b.dtype)) if found else a.new_zeros(0)


class Alignment(NamedTuple):
    """How close one shape can be turned to another, as far as was found.

    Attributes:
        distance: Of the transforms after turning.
        rotation: ``[dim, dim]``: ``b.points @ rotation.T`` lies closest to ``a``.
    """

    distance: float
    rotation: Tensor


@torch.no_grad()
def rotation_distance(
    a: Shape,
    b: Shape,
    *,
    p: float = 2,
    num_directions: int = 64,
    num_thresholds: int = 64,
    radius: float = 1.1,
    candidates: int = 512,
    starts: int = 8,
    rounds: int = 32,
    reflections: bool = False,
) -> Alignment:
    """Distance of two shapes in the plane or in space, the second turned to where it is closest to the first.

    **An approximation from above**: rotations are tried, and the best is returned. A better one may exist, and no number
    of trials proves otherwise. Tried are evenly spread rotations and those that match the principal axes of the
    vertices; then, around the best few, smaller and smaller turns. All is deterministic.

    The distance is that of the exact transforms in evenly spread directions and thresholds (:func:`distance`, integrated
    over height). Shapes are turned about the origin: centre them first, as ``unit_ball()`` does.

    Args:
        a, b: One shape each.
        p: As in :func:`distance`.
        num_directions, num_thresholds, radius: The grid on which the transforms are compared.
        candidates: Number of rotations to begin with.
        starts: How many of the best to refine.
        rounds: Of refinement; one in which no turn is better halves the turns of the next.
        reflections: Whether the mirror image will do as well.

    Example:
        >>> tripod = torch.tensor([[0.9, 0., 0.], [0., 0.6, 0.], [0., 0., 0.3]])
        >>> turned = tripod @ torch.tensor([[0., 1, 0], [0, 0, 1], [1, 0, 0]])
        >>> rotation_distance(tripod, turned).distance
        0.0
    """
    one, other = _single(a, "a"), _single(b, "b")
    if one.dim != other.dim or one.dim not in (2, 3):
        raise ValueError(
            f"a and b must both be in the plane or both in space, got points of dimension {one.dim} and {other.dim}."
        )
    for name, number in (("candidates", candidates), ("starts", starts), ("rounds", rounds)):
        positive(number, name)
    check_p(p)
    directions = spheres.uniform(num_directions, one.dim, dtype=torch.float64, device=one.device)
    thresholds = even_thresholds(num_thresholds, radius, dtype=torch.float64, device=one.device)
    wanted = ect(one, directions, thresholds)

    def errors(rotations: Tensor) -> Tensor:
        """``[R]``: the distance after each rotation. Turning a shape is turning the directions back."""
        turned = ect(other, (directions @ rotations).reshape(-1, one.dim), thresholds)
        return distance(wanted, turned.view(len(rotations), *wanted.shape[1:]), thresholds, p=p)

    tried = torch.cat([_rotations(candidates, one.dim).to(directions), _principal(one, other)])
    if reflections:
        mirror = torch.eye(one.dim).to(directions)
        mirror[0, 0] = -1
        tried = torch.cat([tried, tried @ mirror])
    found = torch.cat([errors(block) for block in torch.split(tried, 64)])
    apart = 2 * math.pi / candidates ** (1 / (2 * one.dim - 3))  # about the angle between neighbours among the candidates
    best = _different(tried, found, starts, apart)
    rotations, lowest = tried[best], found[best]
    angles = torch.full_like(lowest, apart)
    for round in range(rounds):
        around = _turns(round, one.dim).to(directions)
        for i in range(len(rotations)):
            turns = torch.linalg.matrix_exp(angles[i] * around) @ rotations[i]
            found = errors(turns)
            place = int(found.argmin())
            if found[place] < lowest[i]:
                rotations[i], lowest[i] = turns[place], found[place]
            else:
                angles[i] /= 2
    place = int(lowest.argmin())
    return Alignment(float(lowest[place]), rotations[place].to(other.points.dtype))


def _single(shape: Shape, name: str) -> Complex:
    complex = as_complex(shape).to(torch.float64)
    if complex.num_complexes != 1 or not len(complex.points):
        raise ValueError(f"{name} must be one shape with points, got {complex}.")
    return complex


def _rotations(n: int, dim: int) -> Tensor:
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
    spread = torch.stack(rows, dim=1).view(n, 3, 3)
    turned: Tensor = spread @ spread[0].T
    return turned


def _principal(a: Complex, b: Complex) -> Tensor:
    """Rotations that take the principal axes of the vertices of ``b`` to those of ``a``, which point either way."""
    axes, others = (torch.linalg.eigh(complex.points.T @ complex.points).eigenvectors for complex in (a, b))
    signs = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * a.dim).to(axes)
    rotations = (axes * signs[:, None, :]) @ others.T
    proper: Tensor = rotations[torch.linalg.det(rotations) > 0]
    return proper


def _different(rotations: Tensor, errors: Tensor, count: int, apart: float) -> list[int]:
    """The places of the best rotations, of which no two are closer than an angle: neighbours end in one place."""
    chosen: list[int] = []
    closest = math.sqrt(8) * math.sin(min(apart, math.pi) / 2)  # as the difference of two matrices
    for place in errors.argsort(stable=True).tolist():
        gaps = torch.linalg.matrix_norm(rotations[chosen] - rotations[place])
        if not bool((gaps < closest).any()):
            chosen.append(place)
        if len(chosen) == count:
            break
    return chosen


def _turns(round: int, dim: int) -> Tensor:
    """Generators of turns by a unit angle or less, others in every round."""
    if dim == 2:
        sizes = torch.linspace(-1, 1, NEIGHBOURS, dtype=torch.float64)
        return sizes[:, None, None] * torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(round)
    x, y, z = spheres.random(NEIGHBOURS, 3, generator, dtype=torch.float64).T
    sizes = torch.linspace(1 / NEIGHBOURS, 1, NEIGHBOURS, dtype=torch.float64)
    zero = torch.zeros_like(x)
    skew = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).view(-1, 3, 3)
    turns: Tensor = sizes[:, None, None] * skew
    return turns
