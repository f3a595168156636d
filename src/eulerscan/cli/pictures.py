"""Plots of a run, for ``eulerscan train --plots``."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from .. import plot
from ..complexes.simplices import NAMES
from ..datasets import Dataset
from ..nn.layers import ECTLayer
from ..plot.transforms import EULER
from ..training.runs import load


@torch.no_grad()
def draw_run(folder: Path, dataset: Dataset) -> None:
    """Plot training curves, confusion matrix, directions and the transforms of a few shapes, in the folder of the run."""
    model, config = load(folder)
    history = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    layer = model.layer

    training = plot.figure(6, 3.5)
    plot.plot_training(history, training.add_subplot())
    confusion = plot.figure(5, 5)
    plot.plot_confusion(torch.tensor(result["confusion"]), config.classes, confusion.add_subplot())
    figures = {"training": training, "confusion": confusion}

    if config.dim in (2, 3):
        figures["directions"] = plot.figure(4, 4)
        axes = figures["directions"].add_subplot(projection="3d" if config.dim == 3 else None)
        before = config.model.build(config.dim, len(config.classes), seed=config.training.seed).layer.directions
        plot.plot_directions(layer.directions, axes, before=before)
        axes.set_title("directions: learned, and initial ones in gray")
        channels = _channels(layer)
        height = 1 + len(channels)
        figures["transforms"] = plot.figure(11, 2.5 * height)
        chosen = [int((dataset.labels == label).nonzero()[0, 0]) for label in range(min(4, len(config.classes)))]
        shapes = [dataset.shapes[index] for index in chosen]
        transforms = [layer(shape).reshape(len(channels), *layer.config.shape(config.dim)[-2:]) for shape in shapes]
        limits = [plot.color_limits(*channel) for channel in zip(*transforms, strict=True)]  # shared by each row
        for column, (index, shape) in enumerate(zip(chosen, shapes, strict=True), start=1):
            top = figures["transforms"].add_subplot(height, len(chosen), column, projection="3d" if config.dim == 3 else None)
            plot.plot_shape(shape, top).set_title(config.classes[int(dataset.labels[index])])
            for row, channel in enumerate(channels):
                below = figures["transforms"].add_subplot(height, len(chosen), (row + 1) * len(chosen) + column)
                transform = transforms[column - 1][row]
                plot.plot_transform(transform, below, thresholds=layer.thresholds, label=channel, limits=limits[row])

    for name, figure in figures.items():
        plot.save(figure, folder / f"{name}.png", dpi=150)


def _channels(layer: ECTLayer) -> list[str]:
    """What each channel of the layer counts."""
    if layer.config.variant != "channels":
        return [EULER]
    return ["vertices", *(NAMES.get(1 + k, f"{k}-simplices") for k in range(1, layer.num_channels))]
