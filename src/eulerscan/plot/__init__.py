"""Plots with matplotlib. Every function ``plot_...`` draws on ``ax`` (new axes by default) and returns it."""

from .evidence import draw_evidence
from .figures import figure, save
from .groups import draw_comparison, draw_means, plot_dispersion, plot_null, plot_ordination
from .local import draw_local
from .overview import draw_overview
from .report import write_report
from .shapes import guess_up, plot_shape
from .training import plot_confusion, plot_training
from .transforms import color_limits, plot_curves, plot_directions, plot_polar, plot_transform

__all__ = [
    "color_limits",
    "draw_comparison",
    "draw_evidence",
    "draw_local",
    "draw_means",
    "draw_overview",
    "figure",
    "guess_up",
    "plot_confusion",
    "plot_curves",
    "plot_directions",
    "plot_dispersion",
    "plot_null",
    "plot_ordination",
    "plot_polar",
    "plot_shape",
    "plot_training",
    "plot_transform",
    "save",
    "write_report",
]
