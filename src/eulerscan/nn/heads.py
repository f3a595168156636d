"""What the heads of the models are made of."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import Tensor, nn

from .._validation import positive


def connected(sizes: Sequence[int], dropout: float, normalise: bool = False) -> list[nn.Module]:
    """Fully connected layers through the sizes, each with a ReLU and, where asked for, normalisation and dropout."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers.append(nn.Linear(before, after))
        layers += [BatchNorm(after)] if normalise else []
        layers.append(nn.ReLU())
        layers += [nn.Dropout(dropout)] if dropout else []
    return layers


def check_sizes(**layers: Sequence[int]) -> None:
    """Of layers, all of which have outputs; only hidden ones may be left out."""
    for name, sizes in layers.items():
        if not sizes and name != "hidden":
            raise ValueError(f"{name} must hold the size of one layer at least, got none.")
        for size in sizes:
            positive(size, f"each size in {name}")


def check_rings(num_rings: int, num_directions: int) -> None:
    """Of directions, as many on each."""
    if positive(num_directions, "num_directions") % positive(num_rings, "num_rings"):
        raise ValueError(f"num_rings must divide the number of directions, {num_directions}, got {num_rings}.")


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that goes by what it saw before where a batch is a single shape, which has no spread of its own."""

    def forward(self, values: Tensor) -> Tensor:
        if self.training and len(values) < 2:
            return nn.functional.batch_norm(values, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(values)


class EndToEnd(nn.Module):
    """The curves of each direction one behind the other, ``[B, K, T, H]`` to ``[B, T, K H]``."""

    def forward(self, values: Tensor) -> Tensor:
        return values.transpose(1, 2).flatten(2)


class Pool(nn.Module):
    """The largest or the mean value over directions, ``[B, T, n]`` to ``[B, n]``."""

    def __init__(self, how: str) -> None:
        super().__init__()
        if how not in ("max", "mean"):
            raise ValueError(f"pooling must be 'max' or 'mean', got {how!r}.")
        self.how = how

    def forward(self, values: Tensor) -> Tensor:
        return values.amax(dim=1) if self.how == "max" else values.mean(dim=1)

    def extra_repr(self) -> str:
        return self.how
