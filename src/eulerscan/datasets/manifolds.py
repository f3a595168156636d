"""Four surfaces: sphere, torus, Möbius strip and Klein bottle, as noisy point clouds or meshes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .. import rotations
from ..complexes import Complex, collate
from ..complexes.simplices import faces, unique
from .dataset import Dataset

CLASSES = ("sphere", "torus", "Möbius strip", "Klein bottle")
FORMS = ("points", "meshes")
CELLS = 32  # a side of the grid that knows how large the parts of a surface are
FEWEST = {"points": 1, "meshes": 32}
TURN = 2 * math.pi


def manifolds(
    name: str = "manifolds",
    *,
    form: str = "points",
    num_shapes: int = 100,
    num_points: int = 256,
    noise: float = 0.02,
    seed: int = 0,
) -> Dataset:
    """Surfaces of random proportions in random position, about as large as the unit ball.

    Their Euler characteristics are 2, 0, 0 and 0.

    Args:
        form: ``points``, drawn uniformly by area; or ``meshes``, triangulated grids.
        num_shapes: Of each of the four classes.
        num_points: Of each shape. Meshes have about as many, at least 32.
        noise: Standard deviation of every coordinate.
        seed: Of everything random: shapes, positions, points, noise and split.

    Example:
        >>> surfaces = manifolds(form="meshes", num_shapes=1, num_points=100)
        >>> surfaces.shapes.euler_characteristic()
        tensor([2, 0, 0, 0])
    """
    if form not in FORMS:
        raise ValueError(f"form must be one of {', '.join(FORMS)}, got {form!r}.")
    if num_shapes < 1:
        raise ValueError(f"num_shapes must be at least 1, got {num_shapes}.")
    if num_points < FEWEST[form]:
        raise ValueError(f"num_points must be at least {FEWEST[form]} for {form}, got {num_points}.")
    if not 0 <= noise < math.inf:
        raise ValueError(f"noise must be finite and not negative, got {noise}.")
    generator = torch.Generator().manual_seed(seed)
    make = _clouds if form == "points" else _meshes
    shapes = collate([make(label, num_shapes, num_points, generator) for label in range(len(CLASSES))])
    rotated = shapes.points[:, None] @ rotations.random(len(shapes), 3, generator)[shapes.batch]
    points = rotated[:, 0] + noise * torch.randn(shapes.points.shape, generator=generator, dtype=torch.float64)
    labels = torch.arange(len(CLASSES)).repeat_interleave(num_shapes)
    return Dataset(name, shapes.with_points(points.float()), labels, CLASSES)


# A chart takes (u, v) from the unit square and a proportion from 0 to 1, all of one shape [...], to points [..., 3].
# The left side (u = 0) is glued to the right one (u = 1), upside down on Möbius strip and Klein bottle.


def _sphere(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    """Longitude and latitude; it is a spheroid, up to a fifth flatter than a ball."""
    height = 0.8 + 0.2 * proportion
    return torch.stack(
        [
            torch.sin(math.pi * v) * torch.cos(TURN * u),
            torch.sin(math.pi * v) * torch.sin(TURN * u),
            height * torch.cos(math.pi * v),
        ],
        dim=-1,
    )


def _torus(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    tube = 0.2 + 0.2 * proportion
    return _revolve(u, tube * torch.cos(TURN * v), tube * torch.sin(TURN * v), 1 - tube)


def _moebius(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    half = 0.2 + 0.2 * proportion
    return _revolve(u, *_twist(u, half * (2 * v - 1), torch.zeros_like(v)), 1 - half)


def _klein(u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    """The immersion whose cross-section is a figure eight that makes half a turn on its way round."""
    size = 0.2 + 0.2 * proportion
    return _revolve(u, *_twist(u, size * torch.sin(TURN * v), size * torch.sin(2 * TURN * v)), 1 - size)


def _twist(u: Tensor, outward: Tensor, upward: Tensor) -> tuple[Tensor, Tensor]:
    """A cross-section that turns by half on its way round."""
    cosine, sine = torch.cos(math.pi * u), torch.sin(math.pi * u)
    return cosine * outward - sine * upward, sine * outward + cosine * upward


def _revolve(u: Tensor, outward: Tensor, upward: Tensor, radius: Tensor) -> Tensor:
    return torch.stack([(radius + outward) * torch.cos(TURN * u), (radius + outward) * torch.sin(TURN * u), upward], dim=-1)


CHARTS: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (_sphere, _torus, _moebius, _klein)


def _clouds(label: int, num_shapes: int, num_points: int, generator: torch.Generator) -> Complex:
    """Points uniform by area: a cell of a fine grid at random, as likely as it is large, and a place in it."""
    proportion = _uniform(num_shapes, 1, generator=generator)
    centres = (torch.arange(CELLS, dtype=torch.float64) + 0.5) / CELLS
    u, v = (grid.reshape(1, -1) for grid in torch.meshgrid(centres, centres, indexing="ij"))
    cells = torch.multinomial(_area(CHARTS[label], u, v, proportion), num_points, replacement=True, generator=generator)
    u, v = ((part + _uniform(num_shapes, num_points, generator=generator)) / CELLS for part in (cells // CELLS, cells % CELLS))
    points = CHARTS[label](u, v, proportion.expand_as(u))
    return Complex(points.flatten(0, 1), batch=torch.arange(num_shapes).repeat_interleave(num_points))


def _area(chart: Callable[[Tensor, Tensor, Tensor], Tensor], u: Tensor, v: Tensor, proportion: Tensor) -> Tensor:
    """``[n, cells]``: by how much the chart enlarges each place, from differences across half a cell."""
    step = 0.25 / CELLS
    along_u = chart(u + step, v + 0 * proportion, proportion + 0 * u) - chart(u - step, v + 0 * proportion, proportion + 0 * u)
    along_v = chart(u + 0 * proportion, v + step, proportion + 0 * v) - chart(u + 0 * proportion, v - step, proportion + 0 * v)
    area: Tensor = torch.linalg.vector_norm(torch.linalg.cross(along_u, along_v), dim=-1)
    return area


def _meshes(label: int, num_shapes: int, num_points: int, generator: torch.Generator) -> Complex:
    """A triangulated grid, the same for all shapes, which differ in proportion and in where the grid begins."""
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
    # Vertex (i, j) at u = i / columns; on the last column the first again, upside down if the surface is one-sided.
    number = torch.arange(columns * rows).view(columns, rows)
    first = number[0] if label in (sphere, torus) else number[0].flip(0)
    number = torch.cat([number, first[None]])
    if label == sphere:
        v = (torch.arange(rows) + 1) / (rows + 1)
    elif label == moebius:
        v = torch.arange(rows) / (rows - 1)
    else:
        v = (torch.arange(rows) + 0.5) / rows  # the middle of the rows, so that upside down they meet each other
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
