"""Prepared data sets in the cache folder: one uncompressed NPZ file for each name and choice of options."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..io.cache import DAMAGED, cache_folder, from_arrays, load_npz, save_npz, to_arrays, writing
from .dataset import Dataset

FORMAT = 2  # of the files; increase it with every change of their content
_SPLIT = "split "

logger = logging.getLogger(__name__)


def path_of(name: str, options: Mapping[str, Any]) -> Path:
    """The file of a data set. Its name shows the options, and a hash of them and of the format."""
    readable = re.sub(r"[^\w=.+-]", "-", "_".join(f"{option}={value}" for option, value in options.items()))[:100]
    digest = hashlib.sha256(_key(name, options).encode()).hexdigest()[:10]
    return _folder(name) / f"{readable or 'all'}-{digest}.npz"


def files_of(name: str) -> list[Path]:
    """The cached files of a data set, with any options."""
    return sorted(_folder(name).glob("[!.]*.npz"))


def _folder(name: str) -> Path:
    return cache_folder() / "prepared" / name


def load(name: str, options: Mapping[str, Any]) -> Dataset | None:
    """Load a data set from the cache folder. ``None`` if it is not there, or if the file is damaged."""
    path = path_of(name, options)
    try:
        arrays = load_npz(path)
        if str(arrays["key"]) != _key(name, options):
            raise ValueError("it holds another data set")
        labels = torch.from_numpy(arrays["labels"])
        splits = {key.removeprefix(_SPLIT): torch.from_numpy(array) for key, array in arrays.items() if key.startswith(_SPLIT)}
        return Dataset(name, from_arrays(arrays), labels, tuple(arrays["classes"].tolist()), splits)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DAMAGED as error:
        logger.info("%s is damaged (%s), so %s is prepared again.", path, error, name)
        return None


def save(dataset: Dataset, options: Mapping[str, Any]) -> None:
    """Save a data set to the cache folder, atomically."""
    arrays = {
        "key": np.array(_key(dataset.name, options)),
        **to_arrays(dataset.shapes),
        "labels": dataset.labels.numpy(),
        "classes": np.array(dataset.classes, dtype=np.str_),
        **{_SPLIT + name: indices.numpy() for name, indices in dataset.splits.items()},
    }
    save_npz(path_of(dataset.name, options), arrays, write=writing)


def _key(name: str, options: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "options": dict(options), "format": FORMAT}, sort_keys=True)
