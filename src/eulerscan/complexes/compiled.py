"""Normalization by compiled loops, where no gradient is needed. Import this on use: it loads numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._imports import compiled
from .packed import Packed

Numbers = NDArray[np.float64]
Bounds = NDArray[np.int64]


def normalized(packed: Packed, simplices: Sequence[Tensor], degenerate: float, *, to_unit: bool) -> Tensor:
    """As :func:`~eulerscan.complexes.normalize.normalized`: many times faster for batches of small complexes."""
    offsets, points = packed.offsets.numpy(), packed.points.detach().numpy()
    count, dim = offsets.shape[1] - 1, points.shape[1]
    relative = np.zeros((len(points), 3))  # to the first vertex of the complex, with zeros for missing coordinates
    centers, sizes, done = np.zeros((count, 3)), np.ones(count), np.zeros(count, np.bool_)
    _means(points, offsets[0], relative, centers, sizes)
    for level in range(len(simplices), 0, -1):
        columns = simplices[level - 1]
        if len(columns) - 1 <= dim:
            _masses(relative, columns.numpy(), offsets[level], sizes, centers, done, degenerate)
    result = np.empty((len(points), dim), points.dtype)
    _center(relative, offsets[0], centers, to_unit, result)
    return torch.from_numpy(result)


@compiled
def _means(points: NDArray[Any], bounds: Bounds, relative: Numbers, centers: Numbers, sizes: Numbers) -> None:
    """Relative coordinates, and their mean and largest absolute value in each complex."""
    for b in range(len(centers)):
        first, largest = bounds[b], 0.0
        for i in range(first, bounds[b + 1]):
            for k in range(points.shape[1]):
                value = np.float64(points[i, k]) - np.float64(points[first, k])
                relative[i, k] = value
                centers[b, k] += value
                if abs(value) > largest or value != value:  # what is not a number stays
                    largest = abs(value)
        centers[b] /= max(1, bounds[b + 1] - first)
        sizes[b] = largest if largest != 0 else 1.0


@compiled
def _masses(
    points: Numbers,
    columns: NDArray[Any],
    bounds: Bounds,
    sizes: Numbers,
    centers: Numbers,
    done: NDArray[np.bool_],
    degenerate: float,
) -> None:
    """Center of mass of the simplices ``[k + 1, n]`` of each complex that is not done yet."""
    rows = len(columns)
    for b in range(len(centers)):
        if done[b]:
            continue
        mass, unit = 0.0, 1 / sizes[b]
        moment_x = moment_y = moment_z = 0.0
        for j in range(bounds[b], bounds[b + 1]):
            a, c = points[columns[0, j]], points[columns[1, j]]
            ux, uy, uz = (c[0] - a[0]) * unit, (c[1] - a[1]) * unit, (c[2] - a[2]) * unit
            x, y, z = ux, uy, uz
            total_x, total_y, total_z = a[0] + c[0], a[1] + c[1], a[2] + c[2]
            if rows > 2:
                c = points[columns[2, j]]
                vx, vy, vz = (c[0] - a[0]) * unit, (c[1] - a[1]) * unit, (c[2] - a[2]) * unit
                x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
                total_x, total_y, total_z = total_x + c[0], total_y + c[1], total_z + c[2]
            if rows > 3:
                c = points[columns[3, j]]
                measure = abs(x * (c[0] - a[0]) + y * (c[1] - a[1]) + z * (c[2] - a[2])) * unit
                total_x, total_y, total_z = total_x + c[0], total_y + c[1], total_z + c[2]
            else:
                measure = np.sqrt(x * x + y * y + z * z)
            mass += measure
            moment_x += measure * (total_x * unit)
            moment_y += measure * (total_y * unit)
            moment_z += measure * (total_z * unit)
        if mass > degenerate:
            done[b] = True
            mean = rows * mass  # of the corners of each simplex
            centers[b] = sizes[b] * (moment_x / mean), sizes[b] * (moment_y / mean), sizes[b] * (moment_z / mean)


@compiled
def _center(points: Numbers, bounds: Bounds, centers: Numbers, to_unit: bool, result: NDArray[Any]) -> None:
    """Move each center to the origin and, if asked for, divide by the largest norm."""
    for b in range(len(centers)):
        first, last = bounds[b], bounds[b + 1]
        points[first:last] -= centers[b]
        norm = 1.0
        if to_unit and last > first:
            size = np.abs(points[first:last]).max()
            unit, norm = 1 / size if size != 0 else 1.0, 0.0
            for i in range(first, last):
                x, y, z = points[i, 0] * unit, points[i, 1] * unit, points[i, 2] * unit  # no square overflows or vanishes
                square = x * x + y * y + z * z
                if square > norm or square != square:
                    norm = square
            norm = np.sqrt(norm) * size if norm != 0 else 1.0
        for i in range(first, last):
            for k in range(result.shape[1]):
                result[i, k] = points[i, k] / norm
