"""Centroids of complexes: the center of mass of their edges, faces or cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._imports import compiled
from .._torch_internals import is_forward_mode, is_recording, is_wrapped
from ..kernels.layout import owners
from .packed import Packed

AT_ONCE = 1 << 18  # simplices
DEGENERATE = 1e-9  # measure of a shape of diameter 1 that is taken for 0


def centroids(packed: Packed, batch: Tensor, simplices: Sequence[Tensor]) -> Tensor:
    """``[B, dim]``: center of mass of each complex, in float64.

    The mass is that of the simplices of the largest dimension that have any: edges count by length, triangles and polygons by
    area, tetrahedra by volume; other cells do not count. Points, and complexes whose simplices are all degenerate, have the
    mean of their vertices. So refining a mesh does not move its centroid. Weights do not count.
    """
    if can_compile(packed):
        return compiled_centroids(packed, simplices)
    points, offsets = packed.points, packed.offsets
    points = points if points.device.type == "mps" else points.double()  # a device without float64
    count = offsets.shape[1] - 1
    sums = points.new_zeros(count, points.shape[1]).index_add(0, batch, points)
    centers = sums / offsets[0].diff().clamp(min=1).unsqueeze(1)
    if not simplices:
        return centers
    # Coordinates of about 1, so that no power of them overflows or vanishes.
    size = nonzero(segment_max(points.detach().abs().amax(dim=1), batch, count))
    points = points / size[batch, None]
    done = torch.zeros(count, dtype=torch.bool, device=points.device)
    levels = [*zip(packed.kinds, simplices, offsets[1:], strict=True)]
    for dim in range(min(points.shape[1], max(dim for dim, _ in packed.kinds)), 0, -1):
        if points.is_cpu and not torch.compiler.is_compiling() and bool(done.all()):
            break
        mass, moment = points.new_zeros(count), torch.zeros_like(centers)
        for kind, columns, bounds in levels:
            for part in _as_simplices(columns, *kind) if kind[0] == dim else ():
                its_mass, its_moment = _masses(points, part, bounds)
                mass, moment = mass + its_mass, moment + its_moment
        usable = ~done & (mass > DEGENERATE)
        found = size[:, None] * moment / torch.where(usable, mass, 1.0)[:, None]
        centers, done = torch.where(usable[:, None], found, centers), done | usable
    return centers


def _as_simplices(columns: Tensor, dim: int, rows: int) -> list[Tensor]:
    """Simplices ``[dim + 1, n]`` that cover the cells of a level: themselves, or a fan of polygons. None for other cells."""
    if rows == dim + 1:
        return [columns]
    return [columns[[0, row, row + 1]] for row in range(1, rows - 1)] if dim == 2 else []


def _masses(points: Tensor, columns: Tensor, bounds: Tensor) -> tuple[Tensor, Tensor]:
    """Total measure ``[B]`` of the simplices ``[k + 1, n]`` of each complex, up to a factor, and its moment ``[B, dim]``."""
    mass, moment = points.new_zeros(len(bounds) - 1), points.new_zeros(len(bounds) - 1, points.shape[1])
    owner = owners(bounds, columns.shape[1])
    parts = [(columns, owner)]
    if not torch.compiler.is_compiling():  # in parts, to save memory
        parts = [*zip(columns.split(AT_ONCE, dim=1), owner.split(AT_ONCE), strict=True)]
    for part, own in parts:
        corners = points[part]
        measure = measures(corners[1:] - corners[0])
        mass = mass.index_add(0, own, measure)
        moment = moment.index_add(0, own, measure[:, None] * corners.mean(dim=0))
    return mass, moment


def measures(edges: Tensor) -> Tensor:
    """``[n]``: k! times the volume of the simplices with the edge vectors ``[k, n, dim]`` from one of their vertices."""
    # The last formula serves all cases, but factorizes a matrix for each simplex, which is slow.
    square: Tensor
    if len(edges) == 1:
        square = edges[0].square().sum(dim=1)
    elif edges.shape[::2] == (2, 2):
        return (edges[0, :, 0] * edges[1, :, 1] - edges[0, :, 1] * edges[1, :, 0]).abs()
    elif edges.shape[::2] == (2, 3):
        square = torch.linalg.cross(edges[0], edges[1]).square().sum(dim=1)
    elif edges.shape[::2] == (3, 3):
        volume: Tensor = (torch.linalg.cross(edges[0], edges[1]) * edges[2]).sum(dim=1).abs()
        return volume
    else:
        vectors = edges.transpose(0, 1)
        square = torch.linalg.det(vectors @ vectors.transpose(1, 2))
    positive = square > 0  # the square root has no derivative at 0
    return torch.where(positive, torch.where(positive, square, 1.0).sqrt(), 0.0)


def segment_max(values: Tensor, batch: Tensor, count: int) -> Tensor:
    """``[count]``: the largest of the non-negative values ``[V]`` in each segment, 0 for an empty one."""
    largest: Tensor = values.new_zeros(count).scatter_reduce(0, batch, values, "amax")
    return largest


def nonzero(values: Tensor) -> Tensor:
    """The values, with 1 in place of 0, to divide by."""
    return torch.where(values > 0, values, 1.0)


def can_compile(packed: Packed) -> bool:
    """Whether the compiled loop serves: plain CPU tensors without gradients, and simplices of dimension 3 at most."""
    points = packed.points
    return (
        points.is_cpu
        and not torch.compiler.is_compiling()
        and not (points.requires_grad and torch.is_grad_enabled())
        and not is_wrapped(points)
        and not is_forward_mode()
        and not is_recording()
        and points.dtype in (torch.float32, torch.float64)
        and packed.dims is None
        and max(packed.rows, default=1) <= 4
        and points.shape[1] <= 3
    )


def compiled_centroids(packed: Packed, simplices: Sequence[Tensor]) -> Tensor:
    """As :func:`centroids`, in one pass over memory. It is many times faster for batches of small complexes."""
    offsets, points = packed.offsets.numpy(), np.ascontiguousarray(packed.points.detach().numpy())
    centers = np.zeros((offsets.shape[1] - 1, points.shape[1]))
    done = np.zeros(len(centers), np.bool_)
    size = np.ones(len(centers))
    compiled(_means)(points, offsets[0], centers, size)
    for level in range(len(simplices), 0, -1):
        columns, bounds = simplices[level - 1], offsets[level]
        if len(columns) - 1 <= points.shape[1]:
            compiled(_masses_of)(points, columns.numpy(), bounds, size, centers, done)
    return torch.from_numpy(centers)


def _means(points: NDArray[Any], bounds: NDArray[np.int64], centers: NDArray[np.float64], size: NDArray[np.float64]) -> None:
    """Mean of the vertices and largest absolute coordinate of each complex."""
    for b in range(len(centers)):
        largest = 0.0
        for i in range(bounds[b], bounds[b + 1]):
            for k in range(points.shape[1]):
                value = np.float64(points[i, k])
                centers[b, k] += value
                largest = max(largest, abs(value))
        centers[b] /= max(1, bounds[b + 1] - bounds[b])
        size[b] = largest if largest > 0 else 1.0


def _masses_of(
    points: NDArray[Any],
    columns: NDArray[Any],
    bounds: NDArray[np.int64],
    size: NDArray[np.float64],
    centers: NDArray[np.float64],
    done: NDArray[np.bool_],
) -> None:
    """Center of mass of the simplices ``[k + 1, n]`` of each complex that is not done yet."""
    rows, dim = len(columns), points.shape[1]
    edge, moment = np.zeros((3, 3)), np.zeros(3)
    for b in range(len(centers)):
        if done[b]:
            continue
        mass, unit = 0.0, 1 / size[b]
        moment[:] = 0.0
        for j in range(bounds[b], bounds[b + 1]):
            origin = columns[0, j]
            for r in range(rows - 1):
                for k in range(dim):
                    edge[r, k] = (np.float64(points[columns[r + 1, j], k]) - np.float64(points[origin, k])) * unit
            u, v, w = edge[0], edge[1], edge[2]
            if rows == 2:
                measure = np.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2])
            else:
                x, y, z = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]
                measure = np.sqrt(x * x + y * y + z * z) if rows == 3 else abs(x * w[0] + y * w[1] + z * w[2])
            mass += measure
            for k in range(dim):
                total = 0.0
                for r in range(rows):
                    total += np.float64(points[columns[r, j], k]) * unit
                moment[k] += measure * total / rows
        if mass > DEGENERATE:
            done[b] = True
            for k in range(dim):
                centers[b, k] = size[b] * (moment[k] / mass)
