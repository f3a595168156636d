"""What the benchmarks share: meshes to transform, a clock, and tables that know their floors."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.spatial import Delaunay
from torch import Tensor
from torch.utils.benchmark import Timer

import eulerscan as es

Call = Callable[[], object]
Transform = Callable[[Tensor, Tensor], Tensor]  # of points and directions

DASH = "–"


def mesh(num_points: int, rng: np.random.Generator, *, spatial: bool = False) -> es.Complex:
    """The Delaunay triangulation of uniform points in the unit square: vertices, edges and triangles.

    The vertices are numbered at random, or ``spatial``: neighbors in the plane are near in memory, as in most files.
    """
    points = rng.random((num_points, 2))
    if spatial:
        column, row = (points * np.sqrt(num_points) / 4).astype(np.int64).T  # squares of about 16 points
        points = points[np.lexsort((row, column))]
    triangles = Delaunay(points).simplices
    if spatial:
        triangles = triangles[triangles.min(axis=1).argsort()]
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])
    edges = np.unique(np.sort(sides, axis=1), axis=0)
    levels = [torch.tensor(simplices.T.astype(np.int64)) for simplices in (edges, triangles)]
    return es.Complex(torch.tensor(points), levels)


def meshes(count: int, num_points: int, *, seed: int = 0, spatial: bool = False) -> es.Complex:
    """Several Delaunay meshes, each in the unit ball, as one complex in float64.

    In float32 some vertices would be exactly level, and then several gradients are right.
    """
    rng = np.random.default_rng(seed)
    return es.collate([mesh(num_points, rng, spatial=spatial) for _ in range(count)]).normalized("unit_ball")


class Problem(NamedTuple):
    """Everything a transform and its gradient are computed from."""

    complex: es.Complex
    directions: Tensor  # [T, 2]
    thresholds: Tensor  # [H]
    scale: float
    gradient: Tensor  # [B, T, H], the upstream gradient of the backward pass

    @property
    def num_simplices(self) -> int:
        return sum(self.complex.counts)

    def nanoseconds(self, seconds: float) -> float:
        """Of one simplex in one direction."""
        return 1e9 * seconds / (self.num_simplices * len(self.directions))

    def ours(self, points: Tensor, directions: Tensor) -> Tensor:
        return es.ect(self.complex.with_points(points), directions, self.thresholds, scale=self.scale)


def make_problem(
    complex: es.Complex, num_directions: int, num_thresholds: int, scale: float, *, dtype: torch.dtype = torch.float32
) -> Problem:
    shape = (complex.num_complexes, num_directions, num_thresholds)
    return Problem(
        complex.to(dtype=dtype),
        es.directions.circle(num_directions, dtype=dtype),
        es.thresholds(num_thresholds, dtype=dtype),
        scale,
        torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype),
    )


def forward(transform: Transform, problem: Problem) -> Call:
    points, directions = problem.complex.points, problem.directions
    return lambda: transform(points, directions)


def forward_backward(transform: Transform, problem: Problem) -> Call:
    """The transform and its gradient in points and directions."""
    points = problem.complex.points.clone().requires_grad_()
    directions = problem.directions.clone().requires_grad_()

    def call() -> None:
        points.grad = directions.grad = None
        transform(points, directions).backward(problem.gradient)

    return call


def interleaved(
    calls: Mapping[str, Call], *, rounds: int = 5, min_run_time: float = 0.2, num_threads: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Median seconds of each call. They take turns, so that a busy spell of the machine hits all of them."""
    default = torch.get_num_threads()  # that of Timer is one
    timers = {
        name: Timer("call()", globals={"call": call}, num_threads=(num_threads or {}).get(name, default))
        for name, call in calls.items()
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, timer in timers.items():
            times[name] += timer.blocked_autorange(min_run_time=min_run_time).times
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def new_process(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Any:
    """What a command prints, read as JSON."""
    finished = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(finished.stdout)


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"


@dataclass
class Report:
    """One section of the results: a table, remarks below it, and what it failed to reach."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def at_least(self, what: str, value: float, floor: float) -> str:
        return self._judge(what, value >= floor, f"at least {floor:g}x")

    def below(self, what: str, value: float, floor: float, unit: str) -> str:
        return self._judge(what, value < floor, f"below {floor:g} {unit}")

    def miss(self, what: str, reason: str) -> None:
        self.missed.append(f"{what}: {reason}")

    def _judge(self, what: str, reached: bool, floor: str) -> str:
        if not reached:
            self.miss(what, f"not {floor}")
        return f"{floor} {'✓' if reached else '✗ MISSED'}"

    def markdown(self) -> str:
        table = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in table]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join([f"## {self.title}", "", *lines, *(f"\n{note}" for note in self.notes)])
