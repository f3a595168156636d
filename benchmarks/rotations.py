"""Rotated shapes: how much logits change under rotation, and accuracy on ModelNet40 with rotated clouds.

    python benchmarks/rotations.py invariance    # change of logits by number of directions, degree and scale: a minute
    python benchmarks/rotations.py modelnet      # trains what results/rotations.jsonl lacks: 15 minutes a run on one core
    python benchmarks/rotations.py modelnet --heads harmonics --train z --seeds 1 --validate
    python benchmarks/rotations.py table         # prints what results/rotations.jsonl has

*invariance* trains each head for a few steps on surfaces (clouds and meshes of four classes), and rotates them at random.
*modelnet* has clouds of 1,024 points. Those of the training split are rotated about the vertical axis (z) or at random (SO(3)),
each once, and so are those of the test split: a run is tested on both. With ``--validate`` a run is trained on four fifths of
the training split and scored on the rest instead, rotated at random: this is what settings were chosen by. Data are read
from EULERSCAN_MIRROR.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import eulerscan as es
from eulerscan import __version__, rotations
from eulerscan.datasets import Dataset, load
from eulerscan.directions import quadrature
from eulerscan.nn import FrameAveraging
from eulerscan.nn.models import ECTCurves, ECTHarmonics
from eulerscan.training import Augmentation, TrainingConfig, evaluate, train

RESULTS = Path(__file__).parents[1] / "results" / "rotations.jsonl"
HEADS = ("harmonics", "curves", "frames")
SETTINGS = ("z", "so3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("invariance", "modelnet", "table"))
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=HEADS)
    parser.add_argument("--train", nargs="+", choices=SETTINGS, default=SETTINGS, help="how training clouds are rotated")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--validate", action="store_true", help="score on a fifth of the training split, not on the test split")
    arguments = parser.parse_args()
    if arguments.part == "invariance":
        print("\n".join(invariance()))
        return
    if arguments.part == "modelnet":
        for seed in range(arguments.seeds):
            for head in arguments.heads:
                for setting in arguments.train:
                    classify(head, setting, seed, arguments.epochs, arguments.validate)
    print(table())


def invariance() -> Iterator[str]:
    """Mean and largest change of the logits of a shape under eight random rotations, relative to their norm."""
    data = {form: load("manifolds", form=form, num_shapes=40, num_points=256) for form in ("points", "meshes")}

    def row(name: str, make: Any) -> str:
        cells = []
        for dataset in data.values():
            torch.manual_seed(0)
            model = make(dataset)
            train(model, dataset, TrainingConfig(epochs=2, batch_size=16, learning_rate=3e-3), progress=False)
            change = relative_change(model.eval(), dataset.split("test").shapes)
            cells.append(f"{float(change.mean()):.1e} | {float(change.max()):.1e}")
        return f"| {name} | {' | '.join(cells)} |"

    yield "| head | clouds, mean | largest | meshes, mean | largest |\n|---|---|---|---|---|"
    for count in (16, 32, 64, 128, 256, 512):
        yield row(f"pooled curves, {count} directions", lambda dataset, count=count: pooled(count))
    for degree in (2, 4, 6, 8, 10):
        size = len(ECTHarmonics.initial_directions(3, degree))
        yield row(f"harmonics of degree {degree}, {size} directions", lambda dataset, degree=degree: harmonic(degree, 4))
    for scale in (4.0, 16.0, 32.0, math.inf):
        name = "exact transform" if math.isinf(scale) else f"scale {scale:g}"
        yield row(f"harmonics of degree 6, {name}", lambda dataset, scale=scale: harmonic(6, 4, scale=scale))
    for guard in (0, 10, 40, 80):
        size = len(quadrature(12 + guard).directions)
        yield row(f"harmonics of degree 6, {size} directions", lambda dataset, guard=guard: harmonic(6, 4, guard=guard))
    yield row("frames of principal axes", lambda dataset: FrameAveraging(pooled(64, directed=True)))


@torch.no_grad()
def relative_change(model: nn.Module, shapes: es.Complex) -> Tensor:
    """``[8, B]``: norm of the change of the logits over their norm."""
    before, changes = model(shapes), []
    for rotation in rotations.random(8, 3, torch.Generator().manual_seed(0)).float():
        after = model(shapes.with_points(shapes.points @ rotation.T))
        changes.append((after - before).norm(dim=1) / before.norm(dim=1))
    return torch.stack(changes)


def pooled(num_directions: int, num_classes: int = 4, *, directed: bool = False, **options: Any) -> ECTCurves:
    layer = es.ECTLayer(3, num_directions, 32, normalize="unit_ball", learn_directions=False, **options)
    return ECTCurves(layer, num_classes, directed=directed)


def harmonic(
    degree: int, num_classes: int, *, scale: float = 8.0, guard: int | None = None, num_thresholds: int = 24, **head: Any
) -> ECTHarmonics:
    if guard is None:
        directions = ECTHarmonics.initial_directions(3, degree)
    else:
        directions = quadrature(2 * degree + guard, dtype=torch.float64).directions
    layer = es.ECTLayer(
        3, num_thresholds=num_thresholds, scale=scale, directions=directions, learn_directions=False, normalize="unit_ball"
    )
    return ECTHarmonics(layer, num_classes, degree=degree, **head)


def classify(head: str, setting: str, seed: int, epochs: int, validate: bool) -> None:
    """Train and test a head, unless the results have it already."""
    key = {"experiment": "rotations", "dataset": "modelnet40", "model": head, "train": setting, "seed": seed}
    key |= {"epochs": epochs, "validated": validate}
    if any(all(run.get(name) == value for name, value in key.items()) for run in runs()):
        return
    torch.manual_seed(seed)
    begin = time.perf_counter()
    whole = load("modelnet40", seed=seed)
    dataset = rotated(whole, setting, seed)
    if not validate:
        splits = {"train": torch.cat([dataset.indices("train"), dataset.indices("val")]), "test": dataset.indices("test")}
        dataset = replace(dataset, splits=splits)
    model, augmentation = make(head, len(dataset.classes))
    config = TrainingConfig(
        epochs=epochs,
        batch_size=32,
        learning_rate=3e-3,
        schedule="cosine",
        weight_decay=0.05,
        select_by="last",
        augmentation=augmentation,
        seed=seed,
    )
    folder = Path(tempfile.gettempdir()) / "eulerscan-rotations" / "-".join(str(value) for value in key.values())
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(model, dataset, config, folder)  # resumes
    scores = {}
    for name in SETTINGS:
        split = "val" if validate else "test"
        scores[f"{split}_accuracy_{name}"] = evaluate(model, rotated(whole, name, seed + 1000), split).accuracy
    line = {
        **key,
        "parameters": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        **scores,
        "train_loss": trained.history[-1]["loss"],
        "seconds_per_epoch": trained.seconds_per_epoch,
        "seconds": time.perf_counter() - begin,
        "settings": {"batch_size": config.batch_size, "learning_rate": config.learning_rate},
        "version": __version__,
    }
    with RESULTS.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def make(head: str, num_classes: int) -> tuple[nn.Module, Augmentation]:
    if head == "harmonics":
        return harmonic(8, num_classes), Augmentation()
    if head == "curves":
        return pooled(128, num_classes, rotate_directions=True), Augmentation(jitter=0.01)
    return FrameAveraging(pooled(64, num_classes, directed=True)), Augmentation(jitter=0.01)


def rotated(dataset: Dataset, setting: str, seed: int) -> Dataset:
    """The data set with every shape rotated once: about the third axis, or uniformly at random."""
    augmentation = Augmentation(rotate=180) if setting == "z" else Augmentation(tumble=True)
    return replace(dataset, shapes=augmentation(dataset.shapes, torch.Generator().manual_seed(seed)))


def runs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []


def table() -> str:
    rows = ["| head | parameters | trained | epochs | seeds | tested z | tested SO(3) |", "|---|---|---|---|---|---|---|"]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs():
        if not run["validated"]:
            groups.setdefault((run["model"], run["parameters"], run["train"], run["epochs"]), []).append(run)
    for group, members in groups.items():
        cells = []
        for name in SETTINGS:
            scores = torch.tensor([run[f"test_accuracy_{name}"] for run in members], dtype=torch.float64)
            deviation = f" ± {float(scores.std()):.1f}" if len(scores) > 1 else ""
            cells.append(f"{float(scores.mean()):.1f}{deviation}")
        rows.append(f"| {' | '.join(map(str, group))} | {len(members)} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
