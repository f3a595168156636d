"""Many labelled shapes, and how they are divided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils import data

from .._validation import positive
from ..complexes import Complex

Indices = Tensor | Sequence[int] | slice


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(data.Dataset[tuple[Complex, int]]):
    """Many labelled shapes in one :class:`Complex`.

    ``dataset[i]`` is one shape and its label. ``dataclasses.replace(dataset, shapes=dataset.shapes.normalized())`` is the same
    data set with other shapes.

    Args:
        name: What it is called.
        shapes: All shapes, ``B`` of them.
        labels: The class of each, ``[B]``, int64.
        classes: The names of the classes.
        splits: Which shapes are for what: ``{"train": indices, "val": indices, "test": indices}``. No shape is in two.
        names: Of the shapes, such as the files that they come from; empty where they have none.

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

    def __post_init__(self) -> None:
        count = self.shapes.num_complexes
        _check_labels(self.labels, count, len(self.classes))
        if len(self.names) not in (0, count):
            raise ValueError(f"names must have one entry a shape, {count} of them, or none, got {len(self.names)}.")
        owner: Tensor = torch.zeros(count, dtype=torch.int64)  # which split has the shape, counted from one
        for number, (name, indices) in enumerate(self.splits.items(), start=1):
            if not isinstance(indices, Tensor) or indices.dtype != torch.int64 or indices.ndim != 1:
                raise TypeError(f"splits[{name!r}] must be a tensor of int64 [n], got {_kind(indices)}.")
            if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < count:
                bad = int(indices.min()) if int(indices.min()) < 0 else int(indices.max())
                raise IndexError(f"splits[{name!r}] must hold indices from 0 to {count - 1}, got {bad}.")
            taken = owner[indices]
            if bool(taken.any()):
                where = int(taken.nonzero()[0, 0])
                other = list(self.splits)[int(taken[where]) - 1]
                raise ValueError(
                    f"splits must have no shape in common, got {int(indices[where])} in {other!r} and in {name!r}."
                )
            owner[indices] = number
            if int((owner == number).sum()) != len(indices):
                raise ValueError(f"splits[{name!r}] must name every shape once, got one of them again.")

    def __len__(self) -> int:
        return self.shapes.num_complexes

    def __repr__(self) -> str:
        parts = [f"{len(self)} shapes", f"{len(self.classes)} classes", *(f"{k} {len(v)}" for k, v in self.splits.items())]
        return f"Dataset({self.name!r}, {', '.join(parts)})"

    def __getitem__(self, index: int) -> tuple[Complex, int]:
        return self.shapes.select(int(index)), int(self.labels[index])

    def __getitems__(self, indices: Indices) -> tuple[Complex, Tensor]:
        """Several shapes as one complex and their labels ``[n]``: what ``DataLoader`` asks for, a batch at a time."""
        positions = self.shapes._positions(indices)
        return self.shapes._take(positions), self.labels[positions]

    def select(self, indices: Indices) -> Dataset:
        """Some of the shapes, in the given order, each in the split that it was in."""
        chosen = self.shapes._positions(indices)
        shapes, labels = self.__getitems__(chosen)
        chosen = chosen.cpu()
        splits = {name: torch.isin(chosen, members).nonzero().squeeze(1) for name, members in self.splits.items()}
        names = tuple(self.names[index] for index in chosen.tolist()) if self.names else ()
        return replace(self, shapes=shapes, labels=labels, splits=splits, names=names)

    def split(self, name: str) -> Dataset:
        """The shapes of one split, in its order.

        >>> from eulerscan.datasets import load
        >>> load("manifolds", num_shapes=10).split("test")
        Dataset('manifolds', 8 shapes, 4 classes, train 0, val 0, test 8)
        """
        return self.select(self.indices(name))

    def to(self, device: torch.device | str) -> Dataset:
        """Shapes and labels on another device: batches are then assembled there. Splits stay where they are."""
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

        A batch is gathered from the tensors of the whole data set, with no object for a single shape, so workers are seldom
        worth their cost.

        Args:
            split: Whose shapes; all of them if ``None``.
            shuffle: A new order in every pass, drawn from ``generator``.
            pin_memory: Batches lie in memory that an accelerator copies from faster. Ignored where there is none.
            options: Others of ``torch.utils.data.DataLoader``, such as ``multiprocessing_context`` or ``persistent_workers``.
        """
        members = torch.arange(len(self)) if split is None else self.indices(split)
        batches: Any = Batches(members, batch_size, shuffle=shuffle, generator=generator, drop_last=drop_last)
        dataset: Any = self
        return data.DataLoader(
            dataset,
            batch_sampler=batches,
            generator=generator,
            num_workers=num_workers,
            pin_memory=pin_memory and torch.accelerator.is_available(),
            collate_fn=as_it_is,
            **options,
        )

    def indices(self, split: str) -> Tensor:
        """Which shapes belong to a split."""
        if split not in self.splits:
            raise ValueError(
                f"split must be one of {', '.join(self.splits) or 'none, since there are no splits'}, got {split!r}."
            )
        return self.splits[split]


@dataclass(frozen=True)
class Batches(data.Sampler[Tensor]):
    """Which shapes are in which batch: tensors, where torch's own samplers count out numbers one by one."""

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


def as_it_is(batch: Any) -> Any:
    """The ``collate_fn`` of a data set whose ``__getitems__`` collates: a function with a name, for workers to find."""
    return batch


def _check_labels(labels: Tensor, count: int, num_classes: int) -> None:
    if not isinstance(labels, Tensor) or labels.dtype != torch.int64:
        raise TypeError(f"labels must be a tensor of int64, got {_kind(labels)}.")
    if labels.shape != (count,):
        raise ValueError(f"labels must have one entry a shape, shape [{count}], got {list(labels.shape)}.")
    low, high = (int(labels.min()), int(labels.max())) if count else (0, -1)
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"labels must be from 0 to {num_classes - 1} for {num_classes} classes, got {low if low < 0 else high}."
        )


def _kind(value: Any) -> str:
    return f"{value.dtype} of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
