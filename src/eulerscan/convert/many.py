"""Many files at once: what costs the same for one mesh as for hundreds is done once for all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..checks import check_points
from ..complexes import Complex, collate
from ..simplices import unique
from .files import _recognised, read
from .meshfiles import _CHECKS
from .trimesh import Part, _joined

_Array = np.ndarray[Any, Any]
_OPTIONS = {"merge", "dtype"}


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
        >>> file = Path(tempfile.mkdtemp()) / "points.csv"
        >>> _ = file.write_text("0,0\\n1,0\\n0,1\\n", encoding="utf-8")
        >>> batches, errors = read_many([file, "missing.csv", file])
        >>> batches[2]
        Batch(positions=[0, 2], complex=Complex(num_complexes=2, dim=2, points=6))
        >>> errors
        {1: FileNotFoundError(2, 'No such file or directory')}
    """
    files = [Path(path) for path in paths]
    together = None
    if options.keys() <= _OPTIONS:
        together = _assembled({i: part for i, path in enumerate(files) if (part := _plain_mesh(path))}, **options)
    found: dict[int, list[Batch]] = {}
    if together is not None:
        found[together.complex.dim] = [together]
    done = set(together.positions) if together is not None else set()
    errors: dict[int, Exception] = {}
    for i, path in enumerate(files):
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


def _assembled(parts: dict[int, Part], *, merge: bool = True, dtype: torch.dtype | None = None) -> Batch | None:
    """The meshes as one complex, as ``assembled`` makes each; without those in which something is wrong."""
    if not parts:
        return None
    points, _, triangles, _ = _joined(list(parts.values()))
    sizes = [len(part.vertices) for part in parts.values()]
    owner = np.repeat(np.arange(len(parts)), sizes)
    try:
        check_points(torch.from_numpy(points))
    except ValueError:
        sound = {i: part for i, part in parts.items() if np.isfinite(part.vertices).all()}
        return _assembled(sound, merge=merge, dtype=dtype) if len(sound) < len(parts) else None
    if merge:
        triangles = _first_of_equals(points, owner)[triangles]
    level = unique(torch.from_numpy(triangles))
    used = torch.zeros(len(points), dtype=torch.bool).index_fill(0, level.reshape(-1), True)
    position = used.cumsum(0) - 1
    kept = torch.from_numpy(points)[used].to(dtype or torch.get_default_dtype())
    batch = torch.from_numpy(owner)[used]
    complex = Complex(kept, [position[level]] if level.numel() else [], batch=batch, num_complexes=len(parts)).closure()
    # Those without a triangle are read again alone, for the error that names what is wrong.
    filled = complex.offsets[0].diff() > 0
    positions = [i for i, full in zip(parts, filled.tolist(), strict=True) if full]
    return Batch(positions, complex if len(positions) == len(parts) else complex[filled]) if positions else None


def _first_of_equals(points: _Array, owner: _Array) -> _Array:
    """``[V]``: the first point of the same mesh with the same coordinates."""
    order = np.lexsort((*points.T, owner))
    ordered, owners = points[order] + 0.0, owner[order]  # -0.0 is 0.0
    new = np.concatenate([[True] * bool(len(points)), (ordered[1:] != ordered[:-1]).any(axis=1) | (owners[1:] != owners[:-1])])
    target = np.empty(len(points), np.int64)
    target[order] = order[new.nonzero()[0]][np.cumsum(new) - 1] if len(points) else order
    return target


def _plain_mesh(path: Path) -> Part | None:
    """The mesh in a file that holds one and nothing else; ``None`` where there is more to it, or something is wrong."""
    try:
        content = path.read_bytes()
        kind = _recognised(content[:4096], len(content))
        if kind not in _LOADERS:
            return None
        vertices, triangles = _LOADERS[kind](content)
    except Exception:  # whatever it is, read() says it better
        return None
    if not len(triangles) or triangles.min() < 0 or triangles.max() >= len(vertices):
        return None
    return Part(vertices.astype(np.float64), np.empty((2, 0), np.int64), triangles.astype(np.int64).T)


def _off(content: bytes) -> tuple[_Array, _Array]:
    """Only triangles, and nothing but coordinates at the vertices. Then the numbers may be read without looking at lines."""
    _CHECKS["off"](content)
    text = re.sub(rb"#[^\n]*", b"", content) if b"#" in content else content
    match = re.match(rb"\s*OFF\s+(\d+)[ \t]+(\d+)[^\n]*\n", text)
    if match is None:
        raise ValueError("it has a header of its own")
    vertices, triangles = int(match[1]), int(match[2])
    if b"_" in text:
        raise ValueError("Python takes 1_0 for a number, and others do not")
    # Not numpy.fromstring, which only warns where it meets something else: filters of warnings are shared by all threads.
    numbers = np.fromiter(map(float, text[match.end() :].split()), np.float64)
    corners = numbers[3 * vertices :].reshape(-1, 4)
    if len(corners) != triangles or not (corners[:, 0] == 3).all():
        raise ValueError("it holds more than triangles")
    indices = corners[:, 1:].astype(np.int64)
    if (indices != corners[:, 1:]).any():
        raise ValueError("indices must be whole numbers")
    return numbers[: 3 * vertices].reshape(-1, 3), indices


def _ply(content: bytes) -> tuple[_Array, _Array]:
    """Binary, only triangles, and nothing else at the faces. Vertices may have normals, colours and so on."""
    header, _, body = content.partition(b"end_header\n")
    match = _PLY_HEADER.fullmatch(header)
    if match is None:
        raise ValueError("it has a header of its own")
    kinds = [line.split()[1:] for line in match["properties"].splitlines()]
    rows = np.dtype([(name.decode(), f"<{_PLY_KINDS[kind]}") for kind, name in kinds])
    faces = np.dtype([("size", "u1"), ("corners", "<i4", 3)])
    num_vertices, num_faces = int(match["vertices"]), int(match["faces"])
    end = num_vertices * rows.itemsize
    if len(body) != end + num_faces * faces.itemsize:
        raise ValueError("it is too long or too short, or holds more than triangles")
    vertices = np.frombuffer(body, rows, num_vertices)
    triangles = np.frombuffer(body, faces, num_faces, end)
    if not (triangles["size"] == 3).all():
        raise ValueError("it holds more than triangles")
    return np.stack([vertices[axis] for axis in "xyz"], axis=1), triangles["corners"]


_PLY_KINDS = {b"float": "f4", b"float32": "f4", b"double": "f8", b"float64": "f8", b"uchar": "u1", b"uint8": "u1"}
_PLY_HEADER = re.compile(
    rb"ply\nformat binary_little_endian 1\.0\n(?:(?:comment|obj_info)[^\n]*\n)*"
    rb"element vertex (?P<vertices>\d+)\n(?P<properties>(?:property \w+ \w+\n)+)"
    rb"element face (?P<faces>\d+)\nproperty list (?:uchar|uint8) (?:int|int32) vertex_ind(?:ex|ices)\n"
)


def _stl(content: bytes) -> tuple[_Array, _Array]:
    """Binary: a normal, three corners and two bytes for each triangle."""
    count = int.from_bytes(content[80:84], "little")
    if len(content) != 84 + 50 * count:
        raise ValueError("it is text")
    triangles = np.frombuffer(content, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")]), count, 84)
    return triangles["corners"].reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


_LOADERS: dict[str | None, Callable[[bytes], tuple[_Array, _Array]]] = {"off": _off, "ply": _ply, "stl": _stl}
