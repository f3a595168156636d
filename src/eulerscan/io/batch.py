"""Many files at once: what costs the same for one mesh as for hundreds is done once for all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch

from ..complexes import Complex, collate
from ..complexes.simplices import unique
from ..convert.merging import first_of_equals
from .plain_mesh import Mesh, plain_mesh, triangles_of
from .read import read

_Array = np.ndarray[Any, Any]
_OPTIONS = {"merge", "dtype"}
REMEMBERED = 2**20  # bytes of triangles, at most
_TILT = (1.0, 0.6180339887498949, 0.3819660112501051)


class Batch(NamedTuple):
    """Shapes of one dimension of space, and which of the files they come from."""

    positions: list[int]
    complex: Complex


def read_many(paths: Sequence[str | os.PathLike[str]], **options: Any) -> tuple[dict[int, Batch], dict[int, Exception]]:
    """Read many files: the same shapes as :func:`read` makes one by one, to the bit, and several times faster for small meshes.

    Args:
        paths: The files.
        options: Those of :func:`read`.

    Returns:
        The shapes by dimension of space, and what was raised for the files that could not be read, by position in ``paths``.

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
    together = None
    # What is no switch is refused file by file, as by read.
    if options.keys() <= _OPTIONS and isinstance(options.get("merge", True), bool):
        together = _assembled({i: mesh for i, path in enumerate(paths) if (mesh := plain_mesh(path))}, **options)
    found: dict[int, list[Batch]] = {}
    if together is not None:
        found[together.complex.dim] = [together]
    done = set(together.positions) if together is not None else set()
    errors: dict[int, Exception] = {}
    for i, path in enumerate(paths):
        if i in done:
            continue
        try:
            shape = read(path, **options)
        except ImportError:
            raise
        except Exception as error:  # whatever is wrong with one file, the others can be read
            errors[i] = error
        else:
            found.setdefault(shape.dim, []).append(Batch([i], shape))
    return {dim: _joined_batches(batches) for dim, batches in found.items()}, errors


def _joined_batches(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch([i for batch in batches for i in batch.positions], collate([batch.complex for batch in batches]))


def _assembled(meshes: dict[int, Mesh], *, merge: bool = True, dtype: torch.dtype | None = None) -> Batch | None:
    """The meshes as one complex, as ``assembled`` makes each; without those in which something is wrong."""
    connectivity = {mesh.connectivity: None for mesh in meshes.values()}
    triangles = {key: columns for key in connectivity if (columns := triangles_of(*key)) is not None}
    meshes = {i: mesh for i, mesh in meshes.items() if mesh.connectivity in triangles}
    if not meshes:
        return None
    points = np.concatenate([mesh.vertices for mesh in meshes.values()], dtype=np.float64)
    coordinates = torch.from_numpy(points).to(dtype or torch.get_default_dtype())
    if not bool(torch.isfinite(coordinates).all()):
        sound = {i: mesh for i, mesh in meshes.items() if _finite(mesh.vertices, coordinates.dtype)}
        return _assembled(sound, merge=merge, dtype=dtype) if len(sound) < len(meshes) else None
    given = [mesh.connectivity for mesh in meshes.values()]
    own = [triangles[key] for key in given]
    if merge:
        own = _merged(points, [len(mesh.vertices) for mesh in meshes.values()], own)
    # Many meshes differ in their coordinates alone: what follows from the triangles is found once for all of them.
    # Nor are they copied for each: that would take a quarter of the time and more.
    contents = {key: columns.tobytes() for key, columns in triangles.items()}
    keys = [
        (len(mesh.vertices), contents[key] if columns is triangles[key] else columns.tobytes())
        for mesh, key, columns in zip(meshes.values(), given, own, strict=True)
    ]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    chosen = [numbers[key] for key in keys]
    connected, used = _connected(tuple(numbers))
    # Those without a triangle are read again alone, for the error that names what is wrong.
    filled = [bool(used[number].any()) for number in chosen]
    kept = torch.from_numpy(np.concatenate([used[number] for number in chosen]))
    positions = [i for i, full in zip(meshes, filled, strict=True) if full]
    if not positions:
        return None
    shapes = connected[[number for number, full in zip(chosen, filled, strict=True) if full]]
    return Batch(positions, shapes.with_points(coordinates if bool(kept.all()) else coordinates[kept]))


def _connected(meshes: tuple[tuple[int, bytes], ...]) -> tuple[Complex, list[_Array]]:
    """Complexes of so many vertices and such triangles, without coordinates; and for each which vertices it has kept."""
    few = sum(len(triangles) for _, triangles in meshes) < REMEMBERED
    return _remembered(meshes) if few else _connect(meshes)


def _connect(meshes: tuple[tuple[int, bytes], ...]) -> tuple[Complex, list[_Array]]:
    sizes = [size for size, _ in meshes]
    starts = np.cumsum([0, *sizes])
    columns = [np.frombuffer(triangles, np.int64).reshape(3, -1) for _, triangles in meshes]
    joined = np.concatenate([some + start for some, start in zip(columns, starts, strict=False)], axis=1)
    level = unique(torch.from_numpy(joined))
    used = torch.zeros(int(starts[-1]), dtype=torch.bool, device="cpu").index_fill(0, level.reshape(-1), True)
    position = used.cumsum(0) - 1
    batch = torch.from_numpy(np.repeat(np.arange(len(meshes)), sizes))[used]
    nowhere = torch.zeros(len(batch), 1, device="cpu")
    complex = Complex(nowhere, [position[level]] if level.numel() else [], batch=batch, num_complexes=len(meshes)).closure()
    return complex, np.split(used.numpy(), starts[1:-1])


_remembered = lru_cache(maxsize=1)(_connect)  # the next files are often like the last


def _finite(vertices: _Array, dtype: torch.dtype) -> bool:
    return bool(torch.isfinite(torch.from_numpy(vertices.astype(np.float64)).to(dtype)).all())


def _merged(points: _Array, sizes: list[int], triangles: list[_Array]) -> list[_Array]:
    """The triangles of each mesh, with the first vertex of those that have the same coordinates in place of the others."""
    ends = np.cumsum(sizes)
    doubtful = _with_equals(points, sizes)
    if not doubtful:
        return triangles
    some = np.concatenate([points[ends[i] - sizes[i] : ends[i]] for i in doubtful])
    owner = np.repeat(np.arange(len(doubtful)), [sizes[i] for i in doubtful])
    target = first_of_equals(some, owner)
    merged, start = list(triangles), 0
    for i in doubtful:
        merged[i] = target[start : start + sizes[i]][triangles[i]] - start
        start += sizes[i]
    return merged


def _with_equals(points: _Array, sizes: list[int]) -> list[int]:
    """The meshes that may have equal vertices: those have equal heights in a direction, and others hardly ever."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Not by matrix multiplication, which may round the same numbers in two ways.
        heights = sum((points[:, axis] * share for axis, share in enumerate(_TILT)), np.zeros(len(points)))
    found, first, start = [], 0, 0
    for size, run in groupby(sizes):
        count = len(list(run))
        rows = np.sort(heights[start : start + count * size].reshape(count, size), axis=1)
        doubtful = (rows[:, 1:] == rows[:, :-1]).any(axis=1) | np.isnan(rows[:, -1:]).any(axis=1)
        found += (first + doubtful.nonzero()[0]).tolist()
        first, start = first + count, start + count * size
    return found
