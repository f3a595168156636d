"""Images and volumes: the foreground pixels as squares or vertices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from .._validation import check_bool
from ..complexes import Complex
from .cubical import cubes, lattice_points

_Array = np.ndarray[Any, Any]
Pixels = Literal["cells", "vertices"]


def from_image(
    image: Any,
    *,
    threshold: float | None = None,
    weighted: bool = False,
    pixels: Pixels = "cells",
    spacing: float | Sequence[float] = 1.0,
    invert: bool = False,
) -> Complex:
    """Convert the foreground of an image or a volume to a :class:`Complex`.

    Pixel ``[row, column]`` of an image is at ``(column, -row)``, so the image is upright. Voxel ``[i, j, k]`` of a volume is
    at ``(i, j, k)``. Both are multiplied by ``spacing``.

    The result is the cubical complex of the pixels, triangulated without new vertices. Height is linear on a cell, and an open
    cell of weight w is a union of open simplices of weight w whose signs add up to its own. The triangulation therefore changes
    no transform, exact or smooth, weighted or not.

    Args:
        image: An array or tensor, ``[rows, columns]`` or ``[i, j, k]``, or a Pillow image, which is converted to grayscale
            (transparent pixels are background: black, or white if ``invert``; the pages of a TIFF file are a volume). Booleans
            and unsigned integers are scaled to [0, 1] by the range of their dtype; signed integers and floating point are not
            scaled. Convert color arrays to grayscale first: they would be taken for volumes.
        threshold: Pixels with larger values are foreground. Default: 0.5, or 0 if ``weighted``.
        weighted: Use the pixel values as weights (WECT). The weight of a simplex is the maximum over the pixels that share it:
            its vertices, or the cells that contain it.
        pixels: ``"cells"``: every foreground pixel is a square (cube) around its position. ``"vertices"``: it is a vertex, and
            neighbors are joined by the Freudenthal triangulation, with all diagonals in the same direction.
        spacing: Distance between pixels, or one for each axis of the array, such as ``(row, column)``.
        invert: For dark shapes on white: value g is first replaced by white - g, where white is 1 (the largest value for
            unsigned integers). ``threshold`` and weights refer to the inverted image.

    Example:
        >>> ring = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
        >>> from_image(ring).euler_characteristic()
        tensor([0])
        >>> from_image(ring, pixels="vertices")
        Complex(num_complexes=1, dim=2, points=8, simplices=(10 edges, 2 triangles))
        >>> from_image(ring, invert=True)
        Complex(num_complexes=1, dim=2, points=4, simplices=(5 edges, 2 triangles))
    """
    array = _array(image, "image", invert)
    if array.ndim not in (2, 3):
        raise ValueError(f"image must have shape [rows, columns] or [i, j, k], got {list(array.shape)}.")
    complex = from_images(array[None], threshold=threshold, weighted=weighted, pixels=pixels, spacing=spacing, invert=invert)
    if not len(complex.points):
        values = _values(array, invert)
        found = f"values from {values.min():.4g} to {values.max():.4g}" if values.size else "no pixels"
        bound, inverted = _threshold(threshold, weighted), " of the inverted image" * invert
        hint = "" if invert else " Use invert=True for dark shapes."
        raise ValueError(f"image has no foreground: no pixel{inverted} is larger than {bound:.4g}, got {found}.{hint}")
    return complex


def from_images(
    images: Any,
    *,
    threshold: float | None = None,
    weighted: bool = False,
    pixels: Pixels = "cells",
    spacing: float | Sequence[float] = 1.0,
    invert: bool = False,
) -> Complex:
    """Convert images of equal size ``[N, rows, columns]``, or volumes ``[N, i, j, k]``, to a batch of N complexes.

    Takes the arguments of :func:`from_image`, and is faster than converting one by one. An image without foreground becomes
    an empty complex.

    >>> from_images(np.eye(3, dtype=np.uint8)[None] * np.array([255, 0], dtype=np.uint8)[:, None, None])
    Complex(num_complexes=2, dim=2, points=10, simplices=(15 edges, 6 triangles))
    """
    array = _array(images, "images", invert)
    if array.ndim not in (3, 4):
        raise ValueError(f"images must have shape [N, rows, columns] or [N, i, j, k], got {list(array.shape)}.")
    if pixels not in ("cells", "vertices"):
        raise ValueError(f'pixels must be "cells" or "vertices", got {pixels!r}.')
    steps = _spacing(spacing, array.ndim - 1)
    check_bool(weighted, "weighted")
    bound = _threshold(threshold, weighted)
    values: _Array
    if weighted:
        values = _values(array, invert)
        values = np.where(values > bound, values, -np.inf)
    else:
        values = _above(array, bound, invert)
    complex = (cubes if pixels == "cells" else lattice_points)(values)
    points = complex.points * steps
    # Row 0 of an image is at the top.
    return complex.with_points(points if complex.dim == 3 else torch.stack([points[:, 1], -points[:, 0]], dim=1))


def _array(image: Any, name: str, invert: bool) -> _Array:
    check_bool(invert, "invert")
    if isinstance(image, Tensor):
        image = image.detach().cpu().numpy()
    elif hasattr(image, "getbands"):
        image = stack_pages(gray_pages(image, background=float(invert)))
    array = np.asarray(image)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {type(image).__name__} of {array.dtype}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{name} must be finite, got {array[tuple(place)]} at {place}.")
    return array


def gray_pages(image: Any, *, background: float) -> list[_Array]:
    """Grayscale arrays of all pages of a Pillow image. Transparent pixels show the background, 0 (black) to 1 (white)."""
    if image.format != "TIFF" or getattr(image, "n_frames", 1) == 1:
        return [_gray(image, background)]
    shown, pages = image.tell(), []
    for page in range(image.n_frames):
        image.seek(page)
        pages.append(_gray(image, background))
    image.seek(shown)
    return pages


def stack_pages(pages: list[_Array]) -> _Array:
    """One page as an image, several pages as a volume."""
    if len({page.shape for page in pages}) > 1:
        raise ValueError(f"image must have pages of one size to form a volume, got {len(pages)} of different sizes.")
    if len({page.dtype for page in pages}) > 1:
        raise ValueError(f"image must have pages of one bit depth to form a volume, got {len(pages)} of different depths.")
    return np.stack(pages) if len(pages) > 1 else pages[0]


def has_light_corners(image: _Array) -> bool:
    """Whether all corners are foreground at the default threshold: probably dark shapes on a light background."""
    corners = _values(image[[0, 0, -1, -1], [0, -1, 0, -1]], invert=False)
    return bool((corners > _threshold(None, weighted=False)).all())


def _gray(image: Any, background: float) -> _Array:
    transparent = image.mode in ("1", "L") and image.has_transparency_data
    if (image.mode in ("1", "L", "I", "F") or image.mode.startswith("I;16")) and not transparent:
        return np.asarray(image)
    if not image.has_transparency_data:
        return np.asarray(image.convert("L"))
    image = image.convert("RGBA")
    opacity = np.asarray(image.getchannel("A"), dtype=np.float64) / 255
    return background + (np.asarray(image.convert("L")) / 255 - background) * opacity  # exact for pixels of this color


def _values(array: _Array, invert: bool) -> _Array:
    if array.dtype.kind in "bu":
        array = ~array if invert else array  # white - g, exactly
        return array / np.iinfo(array.dtype).max if array.dtype.kind == "u" else array.astype(np.float64)
    return 1 - array.astype(np.float64) if invert else array.astype(np.float64)


def _above(array: _Array, bound: float, invert: bool) -> _Array:
    """``values > bound``, in blocks: 70,000 MNIST digits in floating point would take 440 MB."""
    above = np.empty(array.shape, dtype=bool)
    step = max(1, 2**22 // max(1, int(np.prod(array.shape[1:]))))
    for i in range(0, len(array), step):
        above[i : i + step] = _values(array[i : i + step], invert) > bound
    return above


def _threshold(threshold: float | None, weighted: bool) -> float:
    if threshold is None:
        return 0.0 if weighted else 0.5
    if not isinstance(threshold, SupportsFloat):
        raise TypeError(f"threshold must be a number, with a decimal point, got {threshold!r}.")
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    return float(threshold)


def _spacing(spacing: float | Sequence[float], axes: int) -> Tensor:
    try:
        steps = torch.as_tensor(spacing, dtype=torch.get_default_dtype())
    except (TypeError, ValueError):
        raise TypeError(f"spacing must be a number, with a decimal point, or one for each axis, got {spacing!r}.") from None
    if steps.shape not in ((), (axes,)) or not bool(((steps > 0) & torch.isfinite(steps)).all()):
        raise ValueError(f"spacing must be one positive number, or one for each of the {axes} axes, got {spacing!r}.")
    return steps.expand(axes)
