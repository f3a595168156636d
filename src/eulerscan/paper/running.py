"""Run a plan: one line of JSON a run, and what is there already is not done again."""

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
from .._imports import progress_bar
from .._version import __version__
from ..datasets import Dataset
from ..nn.models import Ensemble
from ..training.config import ModelConfig
from ..training.loop import Trained, evaluate, train
from .classifiers import SupportVectors
from .plans import GraphArchitecture, Run
from .quirks import as_published

Record = dict[str, Any]

APART = 1000  # the seeds of two members of a ensemble


def run_plan(plan: Sequence[Run], results: Path, *, work: Path) -> None:
    """Do the runs of a plan that ``results`` lacks, and append a line for each.

    Args:
        plan: The runs, of one experiment.
        results: File with one JSON object a line.
        work: Folder for what a run needs to go on where it was interrupted; empty again when all is done.
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
    """Add a line, after removing one that was cut off while it was written."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a+b") as file:
        file.seek(0)
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
        file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(results: Path) -> list[Record]:
    """The records of a file, without a last line that was cut off while it was written."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]


def execute(run: Run, folder: Path) -> Record:
    """Train and test one model, or the members of a ensemble; returns its line."""
    begin = time.perf_counter()
    dataset = _dataset(run.dataset, json.dumps(dict(run.data)), run.as_published, run.sample)
    if isinstance(run.architecture, SupportVectors):
        outcome = run.architecture.outcome(dataset, seed=run.training.seed)
    else:
        outcome = _trained(run, run.architecture, dataset, folder)
    return {
        "key": run.key,
        "experiment": run.experiment,
        "row": run.row,
        "column": run.column,
        "dataset": run.dataset,
        "model": run.architecture.model,
        "preset": run.architecture.preset,
        "seed": run.training.seed,
        **outcome,
        "seconds": time.perf_counter() - begin,
        "settings": {
            "data": dict(run.data),
            "architecture": asdict(run.architecture),
            "training": asdict(run.training),
            "as_published": run.as_published,
            "sample": run.sample,
            "members": run.members,
        },
        "version": __version__,
        "machine": machine(),
    }


def _trained(run: Run, architecture: ModelConfig | GraphArchitecture, dataset: Dataset, folder: Path) -> Record:
    """Size, scores and times of a network, or of the members of a ensemble."""
    training = run.training
    models: list[nn.Module] = []
    trained: list[Trained] = []
    for member in range(run.members or 1):
        settings, own_folder = replace(training, seed=training.seed + APART * member), folder / str(member)
        models.append(architecture.build(dataset.shapes.dim, len(dataset.classes), seed=settings.seed))
        own_folder.mkdir(parents=True, exist_ok=True)
        trained.append(train(models[-1], dataset, settings, own_folder))
    model = models[0] if run.members is None else Ensemble(models)
    val_accuracy = 100 * evaluate(model, dataset, "val").accuracy if "val" in dataset.splits else None
    scores = evaluate(model, dataset, "test").summary("test_") | {"val_accuracy": val_accuracy}
    return {
        "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        **({} if run.timing_only else scores),
        "epochs": len(trained[0].history),
        "best_epoch": trained[0].best_epoch,
        "seconds_per_epoch": sum(one.seconds_per_epoch for one in trained),
    }


def machine() -> dict[str, Any]:
    """Where and with what it was measured."""
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
    """Kept for the next run: plans go through the seeds of one data set after the other."""
    dataset = datasets.load(name, **json.loads(options))
    if sample is not None:
        dataset = dataset.select(torch.cat([indices[:sample] for indices in dataset.splits.values()]))
    return as_published(dataset) if published else dataset
