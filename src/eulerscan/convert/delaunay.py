"""Delaunay triangulations and alpha complexes of point clouds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._imports import require
from .._validation import as_tensor, check_bool, check_points
from ..complexes import Complex
from ..complexes.filtration import Filtration, Values
from ..complexes.simplices import faces, groups

_Array = np.ndarray[Any, Any]
_SLACK = 1e-9  # circumradii of slivers are less accurate than the points
_MERGE = "Use merge=True to drop such points."


def delaunay(points: Tensor | _Array, *, merge: bool = False) -> Complex:
    """Delaunay triangulation of a point cloud, with all its faces.

    Points that do not span the whole space are triangulated within their affine span: collinear points become a path, coplanar
    points triangles, ``dim + 1`` points or fewer one simplex. If more than ``dim + 1`` points lie on one empty sphere, as on a
    lattice, one of several triangulations is returned. Gradients flow back to ``points``.

    Args:
        points: Coordinates ``[V, dim]``, floating point.
        merge: Keep only one of several points that coincide or nearly coincide. By default they raise a ``ValueError``, since
            dropping points changes the vertex indices.

    Example:
        >>> delaunay(torch.tensor([[0., 0], [1, 0], [0, 1], [1, 1.1]]))
        Complex(num_complexes=1, dim=2, points=4, simplices=(5 edges, 2 triangles))
    """
    points, cells = _cells(points, merge)
    if len(cells) == 1:
        return Complex(points)
    return Complex(points, [torch.from_numpy(cells).to(points.device)], dims=[len(cells) - 1]).closure()


def alpha_complex(points: Tensor | _Array, alpha: float, *, merge: bool = False) -> Complex:
    """Alpha complex of a point cloud: a subcomplex of the Delaunay triangulation.

    It holds the simplices that have an empty circumscribing sphere (no point inside) of radius at most ``alpha``. All points
    are vertices; with a small radius they are isolated, with an infinite one the result is :func:`delaunay`. The complex has
    the homotopy type of the union of balls of radius ``alpha`` around the points. If more than ``dim + 1`` points in space lie
    on one empty sphere, as on a lattice, flat cells of the triangulation may violate that for a few radii; gudhi resolves such
    ties exactly.

    Args:
        points: Coordinates ``[V, dim]``, floating point.
        alpha: The radius, not its square (which is gudhi's filtration value).
        merge: As for :func:`delaunay`.

    Example:
        >>> square = torch.tensor([[0., 0], [1, 0], [0, 1], [1, 1]])
        >>> [alpha_complex(square, alpha).euler_characteristic().item() for alpha in (0.4, 0.5, 0.8)]
        [4, 0, 1]
    """
    if not alpha >= 0:
        raise ValueError(f"alpha must be a non-negative radius, got {alpha}.")
    points, noise, levels = _alpha_levels(points, merge)
    simplices = [torch.from_numpy(cells[:, values <= alpha * (1 + _SLACK) + noise]) for cells, values in levels]
    return Complex(points, [level.to(points.device) for level in simplices if level.numel()])


def alpha_filtration(points: Tensor | _Array, *, merge: bool = False) -> Filtration:
    """Alpha filtration of a point cloud: the Delaunay triangulation, and the radius at which each simplex appears.

    At radius r it is the :func:`alpha_complex` of that radius, up to rounding. The values do not carry gradients.

    Args:
        points, merge: As for :func:`alpha_complex`.

    Returns:
        The complex, and the values of its vertices and simplices, for ``es.ecc(*alpha_filtration(points), radii)``.

    Example:
        >>> from eulerscan import ecc
        >>> square = torch.tensor([[0., 0], [1, 0], [0, 1], [1, 1]])
        >>> ecc(*alpha_filtration(square), torch.tensor([0.4, 0.5, 0.8]))
        tensor([[[4., 0., 1.]]])
    """
    points, _, levels = _alpha_levels(points, merge)
    complex = Complex(points, [torch.from_numpy(cells).to(points.device) for cells, _ in levels])
    values = [np.zeros(len(points)), *(values for _, values in levels)]
    return Filtration(complex, Values(torch.from_numpy(level).to(points) for level in values))


def _alpha_levels(points: Tensor | _Array, merge: bool) -> tuple[Tensor, float, list[tuple[_Array, _Array]]]:
    """The kept points, their rounding error, and the simplices of each dimension with the radii at which they appear."""
    points, cells = _cells(points, merge)
    coordinates = _coordinates(points)
    # On a lattice, radii that should be equal differ by the rounding of the points. Treat them as equal.
    noise = 2 * torch.finfo(points.dtype).eps * float(np.abs(coordinates).max(initial=0.0))
    levels = []
    values = _circumspheres(coordinates, cells)[1] if len(cells) > 1 else np.zeros(cells.shape[1])
    while len(cells) > 1:
        levels.append((cells, values))
        cells, values = _faces_of(coordinates, cells, values, noise)
    return points, noise, levels[::-1]


def _faces_of(coordinates: _Array, cells: _Array, values: _Array, noise: float) -> tuple[_Array, _Array]:
    """The faces of the cells, and their filtration values.

    A face appears at the radius of its smallest sphere, unless a vertex of a cell is inside: then with the first of its cells.
    """
    rows, count = cells.shape
    columns = faces(torch.from_numpy(cells)).sort(dim=0).values.numpy()
    position = groups(torch.from_numpy(columns)).numpy()  # [rows * count], by omitted row
    below = np.empty((rows - 1, position.max(initial=-1) + 1), columns.dtype)
    below[:, position] = columns
    if rows == 2:
        return below, np.zeros(below.shape[1])
    opposite, owner = cells.reshape(-1), np.tile(np.arange(count), rows)
    center, radius = _circumspheres(coordinates, below)
    distance = np.linalg.norm(coordinates[opposite] - center[position], axis=1)
    inside = distance < radius[position] * (1 - _SLACK) - noise
    first = np.full(below.shape[1], np.inf)
    np.minimum.at(first, position, values[owner])
    hidden = np.zeros(below.shape[1], dtype=bool)
    hidden[position[inside]] = True
    # Never later than one of its cells, despite rounding.
    return below, np.where(hidden, first, np.minimum(first, radius))


def _circumspheres(coordinates: _Array, cells: _Array) -> tuple[_Array, _Array]:
    """Centers and radii of the smallest spheres through the vertices of simplices."""
    origin = coordinates[cells[0]]
    sides = coordinates[cells[1:]].transpose(1, 0, 2) - origin[:, None]  # [n, k, dim]
    gram = sides @ sides.transpose(0, 2, 1)
    half = np.diagonal(gram, axis1=1, axis2=2)[..., None] / 2
    # The center is a linear combination of the sides. A flat simplex on a circle has one too, despite a singular matrix.
    sound = np.linalg.det(gram) > 1e-12 * (2 * half[..., 0]).prod(axis=1)
    shares = np.empty_like(half)
    shares[sound] = np.linalg.solve(gram[sound], half[sound])
    shares[~sound] = np.linalg.pinv(gram[~sound], rcond=1e-12, hermitian=True) @ half[~sound]
    offset = (shares * sides).sum(axis=1)
    return origin + offset, np.linalg.norm(offset, axis=1)


def _cells(points: Tensor | _Array, merge: bool) -> tuple[Tensor, _Array]:
    """The kept points, and the top-dimensional cells ``[rank + 1, n]`` of their triangulation."""
    points = as_tensor(points, "points")
    check_points(points)
    check_bool(merge, "merge")
    kept = _distinct(points, merge)
    points = points if kept is None else points[torch.from_numpy(kept).to(points.device)]
    flat = _in_affine_span(_coordinates(points), torch.finfo(points.dtype).eps)
    count, rank = flat.shape
    if rank == 0 or count == 0:
        return points, np.empty((1, count), np.int64)
    if rank == 1:
        order = flat[:, 0].argsort(kind="stable")
        return points, np.stack([order[:-1], order[1:]])
    if count == rank + 1:
        return points, np.arange(count)[:, None]
    spatial = require("scipy.spatial", extra="mesh")
    try:
        cells = spatial.Delaunay(flat).simplices.astype(np.int64)
    except spatial.QhullError:
        raise ValueError(f"points cannot be triangulated: {count} points lie nearly in fewer than {rank} dimensions.") from None
    dropped = np.setdiff1d(np.arange(count), cells)
    if len(dropped):
        if not merge:
            raise ValueError(f"points must be distinct, but row {dropped[0]} nearly coincides with another. {_MERGE}")
        position = np.cumsum(np.isin(np.arange(count), dropped, invert=True)) - 1
        points = points[torch.from_numpy(np.setdiff1d(np.arange(count), dropped)).to(points.device)]
        cells = position[cells]
    return points, np.ascontiguousarray(cells.T)


def _distinct(points: Tensor, merge: bool) -> _Array | None:
    """Indices of the points to keep, the first of each duplicate; ``None`` for all."""
    coordinates = _coordinates(points)
    _, first, inverse = np.unique(coordinates, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(coordinates):
        return None
    if not merge:
        twin = first[inverse.reshape(-1)]
        row = int((twin != np.arange(len(twin))).nonzero()[0][0])
        raise ValueError(f"points must be distinct, but rows {twin[row]} and {row} coincide. {_MERGE}")
    return np.sort(first)


def _in_affine_span(coordinates: _Array, eps: float) -> _Array:
    """The points in coordinates of their affine span, centered, with largest extent 1."""
    if not len(coordinates):
        return np.empty((0, 0))
    centered = coordinates - coordinates.mean(axis=0)
    extent = np.abs(centered).max(initial=0.0)
    # The rounding error of the coordinates, and the resolution of Qhull.
    noise = max(eps * np.abs(coordinates).max(initial=0.0), 1e-13 * extent)
    if extent <= noise:
        return np.empty((len(coordinates), 0))
    axes = np.linalg.svd(centered / extent, full_matrices=False)[2]
    along = centered @ axes.T
    spanned = np.abs(along).max(axis=0) > noise
    # Points that span the whole space keep their own coordinates, without rounding: a lattice stays a lattice.
    flat: _Array = (along[:, spanned] if not spanned.all() or len(axes) < coordinates.shape[1] else centered) / extent
    return flat


def _coordinates(points: Tensor) -> _Array:
    coordinates: _Array = points.detach().cpu().double().numpy()
    return coordinates
