"""``eulerscan evaluate`` and ``eulerscan predict``: use the trained model of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from tyro.conf import Positional, arg

from .._progress import progress
from .._storage import write_text
from .._tables import aligned, comma_separated, printable
from ..complexes import Complex, collate
from ..datasets import Dataset
from ..datasets.folder import LabeledShapes, read_labeled
from ..datasets.source import load_source
from ..io import Failure, read_all
from ..io.walk import name_of
from ..training.config import RunConfig
from ..training.loop import evaluate as score
from ..training.runs import load_run
from .options import (
    DOUBLE,
    Data,
    Files,
    Maybe,
    MaybeOutput,
    Overwrite,
    Run,
    check_output,
    find_files,
    parse_pairs,
    print_failures,
    warn_beyond_radius,
    warn_light_background,
)

BATCH_SIZE = 256
_KINDS = {0: "point cloud", 1: "graph", 2: "mesh"}  # by dimension


def evaluate(
    run: Run,
    folder: Annotated[Positional[Maybe[Path]], arg(metavar="[FOLDER]")] = None,
    /,
    *,
    split: Literal["train", "val", "test"] = "test",
    table: Maybe[Path] = None,
    label: Maybe[str] = None,
    data: Data = (),
    output: MaybeOutput = None,
    as_json: bool = False,
    cache: bool = True,
    overwrite: Overwrite = False,
) -> int:
    """Print scores and confusion matrix of a trained model.

    It is tested on a split of its own data set, or on another labeled folder, whose files are read as those of the folder that
    the run was trained on, unless --data says otherwise.

    Examples: `eulerscan evaluate runs/letter-low-cnn-4k/seed-0`, `eulerscan evaluate runs/skulls-cnn/seed-0 new-skulls/`

    Args:
        run: Folder of a run, such as runs/letter-low-cnn-4k/seed-0.
        folder: Another folder with a subfolder for each class, which is tested as a whole. Default: the data of the run.
        split: Split of the data of the run.
        table: Table with the classes of the shapes in the folder, instead of subfolders.
        label: Column of --table with the classes.
        output: CSV file for the predictions: each shape (its file, or its index), its true class, the predicted class and its
            probability.
        as_json: Print JSON instead of tables.
        cache: Keep the shapes in the cache folder, from where the next command loads them.
    """
    check_output(output, overwrite)
    model, config = load_run(run)
    if folder is None:
        if table is not None or label is not None or data:
            raise ValueError("--table, --label and --data need another folder: the run knows those of its own data.")
        if "folder" in config.data and not Path(config.data["folder"]).exists():
            raise FileNotFoundError(
                f"The run was trained on the folder {config.data['folder']}, which does not exist. Run this where you trained, "
                "name another labeled folder, or use predict."
            )
        dataset, failed = load_source(config.data, cache=cache)
        config.check_data(dataset)
        tested = f"the {split} split"
        if not len(dataset.indices(split)):
            reason = ": its shapes were used for training, after the choice of the model" if config.data.get("refit") else ""
            raise ValueError(f"{run}: the {split} split is empty{reason}.")
    else:
        options = _reading(config, data)
        dataset, failed = _labeled(folder, config, read_labeled(folder, table=table, label=label, cache=cache, **options))
        warn_light_background(dataset.names, options)
        split, tested = "test", str(folder)
        if "folder" in config.data and Path(config.data["folder"]).resolve() in (folder.resolve(), *folder.resolve().parents):
            print(
                f"warning: the run was trained on shapes of {folder}, so these scores are too high. Without a folder, evaluate "
                "tests the shapes that were left out of training",
                file=sys.stderr,
            )
    rows: list[list[Any]] = []

    def collect(indices: Tensor, logits: Tensor) -> None:
        rows.extend(_predictions(dataset, indices, logits))

    metrics = score(model, dataset, split, num_points=config.training.num_points, on_batch=collect)
    if output is not None:
        write_text(output, comma_separated(["shape", "true class", "class", "probability"], rows))
    if as_json:
        print(json.dumps({**metrics.summary(), "count": metrics.count, "confusion": metrics.confusion.tolist()}))
        return print_failures(failed)
    print(aligned(["score", "value"], [[name, _formatted(name, value)] for name, value in metrics.summary().items()]))
    if not (run / "result.json").exists():
        print("\nthe run is not finished: these are the scores of its best epoch so far")
    print(f"\nconfusion matrix on {metrics.count} shapes of {tested}: rows are true classes")
    print(
        aligned(
            ["", *config.classes], [[name, *row] for name, row in zip(config.classes, metrics.confusion.tolist(), strict=True)]
        )
    )
    if output is not None:
        print(f"\npredictions in {output}")
    return print_failures(failed)


def _reading(config: RunConfig, data: Sequence[str]) -> dict[str, Any]:
    """Options for reading files: those of the folder that the run was trained on, replaced by those of --data."""
    given = parse_pairs(data)
    if "dtype" in given:
        raise ValueError("--data must not have a dtype: files are read in float64.")
    own = config.data["options"] if "folder" in config.data else {}
    return own | given


def _labeled(folder: Path, config: RunConfig, read: LabeledShapes) -> tuple[Dataset, list[Failure]]:
    """The shapes of a folder as a data set with the classes of a run and a single split."""
    shapes, classes, paths, failures, _ = read
    unknown = sorted(set(classes) - set(config.classes))
    if unknown:
        raise ValueError(f"{folder}: the run does not know {', '.join(unknown)}. Its classes are {', '.join(config.classes)}.")
    if not classes:
        raise ValueError(f"{folder} must have a subfolder of shapes for each class, got no labeled shape.")
    if shapes.dim != config.dim:
        raise ValueError(f"{folder}: shapes must have points of dimension {config.dim} as in the run, got {shapes.dim}.")
    labels = torch.tensor([config.classes.index(name) for name in classes])
    splits = {"test": torch.arange(len(labels))}
    return Dataset(name_of(folder), shapes, labels, config.classes, splits, tuple(map(str, paths))), failures


def _formatted(name: str, value: float) -> str:
    return f"{value:.4g}" if name == "loss" else f"{value:.2f} %"


def _predictions(dataset: Dataset, indices: Tensor, logits: Tensor) -> Iterator[list[Any]]:
    """Name, true class, predicted class and its probability of some shapes of a data set."""
    classes = logits.argmax(dim=1)
    probabilities = logits.softmax(dim=1).gather(1, classes[:, None])[:, 0]
    for index, predicted, probability in zip(indices.tolist(), classes.tolist(), probabilities.tolist(), strict=True):
        name = dataset.names[index] if dataset.names else str(index)
        yield [name, dataset.classes[int(dataset.labels[index])], dataset.classes[predicted], probability]


@torch.no_grad()
def predict(
    run: Run,
    files: Files,
    /,
    *,
    data: Data = (),
    output: MaybeOutput = None,
    cache: bool = True,
    overwrite: Overwrite = False,
) -> int:
    """Predict the class of each file. Files that cannot be read are skipped, and the exit code is then 1.

    Files are read as those of the folder that the run was trained on, unless --data says otherwise.

    Args:
        run: Folder of a run. Its training shapes must have the same dimension as these files.
        files: Files, or folders of files.
        output: CSV file for the predictions: file, class, its probability, and the probabilities of all classes. Default: print
            a table.
        cache: Keep the shapes in the cache folder, from where the next command loads them.
    """
    check_output(output, overwrite)
    model, config = load_run(run)
    options = _reading(config, data)
    listing = find_files(files)
    paths, failures = listing.paths, listing.path_failures
    warn_light_background(paths, options)
    rows: list[list[Any]] = []
    unusual: list[tuple[Path, int]] = []
    beyond = 0
    for start in progress(range(0, len(paths), BATCH_SIZE), "predicting"):
        some = paths[start : start + BATCH_SIZE]
        batches, failed = read_all(some, cache=cache, **DOUBLE | options)
        read = {some[i]: complex[n] for positions, complex in batches.values() for n, i in enumerate(positions)}
        unfit = {path: reason for path, shape in read.items() if (reason := _unfit(shape, config))}
        failures += [*failed, *(Failure(path, reason) for path, reason in unfit.items())]
        fit = {path: read[path] for path in some if path in read and path not in unfit}
        unusual += [(path, shape.max_dim) for path, shape in fit.items() if shape.max_dim not in config.shape_dims]
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
        write_text(output, comma_separated([*header, *config.classes], rows))
        print(f"{len(rows)} predictions in {output}")
    elif rows:
        print(aligned(header, [[file, name, f"{probability:.3f}"] for file, name, probability, *_ in rows]))
    if unusual:
        _warn_unusual(unusual)
    warn_beyond_radius(beyond, model.layer.config.largest_height, trained=True)
    return print_failures(failures, done=len(rows))


def _warn_unusual(shapes: Sequence[tuple[Path, int]]) -> None:
    """Warn of shapes of a dimension that did not occur in training, such as clouds for a model trained on meshes."""
    (first, dim), more = shapes[0], len(shapes) - 1
    kind = _KINDS.get(dim, f"complex of dimension {dim}")
    others = f", like {more} more" if more else ""
    print(
        f"warning: {printable(str(first))} is a {kind}{others}. The model was not trained on any, so the prediction is "
        "unreliable",
        file=sys.stderr,
    )


def _unfit(shape: Complex, config: RunConfig) -> str | None:
    """Why the model cannot take a shape, or ``None`` if it can."""
    max_dim, num_points = config.model.max_dim, config.training.num_points
    if shape.dim != config.dim:
        return f"it has points of dimension {shape.dim}, but the model was trained on dimension {config.dim}."
    if max_dim is not None and shape.max_dim > max_dim:
        return f"it has simplices of dimension {shape.max_dim}, but the model has max_dim={max_dim}."
    if config.model.joint and (shape.weights is not None or not shape.is_simplicial):
        return "it has weights or squares, but the model was trained on simplices without weights."
    if num_points is not None and shape.max_dim > 0:
        return (
            f"it has simplices of dimension {shape.max_dim}, but the model subsamples point clouds (num_points={num_points})."
        )
    return None
