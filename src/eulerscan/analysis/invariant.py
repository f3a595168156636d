"""Distances that do not change when a shape is turned."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._validation import positive
from ..complexes import Complex, Shape, as_complex
from .alignment import CANDIDATES, ROUNDS, STARTS, Alignment, Views, align
from .distances import check_p, check_pair, common, direct, scaled

__all__ = ["Alignment", "circular_distance", "rotation_distance"]


def circular_distance(
    a: Tensor, b: Tensor, thresholds: Tensor | None = None, *, p: float = 2, reflections: bool = False
) -> Tensor:
    """Distances ``[B]`` of transforms in the plane, the second turned to where it is closest to the first.

    Turning a shape by one step of the circle moves its curves on by one place. So all turns by whole steps are tried,
    and none in between. It is zero between a shape and itself turned by whole steps, and never more than :func:`distance`.

    Args:
        a, b: ``[B, T, H]`` in the T directions of :func:`directions.circle`, in their order, of shapes turned about the
            origin (``centred()`` and ``unit_ball()`` see to it); one may have a single complex.
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
    """Distance of two shapes in the plane or in space, the second turned to where it is closest to the first.

    **An approximation from above**: rotations are tried, and the best is returned. A better one may exist, and no number
    of trials proves otherwise. Tried are evenly spread rotations and those that match the principal axes of the
    vertices; then, around the best few, smaller and smaller turns. All is deterministic. Most trials look up the curves of
    ``b`` in the nearest of some thousand directions, in which it is transformed once. What they lead to is tried with
    transforms of its own, and so are the principal axes and no turn at all: the distance is always one of these.

    The distance is that of the exact transforms in evenly spread directions and thresholds (:func:`distance`, integrated
    over height). Shapes are turned about the origin: centre them first, as ``centred()`` and ``unit_ball()`` do.

    Args:
        a, b: One shape each.
        p: As in :func:`distance`.
        num_directions, num_thresholds, radius: The grid on which the transforms are compared.
        candidates: Number of rotations to begin with.
        starts: How many of the best to refine with transforms of their own; each round goes on with the better half.
        rounds: Of refinement, at most; one in which no turn is better halves the turns of the next.
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
    grid = {"num_directions": num_directions, "num_thresholds": num_thresholds}
    for name, number in {**grid, "candidates": candidates, "starts": starts, "rounds": rounds}.items():
        positive(number, name)
    check_p(p)
    first, second = (Views(complex, **grid, radius=radius) for complex in (one, other))
    return align(first, second, p=p, candidates=candidates, starts=starts, rounds=rounds, reflections=reflections)


def _single(shape: Shape, name: str) -> Complex:
    complex = as_complex(shape).to(torch.float64)
    if complex.num_complexes != 1 or not len(complex.points):
        raise ValueError(f"{name} must be one shape with points, got {complex}.")
    return complex
