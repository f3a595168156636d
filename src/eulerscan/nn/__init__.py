"""Networks: the transform as a layer and as a loss, and classifiers on it."""

from .layers import ECTLayer
from .losses import ECTLoss

__all__ = ["ECTLayer", "ECTLoss"]
