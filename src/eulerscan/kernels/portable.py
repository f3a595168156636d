"""The fast algorithm in torch operations: any device, any order of derivatives.

A simplex has the height of its top vertex, so it needs no sigmoid of its own: it adds its sign to the coefficient of that
vertex. A sigmoid differs from 0 and 1 only near its height, so it is evaluated on a window of thresholds; the rest is
one jump and a cumulative sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._validation import ascending_error
from .layout import Level, heights_of, levels

SATURATION = {torch.float32: 17.0, torch.float64: 37.0}
"""Beyond this argument a sigmoid is 0 or 1, up to rounding in its dtype."""

MAX_ENTRIES = 1 << 24  # of an intermediate tensor; directions are processed in blocks of that size


def ect(
    points: Tensor,
    directions: Tensor | None,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
) -> Tensor:
    """Euler characteristic transform ``[B, T, H]``. The arguments are those of :mod:`.layout`."""
    if not bool(torch.isfinite(thresholds).all()) or bool((thresholds[1:] < thresholds[:-1]).any()):
        raise ascending_error(thresholds)
    parts = list(levels(weights, simplices, offsets, rows, dims))
    largest = max(len(points) * len(thresholds), *(level.vertices.numel() for level in parts))
    block_size = max(1, MAX_ENTRIES // max(1, largest))
    num_complexes = offsets.shape[1] - 1
    if directions is None:
        heights = iter(torch.split(points, block_size, dim=1))
    else:
        blocks = torch.split(directions, block_size, dim=-2)
        heights = (heights_of(points, block, offsets) for block in blocks)  # one at a time
    return torch.cat([_block(block, thresholds, scale, parts, num_complexes) for block in heights], dim=1)


class Problem(NamedTuple):
    """The arguments of both passes."""

    inputs: tuple[Any, ...]

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        return ect(*self.inputs)

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        tensors, layout = self.inputs[:5], self.inputs[5:]
        leaves = [None if t is None else t.detach().requires_grad_(needed) for t, needed in zip(tensors, needs, strict=True)]
        return differentiate(gradient, leaves, layout, create_graph=False)

    @property
    def is_current(self) -> bool:
        """Always: torch manages the memory."""
        return True


def differentiate(
    gradient: Tensor, inputs: Sequence[Tensor | None], layout: tuple[Any, ...], *, create_graph: bool
) -> list[Tensor | None]:
    """Gradients of the inputs that require them, ``None`` for the others; differentiable with ``create_graph``."""
    with torch.enable_grad():
        # Differentiate with respect to views: one input may have been computed from another.
        inputs = [None if tensor is None else tensor.view_as(tensor) for tensor in inputs]
        result = ect(*inputs, *layout)  # type: ignore[arg-type]
        wanted = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
        found = iter(
            torch.autograd.grad(result, wanted, gradient, create_graph=create_graph, materialize_grads=True)
            if result.requires_grad
            else [torch.zeros_like(tensor) for tensor in wanted]
        )
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in inputs]


def _block(heights: Tensor, thresholds: Tensor, scale: Tensor, parts: list[Level], num_complexes: int) -> Tensor:
    """The curves ``[B, T, H]`` of some directions, given the heights ``[V, T]`` of the vertices."""
    coefficients = collapse(heights.detach(), parts)  # [V, T]
    num_directions, num_thresholds = heights.shape[1], len(thresholds)

    # A vertex with coefficient zero adds nothing to the curves, but its weights may still need gradients.
    wanted = coefficients != 0 if parts[0].weights is None else torch.ones_like(heights, dtype=torch.bool)
    vertex, direction = wanted.nonzero(as_tuple=True)
    height, coefficient = heights[vertex, direction], coefficients[vertex, direction]
    curve = parts[0].owner[vertex] * num_directions + direction

    is_smooth = not bool(torch.isinf(scale))
    with torch.no_grad():
        reach = SATURATION[heights.dtype] / scale  # 0 for the exact transform
        first = torch.searchsorted(thresholds, height - reach)
        # A window holds both its ends, since rounding may move them to the height itself; that of the exact transform is empty.
        last = torch.searchsorted(thresholds, height + reach, right=is_smooth)

    jumps = heights.new_zeros(num_complexes * num_directions * (num_thresholds + 1))
    jumps = jumps.index_add(0, curve * (num_thresholds + 1) + last, coefficient)
    result = jumps.view(-1, num_thresholds + 1).cumsum(dim=1)[:, :-1].reshape(-1)

    if is_smooth:
        width = int((last - first).max()) if len(vertex) else 0
        window = first[:, None] + torch.arange(width, device=first.device)
        entry, step = (window < last[:, None]).nonzero(as_tuple=True)
        threshold = first[entry] + step
        sigmoid = torch.sigmoid(scale * (thresholds[threshold] - height[entry]))
        result = result.index_add(0, curve[entry] * num_thresholds + threshold, coefficient[entry] * sigmoid)
    result = result.view(num_complexes, num_directions, num_thresholds)
    nan = torch.where(heights.isnan(), heights, 0.0).square()  # squared, so that its gradient is NaN too
    return result + heights.new_zeros(num_complexes, num_directions).index_add(0, parts[0].owner, nan).unsqueeze(-1)


def collapse(heights: Tensor, parts: list[Level]) -> Tensor:
    """``[V, T]``: sum of the signed weights of the simplices whose top is this vertex in this direction."""
    coefficients = torch.zeros_like(heights)
    for level in parts:
        if not level.vertices.shape[1]:
            continue
        heights_of_vertices = heights[level.vertices]  # [rows, n, T]
        is_top = heights_of_vertices == heights_of_vertices.amax(dim=0)
        # Break ties by the largest index, so that the order of the vertices does not matter.
        top = torch.where(is_top, level.vertices.long()[:, :, None], -1).amax(dim=0)  # [n, T]
        weights = heights.new_ones(len(top)) if level.weights is None else level.weights
        # With a NaN height there is no top. Any vertex will do, since the curve is NaN anyway.
        top = torch.where(top < 0, level.vertices[0, :, None], top)
        coefficients = coefficients.scatter_add(0, top, level.sign * weights[:, None].expand_as(top))
    return coefficients
