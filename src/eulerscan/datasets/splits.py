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


def fold(labels: Tensor, number: int, num_folds: int, *, seed: int = 0) -> dict[str, Tensor]:
    """The splits of one fold of cross-validation: its shapes are for test, and a share of the others for validation.

    The folds are disjoint, cover all shapes, and have the same share of every class up to one shape.

    >>> splits = fold(torch.arange(100) % 4, 0, 5)
    >>> {name: len(indices) for name, indices in splits.items()}
    {'train': 64, 'val': 16, 'test': 20}
    """
    if not 0 <= number < num_folds:
        raise ValueError(f"number must be from 0 to {num_folds - 1} for {num_folds} folds, got {number}.")
    if num_folds > len(labels):
        raise ValueError(f"num_folds must be at most {len(labels)}, the number of shapes, got {num_folds}.")
    shuffled = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    inside = torch.arange(len(labels)) % num_folds == number
    given = {"train": by_class[~inside].sort().values, "test": by_class[inside].sort().values}
    return stratified(labels, seed=seed, given=given)


def _divide(labels: Tensor, indices: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Split off a random share of each class: the rest, and the share."""
    shuffled = indices[torch.randperm(len(indices), generator=generator)]
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    owner = labels[by_class]
    sizes = torch.bincount(owner)
    rank = torch.arange(len(owner)) - (sizes.cumsum(dim=0) - sizes)[owner]
    taken = rank < (share * sizes).round()[owner]
    return by_class[~taken].sort().values, by_class[taken].sort().values
