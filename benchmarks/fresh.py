"""What only a new process can tell: peak memory, and how long the first transform takes."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
import torch
from torch import Tensor
from works import DASH, Report, make_problem, meshes, new_process

from eulerscan import Complex

SIDE = 1_000  # of the grid: a million vertices
NUM_DIRECTIONS, NUM_THRESHOLDS, SCALE = 64, 64, 100.0
REPEATS = 5

START = """
import json, time
begin = time.perf_counter()
import torch
torch_loaded = time.perf_counter()
import eulerscan as es
loaded = time.perf_counter()
points = torch.tensor([[0., 0], [1, 0], [0, 1]]).requires_grad_()
triangle = es.Complex(points, [torch.tensor([[0, 1, 0], [1, 2, 2]]), torch.tensor([[0], [1], [2]])])
result = es.ect(triangle, es.directions.circle(8), es.thresholds(8), scale=10.0)
transformed = time.perf_counter()
result.sum().backward()
differentiated = time.perf_counter()
print(json.dumps({
    "torch": torch_loaded - begin,
    "import": loaded - torch_loaded,
    "transform": transformed - torch_loaded,
    "gradient": differentiated - torch_loaded,
}))
"""


def run_memory() -> Report:
    report = Report(
        f"Memory, 1 mesh of {SIDE * SIDE:,} vertices, {NUM_DIRECTIONS}x{NUM_THRESHOLDS}, λ {SCALE:g}",
        ["pass", "simplices", "seconds", "peak GB beyond the input", "floor"],
        notes=["A fresh process; resident memory above what it held with the input in place and after a tiny transform."],
    )
    result = new_process([sys.executable, __file__])
    simplices = f"{result['simplices']:,.0f}"
    for name in "forward", "forward + backward":
        peak = result[f"{name} peak"]
        floor = report.below(f"memory, {name}", peak, 1, "GB")
        report.rows.append([name, simplices, f"{result[f'{name} seconds']:.2f}", f"{peak:.3f}", floor])
    if not result["resettable"]:
        report.notes.append("The peak could not be reset here: it includes the building of the input.")
    return report


def run_start() -> Report:
    report = Report(
        "Start",
        ["what", "seconds", "floor"],
        notes=["Each in fresh processes; all but the first row count from the moment torch is loaded."],
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", START]
        cold = new_process(command, environment)
        runs = [new_process(command, environment) for _ in range(REPEATS)]
    warm = {key: statistics.median(run[key] for run in runs) for key in cold}
    rows: list[tuple[str, float, float | None]] = [
        ("import torch", warm["torch"], None),
        ("import eulerscan", warm["import"], 0.3),
        ("import and first transform, nothing compiled yet", cold["transform"], 20),
        ("the same with its gradient", cold["gradient"], None),
        ("import and first transform, compiled by an earlier process", warm["transform"], 2),
        ("the same with its gradient", warm["gradient"], None),
    ]
    for name, seconds, floor in rows:
        report.rows.append([name, f"{seconds:.2f}", report.below(name, seconds, floor, "s") if floor else DASH])
    return report


def _measure_memory() -> dict[str, float]:
    """Runs in a process of its own."""
    problem = make_problem(_grid(), NUM_DIRECTIONS, NUM_THRESHOLDS, SCALE)
    points, directions = problem.complex.points.requires_grad_(), problem.directions.requires_grad_()
    small = make_problem(meshes(1, 10), NUM_DIRECTIONS, NUM_THRESHOLDS, SCALE)
    small.ours(small.complex.points.requires_grad_(), small.directions.requires_grad_()).backward(small.gradient)
    _give_back()
    resettable = _reset_peak()
    before = psutil.Process().memory_info().rss
    begin = time.perf_counter()
    result = problem.ours(points, directions)
    transformed, peak = time.perf_counter(), _peak()
    result.backward(problem.gradient)
    return {
        "simplices": problem.num_simplices,
        "resettable": resettable,
        "forward seconds": transformed - begin,
        "forward peak": (peak - before) / 1e9,
        "forward + backward seconds": time.perf_counter() - begin,
        "forward + backward peak": (_peak() - before) / 1e9,
    }


def _grid() -> Complex:
    """A square of vertices, moved a little, with two triangles in every cell."""
    points = torch.cartesian_prod(torch.arange(float(SIDE)), torch.arange(float(SIDE)))
    points += torch.rand(points.shape, generator=torch.Generator().manual_seed(0)) / 2
    index = torch.arange(SIDE * SIDE).view(SIDE, SIDE)
    a, b, c, d = (corner.reshape(-1) for corner in (index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:]))
    across, down = (torch.stack([one.reshape(-1), two.reshape(-1)]) for one, two in _neighbors(index))
    edges = torch.cat([across, down, torch.stack([a, d])], dim=1)
    triangles = torch.cat([torch.stack([a, b, d]), torch.stack([a, c, d])], dim=1)
    return Complex(points, [edges, triangles]).normalized("unit_ball")


def _neighbors(index: Tensor) -> list[tuple[Tensor, Tensor]]:
    return [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]


def _give_back() -> None:
    """Return freed memory to the system, lest the transform reuse it and look smaller than it is."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _reset_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _peak() -> int:
    """Bytes: the most that was ever resident, since the reset where there was one."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(json.dumps(_measure_memory()))
