"""The package ``ect``: its own tests pass on eulerscan, and its numbers equal ours.

It is installed with the dependency group ``test``; ``make build/peers/ect`` brings its tests.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import eulerscan as es

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers"
ADAPTERS = Path(__file__).parent / "adapters"
FILES = ("test_ect.py", "test_dect.py", "test_ect_result.py", "test_directions.py", "test_embed_complex.py")
ELSEWHERE = {
    "test_smooth_transform": "their SECT, which lacks the width of steps",
}

ect = pytest.importorskip("ect", reason="the package ect is not installed")


@pytest.mark.skipif(not (PEERS / "ect" / "tests").exists(), reason="the tests of ect are not there: make build/peers/ect")
def test_its_tests_of_numbers_pass_on_eulerscan(tmp_path):
    without = " and ".join(f"not {name}" for name in ELSEWHERE)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "ect_by_eulerscan"]
    command += ["-k", without]
    environment = {**os.environ, "PYTHONPATH": str(ADAPTERS), "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
    files = [str(PEERS / "ect" / "tests" / name) for name in FILES]
    result = subprocess.run(
        [*command, f"--rootdir={tmp_path}", *files], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert int(result.stdout.split(" passed")[0].split()[-1]) >= 50


def embedded(dim, *, seed):
    """Random points with edges, triangles, squares and a solid."""
    rng = np.random.default_rng(seed)
    complex = ect.EmbeddedComplex()
    complex.add_nodes_from([(f"v{i}", rng.normal(size=dim)) for i in range(12)])
    names = list(complex.nodes)
    for _ in range(20):
        complex.add_edge(*rng.choice(names, 2, replace=False))
    for rows, cell_dim, count in ((3, 2, 6), (4, 2, 5), (5, 2, 2), (4, 3, 3), (8, 3, 2)):
        for _ in range(count):
            complex.add_cell(list(rng.choice(names, rows, replace=False)), dim=cell_dim)
    return complex


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_transforms_of_cell_complexes_are_equal(dim, seed):
    theirs = embedded(dim, seed=seed)
    directions = es.directions.random(9, dim, torch.Generator().manual_seed(seed), dtype=torch.float64)
    thresholds = np.linspace(-4, 4, 40)
    expected = ect.ECT(directions=ect.Directions.from_vectors(directions.numpy()), thresholds=thresholds).calculate(theirs)
    ours = es.convert.from_networkx(theirs, theirs.position_dict, dtype=torch.float64)
    assert torch.equal(es.ect(ours, directions, torch.tensor(thresholds))[0], torch.tensor(np.asarray(expected)).double())
    assert set(zip(ours.dims, ours.rows, strict=True)) == {(1, 2), (2, 3), (2, 4), (2, 5), (3, 4), (3, 8)}


def test_no_cell_is_lost_or_counted_twice():
    theirs = embedded(2, seed=0)
    before = es.convert.from_networkx(theirs, theirs.position_dict)
    theirs.add_cell(list(theirs.cells[2][0]) and [theirs.node_list[i] for i in theirs.cells[2][0]][::-1], dim=2)  # again
    assert es.convert.from_networkx(theirs, theirs.position_dict).counts == before.counts
    assert before.counts[1:] == (theirs.number_of_edges(), 6, 5, 2, 3, 2)
