"""Image files, through Pillow."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch

from .._imports import require
from .._limits import LimitError, check_bytes
from ..complexes import Complex
from ..convert.images import ImageOptions, foreground, gray_pages, has_light_corners, outline_bytes, plain_mask, stack_pages
from .formats import IMAGES, File, load

LARGE = 2**24  # pixels
IMAGE_OPTIONS = tuple(field.name for field in fields(ImageOptions))


def read_image(file: File, *, dtype: torch.dtype | None = None, **options: Any) -> Complex:
    """The foreground of an image, or of the volume in a multi-page TIFF file. Options as in :func:`from_image`."""
    chosen = ImageOptions(**options)
    image = stack_pages(_pages(file, chosen))
    if image.size > LARGE and (mask := plain_mask(image, chosen)) is not None:
        if mask.any():
            image, chosen = mask, replace(chosen, invert=False, threshold=None)
        else:
            image = np.array([[image.min(), image.max()]])  # the error names them
    size = " x ".join(map(str, image.shape))
    check_bytes(outline_bytes(image, chosen), f"the outline of an image of {size} pixels")
    complex = foreground(image, chosen)
    return complex if dtype is None else complex.to(dtype)


def has_light_background(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an image with light corners, whose background would be taken for the shape."""
    try:
        file = load(path)
        return file.format in IMAGES and has_light_corners(_pages(file, ImageOptions())[0])
    except (ValueError, OSError):  # reported when the file is read
        return False


def _pages(file: File, options: ImageOptions) -> list[np.ndarray[Any, Any]]:
    pillow = require("PIL.Image", extra="mesh")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Corrupt EXIF|Truncated File")
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # we have a limit of our own
            with pillow.open(io.BytesIO(file.content)) as image:
                return gray_pages(image, options)
    except (ImportError, MemoryError, LimitError):
        raise
    except pillow.DecompressionBombError as error:
        raise ValueError(f"{error} Raise PIL.Image.MAX_IMAGE_PIXELS to read it.") from None
    except Exception as error:  # Pillow raises exceptions of many types
        raise ValueError(f"not a valid {file.format.upper()} image: truncated or corrupted.") from error
