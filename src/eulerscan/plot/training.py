"""Plots of a training run: learning curves, confusion matrix, directions and transforms."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .._devices import as_numpy
from ..complexes.simplices import name_of
from ..datasets import Dataset
from ..nn.layers import ECTLayer
from ..nn.models import Classifier, Ensemble
from ..training.runs import load_run
from .figures import CATEGORICAL, figure, integer_ticks, new_axes, save, short_label
from .shapes import draw_grid, guess_up, plot_shape
from .transforms import EULER, color_limits, plot_directions, plot_transform

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MIN_FONT = 4.5  # points; smaller text is not readable
MAX_PAIRS = 20  # of confused classes in the list beside a matrix


@torch.no_grad()
def draw_run(folder: Path, dataset: Dataset) -> None:
    """Plot training curves, confusion matrix, directions and the transforms of a few shapes, in the folder of the run."""
    model, config = load_run(folder)
    history = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    figures = {"confusion": draw_confusion(torch.tensor(result["confusion"]), config.classes)}
    if config.model.model not in ("svm", "ensemble"):  # which have no epochs
        figures["training"] = figure(6, 3.5)
        plot_training(history, figures["training"].add_subplot())
    if config.dim in (2, 3):
        figures["directions"] = figure(4, 4)
        axes = figures["directions"].add_subplot(projection="3d" if config.dim == 3 else None)
        before = config.model.build(config.dim, len(config.classes), seed=config.training.seed).layer.directions
        if learned := not torch.equal(before, model.layer.directions):
            axes.set_title("directions: learned, and initial ones in gray", fontsize="medium")
        plot_directions(model.layer.directions, axes, before=before if learned else None)
        present = dataset.labels.unique()[:4].tolist()
        chosen = [int((dataset.labels == label).nonzero()[0, 0]) for label in present]
        titles = [config.classes[label] for label in present]
        first: Classifier = model.members[0] if isinstance(model, Ensemble) else model  # type: ignore[assignment]
        figures["transforms"] = _draw_transforms(first, dataset, chosen, titles)
    for name, picture in figures.items():
        for extension in ("png", "pdf"):
            save(picture, folder / f"{name}.{extension}", dpi=150)


def _draw_transforms(model: Classifier, dataset: Dataset, chosen: Sequence[int], titles: Sequence[str]) -> Figure:
    """A column per shape: as the layer gets it, and below it each channel of its transform. Every row has its color limits."""
    layer = model.layer
    channels, shapes = _channels(layer), [model.oriented(dataset.shapes[index]) for index in chosen]
    dim, ups = dataset.shapes.dim, [guess_up(dataset.names[index]) if dataset.names else "z" for index in chosen]
    transforms = [layer(shape).reshape(len(channels), *layer.config.shape(dim)[-2:]) for shape in shapes]
    limits = [color_limits(*channel) for channel in zip(*transforms, strict=True)]
    picture = figure(3.2 * len(chosen), 2.5 * (1 + len(channels)))
    grid = picture.add_gridspec(1 + len(channels), len(chosen))
    for column, (shape, title) in enumerate(zip(shapes, titles, strict=True)):
        top = picture.add_subplot(grid[0, column], projection="3d" if dim == 3 else None)
        plot_shape(shape, top, up=ups[column]).set_title(short_label(title))
        if dim == 3:
            draw_grid(top)
        for row, channel in enumerate(channels):
            below = picture.add_subplot(grid[1 + row, column])
            plot_transform(
                transforms[column][row],
                below,
                thresholds=layer.thresholds,
                directions=layer.directions,
                up=ups[column],
                label=channel,
                limits=limits[row],
            )
    return picture


def _channels(layer: ECTLayer) -> list[str]:
    """What each channel of the layer counts."""
    if layer.config.variant != "channels":
        return [EULER]
    return ["vertices", *(name_of(k, k + 1) for k in range(1, layer.num_channels))]


def plot_training(history: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Plot losses and validation accuracy over the epochs."""
    ax = ax or new_axes()
    epochs = [record["epoch"] for record in history]
    ax.plot(epochs, [record["loss"] for record in history], label="training loss", color=CATEGORICAL[0])
    ax.set(xlabel="epoch", ylabel="cross entropy")
    integer_ticks(ax.xaxis)
    if "val_loss" in history[0]:
        ax.plot(epochs, [record["val_loss"] for record in history], label="validation loss", color=CATEGORICAL[1])
        right = ax.twinx()
        right.plot(
            epochs,
            [record["val_accuracy"] for record in history],
            color=CATEGORICAL[2],
            linestyle="--",
            label="validation accuracy",
        )
        right.set(ylabel="accuracy (%)", ylim=(0, 100))
        lines = [*ax.get_lines(), *right.get_lines()]
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # outside, so that it hides no curve
        ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, ncols=len(lines), **above)
    else:
        ax.legend(frameon=False)
    ax.set_ylim(0, 1.1 * max(ax.get_ylim()))
    return ax


def draw_confusion(confusion: Tensor, classes: Sequence[str]) -> Figure:
    """A figure of a confusion matrix ``[C, C]``, as large as its classes need. Above 20 classes, confused pairs are listed."""
    longest = max(len(short_label(name)) for name in classes)
    side = max(3.0, 0.17 * len(classes)) + 0.08 * longest
    pairs = _confused_pairs(confusion, classes) if len(classes) > 20 else []
    picture = figure(side + (0.075 * max(map(len, pairs)) if pairs else 0), side)
    axes = plot_confusion(confusion, classes, picture.add_subplot())
    if pairs:
        text = "\n".join(["most confused, true → predicted", "", *pairs])
        axes.annotate(text, (1, 1), (12, 0), xycoords="axes fraction", textcoords="offset points", va="top", fontsize=8)
    return picture


def plot_confusion(confusion: Tensor, classes: Sequence[str], ax: Axes | None = None) -> Axes:
    """Plot a confusion matrix ``[C, C]``: one row per true class, colored by fraction, labeled with counts where they fit.

    Many classes need large axes: on small ones only some have their names.
    """
    counts = as_numpy(torch.as_tensor(confusion))
    if counts.shape != (len(classes), len(classes)):
        raise ValueError(
            f"confusion must have one row and one column per class, {len(classes)} each, got shape {list(counts.shape)}."
        )
    ax = ax or new_axes()
    fractions = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    box = ax.get_position(original=True)
    width, height = ax.figure.get_size_inches() * (box.width, box.height)  # type: ignore[union-attr]
    cell = 72 * 0.9 * min(width, height) / len(classes)  # points; labels take some of the room
    digits = len(str(int(counts.max(initial=0))))
    if (size := min(7.0, 1.5 * cell / max(2, digits))) >= MIN_FONT:
        for (row, column), count in np.ndenumerate(counts.astype(int)):
            if count:
                color = "white" if fractions[row, column] > 0.5 else "black"
                ax.text(column, row, str(count), ha="center", va="center", color=color, fontsize=size)
    size = min(10.0, max(0.8 * cell, MIN_FONT))
    shown = range(0, len(classes), max(1, math.ceil(MIN_FONT / (0.8 * cell))))
    names = [short_label(classes[i]) for i in shown]
    ax.set_xticks(shown, names, rotation=90 if max(map(len, names)) > 2 else 0, fontsize=size)
    ax.set_yticks(shown, names, fontsize=size)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def _confused_pairs(confusion: Tensor, classes: Sequence[str]) -> list[str]:
    """The pairs of classes that are confused most often, with their counts and the fractions of the true class."""
    counts = torch.as_tensor(confusion).cpu().long()
    wrong = counts - counts.diag().diag()
    most = wrong.flatten().argsort(descending=True, stable=True)[:MAX_PAIRS].tolist()
    pairs = [divmod(i, len(classes)) for i in most]
    return [
        f"{short_label(classes[true])} → {short_label(classes[other])}: {wrong[true, other]} of {counts[true].sum()}"
        for true, other in pairs
        if wrong[true, other]
    ]
