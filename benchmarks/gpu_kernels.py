"""Compile the Triton kernels ahead of time for several GPUs, without one: registers, spills and shared memory.

    python benchmarks/gpu_kernels.py                    # all targets; compare with gpu_kernels.csv
    python benchmarks/gpu_kernels.py --targets sm_80    # one target
    python benchmarks/gpu_kernels.py --write            # write gpu_kernels.csv

What is compiled is what :mod:`eulerscan.kernels.triton.problem` launches: its launches are recorded instead of run. The exit
code is 1 if a kernel spills registers in float32, needs more shared memory than the smallest target has, or differs from the
table. Nothing is run.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ["TRITON_INTERPRET"] = "0"  # before triton is imported

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import eulerscan as es
from eulerscan.kernels.triton import backward, collapse, forward, problem
from eulerscan.testing import torus

TABLE = Path(__file__).with_suffix(".csv")
TARGETS = {
    "sm_75": GPUTarget("cuda", 75, 32),
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx90a": GPUTarget("hip", "gfx90a", 64),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
SHARED = 48 * 1024  # bytes that every target has for a program without asking for more
TYPES = {torch.float32: "*fp32", torch.float64: "*fp64", torch.int32: "*i32", torch.int64: "*i64"}
KERNELS = {
    forward: ("chunk_curves", "sum_chunks"),
    collapse: ("collapse", "largest_exponents", "units_of", "quantize"),
    backward: ("height_gradients", "suffix_sums", "coefficient_gradients", "weight_gradients"),
}
DUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class Launch(NamedTuple):
    """A kernel with the types of its arguments, as it is compiled."""

    kernel: Any
    signature: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...]
    divisible: tuple[int, ...]  # arguments that are multiples of 16
    options: tuple[tuple[str, int], ...]  # of the compiler


class Resources(NamedTuple):
    """What a compiled kernel takes."""

    registers: int
    spilled: int  # bytes on the stack, or registers
    shared: int  # bytes


class Recorder:
    """In place of a kernel: notes its launches."""

    def __init__(self, kernel: Any, launches: list[Launch]) -> None:
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, grid: Any) -> Any:
        return self.launch

    def launch(self, *args: Any, **constants: Any) -> None:
        options = {name: constants.pop(name) for name in ("num_warps", "maxnreg") if name in constants}
        names = self.kernel.arg_names[: len(args)]
        types = [TYPES[a.dtype] if isinstance(a, torch.Tensor) else "i32" for a in args]
        divisible = [  # torch aligns its memory to 16 bytes and more
            i
            for i, (a, parameter) in enumerate(zip(args, self.kernel.params, strict=False))
            if isinstance(a, torch.Tensor) or (a % 16 == 0 and not parameter.do_not_specialize)
        ]
        self.launches.append(
            Launch(
                self.kernel,
                tuple(zip(names, types, strict=True)),
                tuple(sorted(constants.items())),
                tuple(divisible),
                tuple(options.items()),
            )
        )


def cases(dtype: torch.dtype) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Problems that together launch every kernel: arguments of ``Problem``."""
    mesh = es.collate([torus(48, 24).complex, torus(40, 16).complex]).to(dtype=dtype).packed
    directions, thresholds = es.directions.fibonacci(64).to(dtype), es.thresholds(64).to(dtype)
    scale, rest = torch.ones((), dtype=dtype), (mesh.simplices, mesh.offsets, mesh.rows)
    weights = torch.ones(int(mesh.offsets[:, -1].sum()), dtype=dtype)
    yield "mesh", (mesh.points, directions, thresholds, scale, None, *rest)
    yield "weighted mesh", (mesh.points, directions, thresholds, scale, weights, *rest)
    yield "own directions", (mesh.points, torch.stack([directions] * 2), thresholds, scale, None, *rest)
    yield "given heights", (mesh.points @ directions.T, None, thresholds, scale, None, *rest)
    cloud = (mesh.simplices[:0], mesh.offsets[:1], ())
    yield "cloud", (mesh.points, directions, thresholds, scale, None, *cloud)


def launches(dtype: torch.dtype) -> dict[str, Launch]:
    """Every kernel as a problem launches it, by name; each once."""
    recorded: list[Launch] = []
    for module, names in KERNELS.items():
        for name in names:
            kernel = getattr(module, name)
            setattr(module, name, Recorder(kernel.kernel if isinstance(kernel, Recorder) else kernel, recorded))
    found: dict[str, Launch] = {}
    for case, arguments in cases(dtype):
        recorded.clear()
        made = problem.Problem(*arguments)
        gradient = made.transform()
        made.differentiate(gradient, [True, True, True, True, arguments[4] is not None])
        for launch in recorded:
            if launch not in found.values():
                found[f"{launch.kernel.__name__}, {case}{_details(dict(launch.constants))}"] = launch
    return found


def _details(constants: dict[str, Any]) -> str:
    """What tells launches of one kernel in one problem apart."""
    words = [f"{word} {constants[key]}" for key, word in (("LEVEL", "level"), ("MODE", "mode")) if key in constants]
    words += ["checked"] if constants.get("CHECKED") else []
    return "".join(f", {word}" for word in words)


def compiled(launch: Launch, target: GPUTarget) -> Any:
    """The kernel for a target."""
    constants, signature = dict(launch.constants), dict(launch.signature)
    names = launch.kernel.arg_names
    source = ASTSource(
        fn=launch.kernel,
        signature={name: signature.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i in launch.divisible},
    )
    options = {**dict(launch.options), "enable_fp_fusion": True}
    if target.backend == "hip":
        options.pop("maxnreg", None)
    return triton.compile(source, target=target, options=options)


def resources(kernel: Any, target: GPUTarget) -> Resources:
    """Registers, spills and shared memory of a compiled kernel."""
    if target.backend == "hip":
        text = kernel.asm["amdgcn"]
        counts = {key: int(re.search(rf"\.{key}:\s+(\d+)", text)[1]) for key in ("vgpr_count", "vgpr_spill_count")}
        return Resources(counts["vgpr_count"], counts["vgpr_spill_count"], kernel.metadata.shared)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        text = subprocess.run([DUMP / "cuobjdump", "-res-usage", file.name], capture_output=True, text=True, check=True).stdout
    registers, stack, local = (int(re.search(rf"{key}:(\d+)", text)[1]) for key in ("REG", "STACK", "LOCAL"))
    return Resources(registers, stack + local, kernel.metadata.shared)


def instructions(kernel: Any) -> str:
    """The instructions of a kernel for NVIDIA GPUs (SASS)."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        return subprocess.run([DUMP / "nvdisasm", "-c", file.name], capture_output=True, text=True, check=True).stdout


def read_table(path: Path = TABLE) -> dict[tuple[str, str, str], Resources]:
    """The committed table, by target, dtype and kernel."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")][1:]
    return {(row[0], row[1], row[2]): Resources(*map(int, row[3:])) for row in rows}


def version_of(path: Path = TABLE) -> str:
    """The version of triton that a table was made with."""
    return path.read_text(encoding="utf-8").splitlines()[0].split()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"], choices=["float32", "float64"])
    parser.add_argument("--only", default="", help="Kernels whose name contains this text.")
    parser.add_argument("--table", type=Path, default=TABLE, help="Table to compare with.")
    parser.add_argument("--write", action="store_true", help="Write the table instead of comparing with it.")
    options = parser.parse_args()
    found: dict[tuple[str, str, str], Resources] = {}
    wrong = []
    begin = time.perf_counter()
    for dtype in options.dtypes:
        for name, launch in launches(getattr(torch, dtype)).items():
            if options.only not in name:
                continue
            for target in options.targets:
                taken = found[target, dtype, name] = resources(compiled(launch, TARGETS[target]), TARGETS[target])
                print(f"{target:7} {dtype} {name:52} {taken.registers:4} {taken.spilled:5} {taken.shared:6}", flush=True)
                if dtype == "float32" and taken.spilled:
                    wrong.append(f"{target} {name}: {taken.spilled} spilled")
                if taken.shared > SHARED:
                    wrong.append(f"{target} {name}: {taken.shared} bytes of shared memory")
    print(f"{len(found)} kernels compiled by triton {triton.__version__} in {time.perf_counter() - begin:.0f} s")
    if options.write:
        lines = [f"# triton {triton.__version__}", "target,dtype,kernel,registers,spilled,shared"]
        lines += [
            ",".join([target, dtype, f'"{name}"', *map(str, taken)]) for (target, dtype, name), taken in sorted(found.items())
        ]
        options.table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif version_of(options.table) == triton.__version__:
        expected = read_table(options.table)
        for key, taken in found.items():
            if taken != expected.get(key):
                wrong.append(f"{' '.join(key)}: {tuple(taken)}, in the table {expected.get(key)}")
    else:
        print(f"not compared: the table was made with triton {version_of(options.table)}")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
