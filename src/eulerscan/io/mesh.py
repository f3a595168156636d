"""Mesh files, through trimesh. What trimesh reads without a complaint, but should not, is caught here."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import torch

from .._imports import require
from ..complexes import Complex
from ..convert.trimesh import from_trimesh


def read_mesh(path: Path, *, kind: str, merge: bool = True, dtype: torch.dtype | None = None) -> Complex:
    """A mesh, cloud, path or scene. ``kind`` is what trimesh calls the format: the ending without its dot."""
    trimesh = require("trimesh", extra="mesh")
    if kind in CHECKS:
        CHECKS[kind](path.read_bytes())
    try:
        with warnings.catch_warnings():
            # numpy ends a list of numbers where it meets something else, and only warns.
            warnings.filterwarnings("error", message="string or file could not be read")
            # Unprocessed: trimesh would silently drop vertices that are not finite.
            scene = trimesh.load_scene(str(path), file_type=kind, process=False)
            geometries = scene.dump()
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # foreign readers raise what they like
        raise ValueError(f"it is no sound {kind.upper()} file: truncated, damaged, or of another kind.") from error
    if not any(len(item.vertices) for item in geometries):
        raise ValueError(f"it holds no vertices: empty, truncated, or no {kind.upper()} file.")
    return from_trimesh(geometries, merge=merge, dtype=dtype)


def _check_off(content: bytes) -> None:
    """Fewer lines than the counts at the top announce."""
    text = re.sub(rb"#[^\n]*", b"", content)
    match = re.match(rb"\s*(?:ST)?(?:C|N)*OFF(?:\s+BINARY)?\s*(\d+)\s+(\d+)", text)
    if match is None:
        raise ValueError("it is no OFF file: it must begin with OFF and the numbers of vertices and faces.")
    vertices, triangles = int(match[1]), int(match[2])
    rows = [line for line in text[match.end() :].splitlines()[1:] if line.strip()]
    if len(rows) < vertices + triangles:
        raise ValueError(f"it is truncated: {vertices} vertices and {triangles} faces need as many lines, got {len(rows)}.")
    if triangles:
        _check_face(rows[vertices + triangles - 1])


def _check_ply(content: bytes) -> None:
    """Fewer lines than the header of a text file announces. Of a binary one trimesh checks the length."""
    header, end, body = content.partition(b"end_header")
    if not end:
        raise ValueError("it is no PLY file, or truncated: its header has no end.")
    if re.search(rb"element\s+face\s+[1-9]", header) and re.search(rb"element\s+edge\s+[1-9]", header):
        raise ValueError("it holds faces and edges, of which only the faces would be read. Write them to an NPZ file.")
    if b"format ascii" in header:
        wanted = sum(int(number) for number in re.findall(rb"^element\s+\S+\s+(\d+)", header, re.MULTILINE))
        rows = [line for line in body.splitlines()[1:] if line.strip()]
        if len(rows) < wanted:
            raise ValueError(f"it is truncated: its header announces {wanted} lines, got {len(rows)}.")
        if rows and re.search(rb"element\s+face\s+[1-9]\d*\s+property\s+list[^\n]*\s*$", header):
            _check_face(rows[wanted - 1])


def _check_face(row: bytes) -> None:
    """The last face, which says how many vertices it has, in a file that may end too early."""
    count, *vertices = row.split()
    if count.isdigit() and len(vertices) < int(count):
        raise ValueError(f"it is truncated: its last face has {int(count)} vertices, got {len(vertices)}.")


CHECKS = {"off": _check_off, "ply": _check_ply}
