"""Convolutions along curves, pooled over directions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ...variants import derivative
from ..heads import BatchNorm, check_sizes, halved, linear_blocks
from ..layers import ECTLayer
from .classifier import Classifier

KERNEL = 4  # thresholds


class ECTCurves(Classifier):
    """The same convolutions along every curve, statistics over directions, then fully connected layers.

    Mean, standard deviation and maximum over directions do not depend on their order, and with many evenly spread directions
    hardly on the rotation of a shape. With ``directed``, the convolutions know the direction of a curve, for shapes whose
    orientation carries meaning, such as letters.

    Args:
        layer: The transform.
        num_classes: Number of logits.
        channels: Output channels of the convolutions. Each halves the number of thresholds, and is followed by batch
            normalization and a ReLU.
        hidden: Sizes of the hidden layers.
        dropout: Dropout probability before each layer after pooling.
        directed: Whether the coordinates of the direction are channels of its curve.

    Example:
        >>> model = ECTCurves(ECTLayer(dim=3, num_directions=32, num_thresholds=32), num_classes=40)
        >>> model(torch.rand(8, 100, 3)).shape
        torch.Size([8, 40])
    """

    def __init__(
        self,
        layer: ECTLayer,
        num_classes: int,
        *,
        channels: Sequence[int] = (16, 32, 64),
        hidden: Sequence[int] = (128,),
        dropout: float = 0.3,
        directed: bool = False,
    ) -> None:
        check_sizes(channels=channels, hidden=hidden)
        width = halved(layer.config.num_thresholds, len(channels))
        inputs = 2 * layer.num_channels
        blocks: list[nn.Module] = [CurveChannels(), BatchNorm(inputs)]
        if directed:
            blocks.append(DirectionChannels(layer))
            inputs += layer.dim
        for before, after in itertools.pairwise((inputs, *channels)):
            # A stride of 2, since pooling instead would take three times as long.
            convolution = nn.Conv2d(before, after, (1, KERNEL), stride=(1, 2), padding=(0, KERNEL // 2 - 1), bias=False)
            blocks += [convolution, BatchNorm(after), nn.ReLU()]
        sizes = (3 * channels[-1] * width, *hidden)
        classify = [nn.Dropout(dropout), *linear_blocks(sizes, dropout, batch_norm=True), nn.Linear(sizes[-1], num_classes)]
        super().__init__(layer, nn.Sequential(*blocks, DirectionStatistics(), *classify))


class CurveChannels(nn.Module):
    """Curves and their differences from one threshold to the next as channels, ``[B, (K,) T, H]`` to ``[B, 2 K, T, H]``."""

    def forward(self, curves: Tensor) -> Tensor:
        if curves.ndim == 3:
            curves = curves.unsqueeze(1)
        return torch.cat([curves, derivative(curves)], dim=1)


class DirectionChannels(nn.Module):
    """The coordinates of each direction as further channels, ``[B, K, T, H]`` to ``[B, K + dim, T, H]``."""

    def __init__(self, layer: ECTLayer) -> None:
        super().__init__()
        self._layer = (layer,)  # in a tuple, so that it is not a submodule here too

    def forward(self, curves: Tensor) -> Tensor:
        directions = self._layer[0].directions.to(curves).T[None, :, :, None]
        return torch.cat([curves, directions.expand(len(curves), -1, -1, curves.shape[-1])], dim=1)


class DirectionStatistics(nn.Module):
    """Mean, standard deviation and maximum over directions, ``[B, C, T, H]`` to ``[B, 3 C H]``."""

    def forward(self, features: Tensor) -> Tensor:
        mean = features.mean(dim=2)
        # The square root has no derivative at 0. max() passes its gradient to one entry; amax() divides it, which is slower.
        deviation = ((features - mean.unsqueeze(2)).square().mean(dim=2) + 1e-6).sqrt()
        return torch.cat([mean, deviation, features.max(dim=2).values], dim=1).flatten(1)
