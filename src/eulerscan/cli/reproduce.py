"""``eulerscan reproduce``: tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from .._validation import positive
from ..paper.optimization import FIGURES, run_figure
from ..paper.plans import PLANS
from ..paper.rendering import render
from ..paper.running import read, run_plan
from .options import Maybe

QUIRKY = ("superpixels", "small-graphs")  # experiments with rows as published

Experiment = Literal[
    "directions", "superpixels", "small-graphs", "modelnet", "ablation", "learn-directions", "learn-points", "all"
]


def reproduce(
    experiment: Positional[Experiment] = "all",
    /,
    *,
    seeds: Maybe[int] = None,
    as_published: bool = False,
    results: Path = Path("results"),
    work: Path = Path("runs") / "reproduce",
    sample: Maybe[int] = None,
    render_only: bool = False,
) -> None:
    """Run the experiments of the paper and compare our numbers with the published ones.

    Each run adds one line to results/EXPERIMENT.jsonl; finished runs are skipped, interrupted ones resumed. The tables are
    results/EXPERIMENT.md and .csv.

    Args:
        experiment: Table or figure.
        seeds: Number of runs for each cell. Default: as in the paper; 3 for superpixels.
        as_published: Add rows with the quirks of the published code (superpixels, small-graphs): edges counted twice, one mean
            for all axes, scale 200, no ReLU after convolutions, the last epoch.
        results: Folder for results, tables and figures.
        work: Folder for checkpoints of unfinished runs.
        sample: Smoke test: use this many shapes of each split, and one epoch.
        render_only: Render tables and figures from existing results, without new runs.
    """
    for name, count in (("--seeds", seeds), ("--sample", sample)):
        if count is not None:
            positive(count, name)
    chosen = (*PLANS, *FIGURES) if experiment == "all" else (experiment,)
    for name in chosen:
        if name in FIGURES:
            records = read(results / f"{name}.jsonl") if render_only else run_figure(name, seeds or 5, results)
            left = [100 * record["left"] for record in records]
            print(f"{name}: {len(left)} fits" + (f", at most {max(left):.3g} % of the initial loss left" if left else ""))
            continue
        plan, default = PLANS[name]
        lines = results / f"{name}.jsonl"
        both = [run for quirks in ((False, True) if name in QUIRKY else (False,)) for run in plan(seeds or default, quirks)]
        planned = {run.key: run for run in (both if sample is None else [run.sampled(sample) for run in both])}
        if not render_only:
            run_plan([run for run in planned.values() if as_published or not run.as_published], lines, work=work)
        records = [record for record in read(lines) if record["key"] in planned]  # includes existing rows as published
        if records:
            render(name, records, results)
            print((results / f"{name}.md").read_text(encoding="utf-8"))
        else:
            print(f"{lines}: no results yet")
