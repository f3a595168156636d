"""The local transform: that of the neighborhood of every vertex."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._validation import check_choice
from .complexes import Complex, Shape, as_complex
from .complexes.neighborhoods import Balls, Search, Subcomplexes, check_nodes, given_size
from .complexes.normalize import Normalize, largest_norms, nonzero
from .functional import ecc, ect
from .kernels.layout import heights_of

MAX_COORDINATES = 1 << 21  # of the neighborhoods that are held at once
MAX_VALUES = 1 << 24  # of their transforms


def local_ect(
    shape: Shape,
    directions: Tensor,
    thresholds: Tensor,
    *,
    hops: int | Sequence[int] | None = None,
    radius: float | Sequence[float] | None = None,
    k: int | Sequence[int] | None = None,
    nodes: Any = None,
    max_vertices: int | None = None,
    normalize: Normalize | None = "vertices",
    scale: float | Tensor = math.inf,
) -> Tensor:
    """Local Euler characteristic transform: the transform of the neighborhood of every vertex.

    Entry ``[v, s, i, j]`` is the Euler characteristic of the part of the neighborhood of vertex ``v``, of size ``s``, that lies
    at or below height ``thresholds[j]`` in direction ``directions[i]``. :func:`neighborhoods` says what a neighborhood is.

    Neighborhoods are made and transformed in blocks, so that memory is bounded: a few hundred MB beside the result. With a
    finite ``scale`` the result is differentiable like :func:`ect`; if there are several blocks, the backward pass computes each
    of them again, and there are no second derivatives.

    Args:
        shape: A graph, mesh, point cloud or complex of any dimension, or a batch: a :class:`Complex`, or anything
            :func:`as_complex` understands. With more coordinates than directions, such as features of the nodes, every vertex
            is projected once.
        directions: One direction a row, ``[T, dim]``.
        thresholds: Ascending heights, ``[H]``. Normalized neighborhoods lie between -1 and 1.
        hops, radius, k: One or several sizes of the neighborhood, as in :func:`neighborhoods`. Default: ``hops=(1, 2)``.
        nodes, max_vertices: As in :func:`neighborhoods`.
        normalize: ``"vertices"`` moves every neighborhood to the unit ball about the mean of its vertices, as in LEAP; other
            values as in :meth:`Complex.normalized`; ``None`` takes coordinates as they are. A vertex alone goes to 0.
        scale: As in :func:`ect`.

    Returns:
        ``[V, S, T, H]`` for S sizes, or with ``[n, ...]`` for n nodes.

    Example:
        >>> path = Complex(torch.tensor([[0.0], [1.0], [2.0]]), [torch.tensor([[0, 1], [1, 2]])])
        >>> transform = local_ect(path, torch.tensor([[1.0]]), torch.tensor([-1.0, 0.0, 1.0]), hops=1)
        >>> transform.shape, transform[:, 0, 0].tolist()
        (torch.Size([3, 1, 1, 3]), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """
    complex = as_complex(shape)
    check_choice(normalize, "normalize", get_args(Normalize), optional=True)
    if not isinstance(directions, Tensor) or directions.ndim != 2:
        got = list(directions.shape) if isinstance(directions, Tensor) else type(directions).__name__
        raise ValueError(f"directions must be a tensor [T, {complex.dim}], the same for all neighborhoods, got {got}.")
    empty = ect(complex.select([]), directions, thresholds, scale=scale)  # checks them, whatever the neighborhoods
    complex = complex.to(dtype=empty.dtype)
    chosen, inside = check_nodes(nodes, complex), Subcomplexes(complex)
    searches = [Search(complex, max_vertices=max_vertices, **size) for size in sizes_of(complex, hops, radius, k)]
    most = max(1, MAX_VALUES // max(1, len(directions) * len(thresholds)))
    project = len(directions) < complex.dim and normalize in (None, "vertices")
    heights = heights_of(complex.points, directions.to(empty.dtype), complex.offsets) if project else None

    inputs = (complex.points, complex.packed.weights, heights, directions, thresholds, scale)
    recorded = torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in inputs)

    def transform(balls: Balls, points: Tensor, weights: Any, heights: Any, *grid: Any) -> Tensor:
        part = inside.on(balls, Complex.from_packed(complex.packed._replace(points=points, weights=weights)))
        directions, thresholds, scale = grid
        if heights is None:
            return ect(part.normalized(normalize), directions, thresholds, scale=scale)
        own = heights.index_select(0, balls.members)
        return ecc(part, own if normalize is None else normalized_heights(own, part), thresholds, scale=scale)

    def blocks(search: Search) -> Iterator[Tensor]:
        for balls in search.balls(chosen, MAX_COORDINATES // complex.dim, most):
            function = partial(transform, balls)
            several = len(balls.offsets) <= len(chosen)
            call = partial(_Recomputed.apply, function) if recorded and several else function
            yield call(*inputs)

    if recorded or not len(chosen):
        return torch.stack([torch.cat([empty, *blocks(search)]) for search in searches], dim=1)
    result = empty.new_empty(len(chosen), len(searches), *empty.shape[1:])
    for s, search in enumerate(searches):
        start = 0
        for block in blocks(search):
            result[start : start + len(block), s] = block
            start += len(block)
    return result


class _Recomputed(torch.autograd.Function):
    """A function of tensors and other arguments, computed again by the backward pass: it holds no memory in between.

    :func:`torch.utils.checkpoint.checkpoint` would hold what the kernel keeps for its own backward pass.
    """

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *inputs: Any) -> Tensor:
        ctx.function, ctx.others = function, [None if isinstance(x, Tensor) else x for x in inputs]
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in inputs))
        return function(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[1:]
        with torch.enable_grad():
            tensors = [
                x if x is None else x.detach().requires_grad_(needs) for x, needs in zip(ctx.saved_tensors, needed, strict=True)
            ]
            result = ctx.function(*(other if x is None else x for x, other in zip(tensors, ctx.others, strict=True)))
        wanted = [x for x, needs in zip(tensors, needed, strict=True) if x is not None and needs]
        found = iter(torch.autograd.grad(result, wanted, gradient, allow_unused=True))
        return (None, *(next(found) if needs else None for needs in needed))


def sizes_of(
    complex: Complex,
    hops: int | Sequence[int] | None,
    radius: float | Sequence[float] | None,
    k: int | Sequence[int] | None,
) -> list[dict[str, Any]]:
    """The sizes of neighborhoods, each as an argument of :class:`Search`."""
    given = given_size(hops, radius, k)
    if not given:
        Search(complex)  # a cloud has no hops
        given = {"hops": (1, 2)}
    ((name, value),) = given.items()
    values = list(value) if isinstance(value, Sequence) else [value]
    if not values:
        raise ValueError(f"{name} must have at least one size, got none.")
    return [{name: value} for value in values]


def normalized_heights(heights: Tensor, part: Complex) -> Tensor:
    """Heights ``[n, T]`` of the vertices of neighborhoods after :meth:`Complex.normalized` by vertices."""
    batch, first, count = part.batch, part.offsets[0][:-1], part.num_complexes
    sizes = part.offsets[0].diff().to(heights.dtype)[:, None]

    def centered(values: Tensor) -> Tensor:
        values = values - values[first][batch]  # coincident points are exactly zero
        return values - (values.new_zeros(count, values.shape[1]).index_add(0, batch, values) / sizes)[batch]

    norms = largest_norms(centered(part.points), batch, count)
    return centered(heights) / nonzero(norms)[batch, None].to(heights.dtype)
