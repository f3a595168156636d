"""The Euler characteristic transform for PyTorch: exact and differentiable, for every kind of shape."""

from . import convert, datasets, directions, fitting, losses, models
from .complexes import Complex, collate
from .convert import read
from .functional import ect, thresholds
from .layers import ECTLayer
from .shapes import as_complex

__version__ = "0.1.0"

__all__ = [
    "Complex",
    "ECTLayer",
    "as_complex",
    "collate",
    "convert",
    "datasets",
    "directions",
    "ect",
    "fitting",
    "losses",
    "models",
    "read",
    "thresholds",
]
