"""The rotation that brings one shape closest to another, searched where a trial costs next to nothing.

A turned shape has the curves of the shape itself in directions that are turned back. So a shape is transformed once in
directions from everywhere, and how far any turn of it is from another shape can be looked up, up to the step between these
directions. What is best there is refined with transforms of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from .. import directions as spheres
from ..complexes import Complex
from ..functional import ect
from ..grid import thresholds as even_thresholds
from ..rotations import angle_apart, different, nearby, principal, spread
from .distances import distance, distance_matrix
from .globe import Globe, globe

CANDIDATES, STARTS, ROUNDS = 512, 8, 32
EVERYWHERE = 4096  # directions, about
SCOUTS = 8  # rotations that are looked up and refined for each that is then refined with transforms
FINEST = 2.0**-12  # of the step between directions: the smallest turns that are tried
AT_ONCE = 512  # rotations


class Alignment(NamedTuple):
    """How close one shape can be turned to another, as far as was found.

    Attributes:
        distance: Of the transforms after turning.
        rotation: ``[dim, dim]``: ``b.points @ rotation.T`` lies closest to ``a``.
    """

    distance: float
    rotation: Tensor


class Views:
    """One shape and its transforms, which are made once however many others it is compared with.

    Args:
        complex: The shape, in float64.
        num_directions, num_thresholds, radius: The grid on which transforms are compared.
    """

    def __init__(self, complex: Complex, num_directions: int, num_thresholds: int, radius: float) -> None:
        self.complex = complex
        self.directions = spheres.uniform(num_directions, complex.dim, dtype=torch.float64, device=complex.device)
        self.thresholds = even_thresholds(num_thresholds, radius, dtype=torch.float64, device=complex.device)

    @property
    def globe(self) -> Globe:
        """Where :attr:`everywhere` looks from."""
        return globe(EVERYWHERE, self.complex.dim, self.complex.device)

    @cached_property
    def curves(self) -> Tensor:
        """``[1, T, H]``: the transform on the grid."""
        return ect(self.complex, self.directions, self.thresholds)

    @cached_property
    def everywhere(self) -> Tensor:
        """``[N, H]``: the curves in directions from everywhere, in half the memory, since they only show where to look."""
        return ect(self.complex, self.globe.directions, self.thresholds)[0].float()


@torch.no_grad()
def align(
    a: Views,
    b: Views,
    *,
    p: float = 2,
    candidates: int = CANDIDATES,
    starts: int = STARTS,
    rounds: int = ROUNDS,
    reflections: bool = False,
) -> Alignment:
    """As :func:`~eulerscan.analysis.invariant.rotation_distance`, of shapes on one grid."""
    dim = a.complex.dim
    tried = spread(candidates, dim).to(a.directions)
    sure = torch.cat([tried[:1], principal(a.complex.points, b.complex.points, reflections=reflections)])
    if reflections:
        mirror = torch.eye(dim).to(tried)
        mirror[0, 0] = -1
        tried = torch.cat([tried, tried @ mirror])
    tried = torch.cat([tried, sure])
    rough, apart, step = _looked_up(a, b, p), angle_apart(candidates, dim), b.globe.step
    found = rough(tried)
    best = different(tried, found, SCOUTS * starts, apart)
    scouts, _ = _refined(rough, tried[best], found[best], rounds, largest=apart, smallest=step / 4)
    exact = _transformed(a, b, p)
    tried = torch.cat([sure, scouts])
    found = exact(tried)
    best = different(tried, found, starts, step)
    rotations, lowest = _refined(exact, tried[best], found[best], rounds, largest=step, smallest=FINEST * step, fewer=True)
    place = int(lowest.argmin())
    return Alignment(float(lowest[place]), rotations[place])


Errors = Callable[[Tensor], Tensor]


def _looked_up(a: Views, b: Views, p: float) -> Errors:
    """About how far ``b`` is from ``a`` after each of many rotations, but for a factor."""
    gaps = distance_matrix(a.curves[0, :, None], b.everywhere[:, None].double(), p=p, thresholds=a.thresholds)  # [T, N]
    here = torch.arange(len(gaps), device=gaps.device)

    def errors(rotations: Tensor) -> Tensor:
        places = (b.globe.nearest(a.directions @ block) for block in torch.split(rotations, AT_ONCE))
        return torch.cat([torch.linalg.vector_norm(gaps[here, nearest], ord=p, dim=1) for nearest in places])

    return errors


def _transformed(a: Views, b: Views, p: float) -> Errors:
    """How far ``b`` is from ``a`` after each rotation. Turning a shape is turning the directions back."""

    def errors(rotations: Tensor) -> Tensor:
        found = []
        for block in torch.split(rotations, AT_ONCE // 8):
            turned = ect(b.complex, (a.directions @ block).flatten(0, 1), a.thresholds)
            found.append(distance(a.curves, turned.view(len(block), *a.curves.shape[1:]), a.thresholds, p=p))
        return torch.cat(found)

    return errors


def _refined(
    errors: Errors, rotations: Tensor, lowest: Tensor, rounds: int, *, largest: float, smallest: float, fewer: bool = False
) -> tuple[Tensor, Tensor]:
    """Better rotations near others, and their errors: by turns that are halved where none is better.

    With ``fewer`` a round goes on with the better half of the rotations.
    """
    angles = torch.full_like(lowest, largest)
    for round in range(rounds):
        turned = nearby(rotations, angles, round)
        found, places = errors(turned.flatten(0, 1)).view(len(rotations), -1).min(dim=1)
        better = found < lowest
        chosen = turned[torch.arange(len(places), device=places.device), places]
        rotations = torch.where(better[:, None, None], chosen, rotations)
        lowest, angles = torch.where(better, found, lowest), torch.where(better, angles, angles / 2)
        if fewer:
            half = lowest.argsort(stable=True)[: math.ceil(len(lowest) / 2)]
            rotations, lowest, angles = rotations[half], lowest[half], angles[half]
        if bool((angles < smallest).all()) or bool((lowest == 0).any()):
            break
    return rotations, lowest
