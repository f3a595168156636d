"""Neighborhoods: the full subcomplexes on balls around vertices, as one batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._imports import compiled, require
from .._validation import INTEGERS, check_radius, positive
from .coerce import Shape, as_complex
from .complex import Complex
from .packed import MOST_INT32, Packed, offsets_of

Integers = NDArray[np.int64]
UNBOUNDED = 2**62


class Balls(NamedTuple):
    """The vertices of some balls, ball after ball."""

    members: Tensor  # [n], rows of shape.points, ascending in each ball
    offsets: Tensor  # [balls + 1], where each ball begins and ends


def neighborhoods(
    shape: Shape,
    *,
    hops: int | None = None,
    radius: float | None = None,
    k: int | None = None,
    nodes: Any = None,
    max_vertices: int | None = None,
) -> Complex:
    """The neighborhoods of all vertices, as one batch: complex ``i`` is the neighborhood of vertex ``i``.

    A neighborhood is the full subcomplex on a ball: its vertices, and all cells of the shape that have no other vertices. A
    vertex without neighbors is alone. Vertices keep their order, coordinates and weights, and gradients flow to them. No ball
    reaches from one complex of a batch into another.

    Args:
        shape: A graph, mesh or complex of any dimension, a point cloud, or a batch of them: a :class:`Complex`, or anything
            :func:`as_complex` understands.
        hops: The ball has the vertices at most this many edges away. A hyperedge is an edge; in a shape without edges, vertices
            of one cell are neighbors. Default: 1, unless ``radius`` or ``k`` is given.
        radius: The ball has the vertices at most this far away in space. This and ``k`` need scipy.
        k: The ball has the vertex itself and the ``k`` nearest others. Which of several equally far ones is not specified.
        nodes: Vertices whose neighborhoods to take, ``[n]`` in any order, or a mask ``[V]``. Default: all.
        max_vertices: Limit for the size of a ball, for hubs of graphs. A larger ball keeps its center, then whole hops as far
            as they fit, and of the next one an evenly spaced sample in the order of the search, the same every time. Of a
            vertex with more neighbors than that, only so many evenly spaced ones are looked at. With ``radius``, a larger
            ball keeps the nearest vertices.

    Example:
        >>> path = Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2], [1, 2, 3]])])
        >>> neighborhoods(path)
        Complex(num_complexes=4, dim=2, points=10, simplices=(6 edges,))
        >>> neighborhoods(path, hops=2, nodes=[0])
        Complex(num_complexes=1, dim=2, points=3, simplices=(2 edges,))
    """
    complex = as_complex(shape)
    search = Search(complex, hops=hops, radius=radius, k=k, max_vertices=max_vertices)
    found = [*search.balls(check_nodes(nodes, complex))]
    return Subcomplexes(complex).on(found[0]) if found else complex.select([])


def adjacent_pairs(complex: Complex) -> Tensor:
    """``[2, n]``: pairs of vertices that are neighbors: those of edges, or of all cells where no edges are listed.

    >>> adjacent_pairs(Complex(torch.rand(3, 2), [torch.tensor([[0], [1], [2]])]))
    tensor([[0, 0, 1],
            [1, 2, 2]])
    """
    levels = [*zip(complex.dims, complex.simplices, strict=True)]
    edges = [columns for dim, columns in levels if dim == 1 and columns.shape[1]]
    pairs = [columns[list(pair)] for columns in edges or complex.simplices for pair in combinations(range(len(columns)), 2)]
    return torch.cat([complex.packed.simplices.new_empty(2, 0), *pairs], dim=1).long()


def given_size(hops: Any, radius: Any, k: Any) -> dict[str, Any]:
    """The size of neighborhoods that is given, or a tuple or list of them, by its argument; nothing if all are ``None``."""
    given = {name: value for name, value in (("hops", hops), ("radius", radius), ("k", k)) if value is not None}
    if len(given) > 1:
        raise ValueError(f"Give one of hops, radius and k, got {' and '.join(given)}.")
    for name, value in given.items():
        for size in value if isinstance(value, Sequence) else (value,):
            check_radius(size) if name == "radius" else positive(size, name)
    return given


def check_nodes(nodes: Any, complex: Complex) -> Integers:
    """The vertices ``[n]`` that ``nodes`` names: indices, a mask, or ``None`` for all."""
    count = len(complex.points)
    if nodes is None:
        return np.arange(count)
    given = torch.as_tensor(nodes).cpu()
    if given.dtype == torch.bool:
        if given.shape != (count,):
            raise IndexError(f"nodes is a mask, so it needs shape [{count}], got {list(given.shape)}.")
        given = given.nonzero().squeeze(1)
    if given.ndim != 1 or (given.numel() and given.dtype not in INTEGERS):
        raise TypeError(f"nodes must be integers [n] or a mask, got {given.dtype} of shape {list(given.shape)}.")
    chosen: Integers = given.long().numpy()
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < count):
        bad = chosen[(chosen < 0) | (chosen >= count)][0]
        raise IndexError(f"nodes must name vertices from 0 to {count - 1}, got {bad}.")
    return chosen


class Search:
    """Finds the vertices of balls around vertices. Arguments as in :func:`neighborhoods`."""

    def __init__(
        self,
        complex: Complex,
        *,
        hops: int | None = None,
        radius: float | None = None,
        k: int | None = None,
        max_vertices: int | None = None,
    ) -> None:
        given = given_size(hops, radius, k)
        for name, value in given.items():
            if isinstance(value, Sequence):
                raise TypeError(f"{name} must be one number, got {value!r}.")
        if not given:
            if complex.counts[0] > 1 and not any(complex.counts[1:]):
                raise ValueError("shape has no edges, so its neighborhoods need a radius, or k: the number of nearest points.")
            hops = 1
        if max_vertices is not None:
            positive(max_vertices, "max_vertices")
        self.complex, self.hops, self.radius, self.k = complex, hops, radius, k
        self.cap = UNBOUNDED if max_vertices is None else max_vertices

    def balls(self, nodes: Integers, budget: int = UNBOUNDED, most: int = UNBOUNDED) -> Iterator[Balls]:
        """The balls around the nodes, in blocks of ``most`` balls with ``budget`` vertices in all, or one larger ball."""
        find = self._by_hops if self.hops is not None else self._by_radius if self.radius is not None else self._by_count
        for members, sizes in find(nodes, budget, most):
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            yield Balls(*(torch.from_numpy(array).to(self.complex.device) for array in (members, offsets)))

    def _by_hops(self, nodes: Integers, budget: int, most: int) -> Iterator[tuple[Integers, Integers]]:
        bounds, neighbors = self._adjacency
        start = 0
        while start < len(nodes):
            part = nodes[start : start + most]
            members, sizes = compiled(_hop_balls)(bounds, neighbors, part, self.hops, self.cap, budget)
            # Sorted here, since sorting takes numba long to compile.
            count = len(bounds)
            keys = np.sort(np.repeat(np.arange(len(sizes)) * count, sizes) + members)
            yield keys % count, sizes
            start += len(sizes)

    def _by_radius(self, nodes: Integers, budget: int, most: int) -> Iterator[tuple[Integers, Integers]]:
        radius = min(self.radius or 0.0, self._diameter)
        places, tree = self._tree(2 * radius)
        counts = tree.query_ball_point(places[nodes], radius, return_length=True)
        ends, start = np.cumsum(counts), 0
        while start < len(nodes):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, min(int(np.searchsorted(ends, before + budget, side="right")), start + most, len(nodes)))
            own = type(tree)(places[nodes[start:stop]])
            near = own.sparse_distance_matrix(tree, radius, output_type="ndarray")
            ball, vertex = near["i"].astype(np.int64), near["j"].astype(np.int64)
            if self.cap < UNBOUNDED:
                far = near["v"] - (vertex == nodes[start:stop][ball])  # the center first, also among coincident points
                order = np.lexsort((vertex, far, ball))
                sizes = np.bincount(ball, minlength=stop - start)
                rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
                order = order[rank < self.cap]
                ball, vertex = ball[order], vertex[order]
            order = np.lexsort((vertex, ball))
            yield vertex[order], np.bincount(ball, minlength=stop - start)
            start = stop

    def _by_count(self, nodes: Integers, budget: int, most: int) -> Iterator[tuple[Integers, Integers]]:
        size = min(int(self.k or 0) + 1, self.cap, len(self.complex.points))
        places, tree = self._tree(2 * self._diameter)
        owner, step = self.complex.batch.cpu().numpy(), max(1, min(most, budget // max(1, size)))
        for start in range(0, len(nodes), step):
            part = nodes[start : start + step]
            near = tree.query(places[part], k=np.arange(1, size + 1))[1].astype(np.int64)
            # Of more than k coincident points, the tree may find others and not the vertex itself.
            near[(near != part[:, None]).all(axis=1), -1] = part[(near != part[:, None]).all(axis=1)]
            near.sort(axis=1)
            inside = owner[near] == owner[part][:, None]
            yield near[inside], inside.sum(axis=1)

    @property
    def _diameter(self) -> float:
        """An upper bound of the distance of two vertices."""
        points = self.complex.points.detach().cpu().double()
        return 2.01 * math.sqrt(self.complex.dim) * points.abs().max().item() if len(points) else 0.0

    @cached_property
    def _adjacency(self) -> tuple[Integers, Integers]:
        """The neighbors of each vertex: bounds ``[V + 1]``, and vertices."""
        pairs = adjacent_pairs(self.complex).cpu()
        sources, targets = torch.cat([pairs, pairs.flip(0)], dim=1)
        ascending = targets.argsort(stable=True)
        bounds, order = _grouped(sources[ascending], len(self.complex.points))
        return bounds, targets[ascending].numpy()[order]

    def _tree(self, apart: float) -> tuple[NDArray[np.float64], Any]:
        """Coordinates and a tree of them. Complexes of a batch are moved apart in a dimension of its own."""
        spatial = require("scipy.spatial", extra="mesh")
        places = self.complex.points.detach().cpu().double().numpy()
        if self.complex.num_complexes > 1:
            places = np.column_stack([places, self.complex.batch.cpu().numpy() * (apart or 1.0)])
        return places, spatial.cKDTree(places)


class Subcomplexes:
    """Full subcomplexes of a complex: all cells whose vertices are in a ball."""

    def __init__(self, complex: Complex) -> None:
        self.complex = complex
        columns = [level.cpu().numpy() for level in complex.simplices]
        counts = np.zeros(len(complex.points), np.int64)
        for level in columns:
            counts += np.bincount(level.reshape(-1), minlength=len(counts))
        # Every cell is listed at one of its vertices. With the vertex of fewest cells, hubs have short lists.
        chosen = [counts[level].argmin(axis=0) if level.size else np.empty(0, np.int64) for level in columns]
        owners = [np.take_along_axis(level, rows[None], axis=0)[0] for level, rows in zip(columns, chosen, strict=True)]
        grouped = [_grouped(torch.from_numpy(owner).long(), len(counts)) for owner in owners]
        # The cells of a list are neighbors in memory.
        self.levels = [
            (np.ascontiguousarray(level[:, cells].T), bounds, cells)
            for level, (bounds, cells) in zip(columns, grouped, strict=True)
        ]

    def on(self, balls: Balls, complex: Complex | None = None) -> Complex:
        """The batch of subcomplexes on the balls. Complex ``i`` has the vertices of ball ``i``, in their order.

        Coordinates and weights are those of ``complex``, if given, which must have the same cells.
        """
        members, bounds = balls
        complex, device = complex or self.complex, balls.members.device
        offsets, parts, taken, start = [bounds], [], [members], len(complex.points)
        index = np.int32 if len(members) <= MOST_INT32 else np.int64
        for vertices, begins, cells in self.levels:
            arrays = (members.cpu().numpy(), bounds.cpu().numpy(), vertices, begins, cells)
            found, which, sizes = compiled(_cells_inside)(*arrays, np.full(len(complex.points), -1, index))
            parts.append(torch.from_numpy(np.ascontiguousarray(found.T)).to(device).reshape(-1))
            offsets.append(torch.from_numpy(np.concatenate([[0], np.cumsum(sizes)])).to(device))
            taken.append(start + torch.from_numpy(which).to(device))
            start += len(cells)
        weights = complex.packed.weights
        return Complex.from_packed(
            Packed(
                complex.points.index_select(0, members),
                torch.stack(offsets),
                complex.rows,
                torch.cat(parts) if parts else complex.packed.simplices[:0],
                None if weights is None else weights.index_select(0, torch.cat(taken)),
                complex.packed.dims,
            )
        )


def _grouped(keys: Tensor, count: int) -> tuple[Integers, Integers]:
    """Where the items of each key from 0 to ``count - 1`` begin and end, and the items in that order."""
    return offsets_of(torch.bincount(keys, minlength=count)).numpy(), keys.argsort(stable=True).numpy()


def _hop_balls(
    bounds: Integers, neighbors: Integers, nodes: Integers, hops: int, cap: int, budget: int
) -> tuple[Integers, Integers]:
    """Members and sizes of the balls around the first nodes, until there are ``budget`` members."""
    seen = np.full(len(bounds) - 1, -1, np.int64)  # the last ball that has the vertex
    members, sizes = np.empty(1024, np.int64), np.empty(len(nodes), np.int64)
    total = done = 0
    for i in range(len(nodes)):
        begin = total
        if total == len(members):
            members = np.concatenate((members, np.empty_like(members)))
        members[total], seen[nodes[i]] = nodes[i], i
        total += 1
        layer = begin
        for _ in range(hops):
            end = total
            for m in range(layer, end):
                start, degree = bounds[members[m]], bounds[members[m] + 1] - bounds[members[m]]
                looked_at = min(degree, cap)
                for e in range(looked_at):
                    vertex = neighbors[start + e if looked_at == degree else start + e * degree // looked_at]
                    if seen[vertex] != i:
                        seen[vertex] = i
                        if total == len(members):
                            members = np.concatenate((members, np.empty_like(members)))
                        members[total] = vertex
                        total += 1
            if total == end:
                break
            if total - begin > cap:
                room, found = cap - (end - begin), total - end
                for j in range(room):
                    members[end + j] = members[end + j * found // room]
                total = end + room
                break
            layer = end
        if total > budget and done:
            total = begin
            break
        sizes[done] = total - begin
        done += 1
    return members[:total].copy(), sizes[:done].copy()


def _cells_inside(
    members: Integers, bounds: Integers, vertices: NDArray[Any], begins: Integers, cells: Integers, place: NDArray[Any]
) -> tuple[NDArray[Any], Integers, Integers]:
    """The cells inside each ball: positions of their vertices ``[n, rows]``, which cells they are, and how many a ball has."""
    rows = vertices.shape[1]
    found, which = np.empty((1024, rows), place.dtype), np.empty(1024, np.int64)
    sizes, total = np.zeros(len(bounds) - 1, np.int64), 0
    for ball in range(len(sizes)):
        first, before = bounds[ball], total
        for m in range(first, bounds[ball + 1]):
            place[members[m]] = m  # at or beyond first: in this ball
        for m in range(first, bounds[ball + 1]):
            for c in range(begins[members[m]], begins[members[m] + 1]):
                if total == len(which):
                    found = np.concatenate((found, np.empty_like(found)))
                    which = np.concatenate((which, np.empty_like(which)))
                inside = 0
                for row in range(rows):
                    found[total, row] = place[vertices[c, row]]
                    inside += found[total, row] >= first
                if inside == rows:
                    which[total] = cells[c]
                    total += 1
        sizes[ball] = total - before
    return found[:total], which[:total].copy(), sizes
