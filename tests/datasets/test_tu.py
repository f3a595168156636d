import hashlib
import re
import zipfile

import pytest
import torch

import eulerscan as es
from eulerscan import datasets
from eulerscan.datasets import tu

pytest.importorskip("torch_geometric")


@pytest.mark.parametrize(
    ("name", "single", "edgeless", "num_points", "num_edges"),
    [("letter-low", 1, 7, 10522, 7046), ("letter-med", 4, 9, None, None), ("letter-high", 8, 9, 10507, 10125)],
)
def test_letters_are_as_their_source_says(mirror, name, single, edgeless, num_points, num_edges):
    dataset = datasets.load(name)
    vertices, edges = dataset.shapes.offsets.diff(dim=1)
    assert torch.bincount(dataset.labels).tolist() == [150] * 15
    assert (dataset.shapes.dim, dataset.shapes.rows) == (2, (2,))
    assert int((vertices == 1).sum()) == single
    assert int((edges == 0).sum()) == edgeless
    assert {split: len(indices) for split, indices in dataset.splits.items()} == {"train": 1440, "val": 360, "test": 450}
    if num_points:
        assert dataset.shapes.counts == (num_points, num_edges)
    check_edges(dataset)


@pytest.mark.parametrize(
    ("name", "original", "cleaned", "columns"), [("bzr", 405, 276, 56), ("cox2", 467, 237, 38), ("dhfr", 756, 578, 56)]
)
def test_molecules_are_as_their_source_says(mirror, name, original, cleaned, columns):
    whole, few = datasets.load(name), datasets.load(name, cleaned=True)
    assert (len(whole), len(few)) == (original, cleaned)
    assert whole.shapes.dim == few.shapes.dim == 3
    assert whole.classes == few.classes == ("-1", "1")
    check_edges(whole)
    check_edges(few)
    for plain, is_cleaned, width in ((whole, False, columns), (few, True, 38)):
        atoms = datasets.load(name, cleaned=is_cleaned, atoms=True)
        assert atoms.shapes.dim == width
        assert torch.equal(atoms.shapes.points[:, :3], plain.shapes.points)
        kinds = atoms.shapes.points[:, 3:]
        assert (kinds.sum(dim=1) == 1).all()
        assert set(kinds.argmax(dim=1).add(1).tolist()) <= {1, 6, 7, 8, 9, 15, 16, 17, 35, 53}  # H C N O F P S Cl Br I
        assert torch.equal(atoms.shapes.packed.simplices, plain.shapes.packed.simplices)
    scaled = datasets.load(name, cleaned=True, atoms=True, unit_ball=True).shapes.points
    torch.testing.assert_close(scaled, torch.cat([few.shapes.normalized("vertices").points, kinds], dim=1))
    planes = datasets.load(name, cleaned=True, atoms=True, planes=True).shapes.points
    assert torch.equal(planes[:, 3:], kinds)
    both = datasets.load(name, cleaned=True, atoms=True, unit_ball=True, planes=True).shapes.points
    assert torch.equal(both, torch.cat([scaled[:, :3], planes], dim=1))
    squares = (few.shapes.points - few.shapes[0].points.mean(dim=0))[: len(few.shapes[0].points)].square().sum(dim=1)
    torch.testing.assert_close((5 * planes[: len(squares), :3]).square().sum(dim=1), squares, rtol=1e-4, atol=1e-4)


def test_distances_from_principal_planes_are_invariant_under_rotation_and_reflection(rng):
    corners = torch.cartesian_prod(*(torch.tensor([-size, size]) for size in (1.0, 2.0, 3.0)))
    rotation, _ = torch.linalg.qr(torch.tensor(rng.normal(size=(3, 3)), dtype=torch.float32))
    boxes = es.collate([es.Complex(corners.flip(1) + 7), es.Complex(corners @ rotation), es.Complex(-corners @ rotation - 5)])
    torch.testing.assert_close(tu._from_planes(boxes), corners.abs().repeat(3, 1), rtol=1e-5, atol=1e-5)


def check_edges(dataset):
    """Every edge once, and both directions in the file."""
    (edges,) = dataset.shapes.simplices
    assert (edges[0] < edges[1]).all()
    assert torch.unique(edges, dim=1).shape == edges.shape


@pytest.mark.parametrize("name", ["letter-med", "bzr"])
def test_graphs_are_those_of_torch_geometric(mirror, name, tmp_path):
    """Read here with nothing but its lines."""
    import zipfile

    stem = {"letter-med": "Letter-med", "bzr": "BZR"}[name]
    with zipfile.ZipFile(mirror / "TUDataset" / f"{stem}.zip") as archive:
        lines = {part: archive.read(f"{stem}//{stem}_{part}.txt").decode().split("\n") for part in ("A", "graph_labels")}
    directed = {tuple(int(number) - 1 for number in line.split(",")) for line in lines["A"] if line.strip()}
    dataset = datasets.load(name)
    assert all((b, a) in directed for a, b in directed)
    assert {tuple(edge) for edge in dataset.shapes.simplices[0].T.tolist()} == {(a, b) for a, b in directed if a < b}
    labels = [int(line) for line in lines["graph_labels"] if line.strip()]
    assert dataset.labels.tolist() == [sorted(set(labels)).index(label) for label in labels]


def test_a_seed_draws_another_split(mirror):
    one, other = datasets.load("letter-low", seed=0), datasets.load("letter-low", seed=1)
    assert not torch.equal(one.splits["test"], other.splits["test"])
    assert torch.equal(one.shapes.points, other.shapes.points)


def test_urls_are_those_of_torch_geometric():
    from torch_geometric.datasets import TUDataset

    assert (TUDataset.url, TUDataset.cleaned_url) == (tu.ORIGINAL, tu.CLEANED)


@pytest.mark.parametrize("name", ["letter-low", "letter-med", "letter-high"])
def test_letters_have_the_names_that_their_archive_gives_them(name, mirror):
    stem = name.capitalize()
    with zipfile.ZipFile(mirror / "TUDataset" / f"{stem}.zip") as archive:
        member = next(info for info in archive.infolist() if info.filename.endswith("label_readme.txt"))
        names = re.findall(r"^\s*\d+\s+([A-Z])\s*$", archive.read(member).decode(), re.MULTILINE)
    assert datasets.load(name).classes == tuple(names)
    assert len(set(names)) == 15


@pytest.mark.parametrize("stem", ["Letter-low", "Letter-med", "Letter-high", "BZR", "COX2", "DHFR"])
def test_every_archive_has_the_checksum_of_the_original(mirror, stem):
    for cleaned in (False, True)[: 2 if stem.isupper() else 1]:
        source = tu.source(stem, cleaned=cleaned)
        assert hashlib.md5((mirror / source.path).read_bytes()).hexdigest() == source.md5
