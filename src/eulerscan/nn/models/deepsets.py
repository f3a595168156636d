"""Deep sets over directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from torch import nn

from ..heads import ConcatenateChannels, Pool, Pooling, check_sizes, linear_blocks
from ..layers import ECTLayer
from .classifier import Classifier, Preset


class ECTDeepSets(Classifier):
    """Each curve embedded by the same network, pooled over directions, then classified.

    The result does not depend on the order of the directions. With per-dimension channels, the curves of a direction are
    embedded together.

    Preset: ``"modelnet"`` 128 x 128 in space with 40 classes: 109,480 parameters.

    Args:
        layer: The transform.
        num_classes: Number of logits.
        embedding: Sizes of the layers that embed a curve.
        hidden: Sizes of the hidden layers after pooling.
        dropout: Dropout probability before each layer after pooling.
        pooling: ``"max"`` or ``"mean"`` over directions.

    Example:
        >>> ECTDeepSets.from_preset("modelnet", dim=3, num_classes=40).num_parameters
        109480
    """

    presets: ClassVar[Mapping[str, Preset]] = {
        "modelnet": Preset(128, 128, {"embedding": (256,), "hidden": (256,), "dropout": 0.3}),
    }

    def __init__(
        self,
        layer: ECTLayer,
        num_classes: int,
        *,
        embedding: Sequence[int] = (64, 64),
        hidden: Sequence[int] = (64,),
        dropout: float = 0.0,
        pooling: Pooling = "max",
    ) -> None:
        check_sizes(embedding=embedding, hidden=hidden)
        joined = [ConcatenateChannels()] if layer.config.variant == "channels" else []
        embed = nn.Sequential(*joined, *linear_blocks((layer.num_channels * layer.config.num_thresholds, *embedding), 0.0))
        sizes = (embedding[-1], *hidden)
        classify = nn.Sequential(nn.Dropout(dropout), *linear_blocks(sizes, dropout), nn.Linear(sizes[-1], num_classes))
        super().__init__(layer, nn.Sequential(embed, Pool(pooling), classify))
