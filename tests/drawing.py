"""Complexes for the tests, and the answer by counting."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eulerscan as es


def closed(facets: list[tuple[int, ...]]) -> dict[int, list[tuple[int, ...]]]:
    """All faces of the facets, by number of vertices, vertices themselves left out."""
    faces = {tuple(sorted(f)) for facet in facets for r in range(2, len(facet) + 1) for f in itertools.combinations(facet, r)}
    return {r: sorted(f for f in faces if len(f) == r) for r in sorted({len(f) for f in faces})}


def random_complex(
    rng: np.random.Generator,
    *,
    num_points: int = 9,
    dim: int = 2,
    top: int = 2,
    lattice: bool = False,
    weighted: bool = False,
    dtype: torch.dtype = torch.float64,
) -> es.Complex:
    """A complex with simplices up to dimension ``top``; points on small integers if ``lattice``."""
    points = rng.integers(-2, 3, (num_points, dim)) if lattice else rng.uniform(-1, 1, (num_points, dim))
    facets = []
    for k in range(1, top + 1):
        if num_points > k:
            facets += [tuple(rng.choice(num_points, k + 1, replace=False).tolist()) for _ in range(max(1, 6 - k))]
    levels = [torch.tensor(faces).T for faces in closed(facets).values()]
    weights = (
        [torch.tensor(rng.normal(size=n)) for n in (num_points, *(level.shape[1] for level in levels))] if weighted else None
    )
    return es.Complex(torch.tensor(points, dtype=dtype), levels, weights=weights)


def batch_of(*complexes: es.Complex) -> es.Complex:
    return es.collate(complexes)


def counted(complex: es.Complex, directions: torch.Tensor, thresholds: torch.Tensor) -> torch.Tensor:
    """The exact transform simplex by simplex: nothing of the library but the parts of the complex."""
    points, heights_wanted = complex.points.double().tolist(), thresholds.tolist()
    owner = complex.batch.tolist()
    weights = complex.weights or [torch.ones(n) for n in complex.counts]
    result = np.zeros((complex.num_complexes, len(directions), len(thresholds)))
    levels = [[(v,) for v in range(len(points))], *([tuple(column) for column in s.T.tolist()] for s in complex.simplices)]
    for t, direction in enumerate(directions.double().tolist()):
        heights = [sum(x * d for x, d in zip(p, direction, strict=True)) for p in points]
        for level, weight in zip(levels, weights, strict=True):
            for simplex, w in zip(level, weight.tolist(), strict=True):
                top = max(heights[v] for v in simplex)
                for j, threshold in enumerate(heights_wanted):
                    if top <= threshold:
                        result[owner[simplex[0]], t, j] += (-1) ** (len(simplex) - 1) * w
    return torch.tensor(result)


seeds = st.integers(0, 2**32 - 1)


def drawn(**strategies):
    """``hypothesis.given`` for tests of a kernel. Few examples with Triton, whose interpreter is slow."""

    def decorate(test):
        many, few = given(**strategies)(test), settings(max_examples=3)(given(**strategies)(test))

        @functools.wraps(many)
        def run(*arguments, **named):
            (few if named["kernel"] == "triton" else many)(*arguments, **named)

        return run

    return decorate


@st.composite
def batches(draw: st.DrawFn, *, most: int = 3, lattice: bool = False, weighted: bool = False) -> es.Complex:
    """One to three complexes of one dimension of space, mixed in size and kind, perhaps with empty ones between."""
    rng = np.random.default_rng(draw(seeds))
    dim = draw(st.integers(1, 6))
    kinds = draw(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=most))
    return es.collate(
        [random_complex(rng, num_points=n, dim=dim, top=top, lattice=lattice, weighted=weighted) for n, top in kinds]
    )


def directions_for(complex: es.Complex, n: int, seed: int = 0) -> torch.Tensor:
    return es.directions.random(n, complex.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
