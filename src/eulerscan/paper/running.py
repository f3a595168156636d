"""Run a plan: every run appends one JSON line to the results, and is not repeated."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import datasets
from .._progress import progress_bar
from .._version import __version__
from ..datasets import Dataset
from ..nn.models import Ensemble
from ..nn.models.classifier import count_parameters
from ..training.config import ModelConfig
from ..training.loop import Trained, evaluate, train
from .gnn import GNNConfig
from .plans import Run
from .quirks import as_published
from .svm import SVM

Record = dict[str, Any]

SEED_STRIDE = 1000  # between the seeds of the members of an ensemble


def run_plan(plan: Sequence[Run], results: Path, *, work: Path) -> None:
    """Execute the runs of a plan that are missing in ``results``, and append a line for each.

    Args:
        plan: The runs of one experiment.
        results: File with one JSON object per line.
        work: Folder for checkpoints of the current run, which resumes from there. It is empty when the plan is finished.
    """
    done = {record["key"] for record in read(results)}
    todo = [run for run in plan if run.key not in done]
    bar = progress_bar(len(plan), results.stem, initial=len(plan) - len(todo))
    for run in todo:
        bar.set_postfix_str(f"{run.row}, {run.column}, seed {run.training.seed}")
        append(execute(run, work / run.key), results)
        shutil.rmtree(work / run.key, ignore_errors=True)
        bar.update(1)
    bar.close()


def append(record: Record, results: Path) -> None:
    """Append a line, replacing an incomplete last one."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a+b") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(results: Path) -> list[Record]:
    """The records of a file, without an incomplete last line."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]


def execute(run: Run, folder: Path) -> Record:
    """Train and test one model or ensemble. Returns its record."""
    begin = time.perf_counter()
    dataset = _dataset(run.dataset, json.dumps(dict(run.data)), run.as_published, run.sample)
    if isinstance(run.model, SVM):
        outcome = run.model.fit_and_score(dataset, seed=run.training.seed)
    else:
        outcome = _train_and_score(run, run.model, dataset, folder)
    return {
        "key": run.key,
        "experiment": run.experiment,
        "row": run.row,
        "column": run.column,
        "dataset": run.dataset,
        "model": run.model.model,
        "preset": run.model.preset,
        "seed": run.training.seed,
        **outcome,
        "seconds": time.perf_counter() - begin,
        "settings": {
            "data": dict(run.data),
            "model": asdict(run.model),
            "training": asdict(run.training),
            "as_published": run.as_published,
            "sample": run.sample,
            "members": run.members,
        },
        "version": __version__,
        "machine": machine(),
    }


def _train_and_score(run: Run, config: ModelConfig | GNNConfig, dataset: Dataset, folder: Path) -> Record:
    """Size, scores and times of a network or an ensemble."""
    models: list[nn.Module] = []
    trained: list[Trained] = []
    for member in range(run.members or 1):
        training, checkpoints = replace(run.training, seed=run.training.seed + SEED_STRIDE * member), folder / str(member)
        models.append(config.build(dataset.shapes.dim, len(dataset.classes), seed=training.seed))
        checkpoints.mkdir(parents=True, exist_ok=True)
        trained.append(train(models[-1], dataset, training, checkpoints))
    model = models[0] if run.members is None else Ensemble(models)
    scores: Record = {}
    if not run.timing_only:
        splits = [split for split in ("val", "test") if split in dataset.splits]
        metrics = {split: evaluate(model, dataset, split, num_points=run.training.num_points) for split in splits}
        val_accuracy = 100 * metrics["val"].accuracy if "val" in metrics else None
        scores = metrics["test"].summary("test_") | {"val_accuracy": val_accuracy}
    return {
        "parameters": count_parameters(model),
        **scores,
        "epochs": len(trained[0].history),
        "best_epoch": trained[0].best_epoch,
        "seconds_per_epoch": sum(one.seconds_per_epoch for one in trained),
    }


def machine() -> dict[str, Any]:
    """Hardware and software that a run was measured with."""
    return {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def _dataset(name: str, options: str, published: bool, sample: int | None) -> Dataset:
    """Load a data set. The last one is cached, since consecutive runs of a plan often share it."""
    dataset = datasets.load(name, **json.loads(options))
    if sample is not None:
        dataset = dataset.select(torch.cat([indices[:sample] for indices in dataset.splits.values()]))
    return as_published(dataset) if published else dataset
