"""A multilayer perceptron on the transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from torch import nn

from ..heads import check_sizes, linear_blocks
from ..layers import ECTLayer
from .classifier import Classifier, Preset


class ECTMLP(Classifier):
    """The flattened transform, then fully connected layers.

    Presets (parameters in the plane with 10 classes, directions included): ``"4k"`` 16 x 16, hidden 14-14, 3,990;
    ``"65k"`` 32 x 32, hidden 60-50, 65,124; ``"superpixels"`` 32 x 32, hidden 100-100, 113,674.

    Args:
        layer: The transform.
        num_classes: Number of logits.
        hidden: Sizes of the hidden layers.
        dropout: Dropout probability after each hidden layer.
        batch_norm: Whether batch normalization follows each hidden layer. The paper has none.

    Example:
        >>> import torch
        >>> ECTMLP(ECTLayer(dim=3), num_classes=10)(torch.rand(8, 100, 3)).shape
        torch.Size([8, 10])
    """

    presets: ClassVar[Mapping[str, Preset]] = {
        "4k": Preset(16, 16, {"hidden": (14, 14)}),
        "65k": Preset(32, 32, {"hidden": (60, 50)}),
        "superpixels": Preset(32, 32, {"hidden": (100, 100)}),
    }

    def __init__(
        self,
        layer: ECTLayer,
        num_classes: int,
        *,
        hidden: Sequence[int] = (25, 25),
        dropout: float = 0.0,
        batch_norm: bool = False,
    ) -> None:
        check_sizes(hidden=hidden)
        grid = layer.config
        sizes = (layer.num_channels * grid.num_directions * grid.num_thresholds, *hidden)
        blocks = linear_blocks(sizes, dropout, batch_norm)
        super().__init__(layer, nn.Sequential(nn.Flatten(), *blocks, nn.Linear(sizes[-1], num_classes)))
