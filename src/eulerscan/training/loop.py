"""A plain loop that trains a classifier of shapes.

Everything that an epoch does follows from the weights, the memory of the optimiser, the seed and the number of the epoch.
So a run that was killed goes on from its last whole epoch to the same result, to the bit, with as many threads and processes
as before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from .._imports import progress_bar
from ..datasets import Dataset
from . import distributed
from .augmentation import Augmentation
from .metrics import Metrics, confusion
from .resuming import Epoch, Kept
from .rng import generator, seeded

Schedule = Literal["constant", "cosine"]
SelectBy = Literal["accuracy", "balanced_accuracy", "macro_f1", "loss", "last"]
Balance = Literal["none", "weights", "sampling"]
ORDER, AUGMENTATION, DROPOUT = range(3)  # each has random numbers of its own


@dataclass(frozen=True)
class Training:
    """How to train.

    Args:
        epochs: Passes over the training split, at most.
        batch_size: Shapes a step, over all processes together.
        learning_rate: Of Adam.
        schedule: Whether the learning rate stays or falls to zero along a cosine.
        weight_decay: Of AdamW.
        clip: Largest norm of the gradient; 0 for no limit.
        patience: Stop after so many epochs without a better validation score; 0 to go on to the end.
        select_by: The validation score that decides which epoch is kept; the loss decides between equals. Or last: the last
            epoch is kept, whatever its score; on a few dozen validation shapes the best one may be luck.
        balance: For classes of different sizes: weigh the loss of rare classes up, or draw them more often.
        augmentation: What happens to training shapes.
        seed: Of weights, order, augmentation, dropout, and points that are drawn anew.
    """

    epochs: int = 100
    batch_size: int = 64
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    clip: float = 5.0
    patience: int = 0
    select_by: SelectBy = "accuracy"
    balance: Balance = "none"
    augmentation: Augmentation = field(default_factory=Augmentation)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("epochs", self.epochs, 1),
            ("batch_size", self.batch_size, 1),
            ("patience", self.patience, 0),
        ):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}.")
        for name, number in (("clip", self.clip), ("weight_decay", self.weight_decay), ("seed", self.seed)):
            if not 0 <= number < math.inf:
                raise ValueError(f"{name} must be zero or more, got {number}.")
        for name, choice, choices in (
            ("schedule", self.schedule, Schedule),
            ("select_by", self.select_by, SelectBy),
            ("balance", self.balance, Balance),
        ):
            if choice not in get_args(choices):
                raise ValueError(f"{name} must be one of {', '.join(get_args(choices))}, got {choice!r}.")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}.")
        if self.patience and self.select_by == "last":
            raise ValueError(f"patience needs a score to wait for, so it must be 0 with select_by='last', got {self.patience}.")

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Training:
        """The settings that a file holds, by name. Options that came later than the file have their defaults."""
        return cls(**{**values, "augmentation": Augmentation(**values["augmentation"])})


@dataclass(frozen=True)
class Trained:
    """What training gives. The model that was passed holds the weights of the best epoch.

    Attributes:
        history: What is known of each epoch: losses, validation scores, learning rate, seconds.
        best_epoch: The epoch that ``select_by`` chose; the last one where there is no validation split.
    """

    history: list[Epoch] = field(repr=False)
    best_epoch: int

    @property
    def seconds_per_epoch(self) -> float:
        """Median time of the training part of an epoch."""
        return float(np.median([epoch["seconds"] for epoch in self.history]))


def train(
    model: nn.Module,
    dataset: Dataset,
    settings: Training | None = None,
    folder: Path | None = None,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    progress: bool = True,
) -> Trained:
    """Train ``model`` on the training split; keep the weights of the epoch that ``select_by`` chooses.

    Args:
        model: Any module from a :class:`Complex` to logits ``[B, C]``.
        dataset: With the splits ``"train"`` and, to choose an epoch, ``"val"``. No other split is looked at.
        settings: See :class:`Training`.
        folder: Where to keep ``model.safetensors`` (the best epoch), ``training.safetensors`` (the last one, to resume
            from) and ``metrics.jsonl``, a line an epoch. Training that was interrupted there goes on.
        on_epoch: Called with the record of each epoch.
        progress: Whether to show a bar.

    Processes started by ``torchrun`` train together: each batch is divided between them. Batch normalisation then goes by the
    share of its process.
    """
    settings = settings or Training()
    if not len(dataset.indices("train")):
        raise ValueError(f"The training split of {dataset.name} must hold shapes, got none.")
    device = next(model.parameters()).device
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(learned, lr=settings.learning_rate, weight_decay=settings.weight_decay)
    kept = Kept(model, optimiser, settings, folder)
    history, best_epoch = kept.resume()
    parallel = distributed.together(model)
    weights = _class_weights(dataset, settings).to(device)
    validated = bool(len(dataset.splits.get("val", ())))
    bar = progress_bar(settings.epochs, "training", initial=len(history), hidden=not (progress and distributed.is_first()))
    try:
        while len(history) < settings.epochs and not _stalled(history, best_epoch, settings.patience):
            record = _epoch(parallel, dataset, settings, optimiser, weights, 1 + len(history))
            distributed.agree(model)  # so that all judge, and keep, the same model
            if validated:
                record |= evaluate(model, dataset, "val", batch_size=4 * settings.batch_size).summary("val_")
            history.append(record)
            if best_epoch == 0 or not validated or _score(record, settings) > _score(history[best_epoch - 1], settings):
                best_epoch = record["epoch"]
            kept.epoch(history, best_epoch)
            bar.update(1)
            bar.set_postfix_str(_brief(record))
            if on_epoch is not None and distributed.is_first():
                on_epoch(record)
    finally:
        bar.close()
    kept.restore_best()
    return Trained(history, best_epoch)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    dataset: Dataset,
    split: str = "test",
    *,
    batch_size: int = 256,
    on_batch: Callable[[Tensor, Tensor], None] | None = None,
) -> Metrics:
    """Scores of a model on one split; processes started by ``torchrun`` divide the work.

    Args:
        on_batch: Called with the indices ``[n]`` of some shapes and their logits ``[n, C]``, until it saw all of this process.
    """
    device, num_classes = next(model.parameters()).device, len(dataset.classes)
    total, counts = torch.zeros((), dtype=torch.float64), torch.zeros(num_classes, num_classes, dtype=torch.int64)
    training = model.training
    model.eval()
    for indices in distributed.share(dataset.indices(split)).split(batch_size):
        shapes, labels = dataset.__getitems__(indices)
        logits, labels = model(shapes.to(device)).cpu(), labels.cpu()
        total += nn.functional.cross_entropy(logits, labels, reduction="sum").double()
        counts += confusion(labels, logits.argmax(dim=1), num_classes)
        if on_batch is not None:
            on_batch(indices, logits)
    model.train(training)
    counts, total = distributed.add_up(counts), distributed.add_up(total)
    return Metrics(counts, float(total) / max(1, int(counts.sum())))


def _epoch(
    model: nn.Module, dataset: Dataset, settings: Training, optimiser: torch.optim.Optimizer, weights: Tensor, epoch: int
) -> Epoch:
    """One pass over the training split; returns its record."""
    begin = time.perf_counter()
    batches = _order(dataset, settings, epoch).split(settings.batch_size)
    noise = generator(settings.seed, epoch, AUGMENTATION, distributed.rank())
    summed = torch.zeros((), dtype=torch.float64, device=weights.device)
    counted = 0.0
    model.train()
    with seeded(settings.seed, epoch, DROPOUT, distributed.rank()):
        for step, batch in enumerate(batches):
            rate = _learning_rate(settings, epoch - 1 + step / len(batches))
            for group in optimiser.param_groups:
                group["lr"] = rate
            shapes, labels = dataset.__getitems__(distributed.share(batch))
            if settings.augmentation:
                shapes = settings.augmentation(shapes, noise)
            labels = labels.to(weights.device)
            logits = model(shapes.to(weights.device))
            loss = nn.functional.cross_entropy(logits, labels, weights.to(logits.dtype), reduction="sum")
            # Of the whole batch, whatever the shares: processes average their gradients.
            size = float(weights[dataset.labels[batch]].sum())
            optimiser.zero_grad()
            (loss * distributed.world_size() / size).backward()
            if settings.clip:
                nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimiser.step()
            summed += loss.detach().double()
            counted += size
    mean = float(distributed.add_up(summed)) / counted
    if not math.isfinite(mean):
        raise FloatingPointError(f"The loss is {mean} in epoch {epoch}. A smaller learning_rate or clip may help.")
    seconds = time.perf_counter() - begin
    return {"epoch": epoch, "loss": mean, "learning_rate": rate, "seconds": seconds}


def _order(dataset: Dataset, settings: Training, epoch: int) -> Tensor:
    """The training shapes as this epoch sees them, the same in every process."""
    indices, chance = dataset.indices("train"), generator(settings.seed, epoch, ORDER)
    if settings.balance != "sampling":
        return indices[torch.randperm(len(indices), generator=chance)]
    labels = dataset.labels[indices]
    rarity = 1 / torch.bincount(labels).double()
    return indices[torch.multinomial(rarity[labels], len(indices), replacement=True, generator=chance)]


def _class_weights(dataset: Dataset, settings: Training) -> Tensor:
    """``[C]``: inversely proportional to the sizes of classes, with mean 1 over the training shapes; or all ones."""
    sizes = torch.bincount(dataset.labels[dataset.indices("train")], minlength=len(dataset.classes))
    if settings.balance != "weights":
        return torch.ones(len(sizes))
    occurring = sizes > 0
    return torch.where(occurring, sizes.sum() / (occurring.sum() * sizes.clamp(min=1)), 0.0).float()


def _learning_rate(settings: Training, epochs_done: float) -> float:
    if settings.schedule == "constant":
        return settings.learning_rate
    return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * epochs_done / settings.epochs))


def _score(record: Epoch, settings: Training) -> tuple[float, float]:
    """What is larger for a better epoch."""
    if settings.select_by == "last":
        return record["epoch"], 0.0
    loss = -record["val_loss"]
    return (loss, loss) if settings.select_by == "loss" else (record[f"val_{settings.select_by}"], loss)


def _stalled(history: list[Epoch], best_epoch: int, patience: int) -> bool:
    return patience > 0 and len(history) - best_epoch >= patience


def _brief(record: Epoch) -> str:
    validation = f", validation {record['val_accuracy']:.1f} %" if "val_accuracy" in record else ""
    return f"loss {record['loss']:.3f}{validation}"
