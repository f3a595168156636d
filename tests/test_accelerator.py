"""The public API on a device that is not the CPU: it agrees with the CPU, and no layer makes the host wait."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eulerscan.kernels import dispatch

SCRIPT = Path(__file__).with_name("accelerated.py")
KERNELS = ["portable", *(["triton"] if dispatch.has_triton() else [])]
COUNTS = "_copy_from at kernels/layout.py"  # of edges and triangles, which the portable kernel must know


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_public_api_on_another_device(kernel):
    """In one process, since the pretend device would stay, and in one test, since two workers would both start it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}
    command = [sys.executable, str(SCRIPT), kernel]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    rows = {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert len(rows) > 30
    errors = [row for row in rows.values() if "error" in row]
    assert not errors
    different = [row["name"] for row in rows.values() if not row["agrees"] or row["device"] != "pretend"]
    assert not different

    modules = [row for name, row in rows.items() if name.startswith("module: ")]
    assert len(modules) > 10
    waiting = {row["name"]: [w for w in row["waits"] if kernel == "triton" or COUNTS not in w] for row in modules}
    assert not {name: waits for name, waits in waiting.items() if waits}

    # Training waits for its batches, which are copied to the device, and once in each of the two epochs.
    (wait,) = [wait for wait in rows["training"]["waits"] if "_copy_from" not in wait]
    assert wait.startswith("2 x _local_scalar_dense at training/loop.py")

    # The control: validation reads values, and so does the search for jumps.
    assert rows["Complex"]["waits"]
    assert rows["critical"]["waits"]
