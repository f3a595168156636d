"""Files that hold a mesh and nothing else, read without a library: for many small ones, what is around takes longer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .mesh import CHECKS
from .obj import obj_part
from .read import ENDINGS, recognised

_Array = np.ndarray[Any, Any]
_PLAIN = np.dtype([("corners", "<i8", 3)])
_PLY_FACE = np.dtype([("size", "u1"), ("corners", "<i4", 3)])
_PLY_END = b"end_header\n"
_PLY_KINDS = {b"float": "f4", b"float32": "f4", b"double": "f8", b"float64": "f8", b"uchar": "u1", b"uint8": "u1"}
_PLY_HEADER = re.compile(
    rb"ply\nformat binary_little_endian 1\.0\n(?:(?:comment|obj_info)[^\n]*\n)*"
    rb"element vertex (?P<vertices>\d+)\n(?P<properties>(?:property \w+ \w+\n)+)"
    rb"element face (?P<faces>\d+)\nproperty list (?:uchar|uint8) (?:int|int32) vertex_ind(?:ex|ices)\nend_header\n"
)


class Mesh(NamedTuple):
    """The vertices ``[V, 3]`` of a mesh, and its triangles as they stand in the file."""

    vertices: _Array
    triangles: bytes
    layout: np.dtype[Any]  # of one triangle: its field "corners" holds three indices

    @property
    def connectivity(self) -> tuple[int, bytes, np.dtype[Any]]:
        """The same for two meshes that differ in nothing but coordinates."""
        return len(self.vertices), self.triangles, self.layout


def plain_mesh(path: str | os.PathLike[str]) -> Mesh | None:
    """The mesh in a file that holds one and nothing else; ``None`` where there is more to it, or something is wrong."""
    try:
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        kind = recognised(content[:4096], len(content)) or ENDINGS.get(os.path.splitext(path)[1].lower())
        return _LOADERS[kind](content) if kind in _LOADERS else None
    except Exception:  # whatever it is, read() says it better
        return None


def _mesh(vertices: _Array, triangles: _Array) -> Mesh:
    return Mesh(vertices, np.ascontiguousarray(triangles, np.int64).tobytes(), _PLAIN)


def triangles_of(num_vertices: int, triangles: bytes, layout: np.dtype[Any]) -> _Array | None:
    """``[3, n]``; ``None`` if there is something wrong with them."""
    rows = np.frombuffer(triangles, layout)
    corners = rows["corners"]
    if "size" in (layout.names or ()) and (rows["size"] != 3).any():
        return None
    if not len(corners) or corners.min() < 0 or corners.max() >= num_vertices:
        return None
    return np.ascontiguousarray(corners.T, np.int64)


def _off(content: bytes) -> Mesh:
    """Only triangles, and nothing but coordinates at the vertices. Then the numbers may be read without looking at lines."""
    CHECKS["off"](content)
    text = re.sub(rb"#[^\n]*", b"", content) if b"#" in content else content
    match = re.match(rb"\s*OFF\s+(\d+)[ \t]+(\d+)[^\n]*\n", text)
    if match is None:
        raise ValueError("it has a header of its own")
    vertices, triangles = int(match[1]), int(match[2])
    if b"_" in text:
        raise ValueError("Python takes 1_0 for a number, and others do not")
    # Not numpy.fromstring, which only warns where it meets something else: filters of warnings are shared by all threads.
    words = text[match.end() :].split()
    points = np.fromiter(map(float, words[: 3 * vertices]), np.float64).reshape(-1, 3)
    corners = np.fromiter(map(int, words[3 * vertices :]), np.int64).reshape(-1, 4)
    if len(corners) != triangles or not (corners[:, 0] == 3).all():
        raise ValueError("it holds more than triangles")
    return _mesh(points, corners[:, 1:])


def _ply(content: bytes) -> Mesh:
    """Binary, only triangles, and nothing else at the faces. Vertices may have normals, colours and so on."""
    begin = content.index(_PLY_END) + len(_PLY_END)
    rows, num_vertices, num_faces = _ply_header(content[:begin])
    end = begin + num_vertices * rows.itemsize
    if len(content) != end + num_faces * _PLY_FACE.itemsize:
        raise ValueError("it is too long or too short, or holds more than triangles")
    vertices = np.frombuffer(content, rows, num_vertices, begin)
    first = rows["x"]
    if rows.names == ("x", "y", "z") and first == rows["y"] == rows["z"]:
        return Mesh(vertices.view(first).reshape(-1, 3), content[end:], _PLY_FACE)
    return Mesh(np.stack([vertices[axis] for axis in "xyz"], axis=1), content[end:], _PLY_FACE)


@lru_cache(maxsize=64)
def _ply_header(header: bytes) -> tuple[np.dtype[Any], int, int]:
    """What a vertex consists of, and how many vertices and faces there are."""
    match = _PLY_HEADER.fullmatch(header)
    if match is None:
        raise ValueError("it has a header of its own")
    kinds = [line.split()[1:] for line in match["properties"].splitlines()]
    rows = np.dtype([(name.decode(), f"<{_PLY_KINDS[kind]}") for kind, name in kinds])
    return rows, int(match["vertices"]), int(match["faces"])


def _stl(content: bytes) -> Mesh:
    """Binary: a normal, three corners and two bytes for each triangle."""
    count = int.from_bytes(content[80:84], "little")
    if len(content) != 84 + 50 * count:
        raise ValueError("it is text")
    triangles = np.frombuffer(content, np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")]), count, 84)
    return _mesh(triangles["corners"].reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def _obj(content: bytes) -> Mesh:
    """Triangles and other polygons, but no lines."""
    part = obj_part(content)
    if part.edges.size:
        raise ValueError("it holds more than triangles")
    return _mesh(part.vertices, part.triangles.T)


_LOADERS: dict[str | None, Callable[[bytes], Mesh]] = {"off": _off, "ply": _ply, "stl": _stl, "obj": _obj}
