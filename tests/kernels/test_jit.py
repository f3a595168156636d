"""The cache of compiled kernels notices every change of their sources."""

import ast
import io
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import njit
from numba.core import event

from eulerscan.kernels.cpu import jit
from eulerscan.kernels.cpu.backward import backward
from eulerscan.kernels.cpu.forward import forward
from eulerscan.kernels.cpu.histogram import histogram

COMPILED = sorted(set(Path(jit.__file__).parent.glob("*.py")) - {Path(jit.__file__).with_name("problem.py")})


@pytest.mark.parametrize("kernel", [forward, backward, histogram])
def test_the_hash_of_the_folder_is_part_of_the_name(kernel):
    assert kernel.py_func.__qualname__.endswith(jit.SOURCES[:16])


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: file.stem)
def test_compiled_code_depends_on_no_file_outside_the_folder(file):
    imports = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    outside = {node.module for node in imports if node.level > 1 or (node.module or "").startswith("eulerscan")}
    assert outside <= {"_torch_internals"}  # by Python code alone


@pytest.mark.parametrize("stand_in", [None, object(), io.StringIO()])
def test_whatever_stands_in_for_standard_error_does_not_disturb(stand_in, monkeypatch):
    if isinstance(stand_in, io.StringIO):
        stand_in.close()
    monkeypatch.setattr(sys, "stderr", stand_in)
    kernel = SimpleNamespace(py_func=SimpleNamespace(__qualname__=f"forward_{jit.SOURCES[:16]}"))
    jit.Notice().on_start(SimpleNamespace(data={"dispatcher": kernel}))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_told_once_that_kernels_are_compiled(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)

    def others(x):
        return x + 1

    def ours(x):
        return x + 1

    monkeypatch.setattr(event, "_registered", defaultdict(list))
    event.register("numba:compile", jit.Notice())
    njit(others)(1)
    assert capsys.readouterr().err == ""
    ours.__qualname__ += f"_{jit.SOURCES[:16]}"
    for argument in (1, 1.0):
        njit(ours)(argument)
    assert capsys.readouterr().err.count("Compiling") == is_terminal
