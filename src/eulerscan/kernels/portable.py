"""The fast algorithm in torch operations: any device, any order of derivatives.

A simplex has the height of its top vertex, so it needs no sigmoid of its own: it adds its sign to the coefficient of that
vertex. On the CPU a sigmoid, which differs from 0 and 1 only near its height, is evaluated on a window of thresholds; the
rest is one jump and a cumulative sum. Other devices evaluate it everywhere, since the host would have to wait for the size of
the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from .layout import Level, check_inputs, heights_of, levels

SATURATION = {torch.float32: 17.0, torch.float64: 37.0}
"""Beyond this argument a sigmoid is 0 or 1, up to rounding in its dtype."""

MAX_ENTRIES = 1 << 24  # of an intermediate tensor; directions and vertices are processed in blocks of that size


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
    parts = list(levels(weights, simplices, offsets, rows, dims, num_points=len(points)))
    by_windows, num_complexes = points.is_cpu, offsets.shape[1] - 1
    curves = []
    for block in _blocks(points, directions, thresholds, parts):
        heights = points[:, block] if directions is None else heights_of(points, directions[..., block, :], offsets)
        coefficients = collapse(heights.detach(), parts)  # [V, T]
        evaluate = _by_windows if by_windows else _everywhere
        curves.append(evaluate(heights, coefficients, thresholds, scale, parts[0], num_complexes))
    return torch.cat(curves, dim=1)


class Problem:
    """The arguments of both passes, which evaluate sigmoids everywhere, block by block, so that memory is bounded."""

    def __init__(self, inputs: tuple[Any, ...]) -> None:
        points, directions, thresholds, scale, weights, simplices, offsets, *others = inputs
        check_inputs(points, directions, thresholds, weights, simplices, offsets, *others)
        self.points, self.directions, self.thresholds, self.weights = points, directions, thresholds, weights
        self.scale: Tensor = scale.to(points)
        self.layout = (simplices, offsets, *others)

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        offsets, parts = self.layout[1], self._levels
        curves = []
        with torch.no_grad():
            for block in _blocks(self.points, self.directions, self.thresholds, parts):
                heights = heights_of(*self._in_block(block), offsets)
                coefficients = collapse(heights, parts)
                num_complexes = offsets.shape[1] - 1
                curves.append(_everywhere(heights, coefficients, self.thresholds, self.scale, parts[0], num_complexes))
            return torch.cat(curves, dim=1)

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        tensors = (self.points, self.directions, self.thresholds, self.scale, self.weights)
        # Sums over many blocks.
        found = [torch.zeros_like(t) if needed and t is not None else None for t, needed in zip(tensors, needs, strict=True)]
        for block in _blocks(self.points, self.directions, self.thresholds, self._levels):
            self._differentiate_block(gradient[:, block], block, found)
        return found

    @cached_property
    def _levels(self) -> list[Level]:
        """Without gradients. For edges and triangles together the host waits for their numbers, once."""
        weights = None if self.weights is None else self.weights.detach()
        return list(levels(weights, *self.layout, num_points=len(self.points)))

    def _in_block(self, block: slice) -> tuple[Tensor, Tensor | None]:
        """Points and directions of a block."""
        if self.directions is None:
            return self.points[:, block].detach(), None
        return self.points.detach(), self.directions[..., block, :].detach()

    def _differentiate_block(self, gradient: Tensor, block: slice, found: list[Tensor | None]) -> None:
        """Add the gradients of some directions, given those of their curves."""
        of_points, of_directions, of_thresholds, of_scale, of_weights = found
        parts, owner = self._levels, self._levels[0].owner
        points, directions = self._in_block(block)
        with torch.enable_grad():
            points.requires_grad_(of_points is not None)
            if directions is not None:
                directions.requires_grad_(of_directions is not None)
            leaves = [level.weights if level.weights is None else level.weights.detach() for level in parts]
            for leaf in leaves if of_weights is not None else ():
                assert leaf is not None
                leaf.requires_grad_()
            heights = heights_of(points, directions, self.layout[1])
            weighted = [level._replace(weights=leaf) for level, leaf in zip(parts, leaves, strict=True)]
            coefficients = collapse(heights.detach(), weighted)
            upstream = [torch.zeros_like(heights), torch.zeros_like(heights)]
            thresholds, scale = (t.detach().requires_grad_() for t in (self.thresholds, self.scale))
            for rows in _rows(heights, thresholds):
                pair = [t[rows].detach().requires_grad_() for t in (heights, coefficients)]
                counted = _counted(pair[0], pair[1], thresholds, scale)
                own = gradient.index_select(0, owner[rows])
                slopes = torch.autograd.grad(counted, (*pair, thresholds, scale), own, materialize_grads=True)
                upstream[0][rows], upstream[1][rows] = slopes[0], slopes[1]
                if of_thresholds is not None:
                    of_thresholds += slopes[2]
                if of_scale is not None:
                    of_scale += slopes[3]
            pairs = [(t, g) for t, g in zip((heights, coefficients), upstream, strict=True) if t.requires_grad]
            targets = [t for t in (points, directions, *leaves) if t is not None and t.requires_grad]
            if not pairs or not targets:
                return
            outputs, gradients = zip(*pairs, strict=True)
            slopes = torch.autograd.grad(outputs, targets, gradients, materialize_grads=True)
        added = iter(slopes)
        if of_points is not None:
            (of_points[:, block] if directions is None else of_points).add_(next(added))
        if of_directions is not None:
            of_directions[..., block, :] = next(added)
        if of_weights is not None:
            of_weights += torch.cat(list(added))

    @property
    def is_current(self) -> bool:
        """Always: torch manages the memory."""
        return True


def differentiate(
    gradient: Tensor,
    inputs: Sequence[Tensor | None],
    layout: tuple[Any, ...],
    *,
    create_graph: bool,
    transform: Callable[..., Tensor] = ect,
) -> list[Tensor | None]:
    """Gradients of the inputs that require them, ``None`` for the others; differentiable with ``create_graph``."""
    with torch.enable_grad():
        # Differentiate with respect to views: one input may have been computed from another.
        inputs = [None if tensor is None else tensor.view_as(tensor) for tensor in inputs]
        result = transform(*inputs, *layout)
        wanted = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
        found = iter(
            torch.autograd.grad(result, wanted, gradient, create_graph=create_graph, materialize_grads=True)
            if result.requires_grad
            else [torch.zeros_like(tensor) for tensor in wanted]
        )
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in inputs]


def _blocks(points: Tensor, directions: Tensor | None, thresholds: Tensor, parts: list[Level]) -> Iterator[slice]:
    """Directions in blocks, at least one, perhaps empty."""
    count = points.shape[1] if directions is None else directions.shape[-2]
    largest = max(len(points) * len(thresholds), *(level.vertices.numel() for level in parts))
    size = max(1, MAX_ENTRIES // max(1, largest))
    for start in range(0, max(1, count), size):
        yield slice(start, min(count, start + size))


def _rows(heights: Tensor, thresholds: Tensor) -> Iterator[slice]:
    """Vertices in blocks."""
    size = max(1, MAX_ENTRIES // max(1, heights.shape[1] * len(thresholds)))
    for start in range(0, len(heights), size):
        yield slice(start, start + size)


def _everywhere(
    heights: Tensor, coefficients: Tensor, thresholds: Tensor, scale: Tensor, vertices: Level, num_complexes: int
) -> Tensor:
    """The curves ``[B, T, H]`` of some directions, given heights and coefficients ``[V, T]``: no value is read."""
    result = heights.new_zeros(num_complexes, heights.shape[1], len(thresholds))
    add = Tensor.index_add if torch.is_grad_enabled() else Tensor.index_add_
    for rows in _rows(heights, thresholds):
        result = add(result, 0, vertices.owner[rows], _counted(heights[rows], coefficients[rows], thresholds, scale))
    invalid = ~torch.isfinite(thresholds).all() | (thresholds[1:] < thresholds[:-1]).any() | ~(scale > 0)
    return torch.where(invalid, torch.nan, result)


def _counted(heights: Tensor, coefficients: Tensor, thresholds: Tensor, scale: Tensor) -> Tensor:
    """``[V, T, H]``: coefficients times sigmoids. An infinite scale gives steps, without a gradient."""
    most = torch.finfo(heights.dtype).max / 4
    above = thresholds - heights.clamp(-most, most).unsqueeze(-1)  # finite, so that infinite heights have a gradient of 0
    exact = torch.isinf(scale)
    risen = torch.sigmoid(torch.where(exact, 1.0, scale) * above)
    unknown = heights.isnan()  # which steps would hide
    return torch.where(unknown, torch.nan, coefficients).unsqueeze(-1) * torch.where(exact, above >= 0, risen)


def _by_windows(
    heights: Tensor, coefficients: Tensor, thresholds: Tensor, scale: Tensor, vertices: Level, num_complexes: int
) -> Tensor:
    """The same, where it costs nothing to read values."""
    num_directions, num_thresholds = heights.shape[1], len(thresholds)

    # A vertex with coefficient zero adds nothing to the curves, but its weights may still need gradients.
    wanted = coefficients != 0 if vertices.weights is None else torch.ones_like(heights, dtype=torch.bool)
    vertex, direction = wanted.nonzero(as_tuple=True)
    height, coefficient = heights[vertex, direction], coefficients[vertex, direction]
    curve = vertices.owner[vertex] * num_directions + direction

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
    return result + heights.new_zeros(num_complexes, num_directions).index_add(0, vertices.owner, nan).unsqueeze(-1)


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
