"""An ensemble of classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...complexes import Shape, as_complex


class Ensemble(nn.Module):
    """Trained classifiers whose probabilities are averaged, as logits.

    Args:
        members: Classifiers of the same classes, trained separately.

    Example:
        >>> from eulerscan import ECTLayer
        >>> from eulerscan.nn.models import ECTCNN, ECTMLP
        >>> ensemble = Ensemble([ECTMLP(ECTLayer(2), 3), ECTCNN(ECTLayer(2), 3)])
        >>> ensemble(torch.rand(8, 100, 2)).exp().sum(dim=1).allclose(torch.ones(8))
        True
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        if not members:
            raise ValueError("members must not be empty.")
        self.members = nn.ModuleList(members)

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]``."""
        complex = as_complex(shape)
        votes = torch.stack([member(complex).log_softmax(dim=1) for member in self.members])
        return votes.logsumexp(dim=0) - math.log(len(votes))
