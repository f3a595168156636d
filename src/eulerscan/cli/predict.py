"""``eulerscan evaluate`` and ``eulerscan predict``: what a run is good for."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor
from tyro.conf import arg

from .. import datasets
from .._progress import progress
from .._storage import replacing
from .._tables import aligned, comma_separated
from ..complexes import Complex, collate
from ..datasets import Dataset
from ..datasets.folder import load_folder
from ..io import Failure, read_all
from ..training.config import RunConfig
from ..training.loop import evaluate as score
from ..training.runs import load
from .options import Files, Run, check_output, find_files, report_failures

SHAPES_AT_ONCE = 64
_KINDS = {0: "cloud of points", 1: "graph", 2: "mesh"}  # by the dimension of their largest simplices


def evaluate(
    run: Run,
    /,
    *,
    split: str = "test",
    output: Annotated[Path | None, arg(aliases=["-o"])] = None,
    as_json: bool = False,
    overwrite: bool = False,
) -> int:
    """Scores and confusion matrix of a trained model on its data set.

    Args:
        run: Folder of a run, such as runs/letter-low-cnn-4k/seed-0.
        split: train, val or test.
        output: Where to write each shape of the split, its true class, the predicted one and its probability as CSV: its file,
            or its number where the data set has no files.
        as_json: Print JSON instead of tables.
        overwrite: Replace the output if it is there already.
    """
    check_output(output, overwrite)
    model, config = load(run)
    dataset, failed = _data(config)
    if split not in dataset.splits:
        raise ValueError(f"--split must be one of {', '.join(dataset.splits)}, got {split!r}.")
    config.check_data(dataset)
    rows: list[list[Any]] = []
    num_points = config.training.num_points
    metrics = score(
        model, dataset, split, num_points=num_points, on_batch=lambda *batch: rows.extend(_verdicts(dataset, *batch))
    )
    if output is not None:
        with replacing(output) as partial:
            partial.write_text(comma_separated(["shape", "true class", "class", "probability"], rows), encoding="utf-8")
    if as_json:
        print(json.dumps({**metrics.summary(), "count": metrics.count, "confusion": metrics.confusion.tolist()}))
        return report_failures(failed)
    print(aligned(["score", "value"], [[name, _figure(name, value)] for name, value in metrics.summary().items()]))
    if not (run / "result.json").exists():
        print("\nthe run is not finished: these are the scores of its best epoch so far")
    print(f"\nconfusion on {metrics.count} shapes of the {split} split, a row for each true class")
    print(
        aligned(
            ["", *config.classes], [[name, *row] for name, row in zip(config.classes, metrics.confusion.tolist(), strict=True)]
        )
    )
    if output is not None:
        print(f"\nevery shape of the split in {output}")
    return report_failures(failed)


def _figure(name: str, value: float) -> str:
    return f"{value:.4g}" if name == "loss" else f"{value:.2f} %"


def _verdicts(dataset: Dataset, indices: Tensor, logits: Tensor) -> Iterator[list[Any]]:
    """Shape, true class, predicted class and its probability, for some shapes of a data set."""
    classes = logits.argmax(dim=1)
    sure = logits.softmax(dim=1).gather(1, classes[:, None])[:, 0]
    for index, predicted, probability in zip(indices.tolist(), classes.tolist(), sure.tolist(), strict=True):
        name = dataset.names[index] if dataset.names else str(index)
        yield [name, dataset.classes[int(dataset.labels[index])], dataset.classes[predicted], probability]


@torch.no_grad()
def predict(
    run: Run,
    files: Files,
    /,
    *,
    output: Annotated[Path | None, arg(aliases=["-o"])] = None,
    overwrite: bool = False,
) -> int:
    """Class and probability of each file. What cannot be read is reported and skipped, and the exit code is then 1.

    Args:
        run: Folder of a run that was trained on a folder of files, or on shapes of the same dimension.
        files: Files, or folders of files.
        output: Where to write file, class, probability and the probabilities of all classes as CSV. Default: a table here.
        overwrite: Replace the output if it is there already.
    """
    check_output(output, overwrite)
    model, config = load(run)
    options = config.data["options"] if "folder" in config.data else {}
    listing = find_files(files)
    paths, failures = listing.paths, listing.path_failures
    rows: list[list[Any]] = []
    strangers: list[tuple[Path, int]] = []
    beyond = 0
    for start in progress(range(0, len(paths), SHAPES_AT_ONCE), "predicting"):
        read, failed = read_all(paths[start : start + SHAPES_AT_ONCE], **options)
        unfit = {path: reason for path, shape in read.items() if (reason := _unfit(shape, config))}
        failures += [*failed, *(Failure(path, reason) for path, reason in unfit.items())]
        fit = {path: shape for path, shape in read.items() if path not in unfit}
        strangers += [(path, shape.max_dim) for path, shape in fit.items() if shape.max_dim not in config.shape_dims]
        if fit:
            shapes = collate(list(fit.values()))
            if config.training.num_points is not None:
                shapes = shapes.subsample(config.training.num_points)
            beyond += model.layer.config.num_beyond(shapes)
            probabilities = model(shapes).softmax(dim=1)
            for path, row in zip(fit, probabilities.tolist(), strict=True):
                best = max(range(len(row)), key=row.__getitem__)
                rows.append([str(path), config.classes[best], row[best], *row])
    header = ["file", "class", "probability"]
    if output is not None and rows:
        with replacing(output) as partial:
            partial.write_text(comma_separated([*header, *config.classes], rows), encoding="utf-8")
        print(f"{len(rows)} predictions in {output}")
    elif rows:
        print(aligned(header, [[file, name, f"{probability:.3f}"] for file, name, probability, *_ in rows]))
    if strangers:
        _report_strangers(strangers)
    if beyond:
        _report_large(beyond, model.layer.config.largest_height)
    return report_failures(failures, done=len(rows))


def _report_strangers(strangers: Sequence[tuple[Path, int]]) -> None:
    """Say on standard error that the model never saw shapes of this kind: a cloud, and it was trained on meshes."""
    (first, kind), more = strangers[0], len(strangers) - 1
    what = _KINDS.get(kind, f"shape with simplices of dimension {kind}")
    others = f". So it is with {more} more" if more else ""
    print(f"warning: {first} is a {what}, which no shape of training was: its class means little{others}", file=sys.stderr)


def _report_large(count: int, radius: float) -> None:
    """Say on standard error that shapes are larger than what the model sees: in pixels, and it was trained on millimetres."""
    shapes = "1 shape reaches" if count == 1 else f"{count} shapes reach"
    print(
        f"warning: {shapes} beyond radius {radius:g} of the model, where it sees nothing, and such a class may mean little: "
        "shapes must be in the units of those in training",
        file=sys.stderr,
    )


def _unfit(shape: Complex, config: RunConfig) -> str | None:
    """Why the model cannot take a shape, if so."""
    most = config.model.max_dim
    if shape.dim != config.dim:
        return f"points of dimension {shape.dim}, the model was trained on {config.dim}."
    if most is not None and shape.max_dim > most:
        return f"simplices of dimension {shape.max_dim}, the model was made for {most} at most (max_dim)."
    if config.training.num_points is not None and shape.max_dim > 0:
        return f"simplices of dimension {shape.max_dim}, the model was made for clouds of points (num_points)."
    return None


def _data(config: RunConfig) -> tuple[Dataset, list[Failure]]:
    """The data set that a run was trained on."""
    options = config.data["options"]
    if "name" in config.data:
        return datasets.load(config.data["name"], **options), []
    folder = Path(config.data["folder"])
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The run was trained on the folder {folder}, which is not there. Go where you trained, or use predict."
        )
    return load_folder(folder, seed=config.data["seed"], **options)
