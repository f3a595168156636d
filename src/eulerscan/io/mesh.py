"""Mesh files: OBJ, OFF, PLY and STL, and a quick way for those that hold only triangles."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from ..complexes import Complex
from ..convert.geometry import Geometry, assemble
from .formats import File
from .obj import parse_obj
from .off import parse_off
from .ply import parse_ply

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
    """The vertices, faces and lines of a mesh, or the points of a cloud. Polygons are triangulated.

    Options as in :func:`~eulerscan.convert.from_trimesh`.
    """
    mesh = parse_mesh(file) if file.format in _TRIANGLE_PARSERS else None
    triangles = None if mesh is None else decode_triangles(*mesh.connectivity)
    if mesh is None or triangles is None:
        geometry = _PARSERS[file.format](file.content)
    else:
        geometry = Geometry(mesh.vertices, np.empty((2, 0), np.int64), triangles)
    return assemble([geometry], merge=merge, dtype=dtype)


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
    """The mesh in an OBJ, OFF, PLY or STL file of triangles; ``None`` if it holds anything else, or is invalid."""
    if file.format not in _PARSERS:
        return None
    try:
        if file.format in _TRIANGLE_PARSERS:
            return _TRIANGLE_PARSERS[file.format](file.content)
        geometry = _PARSERS[file.format](file.content)
    except Exception:  # reported by the general reader
        return None
    if geometry.edges.size:
        return None
    return Mesh(geometry.vertices, np.ascontiguousarray(geometry.triangles.T, np.int64).tobytes(), _INT64)


def decode_triangles(num_vertices: int, triangles: bytes, layout: np.dtype[Any]) -> _Array | None:
    """Triangles ``[3, n]``; ``None`` if they are invalid."""
    rows = np.frombuffer(triangles, layout)
    corners = rows["corners"]
    if "size" in (layout.names or ()) and (rows["size"] != 3).any():
        return None
    if not len(corners) or corners.min() < 0 or corners.max() >= num_vertices:
        return None
    return np.ascontiguousarray(corners.T, np.int64)


def _off_triangles(content: bytes) -> Mesh:
    """Triangles only, and only coordinates at the vertices, so that line breaks do not matter."""
    text = re.sub(rb"#[^\r\n]*", b"", content) if b"#" in content else content
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
    return Mesh(points, corners[:, 1:].tobytes(), _INT64)


def _ply_triangles(content: bytes) -> Mesh:
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


def _parse_stl(content: bytes) -> Geometry:
    count = int.from_bytes(content[80:84], "little")
    if len(content) == 84 + 50 * count:
        vertices = np.frombuffer(content, _STL_FACE, count, 84)["corners"].reshape(-1, 3)
    else:
        vertices = _parse_stl_text(content)
    if not len(vertices):
        raise ValueError("file holds no vertices: empty, truncated, or not an STL file.")
    return Geometry(vertices, np.empty((2, 0), np.int64), np.arange(len(vertices)).reshape(-1, 3).T)


def _parse_stl_text(content: bytes) -> _Array:
    """The vertices ``[V, 3]`` of all solids. Their names are left out, which may hold any word."""
    text = re.sub(rb"^[ \t]*(end)?solid[^\r\n]*", rb" \1solid ", content.lower(), flags=re.MULTILINE)
    words = text.split()
    places = [i for i, word in enumerate(words) if word == b"vertex"]
    corners = [word for i in places for word in words[i + 1 : i + 4]]
    if words[:1] != [b"solid"] or words[-1] != b"endsolid" or len(places) != 3 * words.count(b"endfacet") or b"_" in content:
        raise ValueError("not a valid STL file: truncated, corrupted, or in another format.")
    try:
        return np.fromiter(map(float, corners), np.float64).reshape(-1, 3)
    except ValueError:
        raise ValueError("not a valid STL file: every vertex must have three coordinates.") from None


_PARSERS: dict[str, Callable[[bytes], Geometry]] = {"obj": parse_obj, "off": parse_off, "ply": parse_ply, "stl": _parse_stl}
# Many times faster for small files than the general parsers.
_TRIANGLE_PARSERS: dict[str, Callable[[bytes], Mesh]] = {"off": _off_triangles, "ply": _ply_triangles}
