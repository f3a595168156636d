"""The transform as an objective: points, directions and vertices moved until their transform is the wanted one."""

from .inverse import Transform, back_project
from .points import fit_points
from .results import Fit
from .turning import fit_directions

__all__ = ["Fit", "Transform", "back_project", "fit_directions", "fit_points"]
