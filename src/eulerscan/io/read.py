"""One file of any kind as a complex."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._imports import require
from .._validation import check_bool
from ..complexes import Complex
from ..convert.images import from_image, grey_pages, light_corners, stacked
from .arrays import read_arrays
from .graphs import read_graph
from .landmarks import file_of, read_several
from .mesh import read_mesh
from .obj import read_obj
from .tables import read_table

ENDINGS = {
    **{f".{kind}": kind for kind in ("obj", "ply", "off", "stl", "glb", "gltf", "npy", "npz", "xyz", "csv", "graphml", "gml")},
    **{".tps": "tps", ".tsv": "csv", ".txt": "csv"},
    **{".png": "png", ".tif": "tiff", ".tiff": "tiff", ".jpg": "jpeg", ".jpeg": "jpeg", ".bmp": "bmp"},
}
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
_IMAGES = ("png", "tiff", "jpeg", "bmp")
# Formats whose files begin in a way of their own: without it, it is another kind of file whatever its name says.
_BEGINNINGS = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpeg": (b"\xff\xd8\xff",),
    "tiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    "bmp": (b"BM",),
    "npy": (b"\x93NUMPY",),
    "npz": (b"PK\x03\x04", b"PK\x05\x06"),
    "glb": (b"glTF",),
    "ply": (b"ply\n", b"ply\r"),
}
# What our own commands write: pictures, transforms, predictions, verdicts. Forgotten in a folder, they are none of its shapes.
_OURS = re.compile(
    rb"\x89PNG.{,99}tEXtSoftware\0eulerscan|name,(s0_)?d0_t0\b|file,class,probability,|shape,true class,class,", re.DOTALL
)

READABLE: tuple[str, ...] = tuple(sorted(ENDINGS))
"""The endings that :func:`read` knows."""
IMAGES: tuple[str, ...] = tuple(ending for ending in READABLE if ENDINGS[ending] in _IMAGES)


def read(path: str | os.PathLike[str], **options: Any) -> Complex:
    """Read a mesh, a cloud, a graph or an image from a file, or the landmarks of several specimens.

    What a file is, its content decides, where that is unmistakable, and else its ending, one of :data:`READABLE`:

    - Meshes, and the clouds and lines that such files may hold: OBJ, PLY, OFF, STL, GLB, glTF. Option ``merge`` of
      :func:`from_trimesh`.
    - Points: a point a line in CSV, TSV and TXT (all columns after those of text) and XYZ (three columns, what follows is left
      out; molecules too), where a first line that names x and y, and perhaps z, among others chooses these columns, and where
      decimals may have a comma if semicolons or tabs separate the columns; an array ``[V, dim]`` in NPY;
      ``points``, and perhaps ``edges [2, n]``, ``triangles [3, n]`` and ``tetrahedra [4, n]``, in NPZ.
    - Landmarks of many specimens, one complex each: TPS, and CSV, TSV and TXT with a specimen a line, whose first line names
      x1, y1, x2, y2 and so on. ``path/name`` is a single one of them, by its name, and
      :func:`~eulerscan.io.shapes_in` lists them.
    - Graphs whose nodes have coordinates: GraphML, GML. Option ``positions`` of :func:`from_networkx`.
    - Images: PNG, TIFF, JPEG, BMP. The options of :func:`from_image`.

    Results of our own commands, such as pictures, or tables of transforms, are no shapes, and refused.

    Args:
        path: The file, or a specimen in it.
        options: Those of the kind of file, and ``dtype`` of the coordinates, torch's default where it is not given.

    Raises:
        ValueError: What is wrong with the file, by name.
        TypeError: An option that files of this kind do not have, or one that is no bool where it is on or off.
        FileNotFoundError, IsADirectoryError, PermissionError: As for any file.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "points.csv"
        >>> _ = file.write_text("x,y\\n0,0\\n1,0\\n0,1\\n", encoding="utf-8")
        >>> read(file)
        Complex(num_complexes=1, dim=2, points=3)
    """
    path = Path(path)
    kind = _kind(file_of(path))
    reader = _reader(kind)
    known = {*_OPTIONS[reader], "dtype"}
    if strange := sorted(set(options) - known):
        raise TypeError(f"options of {kind.upper()} files are {', '.join(sorted(known))}, got {', '.join(strange)}.")
    try:
        complex = reader(path, kind=kind, **options)
        if not len(complex.points):
            raise ValueError("it holds no triangle with three different vertices, nor anything else.")
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path}: {error}") from None
    except (MemoryError, OverflowError) as error:
        raise ValueError(f"{path}: it announces more than there can be ({error}).") from None
    return complex


def is_on_white(path: Path) -> bool:
    """Whether an image is light at all corners, so that its background would be taken for the shape."""
    try:
        return light_corners(_pages(path, _kind(path), invert=False)[0])
    except (ValueError, OSError):  # whoever reads it says so
        return False


def _kind(path: Path) -> str:
    ending = path.suffix.lower()
    if path.is_dir():
        raise IsADirectoryError(f"{path}: it is a folder, where a file is needed.")
    with path.open("rb") as file:
        head, size = file.read(4096), path.stat().st_size
    if not size:
        raise ValueError(f"{path}: it is empty.")
    if _OURS.match(head):
        raise ValueError(f"{path}: it is a result that eulerscan wrote, and no shape.")
    if ending in _WORKBOOKS:
        raise ValueError(f"{path}: workbooks of spreadsheets are not read. Save the table as CSV.")
    kind = recognised(head, size)
    if kind is not None:
        return kind
    if ending not in ENDINGS:
        raise ValueError(f"{path}: neither its content nor its ending tells what it is. Known are {' '.join(READABLE)}.")
    if ENDINGS[ending] in _BEGINNINGS:
        raise ValueError(f"{path}: it is no {ENDINGS[ending].upper()} file, though it is named so.")
    return ENDINGS[ending]


def recognised(head: bytes, size: int) -> str | None:
    """The kind of a file by its first bytes, if there is no mistaking it."""
    for kind, beginnings in _BEGINNINGS.items():
        # Two letters begin other files too; a bitmap says how long it is.
        if head.startswith(beginnings) and (kind != "bmp" or int.from_bytes(head[2:6], "little") == size):
            return kind
    if len(head) >= 84 and size == 84 + 50 * int.from_bytes(head[80:84], "little"):
        return "stl"
    start = head.lstrip()
    if start.startswith((b"OFF", b"COFF")):
        return "off"
    if start.startswith(b"solid") and b"facet" in head:
        return "stl"
    return "graphml" if start.startswith(b"<") and b"<graphml" in head else None


def _reader(kind: str) -> Callable[..., Complex]:
    if kind in _IMAGES:
        return _image
    readers: dict[str, Callable[..., Complex]] = {
        **{"npy": read_arrays, "npz": read_arrays, "csv": read_several, "tps": read_several, "xyz": read_table},
        **{"graphml": read_graph, "gml": read_graph, "obj": read_obj},
    }
    return readers.get(kind, read_mesh)


def _image(path: Path, *, kind: str, invert: bool = False, dtype: torch.dtype | None = None, **options: Any) -> Complex:
    check_bool(invert, "invert")
    complex = from_image(stacked(_pages(path, kind, invert)), invert=invert, **options)
    return complex if dtype is None else complex.to(dtype)


def _pages(path: Path, kind: str, invert: bool) -> list[np.ndarray[Any, Any]]:
    pillow = require("PIL.Image", extra="mesh")
    try:
        with warnings.catch_warnings(), pillow.open(path) as image:
            warnings.filterwarnings("error", message="Corrupt EXIF|Truncated File")
            return grey_pages(image, paper=float(invert))
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # foreign readers raise what they like
        raise ValueError(f"it is no sound {kind.upper()} image: truncated or damaged.") from error


_OPTIONS: dict[Callable[..., Complex], tuple[str, ...]] = {
    _image: ("threshold", "weighted", "pixels", "spacing", "invert"),
    read_arrays: (),
    read_several: (),
    read_table: (),
    read_graph: ("positions",),
    read_mesh: ("merge",),
    read_obj: ("merge",),
}
