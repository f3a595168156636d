"""File formats: extensions, signatures, and detection."""

from __future__ import annotations

import io
import os
import re
import stat
from typing import NamedTuple

from .._limits import check_bytes, max_bytes
from .errors import ReadError, describe_error

EXTENSIONS = {
    **{f".{name}": name for name in ("obj", "ply", "off", "stl", "glb", "gltf", "npy", "npz", "xyz", "csv", "graphml", "gml")},
    **{".tps": "tps", ".tsv": "csv", ".txt": "csv"},
    **{".png": "png", ".tif": "tiff", ".tiff": "tiff", ".jpg": "jpeg", ".jpeg": "jpeg", ".bmp": "bmp"},
    **{".gif": "gif", ".webp": "webp"},
}
IMAGES = ("png", "tiff", "jpeg", "bmp", "gif", "webp")
IMAGE_EXTENSIONS = tuple(extension for extension, format in EXTENSIONS.items() if format in IMAGES)
SPECIMEN_EXTENSIONS = (".tps", ".csv", ".tsv", ".txt")
"""The extensions of files that may hold several specimens (:mod:`~eulerscan.io.landmarks`)."""
_MESHES = ("ply", "off", "stl", "glb")
READABLE: tuple[str, ...] = tuple(sorted(EXTENSIONS))
"""The file extensions that :func:`read` supports."""

_SMALL = 2**16  # bytes, which are read without asking for the size of the file: that would take a fifth of the time
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
# A file without the signature is not in the format, whatever its extension.
_SIGNATURES = {
    "ply": (b"ply\n", b"ply\r"),
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpeg": (b"\xff\xd8\xff",),
    "tiff": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    "bmp": (b"BM",),
    "gif": (b"GIF87a", b"GIF89a"),
    "webp": (b"RIFF",),
    "npy": (b"\x93NUMPY",),
    "npz": (b"PK\x03\x04", b"PK\x05\x06"),
    "glb": (b"glTF",),
}
# Outputs of our own commands: figures, transforms, predictions, evaluations. Left in a folder, they are not among its shapes.
_OUTPUTS = re.compile(
    rb"\x89PNG.{,99}tEXtSoftware\0eulerscan|name,group,(s0_)?d0_t0\b|file,class,probability,"
    rb"|shape,true class,class,|position,name,group\r?\n",
    re.DOTALL,
)


class File(NamedTuple):
    """A file in memory, and its format, one of the values of ``EXTENSIONS``.

    Of a specimen only the path, and the format "specimen": its file is parsed once for all specimens.
    """

    path: str | os.PathLike[str]
    format: str
    content: bytes


def load(path: str | os.PathLike[str]) -> File:
    """Read a file and detect its format: from the content, else from the extension."""
    try:
        with open(path, "rb", buffering=0) as file:
            content = _read(file)
        format = detect(content)
        if format not in _MESHES:
            format = _check(content, format, os.path.splitext(path)[1].lower())
    except OSError:
        if is_specimen(path):
            return File(path, "specimen", b"")
        raise
    except (ValueError, MemoryError) as error:
        raise ReadError(path, describe_error(error)) from None
    return File(path, format, content)


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that another one refers to. A pipe might never end, so that only regular files are opened."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{os.path.basename(path)} is not a regular file.")
    with open(path, "rb", buffering=0) as file:
        return _read(file)


def _read(file: io.FileIO) -> bytes:
    """The content of a file, or of a pipe that the user names, within the limit of memory."""
    content = file.read(_SMALL)
    if not (chunk := file.read(_SMALL)):
        return content
    state, limit = os.fstat(file.fileno()), max_bytes()
    if stat.S_ISREG(state.st_mode):
        check_bytes(state.st_size, "file")
        file.seek(0)
        return file.readall()
    pieces, size = [content], len(content)
    while chunk:
        pieces.append(chunk)
        size += len(chunk)
        if size > limit:
            check_bytes(size, "file")
        chunk = file.read(2**20)
    return b"".join(pieces)


def is_specimen(path: str | os.PathLike[str]) -> bool:
    """Whether a path is below a file that may hold specimens."""
    parent = os.path.dirname(path)
    return os.path.splitext(parent)[1].lower() in SPECIMEN_EXTENSIONS and os.path.isfile(parent)


def _check(content: bytes, format: str | None, extension: str) -> str:
    """The format of a file, detected or given by the extension. Raises if the file is known not to be a shape."""
    if not content:
        raise ValueError("file is empty.")
    if _OUTPUTS.match(content):
        raise ValueError("file is an output of eulerscan, not a shape.")
    if extension in _WORKBOOKS:
        raise ValueError("spreadsheet workbooks are not supported. Save the sheet as CSV.")
    format = format or EXTENSIONS.get(extension)
    if format is None:
        raise ValueError(f"unknown format. Supported extensions are {' '.join(READABLE)}.")
    if format in _SIGNATURES and not content.startswith(_SIGNATURES[format]):
        raise ValueError(f"not a {format.upper()} file, despite its extension.")
    return format


def detect(content: bytes) -> str | None:
    """The format of a file, if its content is unmistakable."""
    size = len(content)
    # Two letters are too short a signature, but a BMP file also stores its size; RIFF is a container of other formats too.
    doubts = {"bmp": int.from_bytes(content[2:6], "little") != size, "webp": content[8:12] != b"WEBP"}
    for format, signatures in _SIGNATURES.items():
        if content.startswith(signatures) and not doubts.get(format, False):
            return format
    if size >= 84 and size == 84 + 50 * int.from_bytes(content[80:84], "little"):
        return "stl"
    head = content[:4096]
    start = head.lstrip()
    if start.startswith((b"OFF", b"COFF")):
        return "off"
    if start.startswith(b"solid") and b"facet" in head:
        return "stl"
    return "graphml" if start.startswith(b"<") and b"<graphml" in head else None
