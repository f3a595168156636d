"""The commands of ``eulerscan``.

A new command is a function in a module of its own, and a line in the table below.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .help import join_lines

# The module of each command, which has a function of the same name, and the summary for `eulerscan --help`.
COMMANDS = {
    "data": ("data", "List the data sets, and prepare them."),
    "train": ("train", "Train and test a classifier of shapes."),
    "evaluate": ("predict", "Print scores and confusion matrix of a trained model."),
    "predict": ("predict", "Predict the class of each file."),
    "fit": ("fit", "Fit a point cloud to the vertices of a shape, or deform one shape into another."),
    "plot": ("plot", "Draw shapes and their transforms, for a paper or a talk."),
    "explore": ("explore", "Write an interactive page that sweeps a shape in any direction."),
    "advise": ("advise", "Suggest directions, thresholds, radius and scale for your shapes, with a reason for each."),
    "transform": ("transform", "Transform shapes: one row of numbers per shape."),
    "distances": ("distances", "Compute the distances between all shapes."),
    "compare": ("compare", "Compare groups of shapes: do they differ, and how much?"),
    "evidence": ("evidence", "Show where on the shapes groups differ: a score and a p-value for every vertex."),
    "local": ("local", "Describe every vertex of a shape by the transform of its neighborhood."),
    "reproduce": ("reproduce", "Run the experiments of the paper."),
    "doctor": ("doctor", "Check this machine: versions, devices, and whether every kernel equals the reference."),
}


def load(name: str) -> Callable[..., Any]:
    """Import a command."""
    return join_lines(getattr(import_module(f".{COMMANDS[name][0]}", __package__), name))
