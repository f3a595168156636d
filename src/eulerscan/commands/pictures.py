"""The pictures of a run."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from .. import plot
from ..datasets import Dataset
from ..runs import load


@torch.no_grad()
def draw_run(folder: Path, dataset: Dataset) -> None:
    """Write training curves, confusion matrix, directions and the transforms of a few shapes beside a run."""
    model, config = load(folder)
    history = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    layer = model.transform

    training = plot.figure(6, 3.5)
    plot.plot_training(history, training.add_subplot())
    confusion = plot.figure(5, 5)
    plot.plot_confusion(torch.tensor(result["confusion"]), config.classes, confusion.add_subplot())
    figures = {"training": training, "confusion": confusion}

    if config.dim in (2, 3):
        figures["directions"] = plot.figure(4, 4)
        axes = figures["directions"].add_subplot(projection="3d" if config.dim == 3 else None)
        before = config.model.build(config.dim, len(config.classes), seed=config.training.seed).transform.directions
        plot.plot_directions(layer.directions, axes, before=before)
        axes.set_title("directions: learned, and first ones in grey")
        figures["transforms"] = plot.figure(11, 5)
        chosen = [int((dataset.labels == label).nonzero()[0, 0]) for label in range(min(4, len(config.classes)))]
        for column, index in enumerate(chosen):
            shape = dataset.shapes[index]
            top = figures["transforms"].add_subplot(2, len(chosen), 1 + column, projection="3d" if config.dim == 3 else None)
            plot.plot_shape(shape, top).set_title(config.classes[int(dataset.labels[index])])
            below = figures["transforms"].add_subplot(2, len(chosen), 1 + len(chosen) + column)
            plot.plot_transform(layer(shape)[0], below, thresholds=layer.thresholds)

    for name, figure in figures.items():
        plot.save(figure, folder / f"{name}.png", dpi=150)
