"""Coercion: what may be passed as a shape, and how it becomes a :class:`Complex`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from .._validation import as_tensor, check_points
from .complex import Complex, collate
from .packed import Packed

Shape: TypeAlias = "Complex | Tensor | np.ndarray[Any, Any] | Sequence[Any] | Any"

# The one place where the core reaches outward, by name: the converter of a library is loaded with its first object, when the
# library itself is imported already.
_CONVERTERS = {
    "torch_geometric": ("pyg", "from_pyg"),
    "trimesh": ("trimesh", "from_trimesh"),
    "networkx": ("networkx", "from_networkx"),
    "gudhi": ("gudhi", "from_simplex_tree"),
    "PIL": ("images", "from_image"),
}


def as_complex(shape: Shape) -> Complex:
    """Convert a shape to a :class:`Complex`.

    Args:
        shape: A tensor or NumPy array of points ``[V, dim]``, or of clouds of equal size ``[B, V, dim]``; a
            :class:`Complex`, which is returned unchanged; an object of another library; or a list of these.
            Supported are torch_geometric ``Data`` and ``Batch`` with ``pos`` (or ``x``) and optionally ``edge_index``,
            ``face`` and ``tetra_index``; meshes, clouds, paths and scenes of trimesh; networkx graphs whose nodes have
            ``pos``; simplex trees of GUDHI; and Pillow images. Every simplex counts once, in whichever direction it is
            stored. Self-loops are removed, faces bring their edges, and attributes such as ``edge_weight`` are ignored.
            :mod:`eulerscan.convert` has the options.

    Example:
        >>> as_complex(torch.rand(8, 100, 3))
        Complex(num_complexes=8, dim=3, points=800)
    """
    if isinstance(shape, Complex):
        return shape
    if isinstance(shape, Tensor):
        return _from_tensor(shape)
    if isinstance(shape, list | tuple):
        return _from_list(shape)
    if isinstance(shape, np.ndarray):
        return _from_tensor(as_tensor(shape, "shape"))
    converter = _converter(shape)
    if converter is not None:
        module, function = converter
        complex: Complex = getattr(importlib.import_module(f"eulerscan.convert.{module}"), function)(shape)
        return complex
    hint = " To read a file, use eulerscan.read(path)." if isinstance(shape, str) else ""
    raise TypeError(
        "shape must be a Complex, a tensor of points, a torch_geometric Data or Batch, an object of trimesh, networkx or "
        f"Pillow, or a list of these, got {type(shape).__name__}.{hint}"
    )


def _converter(shape: Any) -> tuple[str, str] | None:
    """Module and function that convert an object, by the library of its class or of a base class."""
    for base in type(shape).__mro__:
        converter = _CONVERTERS.get(base.__module__.partition(".")[0])
        if converter is not None:
            return converter
    looks_like_pyg = hasattr(shape, "pos") and hasattr(shape, "edge_index")
    return _CONVERTERS["torch_geometric"] if looks_like_pyg else None


def _from_list(shapes: Sequence[Any]) -> Complex:
    if not shapes:
        raise ValueError("shape must not be empty: an empty list has no dimension.")
    complexes = []
    for i, item in enumerate(shapes):
        try:
            complexes.append(as_complex(item))
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(f"shape[{i}]: {error}") from None
    return collate(complexes)


def _from_tensor(points: Tensor) -> Complex:
    if points.ndim not in (2, 3) or points.shape[-1] == 0:
        raise ValueError(f"shape is a tensor, so it needs shape [V, dim] or [B, V, dim], got {list(points.shape)}.")
    num_complexes, size = (1, len(points)) if points.ndim == 2 else points.shape[:2]
    points = points.reshape(-1, points.shape[-1])
    if not torch.compiler.is_compiling():  # tracing cannot read values, and on a GPU the host would wait for them
        check_points(points, values=points.is_cpu)
    offsets = torch.arange(num_complexes + 1, device=points.device)[None] * size
    empty = torch.empty(0, dtype=torch.int32, device=points.device)
    return Complex.from_packed(Packed(points, offsets, (), empty, None))
