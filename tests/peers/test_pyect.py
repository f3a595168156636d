"""The package ``pyect``: its own tests pass on eulerscan, and its numbers equal ours.

``make build/peers/pyect`` installs it, with its tests, without its dependencies.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import eulerscan as es

PEERS = Path(__file__).resolve().parents[2] / "build" / "peers"
ADAPTERS = Path(__file__).parent / "adapters"
ELSEWHERE = {  # not about numbers
    "TorchScript": "torch.jit.script",
    "TestComplexValidation": "the wording of errors of their container",
    "simplex_weight": "a callback of their converter",
    "simplex_tree_conversion": "options of their converter, on a stand-in of gudhi",
    "passes_point_weights": "arguments that their converter hands on",
}

pytestmark = pytest.mark.skipif(not (PEERS / "pyect").exists(), reason="pyect is not installed: make build/peers/pyect")


def theirs(name):
    """One module of the package: importing all of it needs torchvision."""
    spec = importlib.util.spec_from_file_location(f"their_{name}", PEERS / "pyect" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_tests_of_numbers_pass_on_eulerscan(tmp_path):
    without = " and ".join(f"not {name}" for name in ELSEWHERE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "-k", without]
    environment = {**os.environ, "PYTHONPATH": str(ADAPTERS), "PYTHONDONTWRITEBYTECODE": "1"}
    folder = PEERS / "tests"
    result = subprocess.run(
        [*command, f"--rootdir={tmp_path}", str(folder)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert int(result.stdout.split(" passed")[0].split()[-1]) >= 130


def dyadic(*shape, seed=0, steps=64):
    """Multiples of 1 / 64: no arithmetic below rounds."""
    return torch.randint(0, steps + 1, shape, generator=torch.Generator().manual_seed(seed)) / steps


@pytest.mark.parametrize("shape", [(7, 9), (1, 5), (40, 30), (4, 5, 6)])
def test_curves_of_images_are_equal(shape):
    image = dyadic(*shape)
    module = theirs("image_ecf")
    peer = (module.Image_ECF_2D if len(shape) == 2 else module.Image_ECF_3D)(65)
    ours = es.ecc(*es.convert.filtration_from_image(image, pixels="vertices"), torch.linspace(0, 1, 65))
    assert torch.equal(ours[0, 0].int(), peer(image).int())


def test_curves_of_lower_star_filtrations_are_equal():
    values = torch.cat([2 * dyadic(30, 5) - 1, torch.ones(1, 5)])
    graph = torch.randint(0, 31, (2, 60), generator=torch.Generator().manual_seed(1))
    edges = graph[:, graph[0] != graph[1]]
    data = [(values, dyadic(31, seed=2)), (edges.T, dyadic(edges.shape[1], seed=3))]
    shape = es.Complex(torch.zeros(31, 1), [edges], weights=[data[0][1], data[1][1]])
    assert torch.equal(es.ecc(shape, values, torch.linspace(-1, 1, 65))[0], theirs("wecfs").compute_wecfs(data, 65))


def test_curves_of_any_filtration_are_equal():
    values = [dyadic(12, 3), dyadic(20, 3, seed=1) + 1, dyadic(9, 3, seed=2) + 2]
    values[0][0], values[2][0] = 0.0, 3.0
    peer = theirs("general_filtrations").compute_wecfs_general([(level, torch.ones(len(level))) for level in values], 193)
    generator = torch.Generator().manual_seed(0)
    simplices = [
        torch.stack([torch.randperm(12, generator=generator)[:k] for _ in range(n)], dim=1) for k, n in ((2, 20), (3, 9))
    ]
    shape = es.Complex(torch.zeros(12, 1), simplices)
    assert torch.equal(es.ecc(shape, values, torch.linspace(0, 3, 193))[0], peer)


def test_transforms_are_equal():
    points = torch.cat([2 * dyadic(40, 2) - 1, torch.tensor([[1.0, 0.0]])])
    points = points[torch.linalg.vector_norm(points, dim=1) <= 1]
    shape = es.convert.delaunay(points, merge=True)
    directions = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    data = [(level, torch.ones(len(level))) for level in (shape.points, *(columns.T for columns in shape.simplices))]
    assert torch.equal(es.ect(shape, directions, torch.linspace(-1, 1, 129))[0], theirs("wect").WECT(directions, 129)(data))
