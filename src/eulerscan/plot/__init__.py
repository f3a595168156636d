"""Pictures for a paper or a talk. Every function ``plot_...`` draws on ``ax`` (a new one if ``None``) and returns it."""

from .drawing import limits_of, plot_curves, plot_directions, plot_polar, plot_shape, plot_transform
from .figures import figure, save
from .training import plot_confusion, plot_training

__all__ = [
    "figure",
    "limits_of",
    "plot_confusion",
    "plot_curves",
    "plot_directions",
    "plot_polar",
    "plot_shape",
    "plot_training",
    "plot_transform",
    "save",
]
