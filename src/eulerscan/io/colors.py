"""Values of vertices as colors, in files that mesh viewers open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from .._devices import as_numpy
from .._imports import require
from .._storage import replacing
from ..complexes import Complex

SCALE = ("#d9d9d9", "#fdd49e", "#fc8d59", "#d7301f", "#7f0000")
"""From gray, the low end, over orange to dark red: readable without seeing red or green, and printed in gray."""

COLORED = (".ply", ".obj", ".glb")
"""The file extensions that :func:`write_colored` supports."""

_Array = np.ndarray[Any, Any]


def vertex_colors(values: Tensor, low: float, high: float) -> _Array:
    """``[V, 3]``, bytes: values ``[V]`` on the color scale, which ends at ``low`` and ``high``.

    >>> import torch
    >>> vertex_colors(torch.tensor([-1.0, 0.0, 1.0]), 0.0, 1.0).tolist()
    [[217, 217, 217], [217, 217, 217], [127, 0, 0]]
    """
    if not low < high:
        raise ValueError(f"low must be less than high, got {low} and {high}.")
    stops = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in SCALE], dtype=np.float64)
    places = np.clip((values.detach().cpu().double().numpy() - low) / (high - low), 0, 1) * (len(stops) - 1)
    channels = [np.interp(places, np.arange(len(stops)), stops[:, i]) for i in range(3)]
    return np.stack(channels, axis=1).round().astype(np.uint8)


def write_colored(
    complex: Complex, path: str | os.PathLike[str], values: Tensor, *, low: float, high: float, **attributes: Tensor
) -> None:
    """Write one mesh or point cloud with a color for every vertex: PLY, OBJ or GLB.

    Args:
        complex: One complex with triangles, or without simplices (PLY only).
        path: File. The extension selects the format. PLY also holds the values themselves, as the property ``value``.
        values: ``[V]``.
        low, high: Ends of the color scale. The same for several files makes them comparable.
        attributes: More properties of the vertices in a PLY file, ``[V]`` each.
    """
    path = Path(path)
    extension = path.suffix.lower()
    if extension not in COLORED:
        raise ValueError(f"path must have one of the extensions {', '.join(COLORED)}, got {path.name!r}.")
    if complex.num_complexes != 1:
        raise ValueError(f"complex must be a single complex, got {complex.num_complexes}. Write them one by one: complex[0]")
    if complex.dim not in (2, 3):
        raise ValueError(f"{extension} files hold points in the plane or in space, got dimension {complex.dim}.")
    if values.shape != (len(complex.points),):
        raise ValueError(f"values must have shape [{len(complex.points)}], one per vertex, got {list(values.shape)}.")
    points = np.pad(as_numpy(complex.points), [(0, 0), (0, 3 - complex.dim)])
    triangles = complex.of_dim(2).T.cpu().numpy()
    if not len(triangles) and extension != ".ply":
        raise ValueError(f"complex must have triangles for {extension} files. Write graphs and point clouds as .ply.")
    colors = vertex_colors(values, low, high)
    with replacing(path) as partial, partial.open("wb") as file:
        if extension == ".ply":
            properties = {"value": values, **attributes}
            file.write(_ply(points, colors, triangles, properties))
        else:
            trimesh = require("trimesh", extra="mesh")
            mesh = trimesh.Trimesh(points, triangles, vertex_colors=colors, process=False)
            content = mesh.export(file_type=extension.removeprefix("."))
            file.write(content.encode() if isinstance(content, str) else bytes(content))


def _ply(points: _Array, colors: _Array, triangles: _Array, properties: dict[str, Tensor]) -> bytes:
    """Binary PLY, as every mesh viewer reads it."""
    fields = [*((axis, "<f4") for axis in "xyz"), *((color, "u1") for color in ("red", "green", "blue"))]
    rows = np.empty(len(points), dtype=[*fields, *((name, "<f4") for name in properties)])
    for i in range(3):
        rows["xyz"[i]], rows[fields[3 + i][0]] = points[:, i], colors[:, i]
    for name, values in properties.items():
        rows[name] = as_numpy(values)
    kinds = {"<f4": "float", "u1": "uchar"}
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(points)}"]
    header += [f"property {kinds[rows.dtype[name].str.replace('|', '')]} {name}" for name in rows.dtype.names or ()]
    faces = np.empty(len(triangles), dtype=[("count", "u1"), ("vertices", "<i4", 3)])
    if len(triangles):
        faces["count"], faces["vertices"] = 3, triangles
        header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    return "\n".join([*header, "end_header", ""]).encode("ascii") + rows.tobytes() + faces.tobytes()
