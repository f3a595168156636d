"""Fitting: move points, vertices or directions until the transform matches a target."""

from .directions import fit_directions
from .inverse import TransformTarget, back_project
from .points import fit_points
from .result import Fit

__all__ = ["Fit", "TransformTarget", "back_project", "fit_directions", "fit_points"]
