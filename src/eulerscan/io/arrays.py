"""Points from files of numpy."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._validation import check_points
from ..complexes import Complex
from ..complexes.simplices import NAMES, unique

_Array = np.ndarray[Any, Any]
_LEVELS = {name: rows for rows, name in NAMES.items()}


def read_arrays(path: Path, *, kind: str, dtype: torch.dtype | None = None) -> Complex:
    """A file of numpy with one array of points ``[V, dim]``.

    Or NPZ with ``points``, and perhaps ``edges [2, n]``, ``triangles [3, n]``, ``tetrahedra [4, n]``.
    """
    arrays = _load(path)
    if len(arrays) == 1 and not set(arrays) & set(_LEVELS):
        return cloud(next(iter(arrays.values())), dtype)
    # Not to lose what joins the points in an array of another name, every name must be known.
    if "points" not in arrays or set(arrays) - {"points", *_LEVELS}:
        known = ", ".join(_LEVELS)
        raise ValueError(f"it must hold an array points and perhaps {known}, got {', '.join(sorted(arrays)) or 'nothing'}.")
    simplices = [_columns(name, arrays[name], rows) for name, rows in _LEVELS.items() if name in arrays]
    points = cloud(arrays["points"], dtype).points
    return Complex(points, [unique(columns) for columns in simplices if columns.numel()]).closure()


def _load(path: Path) -> dict[str, _Array]:
    """The arrays of a file by name. Never a pickle, which could run anything."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return {"points": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise ValueError(
                "it holds Python objects, which are never loaded from a file, where numbers were expected."
            ) from None
        raise ValueError("it is truncated or damaged.") from None
    except (EOFError, OSError, KeyError, zipfile.BadZipFile, SyntaxError, NotImplementedError, UnicodeDecodeError):
        raise ValueError("it is truncated or damaged.") from None


def cloud(array: _Array, dtype: torch.dtype | None) -> Complex:
    """The points of an array ``[V, dim]``, if that is what it is."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"points must be numbers, got an array of {array.dtype}.")
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"points must have shape [V, dim], got {list(array.shape)}.")
    if not len(array):
        raise ValueError("it holds no points.")
    points = torch.from_numpy(array.astype(np.float64))
    check_points(points)
    points = points.to(dtype or torch.get_default_dtype())
    return Complex(points)


def _columns(name: str, array: _Array, rows: int) -> torch.Tensor:
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got {array.dtype}.")
    if array.ndim != 2 or len(array) != rows:
        hint = " Is it transposed?" if array.ndim == 2 and array.shape[1] == rows else ""
        raise ValueError(f"{name} must have shape [{rows}, count], got {list(array.shape)}.{hint}")
    return torch.from_numpy(array.astype(np.int64))
