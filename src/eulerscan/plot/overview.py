"""Overview figure: for each shape, the shape, its transform, a few curves and, in the plane, the polar view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .. import directions as spheres
from .._imports import require
from ..complexes import Complex
from ..config import ECTConfig
from .figures import Up, escape_math, figure, save
from .shapes import draw_grid, plot_shape
from .transforms import EULER, color_limits, image_directions, plot_curves, plot_polar, plot_transform

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
}


@torch.no_grad()
def draw_overview(
    shapes: Sequence[Complex],
    names: Sequence[str],
    path: Path | str,
    *,
    config: ECTConfig = ECTConfig(num_directions=180, num_thresholds=128),  # noqa: B008
    up: Up | Sequence[Up] = "z",
    title: str | None = None,
    dpi: float = 300,
) -> None:
    """Save a figure with one row per shape, all with the same thresholds.

    Shapes that keep their size are drawn on one scale in the plane, and on one in space.
    Shapes of the same kind (point clouds, graphs, meshes; weighted or not) have the same color limits, which leave out
    outliers (:func:`~eulerscan.plot.color_limits`). In space, directions are on rings about the axis that points up: evenly
    spread over the sphere, neighboring rows would differ as much as any others.

    Args:
        shapes: One complex each, in the plane or in space.
        names: Titles of the rows.
        path: File. The extension decides the format: .png, .pdf, .svg, ...
        config: How shapes are transformed. The image has one row per direction and one column per threshold. The default
            radius is that of the largest shape.
        up: The axis that points up in space, of all shapes or of each.
        title: Title of the figure.
        dpi: Dots per inch, for raster files and rasterized parts.
    """
    if config.variant == "channels":
        raise ValueError("config.variant must be ect, sect or superlevel for a figure, got 'channels'.")
    shapes = [shape.to(torch.float64).normalized(config.normalize) for shape in shapes]
    in_unit_ball = config.in_unit_ball
    unit = "radius of the shape = 1" if in_unit_ball else "units of the file"
    config = replace(config.with_radius_of(*shapes), normalize=None)  # the shapes are normalized already
    ups = [up] * len(shapes) if isinstance(up, str) else up
    swept = [image_directions(config.num_directions, shape.dim, axis) for shape, axis in zip(shapes, ups, strict=True)]
    transforms = [config.transform(shape, directions)[0] for shape, directions in zip(shapes, swept, strict=True)]
    # Point clouds count points, meshes components and holes: only shapes of the same kind are comparable.
    kinds = [(shape.dim, shape.max_dim, shape.weights is None) for shape in shapes]
    limits = {kind: color_limits(*(t for t, of in zip(transforms, kinds, strict=True) if of == kind)) for kind in kinds}
    in_plane = any(shape.dim == 2 for shape in shapes)
    with require("matplotlib", extra="plot").rc_context(_STYLE):
        picture = figure(10.2 if in_plane else 8.4, 2.5 * len(shapes) + (0.3 if title else 0))
        picture.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
        rows = picture.subfigures(len(shapes), 1, squeeze=False)[:, 0]
        drawn = []
        for row, shape, kind, transform, name, axis in zip(rows, shapes, kinds, transforms, names, ups, strict=True):
            row.suptitle(escape_math(name), x=0.01, ha="left")
            drawn.append(_draw_row(row, shape, transform, limits[kind], config, axis, f"threshold ({unit})"))
        if not in_unit_ball:
            for dim in (2, 3):
                _to_one_scale([ax for ax, shape in zip(drawn, shapes, strict=True) if shape.dim == dim], dim)
        for ax, shape, axis in zip(drawn, shapes, ups, strict=True):
            ax.set_title("shape" if shape.dim == 2 else f"shape, {axis} up, grid {draw_grid(ax):g}")
        if title:
            picture.suptitle(escape_math(title), fontweight="bold")
        save(picture, path, dpi=dpi)


def _draw_row(
    row: Figure, shape: Complex, transform: Tensor, limits: tuple[float, float], config: ECTConfig, up: Up, xlabel: str
) -> Axes:
    """Draw a row, and return the axes of the shape, which have no title yet."""
    plane, thresholds = shape.dim == 2, config.thresholds()
    euler = EULER if shape.weights is None else f"weighted {EULER}"
    widths = (1, 1.25, 1.1, 1.1) if plane else (1, 1.25, 1.1)
    spec = row.add_gridspec(1, len(widths), width_ratios=widths)

    drawn = plot_shape(shape, row.add_subplot(spec[0], projection=None if plane else "3d"), weight_bar=True, up=up)
    drawn.set(xlabel="x", ylabel="y")

    image = row.add_subplot(spec[1])
    directions = image_directions(len(transform), shape.dim, up)
    plot_transform(transform, image, thresholds=thresholds, directions=directions, up=up, label=euler, limits=limits)
    image.set(xlabel=xlabel, title="transform")
    image.locator_params(axis="x", nbins=5)

    directions, labels = _labeled_directions(shape.dim)
    curves = config.transform(shape, directions)[0]
    ax = plot_curves(curves, thresholds, row.add_subplot(spec[2]), labels=labels, steps=math.isinf(config.scale))
    ax.set(xlabel=xlabel, ylabel=euler, xlim=(float(thresholds[0]), float(thresholds[-1])))
    ax.set_title("curves in some directions", pad=16)
    ax.locator_params(axis="x", nbins=5)
    if plane:
        ax = plot_polar(transform, thresholds, row.add_subplot(spec[3], projection="polar"), label=euler, limits=limits)
        ax.set(title="polar view")
    return drawn


def _to_one_scale(axes: Sequence[Axes], dim: int) -> None:
    """Give every axes a range of the same length around the middle of its shape."""
    for name in "xyz"[:dim]:
        ranges = [getattr(ax, f"get_{name}lim")() for ax in axes]
        half = max((high - low for low, high in ranges), default=0.0) / 2
        for ax, (low, high) in zip(axes, ranges, strict=True):
            ax.set(**{f"{name}lim": ((low + high) / 2 - half, (low + high) / 2 + half)})
    for ax in axes:
        ax.set_aspect("equal")  # of the new ranges


def _labeled_directions(dim: int) -> tuple[Tensor, list[str]]:
    """A few directions, with their names."""
    if dim == 2:
        return spheres.circle(8, dtype=torch.float64)[:4], ["0°", "45°", "90°", "135°"]
    return torch.eye(dim, dtype=torch.float64), [f"+{axis}" for axis in "xyz"]
