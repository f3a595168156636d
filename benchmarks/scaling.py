"""Time against the number of simplices, directions and threads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter
from works import DASH, Problem, Report, forward, forward_backward, interleaved, make_problem, meshes, milliseconds

NUM_POINTS = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000]
NUM_DIRECTIONS = [8, 16, 32, 64, 128, 256, 512]
FIXED_POINTS, FIXED_DIRECTIONS, NUM_THRESHOLDS, SCALE = 10_000, 64, 64, 200.0
THREADED = {"1 mesh of 100,000 points": (1, 100_000), "2,000 meshes of 75 points": (2_000, 75)}
PLOT = Path(__file__).with_name("transform.png")


class Point(NamedTuple):
    simplices: int
    directions: int
    seconds: float


def run() -> Report:
    report = Report(
        f"Linear, {NUM_THRESHOLDS} thresholds, λ {SCALE:g}, forward",
        ["work", "simplices", "directions", "ms", "ns per simplex and direction", "by the second thread"],
    )
    shuffled = [_time(report, n, FIXED_DIRECTIONS, spatial=False) for n in NUM_POINTS]
    spatial = [_time(report, n, FIXED_DIRECTIONS, spatial=True) for n in NUM_POINTS]
    by_directions = [_time(report, FIXED_POINTS, n, spatial=True) for n in NUM_DIRECTIONS]
    for name, (count, num_points) in THREADED.items():
        complex = meshes(count, num_points, spatial=True)
        _threads(report, name, make_problem(complex, FIXED_DIRECTIONS, NUM_THRESHOLDS, SCALE))
    slopes = [_slope([p.simplices for p in points], points) for points in (spatial, shuffled)]
    report.notes.append(
        f"Fitted exponents (1 is linear): {slopes[0]:.2f} in simplices ({slopes[1]:.2f} for shuffled vertices, whose "
        f"neighbors are far away in memory), {_slope(NUM_DIRECTIONS, by_directions):.2f} in directions. Plot: `{PLOT.name}`."
    )
    _plot(spatial, shuffled, by_directions)
    return report


def _time(report: Report, num_points: int, num_directions: int, *, spatial: bool) -> Point:
    problem = make_problem(meshes(1, num_points, spatial=spatial), num_directions, NUM_THRESHOLDS, SCALE)
    seconds = interleaved({"ours": forward(problem.ours, problem)})["ours"]
    name = f"1 mesh of {num_points:,} points{'' if spatial else ', shuffled'}"
    report.rows.append([name, *_cells(problem, seconds), DASH])
    return Point(problem.num_simplices, num_directions, seconds)


def _cells(problem: Problem, seconds: float) -> list[str]:
    counts = [f"{problem.num_simplices:,}", str(len(problem.directions))]
    return [*counts, milliseconds(seconds), f"{problem.nanoseconds(seconds):.2f}"]


def _threads(report: Report, name: str, problem: Problem) -> None:
    """One thread against two, on one huge complex and on many small ones."""
    if torch.get_num_threads() < 2:
        report.notes.append(f"{name}: there is no second thread.")
        return
    for suffix, make in ("", forward), (", with backward", forward_backward):
        call = make(problem.ours, problem)
        seconds = interleaved({"1": call, "2": call}, num_threads={"1": 1, "2": 2})
        speedup = f"{seconds['1'] / seconds['2']:.2f}x"
        report.rows.append([name + suffix, *_cells(problem, seconds["2"]), speedup])


def _slope(sizes: Sequence[int], points: Sequence[Point]) -> float:
    return float(np.polyfit(np.log(sizes), np.log([point.seconds for point in points]), 1)[0])


def _plot(spatial: Sequence[Point], shuffled: Sequence[Point], by_directions: Sequence[Point]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
    simplices = [p.simplices for p in spatial]
    left.loglog(simplices, [1e3 * p.seconds for p in shuffled], "s-", color="C1", markersize=3, label="vertices shuffled")
    _panel(left, simplices, spatial, "simplices", f"{FIXED_DIRECTIONS} directions")
    _panel(right, NUM_DIRECTIONS, by_directions, "directions", f"{by_directions[0].simplices:,} simplices")
    left.set_ylabel("time of the transform (ms)")
    figure.savefig(PLOT, dpi=200)
    plt.close(figure)


def _panel(ax: Axes, sizes: Sequence[int], points: Sequence[Point], what: str, fixed: str) -> None:
    """Time against size, beside the straight line through the middle of the measurements."""
    times = [1e3 * point.seconds for point in points]
    middle = len(sizes) // 2
    ax.loglog(sizes, times, "o-", color="C0", markersize=4, label="vertices in spatial order")
    ax.loglog(sizes, [times[middle] * size / sizes[middle] for size in sizes], "k--", linewidth=0.7, label="linear")
    ax.xaxis.set_minor_formatter(NullFormatter())  # on a short axis they run into each other
    ax.set_xlabel(f"number of {what}")
    ax.set_title(f"{fixed}, {NUM_THRESHOLDS} thresholds", fontsize=9)
    ax.legend(frameon=False, fontsize=8)
