"""The Euler characteristic transform for PyTorch: exact and differentiable, for every kind of shape."""

from . import convert, datasets, directions, fitting
from .analysis import distances, invariant
from .complexes import Complex, collate
from .complexes.coerce import as_complex
from .functional import ect, thresholds
from .io import read
from .nn import losses, models
from .nn.layers import ECTLayer
from .variants import channels, derivative, ecc, sect, superlevel, wect

__version__ = "0.1.0"

__all__ = [
    "Complex",
    "ECTLayer",
    "as_complex",
    "channels",
    "collate",
    "convert",
    "datasets",
    "derivative",
    "directions",
    "distances",
    "ecc",
    "ect",
    "fitting",
    "invariant",
    "io",
    "losses",
    "models",
    "read",
    "sect",
    "superlevel",
    "thresholds",
    "wect",
]
