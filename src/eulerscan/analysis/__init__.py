"""Comparing shapes: distances, alignment up to rotation, and advice on the settings of the transform."""

from .advice import Advice, advise
from .alignment import Alignment, circular_distance, rotation_distance
from .distances import distance, distance_matrix, exact_distance

__all__ = [
    "Advice",
    "Alignment",
    "advise",
    "circular_distance",
    "distance",
    "distance_matrix",
    "exact_distance",
    "rotation_distance",
]
