"""Reading many files at once: the fixed costs of a mesh are paid once for hundreds of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch

from ..complexes import Complex, collate
from ..complexes.packed import Packed, pack, take
from ..complexes.simplices import faces, unique
from ..convert.geometry import first_duplicates
from .formats import load
from .mesh import Mesh, decode_triangles, parse_mesh
from .read import parse, read

_Array = np.ndarray[Any, Any]
_MESH_OPTIONS = {"merge", "dtype"}
_CACHED = 2**20  # bytes of triangles, at most
_TILT = (1.0, 0.6180339887498949, 0.3819660112501051)


class Batch(NamedTuple):
    """Shapes with the same ambient dimension, and the positions of their files."""

    positions: list[int]
    complex: Complex


def read_many(paths: Sequence[str | os.PathLike[str]], **options: Any) -> tuple[dict[int, Batch], dict[int, Exception]]:
    """Read many files: bit for bit the shapes of :func:`read`, but several times faster for small meshes.

    Args:
        paths: The files.
        options: Options of :func:`read`.

    Returns:
        The shapes by ambient dimension, and the errors of the files that could not be read by position in ``paths``.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "points.csv"
        >>> _ = file.write_text("0,0\\n1,0\\n0,1\\n", encoding="utf-8")
        >>> batches, errors = read_many([file, "missing.csv", file])
        >>> batches[2]
        Batch(positions=[0, 2], complex=Complex(num_complexes=2, dim=2, points=6))
        >>> errors
        {1: FileNotFoundError(2, 'No such file or directory')}
    """
    # Invalid options are reported for each file, as by read.
    batched = options.keys() <= _MESH_OPTIONS and isinstance(options.get("merge", True), bool)
    meshes: dict[int, Mesh] = {}
    shapes: dict[int, Complex] = {}
    errors: dict[int, Exception] = {}
    for i, path in enumerate(paths):
        try:
            file = load(path)
            mesh = parse_mesh(file) if batched else None
            if mesh is None:
                shapes[i] = parse(file, **options)
            else:
                meshes[i] = mesh
        except ImportError:
            raise
        except Exception as error:  # the other files can still be read
            errors[i] = error
    # Many meshes differ only in their coordinates: what depends on the triangles alone is computed once for all of them.
    connectivity = {mesh.connectivity: None for mesh in meshes.values()}
    triangles = {key: columns for key in connectivity if (columns := decode_triangles(*key)) is not None}
    valid = {i: mesh for i, mesh in meshes.items() if mesh.connectivity in triangles}
    joined = _assemble_all(valid, triangles, **options) if valid else None
    for i in meshes.keys() - (joined.positions if joined is not None else ()):
        try:
            shapes[i] = read(paths[i], **options)
        except ImportError:
            raise
        except Exception as error:  # the reason why the mesh is invalid
            errors[i] = error
    batches: dict[int, list[Batch]] = {} if joined is None else {joined.complex.dim: [joined]}
    for i, shape in sorted(shapes.items()):
        batches.setdefault(shape.dim, []).append(Batch([i], shape))
    for dim, items in batches.items():
        if len(items) > 1:
            batches[dim] = [Batch([i for item in items for i in item.positions], collate([item.complex for item in items]))]
    return {dim: batch for dim, [batch] in batches.items()}, dict(sorted(errors.items()))


def _assemble_all(
    meshes: dict[int, Mesh], triangles: dict[Any, _Array], *, merge: bool = True, dtype: torch.dtype | None = None
) -> Batch | None:
    """Join meshes to one batch, each as by :func:`~eulerscan.convert.geometry.assemble`. Invalid ones are left out."""
    points = np.concatenate([mesh.vertices for mesh in meshes.values()], dtype=np.float64)
    coordinates = torch.from_numpy(points).to(dtype or torch.get_default_dtype())
    if not bool(torch.isfinite(coordinates).all()):
        finite = {i: mesh for i, mesh in meshes.items() if _is_finite(mesh.vertices, coordinates.dtype)}
        return _assemble_all(finite, triangles, merge=merge, dtype=dtype) if 0 < len(finite) < len(meshes) else None
    stored = [mesh.connectivity for mesh in meshes.values()]
    own = [triangles[key] for key in stored]
    if merge:
        own = _merge(points, [len(mesh.vertices) for mesh in meshes.values()], own)
    # Copying the triangles for each mesh would take a quarter of the time or more.
    contents = {key: columns.tobytes() for key, columns in triangles.items()}
    keys = [
        (len(mesh.vertices), contents[key] if columns is triangles[key] else columns.tobytes())
        for mesh, key, columns in zip(meshes.values(), stored, own, strict=True)
    ]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    chosen = [numbers[key] for key in keys]
    connected, used = _connect_cached(tuple(numbers))
    # Meshes without a triangle are left to read, which raises.
    filled = [bool(used[number].any()) for number in chosen]
    kept = torch.from_numpy(np.concatenate([used[number] for number in chosen]))
    positions = [i for i, full in zip(meshes, filled, strict=True) if full]
    if not positions:
        return None
    taken = [number for number, full in zip(chosen, filled, strict=True) if full]
    shapes = take(connected, torch.tensor(taken, device="cpu"))
    used_points = coordinates if bool(kept.all()) else coordinates[kept]
    return Batch(positions, Complex.from_packed(shapes._replace(points=used_points)))


def _connect_cached(meshes: tuple[tuple[int, bytes], ...]) -> tuple[Packed, list[_Array]]:
    small = sum(len(triangles) for _, triangles in meshes) < _CACHED
    return _cached(meshes) if small else _connect(meshes)


def _connect(meshes: tuple[tuple[int, bytes], ...]) -> tuple[Packed, list[_Array]]:
    """Complexes with given numbers of vertices and triangles, without coordinates, and a mask of the used vertices of each."""
    sizes = [size for size, _ in meshes]
    starts = np.cumsum([0, *sizes])
    columns = [np.frombuffer(triangles, np.int64).reshape(3, -1) for _, triangles in meshes]
    joined = np.concatenate([some + start for some, start in zip(columns, starts, strict=False)], axis=1)
    level = unique(torch.from_numpy(joined))
    used = torch.zeros(int(starts[-1]), dtype=torch.bool, device="cpu").index_fill(0, level.reshape(-1), True)
    position = used.cumsum(0) - 1
    batch = torch.from_numpy(np.repeat(np.arange(len(meshes)), sizes))[used]
    points = torch.zeros(len(batch), 1, device="cpu")
    levels = [position[columns] for columns in (unique(faces(level)), level) if columns.numel()]
    return pack(points, levels, None, batch, len(meshes)), np.split(used.numpy(), starts[1:-1])


_cached = lru_cache(maxsize=1)(_connect)  # consecutive batches often have the same triangles


def _is_finite(vertices: _Array, dtype: torch.dtype) -> bool:
    return bool(torch.isfinite(torch.from_numpy(vertices.astype(np.float64)).to(dtype)).all())


def _merge(points: _Array, sizes: list[int], triangles: list[_Array]) -> list[_Array]:
    """The triangles of each mesh, with every vertex replaced by the first one with the same coordinates."""
    ends = np.cumsum(sizes)
    candidates = _with_possible_duplicates(points, sizes)
    if not candidates:
        return triangles
    some = np.concatenate([points[ends[i] - sizes[i] : ends[i]] for i in candidates])
    owner = np.repeat(np.arange(len(candidates)), [sizes[i] for i in candidates])
    target = first_duplicates(some, owner)
    merged, start = list(triangles), 0
    for i in candidates:
        merged[i] = target[start : start + sizes[i]][triangles[i]] - start
        start += sizes[i]
    return merged


def _with_possible_duplicates(points: _Array, sizes: list[int]) -> list[int]:
    """Meshes that may have duplicate vertices: those have equal heights in a fixed direction, and others hardly ever."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Not by matrix multiplication, which may round equal rows differently.
        heights = sum((points[:, axis] * share for axis, share in enumerate(_TILT)), np.zeros(len(points)))
    found, first, start = [], 0, 0
    for size, run in groupby(sizes):
        count = len(list(run))
        rows = np.sort(heights[start : start + count * size].reshape(count, size), axis=1)
        possible = (rows[:, 1:] == rows[:, :-1]).any(axis=1) | np.isnan(rows[:, -1:]).any(axis=1)
        found += (first + possible.nonzero()[0]).tolist()
        first, start = first + count, start + count * size
    return found
