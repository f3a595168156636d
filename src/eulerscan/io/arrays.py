"""NumPy files: NPY and NPZ."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import torch

from ..complexes import Complex
from ..complexes.simplices import NAMES, unique
from .formats import File

_Array = np.ndarray[Any, Any]
_ROWS = {name: rows for rows, name in NAMES.items()}


def read_arrays(file: File, *, dtype: torch.dtype | None = None) -> Complex:
    """One array of points ``[V, dim]``, or NPZ with ``points`` and optional ``edges``, ``triangles``, ``tetrahedra``."""
    arrays = _load(file.content)
    if len(arrays) == 1 and not set(arrays) & set(_ROWS):
        return point_cloud(next(iter(arrays.values())), dtype)
    # An array with another name might hold simplices, so it is not ignored.
    if "points" not in arrays or set(arrays) - {"points", *_ROWS}:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise ValueError(f"file must hold an array points, and optionally {', '.join(_ROWS)}, got {found}.")
    simplices = [_columns(name, arrays[name], rows) for name, rows in _ROWS.items() if name in arrays]
    points = point_cloud(arrays["points"], dtype).points
    return Complex(points, [unique(columns) for columns in simplices if columns.numel()]).closure()


def _load(content: bytes) -> dict[str, _Array]:
    """The arrays of a file by name. Pickles are never loaded, since they can run any code."""
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        return {"points": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError("file holds pickled Python objects, which are never loaded. Store numeric arrays.") from None
        raise ValueError("file is truncated or corrupted.") from None
    except (EOFError, OSError, KeyError, zipfile.BadZipFile, SyntaxError, NotImplementedError, UnicodeDecodeError):
        raise ValueError("file is truncated or corrupted.") from None


def point_cloud(array: _Array, dtype: torch.dtype | None) -> Complex:
    """A point cloud from an array ``[V, dim]`` of numbers."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"points must be numbers, got an array of {array.dtype}.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"points must have shape [V, dim], got {list(array.shape)}.")
    if not len(array):
        raise ValueError("file holds no points.")
    return Complex(torch.from_numpy(array.astype(np.float64)).to(dtype or torch.get_default_dtype()))


def _columns(name: str, array: _Array, rows: int) -> torch.Tensor:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got {array.dtype}.")
    if array.ndim != 2 or len(array) != rows:
        hint = " Is it transposed?" if array.ndim == 2 and array.shape[1] == rows else ""
        raise ValueError(f"{name} must have shape [{rows}, count], got {list(array.shape)}.{hint}")
    return torch.from_numpy(array.astype(np.int64))
