"""A run: one model trained on one data set with one seed, in a folder that is enough to use it tomorrow.

config.json            what was trained on what, and how
model.safetensors      the weights of the epoch that was kept
training.safetensors   the last epoch, to go on from
metrics.jsonl          a line an epoch
result.json            scores on the test split; there when the run is finished
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from .._storage import replacing
from .._version import __version__
from ..complexes import Complex
from ..datasets import Dataset
from ..nn.models import Classifier
from . import checkpoints, distributed
from .config import ModelConfig
from .loop import Trained, Training, evaluate, train
from .metrics import Metrics
from .resuming import Epoch


@dataclass(frozen=True)
class Config:
    """All that determines a run, as ``config.json`` holds it.

    Attributes:
        data: Where the shapes come from: ``{"name": ..., "options": {...}}`` of a data set, or ``{"folder": ..., "seed": ...,
            "options": {...}}``.
        dim, classes: Of the data.
        fingerprint: By which the same data are known: see :func:`fingerprint`.
        kinds: The dimensions of the largest simplices of its training shapes: (0,) for clouds, (2,) for meshes, both for a
            mixture; empty in files of versions that did not ask.
    """

    data: dict[str, Any]
    dim: int
    classes: tuple[str, ...]
    fingerprint: str
    model: ModelConfig = field(default_factory=ModelConfig)
    training: Training = field(default_factory=Training)
    version: str = __version__
    kinds: tuple[int, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, source: dict[str, Any], model: ModelConfig, training: Training) -> Config:
        """What determines a run on ``dataset``, which comes from ``source``."""
        kinds = _kinds(dataset.shapes[dataset.indices("train")])
        return cls(source, dataset.shapes.dim, dataset.classes, fingerprint(dataset), model, training, kinds=kinds)

    def write(self, path: Path) -> None:
        with replacing(path) as partial:
            partial.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Config:
        if not path.is_file():
            inside = sorted(folder.name for folder in path.parent.glob("seed-*"))
            hint = f" Those inside it are: {', '.join(inside)}." if inside else ""
            raise FileNotFoundError(f"{path} is missing: {path.parent} is not the folder of a run.{hint}")
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            model: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in values["model"].items()
            }
            return cls(
                data={"options": {}, **values["data"]},
                dim=int(values["dim"]),
                classes=tuple(values["classes"]),
                fingerprint=values["fingerprint"],
                model=ModelConfig(**model),
                training=Training.from_json(values["training"]),
                version=values["version"],
                kinds=tuple(values.get("kinds", ())),
            )
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error!r}.") from None

    def same_run(self, other: Config) -> bool:
        """Whether the two differ in nothing that changes the result."""
        one, two = ({**asdict(config), "version": "", "kinds": ()} for config in (self, other))
        return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


def _kinds(shapes: Complex) -> tuple[int, ...]:
    """The dimensions of the largest simplices of each shape, each dimension once."""
    dims = torch.tensor([0, *(rows - 1 for rows in shapes.rows)])
    occurs = shapes.offsets.cpu().diff(dim=1) > 0
    return tuple((occurs * dims[:, None]).amax(dim=0).unique().tolist())


def start(
    folder: Path,
    config: Config,
    dataset: Dataset,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    progress: bool = True,
    device: torch.device | None = None,
) -> dict[str, Any]:
    """Train in ``folder`` and test; returns the result, which is also in ``result.json``.

    Args:
        resume: Go on with what is in the folder; a finished run is not done again.
        overwrite: Remove what is in the folder.
        on_epoch: Called with the record of each epoch.
        device: Where to compute; by default on a GPU if there is one.
    """
    check_same_data(config, dataset)
    model = config.model.build(config.dim, len(config.classes), seed=config.training.seed)
    most, found = config.model.max_dim, dataset.shapes.max_dim
    if most is not None and found > most:
        raise ValueError(f"max_dim must be at least {found}, since {dataset.name} has {found}-simplices, got {most}.")
    if config.model.num_points is not None and found > 0:
        raise ValueError(f"num_points must be None, since it is for clouds of points and {dataset.name} has {found}-simplices.")
    if distributed.is_first():
        _prepare(folder, config, resume=resume, overwrite=overwrite)
    distributed.wait()
    if (folder / "result.json").exists():
        return _read_result(folder / "result.json")
    trained = train(
        model.to(device or distributed.device()), dataset, config.training, folder, on_epoch=on_epoch, progress=progress
    )
    result = _result(config, model, trained, evaluate(model, dataset, "test"), folder)
    if distributed.is_first():
        with replacing(folder / "result.json") as partial:
            partial.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return result


def load(folder: Path) -> tuple[Classifier, Config]:
    """The trained model of a run, ready to predict, and how it came about."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder. A run is the folder that `eulerscan train` wrote.")
    config = Config.read(folder / "config.json")
    weights, result = folder / "model.safetensors", folder / "result.json"
    model = config.model.build(config.dim, len(config.classes))
    checkpoints.load_model(model, weights)
    if result.exists() and _read_result(result).get("sha256") != _digest(weights):
        raise ValueError(f"{weights} is not the file that {result} belongs to: it was changed after training.")
    return model.eval(), config


def _prepare(folder: Path, config: Config, *, resume: bool, overwrite: bool) -> None:
    files = ("result.json", "training.safetensors", "model.safetensors", "metrics.jsonl", "config.json")
    path = folder / "config.json"
    if folder.is_dir():
        for partial in folder.glob(".*.partial"):  # of a run that was killed
            partial.unlink()
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not path.exists())):
        raise FileExistsError(f"{folder} exists and is not the folder of a run. Choose another folder.")
    if path.exists() and overwrite:
        Config.read(path)  # other programs have files of this name too
        for name in files:
            (folder / name).unlink(missing_ok=True)
    elif path.exists() and not resume:
        raise FileExistsError(f"{folder} holds a run already. Use --resume to go on with it, or --overwrite to begin anew.")
    elif path.exists() and not Config.read(path).same_run(config):
        raise ValueError(f"{folder} holds a run with other settings, so it cannot go on as this one. See {path}.")
    folder.mkdir(parents=True, exist_ok=True)
    config.write(path)


def _result(config: Config, model: Classifier, trained: Trained, test: Metrics, folder: Path) -> dict[str, Any]:
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


def fingerprint(dataset: Dataset) -> str:
    """A number that is the same for data with the same sizes of shapes, labels and splits.

    A folder to which a file is added is divided anew: what was for training may then be for testing.
    """
    digest = hashlib.sha256()
    for tensor in (dataset.shapes.offsets, dataset.labels, *dataset.splits.values()):
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def check_same_data(config: Config, dataset: Dataset) -> None:
    """Stop unless the data are those of the run."""
    found = (dataset.shapes.dim, dataset.classes, fingerprint(dataset))
    if found != (config.dim, config.classes, config.fingerprint):
        raise ValueError(
            f"{dataset.name} is not what the run was trained on: its shapes, classes or splits have changed since, so that "
            "test shapes may have been trained on. Train again, or use predict."
        )


def _read_result(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
    if not isinstance(result, dict):
        raise ValueError(f"{path} is damaged: it must hold the scores of a run by name.")
    return result


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
