"""Speed of loading: batches of graphs compared with torch_geometric, and preparing the data sets.

Run with the extras ``pyg`` and ``sklearn`` and the dependency group ``bench`` installed, and the raw files in a mirror:

    EULERSCAN_MIRROR=../shared/data python benchmarks/loading.py
    EULERSCAN_MIRROR=../shared/data python benchmarks/loading.py --sets

The first iterates over the 55,000 training graphs of mnist-superpixels in shuffled batches of 256. The second also prepares
every data set in an empty folder and loads it again, each in its own process. Run nothing else on the machine meanwhile. The
exit code is 1 if a floor is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from works import Report, interleaved, milliseconds, new_process

import eulerscan as es
from eulerscan import datasets
from eulerscan.complexes.simplices import unique

BATCH = 256
ROUNDS = 3
SETS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("letter-low", "letter-med", "letter-high")),
    *((name, {}) for name in ("bzr", "cox2", "dhfr")),
    *((name, {"cleaned": True, "atoms": True}) for name in ("bzr", "cox2", "dhfr")),
    ("mnist", {"form": "points"}),
    ("mnist", {"form": "meshes"}),
    ("mnist-superpixels", {}),
    ("modelnet40", {}),
    ("digits", {"form": "meshes"}),
    ("digits", {"form": "pixels"}),
    ("manifolds", {"form": "points"}),
    ("manifolds", {"form": "meshes"}),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", action="store_true", help="also time preparing every data set, and loading it again")
    parser.add_argument("--load", nargs=2, metavar=("NAME", "OPTIONS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        print(json.dumps(_load(arguments.load[0], json.loads(arguments.load[1]))))
        return 0
    reports = [batches(), *([preparing()] if arguments.sets else [])]
    missed = [miss for report in reports for miss in report.missed]
    print("Every floor was reached." if not missed else "Missed:\n" + "\n".join(f"- {miss}" for miss in missed))
    return 1 if missed else 0


def batches() -> Report:
    dataset = datasets.load("mnist-superpixels")
    theirs = _as_pyg(dataset)
    _agree(dataset, theirs(False))
    passes: dict[str, Callable[[], Iterable[Any]]] = {
        "eulerscan": lambda: dataset.loader("train", batch_size=BATCH, shuffle=True),
        "torch_geometric": lambda: theirs(True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    for _ in range(ROUNDS):  # interleaved, so that load on the machine affects both
        for name, make in passes.items():
            start = time.perf_counter()
            count = sum(1 for _ in make())
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    order = torch.randperm(len(dataset))[:BATCH]
    select = interleaved({"select": lambda: dataset.shapes.select(order)})["select"]

    report = Report(
        f"{len(dataset.splits['train']):,} superpixel graphs in shuffled batches of {BATCH}", ["", "s/pass", "ms/batch"]
    )
    report.rows += [[name, f"{median:.2f}", milliseconds(median / count)] for name, median in medians.items()]
    ratio = medians["torch_geometric"] / medians["eulerscan"]
    report.notes += [
        f"Ratio: {ratio:.1f}x ({report.at_least('one pass over the graphs', ratio, 10)}).",
        f"`Complex.select` of {BATCH} graphs: {milliseconds(select)} ms ({report.below('select', 1e3 * select, 2, 'ms')}).",
    ]
    print(f"{report.markdown()}\n", flush=True)
    return report


def _as_pyg(dataset: datasets.Dataset) -> Callable[[bool], Iterable[Any]]:
    """A loader over the training graphs as single objects, with unique edges like ours."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader

    train = dataset.split("train")
    (vertices, edges), labels = train.shapes.offsets.tolist(), train.labels[:, None]
    points, columns = train.shapes.points, train.shapes.simplices[0].long()
    items = [
        Data(pos=points[a:b].clone(), edge_index=columns[:, c:d] - a, y=labels[i].clone())
        for i, (a, b, c, d) in enumerate(zip(vertices, vertices[1:], edges, edges[1:], strict=False))
    ]
    return lambda shuffle: DataLoader(items, batch_size=BATCH, shuffle=shuffle)


def _agree(dataset: datasets.Dataset, theirs: Iterable[Any]) -> None:
    """Raise unless the first batches hold the same graphs."""
    for (shapes, labels), other, _ in zip(dataset.loader("train", batch_size=BATCH), theirs, range(5), strict=False):
        expected = es.as_complex(other)
        torch.testing.assert_close(labels, other.y, rtol=0, atol=0)
        torch.testing.assert_close(shapes.points, expected.points, rtol=0, atol=0)
        torch.testing.assert_close(shapes.offsets, expected.offsets, rtol=0, atol=0)
        torch.testing.assert_close(unique(shapes.simplices[0]), unique(expected.simplices[0]), rtol=0, atol=0)


def preparing() -> Report:
    report = Report(
        "Preparing a data set, and loading it again in a new process",
        ["data set", "shapes", "simplices", "s", "s again", "floors"],
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, options in SETS:
            command = [sys.executable, __file__, "--load", name, json.dumps(options)]
            first, again = (new_process(command, {**os.environ, "EULERSCAN_DATA": folder}) for _ in range(2))
            label = f"{name} {' '.join(f'{k}={v}' for k, v in options.items())}".strip()
            floors = [
                report.below(f"preparing {label}", first["seconds"], 300 if label == "mnist form=meshes" else 120, "s"),
                report.below(f"loading {label} again", again["seconds"], 3, "s"),
            ]
            counts = [f"{first['shapes']:,}", f"{first['simplices']:,}"]
            report.rows.append([label, *counts, f"{first['seconds']:.2f}", f"{again['seconds']:.2f}", ", ".join(floors)])
    print(f"{report.markdown()}\n", flush=True)
    return report


def _load(name: str, options: dict[str, Any]) -> dict[str, float]:
    start = time.perf_counter()
    dataset = datasets.load(name, **options)
    return {"seconds": time.perf_counter() - start, "shapes": len(dataset), "simplices": sum(dataset.shapes.counts)}


if __name__ == "__main__":
    sys.exit(main())
