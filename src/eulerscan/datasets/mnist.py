"""MNIST: handwritten digits as point clouds or meshes."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .._progress import progress
from .._validation import check_choice
from ..complexes import Complex, collate
from .dataset import Dataset
from .download import Source, reading
from .pixels import triangulate

FORMS = {"points": 0, "meshes": 2}
CHUNK = 2000
# URL and checksums of torchvision.datasets.MNIST.
URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
DIGITS = tuple("0123456789")
NUM_VALIDATION = 5000  # the first training digits, as in the superpixel benchmark


def mnist(name: str = "mnist", *, form: str = "points") -> Dataset:
    """The 70,000 digits, in the square [-1/2, 1/2] x [-1/2, 1/2].

    The first 5,000 of the 60,000 training digits are for validation.

    Args:
        form: ``points``, the nonzero pixels; or ``meshes``, their alpha complex with alpha 0.03, as in the paper.
    """
    check_choice(form, "form", tuple(FORMS))
    images, labels, splits = read()
    return Dataset(name, shapes_of(images, form), labels, DIGITS, splits)


def shapes_of(images: Tensor, form: str) -> Complex:
    """The complexes of images ``[n, height, width]``."""
    # On a grid of 28 x 28 pixels, alpha 0.03 is 0.81 times the side of a pixel: see triangulate().
    chunks = progress(images.split(CHUNK), f"MNIST {form}", total=math.ceil(len(images) / CHUNK))
    return collate([triangulate(chunk > 0, dimension=FORMS[form]) for chunk in chunks])


def read() -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Images ``[70000, 28, 28]`` uint8, labels, and splits."""
    images = torch.cat(
        [_read(f"{part}-images-idx3-ubyte.gz", (count, 28, 28)) for part, count in (("train", 60000), ("t10k", 10000))]
    )
    labels = torch.cat([_read(f"{part}-labels-idx1-ubyte.gz", (count,)) for part, count in (("train", 60000), ("t10k", 10000))])
    return images, labels.long(), official_splits()


def official_splits() -> dict[str, Tensor]:
    """The official test split; the first training digits are for validation."""
    val, train, test = torch.arange(70000).split([NUM_VALIDATION, 60000 - NUM_VALIDATION, 10000])
    return {"train": train, "val": val, "test": test}


def _read(file: str, shape: tuple[int, ...]) -> Tensor:
    with reading(Source(f"mnist/{file}", f"{URL}/{file}", MD5[file])) as path:
        return parse_idx(path, shape)


def parse_idx(path: Path, shape: tuple[int, ...]) -> Tensor:
    """A tensor of bytes from a gzipped file in IDX format: magic number, shape, values."""
    with gzip.open(path) as file:
        content = file.read()
    header = np.array([0x0800 + len(shape), *shape], dtype=">i4").tobytes()
    if not content.startswith(header) or len(content) != len(header) + math.prod(shape):
        raise ValueError(f"not an IDX file of shape {list(shape)}")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=len(header)).view(shape)
