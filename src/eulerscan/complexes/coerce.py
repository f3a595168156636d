"""What may be passed wherever a shape is wanted."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from .._validation import check_points
from .complex import Complex, collate

Shape: TypeAlias = "Complex | Tensor | np.ndarray[Any, Any] | Sequence[Any] | Any"

# The one place where the core reaches outward. It does so by name: the converter of a library is loaded when an object of
# that library comes, and whoever made the object has paid for importing the library already.
_CONVERTERS = {
    "torch_geometric": ("pyg", "from_pyg"),
    "trimesh": ("trimesh", "from_trimesh"),
    "networkx": ("networkx", "from_networkx"),
    "gudhi": ("gudhi", "from_simplex_tree"),
    "PIL": ("images", "from_image"),
}


def as_complex(shape: Shape) -> Complex:
    """Make a :class:`Complex` of whatever describes a shape.

    Args:
        shape: A tensor or numpy array of points ``[V, dim]``, or of several clouds of equal size ``[B, V, dim]``; a
            :class:`Complex`, which is returned as it is; an object of another library; or a list of any of these.
            Understood are torch_geometric ``Data`` and ``Batch`` with ``pos`` (or ``x``) and, where present, ``edge_index``,
            ``face`` and ``tetra_index``; meshes, clouds, paths and scenes of trimesh; networkx graphs whose nodes have
            ``pos``; and images of Pillow. Of all of them every simplex counts once, in whichever directions it
            is stored, self-loops are left out, faces bring their edges, and attributes such as ``edge_weight`` are not
            looked at. :mod:`eulerscan.convert` has the options.

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
    hint = " Is it the name of a file? eulerscan.read(path) reads one." if isinstance(shape, str) else ""
    raise TypeError(
        "shape must be a Complex, a tensor of points, a torch_geometric Data or Batch, an object of trimesh, networkx or "
        f"Pillow, or a list of these, got {type(shape).__name__}.{hint}"
    )


def as_tensor(array: Any, name: str) -> Tensor:
    """A numpy array as a tensor: the same memory where torch can use it, or else a copy. Tensors stay as they are."""
    if isinstance(array, Tensor):
        return array
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got an array of {array.dtype}.")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _converter(shape: Any) -> tuple[str, str] | None:
    """Where the converter for an object is, by the libraries that its class and those it derives from come from."""
    for base in type(shape).__mro__:
        converter = _CONVERTERS.get(base.__module__.partition(".")[0])
        if converter is not None:
            return converter
    looks_like_pyg = hasattr(shape, "pos") and hasattr(shape, "edge_index")
    return _CONVERTERS["torch_geometric"] if looks_like_pyg else None


def _from_list(shapes: Sequence[Any]) -> Complex:
    if not shapes:
        raise ValueError("shape is an empty list: it has no dimension of space.")
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
    if not torch.compiler.is_compiling():  # a traced program cannot ask for values
        check_points(points)
    offsets = torch.arange(num_complexes + 1, device=points.device)[None] * size
    return Complex._make(points, offsets, (), torch.empty(0, dtype=torch.int32, device=points.device), None)
