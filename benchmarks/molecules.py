"""How far molecules can be told by their curves: the usual machines of scikit-learn on the same features, on many splits.

    python benchmarks/molecules.py                          # BZR without isomorphic copies, 20 splits: two minutes
    python benchmarks/molecules.py --dataset dhfr --copies

A split has few molecules for testing, 55 of BZR, so five of them say little about a mean. Nothing is chosen here: every machine
has the settings below, trains on the training part alone, as the networks do, and is tested once a split.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eulerscan as es
from eulerscan import datasets

SIZE = 32  # thresholds, and half as many as directions
SCALE = SIZE / 2.2  # the sigmoid rises over a step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=("bzr", "cox2", "dhfr"), default="bzr")
    parser.add_argument("--copies", action="store_true", help="the original set, with isomorphic copies")
    parser.add_argument("--splits", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.splits < 2:
        parser.error(f"--splits must be at least 2 for a deviation, got {arguments.splits}.")
    found: dict[str, list[float]] = {}
    for seed in range(arguments.splits):
        data = datasets.load(arguments.dataset, seed=seed, atoms=True, cleaned=not arguments.copies, unit_ball=True)
        features, labels = _curves(data.shapes, seed), data.labels.numpy()
        train, test = (data.indices(split).numpy() for split in ("train", "test"))
        found.setdefault("the larger class, always", []).append(np.mean(labels[test] == np.bincount(labels[train]).argmax()))
        for name, machine in _machines(seed).items():
            machine.fit(features[train], labels[train])
            found.setdefault(name, []).append(machine.score(features[test], labels[test]))
    print(f"{data.name}, {len(data)} molecules, {len(test)} for testing in each of {arguments.splits} splits\n")
    print("| machine | accuracy | mean of the first five |\n|---|---|---|")
    for name, shares in found.items():
        percent = 100 * np.array(shares)
        print(f"| {name} | {percent.mean():.1f} ± {percent.std(ddof=1):.1f} | {percent[:5].mean():.1f} |")


def _curves(shapes: es.Complex, seed: int) -> np.ndarray:
    directions = es.directions.random(2 * SIZE, shapes.dim, generator=torch.Generator().manual_seed(seed))
    return es.ect(shapes, directions, es.thresholds(SIZE), scale=SCALE).flatten(1).numpy()


def _machines(seed: int) -> dict[str, Pipeline | RandomForestClassifier | ExtraTreesClassifier]:
    return {
        "support vectors": make_pipeline(StandardScaler(), SVC(C=10)),
        "random forest": RandomForestClassifier(500, random_state=seed),
        "extra trees": ExtraTreesClassifier(500, random_state=seed),
    }


if __name__ == "__main__":
    main()
