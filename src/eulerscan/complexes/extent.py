"""Extent of shapes: lengths, areas and volumes as weights, dimensions, and sizes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._devices import double
from .complex import Complex
from .normalize import measures


def measure_weighted(shapes: Complex) -> Complex | None:
    """The shapes with weights, so that the transform is the length or area below each height. ``None`` if there is none.

    Simplices of the largest dimension of a shape count with their length, area or volume, all others with 0.
    """
    if not shapes.max_dim or shapes.weights is not None or not shapes.is_simplicial:
        return None
    weights, top = [torch.zeros_like(shapes.points[:, 0])], top_dims(shapes).to(shapes.device)
    for dim, columns in zip(shapes.dims, shapes.simplices, strict=True):
        corners = shapes.points[columns.long()]
        counts = top[shapes.batch[columns[0].long()]] == dim
        # The transform counts a k-simplex with the sign (-1)^k, and a simplex is a part of the parallelotope of its edges.
        weights.append(torch.where(counts, (-1) ** dim / math.factorial(dim) * measures(corners[1:] - corners[0]), 0.0))
    return shapes.with_weights(tuple(weights))


def top_dims(shapes: Complex) -> Tensor:
    """``[B]``: the largest dimension of the cells of each shape, 0 for point clouds."""
    found = shapes.offsets.new_zeros(shapes.num_complexes)
    for dim, bounds in zip(shapes.dims, shapes.offsets[1:], strict=True):
        found = torch.where(bounds.diff() > 0, found.clamp(min=dim), found)
    return found


def centroid_sizes(shapes: Complex) -> Tensor:
    """``[B]``: root mean square distance of the vertices of each shape to its centroid.

    >>> centroid_sizes(Complex(torch.tensor([[0.0, 0.0], [2.0, 0.0]])))
    tensor([1.])
    """
    centered = shapes.normalized("center")
    squares = double(centered.points).square().sum(dim=1)
    sums = squares.new_zeros(shapes.num_complexes).index_add(0, centered.batch.to(squares.device), squares)
    means = sums / centered.offsets[0].diff().clamp(min=1).to(sums)
    # The square root has no derivative at 0, the size of a single point.
    positive = means > 0
    return torch.where(positive, torch.where(positive, means, 1.0).sqrt(), 0.0).to(shapes.points)
