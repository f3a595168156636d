"""Default of ``eulerscan train`` against its candidates, the paper's smallest network, and settings found by hand.

    EULERSCAN_MIRROR=../shared/data python benchmarks/defaults.py
    EULERSCAN_MIRROR=../shared/data python benchmarks/defaults.py wings cells-line --splits 2
    EULERSCAN_MIRROR=../shared/data python benchmarks/defaults.py --render

On five stratified splits each, candidates are trained, and what the default keeps is trained again with the validation shapes,
as the command does; the test split is not used for the choice. Settings found by hand, and the paper's smallest network, which
was the default once, stand beside it. One JSON line a run goes to ``results/defaults.jsonl``, and runs that are there are not
repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from eulerscan import datasets
from eulerscan.datasets.splits import stratified
from eulerscan.training import ModelConfig, RunConfig, TrainingConfig, evaluate, train
from eulerscan.training.choice import Candidate, candidates, choose, majority

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
    """Train and test one classifier."""
    begin = time.perf_counter()
    model = candidate.model.build(dataset.shapes.dim, len(dataset.classes), seed=split)
    train(model, dataset, replace(candidate.training, seed=split), progress=False)
    seconds = time.perf_counter() - begin
    accuracy = round(100 * evaluate(model, dataset, "test").accuracy, 3)
    return {"data": name, "split": split, "model": candidate.name, "test_accuracy": accuracy, "seconds": seconds}


def default(name: str, split: int, dataset: datasets.Dataset) -> dict[str, Any]:
    """Run what ``eulerscan train`` runs without options."""
    begin = time.perf_counter()
    tried = [candidate._replace(training=replace(candidate.training, seed=split)) for candidate in candidates(dataset)]
    source = {"name": DATA[name][0], "options": DATA[name][1]}
    with tempfile.TemporaryDirectory() as folder:
        choice = choose(Path(folder) / "run", dataset, source, tried)
        result = json.loads((Path(folder) / "run" / "result.json").read_text(encoding="utf-8"))
        network = RunConfig.read(Path(folder) / "candidates" / f"run-{tried[-1].name}" / "config.json")
    return {
        "data": name,
        "split": split,
        "model": "default",
        "kept": choice.kept,
        "augmentation": str(network.training.augmentation),
        "test_accuracy": round(result["test_accuracy"], 3),
        "candidates": {key: {part: round(score, 3) for part, score in scores.items()} for key, scores in choice.scores.items()},
        "seconds": time.perf_counter() - begin,
    }


def render(records: list[dict[str, Any]]) -> str:
    """A table of test accuracies: means over splits and their standard errors."""
    svms = [f"svm-{kind}" for kind in ("derivative", "spectrum", "joint", "joint-spectrum")]
    tried = ["svm", *svms, "curves", "curves-invariant", "ensemble"]
    others = [PAPER.name, "by-hand"]
    header = ["data", "splits", "largest class", "default", *tried, *others, "seconds of the default"]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name in DATA:
        own = [record for record in records if record["data"] == name]
        defaults = [record for record in own if record["model"] == "default"]
        if defaults:
            columns = [[record["test_accuracy"] for record in defaults]]
            columns += [[r["candidates"][key]["test"] for r in defaults if key in r["candidates"]] for key in tried]
            columns += [[record["test_accuracy"] for record in own if record["model"] == key] for key in others]
            seconds = statistics.fmean(record["seconds"] for record in defaults)
            cells = [name, str(len(defaults)), f"{majority(load(name, 0)):.1f}", *map(_mean, columns), f"{seconds:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
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
                done = {record["model"] for record in records if (record["data"], record["split"]) == (name, split)}
                works = {"default": lambda: default(name, split, dataset)}  # noqa: B023
                for candidate in (PAPER, *BY_HAND.get(name, ())):
                    works[candidate.name] = lambda candidate=candidate: run(name, split, candidate, dataset)  # noqa: B023
                for record in (work() for model, work in works.items() if model not in done):
                    records.append(record)
                    with file.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(record) + "\n")
                    print(json.dumps(record), flush=True)
    table = render(records)
    (RESULTS / "defaults.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
