"""Files for the tests of readers."""

from __future__ import annotations

import io

import numpy as np
import trimesh
from PIL import Image

SPHERE = trimesh.creation.icosphere(subdivisions=2)
MESHES = {
    "sphere": SPHERE,
    "torus": trimesh.creation.torus(1.0, 0.3),
    "open": trimesh.Trimesh(SPHERE.vertices, SPHERE.faces[:-1]),
}
FORMATS = ["obj", "ply", "ply ascii", "off", "stl", "stl ascii", "glb", "gltf"]
RING = np.zeros((9, 8), dtype=np.uint8)
RING[2:7, 2:7] = 255
RING[4, 4] = 0
PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
"""


def save(mesh, folder, format):
    """A mesh in a file of this format."""
    extension, *ascii = format.split()
    path = folder / f"mesh.{extension}"
    if extension == "gltf":
        for name, content in trimesh.exchange.gltf.export_gltf(trimesh.Scene(mesh)).items():
            (folder / name).write_bytes(content)
        return folder / "model.gltf"
    if ascii:
        content = mesh.export(file_type="stl_ascii") if extension == "stl" else mesh.export(file_type="ply", encoding="ascii")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        mesh.export(path)
    return path


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def picture(format, array=RING):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, format=format, **{"lossless": True} if format == "webp" else {})
    return buffer.getvalue()


def arrays(**named):
    buffer = io.BytesIO()
    np.savez(buffer, **named)
    return buffer.getvalue()


def array(values):
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()
