"""Stratified splits into training, validation and test."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .._labels import Labels, numbered

TEST, VALIDATION = 0.2, 0.2  # as in the paper: of all shapes, and of the rest


def stratified(
    labels: Tensor, *, strata: Labels | None = None, seed: int = 0, given: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Indices of the training, validation and test shapes, with the same share of every class up to rounding.

    They depend only on labels, blocks and seed. Splits that are ``given`` stay; validation shapes are taken from the training
    split.

    Args:
        labels: Class of each shape, ``[B]``.
        strata: Block of each shape, such as the specimen of several scans (``groups`` in scikit-learn). Blocks are not divided,
            and the splits have the same share of the blocks of every class. A block of several classes counts for the one that
            has the fewest blocks. Classes of fewer than four blocks leave no validation or test shapes.
        seed: Of the random choice.
        given: Splits that are known.

    Example:
        >>> labels = torch.arange(100) % 4
        >>> {name: len(indices) for name, indices in stratified(labels).items()}
        {'train': 64, 'val': 16, 'test': 20}
        >>> stratified(torch.arange(20) // 10, strata=torch.arange(20) // 2)["test"]  # two scans of each specimen
        tensor([ 8,  9, 14, 15])
    """
    blocks = _blocks(labels, strata)
    splits = dict(given or {})
    generator = torch.Generator().manual_seed(seed)
    train = splits.get("train", torch.arange(len(labels)))
    if "test" not in splits:
        train, splits["test"] = _divide(blocks, train, TEST, generator)
    if "val" not in splits:
        train, splits["val"] = _divide(blocks, train, VALIDATION, generator)
    if strata is not None and (missing := sorted({*labels.tolist()} - {*labels[train].tolist()})):
        raise ValueError(
            f"strata must leave blocks of every class for training, got none of class {missing[0]} with seed {seed}."
        )
    return {"train": train, "val": splits["val"], "test": splits["test"]}


def fold(labels: Tensor, number: int, num_folds: int, *, strata: Labels | None = None, seed: int = 0) -> dict[str, Tensor]:
    """The splits of one fold of cross-validation: its shapes are for test, and a share of the others for validation.

    The folds are disjoint, cover all shapes, and have the same share of every class up to one shape, or up to one block with
    ``strata``, which is as in :func:`stratified`.

    >>> splits = fold(torch.arange(100) % 4, 0, 5)
    >>> {name: len(indices) for name, indices in splits.items()}
    {'train': 64, 'val': 16, 'test': 20}
    """
    if not 0 <= number < num_folds:
        raise ValueError(f"number must be from 0 to {num_folds - 1} for {num_folds} folds, got {number}.")
    block_of, classes = _blocks(labels, strata)
    if num_folds > len(classes):
        units = "shapes" if strata is None else "blocks"
        raise ValueError(f"num_folds must be at most {len(classes)}, the number of {units}, got {num_folds}.")
    shuffled = torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))
    by_class = shuffled[classes[shuffled].argsort(stable=True)]
    inside = torch.isin(block_of, by_class[number::num_folds])
    given = {"train": (~inside).nonzero().squeeze(1), "test": inside.nonzero().squeeze(1)}
    return stratified(labels, strata=strata, seed=seed, given=given)


def _blocks(labels: Tensor, strata: Labels | None) -> tuple[Tensor, Tensor]:
    """The block of each shape, numbers from 0, and the class of each block. Without strata, every shape is a block."""
    if strata is None:
        return torch.arange(len(labels)), labels
    numbers, names = numbered(strata, len(labels), "strata")
    block_of = torch.from_numpy(numbers)
    has = torch.zeros(len(names), len(labels.bincount()), dtype=torch.bool)
    has[block_of, labels] = True
    return block_of, torch.where(has, has.sum(dim=0), len(labels) + 1).argmin(dim=1)


def _divide(blocks: tuple[Tensor, Tensor], indices: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Split off a random share of the blocks of each class: the shapes of the rest, and those of the share."""
    block_of, classes = blocks
    own = torch.tensor([*dict.fromkeys(block_of[indices].tolist())], dtype=torch.int64)
    shuffled = own[torch.randperm(len(own), generator=generator)]
    by_class = shuffled[classes[shuffled].argsort(stable=True)]
    owner = classes[by_class]
    sizes = torch.bincount(owner)
    rank = torch.arange(len(owner)) - (sizes.cumsum(dim=0) - sizes)[owner]
    inside = torch.isin(block_of[indices], by_class[rank < (share * sizes).round()[owner]])
    return indices[~inside].sort().values, indices[inside].sort().values
