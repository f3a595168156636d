"""Shapes with a known transform."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..complexes import Complex


@dataclass(frozen=True)
class KnownShape:
    """A complex with known values of its transform.

    Attributes:
        complex: One complex.
        euler: Its Euler characteristic.
        between: Value of every curve from the lowest vertex up to, but not including, the highest, if that is the same number
            in all directions; else ``None``.
    """

    complex: Complex
    euler: int
    between: int | None = None

    def transform(self, directions: Tensor, thresholds: Tensor) -> Tensor:
        """The exact transform ``[1, T, H]``, derived from the topology of the shape, not by counting simplices."""
        if self.between is None:
            raise ValueError("between is not known for this shape: its curves differ between directions.")
        heights = self.complex.points @ directions.T
        lowest, highest = (bound[:, None] for bound in (heights.amin(dim=0), heights.amax(dim=0)))
        inside = torch.where(thresholds >= lowest, self.between, 0)
        return torch.where(thresholds >= highest, self.euler, inside).to(heights.dtype)[None]


def known_shapes(dtype: torch.dtype = torch.float64) -> dict[str, KnownShape]:
    """One of each shape in this module, by name."""
    return {
        "point": point(dtype=dtype),
        "segment": segment(dtype=dtype),
        "cycle": cycle(11, dtype=dtype),
        "disc": disc(12, dtype=dtype),
        "sphere": sphere(dtype=dtype),
        "torus": torus(dtype=dtype),
        "moebius": moebius(dtype=dtype),
        "graph": random_graph(20, 31, generator=torch.Generator().manual_seed(0), dtype=dtype),
    }


def point(dim: int = 2, *, dtype: torch.dtype = torch.float64) -> KnownShape:
    """A single vertex near the origin."""
    return KnownShape(Complex(torch.full((1, dim), 0.1, dtype=dtype)), euler=1, between=1)


def segment(*, dtype: torch.dtype = torch.float64) -> KnownShape:
    """Two vertices and the edge between them."""
    points = torch.tensor([[-0.5, 0.2], [0.7, 0.4]], dtype=dtype)
    return KnownShape(Complex(points, [torch.tensor([[0], [1]])]), euler=1, between=1)


def cycle(n: int, *, dtype: torch.dtype = torch.float64) -> KnownShape:
    """A regular polygon: below its highest vertex it is an arc."""
    here = torch.arange(n)
    return KnownShape(Complex(_polygon(n, dtype), [torch.stack([here, (here + 1) % n])]), euler=0, between=1)


def disc(n: int, *, dtype: torch.dtype = torch.float64) -> KnownShape:
    """A regular polygon filled with triangles around its center: every sublevel set is contractible."""
    here = torch.arange(n)
    points = torch.cat([_polygon(n, dtype), torch.zeros(1, 2, dtype=dtype)])
    triangles = torch.stack([here, (here + 1) % n, torch.full((n,), n)])
    return KnownShape(Complex(points, [triangles]).closure(), euler=1, between=1)


def sphere(subdivisions: int = 2, *, dtype: torch.dtype = torch.float64) -> KnownShape:
    """A subdivided octahedron, projected to the unit sphere: below its highest vertex it is a disc."""
    points = torch.tensor([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=dtype)
    corners = [[x, y, z] for x in (0, 1) for y in (2, 3) for z in (4, 5)]
    triangles = torch.tensor(corners).T
    for _ in range(subdivisions):
        points, triangles = _subdivide(points, triangles)
    return KnownShape(Complex(points, [triangles]).closure(), euler=2, between=1)


def torus(n: int = 12, m: int = 8, *, dtype: torch.dtype = torch.float64) -> KnownShape:
    """A torus in space with ``n`` by ``m`` vertices."""
    u, v = torch.meshgrid(_angles(n, dtype), _angles(m, dtype), indexing="ij")
    radius = 0.7 + 0.3 * v.cos()
    points = torch.stack([radius * u.cos(), radius * u.sin(), 0.3 * v.sin()], dim=-1).reshape(-1, 3)
    i, j = (index.reshape(-1) for index in torch.meshgrid(torch.arange(n), torch.arange(m), indexing="ij"))
    triangles = _quads(i * m + j, (i + 1) % n * m + j, i * m + (j + 1) % m, (i + 1) % n * m + (j + 1) % m)
    return KnownShape(Complex(points, [triangles]).closure(), euler=0)


def moebius(n: int = 15, *, dtype: torch.dtype = torch.float64) -> KnownShape:
    """A Möbius strip of ``n`` quadrilaterals."""
    angle = _angles(n, dtype)
    rims = []
    for side in (-0.3, 0.3):
        radius = 0.7 + side * (angle / 2).cos()
        rims.append(torch.stack([radius * angle.cos(), radius * angle.sin(), side * (angle / 2).sin()], dim=-1))
    here = torch.arange(n)
    ahead = (here + 1) % n
    # The strip has half a twist: the last quadrilateral joins each rim to the other one.
    twist = torch.where(here == n - 1, n, 0)
    triangles = _quads(here, ahead + twist, here + n, ahead + n - twist)
    return KnownShape(Complex(torch.cat(rims), [triangles]).closure(), euler=0)


def random_graph(
    num_vertices: int,
    num_edges: int,
    dim: int = 2,
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float64,
) -> KnownShape:
    """Random points in a cube with the given number of distinct edges."""
    pairs = torch.combinations(torch.arange(num_vertices)).T
    chosen = torch.randperm(pairs.shape[1], generator=generator)[:num_edges]
    if len(chosen) < num_edges:
        raise ValueError(f"num_edges must be at most {len(chosen)} for {num_vertices} vertices, got {num_edges}.")
    points = 2 * torch.rand(num_vertices, dim, generator=generator, dtype=dtype) - 1
    return KnownShape(Complex(points, [pairs[:, chosen]]), euler=num_vertices - num_edges)


def _angles(n: int, dtype: torch.dtype) -> Tensor:
    return torch.arange(n, dtype=dtype) * (2 * math.pi / n)


def _polygon(n: int, dtype: torch.dtype) -> Tensor:
    angle = _angles(n, dtype)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def _quads(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """Split quadrilaterals with corners a, b, d, c, in this order, into triangles ``[3, 2 n]``."""
    return torch.cat([torch.stack([a, b, c]), torch.stack([b, d, c])], dim=1)


def _subdivide(points: Tensor, triangles: Tensor) -> tuple[Tensor, Tensor]:
    """Split each triangle into four, with new vertices on the unit sphere."""
    a, b, c = triangles
    edges = torch.cat([torch.stack(pair).sort(dim=0).values for pair in ((a, b), (b, c), (a, c))], dim=1)
    unique, inverse = torch.unique(edges, dim=1, return_inverse=True)
    midpoints = torch.nn.functional.normalize(points[unique[0]] + points[unique[1]], dim=1)
    ab, bc, ac = (inverse + len(points)).view(3, -1)
    parts = [torch.stack(t) for t in ((a, ab, ac), (b, ab, bc), (c, bc, ac), (ab, bc, ac))]
    return torch.cat([points, midpoints]), torch.cat(parts, dim=1)
