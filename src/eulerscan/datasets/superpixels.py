"""MNIST as graphs of superpixels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .._progress import progress
from ..complexes import Complex, collate
from .dataset import Dataset
from .download import Source, reading
from .mnist import DIGITS, official_splits

NUM_NEIGHBORS = 8
SIDE = 28  # of an image, in pixels
CHUNK = 100  # graphs at once: their distances stay in the processor's cache
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
    shapes, start = [], 0
    for chunk in progress(sizes.split(CHUNK), "superpixel graphs"):
        end = start + int(chunk.sum())
        batch = torch.arange(len(chunk)).repeat_interleave(chunk)
        edges = nearest_neighbors(positions[start:end], chunk)
        graphs = Complex(points[start:end], [edges], batch=batch, num_complexes=len(chunk))
        # The darker end: with the brighter one, strokes would extend to all neighbors.
        shapes.append(graphs.with_weights(brightness[start:end], "min") if weighted else graphs)
        start = end
    return Dataset(name, collate(shapes), labels, DIGITS, official_splits())


def nearest_neighbors(positions: Tensor, sizes: Tensor, *, count: int = NUM_NEIGHBORS) -> Tensor:
    """Unique edges ``[2, n]`` between each point and its nearest neighbors in the same cloud.

    Ties are broken by index. A cloud with fewer points becomes a complete graph.

    Args:
        positions: Points of all clouds, cloud after cloud, ``[V, dim]``.
        sizes: Number of points of each cloud, ``[n]``.

    >>> nearest_neighbors(torch.tensor([[0.0], [1.0], [3.0], [0.0]]), torch.tensor([3, 1]), count=1)
    tensor([[0, 1],
            [1, 2]])
    """
    largest = int(sizes.max()) if len(sizes) else 0
    valid = torch.arange(largest) < sizes[:, None]
    padded = positions.new_zeros(len(sizes), largest, positions.shape[1])
    padded[valid] = positions
    distances = sum(((x[:, :, None] - x[:, None]).square_() for x in padded.unbind(2)), padded.new_zeros(()))
    distances.masked_fill_(~valid[:, None], torch.inf)
    distances.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    # The bits of a non-negative float sort like the float itself; the index in the lower half breaks ties.
    keys = distances.float().view(torch.int32).long() << 32 | torch.arange(largest)
    nearest = keys.topk(min(count, max(largest - 1, 0)), largest=False, sorted=False).indices
    adjacent = torch.zeros_like(distances, dtype=torch.bool).scatter_(2, nearest, True)
    adjacent &= torch.isfinite(distances) & valid[:, :, None]
    cloud, one, other = (adjacent | adjacent.transpose(1, 2)).triu_().nonzero(as_tuple=True)
    starts = sizes.cumsum(dim=0) - sizes
    return torch.stack([one, other]) + starts[cloud]


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
