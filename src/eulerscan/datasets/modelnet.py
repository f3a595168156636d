"""ModelNet40: point clouds of everyday objects."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..complexes import as_complex
from .dataset import Dataset
from .download import Source, reading

MOST_POINTS = 1024
SCALE = 32767
RECIPE = (
    "it holds 1024 points in random order on each mesh of Princeton's ModelNet40, normalized to the unit ball, as "
    "arrays xyz_i16 [objects, 1024, 3] (int16, coordinates times 32767), y [objects] and class_names [40]."
)


def modelnet40(name: str = "modelnet40", *, num_points: int = 1024) -> Dataset:
    """12,311 objects of 40 classes as point clouds in the unit ball, with the official test split.

    Args:
        num_points: Number of points in each cloud, at most 1024. The files hold them in random order, and the first are taken.
    """
    if not 1 <= num_points <= MOST_POINTS:
        raise ValueError(f"num_points must be from 1 to {MOST_POINTS}, got {num_points}.")
    (train, train_labels, classes), (test, test_labels, _) = (
        _read(f"{split}_{MOST_POINTS}.npz", count, num_points) for split, count in (("train", 9843), ("test", 2468))
    )
    indices = torch.arange(len(train) + len(test)).split([len(train), len(test)])
    shapes = as_complex(torch.cat([train, test]).to(torch.float32).div_(SCALE))
    return Dataset(
        name, shapes, torch.cat([train_labels, test_labels]), classes, dict(zip(("train", "test"), indices, strict=True))
    )


def _read(file: str, count: int, num_points: int) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    with reading(Source(f"modelnet40/{file}", recipe=RECIPE)) as path:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            points, labels, classes = (arrays[key] for key in ("xyz_i16", "y", "class_names"))
        if points.shape != (count, MOST_POINTS, 3) or points.dtype != np.int16 or labels.shape != (count,):
            raise ValueError(f"its arrays must hold {count} clouds of {MOST_POINTS} points")
    return torch.from_numpy(points[:, :num_points]), torch.from_numpy(labels.astype(np.int64)), tuple(classes.tolist())
