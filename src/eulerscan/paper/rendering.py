"""Render results as tables and figures, with the paper's numbers beside ours."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import plot
from .._storage import write_text
from .._tables import comma_separated, markdown
from .published import PUBLISHED, SECONDS
from .running import Record

Cells = dict[tuple[str, str], list[Record]]

_NOTES = {
    "superpixels": (
        "The graph neural networks of torch_geometric are only timed, on the same machine and with the same batch size; their "
        "accuracy is the published one.",
        "The paper's seconds per epoch are from GPUs: an RTX 3070 Ti for its own rows, a GTX 1080 Ti for the others. Ours are "
        "from the CPU below.",
        "Graphs are augmented (rotated and jittered) and trained for 40 epochs; *ECT+MLP, meshes* and WECT are not augmented "
        "and trained for 30.",
        "*Graphs, rings* and *ECT+CNN, meshes* go beyond the paper: three convolutions along rings of directions around the "
        "axis of intensity, or along the circle; batch normalization; 12 epochs of rotated and squeezed digits.",
    ),
    "small-graphs": (
        "Isomorphic duplicates of molecules are removed (276, 237 and 578 graphs remain), as in the paper's code; rows *with "
        "isomorphic duplicates* use the original sets (405, 467 and 756).",
        "Every seed has its own split, the same for all models: 64 % for training, 16 % for validation, 20 % for test. The "
        "graph neural networks were trained here in the same way.",
        "*Per-dimension channels*: separate curves for vertices and edges. On letters with an annealed learning rate, like "
        "65K; only 4K has a constant one, which suits it better.",
        "*15 x 4K*: an ensemble of fifteen networks, trained separately, whose probabilities are averaged.",
        "*ECT+SVM*: an SVM on curves in random directions. The coordinates of a molecule are the distances from its principal "
        "planes; the parameters are those of the support vectors. *Two embeddings*: these coordinates and those in the unit "
        "ball, each with directions of its own.",
        "*80 % for training*: the SVM is fitted on training and validation shapes together, since nothing is selected on "
        "validation shapes.",
    ),
    "modelnet": (
        "The first 100 or 1000 of the 1024 points that the mirror holds for each object; official test split.",
        "*Rings* goes beyond the paper: three convolutions along rings of directions around the upright axis, batch "
        "normalization, 40 epochs, clouds squeezed a little and resampled from the 1024 points in every epoch of "
        "training. *3 x rings*: an ensemble of three.",
    ),
}


def render(experiment: str, records: Sequence[Record], folder: Path) -> None:
    """Write ``<experiment>.md``, ``.csv`` and, for a figure of the paper, ``.png`` and ``.pdf``.

    Args:
        records: The records of the runs of one plan.
    """
    cells: Cells = {}
    for record in records:
        cells.setdefault((record["row"], record["column"]), []).append(record)
    header, rows = _table(experiment, cells)
    notes = [
        "Test accuracy in percent: mean ± standard deviation (number of seeds), and the paper's in brackets.",
        *_NOTES.get(experiment, ()),
        f"{len(records)} runs, {sum(r['seconds'] for r in records) / 60:.0f} minutes of wall time, by "
        f"`eulerscan reproduce {experiment}{' --as-published' * any('as published' in r['row'] for r in records)}`.",
        *sorted({_where(record) for record in records}),
    ]
    text = f"# {experiment}\n\n{markdown(header, rows)}\n\n" + "\n".join(f"- {note}" for note in notes) + "\n"
    write_text(folder / f"{experiment}.md", text)
    write_text(folder / f"{experiment}.csv", comma_separated(*_flat(experiment, cells)))
    if experiment == "ablation":
        _draw_ablation(cells, folder)


def _table(experiment: str, cells: Cells) -> tuple[list[str], list[list[str]]]:
    """One row per model, ours and the paper's; one column per data set."""
    published = PUBLISHED.get(experiment, {})
    columns = list(dict.fromkeys([*(c for row in published.values() for c in row), *(c for _, c in cells)]))
    names = list(dict.fromkeys([*published, *(row for row, _ in cells)]))
    timed = experiment == "superpixels"
    header = ["", "parameters", *columns, "epochs", "s/epoch", *(["paper's s/epoch"] if timed else [])]
    rows = []
    for name in names:
        ours = [record for (row, _), found in cells.items() if row == name for record in found]
        row = [name, _span([r["parameters"] for r in ours])]
        row += [_cell(cells.get((name, column), []), published.get(name, {}).get(column)) for column in columns]
        row += [_span([r["epochs"] for r in ours]), _mean([r["seconds_per_epoch"] for r in ours])]
        rows.append(row + ([f"{SECONDS[name]:.2f}" if name in SECONDS else ""] if timed else []))
    return header, rows


def _flat(experiment: str, cells: Cells) -> tuple[list[str], list[list[Any]]]:
    """One line per cell."""
    header = ["row", "column", "runs", "accuracy", "std", "paper_accuracy", "paper_std", "parameters", "seconds_per_epoch"]
    published = PUBLISHED.get(experiment, {})
    rows = []
    for (row, column), records in cells.items():
        values = [r["test_accuracy"] for r in records if "test_accuracy" in r]
        mean, std = (statistics.fmean(values), _std(values)) if values else ("", "")
        paper = published.get(row, {}).get(column, ("", ""))
        seconds = statistics.fmean(r["seconds_per_epoch"] for r in records)
        rows.append([row, column, len(records), mean, std, *paper, records[0]["parameters"], seconds])
    return header, rows


def _cell(records: Sequence[Record], paper: tuple[float, float] | None) -> str:
    values = [r["test_accuracy"] for r in records if "test_accuracy" in r]
    ours = ""
    if values:
        spread = f" ± {_std(values):.2f}" if len(values) > 1 else ""
        ours = f"{statistics.fmean(values):.2f}{spread} ({len(values)})"
    theirs = f"[{paper[0]:.2f} ± {paper[1]:.2f}]" if paper else ""
    return f"{ours} {theirs}".strip()


def _std(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f}" if values else ""


def _span(values: Sequence[int]) -> str:
    low, high = (min(values), max(values)) if values else (0, 0)
    return "" if not values else f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _where(record: Record) -> str:
    machine = record["machine"]
    return (
        f"{machine['processor']}, {machine['threads']} threads; Python {machine['python']}, torch {machine['torch']}, "
        f"eulerscan {record['version']}."
    )


def _draw_ablation(cells: Cells, folder: Path) -> None:
    """Plot the accuracy against the number of directions, with standard deviations."""
    points = sorted((int(column), [r["test_accuracy"] for r in records]) for (_, column), records in cells.items())
    figure = plot.figure(5, 3)
    ax = figure.add_subplot()
    ax.errorbar(
        [n for n, _ in points],
        [statistics.fmean(values) for _, values in points],
        [_std(values) for _, values in points],
        marker="o",
        capsize=3,
    )
    ax.set(xlabel="number of directions", ylabel="accuracy on Letter-low (%)")
    for extension in ("png", "pdf"):
        plot.save(figure, folder / f"ablation.{extension}", dpi=150)
