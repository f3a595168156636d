"""Every row of the tables of docs/guides/migrating.md that has a peer on PyPI, run on both sides."""

import importlib
import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import eulerscan as es

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
HAS_PYECT = (PEERS / "pyect").exists()
GENERATOR = torch.Generator().manual_seed(0)
POINTS = torch.randn(7, 2, generator=GENERATOR, dtype=torch.float64)
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]])
TRIANGLES = torch.tensor([[0], [1], [2]])
CELLS = torch.tensor([[2], [3], [4], [5]])
DIRECTIONS = es.directions.circle(9, dtype=torch.float64)
THRESHOLDS = es.thresholds(23, 3.1, dtype=torch.float64)


def rows(section: str) -> list[str]:
    """The first cells of the table in the section of a peer."""
    text = (ROOT / "docs" / "guides" / "migrating.md").read_text("utf-8").split(f"## From `{section}`")[1].split("\n## ")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")][1:]


@pytest.fixture(scope="module")
def ect():
    return pytest.importorskip("ect", reason="the package ect is not installed")


@pytest.fixture
def pyect(monkeypatch):
    """The package, whose import needs torchvision for a function that is not used here."""
    if not HAS_PYECT:
        pytest.skip("pyect is not installed: make build/peers/pyect")
    if importlib.util.find_spec("torchvision") is None:
        vision, transforms = ModuleType("torchvision"), ModuleType("torchvision.transforms")
        vision.transforms = transforms
        monkeypatch.setitem(sys.modules, "torchvision", vision)
        monkeypatch.setitem(sys.modules, "torchvision.transforms", transforms)
    monkeypatch.syspath_prepend(str(PEERS))
    package = importlib.import_module("pyect")
    image, mesh = (importlib.import_module(f"pyect.preprocessing.{name}_processing") for name in ("image", "mesh"))
    yield SimpleNamespace(**{**vars(package), **vars(image), **vars(mesh)})
    for name in [name for name in sys.modules if name.split(".")[0] == "pyect"]:
        del sys.modules[name]


def embedded(ect, *, cells=True):
    theirs = ect.EmbeddedComplex()
    theirs.add_nodes_from(list(enumerate(POINTS.numpy())))
    theirs.add_edges_from(EDGES.T.tolist())
    theirs.add_edge(0, 2)
    theirs.add_face([0, 1, 2])
    if cells:
        theirs.add_cell([2, 3, 4, 5], dim=2)
    return theirs


def ours(*, cells=True):
    edges = torch.cat([EDGES, torch.tensor([[0], [2]])], dim=1)
    levels = [edges, TRIANGLES, *([CELLS] if cells else [])]
    return es.Complex(POINTS, levels, dims=(1, 2, 2)[: len(levels)])


def calculated(ect, theirs):
    directions = ect.Directions.from_vectors(DIRECTIONS.numpy())
    return ect.ECT(directions=directions, thresholds=THRESHOLDS.numpy()).calculate(theirs)


def same(theirs, found):
    torch.testing.assert_close(torch.as_tensor(np.asarray(theirs)).double(), found.double(), rtol=1e-5, atol=1e-5)


def ect_building(ect):
    same(calculated(ect, embedded(ect, cells=False)), es.ect(ours(cells=False), DIRECTIONS, THRESHOLDS)[0])


def ect_existing(ect):
    graph = embedded(ect)
    shape = es.convert.from_networkx(graph, positions=graph.position_dict, dtype=torch.float64)
    assert shape.counts == (7, 7, 1, 1)
    same(calculated(ect, graph), es.ect(shape, DIRECTIONS, THRESHOLDS)[0])


def ect_cells(ect):
    same(calculated(ect, embedded(ect)), es.ect(ours(), DIRECTIONS, THRESHOLDS)[0])
    # A cell that is not convex, and its two triangles.
    arrow = torch.tensor([[0.0, 0.0], [2.0, 1.0], [0.0, 0.5], [-2.0, 1.0]])
    sides = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    whole = es.Complex(arrow, [sides, torch.tensor([[0], [1], [2], [3]])], dims=(1, 2))
    cut = es.Complex(arrow, [torch.cat([sides, torch.tensor([[0], [2]])], 1), torch.tensor([[0, 0], [1, 2], [2, 3]])])
    up, heights = torch.tensor([[0.0, 1.0]]), es.thresholds(40, 2.0)
    assert not torch.equal(es.ect(whole, up, heights), es.ect(cut, up, heights))
    convex = torch.tensor([[0.0, 0.0], [2.0, 1.0], [0.0, 2.5], [-2.0, 1.0]])
    around, heights = es.directions.circle(16), es.thresholds(40, 3.0)
    assert torch.equal(es.ect(whole.with_points(convex), around, heights), es.ect(cut.with_points(convex), around, heights))


def ect_normalized(ect):
    theirs = embedded(ect)
    theirs.center_coordinates()
    theirs.scale_coordinates(1)
    same(theirs.coord_matrix, ours().normalized("vertices").points)


def ect_directions(ect):
    same(ect.Directions.uniform(8).vectors, es.directions.circle(8))
    assert es.directions.random(5, 3).shape == ect.Directions.random(5, 3).vectors.shape
    same(ect.Directions.from_vectors(DIRECTIONS.numpy()).vectors, DIRECTIONS)


def ect_calculate(ect):
    same(calculated(ect, embedded(ect)), es.ect(ours(), DIRECTIONS, THRESHOLDS)[0])


def ect_grid(ect):
    theirs = ect.ECT(num_dirs=8, num_thresh=20, bound_radius=3.1).calculate(embedded(ect))
    thresholds = es.thresholds(20, 3.1, dtype=torch.float64)
    same(theirs, es.ect(ours(), es.directions.circle(8, dtype=torch.float64), thresholds)[0])


def ect_smooth(ect):
    directions = ect.Directions.from_vectors(DIRECTIONS.numpy())
    theirs = ect.SECT(directions=directions, thresholds=THRESHOLDS.numpy()).calculate(embedded(ect))
    found = es.sect(ours(), DIRECTIONS, THRESHOLDS)[0]
    assert np.asarray(theirs).shape == found.shape  # not their numbers, which lack the width of steps


def ect_dect(ect):
    directions = ect.Directions.from_vectors(DIRECTIONS.numpy())
    theirs = ect.DECT(directions=directions, thresholds=THRESHOLDS.numpy(), scale=10).calculate(embedded(ect))
    found = es.ect(ours(), DIRECTIONS, THRESHOLDS, scale=10.0)[0]
    same(theirs, found - float(ours().euler_characteristic()))


def ect_distance(ect):
    one, other = embedded(ect), embedded(ect, cells=False)
    theirs = calculated(ect, one).dist(calculated(ect, other))
    a, b = (es.ect(shape, DIRECTIONS, THRESHOLDS) for shape in (ours(), ours(cells=False)))
    found = es.analysis.distance(a, b) * math.sqrt(len(DIRECTIONS) * len(THRESHOLDS))
    assert found.item() == pytest.approx(float(theirs))
    assert torch.allclose(es.analysis.distance_matrix(a, b)[0], es.analysis.distance(a, b))


def ect_plots(ect):
    plot = pytest.importorskip("eulerscan.plot", exc_type=ImportError)
    assert callable(plot.plot_transform)
    assert callable(plot.plot_shape)


ECT = [
    ect_building,
    ect_existing,
    ect_cells,
    ect_normalized,
    ect_directions,
    ect_calculate,
    ect_grid,
    ect_smooth,
    ect_dect,
    ect_distance,
    ect_plots,
]


def flat():
    """Triangles in the plane with edges and weights, whose heights are not on a grid."""
    shape = es.convert.delaunay(POINTS.float(), merge=True)
    return shape.with_weights(torch.rand(len(shape.points), generator=torch.Generator().manual_seed(1)))


def their_complex(pyect, shape):
    levels = (shape.points, *(columns.T.long() for columns in shape.simplices))
    return pyect.Complex(*zip(levels, shape.weights, strict=True))


def transforms_agree(pyect, theirs, shape, directions):
    radius = shape.largest_norms().item()
    found = es.ect(shape, normalize(directions), es.thresholds(31, radius))[0]
    same(pyect.WECT(directions, 31)(theirs), found)


def pyect_building(pyect):
    shape = flat()
    again = es.Complex(shape.points, [columns.clone() for columns in shape.simplices], weights=shape.weights)
    transforms_agree(pyect, their_complex(pyect, again), again, es.directions.random(5, 2, torch.Generator().manual_seed(2)))


def pyect_transform(pyect):
    directions = 3 * es.directions.random(5, 2, torch.Generator().manual_seed(2))  # not of unit length
    transforms_agree(pyect, their_complex(pyect, flat()), flat(), directions)


def pyect_directions_2d(pyect):
    same(pyect.sample_directions_2d(12), es.directions.circle(12))


def pyect_directions_3d(pyect):
    same(pyect.sample_directions_3d(40), es.directions.fibonacci(40)[:, [0, 2, 1]])


def write_mesh(folder):
    path = folder / "mesh.off"
    path.write_text("OFF\n4 4 0\n0 0 0\n3 0 0\n0 2 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n", encoding="utf-8")
    return path


def pyect_mesh(pyect, tmp_path):
    theirs, found = pyect.mesh_to_complex(str(write_mesh(tmp_path)), torch.device("cpu")), es.read(tmp_path / "mesh.off")
    assert sorted(theirs.get_coords(0).tolist()) == sorted(found.points.tolist())
    assert tuple(len(weights) for _, weights in theirs.dimensions) == found.counts


def pyect_centered_mesh(pyect, tmp_path):
    theirs = pyect.mesh_to_complex(str(write_mesh(tmp_path)), torch.device("cpu"), centering=True)
    same(
        sorted(theirs.get_coords(0).tolist()),
        torch.tensor(sorted(es.read(tmp_path / "mesh.off").normalized("center").points.tolist())),
    )


def image_with_a_hole():
    image = 0.1 + torch.rand(5, 7, generator=torch.Generator().manual_seed(3))
    image[2, 3] = 0.0
    return image


def recentered(shape, image):
    rows, columns = image.shape
    return shape.with_points(shape.points - torch.tensor([(columns - 1) / 2, (1 - rows) / 2]))


def pyect_freudenthal(pyect):
    image = image_with_a_hole()
    found = recentered(es.convert.from_image(image, weighted=True, pixels="vertices"), image)
    directions = es.directions.random(6, 2, torch.Generator().manual_seed(4))
    transforms_agree(pyect, pyect.weighted_freudenthal(image), found, directions)


def pyect_cubical(pyect):
    image = image_with_a_hole()
    squares = es.convert.filtration_from_image(image, pixels="vertices").shape
    largest = squares.with_weights(image.flatten()).weights
    smallest = squares.with_weights(image.flatten(), extend="min").weights
    weights = [w * (low > 0) for w, low in zip(largest, smallest, strict=True)]
    cubical = es.Complex(squares.points, squares.simplices, dims=squares.dims, weights=weights)
    directions = es.directions.random(6, 2, torch.Generator().manual_seed(4))
    transforms_agree(pyect, pyect.weighted_cubical(image), recentered(cubical, image), directions)


def pyect_center(pyect):
    shape = flat()
    same(their_complex(pyect, shape).center_().get_coords(0), (shape.points - shape.points.mean(dim=0)))


PYECT = [
    pyect_building,
    pyect_transform,
    pyect_directions_2d,
    pyect_directions_3d,
    pyect_mesh,
    pyect_centered_mesh,
    pyect_freudenthal,
    pyect_cubical,
    pyect_center,
]


def test_every_row_has_a_check():
    assert len(rows("ect")) == len(ECT)
    assert len(rows("pyECT")) == len(PYECT)


@pytest.mark.parametrize("check", ECT, ids=lambda check: check.__name__)
def test_a_row_of_ect(check, ect):
    check(ect)


@pytest.mark.parametrize("check", PYECT, ids=lambda check: check.__name__)
def test_a_row_of_pyect(check, pyect, tmp_path):
    check(*([pyect, tmp_path] if "mesh" in check.__name__ else [pyect]))


def test_directions_of_dect_in_the_plane():
    angles = torch.linspace(0, 2 * math.pi, 9)  # clockwise from (0, 1), the first one twice
    dect = torch.stack([angles.sin(), angles.cos()])
    torch.testing.assert_close(es.directions.circle(9 - 1).flip(1), dect.T[:-1])
