"""Plots with matplotlib. Every function ``plot_...`` draws on ``ax`` (new axes by default) and returns it."""

from .figures import figure, save
from .shapes import guess_up, plot_shape
from .training import plot_confusion, plot_training
from .transforms import color_limits, plot_curves, plot_directions, plot_polar, plot_transform

__all__ = [
    "color_limits",
    "figure",
    "guess_up",
    "plot_confusion",
    "plot_curves",
    "plot_directions",
    "plot_polar",
    "plot_shape",
    "plot_training",
    "plot_transform",
    "save",
]
