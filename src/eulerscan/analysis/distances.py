r"""Distances between shapes: Lp norms of the difference of their curves.

All of them are

.. math:: d_p(a, b) = \Big(\frac{1}{T} \sum_i \int |a_i(t) - b_i(t)|^p \, dt\Big)^{1/p}

over a range of heights, with one curve for each of T directions. :func:`exact_distance` integrates the curves themselves;
:func:`distance` and :func:`distance_matrix` take transforms, that is, curves sampled at thresholds.
:mod:`eulerscan.analysis.alignment` has distances up to rotation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._validation import ascending_error, check_directions, check_radius, number
from ..complexes import Complex, Shape, as_complex
from ..kernels.layout import signs_of

__all__ = ["distance", "distance_matrix", "exact_distance"]

CHUNK_ENTRIES = 1 << 22
CHUNK_PAIRS = 1 << 18
# Squared distances below this fraction of the squared norms have lost too many digits to cancellation.
CANCELLATION = 1e-4


def exact_distance(a: Shape, b: Shape, directions: Tensor, *, p: float = 2, radius: float = 1.1) -> Tensor:
    """Lp distance of the curves of two shapes, without a grid of thresholds.

    Entry ``[i]`` is the distance of complex ``i`` of ``a`` and complex ``i`` of ``b`` over the heights from ``-radius`` to
    ``radius``. Curves only change at the heights of vertices, so the integral is a sum over the sorted heights. It is
    differentiable in points, directions and weights, although the curves are not.

    The range must be bounded because curves of shapes with different Euler characteristics differ at all large heights.
    Heights below the range are clamped to its lower end; what lies above it does not count.

    Args:
        a, b: As in :func:`ect`, with the same number of complexes. A single complex is compared with all of the other.
        directions: ``[T, dim]``.
        p: At least 1; ``math.inf`` is the largest difference at any height and in any direction.
        radius: Heights range from ``-radius`` to ``radius``.

    Returns:
        ``[B]``.

    Example:
        >>> line = torch.tensor([[1.]])
        >>> exact_distance(torch.tensor([[0.]]), torch.tensor([[0.25]]), line, p=1)
        tensor([0.2500])
    """
    one, other = as_complex(a), as_complex(b)
    check_p(p)
    check_radius(radius)
    if one.dim != other.dim:
        raise ValueError(f"a and b must have points of the same dimension, got {one.dim} and {other.dim}.")
    check_directions(directions, one.dim)
    count = num_pairs(one.num_complexes, other.num_complexes)
    dtype = torch.promote_types(torch.promote_types(one.points.dtype, other.points.dtype), directions.dtype)
    pairs = [(one[i % len(one)], other[i % len(other)]) for i in range(count)]
    found = [_exact(*pair, directions.double(), float(p), float(radius)) for pair in pairs]
    return torch.stack(found).to(dtype) if found else directions.new_zeros(0, dtype=dtype)


def distance(a: Tensor, b: Tensor, thresholds: Tensor | None = None, *, p: float = 2) -> Tensor:
    """Distances ``[B]`` of transforms, pair by pair.

    Entry ``[i]`` is the distance of ``a[i]`` and ``b[i]``: the p-th root of the differences to the power p, averaged over
    directions and integrated over height, or averaged over thresholds if these are not given.

    Args:
        a, b: Transforms ``[B, T, H]`` on the same grid, or with more axes before the last. A single complex is compared with
            all of the other.
        thresholds: ``[H]``, ascending. A curve is constant from one threshold to the next, so the last threshold only ends
            the range and its value does not count.
        p: At least 1; ``math.inf`` is the largest difference.

    Example:
        >>> distance(torch.tensor([[[0., 1., 1.]]]), torch.tensor([[[0., 0., 1.]]]), torch.tensor([0., 1., 3.]))
        tensor([1.4142])
    """
    check_pair(a, b)
    rows, others = scaled(a, thresholds, p), scaled(b, thresholds, p)
    count = num_pairs(len(rows), len(others))
    # One by one, so that the distance of a pair does not depend on the batch.
    rows, others = rows.expand(count, -1).unsqueeze(1), others.expand(count, -1).unsqueeze(1)
    return pairwise_lp(rows, others, p).view(count).to(torch.promote_types(a.dtype, b.dtype))


def distance_matrix(
    transforms: Tensor, others: Tensor | None = None, *, p: float = 2, thresholds: Tensor | None = None
) -> Tensor:
    """Pairwise distances ``[N, M]`` between two sets of transforms, or within one.

    Entry ``[i, j]`` is :func:`distance` of ``transforms[i]`` and ``others[j]``. Identical transforms have distance exactly
    zero, and the matrix of one set is exactly symmetric. Extra memory is of the order of input and output.

    Args:
        transforms, others: ``[N, T, H]`` and ``[M, T, H]``, on the same grid.
        p, thresholds: As in :func:`distance`. ``p=2`` is the fastest by far.

    Example:
        >>> distance_matrix(torch.tensor([[[0., 0.]], [[0., 1.]], [[2., 1.]]]), p=1)
        tensor([[0.0000, 0.5000, 1.5000],
                [0.5000, 0.0000, 1.0000],
                [1.5000, 1.0000, 0.0000]])
    """
    own = others is None
    second = transforms if others is None else others
    check_pair(transforms, second)
    rows = scaled(transforms, thresholds, p)
    columns = rows if own else scaled(second, thresholds, p)
    differentiated = torch.is_grad_enabled() and (rows.requires_grad or columns.requires_grad)
    result = pairwise_lp(rows, columns, p) if p != 2 or differentiated else _euclidean(rows, columns)
    if own:
        result = torch.triu(result, diagonal=1)
        result = result + result.T
    return result.to(torch.promote_types(transforms.dtype, second.dtype))


def _exact(a: Complex, b: Complex, directions: Tensor, p: float, radius: float) -> Tensor:
    """The distance of two complexes."""
    chunk = max(1, CHUNK_ENTRIES // max(1, sum(a.counts) + sum(b.counts)))
    parts = []
    for block in torch.split(directions, chunk):
        heights, jumps = zip(_jumps(a, block), _jumps(b, block), strict=True)
        merged, order = torch.cat(heights).clamp(-radius, radius).sort(dim=0, stable=True)
        widths = torch.cat([merged, merged.new_full((1, len(block)), radius)]).diff(dim=0)
        # Two sums rather than one of differences, so that equal curves are exactly equal whatever their weights.
        separate = (torch.cat([jumps[0], torch.zeros_like(jumps[1])]), torch.cat([torch.zeros_like(jumps[0]), jumps[1]]))
        first, second = (jump[:, None].expand_as(order).gather(0, order).cumsum(dim=0) for jump in separate)
        gaps = torch.where(widths == 0, 0.0, (first - second).abs())
        parts.append(gaps if math.isinf(p) else (gaps**p * widths).sum(dim=0))
    if math.isinf(p):
        return torch.cat([part.reshape(-1) for part in parts] + [directions.new_zeros(1)]).max()
    total = torch.cat(parts).mean()
    # The root is not differentiable at zero, the minimum of the distance: its gradient there is zero.
    return torch.where(total == 0, 0.0, torch.where(total == 0, 1.0, total) ** (1 / p))


def _jumps(complex: Complex, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Heights ``[S, T]`` of all simplices, and the jump ``[S]`` of a curve at each."""
    points, weights = complex.points.double(), complex.weights
    heights = points[:, :1] * directions[:, 0]
    for axis in range(1, complex.dim):  # no matrix product: its rounding depends on the number of rows
        heights = heights + points[:, axis, None] * directions[:, axis]
    levels = [heights, *(heights[columns].amax(dim=0) for columns in complex.simplices)]
    signs = [1, *signs_of(complex.rows, complex.packed.dims)]
    if weights is None:
        weights = tuple(points.new_ones(n) for n in complex.counts)
    return torch.cat(levels), torch.cat([sign * weight.double() for sign, weight in zip(signs, weights, strict=True)])


def scaled(transforms: Tensor, thresholds: Tensor | None, p: float) -> Tensor:
    """Transforms flattened to rows ``[N, n]`` and scaled, so that their Lp distances are :func:`distance`."""
    check_p(p)
    if thresholds is None:
        widths = transforms.new_full(transforms.shape[-1:], 1 / max(1, transforms.shape[-1]), dtype=torch.float64)
    else:
        widths = _widths(thresholds, transforms)
    curves = math.prod(transforms.shape[1:-1])
    scales = (widths > 0).double() if math.isinf(p) else (widths / max(1, curves)) ** (1 / p)
    return (transforms.double() * scales).flatten(1)


def _widths(thresholds: Tensor, transforms: Tensor) -> Tensor:
    """``[H]``: length of the interval on which each value of a curve holds."""
    if not isinstance(thresholds, Tensor) or thresholds.shape != transforms.shape[-1:]:
        got = list(thresholds.shape) if isinstance(thresholds, Tensor) else type(thresholds).__name__
        raise ValueError(f"thresholds must be a torch.Tensor [{transforms.shape[-1]}], one per entry of a curve, got {got}.")
    widths = torch.nn.functional.pad(thresholds.detach().double().diff(), (0, 1))
    if not bool((widths >= 0).all()):  # NaN too
        raise ascending_error(thresholds)
    return widths


def pairwise_lp(rows: Tensor, others: Tensor, p: float) -> Tensor:
    """Lp distances ``[..., N, M]`` of rows ``[..., N, n]`` and ``[..., M, n]``, computed from differences."""
    return torch.cdist(rows, others, p=float(p), compute_mode="donot_use_mm_for_euclid_dist")


def _euclidean(rows: Tensor, others: Tensor) -> Tensor:
    """Euclidean distances by matrix products. Inaccurate ones, of nearby rows, are recomputed from differences."""
    norms, other_norms = (x.square().sum(dim=1) for x in (rows, others))
    result = rows.new_empty(len(rows), len(others))
    chunk = max(1, CHUNK_ENTRIES // max(1, len(others)))
    for start in range(0, len(rows), chunk):
        block = slice(start, start + chunk)
        sums = norms[block, None] + other_norms
        squares = sums - 2 * (rows[block] @ others.T)
        result[block] = squares.clamp(min=0).sqrt()
        close = (squares <= CANCELLATION * sums).nonzero()
        if 8 * len(close) > squares.numel():
            result[block] = pairwise_lp(rows[block], others, 2)
            continue
        for pairs in torch.split(close, max(1, CHUNK_PAIRS // max(1, rows.shape[1]))):
            i, j = pairs[:, 0] + start, pairs[:, 1]
            result[i, j] = (rows[i] - others[j]).square().sum(dim=1).sqrt()
    return result


def check_pair(a: Tensor, b: Tensor) -> None:
    """Check that transforms have the same grid."""
    for name, tensor in (("first", a), ("second", b)):
        if not isinstance(tensor, Tensor) or tensor.ndim < 2 or not tensor.is_floating_point():
            got = f"{tensor.dtype} {list(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise ValueError(f"the {name} transforms must be a floating-point torch.Tensor [B, T, H], got {got}.")
    if a.shape[1:] != b.shape[1:]:
        raise ValueError(
            f"transforms must have the same grid, [B, T, H] with equal T and H, got {list(a.shape)} and {list(b.shape)}."
        )


def num_pairs(count: int, other: int) -> int:
    """Number of pairs, where a single complex is compared with all of the other."""
    if count != other and 1 not in (count, other):
        raise ValueError(
            f"a and b must have the same number of complexes, or one of them a single one, got {count} and {other}."
        )
    return other if count == 1 else count


def check_p(p: float) -> None:
    """Check the exponent of an Lp distance."""
    number(p, "p", least=1)  # inf: the largest difference
