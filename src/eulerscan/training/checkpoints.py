"""Checkpoints: weights and training state as safetensors files, from which interrupted training resumes.

Files are written atomically, and nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .._imports import require
from .._storage import naming, replacing
from ..datasets import Dataset
from ..nn import ECTLayer
from ..nn.models import ECTSVM
from . import distributed
from .config import TrainingConfig, fingerprint

Epoch = dict[str, Any]  # metrics of an epoch, by name


class Checkpoints:
    """The checkpoints of one training: in a folder, or only the best weights in memory.

    Args:
        folder: Folder of ``model.safetensors`` (best epoch), ``training.safetensors`` (last epoch) and ``metrics.jsonl`` (one
            line per epoch); ``None`` keeps the best weights in memory.
        identity: Of model and data, by :func:`identity`.
    """

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, config: TrainingConfig, folder: Path | None, identity: str = ""
    ) -> None:
        self.model, self.optimizer, self.config, self.folder, self.identity = model, optimizer, config, folder, identity
        self.best: dict[str, Tensor] = {}

    def resume(self) -> tuple[list[Epoch], int]:
        """Load the last epoch of interrupted training. Returns its history and best epoch; ``([], 0)`` for new training."""
        if self.folder is None or not (self.folder / "training.safetensors").exists():
            return [], 0
        path = self.folder / "training.safetensors"
        tensors, progress = read_training(path)
        self._check(progress)
        restore_training(self.model, self.optimizer, tensors, path)
        history, best_epoch = progress["history"], progress["best_epoch"]
        if distributed.is_first():
            # Killed between the two files of an epoch, metrics.jsonl has a line too many.
            lines = "".join(json.dumps(record) + "\n" for record in history)
            with naming(self.folder / "metrics.jsonl"):
                (self.folder / "metrics.jsonl").write_text(lines, encoding="utf-8")
        return history, best_epoch

    def _check(self, progress: dict[str, Any]) -> None:
        """Raise unless interrupted training was of this model, on these data and with these settings."""
        advice = "so it cannot be resumed with these. Choose another folder, or delete this one."
        try:
            before = TrainingConfig.from_dict(progress["config"])
        except (TypeError, KeyError, ValueError):  # perhaps from a later version
            raise ValueError(f"{self.folder} holds training with other settings, {advice}") from None
        if changed := [name for name, value in vars(self.config).items() if value != getattr(before, name)]:
            raise ValueError(f"{self.folder} holds training with other settings ({', '.join(changed)}), {advice}")
        if progress.get("identity", self.identity) != self.identity:
            raise ValueError(f"{self.folder} holds training of another model or on other data, {advice}")

    def save_epoch(self, history: list[Epoch], best_epoch: int) -> None:
        """Save the last epoch of ``history``, and its weights if it is the best one."""
        is_best = best_epoch == len(history)
        if self.folder is None:
            if is_best:
                self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            return
        if distributed.is_first():
            if is_best:
                save_model(self.model, self.folder / "model.safetensors")
            metrics = self.folder / "metrics.jsonl"
            with naming(metrics), metrics.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(history[-1]) + "\n")
            # Last: if killed before this, the epoch is repeated and writes the same files.
            progress = {"history": history, "best_epoch": best_epoch, "config": asdict(self.config), "identity": self.identity}
            save_training(self.model, self.optimizer, progress, self.folder / "training.safetensors")

    def restore_best(self) -> None:
        """Load the weights of the best epoch into the model."""
        distributed.barrier()
        if self.folder is None:
            self.model.load_state_dict(self.best)
        else:
            load_model(self.model, self.folder / "model.safetensors")


def identity(model: nn.Module, dataset: Dataset) -> str:
    """A hash of the settings of a model, and of the data it is trained on."""
    modules = [
        (
            module.config,
            module.on_sphere,
            module.rotate_directions,
            [n for n, p in module.named_parameters() if p.requires_grad],
        )
        if isinstance(module, ECTLayer)
        else (type(module).__name__, module.extra_repr())
        for module in model.modules()
    ]
    digest = hashlib.sha256(repr((modules, fingerprint(dataset))).encode())
    packed = dataset.shapes.packed
    for tensor in (packed.points, packed.simplices, packed.weights):
        if tensor is not None and tensor.numel():
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def save_model(model: nn.Module, path: Path) -> None:
    """Save the weights of a model."""
    _save(dict(model.state_dict()), path)


def load_model(model: nn.Module, path: Path) -> None:
    """Load weights into a model of the same sizes."""
    tensors, _ = _load(path)
    _load_state(model, tensors, path)


def check_model(model: nn.Module, path: Path) -> None:
    """Raise unless a file holds the weights of a model of these sizes."""
    _check_shapes(model, _load(path)[0], path)


def save_training(model: nn.Module, optimizer: Optimizer, progress: dict[str, Any], path: Path) -> None:
    """Save what resuming needs: weights, optimizer state and progress."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in state.items()}
    _save(tensors, path, progress)


def read_training(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the progress that :func:`save_training` saved."""
    tensors, progress = _load(path)
    if progress is None:
        raise ValueError(f"{path} holds no training state.")
    kinds = {"history": list, "best_epoch": int, "config": dict}
    if not isinstance(progress, dict) or not all(isinstance(progress.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(f"{path} is damaged: it lacks the progress of training.")
    return tensors, progress


def restore_training(model: nn.Module, optimizer: Optimizer, tensors: dict[str, Tensor], path: Path) -> None:
    """Load the tensors of :func:`read_training` into a model and its optimizer."""
    _load_state(model, {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}, path)
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            states.setdefault(int(index) if index.isdigit() else -1, {})[key] = tensor
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    # Parameters without a gradient have no state.
    fits = (
        bool(states)
        and set(states) <= set(range(len(parameters)))
        and all(
            {"exp_avg", "exp_avg_sq", "step"} <= set(state) and state["exp_avg"].shape == parameters[i].shape
            for i, state in states.items()
        )
    )
    if not fits:
        raise ValueError(f"{path} is damaged: its optimizer state does not fit the model.")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": states})


def _save(tensors: dict[str, Tensor], path: Path, progress: dict[str, Any] | None = None) -> None:
    safetensors, package = require("safetensors.torch", extra="cli"), require("safetensors", extra="cli")
    metadata = None if progress is None else {"progress": json.dumps(progress)}
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        with replacing(path) as partial:
            safetensors.save_file(contiguous, partial, metadata)
    except package.SafetensorError as error:  # such as a full disk
        raise OSError(f"Could not write {path}: {error}.") from None


def _load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    safetensors = require("safetensors", extra="cli")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing.")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            progress = json.loads(metadata["progress"]) if "progress" in metadata else None
            return {name: file.get_tensor(name) for name in file.keys()}, progress  # noqa: SIM118
    except (safetensors.SafetensorError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def _load_state(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """``load_state_dict``, with an error that names the file and one tensor."""
    _check_shapes(model, tensors, path)
    model.load_state_dict(tensors)


def _check_shapes(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    for name, module in model.named_modules():
        if isinstance(module, ECTSVM):  # whose size is known only after fitting
            module.resize(len(tensors.get(f"{name}.head.support".removeprefix("."), ())))
    expected = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise ValueError(
                f"{path} does not fit the model: {name} has shape {found.get(name, 'none')} in the file, "
                f"{expected.get(name, 'none')} in the model."
            )
