"""Pictures for a paper or a talk. Every function draws on ``ax`` (a new one if ``None``) and returns it."""

from .drawing import figure, plot_curves, plot_directions, plot_polar, plot_shape, plot_transform
from .training import plot_confusion, plot_training

__all__ = [
    "figure",
    "plot_confusion",
    "plot_curves",
    "plot_directions",
    "plot_polar",
    "plot_shape",
    "plot_training",
    "plot_transform",
]
