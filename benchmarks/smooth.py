"""The differentiable transform against the dense formulation, eager and compiled."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import psutil
import torch
from torch import Tensor
from works import (
    DASH,
    Call,
    Problem,
    Report,
    Transform,
    forward,
    forward_backward,
    interleaved,
    make_problem,
    meshes,
    milliseconds,
    new_process,
)

from eulerscan.kernels import reference
from eulerscan.kernels.layout import levels

# For glibc: reuse freed memory. By default large tensors go back to the system and cost a page fault every 4 kB again.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(2**33),
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
    "MALLOC_TOP_PAD_": str(2**30),
}
COMPILED_COPIES = 8  # tensors [simplices, T, H] that a compiled program may hold at once, at worst


class Work(NamedTuple):
    name: str
    num_meshes: int
    num_points: int
    size: int  # directions, and as many thresholds
    scale: float
    floors: tuple[float, float]  # ratios to the dense formulation: forward, forward + backward


WORKS = [
    Work("64 graphs of 6 vertices, 16x16, λ 200", 64, 6, 16, 200.0, (10, 10)),
    Work("128 meshes of 75 points, 32x32, λ 200", 128, 75, 32, 200.0, (200, 180)),
    Work("8 meshes of 1,000 points, 32x32, λ 8", 8, 1_000, 32, 8.0, (120, 150)),
    Work("1 mesh of 10,000 points, 64x64, λ 500", 1, 10_000, 64, 500.0, (400, 500)),
]
PASSES: dict[str, Callable[[Transform, Problem], Call]] = {"forward": forward, "forward + backward": forward_backward}


def run() -> Report:
    report = Report(
        "Smooth",
        [
            "work",
            "pass",
            "simplices",
            "dense ms",
            "compiled ms",
            "ours ms",
            "vs dense",
            "floor",
            "vs compiled",
            "vs dense tuned",
            "ns",
        ],
        notes=[
            "dense: `eulerscan.kernels.reference.ect`, eager. compiled: the faster of `torch.compile` of that function and of "
            "its statement with the levels taken apart beforehand (one graph without breaks). Median times in float32; "
            "backward means gradients in points and directions. dense tuned: both in a process whose allocator "
            f"keeps freed memory (`{' '.join(f'{key}={value}' for key, value in KEEP_MEMORY.items())}`), which spares "
            "the dense formulation most of its page faults; in brackets its ms. "
            "ns: nanoseconds per simplex and direction, ours. floor: what the benchmark demands. "
            "A row is timed only after ours reproduced values and gradients of the dense formulation in float64."
        ],
    )
    for work in WORKS:
        _measure(report, work)
    return report


def _measure(report: Report, work: Work) -> None:
    complex = meshes(work.num_meshes, work.num_points)
    grid = (work.size, work.size, work.scale)
    problem = make_problem(complex, *grid)
    simplices = f"{problem.num_simplices:,}"
    try:
        _check(problem, make_problem(complex, *grid, dtype=torch.float64))
    except AssertionError as error:
        report.miss(work.name, "does not reproduce the reference")
        report.rows.append([work.name, "both", simplices, *[DASH] * 8])
        report.notes.append(f"{work.name}: not timed, since ours differs from the reference. {error}")
        return
    compiled, reason = _compiled(problem)
    if reason:
        report.notes.append(f"{work.name}: not compiled, {reason}.")
    tuned = new_process([sys.executable, __file__, str(WORKS.index(work))], {**os.environ, **KEEP_MEMORY})
    candidates = {"ours": problem.ours, "dense": _dense(problem), **compiled}
    for (name, make), floor in zip(PASSES.items(), work.floors, strict=True):
        seconds = interleaved({key: make(transform, problem) for key, transform in candidates.items()})
        ours, dense = seconds["ours"], seconds["dense"]
        fastest = min((seconds[key] for key in compiled), default=None)
        report.rows.append(
            [
                work.name,
                name,
                simplices,
                milliseconds(dense),
                milliseconds(fastest) if fastest else DASH,
                milliseconds(ours),
                f"{dense / ours:.0f}x",
                report.at_least(f"{work.name}, {name}", dense / ours, floor),
                f"{fastest / ours:.0f}x" if fastest else DASH,
                f"{tuned[name]['dense'] / tuned[name]['ours']:.0f}x ({milliseconds(tuned[name]['dense'])})",
                f"{problem.nanoseconds(ours):.2f}",
            ]
        )


def _measure_tuned(work: Work) -> dict[str, dict[str, float]]:
    """Runs in a process of its own, with ``KEEP_MEMORY`` in its environment."""
    problem = make_problem(meshes(work.num_meshes, work.num_points), work.size, work.size, work.scale)
    candidates = {"ours": problem.ours, "dense": _dense(problem)}
    return {
        name: interleaved({key: make(transform, problem) for key, transform in candidates.items()}, rounds=3)
        for name, make in PASSES.items()
    }


def _check(problem: Problem, exact: Problem) -> None:
    """Ours equals the reference tightly in float64, and in float32 as far as float32 reaches."""
    expected = _outcome(_dense(exact), exact)
    for actual, wanted in zip(_outcome(exact.ours, exact), expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-9, atol=1e-9 * float(wanted.abs().max()))
    for actual, wanted in zip(_outcome(problem.ours, problem), expected, strict=True):
        _assert_near(actual, wanted)


def _assert_near(actual: Tensor, wanted: Tensor) -> None:
    """Equal on the whole: rounding to float32 may exchange the top vertex of a nearly level simplex."""
    error = float((actual - wanted).norm() / wanted.norm())
    assert error < 1e-2, f"The float32 result is off by {error:.1%}."


def _outcome(transform: Transform, problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Values, gradient in points, gradient in directions."""
    points = problem.complex.points.clone().requires_grad_()
    directions = problem.directions.clone().requires_grad_()
    values = transform(points, directions)
    return (values.detach(), *torch.autograd.grad(values, (points, directions), problem.gradient))


def _dense(problem: Problem, ect: Callable[..., Tensor] = reference.ect) -> Transform:
    complex, thresholds = problem.complex, problem.thresholds
    scale = torch.tensor(problem.scale, dtype=thresholds.dtype)
    layout = (complex.packed.weights, complex.packed.simplices, complex.offsets, complex.rows)
    return lambda points, directions: ect(points, directions, thresholds, scale, *layout)


def _one_graph(problem: Problem) -> Transform:
    """The statement of the reference without what a compiler cannot look through."""
    complex, thresholds, scale = problem.complex, problem.thresholds, problem.scale
    parts = list(levels(None, complex.packed.simplices, complex.offsets, complex.rows))

    def ect(points: Tensor, directions: Tensor) -> Tensor:
        heights = points @ directions.T
        result = heights.new_zeros(complex.num_complexes, len(directions), len(thresholds))
        for level in parts:
            tops = heights[level.vertices].max(dim=0).values
            result = result.index_add(
                0, level.owner, torch.sigmoid(scale * (thresholds - tops.unsqueeze(-1))), alpha=level.sign
            )
        return result

    return ect


def _compiled(problem: Problem) -> tuple[dict[str, Transform], str]:
    """The compiled baselines, each run once in either pass; or none and the reason."""
    needed = COMPILED_COPIES * problem.num_simplices * len(problem.directions) * len(problem.thresholds) * 4
    if needed > psutil.virtual_memory().available:
        return {}, f"it could take {needed / 2**30:.0f} GB of memory"
    torch.compiler.reset()
    candidates = {
        "compiled as it is": _dense(problem, torch.compile(reference.ect, dynamic=False)),
        "compiled as one graph": torch.compile(_one_graph(problem), dynamic=False, fullgraph=True),
    }
    try:
        wanted = _outcome(_dense(problem), problem)
        for transform in candidates.values():
            transform(problem.complex.points, problem.directions)
            for actual, expected in zip(_outcome(transform, problem), wanted, strict=True):
                _assert_near(actual, expected)
    except Exception as error:  # a missing or broken compiler must not keep the rest from being measured
        return {}, f"torch.compile failed with {type(error).__name__}"
    return candidates, ""


if __name__ == "__main__":
    print(json.dumps(_measure_tuned(WORKS[int(sys.argv[1])])))
