"""Accuracy on molecules: classifiers of scikit-learn on the same curves, over many splits.

    python benchmarks/molecules.py  # BZR without isomorphic duplicates, 20 splits: a minute
    python benchmarks/molecules.py --first 80 --splits 100 --networks  # splits that nothing was selected on: half an hour
    python benchmarks/molecules.py --dataset dhfr --duplicates

A split has few test molecules (55 of BZR), so the mean over five splits is noisy. Nothing is selected here: every classifier
has the settings below, is trained on the training split only, like the networks, and tested once per split. *ECT+SVM* is the
row of that name in the table of small graphs; its settings were selected on the splits 20 to 79 of BZR.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eulerscan as es
from eulerscan import datasets
from eulerscan._progress import progress
from eulerscan.paper.plans import MOLECULES, Run, small_graphs
from eulerscan.paper.running import execute

SIZE = 32  # number of thresholds; there are twice as many directions
SCALE = SIZE / 2.2  # the sigmoid rises over one step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=("bzr", "cox2", "dhfr"), default="bzr")
    parser.add_argument("--duplicates", action="store_true", help="use the original set, with isomorphic duplicates")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument(
        "--networks", action="store_true", help="also train the 65K networks of the table: 20 more seconds per split"
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    arguments = parser.parse_args()
    if arguments.splits < 2:
        parser.error(f"--splits must be at least 2 for a standard deviation, got {arguments.splits}.")
    found: dict[str, list[float]] = {}
    for seed in progress(range(arguments.first, arguments.first + arguments.splits), "splits"):
        options = {"seed": seed, "atoms": True, "cleaned": not arguments.duplicates}
        data = datasets.load(arguments.dataset, **options, unit_ball=True)
        features, labels = _curves(data.shapes, seed), data.labels.numpy()
        train, test = (data.indices(split).numpy() for split in ("train", "test"))
        found.setdefault("majority class", []).append(np.mean(labels[test] == np.bincount(labels[train]).argmax()))
        for name, classifier in _classifiers(seed).items():
            classifier.fit(features[train], labels[train])
            found.setdefault(name, []).append(classifier.score(features[test], labels[test]))
        outcome = MOLECULES.fit_and_score(datasets.load(arguments.dataset, **options, planes=True), seed=seed)
        found.setdefault("ECT+SVM", []).append(outcome["test_accuracy"] / 100)
        for run in _networks(arguments.dataset, options) if arguments.networks else ():
            with tempfile.TemporaryDirectory() as folder:
                found.setdefault(run.row, []).append(execute(run, Path(folder))["test_accuracy"] / 100)
    print(f"{data.name}, {len(data)} molecules, {len(test)} of them for test in each of {arguments.splits} splits\n")
    print("| classifier | accuracy | standard error | mean of the first five |\n|---|---|---|---|")
    for name, shares in found.items():
        percent = 100 * np.array(shares)
        mean, deviation = percent.mean(), percent.std(ddof=1)
        print(f"| {name} | {mean:.1f} ± {deviation:.1f} | {deviation / len(percent) ** 0.5:.1f} | {percent[:5].mean():.1f} |")


def _curves(shapes: es.Complex, seed: int) -> np.ndarray:
    directions = es.directions.random(2 * SIZE, shapes.dim, generator=torch.Generator().manual_seed(seed))
    return es.ect(shapes, directions, es.thresholds(SIZE), scale=SCALE).flatten(1).numpy()


def _classifiers(seed: int) -> dict[str, Pipeline | RandomForestClassifier | ExtraTreesClassifier]:
    return {
        "SVM": make_pipeline(StandardScaler(), SVC(C=10)),
        "random forest": RandomForestClassifier(500, random_state=seed),
        "extra trees": ExtraTreesClassifier(500, random_state=seed),
    }


def _networks(dataset: str, options: dict[str, Any]) -> Iterator[Run]:
    """The 65K networks of the table on this split, with our settings and with those of the published code."""
    for run in itertools.chain(small_graphs(1, as_published=False), small_graphs(1, as_published=True)):
        if run.column == dataset and run.row in ("ECT+CNN 65K", "ECT+CNN 65K, as published"):
            yield replace(run, data={**run.data, **options}, training=replace(run.training, seed=options["seed"]))


if __name__ == "__main__":
    main()
