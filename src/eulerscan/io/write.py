"""Writing a complex to a file that other programs can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._devices import as_numpy
from .._imports import require
from .._storage import replacing
from ..complexes import Complex
from ..complexes.simplices import NAMES

POINTS = (".csv", ".xyz", ".npy")
MESHES = (".ply", ".obj", ".off", ".stl")
WRITABLE = (".npz", *POINTS, *MESHES)
"""The file extensions that :func:`write` supports."""


def write(complex: Complex, path: str | os.PathLike[str]) -> None:
    """Write one complex to a file that :func:`eulerscan.read` can read. The extension selects the format.

    NPZ holds points, edges, triangles and tetrahedra; CSV, XYZ and NPY hold points; PLY, OBJ, OFF and STL hold triangles, and
    PLY also point clouds. Mesh formats get a third coordinate of zero for shapes in the plane. PLY and STL round coordinates to
    float32; the others keep them. A format that cannot hold the complex raises a ``ValueError``.

    >>> import tempfile, torch
    >>> file = Path(tempfile.mkdtemp()) / "square.npz"
    >>> write(Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])]), file)
    >>> from eulerscan import read
    >>> read(file)
    Complex(num_complexes=1, dim=2, points=4, simplices=(4 edges,))
    """
    path = Path(path)
    extension = path.suffix.lower()
    if extension not in WRITABLE:
        raise ValueError(f"path must have one of the extensions {', '.join(WRITABLE)}, got {path.name!r}.")
    if complex.num_complexes != 1:
        raise ValueError(f"complex must be a single complex, got {complex.num_complexes}. Write them one by one: complex[0]")
    if complex.weights is not None:
        raise ValueError("complex must be unweighted: the formats cannot hold weights.")
    if not complex.is_simplicial:
        raise ValueError(f"complex must consist of simplices: the formats cannot hold other cells, got {complex!r}.")
    points = as_numpy(complex.points)
    levels = {len(s): s.cpu().numpy() for s in complex.simplices if s.numel()}
    _check(levels, extension)
    if (extension in MESHES and complex.dim not in (2, 3)) or (extension == ".xyz" and complex.dim > 3):
        raise ValueError(f"{extension} files hold points in the plane or in space, got dimension {complex.dim}. Use .npz.")
    if extension in MESHES and levels:
        _check_all_in_triangles(complex, extension)
    with replacing(path) as partial, partial.open("wb") as file:
        if extension == ".npz":
            np.savez(file, allow_pickle=False, points=points, **{NAMES[rows]: columns for rows, columns in levels.items()})
        elif extension == ".npy":
            np.save(file, points, allow_pickle=False)
        elif extension in POINTS:
            # The shortest exact representation, with a decimal point: a first line 0,1,2 might be column numbers.
            np.savetxt(file, points, fmt="%s", delimiter="," if extension == ".csv" else " ")
        else:
            _write_mesh(file, np.pad(points, [(0, 0), (0, 3 - points.shape[1])]), levels, extension)


def _check(levels: dict[int, Any], extension: str) -> None:
    """Raise if the format cannot hold all simplices. The edges of triangles are implied."""
    if extension == ".npz":
        lost = [rows for rows in levels if rows not in NAMES]
    elif extension in POINTS:
        lost = list(levels)
    else:
        lost = [rows for rows in levels if rows > 3 or (rows == 2 and 3 not in levels)]
        if not levels and extension != ".ply":
            raise ValueError(
                f"complex must have triangles for {extension} files. Write point clouds as .ply, .csv, .xyz or .npy."
            )
    if lost:
        raise ValueError(f"{extension} files cannot hold {max(lost) - 1}-simplices. Use .npz.")


def _check_all_in_triangles(complex: Complex, extension: str) -> None:
    triangles = complex.of_dim(2)
    closed = Complex(complex.points, [triangles]).closure()
    if len(triangles.unique()) != len(complex.points) or closed.counts != complex.counts:
        raise ValueError(f"{extension} files hold only triangles: other edges and vertices would be lost. Use .npz.")


def _write_mesh(file: IO[bytes], points: Any, levels: dict[int, Any], extension: str) -> None:
    # trimesh writes OBJ and OFF with a fixed number of decimals, in which a small shape is lost. In float64: the shortest
    # decimals of another dtype would be other numbers for who reads them in float64.
    points = points.astype(np.float64)
    if extension == ".obj":
        np.savetxt(file, points, fmt="v %s %s %s")
        np.savetxt(file, levels[3].T + 1, fmt="f %d %d %d")
    elif extension == ".off":
        np.savetxt(file, points, fmt="%s", header=f"OFF\n{len(points)} {levels[3].shape[1]} 0", comments="")
        np.savetxt(file, levels[3].T, fmt="3 %d %d %d")
    else:
        trimesh = require("trimesh", extra="mesh")
        geometry = trimesh.Trimesh(points, levels[3].T, process=False) if levels else trimesh.PointCloud(points)
        file.write(geometry.export(file_type=extension.removeprefix(".")))
