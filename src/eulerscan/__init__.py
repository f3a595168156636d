"""The Euler characteristic transform for PyTorch: exact and differentiable, for every kind of shape."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import directions
from ._version import __version__
from .complexes import Complex, as_complex, collate
from .config import ECTConfig
from .functional import critical, ecc, ect
from .grid import thresholds
from .nn import ECTLayer
from .variants import channels, derivative, sect, superlevel, wect

if TYPE_CHECKING:
    from . import analysis, convert, datasets, fitting, io, training
    from . import bulk as bulk
    from . import explorer as explorer
    from . import plot as plot
    from . import sklearn as sklearn
    from . import testing as testing
    from .analysis import distances
    from .complexes.neighborhoods import neighborhoods
    from .io import read
    from .local import local_ect
    from .nn import losses
    from .training import models

# Loaded on first use: `import eulerscan` needs no reader, no data set and no model.
_LAZY = {
    "analysis": ".analysis",
    "bulk": ".bulk",
    "convert": ".convert",
    "datasets": ".datasets",
    "distances": ".analysis.distances",
    "explorer": ".explorer",
    "fitting": ".fitting",
    "io": ".io",
    "losses": ".nn.losses",
    "models": ".training.models",
    "plot": ".plot",
    "sklearn": ".sklearn",
    "testing": ".testing",
    "training": ".training",
}

_LAZY_FUNCTIONS = {"local_ect": ".local", "neighborhoods": ".complexes.neighborhoods", "read": ".io"}

__all__ = [
    "Complex",
    "ECTConfig",
    "ECTLayer",
    "__version__",
    "analysis",
    "as_complex",
    "channels",
    "collate",
    "convert",
    "critical",
    "datasets",
    "derivative",
    "directions",
    "distances",
    "ecc",
    "ect",
    "fitting",
    "io",
    "local_ect",
    "losses",
    "models",
    "neighborhoods",
    "read",
    "sect",
    "superlevel",
    "thresholds",
    "training",
    "wect",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY_FUNCTIONS:
        return getattr(import_module(_LAZY_FUNCTIONS[name], __name__), name)
    if name in _LAZY:
        return import_module(_LAZY[name], __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
