"""Features of shapes for statistics: transforms, what of them does not change under rotation, and sizes."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..complexes import Complex
from ..complexes.normalize import measures
from ..config import ECTConfig
from ..variants import direction_spectrum

__all__ = ["centroid_sizes", "feature_blocks", "measure_weighted", "rotation_invariant"]


def feature_blocks(shapes: Complex, config: ECTConfig) -> dict[str, Tensor]:
    """Transforms of shapes that see different things, ``[B, T, H]`` each.

    - ``transform``: as ``config`` says. It sees corners and holes, however small.
    - ``smooth``: the smooth transform (SECT), which sees them in proportion to their extent in height.
    - ``measure``: the length of the edges, or the area of the triangles, below each height. It sees where the shape is.
      Point clouds and weighted shapes do not have it.

    Args:
        shapes: The shapes.
        config: How they are transformed.
    """
    blocks = {"transform": config.transform(shapes)}
    if config.variant in ("ect", "superlevel"):
        blocks["smooth"] = replace(config, variant="sect", derivative=False).transform(shapes)
    weighted = measure_weighted(shapes.normalized(config.normalize)) if config.normalize else measure_weighted(shapes)
    if weighted is not None:
        plain = replace(config, normalize=None, radius=config.largest_height, variant="ect", derivative=False, divide_by=None)
        blocks["measure"] = plain.transform(weighted)
    return blocks


def measure_weighted(shapes: Complex) -> Complex | None:
    """The shapes with weights, so that the transform is the length or area below each height. ``None`` if there is none.

    Simplices of the largest dimension of a shape count with their length, area or volume, all others with 0.
    """
    if not shapes.simplices or shapes.weights is not None or not shapes.is_simplicial:
        return None
    weights, top = [torch.zeros_like(shapes.points[:, 0])], top_dims(shapes)
    for dim, columns in zip(shapes.dims, shapes.simplices, strict=True):
        corners = shapes.points[columns.long()]
        counts = top[shapes.batch[columns[0].long()]] == dim
        # The transform counts a k-simplex with the sign (-1)^k.
        weights.append(torch.where(counts, (-1) ** dim * measures(corners[1:] - corners[0]), 0.0))
    return Complex(
        shapes.points, shapes.simplices, weights=tuple(weights), batch=shapes.batch, num_complexes=shapes.num_complexes
    )


def top_dims(shapes: Complex) -> Tensor:
    """``[B]``: the largest dimension of the cells of each shape, 0 for point clouds."""
    found = torch.zeros(shapes.num_complexes, dtype=torch.int64)
    for dim, bounds in zip(shapes.dims, shapes.offsets[1:], strict=True):
        found = torch.where(bounds.diff() > 0, found.clamp(min=dim), found)
    return found


def rotation_invariant(transform: Tensor, dim: int) -> Tensor:
    """What of transforms ``[B, T, H]`` does not change under rotation, up to the angle between directions.

    In the plane these are the magnitudes of the Fourier coefficients over directions
    (:func:`~eulerscan.variants.direction_spectrum`); in space the values at each height, sorted over directions.
    """
    return direction_spectrum(transform) if dim == 2 else transform.sort(dim=-2).values


def centroid_sizes(shapes: Complex) -> Tensor:
    """``[B]``: root mean square distance of the vertices of each shape to its centroid.

    >>> centroid_sizes(Complex(torch.tensor([[0.0, 0.0], [2.0, 0.0]])))
    tensor([1.])
    """
    centered = shapes.normalized("center")
    squares = centered.points.square().sum(dim=1)
    sums = torch.zeros(shapes.num_complexes, dtype=squares.dtype).index_add(0, centered.batch, squares)
    return (sums / centered.offsets[0].diff().clamp(min=1)).sqrt()
