"""The Triton kernels compile ahead of time for GPUs that are not here, and take what the committed table says."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="triton is not installed")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_kernels.py"
TABLE = SCRIPT.with_suffix(".csv")
TARGETS = ("sm_75", "sm_80", "sm_90", "gfx90a", "gfx942")


def rows():
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if not row[0].startswith("#")][1:]


def compile_kernels(*options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRITON_INTERPRET": "0"}
    command = [sys.executable, str(SCRIPT), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_the_table_has_every_kernel_for_every_target_without_spills_in_float32():
    kernels = {(target, dtype): {row[2] for row in rows() if row[:2] == [target, dtype]} for target, dtype, *_ in rows()}
    assert {target for target, _ in kernels} == set(TARGETS)
    assert len({frozenset(names) for names in kernels.values()}) == 1
    assert len(kernels["sm_80", "float32"]) > 30
    assert not [row for row in rows() if row[1] == "float32" and int(row[4])]
    assert max(int(row[5]) for row in rows()) <= 48 * 1024


def test_kernels_of_a_mesh_compile_for_all_targets_to_what_the_table_says():
    """`make gpu` compiles the others too."""
    result = compile_kernels("--only", ", mesh", "--dtypes", "float32")
    assert result.returncode == 0, result.stderr
    assert "not compared" not in result.stdout
    assert f"{sum(row[1] == 'float32' and ', mesh' in row[2] for row in rows())} kernels compiled" in result.stdout


def test_a_difference_from_the_table_is_found(tmp_path):
    tampered = tmp_path / "kernels.csv"
    name = "units_of, weighted mesh"
    lines = TABLE.read_text("utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("sm_80,float32") and name in line)
    lines[at] = lines[at].rsplit(",", 3)[0] + ",7,0,0"
    tampered.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = compile_kernels("--only", name, "--targets", "sm_80", "--dtypes", "float32", "--table", tampered)
    assert result.returncode == 1
    assert f"sm_80 float32 {name}" in result.stderr
