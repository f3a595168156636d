"""Nested cross-validated classification of shapes: the accuracy that a new shape can expect."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._imports import require
from .._labels import Labels, as_names, numbered
from .._validation import positive

_Array = np.ndarray[Any, Any]
FeatureSet = tuple[str, ...]
Stage = Callable[[str, Callable[[], dict[str, _Array]]], dict[str, _Array]]

SETTINGS = ((5.0, 0.5), (2.0, 1.0))
"""Candidates of the support vector machine: C, and gamma relative to the median squared distance."""
SPREAD = 0.05  # of the largest standard deviation among features of one name, added to that of each
CLEARLY = 1.64  # standard errors by which a candidate must be better than the preferred one: 5 %, one-sided
FEWEST = 2  # shapes of a group, one to learn from and one to test
FOLDS = 5
ENOUGH = 300  # predictions: with fewer shapes cross-validation is repeated
MAX_REPEATS = 5


@dataclass(frozen=True, eq=False)
class Classification:
    """The result of nested cross-validation.

    Attributes:
        accuracy: Share of the shapes that were classified correctly, each by a classifier that had not seen it.
        interval: The 95 % interval of the accuracy, from the number of shapes, or of blocks (:func:`wilson`).
        majority: Accuracy of always predicting the largest group.
        balanced: Mean over the groups of the share classified correctly.
        folds, repeats: Number of folds, and how often they were drawn.
        fold_accuracies: Accuracy in each fold.
        groups: Names of the groups.
        confusion: ``[groups, groups]``: how often shapes of the group in the row were predicted as that in the column.
        predictions: Predicted group of each shape, in the first repeat.
        chosen: How often each candidate was chosen within the folds.
        seed: Of the folds.
    """

    accuracy: float
    interval: tuple[float, float]
    majority: float
    balanced: float
    folds: int
    repeats: int
    fold_accuracies: tuple[float, ...]
    groups: tuple[str, ...]
    confusion: _Array
    predictions: tuple[str, ...]
    chosen: dict[str, int]
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        values = {name: value for name, value in vars(self).items() if name != "predictions"}
        return values | {"confusion": self.confusion.tolist()}


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of Wilson for a share of ``count`` independent trials.

    >>> [round(bound, 3) for bound in wilson(0.9, 40)]
    [0.769, 0.96]
    >>> wilson(1.0, 60)[1]
    1.0
    """
    z = 1.959964
    center, spread = share + z**2 / (2 * count), z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    whole = 1 + z**2 / count
    # The share is inside, and rounding must not say otherwise.
    return max(0.0, min(share, (center - spread) / whole)), min(1.0, max(share, (center + spread) / whole))


def classify(
    features: Mapping[str, _Array],
    groups: Labels,
    candidates: Mapping[str, Sequence[FeatureSet]] | None = None,
    *,
    folds: int = FOLDS,
    repeats: int | None = None,
    strata: Labels | None = None,
    seed: int = 0,
    stage: Stage | None = None,
    progress: Callable[[], object] | None = None,
) -> dict[str, Classification]:
    """Nested cross-validation of support vector machines on features of one or several kinds.

    The distance of two shapes is that of their standardized features, and kinds that are joined have the same weight, or
    twice that if they are named twice. In each fold, a second cross-validation within the training shapes alone chooses a
    candidate: the first one, unless another is significantly better. So the choice does not make the accuracy too optimistic.
    Where too few shapes remain to choose, it is the first one.

    Args:
        features: Features ``[N, ...]`` of each kind, by name.
        groups: Group of each shape, at least two shapes in each.
        candidates: For each evaluation, the kinds of features to choose from, the preferred ones first. Default: one evaluation
            of all kinds, joined.
        folds: Number of folds, stratified by group. At most as many as the largest group has shapes, and as there are blocks.
        repeats: How often to draw folds. Default: more for fewer shapes, so that there are about 300 predictions.
        strata: Block of each shape, such as the specimen of several scans. The shapes of a block are in the same fold.
        seed: Of the folds.
        stage: Called with the name of a fold and the function that computes it, to save finished folds.
        progress: Called after every fold.

    Returns:
        The result of each evaluation.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> features = {"a": rng.normal(size=(60, 3)) + 3 * (np.arange(60) % 2)[:, None]}
        >>> result = classify(features, np.arange(60) % 2)["all"]
        >>> result.accuracy > 0.9, result.majority
        (True, 0.5)
    """
    selection = require("sklearn.model_selection", extra="sklearn")
    config_context = require("sklearn", extra="sklearn").config_context
    rows = {name: np.asarray(values, dtype=np.float64).reshape(len(values), -1) for name, values in features.items()}
    candidates = {"all": [tuple(rows)]} if candidates is None else candidates
    count = len(groups)
    labels, kinds = numbered(as_names(groups, count, "groups"), count, "groups")
    sizes = np.bincount(labels)
    for name, values in rows.items():
        if len(values) != len(labels):
            raise ValueError(f"features must hold a row for each of {len(labels)} shapes, got {len(values)} in {name!r}.")
    if len(kinds) < 2 or sizes.min() < FEWEST:
        raise ValueError(
            f"groups must be at least two, each of at least {FEWEST} shapes, got "
            f"{', '.join(f'{kind} with {size}' for kind, size in zip(kinds, sizes, strict=True))}."
        )
    positive(folds, "folds")
    blocks = None if strata is None else numbered(as_names(strata, count, "strata"), count, "strata")[0]
    repeats = num_repeats(len(labels)) if repeats is None else positive(repeats, "repeats")
    splitter = selection.StratifiedKFold if blocks is None else selection.StratifiedGroupKFold
    if blocks is not None and blocks.max() < 2:
        raise ValueError(f"strata must be at least three blocks to cross-validate, got {blocks.max() + 1}.")
    folds = num_folds(folds, labels, blocks)
    numbers = {one: i for i, one in enumerate(dict.fromkeys(one for sets in candidates.values() for one in sets))}
    predicted = np.empty((len(candidates), repeats, len(labels)), dtype=np.int64)
    chosen: list[dict[str, int]] = [{} for _ in candidates]
    accuracies: list[list[float]] = [[] for _ in candidates]
    for repeat in range(repeats):
        split = splitter(folds, shuffle=True, random_state=seed + repeat)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            parts = list(split.split(labels, labels, blocks))
        for number, (train, test) in enumerate(parts):

            def compute(train: _Array = train, test: _Array = test) -> dict[str, _Array]:
                own = None if blocks is None else blocks[train]
                count = num_folds(folds, labels[train], own)
                inner = splitter(count, shuffle=True, random_state=seed) if count > 1 else None
                return _fold(rows, labels, train, test, inner, own, numbers, candidates)

            name = f"fold-{repeat}-{number}"
            # Thousands of small fits: checking their arguments takes longer than fitting.
            with config_context(assume_finite=True, skip_parameter_validation=True):
                found = compute() if stage is None else stage(name, compute)
            predicted[:, repeat, test] = found["predictions"]
            for i, sets in enumerate(candidates.values()):
                best = " + ".join(dict.fromkeys(sets[int(found["chosen"][i])]))
                chosen[i][best] = chosen[i].get(best, 0) + 1
                accuracies[i].append(float((found["predictions"][i] == labels[test]).mean()))
            if progress is not None:
                progress()
    independent = len(labels) if blocks is None else int(blocks.max()) + 1
    return {
        name: _summary(predicted[i], labels, kinds, folds, accuracies[i], chosen[i], seed, independent)
        for i, name in enumerate(candidates)
    }


def num_folds(folds: int, labels: Sequence[Any] | _Array, strata: Sequence[Any] | _Array | None = None) -> int:
    """So many folds, but not more than the largest group has shapes, nor than there are blocks."""
    return min(folds, max(Counter(labels).values()), len(labels) if strata is None else len(set(strata)))


def num_repeats(count: int) -> int:
    """How often folds are drawn by default, for so many shapes."""
    return max(1, min(MAX_REPEATS, round(ENOUGH / max(1, count))))


def _summary(
    predicted: _Array,
    labels: _Array,
    kinds: list[str],
    folds: int,
    accuracies: list[float],
    chosen: dict[str, int],
    seed: int,
    independent: int,
) -> Classification:
    confusion = np.zeros((len(kinds), len(kinds)), dtype=np.int64)
    np.add.at(confusion, (np.broadcast_to(labels, predicted.shape), predicted), 1)
    accuracy = float((predicted == labels).mean())
    return Classification(
        accuracy=accuracy,
        interval=wilson(accuracy, independent),
        majority=float(np.bincount(labels).max() / len(labels)),
        balanced=float((confusion.diagonal() / confusion.sum(axis=1)).mean()),
        folds=folds,
        repeats=len(predicted),
        fold_accuracies=tuple(accuracies),
        groups=tuple(kinds),
        confusion=confusion,
        predictions=tuple(kinds[i] for i in predicted[0]),
        chosen=dict(sorted(chosen.items(), key=lambda item: -item[1])),
        seed=seed,
    )


def _fold(
    features: Mapping[str, _Array],
    labels: _Array,
    train: _Array,
    test: _Array,
    inner: Any,
    strata: _Array | None,
    numbers: Mapping[FeatureSet, int],
    candidates: Mapping[str, Sequence[FeatureSet]],
) -> dict[str, _Array]:
    """Predictions ``[evaluations, test]`` of one fold, and the index of the candidate that each evaluation chose."""
    order = np.concatenate([train, test])
    squares = {name: _squared_distances(values, train, order) for name, values in features.items()}
    distances = {one: np.sum([squares[name] for name in one], axis=0) for one in numbers}
    own = labels[train]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        parts = [] if inner is None else list(inner.split(own, own, strata))
    setting_of, correct_of = [], []  # the best setting of each candidate, and which training shapes it predicts correctly
    for one in numbers:
        correct = []
        for penalty, gamma in SETTINGS:
            kernel = _kernel(distances[one], len(train), gamma)
            found = [_predict(kernel, own, fit, check, penalty) == own[check] for fit, check in parts]
            correct.append(np.concatenate(found or [np.zeros(1)]))  # without parts all are equal, and the first is chosen
        setting_of.append(int(np.argmax([hits.mean() for hits in correct])))
        correct_of.append(correct[setting_of[-1]].astype(np.float64))
    predictions, chosen = [], []
    for sets in candidates.values():
        best = _choose([correct_of[numbers[one]] for one in sets])
        penalty, gamma = SETTINGS[setting_of[numbers[sets[best]]]]
        kernel = _kernel(distances[sets[best]], len(train), gamma)
        places = np.arange(len(train)), len(train) + np.arange(len(test))
        predictions.append(_predict(kernel, np.concatenate([own, labels[test]]), *places, penalty))
        chosen.append(best)
    return {"predictions": np.array(predictions), "chosen": np.array(chosen)}


def _choose(correct: Sequence[_Array]) -> int:
    """The first candidate, unless the best one is significantly better."""
    best = int(np.argmax([found.mean() for found in correct]))
    gain = correct[best] - correct[0]
    return best if gain.mean() > CLEARLY * gain.std() / math.sqrt(len(gain)) else 0


def _squared_distances(features: _Array, train: _Array, order: _Array) -> _Array:
    """Squared distances ``[N, N]`` of standardized features, relative to the median within the training shapes."""
    center, spread = features[train].mean(axis=0), features[train].std(axis=0)
    scale = spread + SPREAD * spread.max()
    rows = ((features[order] - center) / np.where(scale > 0, scale, 1.0)).astype(np.float32)
    norms = np.einsum("nf,nf->n", rows, rows)
    squares = (norms[:, None] + norms - 2 * (rows @ rows.T)).astype(np.float64).clip(min=0)
    within = squares[: len(train), : len(train)]
    typical = float(np.median(within)) or float(within.mean()) or 1.0
    return np.asarray(squares / typical)


def _kernel(squares: _Array, num_train: int, gamma: float) -> _Array:
    """Gaussian kernel ``[N, N]``, its width relative to the distances of the training shapes, which come first."""
    typical = float(np.median(squares[:num_train, :num_train])) or 1.0
    return np.asarray(np.exp(-gamma * squares / typical))


def _predict(kernel: _Array, labels: _Array, train: _Array, test: _Array, penalty: float) -> _Array:
    if len(np.unique(labels[train])) < 2:
        return np.full(len(test), labels[train][0])
    svm = require("sklearn.svm", extra="sklearn").SVC(C=penalty, kernel="precomputed")
    svm.fit(kernel[np.ix_(train, train)], labels[train])
    return np.asarray(svm.predict(kernel[np.ix_(test, train)]))
