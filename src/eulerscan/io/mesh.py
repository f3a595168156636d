"""Mesh files: PLY, OFF and STL.

STL, and files that hold only triangles, are parsed here, the rest by trimesh, after checks that trimesh does not make.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Sequence
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
_NO_LOG = logging.NullHandler()
_PLY_END = b"end_header\n"
_PLY_KEYWORDS = (b"ply", b"format", b"element", b"property")
_PLY_LINES = 1000  # of a header without comments, at most: trimesh takes quadratic time
_PLY_TYPES = {b"float": "f4", b"float32": "f4", b"double": "f8", b"float64": "f8", b"uchar": "u1", b"uint8": "u1"}
_PLY_HEADER = re.compile(
    rb"ply\nformat binary_little_endian 1\.0\n(?:(?:comment|obj_info)[^\n]*\n)*"
    rb"element vertex (?P<vertices>\d+)\n(?P<properties>(?:property \w+ \w+\n)+)"
    rb"element face (?P<faces>\d+)\nproperty list (?:uchar|uint8) (?:int|int32) vertex_ind(?:ex|ices)\nend_header\n"
)


def read_mesh(file: File, *, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """A mesh, point cloud, path or scene. Options as in :func:`from_trimesh`."""
    mesh = _parse_stl(file.content) if file.format == "stl" else parse_mesh(file)
    triangles = None if mesh is None else decode_triangles(*mesh.connectivity)
    if mesh is None or triangles is None:
        return from_trimesh(load_geometries(file), merge=merge, dtype=dtype)
    return assemble([Part(mesh.vertices, np.empty((2, 0), np.int64), triangles)], merge=merge, dtype=dtype)


def load_geometries(file: File) -> list[Any]:
    """The geometries of trimesh in a file."""
    trimesh = require("trimesh", extra="mesh")
    logging.getLogger("trimesh").addHandler(_NO_LOG)  # or Python would print its tracebacks
    content = _PREPARED[file.format](file.content) if file.format in _PREPARED else file.content
    try:
        with warnings.catch_warnings():
            # numpy stops at text that is not a number, and only warns.
            warnings.filterwarnings("error", message="string or file could not be read")
            # Unprocessed: trimesh would silently drop vertices that are not finite.
            scene = trimesh.load_scene(io.BytesIO(content), file_type=file.format, process=False)
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
    _off_faces(content)
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
    if len(content) == 84 + 50 * count:
        vertices = np.frombuffer(content, _STL_FACE, count, 84)["corners"].reshape(-1, 3)
    else:
        vertices = _parse_stl_text(content)
    if not len(vertices):
        raise ValueError("file holds no vertices: empty, truncated, or not an STL file.")
    return _mesh(vertices, np.arange(len(vertices)).reshape(-1, 3))


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


def _parse_obj(content: bytes) -> Mesh:
    part = parse_obj(content)
    if part.edges.size:
        raise ValueError("not only triangles")
    return _mesh(part.vertices, part.triangles.T)


def _off_faces(content: bytes) -> list[bytes]:
    """The lines of the faces. Raises if there are fewer lines than the header declares."""
    text = re.sub(rb"#[^\n]*", b"", content)
    match = re.match(rb"\s*(?:ST)?(?:C|N)*OFF(?:\s+BINARY)?\s*(\d+)\s+(\d+)", text)
    if match is None:
        raise ValueError("not an OFF file: it must begin with OFF and the numbers of vertices and faces.")
    vertices, faces = int(match[1]), int(match[2])
    rows = [line for line in text[match.end() :].splitlines()[1:] if line.strip()]
    if len(rows) < vertices + faces:
        raise ValueError(f"file is truncated: {vertices} vertices and {faces} faces need as many lines, got {len(rows)}.")
    return rows[vertices : vertices + faces]


def _prepared_off(content: bytes) -> bytes:
    _check_faces(_off_faces(content), 0)
    return content


def _prepared_ply(content: bytes) -> bytes:
    """The file without comments, which may name textures, or be in any encoding. trimesh checks the size of binary files."""
    header, end, body = content.partition(b"end_header")
    if not end:
        raise ValueError("not a PLY file, or truncated: the header has no end.")
    lines = [line for line in header.splitlines() if line.startswith(_PLY_KEYWORDS)]
    if len(lines) > _PLY_LINES:
        raise ValueError(f"the header declares {len(lines)} elements and properties, more than {_PLY_LINES}.")
    elements = _ply_elements(lines)
    if elements.get("face", (0,))[0] and elements.get("edge", (0,))[0]:
        raise ValueError("PLY files with both faces and edges are not supported: the edges would be lost. Use NPZ.")
    if any(line.startswith(b"format ascii") for line in lines):
        declared = sum(count for count, _ in elements.values())
        rows = [line for line in body.splitlines()[1:] if line.strip()]
        if len(rows) < declared:
            raise ValueError(f"file is truncated: the header declares {declared} lines, got {len(rows)}.")
        begin = 0
        for name, (count, properties) in elements.items():
            if name == "face" and "list" in properties:
                _check_faces(rows[begin : begin + count], properties.index("list"))
            begin += count
    return b"\n".join([*lines, end + body])


def _ply_elements(header: Sequence[bytes]) -> dict[str, tuple[int, list[str]]]:
    """The number and the types of the properties of each element."""
    elements: dict[str, tuple[int, list[str]]] = {}
    types: list[str] = []
    for line in header:
        keyword, *words = line.decode("ascii", "replace").split()
        if keyword == "element":
            if len(words) != 2 or not words[1].isdecimal() or words[0] in elements:
                raise ValueError("not a valid PLY file: the header must declare every element once, with its number.")
            types = []
            elements[words[0]] = (int(words[1]), types)
        elif keyword == "property":
            types += words[:1]
    return elements


def _check_faces(rows: Sequence[bytes], position: int) -> None:
    """Raise if a face lacks vertices. Their number is at ``position`` of its line."""
    for i, row in enumerate(rows):
        words = row.split()
        count, found = words[position : position + 1], len(words) - position - 1
        if count and count[0].isdigit() and found < int(count[0]):
            face = "the last face" if i == len(rows) - 1 else f"face {i}"
            raise ValueError(f"file is truncated: {face} has {int(count[0])} vertices, got {found}.")


_PREPARED: dict[str, Callable[[bytes], bytes]] = {"off": _prepared_off, "ply": _prepared_ply}
_PARSERS: dict[str, Callable[[bytes], Mesh]] = {"off": _parse_off, "ply": _parse_ply, "stl": _parse_stl, "obj": _parse_obj}
