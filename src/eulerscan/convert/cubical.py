"""Cubical complexes of images, as Freudenthal triangulations: every unit square or cube of the lattice is cut in the same way.

A simplex is a chain of lattice sites x, x + e_S1, x + e_S2, ... with growing sets of axes S1, S2, ... The simplices with the
same chain are therefore a mask over the lattice, and no loop visits a pixel.
"""

from __future__ import annotations

import itertools
from functools import cache, reduce
from typing import Any

import numpy as np
import torch

from ..complexes import Complex, collate
from ..complexes.packed import Packed, pack

_Array = np.ndarray[Any, Any]
_Chain = tuple[tuple[int, ...], ...]  # sets of axes, each a subset of the next

# Lattice sites processed at once: enough to amortize a call, within some 200 MB.
_BLOCK = 2**21


@cache
def chains(axes: int) -> tuple[tuple[_Chain, ...], ...]:
    """The chains of k-simplices for k = 1, ..., ``axes``.

    >>> [len(level) for level in chains(3)]
    [7, 12, 6]
    """
    subsets = [s for size in range(1, axes + 1) for s in itertools.combinations(range(axes), size)]
    levels: list[tuple[_Chain, ...]] = [(((),),)]
    for _ in range(axes):
        levels.append(tuple((*chain, s) for chain in levels[-1] for s in subsets if set(chain[-1]) < set(s)))
    return tuple(levels[1:])


def cubes(values: _Array) -> Complex:
    """Every pixel as a unit cube around its position, from -1/2 to 1/2. ``values`` as in :func:`lattice_points`."""
    return _in_blocks(values, _Cubes)


def squares(mask: _Array) -> Complex:
    """The union of the unit squares around foreground pixels ``[N, rows, columns]``, in as few triangles as its outline needs.

    The triangles between two lines of the lattice are cut where the outline has corners on these lines, and nowhere else. They
    cover the same region as those of :func:`cubes`, so that the transform is the same, exact and smooth.

    Example:
        >>> squares(np.ones((1, 9, 9), dtype=bool))
        Complex(num_complexes=1, dim=2, points=20, simplices=(37 edges, 18 triangles))
    """
    count, height, width = mask.shape
    lines = height + 1  # of an image: its rows of pixels are between them
    stacked = np.zeros((count, lines, width + 1), np.bool_)
    stacked[:, :height, :width] = mask
    flat = stacked.reshape(-1)
    changes = np.flatnonzero(np.diff(flat, prepend=False))  # runs of foreground: no run reaches the last column
    begin, end = changes[::2], changes[1::2]
    # A corner is a line and a column, as one key; the corners below a run are one line further.
    corners = np.unique(np.concatenate([begin, end, begin + width + 1, end + width + 1]))
    first, last = np.searchsorted(corners, begin), np.searchsorted(corners, end)  # above a run
    first_below, last_below = np.searchsorted(corners, begin + width + 1), np.searchsorted(corners, end + width + 1)
    covered = np.zeros(len(corners) + 1, np.int64)  # whether the segment from a corner to the next is in a square
    for start, stop in ((first, last), (first_below, last_below)):
        np.add.at(covered, start, 1)
        np.add.at(covered, stop, -1)
    here = np.flatnonzero(np.cumsum(covered)[:-1] > 0)
    above, run = _ranges(first, last)
    below, run_below = _ranges(first_below, last_below)
    inner = below != first_below[run_below]
    edges = [
        (here, here + 1),
        (first, first_below),
        (last, last_below),
        (above + 1, first_below[run]),
        (below[inner], last[run_below[inner]]),
    ]
    triangles = [(above, above + 1, first_below[run]), (below, below + 1, last[run_below])]
    levels = [np.stack([np.concatenate(part) for part in zip(*level, strict=True)]) for level in (edges, triangles)]
    line, column = np.divmod(corners, width + 1)
    owner, row = np.divmod(line, lines)
    points = torch.from_numpy(np.stack([row, column], axis=1)).to(torch.get_default_dtype()) - 0.5
    owners = torch.from_numpy(owner)
    return Complex.from_packed(pack(points, [torch.from_numpy(level) for level in levels], None, owners, count))


def _ranges(starts: _Array, stops: _Array) -> tuple[_Array, _Array]:
    """The integers of all ranges, and which range each belongs to."""
    sizes = stops - starts
    which = np.repeat(np.arange(len(sizes)), sizes)
    return np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + starts[which], which


def lattice_points(values: _Array) -> Complex:
    """Every pixel as a vertex at its position, joined to its neighbors in the triangulation.

    Args:
        values: ``[N, ...]`` with one to three axes after the first: booleans, true in the foreground; or pixel weights, minus
            infinity in the background.

    Returns:
        N complexes, coordinates in the order of the axes.

    Example:
        >>> lattice_points(np.ones((1, 2, 2), dtype=bool))
        Complex(num_complexes=1, dim=2, points=4, simplices=(5 edges, 2 triangles))
    """
    return _in_blocks(values, _Points)


def _in_blocks(values: _Array, lattice: type[_Lattice]) -> Complex:
    step = max(1, _BLOCK // max(1, int(np.prod(values.shape[1:]))))
    return collate([lattice(values[i : i + step]).complex() for i in range(0, max(1, len(values)), step)])


class _Lattice:
    """A block of images, with one more site than pixels along every axis."""

    corner: float  # position of a site, relative to the pixel with the same index

    def __init__(self, values: _Array) -> None:
        self.weighted = values.dtype != np.bool_
        self.background = -np.inf if self.weighted else False
        self.axes = values.ndim - 1
        # One more background site along every axis, so that shifts wrap around background.
        self.values = np.pad(values, [(0, 0), *[(0, 1)] * self.axes], constant_values=self.background)
        self.shape = self.values.shape[1:]

    def present(self, chain: _Chain) -> _Array:
        """``[N, ...]``: whether the simplex of this chain exists at each site."""
        raise NotImplementedError

    def weights(self, chain: _Chain, sites: _Array) -> _Array:
        """Weights of the simplices of this chain at the given sites, flat indices into all images."""
        raise NotImplementedError

    def complex(self) -> Complex:
        count, size = len(self.values), int(np.prod(self.shape))
        vertices = self.present(((),)).reshape(count, size)
        sites = np.flatnonzero(vertices)
        number = np.zeros(count * size, np.int32 if count * size < 2**31 else np.int64)
        number[sites] = np.arange(len(sites), dtype=number.dtype)
        place = np.stack(np.unravel_index(sites, (count, *self.shape))[1:], axis=1)
        points = torch.from_numpy(place).to(torch.get_default_dtype()) + self.corner
        counts, columns = [vertices.sum(axis=1)], []
        weights = [self.weights(((),), sites)] if self.weighted else []
        for level_chains in chains(self.axes):
            level = [self._level(group, number) for group in self._groups(level_chains)]
            counts.append(np.sum([found for found, _, _ in level], axis=0))
            columns.append(np.concatenate([c for _, c, _ in level], axis=1).reshape(-1))
            weights += [w for _, _, w in level if w is not None]
        offsets = np.pad(np.cumsum(counts, axis=1), [(0, 0), (1, 0)])
        packed = Packed(
            points=points,
            offsets=torch.from_numpy(offsets),
            rows=tuple(range(2, 2 + self.axes)),
            simplices=torch.from_numpy(np.concatenate(columns)),
            weights=torch.from_numpy(np.concatenate(weights)).to(points.dtype) if self.weighted else None,
        )
        return Complex.from_packed(packed)

    def _groups(self, level: tuple[_Chain, ...]) -> list[tuple[_Chain, ...]]:
        """All chains together, so that the simplices of each image are contiguous; one at a time for a single image."""
        return [level] if len(self.values) != 1 else [(chain,) for chain in level]

    def _level(self, group: tuple[_Chain, ...], number: _Array) -> tuple[_Array, _Array, _Array | None]:
        """Number of simplices of each image, their columns, and their weights."""
        count, size = len(self.values), int(np.prod(self.shape))
        masks = np.stack([self.present(chain).reshape(count, size) for chain in group], axis=1)
        found = np.flatnonzero(masks)
        image, rest = np.divmod(found, len(group) * size)
        chain_index, site = np.divmod(rest, size)
        site += image * size
        strides = np.array([int(np.prod(self.shape[axis + 1 :])) for axis in range(self.axes)], np.int64)
        steps = np.array([[strides[list(s)].sum() for s in chain] for chain in group], np.int64)  # [K, k + 1]
        columns = np.stack([number[site + step[chain_index]] for step in steps.T])
        weights = None
        if self.weighted:
            weights = np.empty(len(found), self.values.dtype)
            for i, chain in enumerate(group):
                here = chain_index == i
                weights[here] = self.weights(chain, site[here])
        return masks.sum(axis=(1, 2)), columns, weights


class _Points(_Lattice):
    """A simplex exists if all its vertices are foreground. Its weight is their maximum."""

    corner = 0.0

    def present(self, chain: _Chain) -> _Array:
        foreground = self.values > self.background
        return reduce(np.logical_and, [_ahead(foreground, s) for s in chain])

    def weights(self, chain: _Chain, sites: _Array) -> _Array:
        return reduce(np.maximum, [_ahead(self.values, s).reshape(-1)[sites] for s in chain])


class _Cubes(_Lattice):
    """A simplex lies in a face of a cube and exists if a foreground pixel has this face. Its weight is their maximum."""

    corner = -0.5

    def __init__(self, values: _Array) -> None:
        super().__init__(values)
        self.faces: dict[tuple[int, ...], _Array] = {}

    def present(self, chain: _Chain) -> _Array:
        return self._face(chain[-1]) > self.background

    def weights(self, chain: _Chain, sites: _Array) -> _Array:
        return self._face(chain[-1]).reshape(-1)[sites]

    def _face(self, axes: tuple[int, ...]) -> _Array:
        """Maximum over the pixels that share the face along these axes, at each site."""
        if axes not in self.faces:
            face = self.values
            for axis in set(range(self.axes)) - set(axes):
                face = np.maximum(face, np.roll(face, 1, axis=1 + axis))
            self.faces[axes] = face
        return self.faces[axes]


def _ahead(values: _Array, axes: tuple[int, ...]) -> _Array:
    """The values one step ahead along the axes."""
    return np.roll(values, [-1] * len(axes), [1 + axis for axis in axes]) if axes else values
