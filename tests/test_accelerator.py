"""The public API on a device that is not the CPU: it agrees with the CPU, and no layer makes the host wait."""

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from eulerscan.kernels import dispatch

SCRIPT = Path(__file__).with_name("accelerated.py")
KERNELS = ["portable", *(["triton"] if dispatch.has_triton() else [])]


def names(table: str) -> list[str]:
    """The cases, read without an import: the pretend device would stay."""
    for node in ast.parse(SCRIPT.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table:
            return [ast.literal_eval(key) for key in node.value.keys]
    raise AssertionError(table)


@cache
def rows(kernel: str) -> dict[str, dict]:
    """All cases with one kernel, in one process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}
    result = subprocess.run([sys.executable, str(SCRIPT), kernel], capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    return {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", names("CALLS"))
def test_a_call_on_another_device_agrees_with_the_cpu(kernel, name):
    row = rows(kernel)[name]
    assert "error" not in row, row["error"]
    assert row["agrees"]
    assert row["device"] == "pretend"


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", names("MODULES"))
def test_no_module_makes_the_host_wait_for_the_device(kernel, name):
    row = rows(kernel)[f"module: {name}"]
    assert "error" not in row, row["error"]
    assert row["agrees"]
    assert row["device"] == "pretend"
    waits = row["waits"]
    if kernel == "portable":  # it must know how many edges and triangles there are
        waits = [wait for wait in waits if "_copy_from at kernels/layout.py" not in wait]
    assert not waits


@pytest.mark.parametrize("kernel", KERNELS)
def test_training_waits_for_copies_to_the_device_and_once_an_epoch(kernel):
    waits = [wait for wait in rows(kernel)["training"]["waits"] if "_copy_from" not in wait]
    assert len(waits) == 1
    assert waits[0].startswith("2 x _local_scalar_dense at training/loop.py")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_call_that_waits_is_noticed(kernel):
    """The control: validation reads values, and so does the search for jumps."""
    assert rows(kernel)["Complex"]["waits"]
    assert rows(kernel)["critical"]["waits"]
