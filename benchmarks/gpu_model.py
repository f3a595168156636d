"""A model of what the transform costs on two GPUs. Every figure is an estimate: nothing here ran on a GPU.

    python benchmarks/gpu_model.py            # prints the tables of docs/gpu.md

Counted, not guessed: instructions and special-function operations of the Triton kernels in their machine code for sm_80
(:mod:`gpu_kernels`), the numbers of simplices, heights, sigmoids and atomic operations from the algorithm, and the bytes and
launches of the portable kernel from its operations on a small problem. Guessed: how close to the peak a kernel comes, what a
launch costs, and the rate of atomic operations. The roofline of a kernel is the largest of its times by instructions, special
functions, memory and atomics.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import gpu_kernels
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import eulerscan as es
from eulerscan._tables import markdown
from eulerscan.kernels import portable
from eulerscan.testing import torus

EFFICIENCY = 0.7  # of the peak that kernels reach: a guess
LAUNCH = 8e-6  # seconds of the host for a launch: a guess; Triton's launcher is written in Python
WARP = 32


class Card(NamedTuple):
    """Peaks of a GPU, from its data sheet; atomics are a guess within a factor of 2."""

    name: str
    multiprocessors: int
    hertz: float
    bandwidth: float  # bytes a second
    cycles: float  # of a warp instruction in a scheduler, of which a multiprocessor has four: integers share units with floats
    special: float  # cycles of a special function (exponential, reciprocal) of a warp
    atomics: float  # integer additions to different places, in sectors of 32 bytes a second

    @property
    def issue(self) -> float:
        """Warp cycles a second."""
        return 4 * self.multiprocessors * self.hertz


CARDS = (
    Card("A100 40 GB", 108, 1.41e9, 1.555e12, 1.5, 8, 100e9),
    Card("RTX 3070 Ti", 48, 1.77e9, 0.608e12, 1.1, 8, 50e9),
)


class Case(NamedTuple):
    """A batch of shapes, and a grid."""

    name: str
    complexes: int
    vertices: int  # of all
    edges: int
    triangles: int
    directions: int
    thresholds: int
    scale_in_steps: float  # thresholds over which the sigmoid rises and falls, within saturation
    touched: float  # share of the tiles of 32 vertices and 32 thresholds in which a vertex counts and a sigmoid rises

    @property
    def pairs(self) -> int:
        """Vertices times directions."""
        return self.vertices * self.directions

    @property
    def simplices(self) -> int:
        return self.vertices + self.edges + self.triangles


# The default scale: the sigmoid rises over one step, and is saturated 17 / 4 steps away, so a window has about 9 thresholds.
# On a mesh 3 % of the vertices count in a direction: 1 - 0.97 ** 32 of the tiles hold one.
CASES = (
    Case("A: 256 graphs of 70 vertices and 200 edges, 32 x 32", 256, 256 * 70, 256 * 200, 0, 32, 32, 8.5, 1.0),
    Case("B: a mesh of a million vertices, 64 x 64", 1, 10**6, 3 * 10**6, 2 * 10**6, 64, 64, 8.5, 1 - 0.97**32),
    Case("C: 64 clouds of 1024 points, 128 x 128", 64, 64 * 1024, 0, 0, 128, 128, 8.5, 1.0),
)


class Counts(NamedTuple):
    """Instructions of a warp, for one element a lane."""

    instructions: float
    special: float


def loops(code: str) -> list[tuple[int, int, list[str]]]:
    """The loops of a kernel: where they begin and end, and their instructions, the innermost first."""
    lines = [line.strip() for line in code.splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if re.fullmatch(r"\.L_x_\d+:", line)}
    found = []
    for i, line in enumerate(lines):
        jump = re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", line)
        if jump and labels.get(jump[1], i) < i:
            body = [text for text in lines[labels[jump[1]] : i + 1] if text.startswith("/*")]
            found.append((labels[jump[1]], i, body))
    return sorted(found, key=lambda loop: len(loop[2]))


def special(body: list[str]) -> int:
    """Special functions: exponentials and reciprocals."""
    return sum("MUFU" in line for line in body)


def machine_code() -> dict[str, list[Any]]:
    """Instructions and loops of the kernels that matter, for sm_80."""
    launches = gpu_kernels.launches(torch.float32)
    wanted = {
        "edges": "collapse, mesh, level 1",
        "triangles": "collapse, mesh, level 2",
        "curves": "chunk_curves, cloud, mode 0",
        "gradients": "height_gradients, mesh",
    }
    found = {}
    for key, name in wanted.items():
        code = gpu_kernels.instructions(gpu_kernels.compiled(launches[name], gpu_kernels.TARGETS["sm_80"]))
        found[key] = [[line.strip() for line in code.splitlines() if re.match(r"\s+/\*[0-9a-f]{4}\*/", line)], loops(code)]
    return found


def counts() -> dict[str, Counts]:
    """Instructions for one simplex, one sigmoid, one height and one threshold of its window."""
    code = machine_code()
    made = {}
    for key in ("edges", "triangles"):  # 512 elements by four warps: four a lane
        made[key] = Counts(len(code[key][0]) / 4, special(code[key][0]) / 4)
    # A tile has 32 vertices and 32 thresholds, 32 sigmoids a lane; the straight line of code with most special functions is
    # theirs.
    runs, run = [], []
    for line in code["curves"][0]:
        run.append(line)
        if re.search(r"\b(BRA|EXIT|BSYNC|WARPSYNC)\b", line):
            runs.append(run)
            run = []
    best = max(runs, key=special)
    made["sigmoid"] = Counts(len(best) / 32, special(best) / 32)
    inner = next(body for _, _, body in code["gradients"][1] if special(body))
    outer = next(body for _, _, body in code["gradients"][1] if len(body) > len(inner) and special(body))
    made["window"] = Counts(len(inner), special(inner))
    made["height"] = Counts(len(outer) - len(inner), special(outer) - special(inner))
    return made


class Meter(TorchDispatchMode):
    """Operations of torch, and the bytes that they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.launches, self.bytes = 0, 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not function.is_view:
            tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, torch.Tensor)]
            self.launches += 1
            self.bytes += sum(t.numel() * t.element_size() for t in tensors)
        return result


def portable_costs() -> tuple[tuple[float, float], tuple[float, float]]:
    """Bytes for each vertex, direction and threshold, and launches for each block, of the two passes of the portable kernel."""
    mesh = torus(60, 40).complex.to(dtype=torch.float32).packed
    grid = (es.directions.fibonacci(16), es.thresholds(64), torch.tensor(30.0))
    problem = portable.Problem((mesh.points, *grid, None, mesh.simplices, mesh.offsets, mesh.rows))
    entries = len(mesh.points) * 16 * 64
    assert entries <= portable.MAX_ENTRIES  # one block
    costs = []
    for backward in (False, True):
        with Meter() as meter:
            if backward:
                problem.differentiate(torch.ones(1, 16, 64), [True, True, False, False, False])
            else:
                problem.transform()
        costs.append((meter.bytes / entries, float(meter.launches)))
    return costs[0], costs[1]


def triton_seconds(case: Case, card: Card, found: dict[str, Counts]) -> dict[str, dict[str, float]]:
    """Seconds of each kernel by what limits it."""
    grid = case.directions / WARP / card.issue
    collapse = {"instructions": 0.0, "special": 0.0, "memory": 0.0, "atomics": 0.0}
    for count, key, rows in ((case.edges, "edges", 2), (case.triangles, "triangles", 3)):
        collapse["instructions"] += count * grid * found[key].instructions * card.cycles
        collapse["atomics"] += (
            count * case.directions / 8 * 2 / card.atomics
        )  # eight lanes a sector at best, half of that assumed
        collapse["memory"] += count * rows * 4 * math.ceil(case.directions / 32) / card.bandwidth
    if case.edges:
        collapse["memory"] += 3 * 4 * case.pairs / card.bandwidth  # cleared, read and written
    sigmoids = case.touched * case.pairs * case.thresholds / WARP / card.issue
    parts = (case.vertices // 512 + case.complexes) * case.directions * case.thresholds * 4
    output = case.complexes * case.directions * case.thresholds * 4
    blocks = math.ceil(case.thresholds / 32)
    read = (
        4 * case.pairs if case.edges else 0
    ) * blocks + 12 * case.vertices * case.directions * blocks / 8  # points, mostly cached
    curves = {
        "instructions": sigmoids * found["sigmoid"].instructions * card.cycles,
        "special": sigmoids * found["sigmoid"].special * card.special,
        "memory": (read + 2 * parts + output) / card.bandwidth,
        "atomics": 0.0,
    }
    heights = case.touched * case.pairs / WARP / card.issue
    window = case.scale_in_steps
    gradients = {
        "instructions": heights * (found["height"].instructions + window * found["window"].instructions) * card.cycles,
        "special": heights * (found["height"].special + window * found["window"].special) * card.special,
        "memory": (4 * case.pairs + case.vertices / 32 * case.directions * 12 * 2 + 24 * case.vertices) / card.bandwidth,
        "atomics": 0.0,
    }
    return {"collapse": collapse, "curves": curves, "gradients": gradients}


def seconds(limits: dict[str, float]) -> float:
    """The roofline, at the assumed efficiency."""
    return max(limits.values()) / EFFICIENCY


def _milliseconds(number: float) -> str:
    """Two digits."""
    return f"{float(f'{1e3 * number:.2g}'):g}"


def num_bytes(case: Case, found: dict[str, Counts]) -> float:
    """Bytes of memory that the forward pass of the Triton kernels reads and writes."""
    kernels = triton_seconds(case, CARDS[0], found)
    return CARDS[0].bandwidth * (kernels["collapse"]["memory"] + kernels["curves"]["memory"])


def rows_of(case: Case, card: Card, found: dict[str, Counts], costs: Any) -> list[list[str]]:
    """Forward and backward in milliseconds, of three ways."""
    kernels = triton_seconds(case, card, found)
    launches = 2 + (case.edges > 0) + (case.triangles > 0)
    forward = max(seconds(kernels["collapse"]) + seconds(kernels["curves"]), launches * LAUNCH)
    backward = max(seconds(kernels["gradients"]), 3 * LAUNCH)
    entries = case.pairs * case.thresholds
    num_blocks = max(1, math.ceil(entries / portable.MAX_ENTRIES))
    other = [max(b * entries / card.bandwidth, n * num_blocks * LAUNCH) for b, n in costs]
    dense = 8 * 4 * case.simplices * case.directions * case.thresholds / card.bandwidth  # written and read eight times
    limit = {name: max(limits, key=limits.__getitem__) for name, limits in kernels.items() if max(limits.values())}
    return [
        [
            case.name,
            card.name,
            _milliseconds(forward),
            _milliseconds(backward),
            _milliseconds(other[0]),
            _milliseconds(other[1]),
            _milliseconds(dense),
            "; ".join(f"{name}: {what}" for name, what in limit.items()),
        ]
    ]


def main() -> None:
    found, costs = counts(), portable_costs()
    print("Counted in the machine code for sm_80, for one element of one lane:\n")
    names = {
        "edges": "edge and direction, collapse",
        "triangles": "triangle and direction, collapse",
        "sigmoid": "vertex, direction and threshold, curves",
        "height": "vertex and direction, gradients",
        "window": "threshold in the window of a vertex, gradients",
    }
    table = [[names[key], f"{c.instructions:.1f}", f"{c.special:.1f}"] for key, c in found.items()]
    print(markdown(["element", "instructions", "special functions"], table))
    print(
        f"\nPortable kernel: {costs[0][0]:.0f} and {costs[1][0]:.0f} bytes for each vertex, direction and threshold, ", end=""
    )
    print(f"{costs[0][1]:.0f} and {costs[1][1]:.0f} launches for each block, forward and backward.\n")
    counted = [
        [
            case.name,
            f"{case.pairs:,}",
            f"{case.pairs * case.thresholds:,}",
            f"{2 * case.touched * case.pairs * case.thresholds:,.0f}",
            f"{(case.edges + case.triangles) * case.directions:,}",
            f"{1e-9 * num_bytes(case, found):.3f} GB",
            f"{4e-9 * case.simplices * case.directions * case.thresholds:.2f} GB",
        ]
        for case in CASES
    ]
    header = ["case", "heights", "sigmoids", "special functions", "atomic additions", "memory traffic", "a dense tensor"]
    print(markdown(header, counted))
    print("\nEstimates in milliseconds:\n")
    header = ["case", "card", "Triton forward", "backward", "portable forward", "backward", "dense forward", "limit"]
    print(markdown(header, [row for case in CASES for card in CARDS for row in rows_of(case, card, found, costs)]))


if __name__ == "__main__":
    main()
