"""Labeled shapes by name: the data sets of the paper, cells, bones and wings, and two that need no files.

dataset = es.datasets.load("letter-low")
for shapes, labels in dataset.loader("train", batch_size=32, shuffle=True):
    ...
"""

from .dataset import Dataset
from .registry import Description, describe, load, names

__all__ = ["Dataset", "Description", "describe", "load", "names"]
