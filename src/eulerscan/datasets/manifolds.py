"""Four surfaces: sphere, torus, Möbius strip and Klein bottle, as noisy point clouds or meshes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .. import rotations
from .._validation import check_choice, positive
from ..complexes import Complex, collate
from ..complexes.simplices import faces, unique
from .dataset import Dataset

CLASSES = ("sphere", "torus", "Möbius strip", "Klein bottle")
FORMS = ("points", "meshes")
CELLS = 32  # per side of the grid on which the area of a surface is computed
FEWEST = {"points": 1, "meshes": 32}
TAU = 2 * math.pi


def manifolds(
    name: str = "manifolds",
    *,
    form: str = "points",
    num_shapes: int = 100,
    num_points: int = 256,
    noise: float = 0.02,
    seed: int = 0,
) -> Dataset:
    """Surfaces with random proportions and random orientation, about as large as the unit ball.

    Their Euler characteristics are 2, 0, 0 and 0.

    Args:
        form: ``points``, sampled uniformly by area; or ``meshes``, triangulated grids.
        num_shapes: Number of shapes of each class.
        num_points: Number of points of each shape. Meshes have about this number, at least 32.
        noise: Standard deviation of Gaussian noise on every coordinate.
        seed: Seed of shapes, orientations, points, noise and split.

    Example:
        >>> surfaces = manifolds(form="meshes", num_shapes=1, num_points=100)
        >>> surfaces.shapes.euler_characteristic()
        tensor([2, 0, 0, 0])
    """
    check_choice(form, "form", FORMS)
    positive(num_shapes, "num_shapes")
    if num_points < FEWEST[form]:
        raise ValueError(f"num_points must be at least {FEWEST[form]} for {form}, got {num_points}.")
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise must be finite and zero or more, got {noise}.")
    generator = torch.Generator().manual_seed(seed)
    make = _clouds if form == "points" else _meshes
    shapes = collate([make(label, num_shapes, num_points, generator) for label in range(len(CLASSES))])
    rotated = shapes.points[:, None] @ rotations.random(len(shapes), 3, generator)[shapes.batch]
    points = rotated[:, 0] + noise * torch.randn(shapes.points.shape, generator=generator, dtype=torch.float64)
    labels = torch.arange(len(CLASSES)).repeat_interleave(num_shapes)
    return Dataset(name, shapes.with_points(points.float()), labels, CLASSES)


# A chart maps (u, v) in the unit square and a proportion from 0 to 1, all of shape [...], to points [..., 3]. The left side
# (u = 0) is glued to the right side (u = 1), upside down for Möbius strip and Klein bottle.


def _sphere(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    """Longitude and latitude of a spheroid, flattened by up to a fifth."""
    height = 0.8 + 0.2 * proportion
    return torch.stack(
        [
            torch.sin(math.pi * v) * torch.cos(TAU * u),
            torch.sin(math.pi * v) * torch.sin(TAU * u),
            height * torch.cos(math.pi * v),
        ],
        dim=-1,
    )


def _torus(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    tube = 0.2 + 0.2 * proportion
    return _revolve(u, tube * torch.cos(TAU * v), tube * torch.sin(TAU * v), 1 - tube)


def _moebius(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    half = 0.2 + 0.2 * proportion
    return _revolve(u, *_twist(u, half * (2 * v - 1), torch.zeros_like(v)), 1 - half)


def _klein(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    """The immersion with a figure eight as cross-section, which makes half a turn."""
    size = 0.2 + 0.2 * proportion
    return _revolve(u, *_twist(u, size * torch.sin(TAU * v), size * torch.sin(2 * TAU * v)), 1 - size)


def _twist(u: Tensor, outward: Tensor, upward: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate a cross-section by half a turn along u."""
    cosine, sine = torch.cos(math.pi * u), torch.sin(math.pi * u)
    return cosine * outward - sine * upward, sine * outward + cosine * upward


def _revolve(u: Tensor, outward: Tensor, upward: Tensor, radius: Tensor) -> Tensor:
    return torch.stack([(radius + outward) * torch.cos(TAU * u), (radius + outward) * torch.sin(TAU * u), upward], dim=-1)


CHARTS: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (_sphere, _torus, _moebius, _klein)


def _clouds(label: int, num_shapes: int, num_points: int, generator: torch.Generator) -> Complex:
    """Points sampled uniformly by area: a random grid cell with probability proportional to its area, then a point in it."""
    proportion = _uniform(num_shapes, 1, generator=generator)
    centers = (torch.arange(CELLS, dtype=torch.float64) + 0.5) / CELLS
    u, v = (grid.reshape(1, -1) for grid in torch.meshgrid(centers, centers, indexing="ij"))
    cells = torch.multinomial(_area(CHARTS[label], u, v, proportion), num_points, replacement=True, generator=generator)
    u, v = ((part + _uniform(num_shapes, num_points, generator=generator)) / CELLS for part in (cells // CELLS, cells % CELLS))
    points = CHARTS[label](u, v, proportion.expand_as(u))
    return Complex(points.flatten(0, 1), batch=torch.arange(num_shapes).repeat_interleave(num_points))


def _area(chart: Callable[[Tensor, Tensor, Tensor], Tensor], u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    """``[n, cells]``: area element of the chart in each cell, by finite differences over half a cell."""
    step = 0.25 / CELLS
    along_u = chart(u + step, v + 0 * proportion, proportion + 0 * u) - chart(u - step, v + 0 * proportion, proportion + 0 * u)
    along_v = chart(u + 0 * proportion, v + step, proportion + 0 * v) - chart(u + 0 * proportion, v - step, proportion + 0 * v)
    area: Tensor = torch.linalg.vector_norm(torch.linalg.cross(along_u, along_v), dim=-1)
    return area


def _meshes(label: int, num_shapes: int, num_points: int, generator: torch.Generator) -> Complex:
    """Triangulated grids, the same for all shapes of the class, with random proportions."""
    u, v, triangles = _grid(label, num_points)
    proportion = _uniform(num_shapes, 1, generator=generator).expand(-1, len(u))
    points = CHARTS[label](u.expand_as(proportion), v.expand_as(proportion), proportion)
    mesh = [unique(faces(triangles)), triangles]
    starts = torch.arange(num_shapes)[:, None] * len(u)
    simplices = [(columns[:, None] + starts).flatten(1) for columns in mesh]
    return Complex(points.flatten(0, 1), simplices, batch=torch.arange(num_shapes).repeat_interleave(len(u)))


def _grid(label: int, num_points: int) -> tuple[Tensor, Tensor, Tensor]:
    """Parameters ``[V]`` of the vertices of a surface, and its triangles."""
    sphere, torus, moebius, _ = range(4)
    rows = max(4, round(math.sqrt(num_points / 2)))
    columns = max(4, round((num_points - 2 * (label == sphere)) / rows))
    # Vertex (i, j) is at u = i / columns. The last column is the first one again, upside down on a one-sided surface.
    number = torch.arange(columns * rows).view(columns, rows)
    first = number[0] if label in (sphere, torus) else number[0].flip(0)
    number = torch.cat([number, first[None]])
    if label == sphere:
        v = (torch.arange(rows) + 1) / (rows + 1)
    elif label == moebius:
        v = torch.arange(rows) / (rows - 1)
    else:
        v = (torch.arange(rows) + 0.5) / rows  # centered rows, which match when upside down
        number = torch.cat([number, number[:, :1]], dim=1)
    a, b, c, d = (part.flatten() for part in (number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]))
    triangles = torch.cat([torch.stack([a, b, d]), torch.stack([a, c, d])], dim=1)
    u = (torch.arange(columns) / columns).repeat_interleave(rows)
    v = v.repeat(columns)
    if label == sphere:
        north, south = torch.full((2, columns), columns * rows) + torch.tensor([[0], [1]])
        top = torch.stack([number[:-1, 0], number[1:, 0], north])
        bottom = torch.stack([number[:-1, -1], number[1:, -1], south])
        triangles = torch.cat([triangles, top, bottom], dim=1)
        u, v = torch.cat([u, torch.zeros(2)]), torch.cat([v, torch.tensor([0.0, 1.0])])
    return u.double(), v.double(), triangles


def _uniform(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)
