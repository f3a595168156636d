"""Runs: one model trained on one data set with one seed, in a folder with everything needed to resume, evaluate or predict.

config.json            the data, the model and the training
model.safetensors      weights of the best epoch
training.safetensors   checkpoint of the last epoch, to resume from
members/               the same files for each member of an ensemble
metrics.jsonl          one line per epoch
result.json            scores on the test split, once the run is finished
.lock                  process and host of a run that is being trained
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from .._storage import locked, write_json
from .._version import __version__
from ..datasets import Dataset
from ..nn.models import Classifier, Ensemble
from . import checkpoints, distributed
from .checkpoints import Epoch
from .config import RunConfig
from .loop import MEMBERS, Trained, evaluate, train
from .metrics import Metrics

LOCK = ".lock"


def start(
    folder: Path,
    config: RunConfig,
    dataset: Dataset,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    progress: bool = True,
    device: torch.device | None = None,
) -> dict[str, Any]:
    """Start or resume a run: train in ``folder``, then test. Returns the result, which is also in ``result.json``.

    A folder that another process trains in raises a ``BlockingIOError`` with its process id and host.

    Args:
        resume: Resume the run in the folder. A finished run only returns its result.
        overwrite: Delete the run in the folder first.
        on_epoch: Called with the metrics of each epoch.
        device: Device to compute on. Default: a GPU if there is one.
    """
    config.check_data(dataset)
    model = config.model.build(config.dim, len(config.classes), seed=config.training.seed)
    max_dim, num_points, found = config.model.max_dim, config.training.num_points, dataset.shapes.max_dim
    if max_dim is not None and found > max_dim:
        raise ValueError(f"max_dim must be at least {found}, since {dataset.name} has {found}-simplices, got {max_dim}.")
    if num_points is not None and found > 0:
        raise ValueError(
            f"num_points must be None, since it subsamples point clouds and {dataset.name} has {found}-simplices, "
            f"got {num_points}."
        )
    if distributed.is_first():
        check_folder(folder, resume=resume, overwrite=overwrite)
    with locked(folder / LOCK) if distributed.is_first() else nullcontext():
        if distributed.is_first():
            _prepare(folder, config, overwrite=overwrite)
        distributed.barrier()
        if (folder / "result.json").exists():
            return _read_result(folder / "result.json")
        model = model.to(device or distributed.device())
        trained = train(model, dataset, config.training, folder, on_epoch=on_epoch, progress=progress)
        result = _result(config, model, trained, evaluate(model, dataset, "test", num_points=num_points), folder)
        if distributed.is_first():
            write_json(folder / "result.json", result)
        return result


def save_run(folder: Path, config: RunConfig, model: Classifier | Ensemble) -> None:
    """Save a trained model, so that :func:`load_run` returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    checkpoints.save_model(model, folder / "model.safetensors")
    config.write(folder / "config.json")


def load_run(folder: str | Path) -> tuple[Classifier | Ensemble, RunConfig]:
    """The trained model of a run, in evaluation mode, and its configuration."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder. A run is a folder that `eulerscan train` or auto wrote.")
    config = RunConfig.read(folder / "config.json")
    weights, result = folder / "model.safetensors", folder / "result.json"
    if not weights.is_file():
        raise FileNotFoundError(f"{weights} is missing.")
    least = config.model.least_parameters(config.dim, len(config.classes))  # the configuration may claim any size
    if 2 * least > (size := weights.stat().st_size):  # two bytes each in half precision
        raise ValueError(
            f"{folder / 'config.json'} claims {least} or more parameters, but {weights.name} has {size} bytes: one of them is "
            "damaged."
        )
    try:
        with torch.device("meta"):  # without memory
            sizes = config.model.build(config.dim, len(config.classes))
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{folder / 'config.json'} is damaged: {error}") from None
    checkpoints.check_model(sizes, weights)
    model = config.model.build(config.dim, len(config.classes))
    checkpoints.load_model(model, weights)
    if result.exists() and _read_result(result).get("sha256") != _digest(weights):
        raise ValueError(f"{weights} does not match {result}: it was changed after training.")
    return model.eval(), config


def check_folder(folder: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Raise unless a run may start in the folder, or resume, as far as that can be told without its data."""
    holds_run = (folder / "config.json").exists()
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if (not holds_run and any(name != LOCK and not name.endswith(".partial") for name in names)) or folder.is_file():
        raise FileExistsError(f"{folder} exists and is not the folder of a run. Choose another folder.")
    if LOCK in names:
        with locked(folder / LOCK):  # raises if a process holds it
            pass
    if holds_run and not resume and not overwrite:
        raise FileExistsError(f"{folder} already holds a run. Use --resume to resume it, or --overwrite to start again.")


def _prepare(folder: Path, config: RunConfig, *, overwrite: bool) -> None:
    """Write the configuration of a run, or check that the run in its folder is the same, or remove that run."""
    files = ("result.json", "choice.json", "training.safetensors", "model.safetensors", "metrics.jsonl", "config.json")
    path = folder / "config.json"
    for partial in folder.glob(".*.partial"):  # of a run that was killed while writing
        partial.unlink()
    if path.exists() and overwrite:
        RunConfig.read(path)  # other programs have files of this name too
        for part in (folder / MEMBERS, folder / "tensorboard"):
            if part.is_symlink():
                part.unlink()
            elif part.exists():
                shutil.rmtree(part)
        for name in files:  # the configuration last: without it, the folder would not be that of a run
            (folder / name).unlink(missing_ok=True)
    elif path.exists() and not RunConfig.read(path).same_run(config):
        raise ValueError(f"{folder} holds a run with other settings, so it cannot be resumed with these. See {path}.")
    config.write(path)


def _result(config: RunConfig, model: Classifier | Ensemble, trained: Trained, test: Metrics, folder: Path) -> dict[str, Any]:
    best = trained.history[trained.best_epoch - 1]
    return {
        "dataset": config.data.get("name", config.data.get("folder")),
        "model": config.model.model,
        "preset": config.model.preset,
        "seed": config.training.seed,
        "parameters": model.num_parameters,
        **test.summary("test_"),
        "val_accuracy": best.get("val_accuracy"),
        "epochs": len(trained.history),
        "best_epoch": trained.best_epoch,
        "seconds_per_epoch": trained.seconds_per_epoch,
        "confusion": test.confusion.tolist(),
        "threads": torch.get_num_threads(),
        "processes": distributed.world_size(),
        "version": __version__,
        "sha256": _digest(folder / "model.safetensors"),
    }


def _read_result(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
    if not isinstance(result, dict):
        raise ValueError(f"{path} is damaged: it must hold a JSON object, got {type(result).__name__}.")
    return result


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
