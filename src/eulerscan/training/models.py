"""``eulerscan.models``: the classifiers of :mod:`eulerscan.nn.models`, and :func:`auto`, which chooses and trains some."""

from ..nn.models import ECTCNN, ECTMLP, ECTSVM, Classifier, ECTCurves, ECTDeepSets, ECTHarmonics, Ensemble
from .choice import auto

__all__ = ["ECTCNN", "ECTMLP", "ECTSVM", "Classifier", "ECTCurves", "ECTDeepSets", "ECTHarmonics", "Ensemble", "auto"]
