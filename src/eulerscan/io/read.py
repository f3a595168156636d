"""Reading a shape from a file of any format."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from .._validation import check_bool
from ..complexes import Complex
from ..convert.outlines import from_outline
from .arrays import read_arrays
from .errors import ReadError, describe_error
from .formats import IMAGES, File, load
from .gltf import read_gltf
from .graphs import read_graph
from .images import IMAGE_OPTIONS, read_image
from .landmarks import read_landmarks, read_specimen
from .mesh import read_mesh
from .tables import read_table


def _with_outlines(reader: Callable[..., Complex]) -> Callable[..., Complex]:
    """A reader of points with the option ``outline``: whether they are points along a closed curve."""

    def read_points(file: File, *, outline: bool = False, **options: Any) -> Complex:
        check_bool(outline, "outline")
        complex = reader(file, **options)
        return from_outline(complex) if outline and not complex.simplices else complex

    return read_points


# The reader of each format, and its options besides dtype.
READERS: dict[str, tuple[Callable[..., Complex], tuple[str, ...]]] = {
    **dict.fromkeys(("obj", "ply", "off", "stl"), (read_mesh, ("merge",))),
    **dict.fromkeys(("glb", "gltf"), (read_gltf, ("merge",))),
    **dict.fromkeys(("npy", "npz"), (_with_outlines(read_arrays), ("outline",))),
    "xyz": (read_table, ()),
    **dict.fromkeys(("csv", "tps"), (_with_outlines(read_landmarks), ("outline",))),
    "specimen": (_with_outlines(read_specimen), ("outline",)),
    **dict.fromkeys(("graphml", "gml"), (read_graph, ("positions",))),
    **dict.fromkeys(IMAGES, (read_image, IMAGE_OPTIONS)),
}


def read(path: str | os.PathLike[str], **options: Any) -> Complex:
    """Read a mesh, a point cloud, a graph, an image, or landmarks from a file.

    The format is detected from the content, else from the extension, one of :data:`~eulerscan.io.READABLE`:

    - Meshes, and the point clouds and lines that these formats may hold: OBJ, PLY, OFF, STL, GLB, glTF. Option ``merge`` of
      :func:`from_trimesh`.
    - Tables with one point per line: CSV, TSV, TXT, XYZ. If the first line names columns x and y, and optionally z, only these
      are read; else all columns after leading text columns are coordinates (in XYZ, including molecules, the first three).
      Decimal commas are allowed between semicolons or tabs.
    - NumPy arrays: NPY with points ``[V, dim]``; NPZ with ``points`` and optionally ``edges [2, n]``, ``triangles [3, n]`` and
      ``tetrahedra [4, n]``.
    - Landmarks of several specimens, as a batch with one complex each: TPS, and CSV, TSV and TXT with one specimen per line
      whose first line names x1, y1, x2, y2, ... ``path/name`` reads a single specimen, and
      :func:`~eulerscan.io.list_shapes` lists them.
    - Outlines, in all of these files of points but XYZ, with option ``outline=True``: consecutive points are joined, and the
      last to the first (:func:`from_outline`).
    - Graphs with node positions: GraphML, GML. Option ``positions`` of :func:`from_networkx`.
    - Images: PNG, TIFF, JPEG, BMP, GIF, WebP, of 8 or 16 bits. Options of :func:`from_image`. The pages of a TIFF file are a
      volume; of an animation the first frame is read. Transparent pixels are background.

    Outputs of our own commands, such as figures and tables of transforms, are rejected.

    Args:
        path: The file, or a specimen in it.
        options: Options of the format, and ``dtype`` of the coordinates. Default: ``torch.get_default_dtype()``.

    Raises:
        ReadError: The file is damaged, not a shape, or needs more memory than ``EULERSCAN_MAX_BYTES``. It is a ``ValueError``
            whose message is ``<path>: <reason>``.
        TypeError: The format has no such option, or a switch is not a bool.
        OSError: The file cannot be opened.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> file = Path(tempfile.mkdtemp()) / "points.csv"
        >>> _ = file.write_text("x,y\\n0,0\\n1,0\\n0,1\\n", encoding="utf-8")
        >>> read(file)
        Complex(num_complexes=1, dim=2, points=3)
    """
    return parse(load(path), **options)


def parse(file: File, **options: Any) -> Complex:
    """The shape in a file, as :func:`read` describes."""
    reader, names = READERS[file.format]
    known = sorted((*names, "dtype"))
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"options of {file.format.upper()} files are {', '.join(known)}, got {', '.join(unknown)}.")
    dtype = options.get("dtype")
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a torch.dtype of floating-point numbers, got {dtype!r}.")
    try:
        complex = reader(file, **options)
        if not len(complex.points):
            raise ValueError("file has no triangle with three distinct vertices.")
    except ImportError:
        raise
    except Exception as error:  # parsers raise errors of any type for damaged files
        if isinstance(error, OSError) and error.errno is not None:  # of the system
            raise
        if isinstance(error, TypeError) and options.keys() - {"dtype"}:  # an option of the wrong type
            raise
        raise ReadError(file.path, describe_error(error)) from None
    return complex
