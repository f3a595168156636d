"""Plot of a distance matrix, with a dendrogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from .._imports import require
from .figures import SEQUENTIAL, escape_math, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LABELS = 80  # more are not readable
MAX_LABEL_LENGTH = 28


def draw_distances(distances: Tensor, names: Sequence[str], *, label: str = "distance") -> Figure:
    """Plot a distance matrix, ordered by hierarchical clustering (average linkage), with its dendrogram.

    Args:
        distances: ``[N, N]``, symmetric.
        names: Names of the shapes. More than 80 are not shown.
        label: Label of the colorbar.
    """
    count, named = len(names), len(names) <= MAX_LABELS
    side = 2.4 + 0.17 * count if named else 7.0
    side = min(max(side, 4.0), 15.0)
    picture = figure(side * 1.45 + 0.4, side)
    order, linkage = _cluster(distances)
    left, right = (
        picture.subplots(1, 2, width_ratios=(1, 4), sharey=False) if linkage is not None else (None, picture.subplots())
    )
    if left is not None:
        hierarchy = require("scipy.cluster.hierarchy", extra="mesh")
        hierarchy.dendrogram(
            linkage, orientation="left", ax=left, no_labels=True, color_threshold=0, above_threshold_color="0.25"
        )
        left.set_ylim(10 * count, 0)  # scipy places a leaf every ten units, the first at the bottom
        left.set(xlabel="cluster\ndistance", yticks=[])
        for lines in left.collections:
            lines.set_linewidth(1.0 if named else 0.4)
        left.spines[["top", "left", "right"]].set_visible(False)
    matrix = distances[order][:, order].numpy()
    image = right.imshow(matrix, cmap=SEQUENTIAL, vmin=0, vmax=matrix.max() or 1.0, interpolation="nearest", aspect="equal")
    picture.colorbar(image, ax=right, label=label, fraction=0.05, pad=0.02, location="right")
    if named:
        labels = [escape_math(_shorten(names[i])) for i in order]
        right.set_xticks(range(count), labels, rotation=90, fontsize=7)
        right.set_yticks(range(count), labels, fontsize=7)
        right.set(xlabel="shape", ylabel="shape")
    else:
        right.set(xlabel="shape, in the order of the dendrogram", ylabel="shape, in the order of the dendrogram")
    return picture


def _cluster(distances: Tensor) -> tuple[list[int], object | None]:
    """Order of the leaves, in which similar shapes are neighbors, and the linkage matrix."""
    if len(distances) < 2:
        return list(range(len(distances))), None
    hierarchy = require("scipy.cluster.hierarchy", extra="mesh")
    condensed = require("scipy.spatial.distance", extra="mesh").squareform(distances.double().numpy(), checks=False)
    # The optimal order of the leaves takes cubic time.
    linkage = hierarchy.linkage(condensed, method="average", optimal_ordering=len(distances) <= 500)
    return hierarchy.leaves_list(linkage).tolist(), linkage


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_LABEL_LENGTH else "…" + name[1 - MAX_LABEL_LENGTH :]
