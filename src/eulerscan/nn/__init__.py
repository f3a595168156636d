"""Networks: the transform as a layer and as a loss, and classifiers on it."""

from .frames import FrameAveraging
from .layers import ECTLayer
from .local import LocalECT
from .losses import ECTLoss

__all__ = ["ECTLayer", "ECTLoss", "FrameAveraging", "LocalECT"]
