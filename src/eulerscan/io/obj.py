"""OBJ files, with a parser of our own.

trimesh drops lines, takes vertex number 0 for the last vertex, and resolves negative numbers from the end of the file, not from
the current line.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

import numpy as np

from ..convert.geometry import Geometry
from .polygons import geometry_of, numbers

_Array = np.ndarray[Any, Any]
_Rows = tuple[list[int], list[bytes]]  # numbers of lines, and what follows their keyword


def parse_obj(content: bytes) -> Geometry:
    """The vertices, edges and triangles of an OBJ file."""
    content = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in content:
        raise ValueError("file is binary, but OBJ is a text format.")
    if b"#" in content:
        content = re.sub(rb"#[^\n]*", b"", content)
    lines = content.replace(b"\\\n", b" ").split(b"\n")  # a backslash continues a line
    found: dict[bytes, _Rows] = {keyword: ([], []) for keyword in (b"v", b"f", b"l")}
    for number, line in enumerate(lines):
        words = line.split(None, 1)
        if words and words[0] in found:
            places, texts = found[words[0]]
            places.append(number)
            texts.append(words[1] if len(words) == 2 else b"")
    starts, vertices = _vertices(found[b"v"])
    polylines = _elements(found[b"l"], starts, "line", 2)
    edges = [np.stack([line[:, :-1], line[:, 1:]], axis=2).reshape(-1, 2) for line in polylines]
    polygons = [*_elements(found[b"f"], starts, "face", 3), *edges]
    sizes = [np.full(len(p), p.shape[1]) for p in polygons]
    none = np.empty(0, np.int64)
    return geometry_of(vertices, np.concatenate([none, *sizes]), np.concatenate([none, *(p.reshape(-1) for p in polygons)]))


def _vertices(rows: _Rows) -> tuple[_Array, _Array]:
    """Lines of the vertices, and coordinates ``[V, 3]``. A weight or a color may follow the coordinates."""
    lines, texts = rows
    if not texts:
        raise ValueError("file holds no vertices: truncated, or not an OBJ file.")
    words = [word for text in texts for word in text.split(None, 3)[:3]]
    try:
        coordinates = numbers(float, words)
    except ValueError:
        coordinates = np.empty(0)
    if len(coordinates) != 3 * len(texts):
        raise ValueError("every vertex must have three coordinates.")
    return np.array(lines), coordinates.reshape(-1, 3)


def _elements(rows: _Rows, starts: _Array, name: str, least: int) -> list[_Array]:
    """Faces or lines, grouped by number of vertices: arrays ``[n, number of vertices]`` of indices from 0."""
    lines, texts = np.array(rows[0], np.int64), b"\n".join(rows[1])
    if b"/" in texts:  # texture and normal indices follow a slash
        texts = re.sub(rb"/\S*", b"", texts)
    entries = [text.split() for text in texts.split(b"\n")] if len(lines) else []
    sizes = np.array([len(entry) for entry in entries])
    if len(sizes) and sizes.min() < least:
        raise ValueError(f"every {name} must have at least {least} vertices, got {sizes.min()}.")
    found = []
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        try:
            values = numbers(int, [word for i in chosen.tolist() for word in entries[i]]).reshape(len(chosen), -1)
        except (ValueError, OverflowError):
            raise ValueError("faces and lines must consist of vertex numbers.") from None
        before = np.searchsorted(starts, lines[chosen])[:, None]
        indices = np.where(values < 0, values + before, values - 1)
        bad = values[(values == 0) | (indices < 0) | (indices >= len(starts))]
        if len(bad):
            raise ValueError(f"faces and lines must refer to vertices 1 to {len(starts)}, got {bad[0]}.")
        found.append(indices)
    return found
