"""glTF and GLB files, with a reader of our own for their geometry.

trimesh takes every size that a header claims for granted, opens textures, and needs quadratic time for deep scenes.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import torch

from .._limits import LimitError, check_bytes
from ..complexes import Complex
from ..convert.geometry import Geometry, assemble
from .formats import File, read_regular
from .tables import shorten

_Array = np.ndarray[Any, Any]
_Tree = dict[str, Any]  # the header, as JSON
_GLB, _CHUNK = struct.Struct("<4sII"), struct.Struct("<I4s")
_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_USED = {"POSITION", "indices"}
_POINTS, _LINES, _LINE_LOOP, _LINE_STRIP, _TRIANGLES, _STRIP, _FAN = range(7)


def read_gltf(file: File, *, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """All meshes, lines and points of the scene, in place. Textures, normals and colors are not read."""
    try:
        geometries = _geometries(file)
    except Exception as error:  # the header may hold anything
        if type(error) in (ValueError, LimitError):
            raise
        format = file.format.upper()
        raise ValueError(f"not a valid {format} file: truncated, corrupted, or in another format.") from error
    if not any(len(geometry.vertices) for geometry in geometries):
        raise ValueError(f"file holds no vertices: empty, truncated, or not a {file.format.upper()} file.")
    return assemble(geometries, merge=merge, dtype=dtype)


def _geometries(file: File) -> list[Geometry]:
    """The primitives of the scene, each at all nodes that show it."""
    tree, binary = _chunks(file.content) if file.format == "glb" else (json.loads(file.content), None)
    matrices: dict[int, list[_Array]] = {}
    for mesh, matrix in _nodes(tree):
        matrices.setdefault(mesh, []).append(matrix)
    meshes = {mesh: tree["meshes"][mesh]["primitives"] for mesh in matrices}
    # Before anything is read: many nodes may show one mesh, and many meshes share one array.
    needed = sum(len(matrices[mesh]) * _bytes(tree, primitives) for mesh, primitives in meshes.items())
    check_bytes(needed, f"a scene of {sum(map(len, matrices.values()))} nodes")
    buffers = _Buffers(tree, binary, Path(file.path).parent)
    return [
        _placed(_primitive(tree, buffers, primitive), np.stack(matrices[mesh]))
        for mesh, primitives in meshes.items()
        for primitive in primitives
    ]


def _placed(geometry: Geometry, matrices: _Array) -> Geometry:
    """A geometry at several places, given by matrices ``[n, 4, 4]``."""
    vertices = geometry.vertices @ matrices[:, :3, :3].transpose(0, 2, 1) + matrices[:, None, :3, 3]
    first = len(geometry.vertices) * np.arange(len(matrices))[:, None]
    edges, triangles = (
        (columns[:, None] + first).reshape(len(columns), -1) for columns in (geometry.edges, geometry.triangles)
    )
    return Geometry(vertices.reshape(-1, 3), edges, triangles)


def _chunks(content: bytes) -> tuple[_Tree, bytes]:
    """The header and the binary buffer of a GLB file."""
    _, version, _ = _GLB.unpack_from(content)
    if version != 2:
        raise ValueError(f"only version 2 of glTF is supported, got {version}.")
    position, found = _GLB.size, dict[bytes, bytes]()
    while position + _CHUNK.size <= len(content):
        size, kind = _CHUNK.unpack_from(content, position)
        chunk = content[position + _CHUNK.size : position + _CHUNK.size + size]
        if len(chunk) < size:
            raise ValueError(f"file is truncated: a chunk has {size} bytes, got {len(chunk)}.")
        found.setdefault(kind, chunk)
        position += _CHUNK.size + size
    return json.loads(found[b"JSON"]), found.get(b"BIN\0", b"")


def _nodes(tree: _Tree) -> Iterator[tuple[int, _Array]]:
    """The mesh and the matrix ``[4, 4]`` of every node of the scene that has a mesh."""
    nodes, scenes = tree.get("nodes", []), tree.get("scenes", [])
    roots = scenes[tree.get("scene", 0)].get("nodes", []) if scenes else []
    pending, seen = [(root, np.eye(4)) for root in reversed(roots)], set()
    while pending:
        index, parent = pending.pop()
        if index in seen:
            raise ValueError(f"node {index} must occur once in the scene.")
        seen.add(index)
        node = nodes[index]
        moves = not node.keys().isdisjoint(("matrix", "translation", "rotation", "scale"))
        matrix = parent @ _matrix(node) if moves else parent
        if "mesh" in node:
            yield node["mesh"], matrix
        pending += [(child, matrix) for child in reversed(node.get("children", []))]


def _matrix(node: _Tree) -> _Array:
    """``[4, 4]``, relative to the parent."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T  # stored by columns
    matrix = np.eye(4)
    if "rotation" in node:
        x, y, z, w = np.array(node["rotation"], dtype=np.float64).reshape(4)
        norm = x * x + y * y + z * z + w * w
        if not norm > 0:
            raise ValueError("rotations must be quaternions of length 1, got length 0.")
        skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        matrix[:3, :3] += 2 / norm * (w * skew + skew @ skew)
    if "scale" in node:
        matrix[:3, :3] *= np.array(node["scale"], dtype=np.float64).reshape(3)
    if "translation" in node:
        matrix[:3, 3] = np.array(node["translation"], dtype=np.float64).reshape(3)
    return matrix


def _bytes(tree: _Tree, primitives: list[_Tree]) -> int:
    """Memory for the vertices and indices of a mesh, ten times in 64 bits, as the complex of them needs."""
    items = [item for primitive in primitives for item in (primitive["attributes"], primitive)]
    used = [item[key] for item in items for key in _USED & item.keys()]
    return 1000 * len(primitives) + sum(10 * 3 * 8 * int(tree["accessors"][index]["count"]) for index in used)


def _primitive(tree: _Tree, buffers: _Buffers, primitive: _Tree) -> Geometry:
    """The vertices of a primitive, and its edges or triangles."""
    if "KHR_draco_mesh_compression" in primitive.get("extensions", {}):
        raise ValueError("Draco compression is not supported. Export the file without it.")
    vertices = _array(tree, buffers, primitive["attributes"]["POSITION"], 3).astype(np.float64)
    order = np.arange(len(vertices))
    if "indices" in primitive:
        order = _array(tree, buffers, primitive["indices"], 1)[:, 0].astype(np.int64)
        if len(order) and (order.min() < 0 or order.max() >= len(vertices)):
            raise ValueError(f"indices must be from 0 to {len(vertices) - 1}, got {order.min()} to {order.max()}.")
    edges, triangles = np.empty((2, 0), np.int64), np.empty((3, 0), np.int64)
    mode = primitive.get("mode", _TRIANGLES)
    if mode == _LINES:
        edges = order.reshape(-1, 2).T
    elif mode in (_LINE_LOOP, _LINE_STRIP):
        edges = np.stack([order, np.roll(order, -1)])[:, : len(order) - (mode == _LINE_STRIP)]
    elif mode == _TRIANGLES:
        triangles = order.reshape(-1, 3).T
    elif mode == _STRIP:
        triangles = np.stack([order[:-2], order[1:-1], order[2:]])
    elif mode == _FAN:
        triangles = np.stack([order[:1].repeat(max(0, len(order) - 2)), order[1:-1], order[2:]])
    elif mode != _POINTS:
        raise ValueError(f"mode of a primitive must be 0 to 6, got {mode}.")
    return Geometry(vertices, edges[:, edges[0] != edges[1]], triangles)


def _array(tree: _Tree, buffers: _Buffers, index: int, columns: int) -> _Array:
    """The array ``[count, columns]`` of an accessor, which its buffer view must hold."""
    accessor = tree["accessors"][index]
    count, dtype = accessor["count"], np.dtype(_COMPONENTS[accessor["componentType"]])
    if "sparse" in accessor or "bufferView" not in accessor:
        raise ValueError(f"accessor {index} of {count} entries is sparse or has no buffer view, which is not supported.")
    if accessor["type"] != {1: "SCALAR", 3: "VEC3"}[columns]:
        raise ValueError(f"accessor {index} must not have type {accessor['type']}.")
    view = tree["bufferViews"][accessor["bufferView"]]
    begin = view.get("byteOffset", 0)
    content = memoryview(buffers[view["buffer"]])[begin : begin + view["byteLength"]]
    row, offset = columns * dtype.itemsize, accessor.get("byteOffset", 0)
    stride = view.get("byteStride", row)
    if min(count, offset, begin, stride - 1) < 0 or (count and offset + stride * (count - 1) + row > len(content)):
        raise ValueError(f"file is truncated: accessor {index} has {count} entries, more than its buffer view holds.")
    values = np.ndarray((count, columns), dtype, content, offset, (stride, dtype.itemsize)) if count else np.empty((0, columns))
    largest = np.iinfo(dtype).max if accessor.get("normalized") and dtype.kind in "iu" else 1
    return values if largest == 1 else np.maximum(values / largest, -1.0)


class _Buffers:
    """The buffers of a file, by number: in the file, or in files beside it."""

    def __init__(self, tree: _Tree, binary: bytes | None, folder: Path) -> None:
        self.headers, self.binary, self.folder = tree.get("buffers", []), binary, folder.resolve()
        self.contents: dict[str, bytes] = {}

    def __getitem__(self, index: int) -> bytes:
        name = self.headers[index].get("uri")
        if name is None and index == 0 and self.binary is not None:
            return self.binary
        if name not in self.contents:  # many buffers may be the same file
            self.contents[name] = base64.b64decode(name.partition("base64,")[2]) if "base64," in name else self._read(name)
        return self.contents[name]

    def _read(self, name: str) -> bytes:
        try:
            path = (self.folder / unquote(name)).resolve()  # before the check: %2e%2e is a folder up, too
            if not path.is_relative_to(self.folder):
                raise ValueError("it is not in the folder of the file.")
            return read_regular(path)
        except (OSError, ValueError, RuntimeError) as error:  # a link to itself is a RuntimeError
            reason = getattr(error, "strerror", None) or str(error)
            raise ValueError(f"buffer {shorten(name)} cannot be read: {reason}") from None
