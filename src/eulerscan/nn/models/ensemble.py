"""An ensemble of classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...complexes import Shape, as_complex
from ..layers import ECTLayer
from .classifier import count_parameters

SHARPNESS = 10  # of the weights: how fast they fall with the cross entropy
WORST = (
    60.0  # cross entropy, in units of a guess: the weight of a classifier that is sure of wrong classes is hardly above zero
)


class Calibration(NamedTuple):
    """How much a classifier is trusted.

    Attributes:
        temperature: What its logits are divided by, so that its probabilities are as sure as they should be.
        weight: Weight of its probabilities.
    """

    temperature: float = 1.0
    weight: float = 1.0


class Ensemble(nn.Module):
    """Classifiers whose probabilities are averaged, as logits.

    Args:
        members: Classifiers of the same classes, trained separately.
        calibrations: Temperature and weight of each member, as :func:`~eulerscan.nn.models.ensemble.calibrate` finds them.
            Default: all are one.

    Example:
        >>> from eulerscan import ECTLayer
        >>> from eulerscan.nn.models import ECTCNN, ECTMLP
        >>> ensemble = Ensemble([ECTMLP(ECTLayer(2), 3), ECTCNN(ECTLayer(2), 3)])
        >>> ensemble(torch.rand(8, 100, 2)).exp().sum(dim=1).allclose(torch.ones(8))
        True
    """

    def __init__(self, members: Sequence[nn.Module], calibrations: Sequence[Sequence[float]] | None = None) -> None:
        super().__init__()
        if not members:
            raise ValueError("members must not be empty.")
        self.members = nn.ModuleList(members)
        pairs = [Calibration()] * len(members) if calibrations is None else [tuple(pair) for pair in calibrations]
        positive = all(len(pair) == 2 and all(0 < x < math.inf for x in pair) for pair in pairs)
        if len(pairs) != len(members) or not positive:
            raise ValueError(
                f"calibrations must be {len(members)} pairs of positive numbers, one for each member, got {pairs}."
            )
        self.calibrations = [Calibration(*pair) for pair in pairs]

    @property
    def layer(self) -> ECTLayer:
        """The transform of the first member."""
        layer: ECTLayer = self.members[0].layer  # type: ignore[assignment]
        return layer

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return count_parameters(self)

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]``."""
        complex = as_complex(shape)
        return averaged([member(complex) for member in self.members], self.calibrations)


def averaged(logits: Sequence[Tensor], calibrations: Sequence[Calibration]) -> Tensor:
    """Logits ``[B, num_classes]`` of an ensemble from those of its members."""
    total = sum(calibration.weight for calibration in calibrations)
    votes = [
        (one / calibration.temperature).log_softmax(dim=1) + math.log(calibration.weight / total)
        for one, calibration in zip(logits, calibrations, strict=True)
    ]
    return torch.stack(votes).logsumexp(dim=0)


def calibrate(logits: Tensor, labels: Tensor) -> Calibration:
    """The temperature of a classifier with the smallest cross entropy, and a weight that falls with that entropy.

    The weight is ``exp(-10 * entropy)``, where ``entropy`` is that cross entropy, divided by that of a guess, the logarithm of
    the number of classes. One more shape counts, of any class: without it a classifier that is right about a few shapes would
    be infinitely sure.

    Args:
        logits: ``[B, num_classes]`` of shapes that the classifier was not trained on.
        labels: Their classes ``[B]``.
    """
    logits, labels = logits.cpu().double(), labels.cpu()
    guess = math.log(max(2, logits.shape[1]))
    factors, smoothing = torch.logspace(-2.5, 2.5, 101, dtype=torch.float64), 1 / (len(labels) + 1)
    losses = [nn.functional.cross_entropy(logits * factor, labels, label_smoothing=smoothing) for factor in factors]
    least, best = torch.stack(losses).min(dim=0)
    return Calibration(float(1 / factors[best]), math.exp(-SHARPNESS * min(float(least) / guess, WORST)))
