"""Labeled shapes and their splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import data

from .._labels import as_names
from .._validation import positive, set_fields
from ..complexes import Complex, as_complex

Indices = Tensor | Sequence[int] | slice


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(data.Dataset[tuple[Complex, int]]):
    """Labeled shapes in one :class:`Complex`.

    ``dataset[i]`` is one shape and its label. ``dataclasses.replace(dataset, shapes=dataset.shapes.normalized())`` is the same
    data set with other shapes.

    Args:
        name: Name of the data set.
        shapes: All B shapes: a :class:`Complex`, or anything :func:`as_complex` understands, such as a data set of PyG.
        labels: Class of each shape, ``[B]``, int64.
        classes: Names of the classes.
        splits: Indices of the shapes of each split: ``{"train": ..., "val": ..., "test": ...}``, which must be disjoint.
        names: Names of the shapes, such as their files; empty if they have none.
        strata: Block of each shape, such as the specimen of several scans; empty if all shapes are independent. ``splits`` must
            not divide blocks.

    Example:
        >>> squares = Complex(torch.rand(6, 2), batch=torch.tensor([0, 0, 1, 1, 2, 2]))
        >>> dataset = Dataset("pairs", squares, torch.tensor([0, 1, 0]), ("near", "far"), {"train": torch.tensor([2, 0])})
        >>> dataset
        Dataset('pairs', 3 shapes, 2 classes, train 2)
        >>> for shapes, labels in dataset.loader("train", batch_size=2):
        ...     print(shapes, labels)
        Complex(num_complexes=2, dim=2, points=4) tensor([0, 0])
    """

    name: str
    shapes: Complex
    labels: Tensor
    classes: tuple[str, ...]
    splits: dict[str, Tensor] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name: Any = self.name
        if not isinstance(name, str):
            raise TypeError(
                f"name must be a str, got {type(name).__name__}. The order is Dataset(name, shapes, labels, classes)."
            )
        set_fields(self, shapes=as_complex(self.shapes))
        count = self.shapes.num_complexes
        _check_labels(self.labels, count, len(self.classes))
        if len(self.names) not in (0, count):
            raise ValueError(f"names must have one entry per shape ({count}) or none, got {len(self.names)}.")
        if len(self.strata):
            set_fields(self, strata=as_names(self.strata, count, "strata"))
        owner: Tensor = torch.zeros(count, dtype=torch.int64)  # the split of each shape, counted from 1
        for number, (name, indices) in enumerate(self.splits.items(), start=1):
            if not isinstance(indices, Tensor) or indices.dtype != torch.int64 or indices.ndim != 1:
                raise TypeError(f"splits[{name!r}] must be an int64 tensor [n], got {_kind(indices)}.")
            if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < count:
                bad = int(indices.min()) if int(indices.min()) < 0 else int(indices.max())
                raise IndexError(f"splits[{name!r}] must hold indices from 0 to {count - 1}, got {bad}.")
            taken = owner[indices]
            if bool(taken.any()):
                where = int(taken.nonzero()[0, 0])
                other = list(self.splits)[int(taken[where]) - 1]
                raise ValueError(f"splits must be disjoint, got shape {int(indices[where])} in {other!r} and in {name!r}.")
            owner[indices] = number
            if int((owner == number).sum()) != len(indices):
                raise ValueError(f"splits[{name!r}] must not repeat a shape, got duplicates.")
        self._check_blocks()

    def _check_blocks(self) -> None:
        """Raise if a block is in two splits."""
        split_of: dict[str, str] = {}
        for name, indices in self.splits.items() if self.strata else ():
            for block in dict.fromkeys(self.strata[index] for index in indices.tolist()):
                if (other := split_of.setdefault(block, name)) != name:
                    raise ValueError(
                        f"splits must not divide the blocks of strata, got {block!r} in {other!r} and in {name!r}. Use "
                        "eulerscan.datasets.splits.stratified(labels, strata=strata)."
                    )

    def __len__(self) -> int:
        return self.shapes.num_complexes

    def __repr__(self) -> str:
        parts = [f"{len(self)} shapes", f"{len(self.classes)} classes", *(f"{k} {len(v)}" for k, v in self.splits.items())]
        return f"Dataset({self.name!r}, {', '.join(parts)})"

    def __getitem__(self, index: int) -> tuple[Complex, int]:
        return self.shapes.select(int(index)), int(self.labels[index])

    def __getitems__(self, indices: Indices) -> tuple[Complex, Tensor]:
        """Several shapes as one complex, and their labels ``[n]``. ``DataLoader`` calls this once per batch."""
        positions = self.shapes._positions(indices)
        return self.shapes._take(positions), self.labels[positions]

    def select(self, indices: Indices) -> Dataset:
        """The data set with only these shapes, in the given order. Each stays in its split."""
        chosen = self.shapes._positions(indices)
        shapes, labels = self.__getitems__(chosen)
        chosen = chosen.cpu()
        splits = {name: torch.isin(chosen, members).nonzero().squeeze(1) for name, members in self.splits.items()}
        names, strata = (tuple(old[index] for index in chosen.tolist()) if old else () for old in (self.names, self.strata))
        return replace(self, shapes=shapes, labels=labels, splits=splits, names=names, strata=strata)

    def split(self, name: str) -> Dataset:
        """The data set with only the shapes of one split, in its order.

        >>> from eulerscan.datasets import load
        >>> load("manifolds", num_shapes=10).split("test")
        Dataset('manifolds', 8 shapes, 4 classes, train 0, val 0, test 8)
        """
        return self.select(self.indices(name))

    def to(self, device: torch.device | str) -> Dataset:
        """Move shapes and labels to a device, where batches are then assembled. Splits stay on the CPU."""
        return replace(self, shapes=self.shapes.to(device), labels=self.labels.to(device))

    def loader(
        self,
        split: str | None = None,
        *,
        batch_size: int = 64,
        shuffle: bool = False,
        generator: torch.Generator | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        drop_last: bool = False,
        **options: Any,
    ) -> data.DataLoader[tuple[Complex, Tensor]]:
        """Batches ``(shapes, labels)``: a :class:`Complex` and a tensor ``[batch_size]``.

        A batch is gathered from the tensors of the whole data set, without an object per shape. Worker processes are rarely
        faster.

        Args:
            split: Name of the split; ``None`` for all shapes.
            shuffle: Whether to shuffle in every pass, with ``generator``.
            pin_memory: Whether to pin the memory of batches. Ignored without an accelerator.
            options: Other options of ``torch.utils.data.DataLoader``.
        """
        members = torch.arange(len(self)) if split is None else self.indices(split)
        batches: Any = BatchSampler(members, batch_size, shuffle=shuffle, generator=generator, drop_last=drop_last)
        dataset: Any = self
        return data.DataLoader(
            dataset,
            batch_sampler=batches,
            generator=generator,
            num_workers=num_workers,
            pin_memory=pin_memory and torch.accelerator.is_available(),
            collate_fn=identity,
            **options,
        )

    def indices(self, split: str) -> Tensor:
        """Indices of the shapes of a split."""
        if not self.splits:
            raise ValueError(
                f"split must be one of the data set, got {split!r}, but {self.name!r} has no splits. Give it some: "
                "splits=eulerscan.datasets.splits.stratified(labels)."
            )
        if split not in self.splits:
            raise ValueError(f"split must be one of {', '.join(self.splits)}, got {split!r}.")
        return self.splits[split]


@dataclass(frozen=True)
class BatchSampler(data.Sampler[Tensor]):
    """Batches of indices as tensors. The samplers of torch iterate over single integers, which is slow."""

    members: Tensor
    batch_size: int
    _: KW_ONLY
    shuffle: bool = False
    generator: torch.Generator | None = None
    drop_last: bool = False

    def __post_init__(self) -> None:
        positive(self.batch_size, "batch_size")

    def __iter__(self) -> Iterator[Tensor]:
        members = self.members
        if self.shuffle:
            members = members[torch.randperm(len(members), generator=self.generator)]
        for batch in range(len(self)):
            yield members[batch * self.batch_size : (batch + 1) * self.batch_size]

    def __len__(self) -> int:
        return len(self.members) // self.batch_size if self.drop_last else -(-len(self.members) // self.batch_size)


def identity(batch: Any) -> Any:
    """The ``collate_fn``, since ``__getitems__`` returns a batch. Not a lambda, which workers could not unpickle."""
    return batch


def _check_labels(labels: Tensor, count: int, num_classes: int) -> None:
    if not isinstance(labels, Tensor) or labels.dtype != torch.int64:
        hint = "" if isinstance(labels, Tensor) else " Use torch.tensor(labels)."
        raise TypeError(f"labels must be an int64 tensor, got {_kind(labels)}.{hint}")
    if labels.shape != (count,):
        raise ValueError(f"labels must have one entry per shape, shape [{count}], got {list(labels.shape)}.")
    low, high = (int(labels.min()), int(labels.max())) if count else (0, -1)
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"labels must be from 0 to {num_classes - 1} (one for each name in classes), got {low if low < 0 else high}."
        )


def _kind(value: Any) -> str:
    return f"{value.dtype} of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def check_dataset(dataset: Dataset) -> None:
    """Raise for shapes that are no data set."""
    given: Any = dataset
    if not isinstance(given, Dataset):
        kind = type(given).__name__
        raise TypeError(
            f"dataset must be an eulerscan.datasets.Dataset, got {kind}. Make one by Dataset(name, shapes, labels, classes, "
            "splits). For the logits of shapes call the model."
        )
