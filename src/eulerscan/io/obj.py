"""OBJ files, by hand.

trimesh reads them too, but loses their lines, takes the vertex numbered 0 for the last one, and counts numbers below zero
back from the end of the file, where the format counts them back from the line they are in.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..complexes import Complex
from ..convert.trimesh import Part, assembled

_Array = np.ndarray[Any, Any]


def read_obj(path: Path, *, kind: str, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """The vertices, faces and lines of an OBJ file. Polygons are cut into triangles."""
    return assembled([obj_part(path.read_bytes())], merge=merge, dtype=dtype)


def obj_part(content: bytes) -> Part:
    """The same from the content of a file, as it stands there."""
    content = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in content:
        raise ValueError("it is binary, where an OBJ file is text.")
    content = re.sub(rb"\\\n", b" ", content)  # a line that goes on in the next
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
    """Where the lines of the vertices begin, and three coordinates of each. A weight or a colour may follow."""
    matches = list(re.finditer(rb"^[ \t]*v[ \t]+([^\r\n#]*)", content, re.MULTILINE))
    if not matches:
        raise ValueError("it holds no vertices: truncated, or no OBJ file.")
    try:
        rows = np.array([match[1].split()[:3] for match in matches]).astype(np.float64)
    except ValueError:
        rows = np.empty((0, 0))
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ValueError("every vertex must have three coordinates.")
    return np.array([match.start() for match in matches]), rows


def _elements(content: bytes, name: bytes, starts: _Array) -> list[_Array]:
    """The faces (or lines) by number of vertices: arrays ``[n, number of vertices]`` of indices from 0."""
    matches = list(re.finditer(rb"^[ \t]*" + name + rb"[ \t]+([^\r\n#]*)", content, re.MULTILINE))
    # Numbers of textures and normals follow a slash.
    entries = [re.sub(rb"/\S*", b"", match[1]).split() for match in matches]
    least = 3 if name == b"f" else 2
    sizes = np.array([len(entry) for entry in entries])
    if len(sizes) and sizes.min() < least:
        raise ValueError(f"every {'face' if name == b'f' else 'line'} must have at least {least} vertices, got {sizes.min()}.")
    found = []
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        try:
            numbers = np.array([entries[i] for i in chosen]).astype(np.int64)
        except ValueError:
            raise ValueError("faces and lines must consist of numbers of vertices.") from None
        before = np.searchsorted(starts, [matches[i].start() for i in chosen])[:, None]
        indices = np.where(numbers < 0, numbers + before, numbers - 1)
        bad = numbers[(numbers == 0) | (indices < 0) | (indices >= len(starts))]
        if len(bad):
            raise ValueError(f"faces and lines must name one of the {len(starts)} vertices, counted from 1, got {bad[0]}.")
        found.append(indices)
    return found
