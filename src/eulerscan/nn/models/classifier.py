"""What all classifiers share: a layer, then a head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ..._labels import Labels, numbered
from ..._validation import check_choice
from ...complexes import Complex, Shape, as_complex
from ..layers import ECTLayer


@dataclass(frozen=True)
class Preset:
    """A size of the paper: the grid of the layer, and options of the head."""

    num_directions: int
    num_thresholds: int
    head: Mapping[str, Any] = field(default_factory=dict)


def count_parameters(module: nn.Module) -> int:
    """Number of trainable parameters.

    >>> count_parameters(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


class Classifier(nn.Module):
    """A transform, then a head.

    Args:
        layer: The transform.
        head: A module from ``[B, T, H]``, or ``[B, K, T, H]`` with per-dimension channels, to logits ``[B, num_classes]``;
            that of an SVM takes features ``[B, F]``. It is moved to the dtype and device of the layer.
    """

    presets: ClassVar[Mapping[str, Preset]] = {}

    def __init__(self, layer: ECTLayer, head: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.head = head.to(layer.weight)

    @classmethod
    def from_preset(cls, preset: str, *, dim: int, num_classes: int) -> Self:
        """A model of the paper, by its size. Shapes are normalized to the unit ball.

        Args:
            preset: Name of one of ``presets``.
            dim: Dimension of the ambient space.
            num_classes: Number of logits.
        """
        if not cls.presets:
            raise ValueError(
                f"preset must be a size of the paper, which has none for {cls.__name__}, got {preset!r}. Use "
                f"{cls.__name__}(ECTLayer(dim), num_classes)."
            )
        check_choice(preset, "preset", tuple(cls.presets))
        size = cls.presets[preset]
        layer = ECTLayer(dim, size.num_directions, size.num_thresholds, normalize="unit_ball")
        make: Callable[..., Self] = cls
        return make(layer, num_classes, **size.head)

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return count_parameters(self)

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]`` of a :class:`Complex` or anything :func:`as_complex` understands."""
        curves = self.layer(self.oriented(shape)).to(self.layer.weight.dtype)  # at least float32, and the head may have less
        logits: Tensor = self.head(curves)
        return logits

    def oriented(self, shape: Shape) -> Complex:
        """The shapes as the layer gets them: as they are, unless the model rotates them first."""
        return as_complex(shape)


def is_ahead(one: Tensor, other: Tensor, strata: Labels | None = None) -> bool:
    """Whether the first classifier is right more often than the other by more than a standard error.

    Args:
        one, other: ``[B]`` each, whether it is right.
        strata: Blocks, such as the specimen of several scans, within which shapes are not independent.
    """
    lead = one.int() - other.int()
    if strata is not None:
        blocks = torch.from_numpy(numbered(strata, len(lead), "strata")[0]).to(lead.device)
        lead = torch.zeros_like(lead).index_add(0, blocks, lead)
    return int(lead.sum()) > math.sqrt(int(lead.square().sum()))
