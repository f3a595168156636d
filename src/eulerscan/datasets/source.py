"""The source of a run's shapes, as its ``config.json`` records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ..io import Failure
from .dataset import Dataset
from .folder import load_folder
from .registry import load
from .splits import fold


def load_source(source: Mapping[str, Any], *, cache: bool = True) -> tuple[Dataset, list[Failure]]:
    """Load the shapes that a run is trained on, and the files that could not be read.

    Args:
        source: ``{"name": ..., "options": {...}}`` for a data set; ``{"folder": ..., "seed": ..., "options": {...}}`` for a
            folder, with its ``table``, ``label``, ``strata``, ``only`` and ``skip_small`` if they were given. With ``"fold":
            [k, n]``, fold ``k`` of ``n`` is for test. With ``"refit": true``, training and validation shapes are all for
            training.
        cache: Whether to use the cache folder for the shapes of a folder.
    """
    failures: list[Failure] = []
    if "name" in source:
        dataset = load(source["name"], **source["options"])
    else:
        names = ("seed", "table", "label", "strata", "only", "skip_small")
        given = {name: source[name] for name in names if name in source}
        dataset, failures = load_folder(Path(source["folder"]), cache=cache, **given, **source["options"])
    return split_source(dataset, source), failures


def split_source(dataset: Dataset, source: Mapping[str, Any]) -> Dataset:
    """The data set with the splits that its source names, if any."""
    splits = dataset.splits
    if "fold" in source:
        seed = source.get("seed", source["options"].get("seed", 0))
        splits = fold(dataset.labels, *source["fold"], strata=dataset.strata or None, seed=seed)
    if source.get("refit"):
        both = torch.cat([splits["train"], splits["val"]]).sort().values
        splits = {**splits, "train": both, "val": both[:0]}
    return replace(dataset, splits=splits)
