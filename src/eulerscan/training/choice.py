"""Choosing a classifier: candidates that fit the data, each trained as a run, and their ensemble; validation decides."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._storage import write_json
from ..datasets import Dataset
from ..datasets.dataset import check_dataset
from ..datasets.source import split_source
from ..nn.models import Classifier, Ensemble
from ..nn.models.classifier import is_ahead
from ..nn.models.ensemble import averaged, calibrate
from . import distributed
from .augmentation import Augmentation
from .checkpoints import Epoch
from .config import EnsembleConfig, ModelConfig, RunConfig, TrainingConfig, default_grid
from .loop import predict, train
from .runs import check_folder, load_run, save_run, start

LARGEST_SVM = 8000  # training shapes; time and memory of an SVM grow with their square
STEPS = 2000  # of a network, roughly
AUGMENTATION = Augmentation(rotate=10.0, squeeze=0.1, jitter=0.005)  # of networks, small enough to keep most classes
ANY_ORIENTATION = Augmentation(tumble=True, squeeze=0.1, jitter=0.005)  # where the SVM on spectra is ahead
SPECTRUM = "svm-spectrum"
MOST_AUGMENTED = 6e7  # vertices in all epochs, whose transforms take a minute; else transforms are computed once
FEWEST = 0.2  # of its epochs: a network that a budget gives less would only disturb the ensemble
ENSEMBLE = "ensemble"  # of all candidates


class Candidate(NamedTuple):
    """A classifier to try, or an ensemble of those that were tried.

    Attributes:
        adapts: Whether :func:`choose` may let it see shapes in any orientation.
    """

    name: str
    model: ModelConfig | EnsembleConfig
    training: TrainingConfig
    adapts: bool = False


class Choice(NamedTuple):
    """The candidates with their scores on validation and test, in percent, the one that is kept, and why."""

    scores: dict[str, dict[str, float]]
    kept: str
    reasons: list[str]


def candidates(dataset: Dataset, model: ModelConfig | None = None, training: TrainingConfig | None = None) -> list[Candidate]:
    """Classifiers that fit the data: SVMs for few shapes, and convolutions along curves that see directions or do not.

    Grid, batch size, number of epochs and the rest follow from dimension, kind and number of shapes. Networks see shapes
    rotated, squeezed and jittered a little, unless these are so large that new transforms in every epoch would take minutes.
    :func:`choose` and :func:`auto` rotate them at random instead where the SVM on spectra, which rotations hardly change, is
    better on validation than those on transforms by more than a standard error.

    Args:
        dataset: The shapes, with a training split.
        model: Options of the model that are not left to the data, such as ``num_directions``.
        training: Options of the training. Those that differ from their defaults are kept. So an augmentation that changes next
            to nothing, such as ``Augmentation(jitter=1e-6)``, turns that of the networks off.
    """
    check_automatic(model)
    count = len(dataset.indices("train"))
    sizes = dataset.shapes.offsets[0].diff()
    clouds = dataset.shapes.max_dim == 0
    (num_directions, num_thresholds), (_, fine_thresholds) = (
        default_grid(name, dataset.shapes.dim) for name in ("curves", "svm")
    )
    base = _completed(
        replace(model or ModelConfig(), model="svm"),
        num_directions=num_directions,
        num_thresholds=num_thresholds,
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
        augmentation=AUGMENTATION,
    )
    default, training = TrainingConfig(), training or TrainingConfig()
    names = [field.name for field in fields(training)]
    network = replace(chosen, **{n: getattr(training, n) for n in names if getattr(training, n) != getattr(default, n)})
    adapts = not training.augmentation
    if adapts and int(sizes[dataset.indices("train")].sum()) * network.epochs > MOST_AUGMENTED:
        network, adapts = replace(network, augmentation=Augmentation()), False
    found = []
    if count <= LARGEST_SVM:
        given = model is not None and model.num_thresholds is not None
        fine = base if given else replace(base, num_thresholds=fine_thresholds)
        found.append(Candidate("svm", fine, network))
        if not fine.derivative:
            found.append(Candidate("svm-derivative", replace(fine, derivative=True), network))
        free = dataset.shapes.dim == 3 and (model is None or model.num_directions is None)
        spectrum = replace(fine, spectrum=True, num_directions=None if free else fine.num_directions)
        if has_spectrum := dataset.shapes.dim in (2, 3) and not base.random_directions:
            found.append(Candidate(SPECTRUM, spectrum, network))
        plain = not (fine.derivative or fine.random_directions or fine.rotate_directions) and fine.max_dim is None
        if plain and not clouds and dataset.shapes.weights is None and dataset.shapes.is_simplicial:
            found.append(Candidate("svm-joint", replace(fine, joint=True), network))
            if has_spectrum:
                found.append(Candidate("svm-joint-spectrum", replace(spectrum, joint=True), network))
    for name, directed in (("curves", True), ("curves-invariant", False)):
        curves = replace(base, model="curves", directed=directed, cost=None, spectrum=None, joint=None)
        found.append(Candidate(name, curves, network, adapts))
    return found


def check_automatic(model: ModelConfig | None) -> None:
    """Raise for options of the model that :func:`candidates` varies."""
    for name in ("spectrum", "joint"):
        if model is not None and getattr(model, name) is not None:
            raise ValueError(
                f"{name} must not be given unless the model is svm: the automatic choice tries it, got {getattr(model, name)}."
            )


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
    on_epoch: Callable[[Path, Epoch], None] | None = None,
    device: torch.device | None = None,
) -> Choice:
    """Train all candidates. Train their ensemble, or the best of them, again as the run in ``folder``.

    The ensemble is kept unless a single candidate is better on validation by more than a standard error. The last training is
    on training and validation shapes together, unless an epoch is selected by validation. Each candidate is a run in
    ``folder.parent / "candidates"``. Resumed, finished ones are not repeated. ``choice.json`` in the folder lists the scores.
    The test split is not used for the choice.

    Args:
        budget: Seconds for everything. Networks get fewer epochs, or are left out; SVMs take as long as they need.
        on_candidate: Called with the name of each candidate before it is trained.
        on_epoch: Called after each epoch of a network, with the folder of its run. SVMs and ensembles have none.
    """
    _check_validation(dataset)
    labels, strata = _validation(dataset)
    if distributed.is_first():
        check_folder(folder, resume=resume, overwrite=overwrite)
    end = None if budget is None else time.monotonic() + budget
    is_made = resume and not overwrite and (folder / "config.json").exists()  # the choice: what was left out stays out
    trained: list[Candidate] = []
    logits: dict[str, dict[str, Tensor]] = {"val": {}, "test": {}}
    earlier = {
        one.name: made for one in tried if not overwrite and (made := _training_of(_place(folder, one.name))) is not None
    }
    decided = [earlier[one.name].augmentation == ANY_ORIENTATION for one in tried if one.adapts and one.name in earlier]
    any_orientation = decided[0] if decided else None  # as before, even on a processor that rounds otherwise
    for number, candidate in enumerate(tried):
        place, made = _place(folder, candidate.name), earlier.get(candidate.name)
        if candidate.adapts:
            if any_orientation is None:  # once for all networks
                any_orientation = _is_orientation_free(logits["val"], labels, strata)
            candidate = _adapted(candidate, any_orientation)
        if made is not None:
            if _is_network(candidate) and (resume or end is not None):  # with the epochs that a budget allowed
                candidate = _with_epochs(candidate, min(made.epochs, candidate.training.epochs))
        elif is_made and trained:
            continue
        elif end is not None and _is_network(candidate):
            # The networks that are left, and all of them once more in the last training.
            shares = sum(_is_network(other) for other in (*tried[number:], *tried))
            within = _within(candidate, dataset, (end - time.monotonic()) / shares, device)
            if within is None and trained:
                continue
            candidate = within or _with_epochs(candidate, 1)
        if on_candidate is not None:
            on_candidate(candidate.name)
        config = RunConfig.of(dataset, source, candidate.model, candidate.training)
        report = None if on_epoch is None else functools.partial(on_epoch, place)
        start(place, config, dataset, resume=resume or not overwrite, overwrite=overwrite, on_epoch=report, device=device)
        model = load_run(place)[0].to(device or distributed.device())
        for split, found in logits.items():
            found[candidate.name] = predict(model, dataset, split, num_points=candidate.training.num_points)
        trained.append(candidate)
    kept = _decide(trained, logits, labels, strata)
    if is_made:
        kept = _made(folder, trained) or kept
    scores = {
        name: {"validation": _accuracy(found, dataset, "val"), "test": _accuracy(logits["test"][name], dataset, "test")}
        for name, found in logits["val"].items()
    }
    if _refits(kept.training):
        source = source | {"refit": True}
    whole = split_source(dataset, source)
    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "device": device}
    options["on_epoch"] = None if on_epoch is None else functools.partial(on_epoch, folder)
    start(folder, RunConfig.of(whole, source, kept.model, kept.training), whole, **options)
    reasons = _reasons(dataset, kept, scores, bool(any_orientation))
    baseline = labels == _largest(dataset)
    if kept.training.balance == "none" and not is_ahead(logits["val"][kept.name].argmax(dim=1) == labels, baseline, strata):
        share = 100 * float(baseline.double().mean())
        reasons.insert(1, f"{kept.name} is not above the largest class alone, {share:.1f} %, by more than a standard error")
    choice = Choice(scores, kept.name, reasons)
    if distributed.is_first():
        write_json(folder / "choice.json", choice._asdict())
    distributed.barrier()
    return choice


def auto(
    dataset: Dataset,
    model: ModelConfig | None = None,
    training: TrainingConfig | None = None,
    *,
    folder: str | Path | None = None,
    progress: bool = True,
) -> Classifier | Ensemble:
    """A classifier trained on a data set: an ensemble of a few, or the best of them, as
    :func:`~eulerscan.training.choice.choose` decides.

    Args:
        dataset: With the splits ``"train"`` and ``"val"``.
        model, training: What is not left to the data, as in :func:`~eulerscan.training.choice.candidates`.
        folder: Save the classifier here, as a run that :func:`~eulerscan.training.load_run` and `eulerscan predict` read.
        progress: Whether to show a progress bar.

    Example:
        >>> from eulerscan.datasets import load
        >>> shapes = load("manifolds", num_shapes=12, num_points=40)
        >>> model = auto(shapes, ModelConfig(num_directions=16), TrainingConfig(epochs=2), progress=False)
        >>> model(torch.rand(2, 40, 3)).shape
        torch.Size([2, 4])
    """
    check_dataset(dataset)
    _check_validation(dataset)
    if folder is not None:
        check_folder(Path(folder))
    labels, strata = _validation(dataset)
    trained: list[Candidate] = []
    logits: dict[str, Tensor] = {}
    any_orientation: bool | None = None
    for candidate in candidates(dataset, model, training):
        if candidate.adapts:
            if any_orientation is None:
                any_orientation = _is_orientation_free(logits, labels, strata)
            candidate = _adapted(candidate, any_orientation)
        made = _built(candidate, dataset)
        train(made, dataset, candidate.training, progress=progress)
        logits[candidate.name] = predict(made, dataset, "val", num_points=candidate.training.num_points)
        trained.append(candidate)
    kept = _decide(trained, {"val": logits}, labels, strata)
    final = _built(kept, dataset)
    whole = split_source(dataset, {"options": {}, "refit": True}) if _refits(kept.training) else dataset
    train(final, whole, kept.training, progress=progress)
    if folder is not None:
        source = {"name": dataset.name, "options": {}} | ({"refit": True} if whole is not dataset else {})
        save_run(Path(folder), RunConfig.of(whole, source, kept.model, kept.training), final)
    return final.eval()


def _validation(dataset: Dataset) -> tuple[Tensor, list[str] | None]:
    """Labels and blocks of the validation split."""
    indices = dataset.indices("val")
    return dataset.labels[indices].cpu(), [dataset.strata[i] for i in indices.tolist()] if dataset.strata else None


def _is_orientation_free(logits: dict[str, Tensor], labels: Tensor, strata: list[str] | None) -> bool:
    """Whether the SVM on spectra, which rotations hardly change, is better on validation than those on transforms.

    Args:
        logits: Of the candidates so far, on the validation split.
        labels, strata: Of the validation split.
    """
    right = {
        name: found.argmax(dim=1) == labels for name, found in logits.items() if name in ("svm", "svm-derivative", SPECTRUM)
    }
    others = [one for name, one in right.items() if name != SPECTRUM]
    return SPECTRUM in right and bool(others) and all(is_ahead(right[SPECTRUM], other, strata) for other in others)


def _adapted(candidate: Candidate, any_orientation: bool) -> Candidate:
    """The candidate, which sees shapes in any orientation if that is better."""
    if not any_orientation:
        return candidate
    return candidate._replace(training=replace(candidate.training, augmentation=ANY_ORIENTATION))


def _decide(
    trained: list[Candidate], logits: dict[str, dict[str, Tensor]], labels: Tensor, strata: list[str] | None = None
) -> Candidate:
    """The ensemble, unless a candidate is better by more than a standard error. Adds the logits of the ensemble to the others.

    Args:
        logits: For each split, those of each candidate.
        labels, strata: Of the validation split.
    """

    def right(name: str) -> Tensor:
        return logits["val"][name].argmax(dim=1) == labels

    ranked = sorted(trained, key=lambda candidate: int(right(candidate.name).sum()), reverse=True)  # the first of equals
    best = ranked[0]
    if len(ranked) == 1:
        return best
    calibrations = [calibrate(logits["val"][candidate.name], labels) for candidate in ranked]
    for found in logits.values():
        found[ENSEMBLE] = averaged([found[candidate.name] for candidate in ranked], calibrations)
    if is_ahead(right(best.name), right(ENSEMBLE), strata):
        return best
    members = tuple(candidate.model for candidate in ranked if isinstance(candidate.model, ModelConfig))
    return _ensemble(EnsembleConfig(members, *zip(*calibrations, strict=True)), trained)


def _ensemble(model: EnsembleConfig, trained: list[Candidate]) -> Candidate:
    networks = [candidate for candidate in trained if _is_network(candidate)]
    shortest = min((candidate.training for candidate in networks or trained), key=lambda training: training.epochs)
    return Candidate(ENSEMBLE, model, shortest)


def _made(folder: Path, trained: list[Candidate]) -> Candidate | None:
    """The choice of the run in the folder, which must not depend on how the processor that resumes it rounds."""
    model = RunConfig.read(folder / "config.json").model
    if isinstance(model, EnsembleConfig) and set(model.members) == {candidate.model for candidate in trained}:
        return _ensemble(model, trained)
    return next((candidate for candidate in trained if candidate.model == model), None)


def majority(dataset: Dataset) -> float:
    """Accuracy in percent, on the test split, of always predicting the largest class of the training split."""
    return 100 * float((dataset.labels[dataset.indices("test")] == _largest(dataset)).double().mean())


def _largest(dataset: Dataset) -> int:
    """The largest class of the training split."""
    return int(torch.bincount(dataset.labels[dataset.indices("train")]).argmax())


def _check_validation(dataset: Dataset) -> None:
    if not len(dataset.splits.get("val", ())):
        raise ValueError(f"The validation split of {dataset.name} must not be empty, since it decides between classifiers.")


def _completed(config: ModelConfig, **values: Any) -> ModelConfig:
    """The configuration with values for options that are ``None``."""
    return replace(config, **{name: value for name, value in values.items() if getattr(config, name) is None})


def _within(candidate: Candidate, dataset: Dataset, seconds: float, device: torch.device | None) -> Candidate | None:
    """The network with as many epochs as the seconds allow, by the time of a first one; None if these are too few."""
    begin = time.monotonic()
    model = _built(candidate, dataset).to(device or distributed.device())
    seconds_per_epoch = train(model, dataset, _with_epochs(candidate, 1).training, progress=False).seconds_per_epoch
    allowed = torch.tensor((seconds - (time.monotonic() - begin)) / seconds_per_epoch, dtype=torch.float64)
    epochs = int(distributed.all_reduce(allowed) / distributed.world_size())  # the same in every process
    planned = candidate.training.epochs
    return _with_epochs(candidate, min(epochs, planned)) if epochs >= FEWEST * planned else None


def _is_network(candidate: Candidate) -> bool:
    return candidate.model.model != "svm"


def _built(candidate: Candidate, dataset: Dataset) -> Classifier | Ensemble:
    return candidate.model.build(dataset.shapes.dim, len(dataset.classes), seed=candidate.training.seed)


def _accuracy(logits: Tensor, dataset: Dataset, split: str) -> float:
    """In percent."""
    return 100 * float((logits.argmax(dim=1) == dataset.labels[dataset.indices(split)].cpu()).double().mean())


def _refits(training: TrainingConfig) -> bool:
    """Whether the last training can do without validation shapes."""
    return training.select_by == "last" and not training.patience


def _with_epochs(candidate: Candidate, epochs: int) -> Candidate:
    return candidate._replace(training=replace(candidate.training, epochs=epochs))


def _reasons(dataset: Dataset, kept: Candidate, scores: dict[str, dict[str, float]], any_orientation: bool) -> list[str]:
    """Sentences about what was chosen, and why."""
    shapes = f"{len(dataset.indices('val'))} validation shapes"
    own = scores[kept.name]["validation"]
    best = max((name for name in scores if name != ENSEMBLE), key=lambda name: scores[name]["validation"])
    space = {2: "in the plane", 3: "in space"}.get(dataset.shapes.dim, f"in {dataset.shapes.dim} dimensions")
    if isinstance(kept.model, EnsembleConfig):
        members, others = kept.model.members, f"{best} alone {scores[best]['validation']:.1f} %"
        others += ", which is within a standard error" if scores[best]["validation"] > own else ""
        reasons = [f"kept the ensemble of {len(members)} models: {own:.1f} % of {shapes}, {others}"]
    else:
        members, others = (kept.model,), f", the ensemble {scores[ENSEMBLE]['validation']:.1f} %" if ENSEMBLE in scores else ""
        reasons = [f"kept {kept.name}: {own:.1f} % of {shapes}{others}"]
    grids = {
        member.build(dataset.shapes.dim, len(dataset.classes)).layer.config.shape(dataset.shapes.dim)[-2:] for member in members
    }
    listed = " and ".join(f"{directions} directions x {thresholds} thresholds" for directions, thresholds in sorted(grids))
    reasons.append(f"{listed}, since the shapes are {space}")
    if any(member.model != "svm" for member in members):
        count, training = len(dataset.indices("train")), kept.training
        reasons.append(f"{training.epochs} epochs of batches of {training.batch_size}, since {count} shapes are for training")
        if training.augmentation:
            why = f", since {SPECTRUM}, which rotations hardly change, is ahead" if any_orientation else ""
            reasons.append(f"networks saw shapes that were changed at random in each epoch ({training.augmentation}){why}")
    if _refits(kept.training):
        reasons.append(
            "then trained again on training and validation shapes together: the test accuracy below is that of after, those "
            "in the table are of before"
        )
    return reasons


def _training_of(place: Path) -> TrainingConfig | None:
    """What the run in a folder was trained with, if there is one."""
    return RunConfig.read(place / "config.json").training if (place / "config.json").exists() else None


def _place(folder: Path, name: str) -> Path:
    return folder.parent / "candidates" / f"{folder.name}-{name}"
