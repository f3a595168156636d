"""A small run of the fuzzing benchmark, and that it would notice."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import eulerscan as es

FUZZ = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
pytestmark = pytest.mark.skipif(not FUZZ.exists(), reason="benchmarks are not there")


@pytest.fixture
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", FUZZ)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutated_files_and_random_complexes(tmp_path):
    command = [sys.executable, str(FUZZ), "--files", "330", "--complexes", "60", "--seed", "5", "--keep", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert '{"seed": 5, "files": 330, "complexes": 60, "failures": 0}' in result.stdout


def test_a_case_depends_on_its_number_alone(fuzz):
    originals = fuzz.valid_files()
    assert fuzz.mutated(3, 70, originals) == fuzz.mutated(3, 70, originals)
    assert len({fuzz.mutated(3, i, originals)[1] for i in range(0, 34 * 20, 34)}) > 15
    assert {Path(name).suffix.replace(".jpeg", ".jpg") for name in originals} >= {*es.io.READABLE} - {".jpeg", ".tif"}


def spin(path):
    while True:
        pass


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (lambda path: {}["key"], "KeyError: 'key'"),
        (spin, "takes longer than 0.1 s"),
        (lambda path: es.Complex(torch.zeros(0, 2)), "the shape has no points"),
        (lambda path: (_ for _ in ()).throw(es.io.ReadError("elsewhere.ply", "is bad.")), "the error does not name the file"),
    ],
)
def test_readers_that_fail_are_found_and_their_files_kept(fuzz, reader, reason, tmp_path, monkeypatch):
    read, calls = es.read, iter(range(10**6))
    count = len(fuzz.valid_files())
    monkeypatch.setattr(fuzz.es, "read", lambda path: read(path) if next(calls) < count else reader(path))
    rows, failures = fuzz.fuzz_files(range(40, 42), 3, tmp_path, fuzz.Limits(0.1, 500))
    assert rows[-1][:5] == ["all", 2, 0, 0, 2]
    assert all(reason in failure for failure in failures)
    assert "--seed 3 --case file:40: " in failures[0]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_kernel_that_rounds_is_found(fuzz, monkeypatch):
    ect = es.ect
    monkeypatch.setattr(fuzz.es, "ect", lambda *a, **b: ect(*a, **b) * (1 + 1e-5))
    _, failures = fuzz.fuzz_complexes(range(20), 3)
    assert len(failures) > 10
    assert "cpu transform is" in failures[0]
