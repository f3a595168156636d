"""``eulerscan doctor``: versions, devices, and whether every kernel equals the reference on this machine."""

from __future__ import annotations

import importlib.metadata
import math
import platform
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import directions
from .._tables import aligned, printable
from .._version import __version__
from ..complexes import Complex, collate
from ..grid import thresholds
from ..kernels import dispatch, operation, reference
from ..testing import random_graph, sphere, torus

LIBRARIES = ("torch", "triton", "numba", "numpy")
SCALE = 20.0
TOLERANCE = 1e-5  # of values and gradients in float32, relative to the largest
REPEATS = 5


class Outcome(NamedTuple):
    """How a kernel compares with the reference."""

    error: float  # the largest difference, relative to the largest number
    is_exact: bool  # whether the exact transform has the same bits
    milliseconds: float  # of both passes

    @property
    def is_equal(self) -> bool:
        """Whether the kernel is right."""
        return self.is_exact and self.error <= TOLERANCE


def doctor() -> int:
    """Check this machine: versions, devices, and whether every kernel equals the reference.

    On every device, each kernel transforms clouds, graphs and weighted meshes, exactly and with a sigmoid. Values and all
    gradients are compared with those of the plain formula in double precision. The exit code is 1 if a kernel is wrong, so
    that a script can ask. Times are those of this small problem, with gradients; they do not tell how large ones compare.

    Example: `eulerscan doctor`
    """
    print(f"eulerscan {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    print(", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    found = devices()
    for device in found:
        print(printable(f"{device}: {_description(device)}, kernel {_chosen(device)}"))
    if dispatch.forced.kernel is not None:
        print(f"{dispatch.VARIABLE}={dispatch.forced.kernel} forces a kernel")
    print()
    rows, wrong = [], []
    for device in found:
        for kernel in dispatch.kernels_for(device):
            try:
                outcome = check(kernel, device)
                verdict = "equal" if outcome.is_equal else "WRONG"
                cells = [f"{outcome.error:.1e}", "same" if outcome.is_exact else "differ", f"{outcome.milliseconds:.1f}"]
            except Exception as error:  # whatever a driver or a compiler says: the other kernels are checked too
                verdict, cells = f"FAILED: {type(error).__name__}: {next(iter(str(error).splitlines()), '')}", ["", "", ""]
            rows.append([str(device), kernel, *cells, printable(verdict)])
            if verdict != "equal":
                wrong.append(f"{kernel} on {device}")
    print(aligned(["device", "kernel", "largest error", "exact bits", "ms", "verdict"], rows))
    if wrong:
        print(f"error: not equal to the reference: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def devices() -> list[torch.device]:
    """The CPU, and every GPU."""
    found = [torch.device("cpu"), *(torch.device("cuda", index) for index in range(torch.cuda.device_count()))]
    return [*found, torch.device("mps")] if torch.backends.mps.is_available() else found


def check(kernel: str, device: torch.device) -> Outcome:
    """Compare a kernel with the reference, which computes in float64 on the CPU."""
    complex, grid = _shapes(), (directions.fibonacci(5), thresholds(9))
    exact = both_passes(complex, grid, math.inf, torch.float64, reference.ect)
    smooth = both_passes(complex, grid, SCALE, torch.float64, reference.ect)
    complex, grid = complex.to(device), (grid[0].to(device), grid[1].to(device))
    with dispatch.use(kernel), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        steps = both_passes(complex, grid, math.inf, torch.float32, operation.ect)[0]
        found = both_passes(complex, grid, SCALE, torch.float32, operation.ect)
        times = [_seconds(lambda: both_passes(complex, grid, SCALE, torch.float32, operation.ect)) for _ in range(REPEATS)]
    errors = [
        float((a.double().cpu() - b).abs().max() / b.abs().max().clamp(min=1.0)) for a, b in zip(found, smooth, strict=True)
    ]
    error = math.nan if any(map(math.isnan, errors)) else max(errors)
    return Outcome(error, torch.equal(steps.double().cpu(), exact[0]), 1000 * min(times))


def both_passes(
    complex: Complex, grid: tuple[Tensor, Tensor], scale: float, dtype: torch.dtype, kernel: Callable[..., Tensor]
) -> list[Tensor]:
    """The transform, and the gradients of points, directions, thresholds, scale and weights."""
    points, offsets, rows, simplices, weights, dims = complex.packed
    steepness = torch.tensor(scale, device=points.device)
    assert weights is not None
    inputs = [t.detach().to(dtype).requires_grad_() for t in (points, *grid, steepness, weights)]
    result = kernel(*inputs, simplices, offsets, rows, dims)
    upstream = torch.linspace(-1, 1, result.numel(), device=result.device).view_as(result).to(dtype)
    return [result.detach(), *torch.autograd.grad(result, inputs, upstream, materialize_grads=True)]


def _shapes() -> Complex:
    """A cloud, a graph, meshes and an empty complex, in float32, with weights whose sums are exact."""
    chance = torch.Generator().manual_seed(0)
    cloud = Complex(0.5 * torch.randn(20, 3, generator=chance))
    graph = random_graph(12, 16, 3, generator=chance, dtype=torch.float32).complex
    meshes = [shape.complex.to(dtype=torch.float32) for shape in (sphere(0), torus(5, 4))]
    complex = collate([cloud, Complex(torch.zeros(0, 3)), graph, *meshes])
    # No two vertices at the same height: which of them moves is a choice, and the reference makes another one.
    complex = complex.with_points(complex.points + 0.02 * torch.randn(complex.points.shape, generator=chance))
    weights = torch.randint(-4, 9, (sum(complex.counts),), generator=chance) / 4
    return complex.with_weights(weights.split(complex.counts))


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    found = run()
    found[0].cpu()  # waits for a GPU
    return time.perf_counter() - begin


def _chosen(device: torch.device) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return dispatch.kernel_for(device)
        except ValueError as error:
            return f"none: {error}"


def _description(device: torch.device) -> str:
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
    return f"{torch.get_num_threads()} threads" if device.type == "cpu" else "Metal"


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
