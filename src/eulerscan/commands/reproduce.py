"""``eulerscan reproduce``: the tables and figures of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from ..paper.optimising import FIGURES, run_figure
from ..paper.plans import PLANS
from ..paper.rendering import render
from ..paper.running import read, run_plan

Experiment = Literal[
    "directions", "superpixels", "small-graphs", "modelnet", "ablation", "learn-directions", "learn-points", "all"
]


def reproduce(
    experiment: Positional[Experiment] = "all",
    /,
    *,
    seeds: int | None = None,
    as_published: bool = False,
    results: Path = Path("results"),
    work: Path = Path("runs") / "reproduce",
    sample: int | None = None,
    render_only: bool = False,
) -> None:
    """Run the experiments of the paper, and put its numbers beside ours.

    Every run is one line of results/EXPERIMENT.jsonl, and is not done again; an interrupted run goes on where it was. The
    tables are results/EXPERIMENT.md and .csv.

    Args:
        experiment: Which table or figure.
        seeds: Number of runs for each cell. Default: as many as in the paper; 3 for superpixels.
        as_published: Add rows with the quirks of the published code: edges counted twice, one mean for all axes, molecules
            without isomorphic copies, lambda 200, the last epoch.
        results: Folder for lines, tables and figures.
        work: Folder for runs that are not finished.
        sample: Use so many shapes of each split and one epoch, to see that everything works.
        render_only: Only make tables and figures of what is there.
    """
    if seeds is not None and seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}.")
    chosen = (*PLANS, *FIGURES) if experiment == "all" else (experiment,)
    for name in chosen:
        if name in FIGURES:
            records = read(results / f"{name}.jsonl") if render_only else run_figure(name, seeds or 5, results)
            worst = max((record["left"] for record in records), default=float("nan"))
            print(f"{name}: {len(records)} fits, at most {100 * worst:.3g} % of the first difference left\n")
            continue
        plan, default = PLANS[name]
        lines = results / f"{name}.jsonl"
        runs = list(plan(seeds or default, as_published))
        records = read(lines) if render_only else run_plan(runs, lines, work=work, sample=sample)
        if records:
            render(name, records, results)
            print((results / f"{name}.md").read_text())
        else:
            print(f"{lines}: nothing there yet")
