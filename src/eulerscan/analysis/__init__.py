"""Comparing shapes: distances, alignment up to rotation, where groups differ, and advice on the settings of the transform."""

from .advice import Advice, advise
from .alignment import Alignment, circular_distance, rotation_distance
from .attribution import Attribution, attribute
from .distances import distance, distance_matrix, exact_distance
from .evidence import Evidence, Region, evidence

__all__ = [
    "Advice",
    "Alignment",
    "Attribution",
    "Evidence",
    "Region",
    "advise",
    "attribute",
    "circular_distance",
    "distance",
    "distance_matrix",
    "evidence",
    "exact_distance",
    "rotation_distance",
]
