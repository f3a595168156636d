"""How often a reader changes file who follows a call through the package.

    python benchmarks/walks.py
    python benchmarks/walks.py --steps

The calls are traced. Every function is a step, once, since it is read once; imports, comprehensions and attributes are not.
Three walks have bounds, and the exit code is 1 if one is missed:

- ``eulerscan transform folder/ -o x.npz``, to the first call of a kernel: at most 30 changes of file (59 in the flat layout).
- ``eulerscan.read`` of a PLY file: it is opened once, and packed once.
- ``ECTLayer.forward`` of a graph, to the call of the kernel: at most 5 changes of file (as in the flat layout).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

import eulerscan as es
from eulerscan._tables import aligned
from eulerscan.cli.main import main as run_command
from eulerscan.complexes.packed import pack
from eulerscan.io import write
from eulerscan.kernels import operation

SOURCE = f"{Path(es.__file__).parent}{os.sep}"


class Walk(NamedTuple):
    """A call, followed."""

    name: str
    calls: list[CodeType]  # of our own functions

    @property
    def steps(self) -> list[CodeType]:
        """The first call of each function."""
        attributes = set(_attributes())
        return [code for code in dict.fromkeys(self.calls) if not code.co_name.startswith("<") and code not in attributes]

    @property
    def files(self) -> list[tuple[str, list[str]]]:
        """The steps by file, in order. A file may occur several times."""
        return [
            (file.removeprefix(SOURCE), [code.co_qualname for code in codes])
            for file, codes in groupby(self.steps, lambda code: code.co_filename)
        ]


def follow(name: str, function: Callable[[], object], *, to: Callable[..., object] | None = None) -> Walk:
    """Trace the calls of our own functions, until one of them is called."""
    calls: list[CodeType] = []
    imports, ended = 0, False

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal imports, ended
        code = frame.f_code
        if code.co_name == "_find_and_load" and code.co_filename.startswith("<frozen importlib"):
            imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and code.co_filename.startswith(SOURCE) and not (imports or ended):
            calls.append(code)
            ended = to is not None and code is to.__code__

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        sys.setprofile(trace)
        try:
            function()
        finally:
            sys.setprofile(None)
    return Walk(name, calls)


def _attributes() -> Iterator[CodeType]:
    """The code of all properties."""
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "eulerscan"]
    for owner in {owner for module in modules for owner in vars(module).values() if inspect.isclass(owner)}:
        for value in vars(owner).values():
            if isinstance(value, property) and value.fget is not None:
                yield value.fget.__code__
            elif isinstance(value, functools.cached_property):
                yield value.func.__code__


def main() -> int:
    graph = es.Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])])
    tetrahedron = es.Complex(torch.rand(4, 3), [torch.tensor([[0, 0, 0, 1], [1, 1, 2, 2], [2, 3, 3, 3]])]).closure()
    opened: list[str] = []
    sys.addaudithook(lambda event, about: opened.append(str(about[0])) if event == "open" else None)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "folder"
        folder.mkdir()
        for i in range(3):
            write(tetrahedron, folder / f"{i}.ply")
        words = ["transform", str(folder), "-o", str(folder.with_name("x.npz"))]
        transform = follow("eulerscan transform", lambda: run_command(words), to=operation.ect)
        opened.clear()
        read = follow("eulerscan.read", lambda: es.read(folder / "0.ply"))
        num_opened = opened.count(str(folder / "0.ply"))
    layer = es.ECTLayer(2)
    layer(graph)
    forward = follow("ECTLayer.forward", lambda: layer(graph), to=operation.ect)
    walks = (transform, read, forward)
    if "--steps" in sys.argv:
        for walk in walks:
            print(f"{walk.name}\n" + "\n".join(f"  {file}: {', '.join(names)}" for file, names in walk.files) + "\n")
    rows = [[w.name, len({file for file, _ in w.files}), len(w.steps), len(w.files) - 1] for w in walks]
    print(aligned(["walk", "files", "functions", "changes of file"], rows))
    missed = [
        f"{what}: {found} instead of at most {bound}"
        for what, found, bound in (
            ("changes of file of eulerscan transform", len(transform.files) - 1, 30),
            ("changes of file of ECTLayer.forward", len(forward.files) - 1, 5),
            ("times that a PLY file is opened", num_opened, 1),
            ("times that a PLY file is packed", read.calls.count(pack.__code__), 1),
        )
        if found > bound
    ]
    print("\n" + ("\n".join(f"missed: {miss}" for miss in missed) or "Every bound is met."))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
