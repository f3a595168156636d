"""Default of ``eulerscan train`` against its candidates, the paper's smallest network, and settings found by hand.

    EULERSCAN_MIRROR=../shared/data python benchmarks/defaults.py
    EULERSCAN_MIRROR=../shared/data python benchmarks/defaults.py wings cells-line --render

Every candidate is trained on five stratified splits. The default is the candidate with the best accuracy on validation, trained
again with the validation shapes; the test split is not used for the choice. Settings found by hand, and the paper's smallest
network, which was the default once, stand beside it. One JSON line a run goes to ``results/defaults.jsonl``, and runs that are
there are not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from eulerscan import datasets
from eulerscan.datasets.source import split_source
from eulerscan.datasets.splits import stratified
from eulerscan.training import ModelConfig, TrainingConfig, evaluate, train
from eulerscan.training.choice import Candidate, candidates, majority

RESULTS = Path(__file__).parents[1] / "results"
SPLITS = 5
DATA: dict[str, tuple[str, dict[str, Any]]] = {
    "cells-line": ("cells", {"label": "line"}),
    "cells-treatment": ("cells", {"label": "treatment"}),
    "wings": ("wings", {}),
    "vertebrae": ("vertebrae", {}),
    "digits-meshes": ("digits", {"form": "meshes"}),
    "digits-pixels": ("digits", {"form": "pixels"}),
    "manifolds": ("manifolds", {"num_shapes": 60}),
    "letter-high": ("letter-high", {}),
    "modelnet40": ("modelnet40", {"num_points": 1024}),
}
PAPER = Candidate("paper-4k", ModelConfig(model="cnn", preset="4k"), TrainingConfig())
BY_HAND = {
    "digits-pixels": [
        Candidate(
            "by-hand",
            ModelConfig(model="mlp", num_directions=32, num_thresholds=32, derivative=True, hidden=(256,), dropout=0.5),
            TrainingConfig(epochs=60, learning_rate=0.003, schedule="cosine"),
        )
    ],
}


def load(name: str, split: int) -> datasets.Dataset:
    """A data set with its own test split, if it has one, and the others drawn with a seed."""
    source, options = DATA[name]
    dataset = datasets.load(source, **options)
    given = {"test": dataset.splits["test"]} if source == "modelnet40" else {}
    if given:
        given["train"] = torch.cat([dataset.splits["train"], dataset.splits["val"]]).sort().values
    return replace(dataset, splits=stratified(dataset.labels, seed=split, given=given))


def run(name: str, split: int, candidate: Candidate, dataset: datasets.Dataset) -> dict[str, Any]:
    begin = time.perf_counter()
    model = candidate.model.build(dataset.shapes.dim, len(dataset.classes), seed=split)
    train(model, dataset, replace(candidate.training, seed=split), progress=False)
    seconds = time.perf_counter() - begin
    scores = {
        f"{part}_accuracy": round(100 * evaluate(model, dataset, part).accuracy, 3)
        for part in ("val", "test")
        if len(dataset.splits[part])
    }
    return {"data": name, "split": split, "candidate": candidate.name, **scores, "seconds": seconds}


def default(own: list[dict[str, Any]], dataset: datasets.Dataset) -> tuple[Candidate, datasets.Dataset]:
    """The candidate to keep, and the data with validation shapes for training."""
    best = max(own, key=lambda record: record["val_accuracy"])["candidate"]  # the first of equals
    kept = next(candidate for candidate in candidates(dataset) if candidate.name == best)
    return kept._replace(name="default"), split_source(dataset, {"options": {}, "refit": True})


def render(records: list[dict[str, Any]]) -> str:
    """A table of test accuracies: means over splits and their standard errors."""
    columns = ["default", "svm", "svm-derivative", "svm-spectrum", "curves", "curves-invariant", "paper-4k", "by-hand"]
    header = ["data", "splits", "largest class", *columns, "seconds of the default"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name in DATA:
        own = [record for record in records if record["data"] == name]
        splits = {record["split"] for record in own if record["candidate"] == "default"}
        if splits:
            of = {c: [r for r in own if r["candidate"] == c and r["split"] in splits] for c in columns}
            spent = sum(r["seconds"] for c in columns[:6] for r in of[c]) / len(splits)
            means = [_mean([r["test_accuracy"] for r in of[c]]) for c in columns]
            lines.append(
                f"| {' | '.join([name, str(len(splits)), f'{majority(load(name, 0)):.1f}', *means, f'{spent:.0f}'])} |"
            )
    return "\n".join(lines) + "\n"


def _mean(values: list[float]) -> str:
    if not values:
        return "–"
    error = f" ± {statistics.stdev(values) / len(values) ** 0.5:.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", help=f"of {', '.join(DATA)}; default: all")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--render", action="store_true", help="run nothing, write results/defaults.md")
    arguments = parser.parse_args()
    file = RESULTS / "defaults.jsonl"
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    if not arguments.render:
        for name in arguments.data or DATA:
            for split in range(arguments.splits):
                dataset = load(name, split)
                own = [record for record in records if (record["data"], record["split"]) == (name, split)]

                def add(
                    candidate: Candidate,
                    data: datasets.Dataset,
                    own: list[dict[str, Any]] = own,
                    at: tuple[str, int] = (name, split),
                ) -> None:
                    if candidate.name not in {record["candidate"] for record in own}:
                        own.append(run(*at, candidate, data))
                        records.append(own[-1])
                        with file.open("a", encoding="utf-8") as out:
                            out.write(json.dumps(own[-1]) + "\n")
                        print(json.dumps(own[-1]), flush=True)

                tried = candidates(dataset)
                for candidate in tried:
                    add(candidate, dataset)
                names = {candidate.name for candidate in tried}
                add(*default([record for record in own if record["candidate"] in names], dataset))
                for candidate in (PAPER, *BY_HAND.get(name, ())):
                    add(candidate, dataset)
    table = render(records)
    (RESULTS / "defaults.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
