"""Prepared data sets on disk: one uncompressed npz file for each name and choice of options."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..complexes import Complex
from ..complexes.packed import Packed
from .dataset import Dataset
from .places import cache_folder, writing

FORMAT = 2  # of what is stored; raise it with every change to what a data set holds
_SPLIT = "split "

logger = logging.getLogger(__name__)


def path_of(name: str, options: Mapping[str, Any]) -> Path:
    """The file of a data set: options to read, and a hash of them and of the format."""
    readable = re.sub(r"[^\w=.+-]", "-", "_".join(f"{option}={value}" for option, value in options.items()))[:100]
    digest = hashlib.sha256(_key(name, options).encode()).hexdigest()[:10]
    return _folder(name) / f"{readable or 'all'}-{digest}.npz"


def files_of(name: str) -> list[Path]:
    """The files of a data set that are there, whatever their options."""
    return sorted(_folder(name).glob("[!.]*.npz"))


def _folder(name: str) -> Path:
    return cache_folder() / "prepared" / name


def load(name: str, options: Mapping[str, Any]) -> Dataset | None:
    """The data set as it was saved, or ``None`` where it was not, or where the file is broken."""
    path = path_of(name, options)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        if str(arrays["key"]) != _key(name, options):
            raise ValueError("it holds another data set")
        return _restore(name, arrays)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (zipfile.BadZipFile, EOFError, KeyError, IndexError, TypeError, ValueError, NotImplementedError) as error:
        logger.info("%s is broken (%s), so %s is prepared again.", path, error, name)
        return None


def save(dataset: Dataset, options: Mapping[str, Any]) -> None:
    """Write a data set, whole or not at all."""
    shapes = dataset.shapes
    arrays = {
        "key": np.array(_key(dataset.name, options)),
        "points": shapes.points.numpy(),
        "offsets": shapes.offsets.numpy(),
        "rows": np.array(shapes.rows, dtype=np.int64),
        "simplices": shapes.packed.simplices.numpy(),
        "labels": dataset.labels.numpy(),
        "classes": np.array(dataset.classes, dtype=np.str_),
        **{_SPLIT + name: indices.numpy() for name, indices in dataset.splits.items()},
    }
    if shapes.packed.weights is not None:
        arrays["weights"] = shapes.packed.weights.numpy()
    with writing(path_of(dataset.name, options)) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **{name: np.asarray(array, order="C") for name, array in arrays.items()})


def _key(name: str, options: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "options": dict(options), "format": FORMAT}, sort_keys=True)


def _restore(name: str, arrays: Mapping[str, NDArray[Any]]) -> Dataset:
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items() if key not in ("key", "classes")}
    rows = tuple(tensors["rows"].tolist())
    packed = Packed(tensors["points"], tensors["offsets"], rows, tensors["simplices"], tensors.get("weights"))
    shapes = Complex.from_packed(packed)
    _check(shapes)
    splits = {key.removeprefix(_SPLIT): tensor for key, tensor in tensors.items() if key.startswith(_SPLIT)}
    return Dataset(name, shapes, tensors["labels"], tuple(arrays["classes"].tolist()), splits)


def _check(shapes: Complex) -> None:
    """That the parts of a complex fit together, as far as that takes no time to speak of."""
    points, offsets, packed = shapes.points, shapes.offsets, shapes.packed.simplices
    counts = offsets[:, -1].tolist()
    entries = sum(r * n for r, n in zip(shapes.rows, counts[1:], strict=True))
    consistent = (
        points.ndim == 2
        and counts[0] == len(points)
        and bool((offsets[:, 0] == 0).all())
        and bool((offsets.diff(dim=1) >= 0).all())
        and packed.shape == (entries,)
        and (entries == 0 or _within(packed, len(points)))
        and bool(torch.isfinite(points).all())
        and _fits(shapes.packed.weights, sum(counts))
    )
    if not consistent:
        raise ValueError("its parts do not fit together")


def _within(indices: Tensor, count: int) -> bool:
    low, high = indices.aminmax()
    return int(low) >= 0 and int(high) < count


def _fits(weights: Tensor | None, count: int) -> bool:
    return weights is None or (weights.shape == (count,) and bool(torch.isfinite(weights).all()))
