"""Figures and axes, the colormaps they share, and saving to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .._imports import require
from .._storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
# Okabe and Ito (2008): colors that color blind readers tell apart.
CATEGORICAL = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MAX_LABEL_LENGTH = 28
FIGURES = (".png", ".pdf", ".svg")  # extensions
Up = Literal["y", "z"]
"""The axis that points up in drawings of shapes in space."""


def figure(*size: float) -> Figure:
    """An empty figure of this width and height in inches, without a window."""
    made: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=size, layout="constrained")
    return made


def new_axes(projection: str | None = None) -> Axes:
    """Axes of a new pyplot figure, which a notebook shows."""
    axes: Axes = require("matplotlib.pyplot", extra="plot").figure(layout="constrained").add_subplot(projection=projection)
    return axes


def integer_ticks(axis: Axis) -> None:
    """Ticks at integers only."""
    axis.set_major_locator(require("matplotlib.ticker", extra="plot").MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def save(picture: Figure, path: Path | str, *, dpi: float = 200) -> None:
    """Save a figure, atomically. PNG, PDF and SVG files are reproducible to the byte.

    PNG files are marked as written by eulerscan, and :func:`eulerscan.read` does not read them as shapes.

    Args:
        picture: From :func:`figure`, or ``ax.figure``.
        path: File. The extension decides the format: .png, .pdf, .svg, ...
        dpi: Dots per inch, for raster files and rasterized parts.

    Example:
        >>> import tempfile, torch
        >>> from eulerscan import plot
        >>> picture = plot.figure(4, 3)
        >>> _ = plot.plot_shape(torch.rand(9, 2), picture.add_subplot())
        >>> plot.save(picture, Path(tempfile.mkdtemp()) / "points.pdf")
    """
    path = Path(path)
    format = path.suffix.lower().removeprefix(".") or "png"
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": "eulerscan"}}.get(format)
    # Without a salt, element ids of SVG files are random. TrueType fonts are editable, and accepted by publishers.
    style = {"svg.hashsalt": "eulerscan", "pdf.fonttype": 42}
    with require("matplotlib", extra="plot").rc_context(style), replacing(path) as partial:
        picture.savefig(partial, format=format, dpi=dpi, metadata=metadata)


def short_label(name: str) -> str:
    """A name as plain text of a figure: the end of a long one, since names of files differ there."""
    return escape_math(name if len(name) <= MAX_LABEL_LENGTH else "…" + name[1 - MAX_LABEL_LENGTH :])


def escape_math(text: str) -> str:
    """Escape dollar signs, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")
