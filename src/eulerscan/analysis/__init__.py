"""Comparing shapes: distances, alignment up to rotation, where groups differ, and advice on the settings of the transform."""

from .advice import Advice, advise
from .alignment import Alignment, circular_distance, rotation_distance
from .attribution import Attribution, attribute
from .comparison import Comparison, compare
from .distances import distance, distance_matrix, exact_distance
from .evidence import Evidence, Region, evidence, write_evidence
from .groups import distance_regression, energy_test, pairwise_tests, permanova, permdisp
from .means import fit_shape
from .ordination import mds, pca
from .orientation import oriented

__all__ = [
    "Advice",
    "Alignment",
    "Attribution",
    "Comparison",
    "Evidence",
    "Region",
    "advise",
    "attribute",
    "circular_distance",
    "compare",
    "distance",
    "distance_matrix",
    "distance_regression",
    "energy_test",
    "evidence",
    "exact_distance",
    "fit_shape",
    "mds",
    "oriented",
    "pairwise_tests",
    "pca",
    "permanova",
    "permdisp",
    "rotation_distance",
    "write_evidence",
]
