"""A convolutional network on the transform as an image."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...directions import loop, rings, uniform
from ...kernels.convolution import pooled_convolution
from ..heads import check_rings, check_sizes, linear_blocks
from ..layers import ECTLayer
from .classifier import Classifier, Preset


class ECTCNN(Classifier):
    """The transform as an image of directions by thresholds: convolutions with pooling, then fully connected layers.

    With per-dimension channels the image has a channel for vertices, one for edges, and so on.

    A convolution over directions needs neighboring rows to be neighboring directions. In the plane, evenly spread directions
    are, and with ``circular`` the last row is next to the first. In space, :meth:`initial_directions` gives a closed curve for
    ``circular``, and rings around the third axis for ``num_rings``: convolutions then go along the rings, and every ring is a
    channel, which suits clouds of upright objects. Meshes and graphs look different from below: give their layer twice as many
    rings, ``directions=torch.cat([upper, -upper])``.

    Presets (parameters in the plane with 15 classes): ``"4k"`` 16 x 16, hidden 25-25, 3,945; ``"65k"`` 32 x 32, hidden
    100-50, dropout 0.5, 64,827; ``"superpixels"`` 32 x 32, hidden 100-100, 70,627.

    Args:
        layer: The transform.
        num_classes: Number of logits.
        channels: Output channels of the convolutions.
        hidden: Sizes of the hidden layers.
        dropout: Dropout probability after each hidden layer.
        batch_norm: Whether batch normalization follows each convolution and hidden layer. The paper has none.
        circular: Whether to pad the axis of directions circularly.
        num_rings: Number of rings that the directions form, each padded circularly; it divides the number of directions.
        conv_activation: Whether a ReLU follows each convolution and its pooling. The published code had none.

    Example:
        >>> ECTCNN.from_preset("4k", dim=2, num_classes=15).num_parameters
        3945
    """

    presets: ClassVar[Mapping[str, Preset]] = {
        "4k": Preset(16, 16, {"hidden": (25, 25)}),
        "65k": Preset(32, 32, {"hidden": (100, 50), "dropout": 0.5}),
        "superpixels": Preset(32, 32, {"hidden": (100, 100)}),
    }

    def __init__(
        self,
        layer: ECTLayer,
        num_classes: int,
        *,
        channels: Sequence[int] = (8, 16),
        hidden: Sequence[int] = (25, 25),
        dropout: float = 0.0,
        batch_norm: bool = False,
        circular: bool = False,
        num_rings: int | None = None,
        conv_activation: bool = True,
    ) -> None:
        check_sizes(channels=channels, hidden=hidden)
        config, count = layer.config, 1 if num_rings is None else num_rings
        check_rings(count, config.num_directions)
        per_ring, width = config.num_directions // count, config.num_thresholds
        layers: list[nn.Module] = [RingsToChannels(count)]
        height = per_ring
        for before, after in itertools.pairwise((count * layer.num_channels, *channels)):
            if circular or num_rings is not None:
                layers.append(CircularPad())
                height += 2
            if batch_norm:
                layers += [nn.Conv2d(before, after, 3), nn.BatchNorm2d(after), nn.MaxPool2d(2)]
                layers += [nn.ReLU()] if conv_activation else []  # max(relu(x)) = relu(max(x)), of a quarter of the entries
            else:
                layers.append(PooledConvolution(before, after, relu=conv_activation))
            height, width = (height - 2) // 2, (width - 2) // 2
        if height < 1 or width < 1:
            raise ValueError(
                f"layer must have more directions{' a ring' if count > 1 else ''} and thresholds for {len(channels)} "
                f"convolutions, got {per_ring} and {config.num_thresholds}. {3 * 2 ** len(channels) - 2} of each suffice."
            )
        sizes = (channels[-1] * height * width, *hidden)
        blocks = linear_blocks(sizes, dropout, batch_norm)
        super().__init__(layer, nn.Sequential(*layers, nn.Flatten(), *blocks, nn.Linear(sizes[-1], num_classes)))

    @staticmethod
    def initial_directions(dim: int, num_directions: int, *, circular: bool = False, num_rings: int | None = None) -> Tensor:
        """Directions ``[T, dim]`` in an order that suits the convolutions, for the layer."""
        if num_rings is not None:
            if dim != 3:
                raise ValueError(f"num_rings must be None unless dim is 3, got {num_rings} with dim={dim}.")
            check_rings(num_rings, num_directions)
            return rings(num_directions, num_rings, dtype=torch.float64)
        return (
            loop(num_directions, dtype=torch.float64)
            if circular and dim == 3
            else uniform(num_directions, dim, dtype=torch.float64)
        )


class PooledConvolution(nn.Conv2d):
    """A convolution of 3 x 3, max pooling of 2 x 2 and a ReLU, ``[B, C, T, H]`` to ``[B, D, T // 2 - 1, H // 2 - 1]``.

    On the CPU in one pass over memory, where images with few channels take a fraction of the time.
    """

    def __init__(self, inputs: int, outputs: int, *, relu: bool = True) -> None:
        super().__init__(inputs, outputs, 3)
        self.relu = relu

    def forward(self, images: Tensor) -> Tensor:
        assert self.bias is not None
        return pooled_convolution(images, self.weight, self.bias, relu=self.relu)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, relu={self.relu}"


class RingsToChannels(nn.Module):
    """Transforms as images with a channel for each ring, ``[B, (K,) T, H]`` to ``[B, K rings, T / rings, H]``.

    Channels are last in memory, where convolutions and pooling are faster.
    """

    def __init__(self, num_rings: int) -> None:
        super().__init__()
        self.num_rings = num_rings

    def forward(self, curves: Tensor) -> Tensor:
        channels = curves.unflatten(-2, (self.num_rings, -1)).flatten(1, -3).unbind(1)
        # Not contiguous(memory_format=...), which keeps the strides of a single channel, so that convolutions put it first.
        return torch.stack(channels, dim=-1).movedim(-1, 1)

    def extra_repr(self) -> str:
        return f"num_rings={self.num_rings}"


class CircularPad(nn.Module):
    """A row more on either side of directions that form a circle. Unlike ``nn.CircularPad2d``, it keeps channels last."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([images[:, :, -1:], images, images[:, :, :1]], dim=2)
