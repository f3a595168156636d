"""Outlines: points along a curve, joined to a closed polygon."""

from __future__ import annotations

import torch

from .._validation import check_bool
from ..complexes import Complex, Shape, as_complex
from ..complexes.complex import collate
from .contours import Polygon, region


def from_outline(points: Shape, *, closed: bool = True, filled: bool = False) -> Complex:
    """Convert points along a curve to a :class:`Complex`: consecutive points are joined by edges, and the last to the first.

    A last point that repeats the first one is dropped. Gradients flow back to the points, unless outlines are filled.

    Args:
        points: ``[V, dim]``, or outlines with equally many points ``[N, V, dim]``, or a list of outlines.
        closed: Whether to join the last point to the first.
        filled: Whether to fill the outline with triangles, in the plane. It needs three points, and must not cross itself.

    Example:
        >>> square = torch.tensor([[0., 0], [1, 0], [1, 1], [0, 1]])
        >>> from_outline(square)
        Complex(num_complexes=1, dim=2, points=4, simplices=(4 edges,))
        >>> from_outline(square, filled=True).euler_characteristic()
        tensor([1])
    """
    check_bool(closed, "closed")
    check_bool(filled, "filled")
    complex = as_complex(points)
    if complex.max_dim:
        raise ValueError(f"points must be points along a curve, without simplices, got {complex}.")
    if complex.weights is not None:
        raise ValueError(
            "points must be unweighted: from_outline() cannot know the weights of edges. Add weights to its result."
        )
    if closed:
        first, last = complex.offsets[0, :-1], complex.offsets[0, 1:] - 1
        several = (last > first).nonzero().squeeze(1)
        repeated = several[(complex.points[first[several]] == complex.points[last[several]]).all(dim=1)]
        if len(repeated):
            kept = torch.ones(len(complex.points), dtype=torch.bool, device=complex.device)
            kept[last[repeated]] = False
            complex = Complex(complex.points[kept], batch=complex.batch[kept], num_complexes=complex.num_complexes)
    if filled:
        if not closed or complex.dim != 2:
            raise ValueError("filled must be False unless outlines are closed and in the plane.")
        sizes = complex.offsets[0].diff().tolist()
        if min(sizes, default=3) < 3:
            raise ValueError(f"points must be at least three in each outline to be filled, got {min(sizes)}.")
        rings = [Polygon(ring.numpy(), []) for ring in complex.points.detach().cpu().double().split(sizes)]
        return collate([region([ring], complex.points.dtype) for ring in rings]).to(complex.device)
    here = torch.arange(len(complex.points), device=complex.device)
    first, end = complex.offsets[0, complex.batch], complex.offsets[0, complex.batch + 1]
    is_last = here + 1 == end
    there = torch.where(is_last, first, here + 1)
    # Two points have one edge, and one point has none.
    joined = (~is_last | (end - first > 2)) if closed else ~is_last
    edges = torch.stack([here[joined], there[joined]])
    return Complex(complex.points, [edges] if edges.numel() else [], batch=complex.batch, num_complexes=complex.num_complexes)
