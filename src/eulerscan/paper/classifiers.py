"""A support vector machine on the curves of shapes, where these are too few for a network."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import directions as spheres
from .._imports import require
from ..datasets import Dataset
from ..functional import ect
from ..grid import thresholds
from ..training.metrics import Metrics, confusion
from ..training.rng import generator


@dataclass(frozen=True)
class SupportVectors:
    """Curves in random directions, every value brought to mean 0 and deviation 1, and a Gaussian kernel as wide as they are.

    Attributes:
        cost: Of a shape on the wrong side.
    """

    num_directions: int
    num_thresholds: int
    radius: float
    scale: float
    cost: float
    model: str = "svm"
    preset: str | None = None

    def outcome(self, dataset: Dataset, *, seed: int = 0) -> dict[str, Any]:
        """Accuracies of a machine that saw the training split; it gives no probabilities, so there is no loss.

        Its parameters are what it keeps: its support vectors, a coefficient or more for each, and an offset.
        """
        begin = time.perf_counter()
        parts = ("pipeline", "preprocessing", "svm", "dummy")
        pipeline, scaling, svm, dummy = (require(f"sklearn.{part}", "sklearn") for part in parts)
        curves, labels = self._curves(dataset, "train", seed)
        separable = len(labels.unique()) > 1  # a small sample may be of one class, which is then the answer
        classifier = svm.SVC(C=self.cost) if separable else dummy.DummyClassifier()
        machine = pipeline.make_pipeline(scaling.StandardScaler(), classifier)
        machine.fit(curves.numpy(), labels.numpy())
        seconds, kept = time.perf_counter() - begin, machine[-1]
        return {
            "parameters": kept.support_vectors_.size + kept.dual_coef_.size + kept.intercept_.size if separable else 0,
            **self._scores(machine, dataset, "test", seed),
            "val_accuracy": self._scores(machine, dataset, "val", seed)["val_accuracy"],
            "epochs": 1,
            "best_epoch": 1,
            "seconds_per_epoch": seconds,
        }

    def _scores(self, machine: Any, dataset: Dataset, split: str, seed: int) -> dict[str, float]:
        curves, labels = self._curves(dataset, split, seed)
        counts = confusion(labels, torch.from_numpy(machine.predict(curves.numpy())), len(dataset.classes))
        scores = Metrics(counts, loss=math.nan).summary(f"{split}_")
        return {name: score for name, score in scores.items() if not name.endswith("loss")}

    def _curves(self, dataset: Dataset, split: str, seed: int) -> tuple[Tensor, Tensor]:
        shapes, labels = dataset.__getitems__(dataset.indices(split))
        directions = spheres.random(self.num_directions, shapes.dim, generator=generator(seed, 0))
        return ect(shapes, directions, thresholds(self.num_thresholds, self.radius), scale=self.scale).flatten(1), labels
