"""Figures and axes, the colormaps they share, and saving to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .._imports import require
from .._storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"


def figure(*size: float) -> Figure:
    """An empty figure of this width and height in inches, without a window."""
    made: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=size, layout="constrained")
    return made


def new_axes(projection: str | None = None) -> Axes:
    """Axes of a new pyplot figure, which a notebook shows."""
    axes: Axes = require("matplotlib.pyplot", extra="plot").figure(layout="constrained").add_subplot(projection=projection)
    return axes


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
    # Without a salt, element ids of SVG files are random.
    with require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "eulerscan"}), replacing(path) as partial:
        picture.savefig(partial, format=format, dpi=dpi, metadata=metadata)


def escape_math(text: str) -> str:
    """Escape dollar signs, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")
