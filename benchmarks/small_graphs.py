"""Accuracy on letters and molecules over many splits: the table of small graphs has five, which is few for small test sets.

    python benchmarks/small_graphs.py  # SVMs, splits 80 to 179: ten minutes on one core
    python benchmarks/small_graphs.py letter-high --rows "ECT+CNN 65K"  # a network of the table: half a minute a split
    python benchmarks/small_graphs.py bzr --duplicates
    python benchmarks/small_graphs.py --render  # runs nothing, writes results/splits.md

Nothing is selected on splits from 80 on. Every classifier is trained on the training split only, like the networks, unless
the row says otherwise, and tested once per split. *ECT+SVM* and the networks are the rows of that name in the table of small
graphs. One JSON line a run goes to ``results/splits.jsonl``, and runs that are there are not repeated, so that a command can be
stopped, and several can work side by side.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eulerscan as es
from eulerscan import datasets
from eulerscan._progress import progress
from eulerscan._tables import markdown
from eulerscan.paper.plans import small_graphs
from eulerscan.paper.published import PUBLISHED, SMALL_GRAPHS
from eulerscan.paper.running import execute

RESULTS = Path(__file__).parents[1] / "results"
FIRST, SPLITS = 80, 100  # settings of ECT+SVM were selected on the splits 20 to 79 of BZR, two embeddings on 20 to 49
SIZE = 32  # number of thresholds; there are twice as many directions
SCALE = SIZE / 2.2  # the sigmoid rises over one step
LEAP = (84.7, 80.1, 77.6, 98.0, 88.5, 81.6)  # published, best of its models, original sets, 5 folds
MAJORITY, SVM = "largest class", ("SVM on curves", "SVM on curves, 80 % for training")
ECT_SVM = tuple(f"ECT+SVM{kind}" for kind in ("", ", two embeddings", ", two embeddings, 80 % for training"))  # for molecules
ROWS = (MAJORITY, *SVM, *ECT_SVM)
KINDS = ("", ", per-dimension channels", ", as published")
NETWORKS = ("GAT", "GCN", "GIN", *(f"ECT+CNN {size}{kind}" for size in ("4K", "65K") for kind in KINDS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names, rows = ", ".join(SMALL_GRAPHS), "; ".join((*ROWS, *NETWORKS))
    parser.add_argument("data", nargs="*", choices=[*SMALL_GRAPHS, []], metavar="DATA", help=f"of {names}; default: all")
    parser.add_argument(
        "--rows", nargs="+", choices=(*ROWS, *NETWORKS), default=ROWS, metavar="ROW", help=f"of {rows}; default: no networks"
    )
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--first", type=int, default=FIRST, help="seed of the first split")
    parser.add_argument("--duplicates", action="store_true", help="use the original molecules, with isomorphic duplicates")
    parser.add_argument("--render", action="store_true", help="run nothing, write results/splits.md")
    arguments = parser.parse_args()
    file = RESULTS / "splits.jsonl"
    if not arguments.render:
        done = {(run["data"], run["duplicates"], run["row"], run["split"]) for run in read(file)}
        splits = range(arguments.first, arguments.first + arguments.splits)
        for data in arguments.data or SMALL_GRAPHS:
            duplicates = arguments.duplicates and not data.startswith("letter")
            for split in progress(splits, data):
                for row in arguments.rows:
                    applies = row not in ECT_SVM or not data.startswith("letter")
                    if applies and (data, duplicates, row, split) not in done:
                        line = {"data": data, "duplicates": duplicates, "row": row, "split": split}
                        line |= run(data, duplicates, row, split)
                        with file.open("a", encoding="utf-8") as lines:
                            lines.write(json.dumps(line) + "\n")
    table = render(read(file))
    (RESULTS / "splits.md").write_text(table, encoding="utf-8")
    print(table)


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def run(data: str, duplicates: bool, row: str, split: int) -> dict[str, float]:
    """Train and test one classifier."""
    begin = time.perf_counter()
    options: dict[str, Any] = {"seed": split}
    if not data.startswith("letter"):
        options |= {"atoms": True, "cleaned": not duplicates}
    if row in (*ECT_SVM, *NETWORKS):
        accuracy = planned(data, row, options)
    else:
        features, labels, train, test = curves(data, json.dumps(options), split)
        if row == MAJORITY:
            accuracy = 100 * np.mean(labels[test] == np.bincount(labels[train]).argmax())
        else:
            train = train if row == SVM[0] else np.setdiff1d(np.arange(len(labels)), test)
            svm = make_pipeline(StandardScaler(), SVC(C=10)).fit(features[train], labels[train])
            accuracy = 100 * svm.score(features[test], labels[test])
    return {"test_accuracy": round(float(accuracy), 3), "seconds": round(time.perf_counter() - begin, 1)}


@lru_cache(maxsize=1)
def curves(data: str, options: str, split: int) -> tuple[np.ndarray, ...]:
    """Curves in random directions, labels, and the indices of the training and the test split."""
    given = json.loads(options)
    if data.startswith("letter"):
        dataset = datasets.load(data, **given)
        shapes = dataset.shapes.normalized("unit_ball")
    else:
        dataset = datasets.load(data, **given, unit_ball=True)
        shapes = dataset.shapes
    directions = es.directions.random(2 * SIZE, shapes.dim, generator=torch.Generator().manual_seed(split))
    features = es.ect(shapes, directions, es.thresholds(SIZE), scale=SCALE).flatten(1).numpy()
    return features, dataset.labels.numpy(), dataset.indices("train").numpy(), dataset.indices("test").numpy()


def planned(data: str, row: str, options: dict[str, Any]) -> float:
    """Test accuracy of a row of the table on this split, with our settings or with those of the published code."""
    plan = next(run for run in small_graphs(1, as_published="as published" in row) if (run.column, run.row) == (data, row))
    training = replace(plan.training, seed=options["seed"])
    with tempfile.TemporaryDirectory() as folder:
        record = execute(replace(plan, data={**plan.data, **options}, training=training), Path(folder))
    return float(record["test_accuracy"])


def render(records: list[dict[str, Any]]) -> str:
    """Mean test accuracies, their standard errors and numbers of splits, beside the best published ones."""
    best = [max(row[column][0] for row in PUBLISHED["small-graphs"].values()) for column in SMALL_GRAPHS]
    rows = [
        ["*published*: best of the paper's table", *(f"{accuracy:.1f}" for accuracy in best)],
        ["*published*: best of LEAP, original sets", *(f"{accuracy:.1f}" for accuracy in LEAP)],
    ]
    for duplicates in (False, True):
        for row in (*ROWS, *NETWORKS):
            cells = []
            for data in SMALL_GRAPHS:
                key = {"data": data, "duplicates": duplicates, "row": row}
                found = [line["test_accuracy"] for line in records if line["split"] >= FIRST and key.items() <= line.items()]
                error = np.std(found, ddof=1) / len(found) ** 0.5 if len(found) > 1 else 0.0
                cells.append(f"{np.mean(found):.1f} ± {error:.1f} ({len(found)})" if found else "–")
            if set(cells) != {"–"}:
                rows.append([f"{row}, with isomorphic duplicates" if duplicates else row, *cells])
    return f"{markdown(['', *SMALL_GRAPHS], rows)}\n"


if __name__ == "__main__":
    main()
