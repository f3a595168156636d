"""How a training went, and what its classifier confuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .figures import new_axes, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_training(history: Sequence[Mapping[str, Any]], ax: Axes | None = None) -> Axes:
    """Losses and validation accuracy over the epochs."""
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
        above: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}  # where it hides no curve
        ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, ncols=len(lines), **above)
    else:
        ax.legend()
    return ax


def plot_confusion(confusion: Tensor, classes: Sequence[str], ax: Axes | None = None) -> Axes:
    """A confusion matrix ``[C, C]``: a row for each true class, shaded by its fraction, with the counts."""
    counts = torch.as_tensor(confusion).detach().cpu().numpy()
    if counts.shape != (len(classes), len(classes)):
        raise ValueError(
            f"confusion must have a row and a column for each of the {len(classes)} classes, got shape {list(counts.shape)}."
        )
    ax = ax or new_axes()
    fractions = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    ax.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    if len(classes) <= 20:
        for (row, column), count in np.ndenumerate(counts.astype(int)):
            if count:
                colour = "white" if fractions[row, column] > 0.5 else "black"
                ax.text(column, row, str(count), ha="center", va="center", color=colour, fontsize=7)
    names = [plain(name) for name in classes]
    ax.set_xticks(range(len(classes)), names, rotation=90 if max(map(len, classes)) > 2 else 0)
    ax.set_yticks(range(len(classes)), names)
    ax.set(xlabel="predicted", ylabel="true")
    return ax
