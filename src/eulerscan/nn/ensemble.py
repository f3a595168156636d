"""Several models whose probabilities are averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..complexes.coerce import Shape, as_complex


class Committee(nn.Module):
    """Several trained classifiers as one: the mean of their probabilities, as logits.

    Where shapes are few, each errs in its own way, and the mean errs less often than any of them.

    Args:
        members: Classifiers of the same classes. To train them is not the business of the committee.

    Example:
        >>> from eulerscan.nn.models import ECTCNN, ECTMLP
        >>> Committee([ECTMLP(2, 3), ECTCNN(2, 3)])(torch.rand(8, 100, 2)).exp().sum(dim=1).allclose(torch.ones(8))
        True
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        if not members:
            raise ValueError("members must hold at least one classifier, got none.")
        self.members = nn.ModuleList(members)

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]``."""
        complex = as_complex(shape)
        votes = torch.stack([member(complex).log_softmax(dim=1) for member in self.members])
        return votes.logsumexp(dim=0) - math.log(len(votes))
