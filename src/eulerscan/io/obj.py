"""OBJ files, with a parser of our own.

trimesh drops lines, takes vertex number 0 for the last vertex, and resolves negative numbers from the end of the file, not from
the current line.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

import numpy as np
import torch

from ..complexes import Complex
from ..convert.trimesh import Part, assemble
from .formats import File

_Array = np.ndarray[Any, Any]
_LONGEST = 100  # characters of a number


def read_obj(file: File, *, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """The vertices, faces and lines of an OBJ file. Polygons are triangulated."""
    return assemble([parse_obj(file.content)], merge=merge, dtype=dtype)


def parse_obj(content: bytes) -> Part:
    """The vertices, edges and triangles of an OBJ file."""
    content = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in content:
        raise ValueError("file is binary, but OBJ is a text format.")
    content = re.sub(rb"\\\n", b" ", content)  # line continuations
    starts, vertices = _vertices(content)
    polygons = _elements(content, b"f", starts)
    triangles = [np.stack([p[:, :1].repeat(p.shape[1] - 2, 1), p[:, 1:-1], p[:, 2:]]).reshape(3, -1) for p in polygons]
    edges = [np.stack([line[:, :-1], line[:, 1:]]).reshape(2, -1) for line in _elements(content, b"l", starts)]
    return Part(
        vertices,
        np.concatenate([np.empty((2, 0), np.int64), *edges], axis=1),
        np.concatenate([np.empty((3, 0), np.int64), *triangles], axis=1),
    )


def _vertices(content: bytes) -> tuple[_Array, _Array]:
    """Offsets of the vertex lines, and coordinates ``[V, 3]``. A weight or a color may follow the coordinates."""
    matches = list(re.finditer(rb"^[ \t]*v[ \t]+([^\r\n#]*)", content, re.MULTILINE))
    if not matches:
        raise ValueError("file holds no vertices: truncated, or not an OBJ file.")
    words = [word for match in matches for word in match[1].split()[:3]]
    try:
        coordinates = _array(words).astype(np.float64)
    except ValueError:
        coordinates = np.empty(0)
    if len(coordinates) != 3 * len(matches):
        raise ValueError("every vertex must have three coordinates.")
    return np.array([match.start() for match in matches]), coordinates.reshape(-1, 3)


def _array(words: list[bytes]) -> _Array:
    """An array of words, all of which take the space of the longest."""
    if max(map(len, words), default=0) > _LONGEST:
        raise ValueError("too long for a number")
    return np.array(words, dtype=np.bytes_)


def _elements(content: bytes, name: bytes, starts: _Array) -> list[_Array]:
    """Faces or lines, grouped by number of vertices: arrays ``[n, number of vertices]`` of indices from 0."""
    matches = list(re.finditer(rb"^[ \t]*" + name + rb"[ \t]+([^\r\n#]*)", content, re.MULTILINE))
    # Texture and normal indices follow a slash.
    entries = [re.sub(rb"/\S*", b"", match[1]).split() for match in matches]
    least = 3 if name == b"f" else 2
    sizes = np.array([len(entry) for entry in entries])
    if len(sizes) and sizes.min() < least:
        raise ValueError(f"every {'face' if name == b'f' else 'line'} must have at least {least} vertices, got {sizes.min()}.")
    found = []
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        try:
            numbers = _array([word for i in chosen for word in entries[i]]).astype(np.int64).reshape(len(chosen), -1)
        except ValueError:
            raise ValueError("faces and lines must consist of vertex numbers.") from None
        before = np.searchsorted(starts, [matches[i].start() for i in chosen])[:, None]
        indices = np.where(numbers < 0, numbers + before, numbers - 1)
        bad = numbers[(numbers == 0) | (indices < 0) | (indices >= len(starts))]
        if len(bad):
            raise ValueError(f"faces and lines must refer to vertices 1 to {len(starts)}, got {bad[0]}.")
        found.append(indices)
    return found
