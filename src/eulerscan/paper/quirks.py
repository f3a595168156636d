"""The quirks of the published code, for those who want its numbers."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..complexes import Complex
from ..datasets import Dataset


def as_published(dataset: Dataset) -> Dataset:
    """Shapes as the published code prepared them, and its habit of testing the last epoch.

    One mean over all coordinates is subtracted from each of them, every edge counts twice, and there is no validation split:
    what was for validation is neither trained nor tested on.
    """
    splits = {name: indices for name, indices in dataset.splits.items() if name != "val"}
    return replace(dataset, shapes=_twice(_centred(dataset.shapes)), splits=splits)


def _centred(shapes: Complex) -> Complex:
    """Each complex moved along the diagonal by the mean of all its coordinates, and scaled to largest norm 1."""
    batch, sizes = shapes.batch, shapes.offsets[0].diff()
    sums = shapes.points.new_zeros(len(shapes)).index_add(0, batch, shapes.points.sum(dim=1))
    moved = shapes.with_points(shapes.points - (sums / (sizes.clamp(min=1) * shapes.dim))[batch, None])
    largest = moved.largest_norms()
    return moved.with_points(moved.points / torch.where(largest > 0, largest, 1.0)[batch, None])


def _twice(shapes: Complex) -> Complex:
    """The same with every edge listed twice."""
    levels = [torch.cat([s, s], dim=1) if len(s) == 2 else s for s in shapes.simplices]
    return Complex(shapes.points, levels, batch=shapes.batch, num_complexes=len(shapes))
