"""Choosing a classifier: candidates that fit the data, each trained as a run; the best on validation is kept."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._storage import replacing
from ..datasets import Dataset
from ..nn.models import Classifier
from . import distributed
from .config import ModelConfig, RunConfig, TrainingConfig
from .loop import train
from .runs import check_folder, start

LARGEST_SVM = 8000  # training shapes; time and memory of an SVM grow with their square
STEPS = 2000  # of a network, roughly


class Candidate(NamedTuple):
    """A classifier to try."""

    name: str
    model: ModelConfig
    training: TrainingConfig


class Choice(NamedTuple):
    """The candidates with their scores on validation and test, in percent, and the one that is kept."""

    scores: dict[str, dict[str, float]]
    kept: str


def candidates(dataset: Dataset, model: ModelConfig | None = None, training: TrainingConfig | None = None) -> list[Candidate]:
    """Classifiers that fit the data: SVMs for few shapes, and convolutions along curves that see directions or do not.

    Grid, batch size, number of epochs and the rest follow from dimension, kind and number of shapes.

    Args:
        dataset: The shapes, with a training split.
        model: Options of the model that are not left to the data, such as ``num_directions``.
        training: Options of the training. Those that differ from their defaults are kept.
    """
    count = len(dataset.indices("train"))
    sizes = dataset.shapes.offsets[0].diff()
    clouds = dataset.shapes.max_dim == 0
    base = _completed(
        replace(model or ModelConfig(), model="svm"),
        num_directions=32 if dataset.shapes.dim == 2 else 64,
        num_thresholds=32,
        learn_directions=False,
        divide_by="vertices" if clouds and int(sizes.min()) < int(sizes.max()) else None,
    )
    batch_size = 16 if count < 500 else 32 if count < 3000 else 64 if count < 30000 else 128
    chosen = TrainingConfig(
        epochs=min(100, max(12, math.ceil(STEPS * batch_size / max(1, count)))),
        batch_size=batch_size,
        learning_rate=3e-3,
        schedule="cosine",
        weight_decay=0.01,
        select_by="last",
    )
    training = training or TrainingConfig()
    changed = {f.name: getattr(training, f.name) for f in fields(training) if getattr(training, f.name) != f.default}
    network = replace(chosen, **changed)
    found = []
    if count <= LARGEST_SVM:
        found.append(Candidate("svm", replace(base, scale=base.scale or math.inf), network))
        if dataset.shapes.dim == 2:
            found.append(Candidate("svm-spectrum", replace(base, spectrum=True), network))
    for name, directed in (("curves", True), ("curves-invariant", False)):
        found.append(Candidate(name, replace(base, model="curves", directed=directed), network))
    return found


def choose(
    folder: Path,
    dataset: Dataset,
    source: dict[str, Any],
    tried: list[Candidate],
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_candidate: Callable[[str], None] | None = None,
) -> Choice:
    """Train all candidates, and keep the one with the best accuracy on validation as the run in ``folder``.

    Each candidate is a run in ``folder.parent / "candidates"``. Resumed, finished ones are not repeated. ``choice.json`` in the
    folder lists the scores. The test split is not used for the choice.
    """
    check_folder(folder, resume=resume, overwrite=overwrite)
    scores: dict[str, dict[str, float]] = {}
    for name, model, training in tried:
        if on_candidate is not None:
            on_candidate(name)
        config, place = RunConfig.of(dataset, source, model, training), _place(folder, name)
        result = start(place, config, dataset, resume=resume or not overwrite, overwrite=overwrite)
        scores[name] = {"validation": result["val_accuracy"], "test": result["test_accuracy"]}
    kept = max(scores, key=lambda name: scores[name]["validation"])  # the first of equals
    if distributed.is_first():
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(_place(folder, kept), folder)
        with replacing(folder / "choice.json") as partial:
            partial.write_text(json.dumps({"kept": kept, "scores": scores}, indent=2) + "\n", encoding="utf-8")
    distributed.barrier()
    return Choice(scores, kept)


def auto(
    dataset: Dataset, model: ModelConfig | None = None, training: TrainingConfig | None = None, *, progress: bool = True
) -> Classifier:
    """A classifier trained on a data set: the best of a few on its validation split.

    Args:
        dataset: With the splits ``"train"`` and ``"val"``.
        model, training: What is not left to the data, as in :func:`~eulerscan.training.choice.candidates`.
        progress: Whether to show a progress bar.

    Example:
        >>> from eulerscan.datasets import load
        >>> shapes = load("manifolds", num_shapes=20, num_points=40)
        >>> model = auto(shapes, training=TrainingConfig(epochs=2), progress=False)
        >>> model(torch.rand(2, 40, 3)).shape
        torch.Size([2, 4])
    """
    best: tuple[float, Classifier] | None = None
    for _, config, settings in candidates(dataset, model, training):
        made = config.build(dataset.shapes.dim, len(dataset.classes), seed=settings.seed)
        score = train(made, dataset, settings, progress=progress).history[-1]["val_accuracy"]
        if best is None or score > best[0]:
            best = score, made
    assert best is not None
    return best[1].eval()


def majority(dataset: Dataset, split: str = "test") -> float:
    """Accuracy in percent of always predicting the largest class of the training split."""
    largest = torch.bincount(dataset.labels[dataset.indices("train")]).argmax()
    return 100 * float((dataset.labels[dataset.indices(split)] == largest).double().mean())


def _completed(config: ModelConfig, **values: Any) -> ModelConfig:
    """The configuration with values for options that are ``None``."""
    return replace(config, **{name: value for name, value in values.items() if getattr(config, name) is None})


def _place(folder: Path, name: str) -> Path:
    return folder.parent / "candidates" / f"{folder.name}-{name}"
