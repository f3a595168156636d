"""Building blocks of heads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, get_args

from torch import Tensor, nn

from .._validation import check_choice, positive

Pooling = Literal["max", "mean"]


def linear_blocks(sizes: Sequence[int], dropout: float, batch_norm: bool = False) -> list[nn.Module]:
    """Fully connected layers through the sizes, each with a ReLU and, if asked for, batch normalization and dropout."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers.append(nn.Linear(before, after))
        layers += [BatchNorm(after)] if batch_norm else []
        layers.append(nn.ReLU())
        layers += [nn.Dropout(dropout)] if dropout else []
    return layers


def check_sizes(**layers: Sequence[int]) -> None:
    """Check sizes of layers. Only ``hidden`` may be empty."""
    for name, sizes in layers.items():
        if not sizes and name != "hidden":
            raise ValueError(f"{name} must have at least one size, got none.")
        for size in sizes:
            positive(size, f"each size in {name}")


def halved(num_thresholds: int, times: int) -> int:
    """Number of thresholds after convolutions that halve it, each."""
    least = 1 << times
    if num_thresholds < least:
        raise ValueError(f"layer must have at least {least} thresholds for {times} convolutions, got {num_thresholds}.")
    return num_thresholds // least


def check_rings(num_rings: int, num_directions: int) -> None:
    """Check that the rings have equally many directions."""
    if positive(num_directions, "num_directions") % positive(num_rings, "num_rings"):
        raise ValueError(f"num_rings must divide the number of directions, {num_directions}, got {num_rings}.")


class BatchNorm(nn.BatchNorm1d):
    """Batch normalization of ``[B, C, ...]``, by running statistics where a channel has one value and so no variance."""

    def forward(self, values: Tensor) -> Tensor:
        if self.training and values.numel() <= values.shape[1]:
            return nn.functional.batch_norm(values, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(values.flatten(2) if values.ndim > 3 else values).view_as(values)


class ConcatenateChannels(nn.Module):
    """The curves of each direction concatenated, ``[B, K, T, H]`` to ``[B, T, K H]``."""

    def forward(self, values: Tensor) -> Tensor:
        return values.transpose(1, 2).flatten(2)


class Pool(nn.Module):
    """Maximum or mean over directions, ``[B, T, n]`` to ``[B, n]``."""

    def __init__(self, pooling: Pooling) -> None:
        super().__init__()
        check_choice(pooling, "pooling", get_args(Pooling))
        self.pooling = pooling

    def forward(self, values: Tensor) -> Tensor:
        return values.amax(dim=1) if self.pooling == "max" else values.mean(dim=1)

    def extra_repr(self) -> str:
        return self.pooling
