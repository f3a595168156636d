"""A complex to a file that others can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .._imports import require
from .._storage import replacing
from ..complexes import Complex
from ..complexes.simplices import NAMES

POINTS = (".csv", ".xyz", ".npy")
MESHES = (".ply", ".obj", ".off", ".stl")
WRITABLE = (".npz", *POINTS, *MESHES)


def write(complex: Complex, path: str | os.PathLike[str]) -> None:
    """Write one complex to a file that :func:`read` reads back; its ending says how.

    NPZ holds points, edges, triangles and tetrahedra; CSV, XYZ and NPY hold points; PLY, OBJ, OFF and STL hold triangles, and
    PLY clouds too, in the plane with a third coordinate of zero. What a format has no place for is an error.

    >>> import tempfile, torch
    >>> file = Path(tempfile.mkdtemp()) / "square.npz"
    >>> write(Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])]), file)
    >>> from eulerscan import read
    >>> read(file)
    Complex(num_complexes=1, dim=2, points=4, simplices=(4 edges,))
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in WRITABLE:
        raise ValueError(f"path must end with one of {', '.join(WRITABLE)}, got {path.name!r}.")
    if complex.num_complexes != 1:
        raise ValueError(f"complex must be one complex, got {complex.num_complexes}. Write them one at a time: complex[0]")
    if complex.packed_weights is not None:
        raise ValueError("complex must have no weights: the formats have no place for them.")
    points = complex.points.detach().cpu().numpy()
    levels = {len(s): s.cpu().numpy() for s in complex.simplices if s.numel()}
    _check(levels, ending)
    if ending in MESHES and levels:
        _check_all_in_triangles(complex, ending)
    with replacing(path) as partial, partial.open("wb") as file:
        if ending == ".npz":
            np.savez(file, allow_pickle=False, points=points, **{NAMES[rows]: columns for rows, columns in levels.items()})
        elif ending == ".npy":
            np.save(file, points, allow_pickle=False)
        elif ending in POINTS:
            # As few digits as tell a number from all others, and decimals for whole ones: 0,1,2 might be names of columns.
            np.savetxt(file, points, fmt="%s", delimiter="," if ending == ".csv" else " ")
        else:
            file.write(_mesh(points, levels, ending))


def _check(levels: dict[int, Any], ending: str) -> None:
    """That the format has a place for every simplex; the edges of triangles come with them."""
    if ending == ".npz":
        lost = [rows for rows in levels if rows not in NAMES]
    elif ending in POINTS:
        lost = list(levels)
    else:
        lost = [rows for rows in levels if rows > 3 or (rows == 2 and 3 not in levels)]
        if not levels and ending != ".ply":
            raise ValueError(f"complex must have triangles for {ending} files. Write a cloud as .ply, .csv, .xyz or .npy.")
    if lost:
        raise ValueError(f"{ending} files have no place for {max(lost) - 1}-simplices. Use .npz.")


def _check_all_in_triangles(complex: Complex, ending: str) -> None:
    triangles = next(s for s in complex.simplices if len(s) == 3)
    alone = Complex(complex.points, [triangles]).closure()
    if len(triangles.unique()) != len(complex.points) or alone.counts != complex.counts:
        raise ValueError(f"{ending} files hold triangles: edges and vertices that belong to none would be lost. Use .npz.")


def _mesh(points: Any, levels: dict[int, Any], ending: str) -> bytes:
    trimesh = require("trimesh", extra="mesh")
    if points.shape[1] not in (2, 3):
        raise ValueError(f"{ending} files hold points in the plane or in space, got dimension {points.shape[1]}. Use .npz.")
    points = np.pad(points, [(0, 0), (0, 3 - points.shape[1])])
    geometry = trimesh.Trimesh(points, levels[3].T, process=False) if levels else trimesh.PointCloud(points)
    content = geometry.export(file_type=ending.removeprefix("."))
    return content.encode() if isinstance(content, str) else bytes(content)
