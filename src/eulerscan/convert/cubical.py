"""The Freudenthal triangulation of the foreground of pictures: every unit square or cube of the lattice cut in the same way.

A simplex of it is a chain: it begins at a lattice site x and goes up, x + e_S1, x + e_S2, ..., where the sets of axes
S1, S2, ... grow. So the simplices of one kind are a mask over the lattice, and no loop visits a pixel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache, reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..complexes import Complex, collate

_Array = np.ndarray[Any, Any]
_Chain = tuple[tuple[int, ...], ...]  # sets of axes, each with the next one as a subset of it

# Lattice sites worked on at once: enough to amortise a call, little enough for some 200 MB.
_BLOCK = 2**21


@cache
def chains(axes: int) -> tuple[tuple[_Chain, ...], ...]:
    """The kinds of k-simplices for k = 1, ..., ``axes``.

    >>> [len(kinds) for kinds in chains(3)]
    [7, 12, 6]
    """
    subsets = [s for size in range(1, axes + 1) for s in itertools.combinations(range(axes), size)]
    levels: list[tuple[_Chain, ...]] = [(((),),)]
    for _ in range(axes):
        levels.append(tuple((*chain, s) for chain in levels[-1] for s in subsets if set(chain[-1]) < set(s)))
    return tuple(levels[1:])


def cubes(values: _Array) -> Complex:
    """Every pixel a unit cube around its place, from -1/2 to 1/2. ``values`` is as :func:`lattice_points` takes it."""
    return _in_blocks(values, _Cubes)


def lattice_points(values: _Array) -> Complex:
    """Every pixel a vertex at its place, joined with those of its neighbours in the triangulation.

    Args:
        values: ``[N, ...]`` with one to three axes after the first: booleans, true in the foreground; or the weights
            of pixels, minus infinity in the background.

    Returns:
        N complexes, coordinates in the order of the axes.

    Example:
        >>> lattice_points(np.ones((1, 2, 2), dtype=bool))
        Complex(num_complexes=1, dim=2, points=4, simplices=(5 edges, 2 triangles))
    """
    return _in_blocks(values, _Points)


def _in_blocks(values: _Array, kind: type[_Lattice]) -> Complex:
    step = max(1, _BLOCK // max(1, int(np.prod(values.shape[1:]))))
    return collate([kind(values[i : i + step]).complex() for i in range(0, max(1, len(values)), step)])


class _Lattice:
    """Some pictures, with one more site than pixels along every axis."""

    corner: float  # where a site lies, from the place of the pixel of the same number

    def __init__(self, values: _Array) -> None:
        self.weighted = values.dtype != np.bool_
        self.background = -np.inf if self.weighted else False
        self.axes = values.ndim - 1
        # A last background site along every axis: what a shift brings around the edge is background.
        self.values = np.pad(values, [(0, 0), *[(0, 1)] * self.axes], constant_values=self.background)
        self.shape = self.values.shape[1:]

    def present(self, chain: _Chain) -> _Array:
        """``[N, ...]``: whether there is a simplex of this kind at a site."""
        raise NotImplementedError

    def weights(self, chain: _Chain, sites: _Array) -> _Array:
        """The weights of the simplices of a kind at some sites, which are numbered through all pictures."""
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
        for kinds in chains(self.axes):
            level = [self._level(kinds_here, number) for kinds_here in self._together(kinds)]
            counts.append(np.sum([found for found, _, _ in level], axis=0))
            columns.append(np.concatenate([c for _, c, _ in level], axis=1).reshape(-1))
            weights += [w for _, _, w in level if w is not None]
        offsets = np.pad(np.cumsum(counts, axis=1), [(0, 0), (1, 0)])
        return Complex._make(
            points,
            torch.from_numpy(offsets),
            tuple(range(2, 2 + self.axes)),
            torch.from_numpy(np.concatenate(columns)),
            _joined(weights, points.dtype) if self.weighted else None,
        )

    def _together(self, kinds: tuple[_Chain, ...]) -> Iterator[tuple[_Chain, ...]]:
        """All kinds at once, so that the simplices of a picture follow each other; one by one where there is one picture."""
        return iter([kinds] if len(self.values) != 1 else [(kind,) for kind in kinds])

    def _level(self, kinds: tuple[_Chain, ...], number: _Array) -> tuple[_Array, _Array, _Array | None]:
        """How many simplices each picture has, their columns, and their weights."""
        count, size = len(self.values), int(np.prod(self.shape))
        masks = np.stack([self.present(chain).reshape(count, size) for chain in kinds], axis=1)
        found = np.flatnonzero(masks)
        picture, rest = np.divmod(found, len(kinds) * size)
        kind, site = np.divmod(rest, size)
        site += picture * size
        strides = np.array([int(np.prod(self.shape[axis + 1 :])) for axis in range(self.axes)], np.int64)
        steps = np.array([[strides[list(s)].sum() for s in chain] for chain in kinds], np.int64)  # [K, k + 1]
        columns = np.stack([number[site + step[kind]] for step in steps.T])
        weights = None
        if self.weighted:
            weights = np.empty(len(found), self.values.dtype)
            for i, chain in enumerate(kinds):
                here = kind == i
                weights[here] = self.weights(chain, site[here])
        return masks.sum(axis=(1, 2)), columns, weights


class _Points(_Lattice):
    """A simplex is there where all of its vertices are; its weight is the largest of theirs."""

    corner = 0.0

    def present(self, chain: _Chain) -> _Array:
        foreground = self.values > self.background
        return reduce(np.logical_and, [_ahead(foreground, s) for s in chain])

    def weights(self, chain: _Chain, sites: _Array) -> _Array:
        return reduce(np.maximum, [_ahead(self.values, s).reshape(-1)[sites] for s in chain])


class _Cubes(_Lattice):
    """A simplex cuts a face of a cube. It is there where a pixel is that has this face; its weight is the largest of theirs."""

    corner = -0.5

    def __init__(self, values: _Array) -> None:
        super().__init__(values)
        self.faces: dict[tuple[int, ...], _Array] = {}

    def present(self, chain: _Chain) -> _Array:
        return self._face(chain[-1]) > self.background

    def weights(self, chain: _Chain, sites: _Array) -> _Array:
        return self._face(chain[-1]).reshape(-1)[sites]

    def _face(self, axes: tuple[int, ...]) -> _Array:
        """The largest of the pixels that share the face at a site which extends along these axes."""
        if axes not in self.faces:
            face = self.values
            for axis in set(range(self.axes)) - set(axes):
                face = np.maximum(face, np.roll(face, 1, axis=1 + axis))
            self.faces[axes] = face
        return self.faces[axes]


def _ahead(values: _Array, axes: tuple[int, ...]) -> _Array:
    """The values one step further along the axes."""
    return np.roll(values, [-1] * len(axes), [1 + axis for axis in axes]) if axes else values


def _joined(weights: list[_Array], dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(np.concatenate(weights)).to(dtype)
