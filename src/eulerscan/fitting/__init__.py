"""The transform as an objective: points, directions and vertices moved until their transform is the wanted one."""

from .directions import fit_directions
from .inverse import Transform, back_project
from .points import fit_points
from .result import Fit

__all__ = ["Fit", "Transform", "back_project", "fit_directions", "fit_points"]
