"""What may be passed wherever a shape is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .checks import INTEGERS, check_points
from .complexes import Complex, collate
from .simplices import unique

Shape: TypeAlias = "Complex | Tensor | Sequence[Any] | Any"


def as_complex(shape: Shape) -> Complex:
    """Make a :class:`Complex` of whatever describes a shape.

    Args:
        shape: A tensor of points ``[V, dim]``, or of several clouds of equal size ``[B, V, dim]``; a :class:`Complex`, which
            is returned as it is; a torch_geometric ``Data`` or ``Batch`` with ``pos`` (or ``x``) and, where present,
            ``edge_index`` and ``face``; or a list of any of these. Of a ``Data`` every simplex counts once, in
            whichever directions it is stored, self-loops are left out, faces bring their edges, and attributes such as
            ``edge_weight`` are not looked at.

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
    if _looks_like_pyg(shape):
        return _from_pyg(shape)
    raise TypeError(
        f"shape must be a Complex, a tensor of points, a torch_geometric Data or Batch, or a list of these, "
        f"got {type(shape).__name__}."
    )


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


def _looks_like_pyg(shape: Any) -> bool:
    """By its attributes: importing torch_geometric takes seconds, and who passes its data has done so."""
    return hasattr(shape, "pos") and hasattr(shape, "edge_index")


def _from_pyg(data: Any) -> Complex:
    points = next((p for p in (getattr(data, "pos", None), getattr(data, "x", None)) if p is not None), None)
    if points is None:
        raise ValueError(f"shape is a {type(data).__name__} without pos or x: its vertices have no coordinates.")
    check_points(points)
    simplices = [
        tensor for name, rows in (("edge_index", 2), ("face", 3)) if (tensor := _simplices(data, name, rows)) is not None
    ]
    batch = getattr(data, "batch", None)
    num_complexes = getattr(data, "num_graphs", None) if batch is not None else None
    given = Complex(points, [unique(tensor) for tensor in simplices], batch=batch, num_complexes=num_complexes)
    return given.closure() if 3 in given.rows else given


def _simplices(data: Any, name: str, rows: int) -> Tensor | None:
    tensor = getattr(data, name, None)
    if tensor is None:
        return None
    if not isinstance(tensor, Tensor) or tensor.dtype not in INTEGERS:
        got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise TypeError(f"{name} must be a torch.Tensor of integers, got {got}.")
    if tensor.ndim != 2 or len(tensor) != rows:
        hint = " Did you pass it transposed?" if tensor.ndim == 2 and tensor.shape[1] == rows else ""
        raise ValueError(f"{name} must have shape [{rows}, count], got {list(tensor.shape)}.{hint}")
    return tensor if tensor.numel() else None
