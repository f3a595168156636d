"""Intensity filtrations of images and volumes: cubical complexes that grow with the gray level."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from .._validation import as_tensor, check_bool, check_choice, check_finite
from ..complexes import Complex
from ..complexes.filtration import Filtration, Values
from ..complexes.packed import Packed
from .images import Pixels, as_gray

KEPT_SITES = 1 << 20  # lattices up to this size are kept for the next image of the same shape


def filtration_from_image(image: Any, *, pixels: Pixels = "cells", superlevel: bool = False) -> Filtration:
    """The filtration of an image or a volume by intensity, whose curve is the Euler characteristic function (ECF).

    At a threshold it holds the pixels at or below it, as a cubical complex: vertices, edges, squares and cubes. Gradients flow
    back to a floating-point tensor.

    Args:
        image: A tensor or array, ``[rows, columns]`` or ``[i, j, k]``, or a Pillow image, as in
            :func:`~eulerscan.convert.from_image`. Booleans and unsigned integers are scaled to [0, 1] by the range of their
            dtype; other values are not scaled.
        pixels: ``"cells"``: every pixel is a square (cube), and a face appears with the first of its pixels, so that diagonal
            neighbors touch. ``"vertices"``: every pixel is a vertex, and a square appears with the last of its four, so that
            diagonal neighbors do not touch.
        superlevel: Whether the filtration is to be swept downward, from bright to dark: ``es.ecc(..., superlevel=True)``.

    Returns:
        The complex, and the values of its vertices and cells, for ``es.ecc(*filtration_from_image(image), thresholds)``.
        Values may share memory with the image: do not modify it in place.

    Example:
        >>> from eulerscan import ecc
        >>> ring = torch.tensor([[0.1, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.1]])
        >>> ecc(*filtration_from_image(ring), torch.tensor([0.0, 0.5, 1.0]))
        tensor([[[0., 0., 1.]]])
    """
    values = _values(image, "image")
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ValueError(f"image must have shape [rows, columns] or [i, j, k], got {list(values.shape)}.")
    return _filtration(values[None], pixels, superlevel)


def filtration_from_images(images: Any, *, pixels: Pixels = "cells", superlevel: bool = False) -> Filtration:
    """As :func:`filtration_from_image`, for a stack of images ``[N, rows, columns]`` or volumes ``[N, i, j, k]``.

    Example:
        >>> filtration_from_images(torch.rand(5, 4, 4), pixels="vertices").shape
        Complex(num_complexes=5, dim=2, points=80, simplices=(120 edges, 45 2-cells of 4 vertices))
    """
    values = _values(images, "images")
    if values.ndim not in (3, 4) or 0 in values.shape[1:]:
        raise ValueError(f"images must have shape [N, rows, columns] or [N, i, j, k], got {list(values.shape)}.")
    return _filtration(values, pixels, superlevel)


def _filtration(values: Tensor, pixels: Pixels, superlevel: bool) -> Filtration:
    """The same for intensities in floating point ``[N, ...]``."""
    check_choice(pixels, "pixels", get_args(Pixels))
    check_bool(superlevel, "superlevel")
    axes, by_vertices = values.ndim - 1, pixels == "vertices"
    # The last of the vertices of a cell, or the first of the pixels around a face, by the axes along which it was taken.
    extremes: dict[tuple[int, ...], Tensor] = {(): values}
    for _, taken in _cells(axes)[1:]:
        before, axis = extremes[taken[:-1]], 1 + taken[-1]
        extremes[taken] = _extreme(before if by_vertices else _bordered(before, axis), axis, by_vertices != superlevel)
    levels: list[list[Tensor]] = [[] for _ in range(axes + 1)]
    for dim, spanned in _cells(axes):
        taken = spanned if by_vertices else tuple(axis for axis in range(axes) if axis not in spanned)
        levels[dim].append(extremes[taken].flatten(1))
    cells = [level[0] if len(level) == 1 else torch.cat(level, dim=1) for level in levels]
    sites = tuple(side + (not by_vertices) for side in values.shape[1:])
    lattice = _lattice_kept if values.shape[1:].numel() <= KEPT_SITES else _lattice
    packed = lattice(len(values), sites, torch.get_default_dtype()).map(lambda tensor: tensor.to(values.device))
    return Filtration(Complex.from_packed(packed), Values(level.reshape(-1) for level in cells))


def _values(image: Any, name: str) -> Tensor:
    """Intensities in floating point."""
    values = as_tensor(image, name) if isinstance(image, Tensor | np.ndarray) else torch.empty(0, dtype=torch.uint8)
    if not values.is_floating_point():
        values = as_tensor(as_gray(image, name), name).to(torch.get_default_dtype())
    check_finite(values, name)
    return values


def _cells(axes: int) -> list[tuple[int, tuple[int, ...]]]:
    """Dimension and spanned axes of the cells of a lattice, by dimension."""
    return [(dim, spanned) for dim in range(axes + 1) for spanned in itertools.combinations(range(axes), dim)]


def _extreme(values: Tensor, axis: int, largest: bool) -> Tensor:
    """The larger or the smaller of neighbors along an axis."""
    size = values.shape[axis] - 1
    one, other = values.narrow(axis, 0, size), values.narrow(axis, 1, size)
    return torch.maximum(one, other) if largest else torch.minimum(one, other)


def _bordered(values: Tensor, axis: int) -> Tensor:
    """One more pixel on both sides of an axis, a copy of its neighbor, so that it changes no extreme."""
    return torch.cat([values.narrow(axis, 0, 1), values, values.narrow(axis, values.shape[axis] - 1, 1)], dim=axis)


def _lattice(count: int, sites: tuple[int, ...], dtype: torch.dtype) -> Packed:
    """``count`` cubical complexes of all vertices, edges, squares and cubes between the sites of a lattice."""
    size, axes = torch.Size(sites).numel(), len(sites)
    index = torch.arange(count * size, dtype=torch.int32 if count * size < 2**31 else torch.int64).view(count, *sites)
    columns: list[list[Tensor]] = [[] for _ in range(axes + 1)]
    for dim, spanned in _cells(axes):
        corners = []
        # In Gray code order: those of a square run around its boundary.
        for code in range(2**dim):
            corner = index
            for axis, side in enumerate(sites):
                bit = (code ^ code >> 1) >> spanned.index(axis) & 1 if axis in spanned else 0
                corner = corner.narrow(1 + axis, bit, side - (axis in spanned))
            corners.append(corner.flatten(1))
        columns[dim].append(torch.stack(corners))  # [2 ** dim, N, n]
    levels = [torch.cat(level, dim=2) for level in columns]
    each = torch.arange(count + 1)
    place = torch.cartesian_prod(*(torch.arange(side, dtype=dtype) for side in sites)).reshape(-1, axes)
    place = torch.stack([place[:, 1], -place[:, 0]], dim=1) if axes == 2 else place  # images are upright
    return Packed(
        points=place.repeat(count, 1),
        offsets=torch.stack([each * level.shape[2] for level in levels]),
        rows=tuple(2**dim for dim in range(1, axes + 1)),
        simplices=torch.cat([level.reshape(-1) for level in levels[1:]]),
        weights=None,
        dims=tuple(range(1, axes + 1)),
    )


_lattice_kept = lru_cache(maxsize=2)(_lattice)
