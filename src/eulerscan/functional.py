"""The Euler characteristic transform as a function, the curves of a filtration, and where curves change."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from ._validation import ascending_error, check_bool, check_choice
from .complexes import Complex, Shape, as_complex
from .complexes.filtration import (
    Monotone,
    Values,
    cells_as_points,
    check_levels,
    check_numbers,
    check_values,
    count_cells,
    monotone_values,
)
from .complexes.packed import Packed, offsets_of
from .kernels import operation

_NUMBERS = (float, int, Real)  # Real last: it includes the others, but is slow to check
MAX_ENTRIES = 1 << 22  # of heights that critical() holds at once
_NO_GAP = tuple(range(2, 66))  # vertices of edges, triangles, tetrahedra, ...
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
        directions: One direction a row, ``[T, dim]``. They need not have unit length. Or ``[B, T, dim]``: each complex has
            directions of its own, such as a rotation a shape.
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
    complex = shape if isinstance(shape, Complex) else as_complex(shape)
    points, offsets, rows, simplices, weights, dims = complex.packed
    check_grid(points, directions, thresholds, offsets)
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
        dims,
    )


def ecc(
    shape: Shape,
    values: Tensor | Sequence[Tensor],
    thresholds: Tensor,
    *,
    scale: float | Tensor = math.inf,
    superlevel: bool = False,
    monotone: Monotone = "check",
) -> Tensor:
    r"""Euler characteristic curves (ECC) of filtrations that are given by values instead of directions.

    Entry ``[b, i, j]`` is the Euler characteristic of the part of complex ``b`` whose value in filtration ``i`` is at most
    ``thresholds[j]``. :func:`ect` is the case ``values = points @ directions.T``.

    Values of the vertices make a lower-star filtration: a simplex has the largest value of its vertices. Any other filtration,
    such as alpha or Rips, has values for every cell. With a finite ``scale`` the curves are differentiable in values,
    thresholds and scale, and in the weights they always are: values may come from a network.

    Args:
        shape: A :class:`Complex`, or anything :func:`as_complex` understands. Its coordinates do not count.
        values: Of the vertices, ``[V]``, or ``[V, T]`` for T filtrations, in the order of ``shape.points``. Or a tuple of such
            tensors: of the vertices, then of the cells of each level, in the order of ``shape.simplices``. Infinite values are
            allowed: a cell with value ``inf`` never appears. NaN raises a ``ValueError`` on the CPU; on a GPU it makes its
            curve NaN.
        thresholds: Ascending values, ``[H]``.
        scale: As in :func:`ect`.
        superlevel: Sweep downward: the part whose value is at least ``thresholds[j]``. Values of the vertices make an
            upper-star filtration, in which a simplex has the smallest value of its vertices.
        monotone: For a tuple of values, what to do if a cell appears before one of its faces: ``"check"`` raises a
            ``ValueError``, ``"repair"`` moves the cell to the value of the face, ``"assume"`` does not look, which is faster.

    Returns:
        ``[B, T, H]``, in the largest of the dtypes of values and thresholds, float32 at least.

    Example:
        >>> path = Complex(torch.zeros(3, 1), [torch.tensor([[0, 1], [1, 2]])])
        >>> ecc(path, torch.tensor([0., 2., 1.]), torch.tensor([0., 1., 2.]))
        tensor([[[1., 2., 1.]]])
        >>> edges_last = (torch.tensor([0., 0., 0.]), torch.tensor([1., 2.]))
        >>> ecc(path, edges_last, torch.tensor([0., 1., 2.]))
        tensor([[[3., 2., 1.]]])
    """
    complex = shape if isinstance(shape, Complex) else as_complex(shape)
    check_choice(monotone, "monotone", get_args(Monotone))
    check_bool(superlevel, "superlevel")
    _check_thresholds(thresholds, complex.device)
    _warn_of_missing_faces(complex)
    if superlevel:
        thresholds = downward(thresholds)
    if isinstance(values, tuple | list):
        levels = check_levels(values, complex)
        if not isinstance(values, Values):
            levels = monotone_values(complex, levels, monotone, superlevel=superlevel)
        levels = [-level for level in levels] if superlevel else levels
        curves = _of_levels(complex, levels, thresholds, scale)
    else:
        heights = check_values(values, complex, "values", len(complex.points), "vertex")
        # The exact kernel has curves for infinite values and NaN for NaN, so that values need not be read before.
        is_read = len(thresholds) > 0 and _is_exact(scale) and operation.is_immediate(thresholds, heights)
        heights = heights if is_read else check_numbers(heights, "values")
        curves = _of_heights(complex.packed._replace(points=-heights if superlevel else heights), thresholds, scale)
        if is_read and bool(curves[..., 0].isnan().any()):
            check_numbers(heights, "values")  # or a weight is NaN
    return curves.flip(-1) if superlevel else curves


def _of_heights(packed: Packed, thresholds: Tensor, scale: float | Tensor) -> Tensor:
    """The curves ``[B, T, H]`` of a complex whose points are heights ``[V, T]``."""
    points, offsets, rows, simplices, weights, dims = packed
    dtype = torch.float64 if torch.float64 in (points.dtype, thresholds.dtype) else torch.float32
    points, weights = points.to(dtype), None if weights is None else weights.to(dtype)
    return operation.ect(
        points, None, thresholds.to(dtype), _scale(scale, points), weights, simplices, offsets, rows, dims
    )  # fmt: skip


def _of_levels(complex: Complex, levels: list[Tensor], thresholds: Tensor, scale: float | Tensor) -> Tensor:
    """The curves ``[B, T, H]`` of the values ``[n, T]`` of every level."""
    tensors = (thresholds, *levels)
    dtype = torch.float64 if torch.float64 in [tensor.dtype for tensor in tensors] else torch.float32
    exact = _is_exact(scale)
    if exact and complex.packed.weights is None and levels[0].shape[1] == 1 and operation.is_immediate(*tensors):
        return count_cells(complex, [level.to(dtype) for level in levels], thresholds.to(dtype))
    cloud = cells_as_points(complex, levels, exact=exact)
    return cloud.curves(_of_heights(cloud.packed, thresholds, scale)).to(dtype)


class Critical(NamedTuple):
    """The jumps of Euler characteristic curves, by complex, then by direction, then by height. See :func:`critical`."""

    complex: Tensor  # [n]
    direction: Tensor  # [n]
    vertex: Tensor  # [n], row of shape.points
    height: Tensor  # [n]
    jump: Tensor  # [n]
    num_complexes: int
    num_directions: int

    def curves(self, thresholds: Tensor) -> Tensor:
        """The exact transform ``[B, T, H]`` at ascending thresholds ``[H]``: the sum of the jumps at or below each of them."""
        _check_thresholds(thresholds, self.height.device)
        # As operation.ect does for a cloud in which every jump is a point and every curve a complex.
        curve = self.complex * self.num_directions + self.direction
        offsets = offsets_of(torch.bincount(curve, minlength=self.num_complexes * self.num_directions))[None]
        dtype = torch.promote_types(self.height.dtype, thresholds.dtype)
        inputs = (self.height[:, None].to(dtype), None, thresholds.to(dtype), math.inf, self.jump.to(dtype))
        found = operation.ect(*inputs, curve.new_empty(0, dtype=torch.int32), offsets, ())
        return found.reshape(self.num_complexes, self.num_directions, len(thresholds))


def critical(shape: Shape, directions: Tensor) -> Critical:
    """Where the curves of the exact transform jump: at which vertex, at which height, by how much.

    On a closed surface only a few percent of the vertices change a curve: minima, maxima and saddles. The jumps say everything
    about the exact transform, for any thresholds, and can be stored and compared.

    Args:
        shape, directions: As in :func:`ect`.

    Returns:
        The jumps that are not zero: ``complex``, ``direction``, ``vertex``, ``height`` and ``jump``, each ``[n]``, ordered by
        complex, direction and height. ``curves(thresholds)`` adds them up. They have no gradient.

    Example:
        >>> path = Complex(torch.tensor([[0.], [2.], [1.]]), [torch.tensor([[0, 1], [1, 2]])])
        >>> found = critical(path, torch.tensor([[1.]]))
        >>> found.vertex, found.height, found.jump
        (tensor([0, 2, 1]), tensor([0., 1., 2.]), tensor([ 1.,  1., -1.]))
        >>> found.curves(torch.tensor([0.5, 1.5, 2.5]))
        tensor([[[1., 2., 1.]]])
    """
    complex = shape if isinstance(shape, Complex) else as_complex(shape)
    points, offsets, rows, simplices, weights, dims = complex.packed
    check_grid(points, directions, points.new_empty(0), offsets)
    _warn_of_missing_faces(complex)
    dtype = torch.float64 if torch.float64 in (points.dtype, directions.dtype) else torch.float32
    points, directions = points.detach().to(dtype), directions.detach().to(dtype)
    weights = None if weights is None else weights.detach().to(dtype)
    batch, found = complex.batch, []
    num_directions = directions.shape[-2]
    step = max(8, MAX_ENTRIES // max(1, len(points)) // 8 * 8)  # in blocks, to save memory
    for start in range(0, num_directions, step):
        block = directions[..., start : start + step, :]
        heights, jumps = operation.coefficients(points, block, weights, simplices, offsets, rows, dims)
        vertex, direction = jumps.nonzero(as_tuple=True)
        found.append((batch[vertex], start + direction, vertex, heights[vertex, direction], jumps[vertex, direction]))
    none = (batch[:0], batch[:0], batch[:0], points.new_empty(0), points.new_empty(0))
    owner, direction, vertex, height, jump = (torch.cat(part) for part in zip(none, *found, strict=True))
    order = height.argsort(stable=True)
    order = order[(owner * num_directions + direction)[order].argsort(stable=True)]
    return Critical(
        owner[order], direction[order], vertex[order], height[order], jump[order], complex.num_complexes, num_directions
    )


def check_grid(points: Tensor, directions: Tensor, thresholds: Tensor, offsets: Tensor) -> None:
    """Directions and thresholds for these points. Their values are not read."""
    _check_floats("directions", directions, "[T, dim]", points.device)
    _check_thresholds(thresholds, points.device)
    shape, dim = directions.shape, points.shape[1]
    if len(shape) != 2 or shape[1] != dim:
        count = offsets.shape[1] - 1
        if len(shape) == 3 and shape == (count, shape[1], dim):
            return
        transposed = len(shape) == 2 and shape[0] == dim
        hint = " Did you pass it transposed?" if transposed else ""
        if len(shape) == 3:
            hint = f" Directions of each shape need [{count}, T, {dim}], since there are {count} complexes."
        raise ValueError(
            f"directions must have shape [T, {dim}], since the points have dimension {dim}, got {list(shape)}.{hint}"
        )


def _check_thresholds(thresholds: Tensor, device: torch.device) -> None:
    _check_floats("thresholds", thresholds, "[H]", device)
    if thresholds.ndim != 1:
        raise ValueError(f"thresholds must have shape [H], got {list(thresholds.shape)}.")


def _check_floats(name: str, tensor: Tensor, shape: str, device: torch.device) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor {shape}, got {type(tensor).__name__}.")
    if not tensor.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {tensor.dtype}. Use {name}.float().")
    if tensor.device != device:
        raise ValueError(f"{name} must be on {device} like the points, got {tensor.device}.")


def downward(thresholds: Tensor) -> Tensor:
    """The thresholds of a sweep downward: negated, above is below. Rounding is symmetric, so ties stay ties."""
    is_readable = thresholds.is_cpu and not torch.compiler.is_compiling()  # elsewhere the kernel answers with NaN
    if is_readable and bool((thresholds.diff() < 0).any()):  # before they are flipped
        raise ascending_error(thresholds)
    return -thresholds.flip(-1)


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


def _is_exact(scale: float | Tensor) -> bool:
    """Whether the scale is known to be infinite, without a look at a tensor."""
    return not isinstance(scale, Tensor) and scale == math.inf


def _warn_of_missing_faces(complex: Complex) -> None:
    """Of simplices alone: hyperedges and other cells are what they are."""
    rows, dims = complex.packed.rows, complex.packed.dims
    if rows == _NO_GAP[: len(rows)] or not complex.packed.simplices.numel():
        return
    for level, size in enumerate(rows):
        is_simplex = dims is None or dims[level] == size - 1
        if size > 2 and is_simplex and size - 1 not in rows and not torch.compiler.is_compiling():
            warnings.warn(
                f"shape has {size - 1}-simplices but no {size - 2}-simplices: it is not a complex, and only listed simplices "
                "count. shape.closure() adds the missing faces. Or did you pass the simplices transposed?",
                stacklevel=3,
            )
