"""Classifiers of shapes: an :class:`~eulerscan.ECTLayer`, then a small head on the transform.

Each takes whatever the layer takes, mixed batches included, and returns logits ``[B, num_classes]``. To add a model, write its
head and a subclass of :class:`Classifier` in a file of its own, and name it in ``MODELS``.
"""

from collections.abc import Mapping

from .classifier import Classifier
from .cnn import ECTCNN
from .curves import ECTCurves
from .deepsets import ECTDeepSets
from .ensemble import Ensemble
from .harmonics import ECTHarmonics
from .mlp import ECTMLP
from .svm import ECTSVM

__all__ = ["ECTCNN", "ECTMLP", "ECTSVM", "Classifier", "ECTCurves", "ECTDeepSets", "ECTHarmonics", "Ensemble"]

MODELS: Mapping[str, type[Classifier]] = {
    "curves": ECTCurves,
    "svm": ECTSVM,
    "cnn": ECTCNN,
    "mlp": ECTMLP,
    "deepsets": ECTDeepSets,
    "harmonics": ECTHarmonics,
}
