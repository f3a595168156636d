"""The small handwritten digits of scikit-learn, which need no download."""

from __future__ import annotations

import torch

from .._imports import require
from .._validation import check_choice
from .dataset import Dataset
from .pixels import triangulate

FORMS = {"points": 0, "graphs": 1, "meshes": 2, "pixels": 2}
BRIGHTEST = 16


def digits(name: str = "digits", *, form: str = "meshes", threshold: int = 7) -> Dataset:
    """1,797 handwritten digits of 8 x 8 pixels, in the square [-1/2, 1/2] x [-1/2, 1/2].

    Args:
        form: ``points``, the bright pixels; ``graphs``, with edges to bright neighbors; ``meshes``, with the triangles between
            them; or ``pixels``, the triangulation of all pixels, weighted by brightness from 0 to 1 (the weight of a simplex
            is the largest of its vertices).
        threshold: Pixels, from 0 to 16, are bright above this value. At 7 most digits have the expected holes. Not used for
            ``pixels``.

    Example:
        >>> digits(form="meshes").shapes[:3].euler_characteristic()
        tensor([0, 1, 1])
    """
    check_choice(form, "form", tuple(FORMS))
    if not 0 <= threshold < BRIGHTEST:
        raise ValueError(f"threshold must be from 0 to {BRIGHTEST - 1}, got {threshold}.")
    bunch = require("sklearn.datasets", extra="sklearn").load_digits()
    images, labels = torch.from_numpy(bunch.images).float(), torch.from_numpy(bunch.target).long()
    foreground = torch.ones_like(images, dtype=torch.bool) if form == "pixels" else images > threshold
    shapes = triangulate(foreground, dimension=FORMS[form])
    if form == "pixels":
        shapes = shapes.with_weights(images.reshape(-1) / BRIGHTEST)
    return Dataset(name, shapes, labels, tuple(str(digit) for digit in bunch.target_names))
