"""``eulerscan train``: train a classifier with one or several seeds."""

from __future__ import annotations

import functools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import torch
from tyro.conf import Positional, arg

from .. import datasets
from .._imports import require
from .._storage import write_json
from .._tables import aligned
from ..analysis.classification import wilson
from ..datasets.source import load_source, split_source
from ..io.walk import name_of
from ..training import distributed
from ..training.checkpoints import Epoch
from ..training.choice import ENSEMBLE, Choice, candidates, check_automatic, choose, majority
from ..training.config import EnsembleConfig, ModelConfig, RunConfig, TrainingConfig
from ..training.runs import check_folder, start
from .options import (
    Input,
    Maybe,
    MaybeOutput,
    Overwrite,
    print_failures,
    warn_beyond_radius,
    warn_light_background,
    warn_unusual_topology,
)


def train(
    dataset: Annotated[Positional[Maybe[str]], arg(metavar="[DATASET]")] = None,
    /,
    *,
    folder: Maybe[Path] = None,
    input: Input = Input(),  # noqa: B008
    strata: Maybe[str] = None,
    skip_small: bool = False,
    model: ModelConfig = ModelConfig(model="auto"),  # noqa: B008
    training: TrainingConfig = TrainingConfig(),  # noqa: B008
    seeds: int = 1,
    folds: int = 0,
    budget: Maybe[str] = None,
    output: MaybeOutput = None,
    resume: bool = False,
    overwrite: Overwrite = False,
    plots: bool = False,
    tensorboard: bool = False,
    device: Maybe[str] = None,
) -> int:
    """Train and test a classifier of shapes.

    Without options, several classifiers are trained that fit the data: SVMs on the transform, and networks of convolutions
    along its curves. Their ensemble is kept, or one that is better on validation shapes, and trained again with these shapes.

    Examples: `eulerscan train --folder shapes/`, `eulerscan train letter-low --model cnn --preset 4k --seeds 5`.
    Distributed training: `torchrun --nproc-per-node 2 -m eulerscan train ...`

    Args:
        dataset: Name of a data set; `eulerscan data list` shows them.
        folder: Folder with one subfolder per class, or with a --table, instead of a data set.
        input: Which files are read, and how. `--data` also takes options of a data set, such as `form=meshes`, and the seed of
            the split, `seed=...`.
        strata: Column of --table with blocks, such as the specimen of several scans. Blocks are not divided among training,
            validation and test.
        skip_small: Leave out classes of fewer than four shapes, or blocks, instead of stopping.
        model: Options of the model. Options you omit come from the preset.
        training: Options of the training. Without --model, those that keep their defaults are chosen to fit the data.
        seeds: Number of runs, with consecutive seeds from --seed on.
        folds: Cross-validate with this many folds: every shape is tested once. For few shapes.
        budget: Time for the choice of a classifier and its training, such as 90s, 2m or 1h: networks get fewer epochs, or are
            left out.
        output: Folder for the runs. Default: runs/ with the names of data and model.
        resume: Resume interrupted runs. Finished runs are not repeated.
        plots: Plot training curves, confusion matrix, directions and a few transforms of the first run.
        tensorboard: Write metrics of each epoch of networks for TensorBoard, into the folders of their runs.
        device: Device to compute on, such as cpu or cuda:1. Default: a GPU if there is one.
    """
    _check(dataset, folder, seeds, folds)
    if strata is not None and (folder is None or input.table is None):
        raise ValueError("--strata is a column of a table: give --folder, --table and --label.")
    if resume and overwrite:
        raise ValueError("Give either --resume or --overwrite, got both: one keeps finished runs, the other replaces them.")
    if model.model == "auto" and model.preset is not None:
        model = replace(model, model="cnn")
    target = None if device is None else _device(device)
    automatic = model.model == "auto"
    seconds = None if budget is None else _seconds(budget)
    if seconds is not None and not automatic:
        raise ValueError(f"--budget must not be given with --model {model.model}, as it is shared among models, got {budget}.")
    output = output or Path("runs") / "-".join(filter(None, [dataset or name_of(folder or ""), model.model, model.preset]))
    replace(model, model="svm" if automatic else model.model).check()
    if automatic:
        check_automatic(model)
    numbers = range(folds) if folds else range(training.seed, training.seed + seeds)
    runs = [output / f"{'fold' if folds else 'seed'}-{number}" for number in numbers]
    end = time.monotonic() + (seconds or 0.0)
    with distributed.process_group():
        for run in runs if distributed.is_first() else ():
            check_folder(run, resume=resume, overwrite=overwrite)
        source = _source(dataset, folder, input, strata, skip_small)
        found, failed = load_source(source, cache=input.cache)
        if distributed.is_first():
            _warn(found, candidates(found, model)[0].model if automatic else model, source["options"])
        writer = _tensorboard() if tensorboard and distributed.is_first() else None
        results: list[dict[str, Any]] = []
        choices: list[Choice] = []
        options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "device": target}
        sizes: list[int] = []
        for run, number in zip(runs, numbers, strict=True):
            settings = training if folds else replace(training, seed=number)
            origin = source | {"fold": [number, folds]} if folds else source
            data = split_source(found, origin)
            sizes.append(len(data.indices("test")))
            try:
                if automatic:
                    tried = candidates(data, model, settings)
                    share = None if seconds is None else max(1.0, end - time.monotonic()) / (len(runs) - len(choices))
                    calls: dict[str, Any] = {"on_candidate": _announce, "on_epoch": writer}
                    choices.append(choose(run, data, origin, tried, budget=share, **calls, **options))
                    results.append(json.loads((run / "result.json").read_text(encoding="utf-8")))
                else:
                    config = RunConfig.of(data, origin, model, settings)
                    report = None if writer is None else functools.partial(writer, run)
                    results.append(start(run, config, data, on_epoch=report, **options))
            except KeyboardInterrupt:
                if distributed.is_first():
                    print(f"finished epochs are in {run}: resume with the same command and --resume", file=sys.stderr)
                raise
        if not distributed.is_first():
            return 0
        if plots:
            from ..plot.training import draw_run

            draw_run(runs[0], found)
    largest = 100 * float(found.labels.bincount().max()) / len(found)  # with folds, every shape is tested
    summary = summarize(results) | {"majority": largest if folds else majority(found)}
    write_json(output / "summary.json", summary)
    if choices:
        print(_scores(choices, summary["majority"]), end="\n\n")
        if len(choices) > 1:
            print(f"{runs[0].name}:")
        print("\n".join(f"- {reason}" for reason in choices[0].reasons), end="\n\n")
    print(_table(results, summary, "fold" if folds else "seed", numbers))
    tested = range(len(found)) if folds else found.indices("test").tolist()
    blocks = {found.strata[i] for i in tested} if found.strata else None
    interval = _interval(results, sizes, len(blocks or tested), folds, "shapes" if blocks is None else "blocks")
    print(f"\n{interval}; the largest class alone is {summary['majority']:.1f} %")
    print(f"\n{found.name}: {len(found)} shapes, {len(found.classes)} classes, tested on {len(tested)}; runs in {output}")
    if plots:
        print(f"plots in {runs[0]}")
    return print_failures(failed)


def _check(dataset: str | None, folder: Path | None, seeds: int, folds: int) -> None:
    """Raise for arguments that no data can make valid."""
    if dataset is not None and folder is not None:
        raise ValueError(f"Give either a data set or --folder, got both: {dataset} and {folder}.")
    if dataset is None and folder is None:
        raise ValueError("Give a data set, or a folder of files with --folder. `eulerscan data list` shows the data sets.")
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}.")
    if folds < 0 or folds == 1 or (folds and seeds > 1):
        raise ValueError(f"--folds must be at least 2, and not be combined with --seeds, got {folds} and {seeds}.")


def _warn(found: datasets.Dataset, model: ModelConfig | EnsembleConfig, reading: Mapping[str, Any]) -> None:
    """Say what may disturb training: heights that no threshold sees, specks and holes, images of dark shapes."""
    layer = model.build(found.shapes.dim, len(found.classes)).layer.config
    warn_beyond_radius(layer.num_beyond(found.shapes[found.indices("train")]), layer.largest_height)
    if found.shapes.weights is None and found.shapes.max_dim and found.names:
        warn_unusual_topology([*zip(found.names, found.shapes.euler_characteristic().tolist(), strict=True)])
    warn_light_background(found.names, reading)


def _announce(candidate: str) -> None:
    if distributed.is_first() and sys.stderr.isatty():
        print(f"training {candidate}", file=sys.stderr)


def _seconds(text: str) -> float:
    """Seconds of a time such as 90s, 2m or 1h."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    try:
        seconds = unit * float(text[:-1])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ValueError(f"--budget must be a time such as 90s, 2m or 1h, got {text!r}.")
    return seconds


def _device(name: str) -> torch.device:
    """A device of this machine. Under ``torchrun`` ``cuda`` is that of this process."""
    known = "cpu or cuda" if torch.cuda.is_available() else "cpu (PyTorch finds no GPU)"
    wanted = f"--device must be a device of this machine, such as {known}"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch says either
        raise ValueError(f"{wanted}, got {name!r}.") from error
    if device.type == "meta":
        raise ValueError(f"{wanted}, got 'meta', which holds no values.")
    if distributed.is_launched() and device.type == "cuda":
        if ":" in name:
            raise ValueError(
                f"--device must be cpu or cuda under torchrun, where each process has a GPU of its own, got {name!r}."
            )
        return distributed.device()
    return device


def _source(name: str | None, folder: Path | None, input: Input, strata: str | None, skip_small: bool) -> dict[str, Any]:
    """The source of the shapes, as in :class:`RunConfig`."""
    options = input.options()
    if name is not None:
        if name not in datasets.names() and Path(name).is_dir():
            raise ValueError(f"There is no data set {name!r}, but it is a folder: use --folder {name}.")
        return {"name": name, "options": options}
    source = {"folder": str(folder), "seed": options.pop("seed", 0), "options": options}
    if input.table is not None:
        source |= {"table": str(input.table), "label": input.label}
    if strata is not None:
        source["strata"] = strata
    if input.only:
        source["only"] = list(input.only)
    if skip_small:
        source["skip_small"] = True
    return source


def _scores(choices: Sequence[Choice], baseline: float) -> str:
    """The candidates with their mean scores over the runs."""
    rows = [["largest class", "", f"{baseline:.1f}", ""]]
    names = dict.fromkeys(name for choice in choices for name in choice.scores)  # a budget may leave some out
    for name in sorted(names, key=ENSEMBLE.__eq__):
        own = [choice.scores[name] for choice in choices if name in choice.scores]
        means = [statistics.fmean(scores[split] for scores in own) for split in ("validation", "test")]
        kept = sum(choice.kept == name for choice in choices)
        notes = [f"tried in {len(own)} of {len(choices)} runs"] if len(own) < len(choices) else []
        notes += [f"kept in {kept} of {len(choices)} runs" if len(choices) > 1 else "kept"] if kept else []
        rows.append([name, *(f"{mean:.1f}" for mean in means), ", ".join(notes)])
    return aligned(["model", "validation %", "test %", ""], rows)


def _interval(
    results: Sequence[dict[str, Any]], sizes: Sequence[int], independent: int, folds: int, unit: str = "shapes"
) -> str:
    """Test accuracy with a 95 % interval: the share of all test shapes, since folds may differ in size.

    Over seeds the test shapes are the same, so they count once. Shapes of a block are not independent, so blocks count.
    """
    accuracy = statistics.fmean([result["test_accuracy"] for result in results], sizes)
    low, high = wilson(accuracy / 100, independent)
    text = f"test accuracy {accuracy:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f} for {independent} {unit}"
    if folds:
        return f"{text}, each tested once"
    if high - low > 0.15:
        return f"{text}: too few to mean much. Use --folds 5 to test every shape"
    return text


def summarize(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of the scores over the seeds."""
    summary: dict[str, Any] = {"runs": len(results), "parameters": results[0]["parameters"]}
    for name in ("test_accuracy", "test_balanced_accuracy", "test_macro_f1", "seconds_per_epoch"):
        values = [result[name] for result in results]
        summary[name] = statistics.fmean(values)
        summary[f"{name}_std"] = statistics.stdev(values) if len(values) > 1 else None
    return summary


def _table(results: list[dict[str, Any]], summary: dict[str, Any], unit: str, numbers: Sequence[int]) -> str:
    once = all(r["epochs"] == 1 for r in results)  # SVMs and ensembles have no epochs
    header = [
        unit,
        "accuracy %",
        "balanced %",
        "macro F1 %",
        *(["seconds"] if once else ["epochs", "best", "s/epoch"]),
        "parameters",
    ]
    scores = ("test_accuracy", "test_balanced_accuracy", "test_macro_f1")
    rows = [
        [
            number,
            *(f"{r[name]:.2f}" for name in scores),
            *([] if once else [r["epochs"], r["best_epoch"]]),
            f"{r['seconds_per_epoch']:.2f}",
            r["parameters"],
        ]
        for number, r in zip(numbers, results, strict=True)
    ]
    text = aligned(header, rows)
    if len(results) > 1:
        mean = f"accuracy {summary[scores[0]]:.2f} ± {summary[scores[0] + '_std']:.2f} %"
        text += f"\n\ntest {mean} (mean ± standard deviation over {len(results)} {unit}s)"
    return text


def _tensorboard() -> Callable[[Path, Epoch], None]:
    """A callback that writes the metrics of each epoch for TensorBoard, into the folder of the run."""
    require("tensorboard", extra="tensorboard")
    tensorboard = require("torch.utils.tensorboard", extra="tensorboard")
    writers: dict[Path, Any] = {}

    def write(folder: Path, record: Epoch) -> None:
        if folder not in writers:  # not before the first epoch: a new run needs an empty folder
            writers[folder] = tensorboard.SummaryWriter(folder / "tensorboard")
        for name, value in record.items():
            writers[folder].add_scalar(name, value, record["epoch"])
        writers[folder].flush()

    return write
