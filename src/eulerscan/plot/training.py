"""Plots of a training run: learning curves and confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .figures import escape_math, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_training(history: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Plot losses and validation accuracy over the epochs."""
    ax = ax or new_axes()
    epochs = [record["epoch"] for record in history]
    ax.plot(epochs, [record["loss"] for record in history], label="training loss", color="C0")
    ax.set(xlabel="epoch", ylabel="cross entropy", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if "val_loss" in history[0]:
        ax.plot(epochs, [record["val_loss"] for record in history], label="validation loss", color="C1")
        right = ax.twinx()
        right.plot(epochs, [record["val_accuracy"] for record in history], color="C2", label="validation accuracy")
        right.set(ylabel="accuracy (%)", ylim=(None, 100))
        lines = [*ax.get_lines(), *right.get_lines()]
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # outside, so that it hides no curve
        ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, ncols=len(lines), **above)
    else:
        ax.legend()
    return ax


def plot_confusion(confusion: Tensor, classes: Sequence[str], ax: Axes | None = None) -> Axes:
    """Plot a confusion matrix ``[C, C]``: one row per true class, colored by fraction, labeled with counts."""
    counts = torch.as_tensor(confusion).detach().cpu().numpy()
    if counts.shape != (len(classes), len(classes)):
        raise ValueError(
            f"confusion must have one row and one column per class, {len(classes)} each, got shape {list(counts.shape)}."
        )
    ax = ax or new_axes()
    fractions = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    if len(classes) <= 20:
        for (row, column), count in np.ndenumerate(counts.astype(int)):
            if count:
                color = "white" if fractions[row, column] > 0.5 else "black"
                ax.text(column, row, str(count), ha="center", va="center", color=color, fontsize=7)
    names = [escape_math(name) for name in classes]
    ax.set_xticks(range(len(classes)), names, rotation=90 if max(map(len, classes)) > 2 else 0)
    ax.set_yticks(range(len(classes)), names)
    ax.set(xlabel="predicted", ylabel="true")
    return ax
