"""The training loop of a classifier of shapes.

An epoch is a function of the weights, the optimizer state, the seed and the number of the epoch. So a run that was killed
resumes from its last complete epoch to the same result, bit by bit, with the same number of threads and processes.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .._devices import has_float64
from .._progress import progress_bar
from ..complexes import Complex
from ..datasets import Dataset
from ..datasets.dataset import check_dataset
from ..nn.models import ECTSVM, Classifier, Ensemble
from . import distributed
from .checkpoints import Checkpoints, Epoch, identity, save_model
from .config import TrainingConfig
from .metrics import Metrics, confusion
from .rng import generator, seeded

ORDER, AUGMENTATION, DROPOUT = range(3)  # each has its own random numbers
MEMBERS = "members"  # folder of an ensemble for their training
MOST_FIXED = 2**28  # entries of transforms that are computed once: 1 GB


@dataclass(frozen=True)
class Trained:
    """The result of training. The model that was passed holds the weights of the best epoch, and is in evaluation mode.

    Attributes:
        history: Metrics of each epoch: losses, validation scores, learning rate, seconds.
        best_epoch: The epoch that ``select_by`` selected; the last one without a validation split.
    """

    history: list[Epoch] = field(repr=False)
    best_epoch: int

    @property
    def seconds_per_epoch(self) -> float:
        """Median training time of an epoch, without validation."""
        return float(np.median([epoch["seconds"] for epoch in self.history]))


def train(
    model: nn.Module,
    dataset: Dataset,
    config: TrainingConfig | None = None,
    folder: str | Path | None = None,
    *,
    on_epoch: Callable[[Epoch], None] | None = None,
    progress: bool = True,
) -> Trained:
    """Train ``model`` on the training split, load the weights of the epoch that ``select_by`` selects, and leave the model in
    evaluation mode.

    Processes started by ``torchrun`` train together: each batch is divided between them. Batch normalization then uses the
    statistics of the share of each process.

    Args:
        model: Any module from a :class:`Complex` to logits ``[B, C]``. The members of an
            :class:`~eulerscan.nn.models.Ensemble` are trained one by one.
        dataset: With the splits ``"train"`` and, to select an epoch, ``"val"``. No other split is used.
        config: See :class:`TrainingConfig`.
        folder: Folder for ``model.safetensors`` (the best epoch), ``training.safetensors`` (the last one, to resume from) and
            ``metrics.jsonl``, one line per epoch. Interrupted training of a network in this folder is
            resumed. That of another network, on other data or with other settings raises an error.
        on_epoch: Called with the metrics of each epoch.
        progress: Whether to show a progress bar.
    """
    config, folder = config or TrainingConfig(), None if folder is None else Path(folder)
    check_dataset(dataset)
    if not len(dataset.indices("train")):
        raise ValueError(f"The training split of {dataset.name} must not be empty.")
    if isinstance(model, ECTSVM):
        return _fit(model, dataset, config, folder)
    if isinstance(model, Ensemble):
        return _train_members(model, dataset, config, folder, progress)
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fused = {parameter.device.type for parameter in learned} <= {"cpu", "cuda"}  # all parameters in one loop
    optimizer = torch.optim.AdamW(learned, lr=config.learning_rate, weight_decay=config.weight_decay, fused=fused or None)
    checkpoints = Checkpoints(model, optimizer, config, folder, identity(model, dataset) if folder else "")
    history, best_epoch = checkpoints.resume()
    parallel = distributed.parallel(model)
    weights = _class_weights(dataset, config)
    validated = bool(len(dataset.splits.get("val", ())))
    changing = config.num_points is not None or bool(config.augmentation)  # the training shapes
    curves = _fixed_transforms(model, dataset, config, ["train"] * (not changing) + ["val"] * validated)
    bar = progress_bar(config.epochs, "training", initial=len(history), hidden=not (progress and distributed.is_first()))
    try:
        while len(history) < config.epochs and not _stalled(history, best_epoch, config.patience):
            record = _epoch(parallel, dataset, config, optimizer, weights, 1 + len(history), None if changing else curves)
            distributed.broadcast_buffers(model)  # so that all processes validate and keep the same model
            if validated:
                batches = distributed.shard(dataset.indices("val")).split(4 * config.batch_size)
                record |= _measure(model, dataset, batches, config.num_points, curves).summary("val_")
            history.append(record)
            if best_epoch == 0 or not validated or _score(record, config) > _score(history[best_epoch - 1], config):
                best_epoch = record["epoch"]
            checkpoints.save_epoch(history, best_epoch)
            bar.update(1)
            bar.set_postfix_str(_brief(record))
            if on_epoch is not None and distributed.is_first():
                on_epoch(record)
    finally:
        bar.close()
    checkpoints.restore_best()
    model.eval()
    return Trained(history, best_epoch)


def evaluate(
    model: nn.Module,
    dataset: Dataset,
    split: str = "test",
    *,
    batch_size: int = 256,
    num_points: int | None = None,
    on_batch: Callable[[Tensor, Tensor], None] | None = None,
) -> Metrics:
    """Metrics of a model on one split. Processes started by ``torchrun`` divide the work.

    Args:
        num_points: Take only the first points of each cloud: the ``num_points`` of the :class:`TrainingConfig`.
        on_batch: Called with indices ``[n]`` and logits ``[n, C]`` of each batch of this process.
    """
    check_dataset(dataset)
    batches = distributed.shard(dataset.indices(split)).split(batch_size)
    return _measure(model, dataset, batches, num_points, on_batch=on_batch)


@torch.no_grad()
def _measure(
    model: nn.Module,
    dataset: Dataset,
    batches: Sequence[Tensor],
    num_points: int | None,
    curves: Tensor | None = None,
    on_batch: Callable[[Tensor, Tensor], None] | None = None,
) -> Metrics:
    """Metrics on batches of indices, of all processes together."""
    num_classes, all_labels = len(dataset.classes), dataset.labels.cpu()
    total, counts = torch.zeros((), dtype=torch.float64), torch.zeros(num_classes, num_classes, dtype=torch.int64)
    for indices, logits in zip(batches, _logits(model, dataset, batches, num_points, curves), strict=True):
        labels = all_labels[indices]
        total += nn.functional.cross_entropy(logits, labels, reduction="sum").double()
        counts += confusion(labels, logits.argmax(dim=1), num_classes)
        if on_batch is not None:
            on_batch(indices, logits)
    counts, total = distributed.all_reduce(counts), distributed.all_reduce(total)
    return Metrics(counts, float(total) / max(1, int(counts.sum())))


def predict(model: nn.Module, dataset: Dataset, split: str = "test", *, num_points: int | None = None) -> Tensor:
    """Logits ``[B, C]`` of the shapes of one split, in its order. Every process computes all of them.

    For shapes that are in no data set call the model itself, in evaluation mode: ``model.eval()(shapes)``.
    """
    check_dataset(dataset)
    found = list(_logits(model, dataset, dataset.indices(split).split(256), num_points))
    return torch.cat([torch.zeros(0, len(dataset.classes)), *found])


@torch.no_grad()
def _logits(
    model: nn.Module, dataset: Dataset, batches: Sequence[Tensor], num_points: int | None, curves: Tensor | None = None
) -> Iterator[Tensor]:
    """Logits ``[n, C]`` of each batch of indices, on the CPU. The transforms are given if they are fixed."""
    device, training = next(model.parameters(), torch.empty(0)).device, model.training
    model.eval()
    try:
        for indices in batches:
            if curves is not None and isinstance(model, Classifier):
                logits = model.head(curves[indices].to(model.layer.weight.dtype))
            else:
                shapes, _ = dataset.__getitems__(indices)
                if num_points is not None:
                    shapes = shapes.subsample(num_points)
                logits = model(shapes.to(device))
            yield _checked(logits, dataset).cpu()
    finally:
        model.train(training)


def _train_members(model: Ensemble, dataset: Dataset, config: TrainingConfig, folder: Path | None, progress: bool) -> Trained:
    """Train each member of an ensemble, in a folder of its own. The history is one epoch with the mean of their losses."""
    histories = []
    for number, member in enumerate(model.members):
        place = None if folder is None else folder / MEMBERS / str(number)
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
        histories.append(train(member, dataset, config, place, progress=progress).history)
    seconds = sum(epoch["seconds"] for history in histories for epoch in history)
    return _finished(model, dataset, config, folder, float(np.mean([history[-1]["loss"] for history in histories])), seconds)


def _fit(model: ECTSVM, dataset: Dataset, config: TrainingConfig, folder: Path | None) -> Trained:
    """Fit an SVM to the training split. Its history is a single epoch."""
    begin = time.perf_counter()
    indices = dataset.indices("train")
    shapes, labels = dataset.__getitems__(indices)
    strata = [dataset.strata[i] for i in indices.tolist()] if dataset.strata else None
    if config.num_points is not None:
        shapes = shapes.subsample(config.num_points)
    with seeded(config.seed, 1, DROPOUT):  # for rotate_directions
        model.fit(shapes.to(model.layer.weight.device), labels, balanced=config.balance != "none", strata=strata)
    seconds = time.perf_counter() - begin
    return _finished(
        model, dataset, config, folder, evaluate(model, dataset, "train", num_points=config.num_points).loss, seconds
    )


def _finished(
    model: nn.Module, dataset: Dataset, config: TrainingConfig, folder: Path | None, loss: float, seconds: float
) -> Trained:
    """The single epoch of a model that is fitted at once, which is kept."""
    record: Epoch = {"epoch": 1, "loss": loss, "seconds": seconds}
    if len(dataset.splits.get("val", ())):
        record |= evaluate(model, dataset, "val", num_points=config.num_points).summary("val_")
    if folder is not None and distributed.is_first():
        save_model(model, folder / "model.safetensors")
        (folder / "metrics.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    distributed.barrier()
    model.eval()
    return Trained([record], 1)


@torch.no_grad()
def _fixed_transforms(model: nn.Module, dataset: Dataset, config: TrainingConfig, splits: Sequence[str]) -> Tensor | None:
    """``[B, ...]``: the transforms of the shapes of some splits, if the layer is fixed and they fit into memory."""
    if not isinstance(model, Classifier) or model.layer.rotate_directions or distributed.world_size() > 1:
        return None
    if config.num_points is not None or not splits:
        return None
    entries = len(dataset) * math.prod(model.layer.config.shape(model.layer.dim))
    if any(parameter.requires_grad for parameter in model.layer.parameters()) or entries > MOST_FIXED:
        return None
    curves: Tensor | None = None
    for indices in torch.cat([dataset.indices(split) for split in splits]).split(256):
        found = model.layer(model.oriented(dataset.__getitems__(indices)[0].to(model.layer.weight.device)))
        curves = found.new_empty(len(dataset), *found.shape[1:]) if curves is None else curves
        curves[indices] = found
    return curves


def _epoch(
    model: nn.Module,
    dataset: Dataset,
    config: TrainingConfig,
    optimizer: torch.optim.Optimizer,
    weights: Tensor,
    epoch: int,
    curves: Tensor | None,
) -> Epoch:
    """One pass over the training split. Returns its metrics. The transforms of all shapes are given if they are fixed."""
    begin = time.perf_counter()
    batches = _order(dataset, config, epoch).split(config.batch_size)
    noise = generator(config.seed, epoch, AUGMENTATION, distributed.rank())
    device, all_labels = next(model.parameters()).device, dataset.labels.cpu()
    summed = torch.zeros((), dtype=torch.float64 if has_float64(device) else torch.float32, device=device)
    class_weights = weights.to(device)
    counted = 0.0
    model.train()
    with seeded(config.seed, epoch, DROPOUT, distributed.rank(), device=device):
        for step, batch in enumerate(batches):
            rate = _learning_rate(config, epoch - 1 + step / len(batches))
            for group in optimizer.param_groups:
                group["lr"] = rate
            if curves is not None and isinstance(model, Classifier):
                labels = all_labels[batch].to(device)
                logits = model.head(curves[batch].to(model.layer.weight.dtype))
            else:
                shapes, labels = dataset.__getitems__(distributed.shard(batch))
                if config.num_points is not None:
                    shapes = shapes.subsample(config.num_points, generator=noise)
                if config.augmentation:
                    shapes = config.augmentation(shapes, noise)
                shapes, labels = _moved(shapes, labels, device)
                logits = model(shapes)
            logits = _checked(logits, dataset)
            loss = nn.functional.cross_entropy(logits, labels, class_weights.to(logits.dtype), reduction="sum")
            # The size of the whole batch, not of this process's share: gradients are averaged over processes. Computed on the
            # CPU, so that the host need not wait for a GPU in every step.
            size = float(weights[all_labels[batch]].sum())
            optimizer.zero_grad()
            (loss * distributed.world_size() / size).backward()
            if config.clip:
                nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            summed += loss.detach().to(summed.dtype)
            counted += size
    mean = float(distributed.all_reduce(summed)) / counted
    if not math.isfinite(mean):
        raise FloatingPointError(f"The loss is {mean} in epoch {epoch}. Try a smaller learning_rate or clip.")
    seconds = time.perf_counter() - begin
    return {"epoch": epoch, "loss": mean, "learning_rate": rate, "seconds": seconds}


def _checked(logits: Tensor, dataset: Dataset) -> Tensor:
    """The logits, if there is one for each class."""
    if logits.ndim != 2 or logits.shape[1] != len(dataset.classes):
        raise ValueError(
            f"model must return logits [B, {len(dataset.classes)}], one for each class of {dataset.name}, "
            f"got shape {list(logits.shape)}."
        )
    return logits


def _moved(shapes: Complex, labels: Tensor, device: torch.device) -> tuple[Complex, Tensor]:
    """A batch on the device, to a GPU by pinned memory, so that the host need not wait for the copy."""
    if device.type != "cuda" or not labels.is_cpu:  # a copy from a GPU that is not waited for would be read too early
        return shapes.to(device), labels.to(device)
    shapes, labels = shapes.pin_memory(), labels.pin_memory()
    return shapes.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def _order(dataset: Dataset, config: TrainingConfig, epoch: int) -> Tensor:
    """The training shapes in the order of this epoch, the same in every process."""
    indices, chance = dataset.indices("train"), generator(config.seed, epoch, ORDER)
    if config.balance != "sampling":
        return indices[torch.randperm(len(indices), generator=chance)]
    labels = dataset.labels.cpu()[indices]
    rarity = 1 / torch.bincount(labels).double()
    return indices[torch.multinomial(rarity[labels], len(indices), replacement=True, generator=chance)]


def _class_weights(dataset: Dataset, config: TrainingConfig) -> Tensor:
    """``[C]``: inversely proportional to class sizes, with mean 1 over the training shapes; or all ones."""
    sizes = torch.bincount(dataset.labels[dataset.indices("train")], minlength=len(dataset.classes))
    if config.balance != "weights":
        return torch.ones(len(sizes))
    occurring = sizes > 0
    return torch.where(occurring, sizes.sum() / (occurring.sum() * sizes.clamp(min=1)), 0.0).float()


def _learning_rate(config: TrainingConfig, epochs_done: float) -> float:
    if config.schedule == "constant":
        return config.learning_rate
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * epochs_done / config.epochs))


def _score(record: Epoch, config: TrainingConfig) -> tuple[float, float]:
    """Larger for a better epoch."""
    if config.select_by == "last":
        return record["epoch"], 0.0
    loss = -record["val_loss"]
    return (loss, loss) if config.select_by == "loss" else (record[f"val_{config.select_by}"], loss)


def _stalled(history: list[Epoch], best_epoch: int, patience: int) -> bool:
    return patience > 0 and len(history) - best_epoch >= patience


def _brief(record: Epoch) -> str:
    validation = f", validation {record['val_accuracy']:.1f} %" if "val_accuracy" in record else ""
    return f"loss {record['loss']:.3f}{validation}"
