"""OFF files, with a parser of our own: trimesh drops faces of two vertices, and refuses some mixtures of polygons."""

from __future__ import annotations

import re

from ..convert.geometry import Geometry
from .polygons import check_sizes, geometry_of, numbers

_HEADER = re.compile(rb"\s*(?:ST)?(?:C|N)*OFF\s*(\d+)\s+(\d+)")


def parse_off(content: bytes) -> Geometry:
    """The vertices, edges and triangles of an OFF file in text."""
    text = re.sub(rb"#[^\r\n]*", b"", content) if b"#" in content else content
    match = _HEADER.match(text)
    if match is None:
        raise ValueError("not an OFF file in text: it must begin with OFF and the numbers of vertices and faces.")
    num_vertices, num_faces = int(match[1]), int(match[2])
    rows = [line for line in text[match.end() :].splitlines()[1:] if line.strip()]
    if len(rows) < num_vertices + num_faces:
        raise ValueError(
            f"file is truncated: {num_vertices} vertices and {num_faces} faces need as many lines, got {len(rows)}."
        )
    if not num_vertices:
        raise ValueError("file holds no vertices.")
    vertices = [row.split(None, 3)[:3] for row in rows[:num_vertices]]  # a normal or a color may follow
    faces = [row.split() for row in rows[num_vertices : num_vertices + num_faces]]
    if min(map(len, vertices)) < 3:
        raise ValueError("every vertex must have three coordinates.")
    try:
        coordinates = numbers(float, (word for row in vertices for word in row)).reshape(-1, 3)
        sizes = numbers(int, (face[0] for face in faces))
        check_sizes(sizes.tolist(), [len(face) - 1 for face in faces])
        corners = numbers(int, (word for face, size in zip(faces, sizes.tolist(), strict=True) for word in face[1 : 1 + size]))
    except (OverflowError, ValueError) as error:
        raise ValueError(f"not a valid OFF file: {error}") from None
    return geometry_of(coordinates, sizes, corners)
