"""``eulerscan train``: train a classifier with one or several seeds."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from .. import datasets
from .._imports import require
from .._storage import replacing
from .._tables import aligned
from ..datasets import Dataset
from ..datasets.folder import load_source
from ..io import Failure
from ..io.formats import IMAGE_EXTENSIONS
from ..training import distributed
from ..training.checkpoints import Epoch
from ..training.config import ModelConfig, RunConfig, TrainingConfig
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
    skip_small: bool = False,
    model: ModelConfig = ModelConfig(),  # noqa: B008
    training: TrainingConfig = TrainingConfig(),  # noqa: B008
    seeds: int = 1,
    output: MaybeOutput = None,
    resume: bool = False,
    overwrite: Overwrite = False,
    plots: bool = False,
    tensorboard: bool = False,
) -> int:
    """Train and test a classifier of shapes.

    Examples: `eulerscan train letter-low --preset 4k --seeds 5`, `eulerscan train --folder shapes/ --epochs 50`.
    Distributed training: `torchrun --nproc-per-node 2 -m eulerscan train ...`

    Args:
        dataset: Name of a data set; `eulerscan data list` shows them.
        folder: Folder with one subfolder per class, or with a --table, instead of a data set.
        input: Which files are read, and how. `--data` also takes options of a data set, such as `form=meshes`, and the seed of
            the split, `seed=...`.
        skip_small: Leave out classes of fewer than four shapes instead of stopping.
        model: Options of the model. Options you omit come from the preset.
        training: Options of the training.
        seeds: Number of runs, with consecutive seeds from --seed on.
        output: Folder for the runs. Default: runs/ with the names of data and model.
        resume: Resume interrupted runs. Finished runs are not repeated.
        plots: Plot training curves, confusion matrix, directions and a few transforms of the first run.
        tensorboard: Write metrics for TensorBoard.
    """
    if dataset is not None and folder is not None:
        raise ValueError(f"Give either a data set or --folder, got both: {dataset} and {folder}.")
    if dataset is None and folder is None:
        raise ValueError("Give a data set, or a folder of files with --folder. `eulerscan data list` shows the data sets.")
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}.")
    output = output or Path("runs") / "-".join(filter(None, [dataset or Path(folder or "").name, model.model, model.preset]))
    model.check()
    with distributed.process_group():
        for seed in range(training.seed, training.seed + seeds) if distributed.is_first() else ():
            check_folder(output / f"seed-{seed}", resume=resume, overwrite=overwrite)
        found, source, failed = _data(dataset, folder, input, skip_small)
        if distributed.is_first():
            layer = model.build(found.shapes.dim, len(found.classes)).layer.config
            warn_beyond_radius(layer.num_beyond(found.shapes[found.indices("train")]), layer.largest_height)
            if found.shapes.weights is None and found.shapes.max_dim and found.names:
                warn_unusual_topology([*zip(found.names, found.shapes.euler_characteristic().tolist(), strict=True)])
            for image in [name for name in found.names if name.lower().endswith(IMAGE_EXTENSIONS)][:1]:
                warn_light_background(Path(image), source["options"])
        results = []
        for seed in range(training.seed, training.seed + seeds):
            settings = replace(training, seed=seed)
            config = RunConfig.of(found, source, model, settings)
            run = output / f"seed-{seed}"
            writer = _tensorboard(run) if tensorboard and distributed.is_first() else None
            try:
                results.append(start(run, config, found, resume=resume, overwrite=overwrite, on_epoch=writer))
            except KeyboardInterrupt:
                if distributed.is_first():
                    print(f"finished epochs are in {run}: resume with the same command and --resume", file=sys.stderr)
                raise
        if not distributed.is_first():
            return 0
        if plots:
            from ..plot.training import draw_run

            draw_run(output / f"seed-{training.seed}", found)
    summary = summarize(results)
    with replacing(output / "summary.json") as partial:
        partial.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    print(_table(results, summary))
    tested = len(found.indices("test"))
    print(f"\n{found.name}: {len(found)} shapes, {len(found.classes)} classes, tested on {tested}; runs in {output}")
    if plots:
        print(f"plots in {output / f'seed-{training.seed}'}")
    return print_failures(failed)


def _data(
    name: str | None, folder: Path | None, input: Input, skip_small: bool
) -> tuple[Dataset, dict[str, Any], list[Failure]]:
    """The data set, its source as in :class:`RunConfig`, and the files that could not be read."""
    options = input.options()
    if name is not None:
        if name not in datasets.names() and Path(name).is_dir():
            raise ValueError(f"There is no data set {name!r}, but it is a folder: use --folder {name}.")
        return datasets.load(name, **options), {"name": name, "options": options}, []
    assert folder is not None
    source = {"folder": str(folder), "seed": options.pop("seed", 0), "options": options}
    if input.table is not None:
        source |= {"table": str(input.table), "label": input.label}
    if input.only:
        source["only"] = list(input.only)
    if skip_small:
        source["skip_small"] = True
    found, failed = load_source(source, cache=input.cache)
    return found, source, failed


def summarize(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation of the scores over the seeds."""
    summary: dict[str, Any] = {"runs": len(results), "parameters": results[0]["parameters"]}
    for name in ("test_accuracy", "test_balanced_accuracy", "test_macro_f1", "seconds_per_epoch"):
        values = [result[name] for result in results]
        summary[name] = statistics.fmean(values)
        summary[f"{name}_std"] = statistics.stdev(values) if len(values) > 1 else None
    return summary


def _table(results: list[dict[str, Any]], summary: dict[str, Any]) -> str:
    header = ["seed", "accuracy %", "balanced %", "macro F1 %", "epochs", "best", "s/epoch", "parameters"]
    scores = ("test_accuracy", "test_balanced_accuracy", "test_macro_f1")
    rows = [
        [
            r["seed"],
            *(f"{r[name]:.2f}" for name in scores),
            r["epochs"],
            r["best_epoch"],
            f"{r['seconds_per_epoch']:.2f}",
            r["parameters"],
        ]
        for r in results
    ]
    text = aligned(header, rows)
    if len(results) > 1:
        mean = f"accuracy {summary[scores[0]]:.2f} ± {summary[scores[0] + '_std']:.2f} %"
        text += f"\n\ntest {mean} (mean ± standard deviation over {len(results)} seeds)"
    return text


def _tensorboard(folder: Path) -> Callable[[Epoch], None]:
    """A callback that writes the metrics of each epoch for TensorBoard."""
    require("tensorboard", extra="tensorboard")
    tensorboard = require("torch.utils.tensorboard", extra="tensorboard")
    writers: list[Any] = []

    def write(record: Epoch) -> None:
        if not writers:  # not before the first epoch: a new run needs an empty folder
            writers.append(tensorboard.SummaryWriter(folder / "tensorboard"))
        for name, value in record.items():
            writers[0].add_scalar(name, value, record["epoch"])
        writers[0].flush()

    return write
