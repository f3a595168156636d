"""Choosing a classifier: candidates that fit the data, each trained as a run; the best on validation is kept."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from .._storage import replacing
from ..datasets import Dataset
from ..datasets.source import split_source
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
    """The candidates with their scores on validation and test, in percent, the one that is kept, and why."""

    scores: dict[str, dict[str, float]]
    kept: str
    reasons: list[str]


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
        given = model is not None and model.num_thresholds is not None
        fine = replace(base, num_thresholds=64) if dataset.shapes.dim == 2 and not given else base
        found.append(Candidate("svm", fine, network))
        if not fine.derivative:
            found.append(Candidate("svm-derivative", replace(fine, derivative=True), network))
        if dataset.shapes.dim in (2, 3) and not base.random_directions:
            found.append(Candidate("svm-spectrum", replace(fine, spectrum=True), network))
    for name, directed in (("curves", True), ("curves-invariant", False)):
        found.append(Candidate(name, replace(base, model="curves", directed=directed), network))
    return found


def choose(
    folder: Path,
    dataset: Dataset,
    source: dict[str, Any],
    tried: list[Candidate],
    *,
    budget: float | None = None,
    resume: bool = False,
    overwrite: bool = False,
    on_candidate: Callable[[str], None] | None = None,
    device: torch.device | None = None,
) -> Choice:
    """Train all candidates, and train the one with the best accuracy on validation again as the run in ``folder``.

    The last training is on training and validation shapes together, unless an epoch is selected by validation. Each candidate
    is a run in ``folder.parent / "candidates"``. Resumed, finished ones are not repeated. ``choice.json`` in the folder lists
    the scores. The test split is not used for the choice.

    Args:
        budget: Seconds for everything. Networks get fewer epochs, or are left out; SVMs take as long as they need.
    """
    _check_validation(dataset)
    check_folder(folder, resume=resume, overwrite=overwrite)
    end = None if budget is None else time.monotonic() + budget
    is_made = resume and not overwrite and (folder / "config.json").exists()  # the choice: what was left out stays out
    scores: dict[str, dict[str, float]] = {}
    trained: dict[str, Candidate] = {}
    for number, candidate in enumerate(tried):
        place = _place(folder, candidate.name)
        if end is not None:
            if is_made and scores and not (place / "config.json").exists():
                continue
            share = (end - time.monotonic()) / (len(tried) - number + 1)  # one for the last training
            within = _within(candidate, dataset, share, None if overwrite else place, device)
            if within is None and scores:
                continue
            candidate = within or _with_epochs(candidate, 1)
        if on_candidate is not None:
            on_candidate(candidate.name)
        config = RunConfig.of(dataset, source, candidate.model, candidate.training)
        result = start(place, config, dataset, resume=resume or not overwrite, overwrite=overwrite, device=device)
        scores[candidate.name] = {"validation": result["val_accuracy"], "test": result["test_accuracy"]}
        trained[candidate.name] = candidate
    kept = max(scores, key=lambda name: scores[name]["validation"])  # the first of equals
    _, model, training = trained[kept]
    if _refits(training):
        source = source | {"refit": True}
    whole = split_source(dataset, source)
    start(folder, RunConfig.of(whole, source, model, training), whole, resume=resume, overwrite=overwrite, device=device)
    choice = Choice(scores, kept, _reasons(dataset, trained[kept], scores[kept]["validation"]))
    if distributed.is_first():
        with replacing(folder / "choice.json") as partial:
            partial.write_text(json.dumps(choice._asdict(), indent=2) + "\n", encoding="utf-8")
    distributed.barrier()
    return choice


def auto(
    dataset: Dataset, model: ModelConfig | None = None, training: TrainingConfig | None = None, *, progress: bool = True
) -> Classifier:
    """A classifier trained on a data set: the best of a few on its validation split, trained again with that split.

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
    _check_validation(dataset)
    best: tuple[float, Candidate, Classifier] | None = None
    for candidate in candidates(dataset, model, training):
        made = candidate.model.build(dataset.shapes.dim, len(dataset.classes), seed=candidate.training.seed)
        score = train(made, dataset, candidate.training, progress=progress).history[-1]["val_accuracy"]
        if best is None or score > best[0]:
            best = score, candidate, made
    assert best is not None
    _, (_, config, settings), made = best
    if _refits(settings):
        made = config.build(dataset.shapes.dim, len(dataset.classes), seed=settings.seed)
        train(made, split_source(dataset, {"options": {}, "refit": True}), settings, progress=progress)
    return made.eval()


def majority(dataset: Dataset, split: str = "test") -> float:
    """Accuracy in percent of always predicting the largest class of the training split."""
    largest = torch.bincount(dataset.labels[dataset.indices("train")]).argmax()
    return 100 * float((dataset.labels[dataset.indices(split)] == largest).double().mean())


def _check_validation(dataset: Dataset) -> None:
    if not len(dataset.splits.get("val", ())):
        raise ValueError(f"The validation split of {dataset.name} must not be empty, since it decides between classifiers.")


def _completed(config: ModelConfig, **values: Any) -> ModelConfig:
    """The configuration with values for options that are ``None``."""
    return replace(config, **{name: value for name, value in values.items() if getattr(config, name) is None})


def _within(
    candidate: Candidate, dataset: Dataset, seconds: float, place: Path | None, device: torch.device | None
) -> Candidate | None:
    """The candidate with as many epochs as the seconds allow, by the time of a first one; None if there is no time for any."""
    if place is not None and (place / "config.json").exists():  # resumed: with the epochs that were chosen before
        return _with_epochs(candidate, RunConfig.read(place / "config.json").training.epochs)
    if candidate.model.model == "svm":
        return candidate
    begin = time.monotonic()
    model = candidate.model.build(dataset.shapes.dim, len(dataset.classes)).to(device or distributed.device())
    seconds_per_epoch = train(model, dataset, _with_epochs(candidate, 1).training, progress=False).seconds_per_epoch
    allowed = torch.tensor((seconds - (time.monotonic() - begin)) / seconds_per_epoch, dtype=torch.float64)
    epochs = int(distributed.all_reduce(allowed) / distributed.world_size())  # the same in every process
    return _with_epochs(candidate, min(epochs, candidate.training.epochs)) if epochs >= 1 else None


def _refits(training: TrainingConfig) -> bool:
    """Whether the last training can do without validation shapes."""
    return training.select_by == "last" and not training.patience


def _with_epochs(candidate: Candidate, epochs: int) -> Candidate:
    return candidate._replace(training=replace(candidate.training, epochs=epochs))


def _reasons(dataset: Dataset, kept: Candidate, score: float) -> list[str]:
    """Sentences about what was chosen, and why."""
    count, model, training = len(dataset.indices("train")), kept.model, kept.training
    space = {2: "in the plane", 3: "in space"}.get(dataset.shapes.dim, f"in {dataset.shapes.dim} dimensions")
    reasons = [
        f"kept {kept.name}: no other is better on {len(dataset.indices('val'))} validation shapes ({score:.1f} %)",
        f"{model.num_directions} directions x {model.num_thresholds} thresholds, since the shapes are {space}",
    ]
    if model.model != "svm":
        reasons.append(f"{training.epochs} epochs of batches of {training.batch_size}, since {count} shapes are for training")
    if _refits(training):
        reasons.append("then trained again on training and validation shapes together")
    return reasons


def _place(folder: Path, name: str) -> Path:
    return folder.parent / "candidates" / f"{folder.name}-{name}"
