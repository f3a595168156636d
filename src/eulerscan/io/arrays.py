"""NumPy files: NPY and NPZ."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Collection
from typing import IO, Any

import numpy as np
import torch

from .._limits import check_bytes
from ..complexes import Complex
from ..complexes.simplices import NAMES, unique
from .formats import File

_Array = np.ndarray[Any, Any]
_Check = Callable[[str, np.dtype[Any], tuple[int, ...]], None]  # of the name, dtype and shape of an array
_ROWS = {name: rows for rows, name in NAMES.items()}
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_arrays(file: File, *, dtype: torch.dtype | None = None) -> Complex:
    """One array of points ``[V, dim]``, or NPZ with ``points`` and optional ``edges``, ``triangles``, ``tetrahedra``."""
    content = io.BytesIO(file.content)
    if file.format == "npy":
        return point_cloud(_load_array(content, len(file.content), "points", _check_points), dtype)
    arrays = load_arrays(content, _check_names, _check_member)
    if len(arrays) == 1:
        return point_cloud(next(iter(arrays.values())), dtype)
    simplices = [torch.from_numpy(arrays[name].astype(np.int64)) for name in _ROWS if name in arrays]
    points = point_cloud(arrays["points"], dtype).points
    return Complex(points, [unique(columns) for columns in simplices if columns.numel()]).closure()


def load_arrays(content: IO[bytes], check_names: Callable[[Collection[str]], None], check: _Check) -> dict[str, _Array]:
    """The arrays of an NPZ file by name. Names, dtypes and shapes are checked before anything is unpacked.

    Args:
        content: The file.
        check_names: Raises unless a file may hold arrays of these names.
        check: Raises unless an array may have this dtype and shape.
    """
    with zipfile.ZipFile(content) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if any(info.comment for info in archive.infolist()):  # numpy writes none; a wrong length takes the next array for one
            raise ValueError("file is truncated or corrupted: its directory is invalid.")
        check_names(members.keys())
        found = {}
        for name, info in members.items():
            with archive.open(info) as member:  # unpacks no more than the size that the archive claims
                found[name] = _load_array(member, info.file_size, name, check)
        return found


def _load_array(content: IO[bytes], size: int, name: str, check: _Check) -> _Array:
    """An array of so many bytes, with its header. Pickles are never loaded, since they can run any code."""
    try:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(content)](content)
    except Exception as error:  # the header is a literal of Python, whose parser raises errors of many types
        raise ValueError(f"file is truncated or corrupted: the header of {name} is invalid ({type(error).__name__}).") from None
    if dtype.hasobject:
        raise ValueError("file holds pickled Python objects, which are never loaded. Store numeric arrays.")
    if min(shape, default=0) < 0 or content.tell() + math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"file is truncated or corrupted: {name} has shape {list(shape)} and {dtype}, more than it holds.")
    check(name, dtype, shape)
    check_bytes(math.prod(shape) * (dtype.itemsize + 16), f"{name} of shape {list(shape)}")  # and twice in 64 bits
    content.seek(0)
    array: _Array = np.lib.format.read_array(content, allow_pickle=False)
    return array


def point_cloud(array: _Array, dtype: torch.dtype | None) -> Complex:
    """A point cloud from an array ``[V, dim]`` of numbers."""
    _check_points("points", array.dtype, array.shape)
    return Complex(torch.from_numpy(array.astype(np.float64)).to(dtype or torch.get_default_dtype()))


def _check_names(names: Collection[str]) -> None:
    if len(names) == 1 and not set(names) & set(_ROWS):
        return
    # An array with another name might hold simplices, so it is not ignored.
    if "points" not in names or set(names) - {"points", *_ROWS}:
        found = ", ".join(sorted(names)[:10]) or "nothing"
        raise ValueError(f"file must hold an array points, and optionally {', '.join(_ROWS)}, got {found}.")


def _check_member(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if name not in _ROWS:
        return _check_points(name, dtype, shape)
    if dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got {dtype}.")
    if len(shape) != 2 or shape[0] != _ROWS[name]:
        hint = " Is it transposed?" if len(shape) == 2 and shape[1] == _ROWS[name] else ""
        raise ValueError(f"{name} must have shape [{_ROWS[name]}, count], got {list(shape)}.{hint}")
    return None


def _check_points(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} must be numbers, got an array of {dtype}.")
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"{name} must have shape [V, dim], got {list(shape)}.")
    if not shape[0]:
        raise ValueError("file holds no points.")
