"""The cache of prepared data sets: one uncompressed NPZ file for each name and choice of options."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._storage import replacing
from ..complexes import Complex
from ..complexes.packed import Packed
from .dataset import Dataset

FORMAT = 2  # of the files; increase it with every change of their content
_SPLIT = "split "

logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """The folder of raw files and prepared data sets: ``EULERSCAN_DATA``, or ``eulerscan`` in the user's cache folder."""
    given = os.environ.get("EULERSCAN_DATA")
    folder = Path(given or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "eulerscan").expanduser()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"EULERSCAN_DATA must be a folder, got the file {folder}.")
    return folder


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Atomic write to the cache folder (:func:`replacing`), with an error that names ``path`` and the remedy."""
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        raise OSError(
            error.errno,
            f"Could not write {path}: {error.strerror or error}. Check free space and write access, or set EULERSCAN_DATA to "
            "another folder",
        ) from error


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
    """Load a data set from the cache. ``None`` if it is not there, or if the file is damaged."""
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
        logger.info("%s is damaged (%s), so %s is prepared again.", path, error, name)
        return None


def save(dataset: Dataset, options: Mapping[str, Any]) -> None:
    """Save a data set to the cache, atomically."""
    packed = dataset.shapes.packed
    arrays = {
        "key": np.array(_key(dataset.name, options)),
        "points": packed.points.numpy(),
        "offsets": packed.offsets.numpy(),
        "rows": np.array(packed.rows, dtype=np.int64),
        "simplices": packed.simplices.numpy(),
        "labels": dataset.labels.numpy(),
        "classes": np.array(dataset.classes, dtype=np.str_),
        **{_SPLIT + name: indices.numpy() for name, indices in dataset.splits.items()},
    }
    if packed.weights is not None:
        arrays["weights"] = packed.weights.numpy()
    with writing(path_of(dataset.name, options)) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **{name: np.asarray(array, order="C") for name, array in arrays.items()})


def _key(name: str, options: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "options": dict(options), "format": FORMAT}, sort_keys=True)


def _restore(name: str, arrays: Mapping[str, NDArray[Any]]) -> Dataset:
    tensors = {key: torch.from_numpy(array) for key, array in arrays.items() if key not in ("key", "classes")}
    rows = tuple(tensors["rows"].tolist())
    packed = Packed(tensors["points"], tensors["offsets"], rows, tensors["simplices"], tensors.get("weights"))
    _check(packed)
    splits = {key.removeprefix(_SPLIT): tensor for key, tensor in tensors.items() if key.startswith(_SPLIT)}
    return Dataset(name, Complex.from_packed(packed), tensors["labels"], tuple(arrays["classes"].tolist()), splits)


def _check(packed: Packed) -> None:
    """Check that the tensors are consistent, as far as that is fast: kernels check no bounds."""
    points, offsets, rows, simplices, weights = packed
    counts = offsets[:, -1].tolist()
    entries = sum(r * n for r, n in zip(rows, counts[1:], strict=True))
    consistent = (
        points.ndim == 2
        and counts[0] == len(points)
        and bool((offsets[:, 0] == 0).all())
        and bool((offsets.diff(dim=1) >= 0).all())
        and simplices.shape == (entries,)
        and (entries == 0 or _within(simplices, len(points)))
        and bool(torch.isfinite(points).all())
        and (weights is None or (weights.shape == (sum(counts),) and bool(torch.isfinite(weights).all())))
    )
    if not consistent:
        raise ValueError("its tensors are inconsistent")


def _within(indices: Tensor, count: int) -> bool:
    low, high = indices.aminmax()
    return int(low) >= 0 and int(high) < count
