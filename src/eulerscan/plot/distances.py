"""Plot of a distance matrix, with a dendrogram and the groups of the shapes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from .._imports import require
from .._storage import write_text
from .._tables import comma_separated
from .figures import CATEGORICAL, SEQUENTIAL, figure, save, short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINKAGE = "average"
MAX_NAMES = 80  # more are not readable
OUTLIER = 3.0  # a shape is one if its median distance is so many times the usual one
MAX_OUTLIERS = 0.1  # share of the shapes; more are no outliers, but a group


class Clustering(NamedTuple):
    """A hierarchical clustering by average linkage."""

    order: list[int]  # of the leaves: similar shapes are neighbors
    linkage: Any | None  # as scipy has it; None for a single shape


def save_distances(
    distances: Tensor, names: Sequence[str], path: Path, *, groups: Sequence[str] | None = None, label: str = "distance"
) -> Path:
    """Save :func:`draw_distances` and, beside it, a table of the shapes in its order. Returns the path of the table."""
    found, table = cluster(distances), order_path(path)
    groups = folders(names) if groups is None else groups if len(set(groups)) > 1 else None
    picture = draw_distances(distances, names, groups=groups, label=label, clustering=found)
    if len(names) > MAX_NAMES:
        picture.axes[1].set_xlabel(f"{len(names)} shapes, in the order of the dendrogram; names in {table.name}")
    save(picture, path)
    rows = [[1 + i, names[k], groups[k] if groups else ""] for i, k in enumerate(found.order)]
    write_text(table, comma_separated(["position", "name", "group"], rows))
    return table


def order_path(path: Path) -> Path:
    """The table beside a figure: its name with .order.csv."""
    return path.with_suffix(".order.csv")


def draw_distances(
    distances: Tensor,
    names: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    label: str = "distance",
    clustering: Clustering | None = None,
) -> Figure:
    """Plot a distance matrix, ordered by hierarchical clustering (average linkage), with its dendrogram.

    Distances of outliers, shapes whose median distance is more than three times the usual one, are beyond the color limits if
    they are few and would leave all others in one color.

    Args:
        distances: ``[N, N]``, symmetric.
        names: Names of the shapes. More than 80 are not shown.
        groups: Group of each shape. Up to 8 are a strip of colors with a legend, more have a column each.
        label: Label of the colorbar.
        clustering: From :func:`cluster`. Default: computed.
    """
    order, linkage = clustering or cluster(distances)
    count, named = len(names), len(names) <= MAX_NAMES
    kinds = sorted(set(groups)) if groups else []
    in_columns = len(kinds) > len(CATEGORICAL)
    side = min(max(0.16 * count, 3.0), 13.0) if named else 7.0
    # The strip says the folder.
    labels = [short_label(n.removeprefix(f"{g}/")) for n, g in zip(names, groups or names, strict=True)] if named else []
    margin = 0.07 * max(map(len, labels), default=0)
    widths = [0.22 * side + 0.6, 0.13 * len(kinds) if in_columns else 0.02 * side + 0.05, side]
    picture = figure(sum(widths) - (0 if kinds else widths[1]) + margin + 1.3, side + max(0.5, margin) + 0.4 * bool(kinds))
    spec = picture.add_gridspec(1, 3, width_ratios=widths) if kinds else picture.add_gridspec(1, 2, width_ratios=widths[::2])
    matrix = distances[order][:, order].numpy()
    limit, num_outliers = _color_limit(matrix)
    if linkage is not None:
        _draw_tree(picture.add_subplot(spec[0]), linkage, count, named, limit if num_outliers else None)
    right = picture.add_subplot(spec[-1])
    # Without equal aspect, the rows are beside the leaves of the tree.
    image = right.imshow(matrix, cmap=SEQUENTIAL, vmin=0, vmax=limit or 1.0, interpolation="nearest", aspect="auto")
    if num_outliers:
        label += f"\n({num_outliers} {'shape is' if num_outliers == 1 else 'shapes are'} farther, up to {matrix.max():.3g})"
    picture.colorbar(image, ax=right, label=label, fraction=0.05, pad=0.02, extend="max" if num_outliers else "neither")
    right.yaxis.tick_right()
    right.yaxis.set_label_position("right")
    if named:
        right.set_xticks(range(count), [labels[i] for i in order], rotation=90, fontsize=7)
        right.set_yticks(range(count), [labels[i] for i in order], fontsize=7)
        right.set(xlabel="shape", ylabel="shape")
    else:
        right.set(xticks=[], yticks=[], xlabel=f"{count} shapes, in the order of the dendrogram")
    if groups and kinds:
        _draw_groups(picture.add_subplot(spec[1]), [kinds.index(groups[i]) for i in order], kinds)
    return picture


def cluster(distances: Tensor) -> Clustering:
    """Hierarchical clustering by average linkage."""
    if len(distances) < 2:
        return Clustering(list(range(len(distances))), None)
    hierarchy = require("scipy.cluster.hierarchy", extra="mesh")
    condensed = require("scipy.spatial.distance", extra="mesh").squareform(distances.double().numpy(), checks=False)
    # The optimal order of the leaves takes cubic time.
    linkage = hierarchy.linkage(condensed, method=LINKAGE, optimal_ordering=len(distances) <= 500)
    return Clustering(hierarchy.leaves_list(linkage).tolist(), linkage)


def folders(names: Sequence[str]) -> list[str] | None:
    """The folder of each shape, if there are several.

    >>> folders(["rings/0.ply", "boxes/0.ply"]), folders(["0.ply", "1.ply"])
    (['rings', 'boxes'], None)
    """
    found = [Path(name).parent.as_posix() for name in names]
    return found if len(set(found)) > 1 else None


def _draw_tree(ax: Axes, linkage: Any, count: int, named: bool, cut: float | None) -> None:
    """The dendrogram, up to the distance ``cut``: beyond it are the branches of outliers."""
    hierarchy = require("scipy.cluster.hierarchy", extra="mesh")
    hierarchy.dendrogram(linkage, orientation="left", ax=ax, no_labels=True, color_threshold=0, above_threshold_color="0.25")
    ax.set_ylim(10 * count, 0)  # scipy places a leaf every ten units, the first at the bottom
    ax.set(xlabel=f"cluster distance\n({LINKAGE} linkage{', cut' if cut else ''})", yticks=[])
    if cut:
        ax.set_xlim(cut, 0)
    ax.locator_params(axis="x", nbins=3)
    for lines in ax.collections:
        lines.set_linewidth(1.0 if named else 0.4)
    ax.spines[["top", "left", "right"]].set_visible(False)


def _draw_groups(ax: Axes, numbers: Sequence[int], kinds: Sequence[str]) -> None:
    """A strip of colors with a legend; or a column per group, if there are more than colors."""
    colors = np.array(require("matplotlib.colors", extra="plot").to_rgba_array(CATEGORICAL))
    labels = [short_label(kind) for kind in kinds]
    if len(kinds) <= len(colors):
        ax.imshow(colors[numbers][:, None], aspect="auto", interpolation="nearest")
        ax.set(xticks=[], yticks=[])
        patch = require("matplotlib.patches", extra="plot").Patch
        handles = [patch(color=color, label=name) for color, name in zip(colors, labels, strict=False)]
        ax.figure.legend(handles=handles, loc="outside upper center", ncols=min(4, len(kinds)), frameon=False)
        return
    cells = np.ones((len(numbers), len(kinds), 4))
    cells[:, 1::2, :3] = 0.94  # every other column is gray, to follow it to its name
    cells[range(len(numbers)), numbers] = colors[0]
    ax.imshow(cells, aspect="auto", interpolation="nearest")
    ax.set_xticks(range(len(kinds)), labels, rotation=90, fontsize=6)
    ax.set(yticks=[], xlabel="group")


def _color_limit(matrix: np.ndarray[Any, Any]) -> tuple[float, int]:
    """The upper color limit, and the number of shapes beyond it."""
    usual = np.median(matrix, axis=1)
    usual = usual <= OUTLIER * np.median(usual)
    limit, largest = float(matrix[np.ix_(usual, usual)].max(initial=0)), float(matrix.max(initial=0))
    few = (~usual).sum() <= max(1, MAX_OUTLIERS * len(matrix))
    return (limit, int((~usual).sum())) if few and 0 < 2 * limit < largest else (largest, 0)
