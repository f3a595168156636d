"""Quirks of the published code, to reproduce its numbers."""

from __future__ import annotations

from dataclasses import replace

import torch

from ..complexes import Complex
from ..datasets import Dataset


def as_published(dataset: Dataset) -> Dataset:
    """Prepare shapes like the published code.

    One mean over all axes is subtracted from every coordinate, and every edge counts twice. The published code tested the last
    epoch: there is no validation split, and its shapes are not used.
    """
    splits = {name: indices for name, indices in dataset.splits.items() if name != "val"}
    return replace(dataset, shapes=_with_duplicate_edges(_centered(dataset.shapes)), splits=splits)


def _centered(shapes: Complex) -> Complex:
    """Shift each complex along the diagonal by the mean of all its coordinates, and scale its largest norm to 1."""
    batch, sizes = shapes.batch, shapes.offsets[0].diff()
    sums = shapes.points.new_zeros(len(shapes)).index_add(0, batch, shapes.points.sum(dim=1))
    moved = shapes.with_points(shapes.points - (sums / (sizes.clamp(min=1) * shapes.dim))[batch, None])
    largest = moved.largest_norms()
    return moved.with_points(moved.points / torch.where(largest > 0, largest, 1.0)[batch, None])


def _with_duplicate_edges(shapes: Complex) -> Complex:
    """List every edge twice."""
    levels = [torch.cat([s, s], dim=1) if len(s) == 2 else s for s in shapes.simplices]
    return Complex(shapes.points, levels, batch=shapes.batch, num_complexes=len(shapes))
