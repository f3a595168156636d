"""Images and volumes: the foreground as a smooth region, or its pixels as squares or vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat, get_args

import numpy as np
import torch
from torch import Tensor

from .._devices import as_numpy
from .._imports import require
from .._limits import check_bytes, max_bytes
from .._validation import check_bool, check_choice, integer, number, positive, set_fields
from ..complexes import Complex, collate
from . import contours
from .cubical import cubes, lattice_points, squares

_Array = np.ndarray[Any, Any]
Outline = Literal["auto", "contour", "pixels"]
Pixels = Literal["cells", "vertices"]

CONTOUR_FROM = 48
TRANSPARENT = 0.05  # share of the pixels from which on they are a background
"""Images with a longer side than this have contours by default: their stairs of pixels would outweigh their shape."""

_BLOCK = 2**18  # pixels at a time

# Estimates of memory in bytes, rounded up.
GRAY_BYTES = 8  # for a pixel of an image without transparency
FLOAT_BYTES = 64  # for a pixel of an image with transparency, or of a volume
STEP_BYTES = 200  # for a step between foreground and background, in contours and squares
PIXEL_BYTES = {2: 400, 3: 1600}  # for a pixel or voxel of the foreground, as cells or vertices


def from_image(
    image: Any,
    *,
    threshold: float | None = None,
    weighted: bool = False,
    outline: Outline = "auto",
    filled: bool | None = None,
    blur: float | None = None,
    pixels: Pixels = "cells",
    largest_component: bool = False,
    fill_holes: bool = False,
    min_size: int = 0,
    resize: int | None = None,
    spacing: float | Sequence[float] = 1.0,
    invert: bool = False,
) -> Complex:
    """Convert the foreground of an image or a volume to a :class:`Complex`.

    Pixel ``[row, column]`` of an image is at ``(column, -row)``, so the image is upright. Voxel ``[i, j, k]`` of a volume is
    at ``(i, j, k)``. Both are multiplied by ``spacing``.

    **Contour or pixels.** A region of square pixels has stairs, and in a diagonal direction every stair counts: a disc of 256
    pixels reaches an Euler characteristic of 18 instead of 1. A contour is the shortest polygon between the foreground pixels
    and their neighbors in the background (the minimum length polygon); it has the same components and holes, and a disc of
    any size reaches 1. The contour of a volume is the surface that marching cubes find. Pixels are exact where they matter
    themselves: for small images, weights, and the complexes of the literature.

    Args:
        image: An array or tensor, ``[rows, columns]`` or ``[i, j, k]``, or a Pillow image, which is converted to grayscale; the
            pages of a TIFF file are a volume. Transparent pixels are background: black, or white if ``invert``. If more than a
            twentieth of them are transparent (of the first page), opaque pixels are foreground whatever their color, unless
            ``threshold``, ``weighted`` or ``invert`` asks for their brightness. Booleans and unsigned integers are scaled to
            [0, 1] by the range of their dtype; signed integers and floating point are not scaled. Convert color arrays to
            grayscale first: they would be taken for volumes.
        threshold: Pixels with larger values are foreground. Default: 0.5, or 0 if ``weighted``.
        weighted: Use the pixel values as weights (WECT). The weight of a simplex is the maximum over the pixels that share it:
            its vertices, or the cells that contain it.
        outline: ``"contour"``, ``"pixels"``, or ``"auto"``: contours for unweighted images with a side of more than 48 pixels.
        filled: Whether a contour of an image bounds a filled region, the default, or is a closed curve. Contours of volumes are
            surfaces.
        blur: Standard deviation in pixels of a Gaussian filter before the threshold. Default: 0; 1 for contours of volumes.
        pixels: ``"cells"``: every foreground pixel is a square (cube) around its position. ``"vertices"``: it is a vertex, and
            neighbors are joined by the Freudenthal triangulation, with all diagonals in the same direction.
        largest_component: Keep the largest connected component only.
        fill_holes: Fill the holes.
        min_size: Remove connected components with fewer pixels, such as specks.
        resize: Number of pixels along the longest side, to which larger images are reduced first.
        spacing: Distance between pixels, or one for each axis of the array, such as ``(row, column)``.
        invert: For dark shapes on white: value g is first replaced by white - g, where white is 1 (the largest value for
            unsigned integers). ``threshold`` and weights refer to the inverted image.

    Example:
        >>> ring = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
        >>> from_image(ring).euler_characteristic()
        tensor([0])
        >>> from_image(ring, pixels="vertices")
        Complex(num_complexes=1, dim=2, points=8, simplices=(10 edges, 2 triangles))
        >>> from_image(ring, fill_holes=True).euler_characteristic()
        tensor([1])
        >>> from_image(ring, outline="contour", filled=False).euler_characteristic()  # two circles
        tensor([0])
    """
    return foreground(
        image,
        ImageOptions(
            threshold=threshold,
            weighted=weighted,
            outline=outline,
            filled=filled,
            blur=blur,
            pixels=pixels,
            largest_component=largest_component,
            fill_holes=fill_holes,
            min_size=min_size,
            resize=resize,
            spacing=spacing,
            invert=invert,
        ),
    )


def from_images(images: Any, **options: Any) -> Complex:
    """Convert images of equal size ``[N, rows, columns]``, or volumes ``[N, i, j, k]``, to a batch of N complexes.

    Takes the options of :func:`from_image`, and is faster than converting one by one. An image without foreground becomes
    an empty complex.

    >>> from_images(np.eye(3, dtype=np.uint8)[None] * np.array([255, 0], dtype=np.uint8)[:, None, None])
    Complex(num_complexes=2, dim=2, points=10, simplices=(15 edges, 6 triangles))
    """
    chosen = ImageOptions(**options)
    array = _array(images, "images", chosen)
    if array.ndim not in (3, 4):
        raise ValueError(f"images must have shape [N, rows, columns] or [N, i, j, k], got {list(array.shape)}.")
    return _foregrounds(array, chosen)


@dataclass(frozen=True)
class ImageOptions:
    """The options of :func:`from_image`, checked as far as they can be without an image."""

    threshold: float | None = None
    weighted: bool = False
    outline: Outline = "auto"
    filled: bool | None = None
    blur: float | None = None
    pixels: Pixels = "cells"
    largest_component: bool = False
    fill_holes: bool = False
    min_size: int = 0
    resize: int | None = None
    spacing: float | Sequence[float] = 1.0
    invert: bool = False

    def __post_init__(self) -> None:
        check_choice(self.pixels, "pixels", get_args(Pixels))
        check_choice(self.outline, "outline", get_args(Outline))
        for name in ("weighted", "largest_component", "fill_holes", "invert"):
            check_bool(getattr(self, name), name)
        if self.filled is not None:
            check_bool(self.filled, "filled")
        threshold = self.threshold
        if threshold is not None:
            if isinstance(threshold, bool) or not isinstance(threshold, SupportsFloat):
                raise TypeError(f"threshold must be a number, with a decimal point, got {threshold!r}.")
            threshold = number(float(threshold), "threshold", finite=True)
        set_fields(
            self,
            threshold=threshold,
            blur=None if self.blur is None else number(self.blur, "blur", least=0, finite=True),
            min_size=integer(self.min_size, "min_size", least=0),
            resize=None if self.resize is None else positive(self.resize, "resize"),
        )

    @property
    def bound(self) -> float:
        """Pixels with larger values are foreground."""
        return (0.0 if self.weighted else 0.5) if self.threshold is None else self.threshold

    @property
    def by_opacity(self) -> bool:
        """Whether opaque pixels are foreground, whatever their color, on a transparent background."""
        return self.threshold is None and not self.weighted and not self.invert

    def by_contour(self, sides: Sequence[int]) -> bool:
        """Whether the foreground of images with these sides is bounded by contours."""
        automatic = not self.weighted and self.pixels == "cells" and max(sides) > CONTOUR_FROM
        found = automatic if self.outline == "auto" else self.outline == "contour"
        if found and self.weighted:
            raise ValueError("outline must be 'pixels' for weighted images: a contour has no weights.")
        if not found and self.filled is not None:
            raise ValueError(f"filled must be left out if outline is 'pixels', got {str(self.filled).lower()}.")
        if self.filled and len(sides) == 3:
            raise ValueError("filled must be false for volumes, whose contours are surfaces. A solid needs outline 'pixels'.")
        return found

    def steps(self, axes: int) -> Tensor:
        """``[axes]``: the distance between pixels along each axis."""
        try:
            steps = torch.as_tensor(self.spacing, dtype=torch.get_default_dtype())
        except (TypeError, ValueError):
            raise TypeError(
                f"spacing must be a number, with a decimal point, or one for each axis, got {self.spacing!r}."
            ) from None
        if steps.shape not in ((), (axes,)) or not bool(((steps > 0) & torch.isfinite(steps)).all()):
            raise ValueError(f"spacing must be one positive number, or one for each of the {axes} axes, got {self.spacing!r}.")
        return steps.expand(axes)


def foreground(image: Any, options: ImageOptions) -> Complex:
    """The same as :func:`from_image`."""
    array, invert = _array(image, "image", options), options.invert
    if array.ndim not in (2, 3):
        raise ValueError(f"image must have shape [rows, columns] or [i, j, k], got {list(array.shape)}.")
    complex = _foregrounds(array[None], options)
    if not len(complex.points):
        values = _values(np.array([array.min(), array.max()]), invert) if array.size else np.empty(0)
        found = f"values from {values.min():.4g} to {values.max():.4g}" if values.size else "no pixels"
        inverted = " of the inverted image" * invert
        if values.size and values[0] == values[1]:
            raise ValueError(f"image has no foreground: all pixels{inverted} are {values[0]:.4g}.")
        hint = "" if invert else " For dark shapes use the option invert."
        raise ValueError(f"image has no foreground: no pixel{inverted} is larger than {options.bound:.4g}, got {found}.{hint}")
    return complex


def _foregrounds(array: _Array, options: ImageOptions) -> Complex:
    """A batch of the foregrounds of images ``[N, rows, columns]`` or volumes ``[N, i, j, k]``."""
    steps, by_contour, volume = options.steps(array.ndim - 1), options.by_contour(array.shape[1:]), array.ndim == 4
    sigma = (1.0 if by_contour and volume else 0.0) if options.blur is None else options.blur
    ratios = torch.ones_like(steps)
    if options.resize is not None:
        array, ratios = _resized(array, options.resize, steps.dtype)
    values: _Array | None = None
    if options.weighted or sigma or (by_contour and array.dtype.kind == "f"):
        values = _values(array, options.invert)
        if sigma:
            values = _blurred(values, sigma)
        mask = values > options.bound
    else:
        mask = _above(array, options.bound, options.invert)
    if options.largest_component or options.fill_holes or options.min_size:
        mask = np.stack([_cleaned(one, options) for one in mask])
    if by_contour:
        complex = collate([_contour(one, None if values is None else values[i], options) for i, one in enumerate(mask)])
    elif values is not None and options.weighted:
        complex = (cubes if options.pixels == "cells" else lattice_points)(np.where(mask, values, -np.inf))
    elif options.pixels == "cells":
        complex = cubes(mask) if volume else squares(mask)
    else:
        complex = lattice_points(mask)
    points = (complex.points * ratios + (ratios - 1) / 2) * steps  # the center of a reduced pixel is that of all it stands for
    # Row 0 of an image is at the top.
    return complex.with_points(points if complex.dim == 3 else torch.stack([points[:, 1], -points[:, 0]], dim=1))


def _contour(mask: _Array, values: _Array | None, options: ImageOptions) -> Complex:
    bound = options.bound
    if mask.ndim == 2:
        found = contours.polygons(mask, values, bound)
        return contours.boundary(found) if options.filled is False else contours.region(found)
    if not mask.any():
        return Complex(torch.zeros(0, 3))
    measure = require("skimage.measure", extra="mesh")
    if values is None:
        field, level = mask.astype(np.float32), np.float32(0.5)
    else:  # what was removed or filled is mirrored to the other side of the level, in the precision of marching cubes
        level = np.float32(bound)
        field = np.where(mask == (values > bound), values, 2 * bound - values).astype(np.float32)
        field = np.where(mask, np.maximum(field, np.nextafter(level, np.inf)), np.minimum(field, np.nextafter(level, -np.inf)))
    outside = field.min() if field.min() < level else 2 * level - field.max()  # if all voxels are foreground
    vertices, triangles, _, _ = measure.marching_cubes(np.pad(field, 1, constant_values=outside), level)
    points = torch.from_numpy(vertices.astype(np.float64) - 1).to(torch.get_default_dtype())
    return Complex(points, [torch.from_numpy(triangles.T.astype(np.int64))]).closure()


def _cleaned(mask: _Array, options: ImageOptions) -> _Array:
    """The mask without small components, with the largest one only, or without holes. Pixels that touch are connected."""
    ndimage = require("scipy.ndimage", extra="mesh")
    touching = np.ones((3,) * mask.ndim, np.bool_)
    if options.largest_component or options.min_size > 1:
        labels, count = ndimage.label(mask, touching)
        sizes = np.bincount(labels.reshape(-1), minlength=count + 1)
        sizes[0] = 0
        kept = sizes >= options.min_size
        kept[0] = False
        if options.largest_component and kept.any():
            kept &= np.arange(count + 1) == np.argmax(sizes)
        mask = kept[labels]
    return ndimage.binary_fill_holes(mask) if options.fill_holes else mask


def _blurred(values: _Array, sigma: float) -> _Array:
    ndimage = require("scipy.ndimage", extra="mesh")
    blurred: _Array = ndimage.gaussian_filter(values, (0, *[sigma] * (values.ndim - 1)), mode="nearest")
    return blurred


def _resized(array: _Array, resize: int, dtype: torch.dtype) -> tuple[_Array, Tensor]:
    """Images reduced to so many pixels along the longest side, by averaging; and how much larger pixels are along each axis."""
    factor = max(1.0, max(array.shape[1:]) / resize)
    sizes = [max(1, round(size / factor)) for size in array.shape[1:]]
    ratios = torch.tensor([before / size for size, before in zip(sizes, array.shape[1:], strict=True)], dtype=dtype)
    if factor == 1:
        return array, ratios
    ndimage = require("scipy.ndimage", extra="mesh")
    smooth = ndimage.gaussian_filter(array.astype(np.float64), (0, *[factor / 2] * (array.ndim - 1)), mode="nearest")
    places = [(np.arange(size) + 0.5) * before / size - 0.5 for size, before in zip(sizes, array.shape[1:], strict=True)]
    grid = np.stack(np.meshgrid(*places, indexing="ij"))
    reduced = np.stack([ndimage.map_coordinates(one, grid, order=1, mode="nearest") for one in smooth])
    if array.dtype.kind == "u":
        reduced = reduced.round().astype(array.dtype)
    elif array.dtype.kind == "b":
        reduced = reduced > 0.5 - 1e-9  # straight edges are ties, which rounding must not decide
    return reduced, ratios


def as_gray(image: Any, name: str) -> _Array:
    """The intensities of an array, a tensor or a Pillow image; unsigned integers and booleans as numbers from 0 to 1."""
    return _values(_array(image, name, ImageOptions(weighted=True)), invert=False)


def _array(image: Any, name: str, options: ImageOptions) -> _Array:
    if isinstance(image, Tensor):
        image = as_numpy(image)
    elif hasattr(image, "getbands"):
        image = stack_pages(gray_pages(image, options))
    array = np.asarray(image)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {type(image).__name__} of {array.dtype}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(f"{name} must be finite, got {array[tuple(place)]} at {place}.")
    return array


def gray_pages(image: Any, options: ImageOptions) -> list[_Array]:
    """Grayscale arrays of all pages of a Pillow image. Transparent pixels are background: black, or white to be inverted.

    The sizes that the image declares are checked against the limit of memory before its pixels are unpacked.
    """
    count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    background = 255.0 * options.invert
    width, height = image.size
    size = f"an image of {width} x {height} pixels" + f" and {count} pages" * (count > 1)
    if count == 1:
        plain = image.mode in ("1", "L", "P", "RGB") and not image.has_transparency_data
        check_bytes(width * height * (GRAY_BYTES if plain else FLOAT_BYTES), size)
        return [_gray(image, background, options.by_opacity and _is_cut_out(image))]
    check_bytes(width * height * count * FLOAT_BYTES, size)
    shown, pages, pixels = image.tell(), [], 0
    image.seek(0)
    by_opacity = options.by_opacity and _is_cut_out(image)
    for page in range(count):
        image.seek(page)
        pixels += image.width * image.height
        check_bytes(pixels * FLOAT_BYTES, f"an image of {page + 1} pages of different sizes")
        pages.append(_gray(image, background, by_opacity))
    image.seek(shown)
    return pages


def plain_mask(image: _Array, options: ImageOptions) -> _Array | None:
    """The foreground, if :func:`from_image` with these options would not look at anything else; it takes less memory."""
    if image.dtype.kind not in "bu" or options.weighted or options.blur or options.resize or image.ndim != 2:
        return None
    return _above(image, options.bound, options.invert)


def outline_bytes(image: _Array, options: ImageOptions) -> int:
    """An estimate of the memory in bytes that the simplices of an image take."""
    if options.resize is not None:
        return int(min(image.size, options.resize**image.ndim)) * PIXEL_BYTES[image.ndim]
    if (most := image.size * PIXEL_BYTES[image.ndim]) <= max_bytes():  # of small images nothing is counted
        return most
    mask = _above(image, options.bound, options.invert)
    squares_or_contours = image.ndim == 2 and not options.weighted and options.pixels == "cells"
    if squares_or_contours or options.by_contour(image.shape):
        steps = sum(np.count_nonzero(np.diff(mask, axis=axis)) for axis in range(mask.ndim))
        return int(steps + 2 * sum(mask.shape)) * STEP_BYTES
    return int(np.count_nonzero(mask)) * PIXEL_BYTES[image.ndim]


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
    return bool((corners > ImageOptions().bound).all())


def _is_cut_out(image: Any) -> bool:
    """Whether some pixels are opaque on a transparent background; rounded corners are none."""
    if not image.has_transparency_data:
        return False
    opacity = np.asarray(image.convert("RGBA").getchannel("A"))
    return bool(TRANSPARENT < np.count_nonzero(opacity < 128) / opacity.size < 1)


def _gray(image: Any, background: float, by_opacity: bool) -> _Array:
    transparent = image.mode in ("1", "L") and image.has_transparency_data
    if (image.mode in ("1", "L", "I", "F") or image.mode.startswith("I;16")) and not transparent:
        return _pixels(image)
    if not image.has_transparency_data:
        return _pixels(image.convert("L"))
    image = image.convert("RGBA")
    opacity = np.asarray(image.getchannel("A"))
    if by_opacity:
        return opacity
    # Levels, as of an image without transparency, whose outline is then the same.
    return np.rint(background + (np.asarray(image.convert("L")) - background) * (opacity / 255)).astype(np.uint8)


def _pixels(image: Any) -> _Array:
    """``numpy.asarray``, in bands: Pillow would copy a large image twice."""
    width, height = image.size
    rows = max(1, _BLOCK // max(1, width))
    if height <= 16 * rows:
        return np.asarray(image)
    pixels = np.empty((height, width), np.asarray(image.crop((0, 0, 1, 1))).dtype)
    for top in range(0, height, rows):
        pixels[top : top + rows] = np.asarray(image.crop((0, top, width, min(top + rows, height))))
    return pixels


def _values(array: _Array, invert: bool) -> _Array:
    if array.dtype.kind in "bu":
        array = ~array if invert else array  # white - g, exactly
        return array / np.iinfo(array.dtype).max if array.dtype.kind == "u" else array.astype(np.float64)
    return 1 - array.astype(np.float64) if invert else array.astype(np.float64)


def _above(array: _Array, bound: float, invert: bool) -> _Array:
    """``values > bound``, in blocks: an image of 13,000 x 13,000 pixels would take 1.4 GB in floating point."""
    if array.dtype == np.bool_ and not invert and 0 <= bound < 1:
        return array
    if array.dtype == np.uint8:  # values ascend with the levels, or descend if inverted
        levels = np.arange(256, dtype=np.uint8)
        foreground = levels[_values(levels, invert) > bound]
        if not len(foreground):
            return np.zeros(array.shape, np.bool_)
        mask: _Array = array <= foreground[-1] if invert else array >= foreground[0]
        return mask
    flat, above = array.reshape(-1), np.empty(array.size, dtype=bool)
    for i in range(0, array.size, _BLOCK):
        above[i : i + _BLOCK] = _values(flat[i : i + _BLOCK], invert) > bound
    return above.reshape(array.shape)
