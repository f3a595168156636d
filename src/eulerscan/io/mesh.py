"""Mesh files: PLY, OFF, STL, GLB and glTF.

Files that hold only triangles are parsed here, the rest by trimesh. Errors that trimesh does not report are caught here.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from .._imports import require
from ..complexes import Complex
from ..convert.trimesh import Part, assemble, from_trimesh
from .formats import File
from .obj import parse_obj

_Array = np.ndarray[Any, Any]
_INT64 = np.dtype([("corners", "<i8", 3)])
_PLY_FACE = np.dtype([("size", "u1"), ("corners", "<i4", 3)])
_STL_FACE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_PLY_END = b"end_header\n"
_PLY_TYPES = {b"float": "f4", b"float32": "f4", b"double": "f8", b"float64": "f8", b"uchar": "u1", b"uint8": "u1"}
_PLY_HEADER = re.compile(
    rb"ply\nformat binary_little_endian 1\.0\n(?:(?:comment|obj_info)[^\n]*\n)*"
    rb"element vertex (?P<vertices>\d+)\n(?P<properties>(?:property \w+ \w+\n)+)"
    rb"element face (?P<faces>\d+)\nproperty list (?:uchar|uint8) (?:int|int32) vertex_ind(?:ex|ices)\nend_header\n"
)


def read_mesh(file: File, *, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """A mesh, point cloud, path or scene. Options as in :func:`from_trimesh`."""
    mesh = parse_mesh(file)
    triangles = None if mesh is None else decode_triangles(*mesh.connectivity)
    if mesh is None or triangles is None:
        return from_trimesh(load_geometries(file), merge=merge, dtype=dtype)
    return assemble([Part(mesh.vertices, np.empty((2, 0), np.int64), triangles)], merge=merge, dtype=dtype)


def load_geometries(file: File) -> list[Any]:
    """The geometries of trimesh in a file."""
    trimesh = require("trimesh", extra="mesh")
    if file.format in _CHECKS:
        _CHECKS[file.format](file.content)
    try:
        with warnings.catch_warnings():
            # numpy stops at text that is not a number, and only warns.
            warnings.filterwarnings("error", message="string or file could not be read")
            # Unprocessed: trimesh would silently drop vertices that are not finite. glTF refers to files beside it.
            resolver = trimesh.resolvers.FilePathResolver(str(file.path))
            scene = trimesh.load_scene(io.BytesIO(file.content), file_type=file.format, resolver=resolver, process=False)
            geometries: list[Any] = scene.dump()
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # trimesh raises exceptions of many types
        raise ValueError(f"not a valid {file.format.upper()} file: truncated, corrupted, or in another format.") from error
    if not any(len(item.vertices) for item in geometries):
        raise ValueError(f"file holds no vertices: empty, truncated, or not a {file.format.upper()} file.")
    return geometries


class Mesh(NamedTuple):
    """The vertices ``[V, 3]`` of a mesh, and its triangles as stored in the file."""

    vertices: _Array
    triangles: bytes
    layout: np.dtype[Any]  # of one triangle; its field "corners" holds three indices

    @property
    def connectivity(self) -> tuple[int, bytes, np.dtype[Any]]:
        """Equal for two meshes that differ only in their coordinates."""
        return len(self.vertices), self.triangles, self.layout


def parse_mesh(file: File) -> Mesh | None:
    """The mesh in an OBJ, OFF, PLY or STL file of triangles; ``None`` if it holds anything else, or is invalid.

    Several times faster than trimesh for small files.
    """
    parser = _PARSERS.get(file.format)
    try:
        return None if parser is None else parser(file.content)
    except Exception:  # reported by the general reader
        return None


def decode_triangles(num_vertices: int, triangles: bytes, layout: np.dtype[Any]) -> _Array | None:
    """Triangles ``[3, n]``; ``None`` if they are invalid."""
    rows = np.frombuffer(triangles, layout)
    corners = rows["corners"]
    if "size" in (layout.names or ()) and (rows["size"] != 3).any():
        return None
    if not len(corners) or corners.min() < 0 or corners.max() >= num_vertices:
        return None
    return np.ascontiguousarray(corners.T, np.int64)


def _mesh(vertices: _Array, triangles: _Array) -> Mesh:
    return Mesh(vertices, np.ascontiguousarray(triangles, np.int64).tobytes(), _INT64)


def _parse_off(content: bytes) -> Mesh:
    """Triangles only, and only coordinates at the vertices, so that line breaks do not matter."""
    _check_off(content)
    text = re.sub(rb"#[^\n]*", b"", content) if b"#" in content else content
    match = re.match(rb"\s*OFF\s+(\d+)[ \t]+(\d+)[^\n]*\n", text)
    if match is None:
        raise ValueError("unusual header")
    vertices, triangles = int(match[1]), int(match[2])
    if b"_" in text:
        raise ValueError("Python accepts 1_0 as a number, the format does not")
    # Not numpy.fromstring, which only warns about invalid text: warning filters are shared by all threads.
    words = text[match.end() :].split()
    points = np.fromiter(map(float, words[: 3 * vertices]), np.float64).reshape(-1, 3)
    corners = np.fromiter(map(int, words[3 * vertices :]), np.int64).reshape(-1, 4)
    if len(corners) != triangles or not (corners[:, 0] == 3).all():
        raise ValueError("not only triangles")
    return _mesh(points, corners[:, 1:])


def _parse_ply(content: bytes) -> Mesh:
    """Binary, triangles only. Vertices may have normals, colors and other properties."""
    begin = content.index(_PLY_END) + len(_PLY_END)
    layout, num_vertices, num_faces = _parse_ply_header(content[:begin])
    end = begin + num_vertices * layout.itemsize
    if len(content) != end + num_faces * _PLY_FACE.itemsize:
        raise ValueError("wrong size, or not only triangles")
    vertices = np.frombuffer(content, layout, num_vertices, begin)
    first = layout["x"]
    if layout.names == ("x", "y", "z") and first == layout["y"] == layout["z"]:
        return Mesh(vertices.view(first).reshape(-1, 3), content[end:], _PLY_FACE)
    return Mesh(np.stack([vertices[axis] for axis in "xyz"], axis=1), content[end:], _PLY_FACE)


@lru_cache(maxsize=64)
def _parse_ply_header(header: bytes) -> tuple[np.dtype[Any], int, int]:
    """The properties of a vertex, and the number of vertices and faces."""
    match = _PLY_HEADER.fullmatch(header)
    if match is None:
        raise ValueError("unusual header")
    properties = [line.split()[1:] for line in match["properties"].splitlines()]
    layout = np.dtype([(name.decode(), f"<{_PLY_TYPES[type]}") for type, name in properties])
    return layout, int(match["vertices"]), int(match["faces"])


def _parse_stl(content: bytes) -> Mesh:
    count = int.from_bytes(content[80:84], "little")
    if len(content) != 84 + 50 * count:
        raise ValueError("not binary")
    triangles = np.frombuffer(content, _STL_FACE, count, 84)
    return _mesh(triangles["corners"].reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def _parse_obj(content: bytes) -> Mesh:
    part = parse_obj(content)
    if part.edges.size:
        raise ValueError("not only triangles")
    return _mesh(part.vertices, part.triangles.T)


def _check_off(content: bytes) -> None:
    """Raise if there are fewer lines than the header declares."""
    text = re.sub(rb"#[^\n]*", b"", content)
    match = re.match(rb"\s*(?:ST)?(?:C|N)*OFF(?:\s+BINARY)?\s*(\d+)\s+(\d+)", text)
    if match is None:
        raise ValueError("not an OFF file: it must begin with OFF and the numbers of vertices and faces.")
    vertices, triangles = int(match[1]), int(match[2])
    rows = [line for line in text[match.end() :].splitlines()[1:] if line.strip()]
    if len(rows) < vertices + triangles:
        raise ValueError(f"file is truncated: {vertices} vertices and {triangles} faces need as many lines, got {len(rows)}.")
    if triangles:
        _check_face(rows[vertices + triangles - 1])


def _check_ply(content: bytes) -> None:
    """Raise if a text file has fewer lines than its header declares. trimesh checks the size of binary files."""
    header, end, body = content.partition(b"end_header")
    if not end:
        raise ValueError("not a PLY file, or truncated: the header has no end.")
    if re.search(rb"element\s+face\s+[1-9]", header) and re.search(rb"element\s+edge\s+[1-9]", header):
        raise ValueError("PLY files with both faces and edges are not supported: the edges would be lost. Use NPZ.")
    if b"format ascii" in header:
        declared = sum(int(number) for number in re.findall(rb"^element\s+\S+\s+(\d+)", header, re.MULTILINE))
        rows = [line for line in body.splitlines()[1:] if line.strip()]
        if len(rows) < declared:
            raise ValueError(f"file is truncated: the header declares {declared} lines, got {len(rows)}.")
        if rows and re.search(rb"element\s+face\s+[1-9]\d*\s+property\s+list[^\n]*\s*$", header):
            _check_face(rows[declared - 1])


def _check_face(row: bytes) -> None:
    """Raise if the last face of a file lacks vertices."""
    count, *vertices = row.split()
    if count.isdigit() and len(vertices) < int(count):
        raise ValueError(f"file is truncated: the last face has {int(count)} vertices, got {len(vertices)}.")


_CHECKS: dict[str, Callable[[bytes], None]] = {"off": _check_off, "ply": _check_ply}
_PARSERS: dict[str, Callable[[bytes], Mesh]] = {"off": _parse_off, "ply": _parse_ply, "stl": _parse_stl, "obj": _parse_obj}
