"""The Euler characteristic transform as a function."""

from __future__ import annotations

import math
import warnings
from numbers import Real

import torch
from torch import Tensor

from .complexes import Complex, Shape, as_complex
from .kernels import operation

_NUMBERS = (float, int, Real)  # Real last: it includes the others, but is slow to check
_LARGEST = {dtype: torch.finfo(dtype).max for dtype in (torch.float32, torch.float64)}


def ect(shape: Shape, directions: Tensor, thresholds: Tensor, *, scale: float | Tensor = math.inf) -> Tensor:
    r"""Euler characteristic transform of one or many complexes.

    Entry ``[b, i, j]`` is the Euler characteristic of the part of complex ``b`` that lies
    at or below height ``thresholds[j]`` in direction ``directions[i]``.

    With a finite ``scale`` :math:`\lambda` every simplex :math:`\sigma` counts
    :math:`S(\lambda (t - h(\sigma)))` instead of 0 or 1, where S is the sigmoid and :math:`h(\sigma)` the height of its
    highest vertex. The result is then differentiable in points, directions, thresholds and scale. In the
    weights it always is. Forward mode, second derivatives and :mod:`torch.func` use torch operations, which are slower;
    under :func:`torch.vmap` they need memory for every simplex, direction and threshold, and a mapped scale must be finite.

    Args:
        shape: A :class:`Complex`, or anything :func:`as_complex` understands.
        directions: One direction a row, ``[T, dim]``. They need not have unit length.
        thresholds: Ascending heights, ``[H]``.
        scale: Steepness of the sigmoid that replaces the step. ``inf`` is the exact transform,
            whose gradient is zero; training needs a finite value.

    Returns:
        ``[B, T, H]``, in the largest of the dtypes of points, directions and thresholds, float32 at least.

    Example:
        >>> square = Complex(torch.tensor([[0., 0], [1, 0], [1, 1], [0, 1]]), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])])
        >>> ect(square, torch.tensor([[1., 0.]]), torch.tensor([-1., 0., 1.]))
        tensor([[[0., 1., 0.]]])
    """
    complex = as_complex(shape)
    points, offsets, rows, simplices, weights = complex.packed
    _check_grid(points, directions, thresholds)
    _warn_of_missing_faces(complex)
    dtypes = (points.dtype, directions.dtype, thresholds.dtype)
    dtype = torch.float64 if torch.float64 in dtypes else torch.float32
    if dtypes != (dtype, dtype, dtype):  # ``to`` has a cost even if there is nothing to do
        points, directions, thresholds = points.to(dtype), directions.to(dtype), thresholds.to(dtype)
    return operation.ect(
        points,
        directions,
        thresholds,
        _scale(scale, points),
        None if weights is None else weights.to(dtype),
        simplices,
        offsets,
        rows,
    )


def _check_grid(points: Tensor, directions: Tensor, thresholds: Tensor) -> None:
    device, dim = points.device, points.shape[1]
    for name, tensor, shape in (("directions", directions, "[T, dim]"), ("thresholds", thresholds, "[H]")):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor {shape}, got {type(tensor).__name__}.")
        if not tensor.is_floating_point():
            raise TypeError(f"{name} must be floating point, got {tensor.dtype}. Use {name}.float().")
        if tensor.device != device:
            raise ValueError(f"{name} must be on {device} like the points, got {tensor.device}.")
    if directions.ndim != 2 or directions.shape[1] != dim:
        transposed = directions.ndim == 2 and directions.shape[0] == dim
        hint = " Did you pass it transposed?" if transposed else ""
        raise ValueError(
            f"directions must have shape [T, {dim}], since the points have dimension {dim}, got {list(directions.shape)}.{hint}"
        )
    if thresholds.ndim != 1:
        raise ValueError(f"thresholds must have shape [H], got {list(thresholds.shape)}.")


def _scale(scale: float | Tensor, points: Tensor) -> float | Tensor:
    """``scale`` as a number, or as a tensor without axes. The kernel checks that it is positive, where it reads the value."""
    if isinstance(scale, Tensor):
        if scale.numel() != 1 or scale.is_complex():
            raise ValueError(f"scale must be one real number, got {scale.dtype} of shape {list(scale.shape)}.")
        return scale.to(points).reshape(())
    if isinstance(scale, bool) or not isinstance(scale, _NUMBERS):
        raise TypeError(f"scale must be a number or a tensor with one, got {type(scale).__name__}.")
    # Too large for the dtype: the exact transform.
    return math.inf if scale > _LARGEST[points.dtype] else float(scale)


def _warn_of_missing_faces(complex: Complex) -> None:
    levels = complex.packed.rows
    for rows in levels:
        if rows > 2 and rows - 1 not in levels and not torch.compiler.is_compiling():
            warnings.warn(
                f"shape has {rows - 1}-simplices but no {rows - 2}-simplices: it is not a complex, and only listed simplices "
                "count. shape.closure() adds the missing faces. Or did you pass the simplices transposed?",
                stacklevel=3,
            )
