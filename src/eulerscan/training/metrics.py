"""Metrics of a classifier, computed from its confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, repr=False, eq=False)
class Metrics:
    """Metrics of a classifier on some shapes.

    Attributes:
        confusion: Confusion matrix ``[C, C]``: rows are true classes, columns predicted ones.
        loss: Mean cross entropy, in nats.

    Example:
        >>> scores = Metrics(torch.tensor([[3, 1], [0, 1]]), loss=0.5)
        >>> scores
        Metrics(accuracy=0.800, balanced_accuracy=0.875, macro_f1=0.762, loss=0.500, count=5)
        >>> scores.confusion[0, 1]  # of class 0, predicted as class 1
        tensor(1)
    """

    confusion: Tensor
    loss: float

    @property
    def count(self) -> int:
        """Number of shapes."""
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """Fraction of shapes that are classified correctly."""
        return float(self.confusion.trace()) / max(1, self.count)

    @property
    def balanced_accuracy(self) -> float:
        """Mean recall over the classes that occur."""
        sizes = self.confusion.sum(dim=1)
        occurs = sizes > 0
        recall = self.confusion.diagonal()[occurs].double() / sizes[occurs]
        return float(recall.mean()) if len(recall) else 0.0

    @property
    def macro_f1(self) -> float:
        """Mean F1 score over the classes that occur or are predicted."""
        twice = 2 * self.confusion.diagonal().double()
        sizes = self.confusion.sum(dim=0) + self.confusion.sum(dim=1)
        occurs = sizes > 0
        return float((twice[occurs] / sizes[occurs]).mean()) if bool(occurs.any()) else 0.0

    def __repr__(self) -> str:
        names = ("accuracy", "balanced_accuracy", "macro_f1", "loss")
        return f"Metrics({', '.join(f'{name}={getattr(self, name):.3f}' for name in names)}, count={self.count})"

    def summary(self, prefix: str = "") -> dict[str, float]:
        """The metrics by name, in percent except for the loss."""
        return {
            f"{prefix}loss": self.loss,
            f"{prefix}accuracy": 100 * self.accuracy,
            f"{prefix}balanced_accuracy": 100 * self.balanced_accuracy,
            f"{prefix}macro_f1": 100 * self.macro_f1,
        }


def confusion(labels: Tensor, predicted: Tensor, num_classes: int) -> Tensor:
    """Confusion matrix ``[C, C]``: rows are true classes, columns predicted ones.

    >>> confusion(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), num_classes=2)
    tensor([[1, 1],
            [0, 1]])
    """
    return torch.bincount(labels * num_classes + predicted, minlength=num_classes**2).view(num_classes, num_classes)
