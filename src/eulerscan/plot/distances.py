"""A matrix of distances as a picture, with similar shapes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from .._imports import require
from .drawing import SEQUENTIAL
from .figures import figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LABELS = 80  # more are not readable
LONGEST = 28  # letters of a label


def draw_distances(distances: Tensor, names: Sequence[str], *, label: str = "distance") -> Figure:
    """The matrix ``[N, N]``, ordered by a hierarchical clustering (average linkage), and the tree of it.

    Args:
        distances: Symmetric.
        names: Of the shapes. More than 80 are left out.
        label: What the colours mean.
    """
    count, named = len(names), len(names) <= MOST_LABELS
    side = 2.4 + 0.17 * count if named else 7.0
    side = min(max(side, 4.0), 15.0)
    picture = figure(side * 1.45 + 0.4, side)
    order, linkage = _clustered(distances)
    left, right = (
        picture.subplots(1, 2, width_ratios=(1, 4), sharey=False) if linkage is not None else (None, picture.subplots())
    )
    if left is not None:
        hierarchy = require("scipy.cluster.hierarchy", extra="mesh")
        hierarchy.dendrogram(
            linkage, orientation="left", ax=left, no_labels=True, color_threshold=0, above_threshold_color="0.25"
        )
        left.set_ylim(10 * count, 0)  # the tree has a leaf every ten units, the first at the bottom
        left.set(xlabel="distance\nof clusters", yticks=[])
        for lines in left.collections:
            lines.set_linewidth(1.0 if named else 0.4)
        left.spines[["top", "left", "right"]].set_visible(False)
    matrix = distances[order][:, order].numpy()
    image = right.imshow(matrix, cmap=SEQUENTIAL, vmin=0, vmax=matrix.max() or 1.0, interpolation="nearest", aspect="equal")
    picture.colorbar(image, ax=right, label=label, fraction=0.05, pad=0.02, location="right")
    if named:
        labels = [plain(_short(names[i])) for i in order]
        right.set_xticks(range(count), labels, rotation=90, fontsize=7)
        right.set_yticks(range(count), labels, fontsize=7)
        right.set(xlabel="shape", ylabel="shape")
    else:
        right.set(xlabel="shape, in the order of the tree", ylabel="shape, in the order of the tree")
    return picture


def _clustered(distances: Tensor) -> tuple[list[int], object | None]:
    """An order in which similar shapes are neighbours, and the tree it comes from."""
    if len(distances) < 2:
        return list(range(len(distances))), None
    hierarchy = require("scipy.cluster.hierarchy", extra="mesh")
    condensed = require("scipy.spatial.distance", extra="mesh").squareform(distances.double().numpy(), checks=False)
    # The best order of the leaves takes time of the cube of their number.
    linkage = hierarchy.linkage(condensed, method="average", optimal_ordering=len(distances) <= 500)
    return hierarchy.leaves_list(linkage).tolist(), linkage


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]
