"""Image files, through Pillow."""

from __future__ import annotations

import inspect
import io
import os
import warnings
from typing import Any

import numpy as np
import torch

from .._imports import require
from .._limits import LimitError, check_bytes
from .._validation import check_bool
from ..complexes import Complex
from ..convert.images import from_image, gray_pages, has_light_corners, outline_bytes, plain_mask, stack_pages
from .formats import IMAGES, File, load

LARGE = 2**24  # pixels
IMAGE_OPTIONS = tuple(name for name in inspect.signature(from_image).parameters if name != "image")


def read_image(file: File, *, invert: bool = False, dtype: torch.dtype | None = None, **options: Any) -> Complex:
    """The foreground of an image, or of the volume in a multi-page TIFF file. Options as in :func:`from_image`."""
    check_bool(invert, "invert")
    image = stack_pages(_pages(file, invert))
    if image.size > LARGE and (mask := plain_mask(image, invert=invert, **options)) is not None:
        if mask.any():
            image, invert, options = mask, False, {**options, "threshold": None}
        else:
            image = np.array([[image.min(), image.max()]])  # the error names them
    size = " x ".join(map(str, image.shape))
    check_bytes(outline_bytes(image, invert=invert, **options), f"the outline of an image of {size} pixels")
    complex = from_image(image, invert=invert, **options)
    return complex if dtype is None else complex.to(dtype)


def has_light_background(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an image with light corners, whose background would be taken for the shape."""
    try:
        file = load(path)
        return file.format in IMAGES and has_light_corners(_pages(file, invert=False)[0])
    except (ValueError, OSError):  # reported when the file is read
        return False


def _pages(file: File, invert: bool) -> list[np.ndarray[Any, Any]]:
    pillow = require("PIL.Image", extra="mesh")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Corrupt EXIF|Truncated File")
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # we have a limit of our own
            with pillow.open(io.BytesIO(file.content)) as image:
                return gray_pages(image, background=float(invert))
    except (ImportError, MemoryError, LimitError):
        raise
    except pillow.DecompressionBombError as error:
        raise ValueError(f"{error} Raise PIL.Image.MAX_IMAGE_PIXELS to read it.") from None
    except Exception as error:  # Pillow raises exceptions of many types
        raise ValueError(f"not a valid {file.format.upper()} image: truncated or corrupted.") from error
