"""The figure of a shape for a paper: the shape, its transform, a few curves and, in the plane, the polar view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import directions as spheres
from .._imports import require
from ..complexes import Complex
from ..config import ECTConfig
from .drawing import EULER, limits_of, plot_curves, plot_polar, plot_shape, plot_transform
from .figures import figure, plain, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "figure.titlesize": 9,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,  # letters that an editor can change, and that publishers accept
}


@torch.no_grad()
def draw_overview(
    shapes: Sequence[Complex],
    names: Sequence[str],
    path: Path | str,
    *,
    config: ECTConfig = ECTConfig(num_directions=180, num_thresholds=128),  # noqa: B008
    title: str | None = None,
    dpi: float = 300,
) -> None:
    """Write a figure with a row for each shape, all on the same thresholds, those of one kind in the same colours.

    Args:
        shapes: One complex each, in the plane or in space.
        names: What to write above each row.
        path: File of the figure; its ending says which format, such as .png, .pdf or .svg.
        config: How shapes are transformed: a row of the image for each direction, a column for each threshold. Without a
            radius, it is that of the largest shape.
        title: Above all rows.
        dpi: Dots an inch, for what is drawn in dots.
    """
    if config.variant == "channels":
        raise ValueError("variant must be ect, sect or superlevel for a figure, got 'channels'.")
    shapes = [shape.to(torch.float64).normalized(config.normalize) for shape in shapes]
    config = config.with_radius_of(*shapes)
    drawn = replace(config, normalize=None)  # of shapes that are normalized already
    transforms = [drawn.transform(shape)[0] for shape in shapes]
    # A cloud counts its points, a mesh its holes: those of one kind are compared.
    kinds = [(shape.dim, shape.max_dim, shape.weights is None) for shape in shapes]
    limits = {kind: limits_of(*(t for t, of in zip(transforms, kinds, strict=True) if of == kind)) for kind in kinds}
    in_plane = any(shape.dim == 2 for shape in shapes)
    with require("matplotlib", extra="plot").rc_context(_STYLE):
        picture = figure(10.2 if in_plane else 8.4, 2.5 * len(shapes) + (0.3 if title else 0))
        picture.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
        rows = picture.subfigures(len(shapes), 1, squeeze=False)[:, 0]
        for row, shape, kind, transform, name in zip(rows, shapes, kinds, transforms, names, strict=True):
            row.suptitle(plain(name), x=0.01, ha="left")
            _draw_row(row, shape, transform, limits[kind], config)
        if title:
            picture.suptitle(plain(title), fontweight="bold")
        save(picture, path, dpi=dpi)


def _draw_row(
    row: Figure,
    shape: Complex,
    transform: Tensor,
    limits: tuple[float, float],
    config: ECTConfig,
) -> None:
    plane, thresholds = shape.dim == 2, config.thresholds()
    euler = EULER if shape.weights is None else f"weighted {EULER}"
    unit = "threshold (radius of the shape = 1)" if config.normalize == "unit_ball" else "threshold (units of the file)"
    columns = 4 if plane else 3
    spec = row.add_gridspec(1, columns, width_ratios=(1, 1.25, 1.1, 1.1) if plane else (1, 1.25, 1.1))

    ax = plot_shape(shape, row.add_subplot(spec[0], projection=None if plane else "3d"), weight_bar=True)
    ax.set(xlabel="x", ylabel="y", title="shape")
    if not plane:
        _tidy_space(ax)

    image = row.add_subplot(spec[1])
    angles = spheres.circle(len(transform), dtype=torch.float64) if plane else None
    plot_transform(transform, image, thresholds=thresholds, directions=angles, label=euler, limits=limits)
    image.set(xlabel=unit, title="transform")
    image.locator_params(axis="x", nbins=5)
    if not plane:
        image.set_ylabel("direction, from +z to −z")

    few, labels = _few(shape.dim)
    curves = replace(config, normalize=None).transform(shape, few)[0]
    ax = plot_curves(curves, thresholds, row.add_subplot(spec[2]), labels=labels, steps=math.isinf(config.scale))
    ax.set(xlabel=unit, ylabel=euler, xlim=(float(thresholds[0]), float(thresholds[-1])))
    ax.set_title("curves of some directions", pad=16)
    ax.locator_params(axis="x", nbins=5)
    if plane:
        ax = plot_polar(transform, thresholds, row.add_subplot(spec[3], projection="polar"), label=euler, limits=limits)
        ax.set(title="polar view")


def _few(dim: int) -> tuple[Tensor, list[str]]:
    """Directions whose curves a reader can tell apart, and their names."""
    if dim == 2:
        return spheres.circle(8, dtype=torch.float64)[:4], ["0°", "45°", "90°", "135°"]
    return torch.eye(dim, dtype=torch.float64), [f"+{axis}" for axis in "xyz"]


def _tidy_space(ax: Any) -> None:
    """A name and three numbers for each axis that is long enough for them."""
    ax.tick_params(pad=-3)
    axes = {"x": ax.xaxis, "y": ax.yaxis, "z": ax.zaxis}
    lengths = {name: float(np.ptp(axis.get_view_interval())) for name, axis in axes.items()}
    for name, axis in axes.items():
        room = 4 * lengths[name] > max(lengths.values())
        ticker = require("matplotlib.ticker", extra="plot")
        axis.set_major_locator(ticker.MaxNLocator(3) if room else ticker.NullLocator())
        axis.set_label_text(name if room else "")
        axis.labelpad = -6
