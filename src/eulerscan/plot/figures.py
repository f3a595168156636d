"""Figures: how one is begun, and the one way in which it is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .._imports import require
from .._storage import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure(*size: float) -> Figure:
    """An empty figure of so many inches that belongs to no window."""
    made: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=size, layout="constrained")
    return made


def save(picture: Figure, path: Path | str, *, dpi: float = 200) -> None:
    """Write a figure, whole or not at all. The same figure gives the same file, to the byte, of PNG, PDF and SVG.

    PNG files are marked as written by eulerscan: :func:`eulerscan.read` takes none of them for a shape.

    Args:
        picture: As :func:`figure` makes it; ``ax.figure`` is the one of some axes.
        path: The file; its ending says which format, such as .png, .pdf or .svg.
        dpi: Dots an inch, for what is drawn in dots.

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
    # Names within a .svg file are random without a salt.
    with require("matplotlib", extra="plot").rc_context({"svg.hashsalt": "eulerscan"}), replacing(path) as partial:
        picture.savefig(partial, format=format, dpi=dpi, metadata=metadata)


def plain(text: str) -> str:
    """Text of which matplotlib takes no part for a formula."""
    return text.replace("$", r"\$")


def new_axes(projection: str | None = None) -> Axes:
    """Axes of a new figure, which a notebook shows."""
    axes: Axes = require("matplotlib.pyplot", extra="plot").figure(layout="constrained").add_subplot(projection=projection)
    return axes
