"""MNIST as graphs of superpixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._imports import compiled
from ..complexes import Complex
from .dataset import Dataset
from .download import Source, reading
from .mnist import DIGITS, official_splits

_Array = np.ndarray[Any, Any]
NUM_NEIGHBORS = 8
SIDE = 28  # of an image, in pixels
RECIPE = (
    "it holds SLIC superpixels of the MNIST digits (at most 75 per digit, compactness 0.25, as in the MNIST-75sp "
    "benchmark) as arrays intensity [N], pos [N, 2] (row and column in pixels), offset [graphs + 1] and y [graphs]."
)


def superpixels(name: str = "mnist-superpixels", *, intensity: bool = True, weighted: bool = False) -> Dataset:
    """The 70,000 digits as graphs: a node for each superpixel, with edges to its 8 nearest neighbors.

    The first 5,000 of the 60,000 training digits are for validation. Edges are undirected and unique: one end is among the
    nearest neighbors of the other.

    Args:
        intensity: Points ``(row, column, intensity)`` in space, each from 0 to 1; else ``(row, column)`` in the plane. Rows
            are counted from the top, as in the file. Positions are divided by 28, the side of an image in pixels.
        weighted: Points in the plane with intensities as weights instead. The weight of an edge is that of its darker end.
    """
    parts = [_read(file, count) for file, count in (("train.npz", 60000), ("test.npz", 10000))]
    positions, brightness, sizes, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    points = positions / SIDE
    if intensity and not weighted:
        points = torch.cat([points, brightness[:, None]], dim=1)
    batch = torch.arange(len(sizes)).repeat_interleave(sizes)
    shapes = Complex(points, [nearest_neighbors(positions, sizes)], batch=batch, num_complexes=len(sizes))
    if weighted:  # by the darker end: with the brighter one, strokes would extend to all neighbors
        shapes = shapes.with_weights(brightness, "min")
    return Dataset(name, shapes, labels, DIGITS, official_splits())


def nearest_neighbors(positions: Tensor, sizes: Tensor, *, count: int = NUM_NEIGHBORS) -> Tensor:
    """Unique edges ``[2, n]`` between each point and its nearest neighbors in the same cloud.

    Ties are broken by index. A cloud with fewer points becomes a complete graph.

    Args:
        positions: Points of all clouds, cloud after cloud, ``[V, dim]``.
        sizes: Number of points of each cloud, ``[n]``.
        count: Number of neighbors.

    >>> nearest_neighbors(torch.tensor([[0.0], [1.0], [3.0], [0.0]]), torch.tensor([3, 1]), count=1)
    tensor([[0, 1],
            [1, 2]])
    """
    if int(sizes.sum()) != len(positions) or count < 1:  # the compiled loop does not check its indices
        raise ValueError(
            f"sizes must add up to {len(positions)} points, and count must be positive, got {int(sizes.sum())}, {count}."
        )
    ends = sizes.cumsum(dim=0)
    return torch.from_numpy(compiled(_nearest_neighbors)(positions.numpy(), ends.numpy(), count))


def _nearest_neighbors(positions: _Array, ends: _Array, count: int) -> _Array:
    """Compiled by numba: :func:`nearest_neighbors` of clouds that end at these rows.

    A point is inserted into the sorted list of the nearest ones so far; ``adjacent`` marks each edge once.
    """
    edges = np.empty((2, len(positions) * count), np.int64)
    nearest, distances = np.empty(count, np.int64), np.empty(count, positions.dtype)
    found = start = 0
    for end in ends:
        adjacent = np.zeros((end - start, end - start), np.bool_)
        for i in range(start, end):
            squares = np.zeros(end - start, positions.dtype)
            for axis in range(positions.shape[1]):
                squares += (positions[start:end, axis] - positions[i, axis]) ** 2
            kept = 0
            for j in range(start, end):
                distance = squares[j - start]
                if i == j or (kept == count and distance >= distances[count - 1]):
                    continue
                place = min(kept, count - 1)
                while place > 0 and distances[place - 1] > distance:
                    distances[place], nearest[place] = distances[place - 1], nearest[place - 1]
                    place -= 1
                distances[place], nearest[place] = distance, j
                kept = min(kept + 1, count)
            for j in nearest[:kept]:
                adjacent[min(i, j) - start, max(i, j) - start] = True
        first, second = adjacent.nonzero()
        edges[0, found : found + len(first)], edges[1, found : found + len(first)] = start + first, start + second
        found += len(first)
        start = end
    return edges[:, :found].copy()


def _read(file: str, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Positions in pixels, intensities, sizes and labels of the graphs of a file."""
    with reading(Source(f"mnist_superpixels/{file}", recipe=RECIPE)) as path:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            pos, intensity, offset, y = (arrays[key] for key in ("pos", "intensity", "offset", "y"))
        ends = len(offset) == count + 1 and offset[0] == 0 and offset[-1] == len(pos) == len(intensity)
        if not (ends and len(y) == count and pos.shape[1:] == (2,) and (np.diff(offset) >= 0).all()):
            raise ValueError(f"its arrays must hold {count} graphs")
    sizes = torch.from_numpy(np.diff(offset).astype(np.int64))
    return torch.from_numpy(pos), torch.from_numpy(intensity.astype(np.float32)), sizes, torch.from_numpy(y.astype(np.int64))
