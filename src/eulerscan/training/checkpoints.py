"""Weights and the state of training as safetensors: whole files or none, and never a pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from .._imports import require
from .._storage import replacing


def save_model(model: nn.Module, path: Path) -> None:
    """Write the weights of a model."""
    _save(dict(model.state_dict()), path)


def load_model(model: nn.Module, path: Path) -> None:
    """Read weights into a model of the same sizes."""
    tensors, _ = _load(path)
    _put(model, tensors, path)


def save_training(model: nn.Module, optimiser: Optimizer, progress: dict[str, Any], path: Path) -> None:
    """Write all that is needed to go on: weights, what the optimiser remembers, and how far training has come."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for index, memory in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": tensor for name, tensor in memory.items()}
    _save(tensors, path, progress)


def load_training(model: nn.Module, optimiser: Optimizer, path: Path) -> dict[str, Any]:
    """Read what :func:`save_training` wrote; returns the progress."""
    tensors, progress = _load(path)
    if progress is None:
        raise ValueError(f"{path} holds no state of training.")
    _put(model, {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}, path)
    if not isinstance(progress, dict) or not {"history", "best_epoch", "settings"} <= set(progress):
        raise ValueError(f"{path} is damaged: it does not say how far training has come.")
    memory: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".", 2)
            memory.setdefault(int(index) if index.isdigit() else -1, {})[key] = tensor
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    fits = set(memory) == set(range(len(parameters))) and all(
        {"exp_avg", "exp_avg_sq", "step"} <= set(memory[i]) and memory[i]["exp_avg"].shape == parameter.shape
        for i, parameter in enumerate(parameters)
    )
    if not fits:
        raise ValueError(f"{path} is damaged: what it holds of the optimiser does not fit the model.")
    state = optimiser.state_dict()
    state["state"] = memory
    optimiser.load_state_dict(state)
    return progress


def _save(tensors: dict[str, Tensor], path: Path, progress: dict[str, Any] | None = None) -> None:
    safetensors, package = require("safetensors.torch", extra="cli"), require("safetensors", extra="cli")
    metadata = None if progress is None else {"progress": json.dumps(progress)}
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        with replacing(path) as partial:
            safetensors.save_file(contiguous, partial, metadata)
    except package.SafetensorError as error:  # a full disk, for one
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
    except (safetensors.SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def _put(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    wanted = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            raise ValueError(
                f"{path} does not fit the model: {name} is {found.get(name, 'absent')} there, "
                f"the model needs {wanted.get(name, 'none')}."
            )
    model.load_state_dict(tensors)
