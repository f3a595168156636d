"""Plots of the local transform: how neighborhoods differ, as colors of the vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from .._devices import as_numpy
from .._imports import require
from ..analysis.ordination import pca
from ..complexes import Complex
from ..io.colors import SCALE
from .evidence import draw_values
from .figures import Up, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 2.6  # inches of one shape
NUM_COMPONENTS = 3


def draw_local(complex: Complex, transform: Tensor, *, up: Up = "z") -> Figure:
    """Draw a shape with the principal components of its local transform as colors: like color, like neighborhood.

    Args:
        complex: One complex in the plane or in space.
        transform: ``[V, S, T, H]``, from :func:`local_ect`.
        up: The axis that points up, in space.
    """
    if complex.num_complexes != 1 or complex.dim not in (2, 3):
        raise ValueError(f"complex must be one shape in the plane or in space to be drawn, got {complex!r}.")
    if len(transform) != len(complex.points):
        raise ValueError(f"transform must have a row for each of the {len(complex.points)} vertices, got {len(transform)}.")
    found = pca(transform.detach().cpu(), NUM_COMPONENTS)
    scores = found.scores
    colors: Any = require("matplotlib.colors", extra="plot")
    scale = colors.LinearSegmentedColormap.from_list("local", SCALE)
    picture = figure(SIDE * scores.shape[1], SIDE + 0.7)
    plain = Complex.from_packed(complex.packed._replace(points=complex.points.detach().cpu(), weights=None))
    for i, (values, share) in enumerate(zip(scores.T, found.explained.tolist(), strict=True)):
        low, high = np.quantile(as_numpy(values), (0.02, 0.98))
        mapping = require("matplotlib.cm", extra="plot").ScalarMappable(colors.Normalize(low, max(high, low + 1e-9)), scale)
        ax = picture.add_subplot(1, scores.shape[1], i + 1, projection="3d" if complex.dim == 3 else None)
        draw_values(ax, plain, values, mapping, up)
        bar = picture.colorbar(mapping, ax=ax, location="bottom", fraction=0.06, shrink=0.7, extend="both")
        bar.ax.tick_params(labelsize=7)
        ax.set_title(f"component {i + 1}, {100 * share:.0f} % of the variance", fontsize=9, y=1.02)
    return picture
