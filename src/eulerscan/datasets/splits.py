"""Stratified splits into training, validation and test."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

TEST, VALIDATION = 0.2, 0.2  # as in the paper: of all shapes, and of the rest


def stratified(labels: Tensor, *, seed: int = 0, given: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """Indices of the training, validation and test shapes, with the same share of every class up to rounding.

    They depend only on labels and seed. Splits that are ``given`` stay; validation shapes are taken from the training split.

    >>> splits = stratified(torch.arange(100) % 4)
    >>> {name: len(indices) for name, indices in splits.items()}
    {'train': 64, 'val': 16, 'test': 20}
    """
    splits = dict(given or {})
    generator = torch.Generator().manual_seed(seed)
    train = splits.get("train", torch.arange(len(labels)))
    if "test" not in splits:
        train, splits["test"] = _divide(labels, train, TEST, generator)
    if "val" not in splits:
        train, splits["val"] = _divide(labels, train, VALIDATION, generator)
    return {"train": train, "val": splits["val"], "test": splits["test"]}


def _divide(labels: Tensor, indices: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Split off a random share of each class: the rest, and the share."""
    shuffled = indices[torch.randperm(len(indices), generator=generator)]
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    owner = labels[by_class]
    sizes = torch.bincount(owner)
    rank = torch.arange(len(owner)) - (sizes.cumsum(dim=0) - sizes)[owner]
    taken = rank < (share * sizes).round()[owner]
    return by_class[~taken].sort().values, by_class[taken].sort().values
