"""A support vector machine on the curves of shapes, for data sets that are too small for a network."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
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
class SVM:
    """An SVM with a Gaussian kernel on standardized curves in random directions.

    Attributes:
        num_directions: For each embedding.
        cost: Penalty of a shape on the wrong side of the margin (``C`` in scikit-learn).
        embeddings: How often a shape is embedded in space: the first ``3 * embeddings`` coordinates. Each direction sees one
            embedding, and the other coordinates. ``None`` for one.
        refit: Fit on training and validation split together, since nothing is selected on validation. Then there is no
            validation accuracy.
    """

    num_directions: int
    num_thresholds: int
    radius: float
    scale: float
    cost: float
    embeddings: int | None = None
    refit: bool | None = None
    model: str = "svm"
    preset: str | None = None

    def fit_and_score(self, dataset: Dataset, *, seed: int = 0) -> dict[str, Any]:
        """Fit on training, score on validation and test shapes. There is no loss, since an SVM gives no probabilities.

        The parameters counted are those that prediction needs: support vectors, their coefficients, and intercepts.
        """
        begin = time.perf_counter()
        modules = ("pipeline", "preprocessing", "svm", "dummy")
        pipeline, preprocessing, svm, dummy = (require(f"sklearn.{module}", "sklearn") for module in modules)
        curves, labels = self._curves(dataset, ("train", "val") if self.refit else ("train",), seed)
        separable = len(labels.unique()) > 1  # a small sample may have one class, which is then the prediction
        classifier = svm.SVC(C=self.cost) if separable else dummy.DummyClassifier()
        fitted = pipeline.make_pipeline(preprocessing.StandardScaler(), classifier)
        fitted.fit(curves.numpy(), labels.numpy())
        seconds, svc = time.perf_counter() - begin, fitted[-1]
        return {
            "parameters": svc.support_vectors_.size + svc.dual_coef_.size + svc.intercept_.size if separable else 0,
            **self._scores(fitted, dataset, "test", seed),
            "val_accuracy": None if self.refit else self._scores(fitted, dataset, "val", seed)["val_accuracy"],
            "epochs": 1,
            "best_epoch": 1,
            "seconds_per_epoch": seconds,
        }

    def _scores(self, fitted: Any, dataset: Dataset, split: str, seed: int) -> dict[str, float]:
        curves, labels = self._curves(dataset, (split,), seed)
        counts = confusion(labels, torch.from_numpy(fitted.predict(curves.numpy())), len(dataset.classes))
        scores = Metrics(counts, loss=math.nan).summary(f"{split}_")
        return {name: score for name, score in scores.items() if not name.endswith("loss")}

    def _curves(self, dataset: Dataset, splits: Sequence[str], seed: int) -> tuple[Tensor, Tensor]:
        shapes, labels = dataset.__getitems__(torch.cat([dataset.indices(split) for split in splits]))
        directions = self._directions(shapes.dim, seed)
        return ect(shapes, directions, thresholds(self.num_thresholds, self.radius), scale=self.scale).flatten(1), labels

    def _directions(self, dim: int, seed: int) -> Tensor:
        """Random directions ``[T, dim]``, as many for each embedding, that are zero in the coordinates of the others."""
        draws, embeddings = generator(seed, 0), self.embeddings or 1
        hidden = 3 * (embeddings - 1)
        blocks = []
        for start in range(0, hidden + 1, 3):
            drawn = spheres.random(self.num_directions, dim - hidden, generator=draws)
            before, after = drawn.new_zeros(len(drawn), start), drawn.new_zeros(len(drawn), hidden - start)
            blocks.append(torch.cat([before, drawn[:, :3], after, drawn[:, 3:]], dim=1))
        return torch.cat(blocks)
