"""Superpixels and ModelNet40."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eulerscan import datasets
from eulerscan.datasets import superpixels


def by_hand(points: list[list[float]], count: int) -> set[tuple[int, int]]:
    edges = set()
    for i, p in enumerate(points):
        distance = [(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)), j) for j, q in enumerate(points) if j != i]
        edges |= {tuple(sorted((i, j))) for _, j in sorted(distance)[:count]}
    return edges


@given(st.lists(st.integers(0, 12), min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 2**31))
def test_neighbors_are_the_nearest_and_ties_are_broken_by_index(sizes, count, seed):
    positions = torch.randint(0, 4, (sum(sizes), 2), generator=torch.Generator().manual_seed(seed)).float()
    edges = superpixels.nearest_neighbors(positions, torch.tensor(sizes), count=count)
    expected, start = set(), 0
    for size in sizes:
        cloud = positions[start : start + size].tolist()
        expected |= {(start + a, start + b) for a, b in by_hand(cloud, count)}
        start += size
    assert sorted(expected) == sorted(map(tuple, edges.T.tolist()))


def test_superpixels_are_as_their_source_says(mirror, monkeypatch, fresh):
    monkeypatch.setenv("EULERSCAN_MIRROR", str(mirror))
    # The whole set without its edges, which take longer.
    monkeypatch.setattr(superpixels, "nearest_neighbors", lambda positions, sizes: torch.empty(2, 0, dtype=torch.int64))
    dataset = superpixels.superpixels()
    sizes = dataset.shapes.offsets[0].diff().double()
    assert round(float(sizes.mean()), 2) == round((4233806 + 705608) / 70000, 2)
    assert round(float(sizes[:60000].mean()), 1) == 70.6
    assert sizes.max() <= 75
    assert dataset.shapes.dim == 3
    assert 0 <= dataset.shapes.points.min() <= dataset.shapes.points.max() <= 1
    assert {name: len(indices) for name, indices in dataset.splits.items()} == {"train": 55000, "val": 5000, "test": 10000}
    assert dataset.labels[:3].tolist() == [5, 0, 4]
    assert torch.bincount(dataset.labels[60000:]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def one_edge_each(positions, sizes):
    """An edge in the middle of each graph."""
    middle = sizes.cumsum(dim=0) - sizes // 2
    return torch.stack([middle - 1, middle])


def test_intensities_of_superpixels_can_be_weights(mirror, monkeypatch, fresh):
    monkeypatch.setenv("EULERSCAN_MIRROR", str(mirror))
    monkeypatch.setattr(superpixels, "nearest_neighbors", one_edge_each)
    shapes, spatial = superpixels.superpixels(weighted=True).shapes, superpixels.superpixels().shapes
    of_vertices, of_edges = shapes.weights
    torch.testing.assert_close(torch.cat([shapes.points, of_vertices[:, None]], dim=1), spatial.points)
    torch.testing.assert_close(of_edges, of_vertices[shapes.simplices[0]].min(dim=0).values)
    assert of_edges.unique().numel() > 2


def test_superpixels_are_joined_to_the_eight_nearest(mirror, monkeypatch):
    positions, _, sizes, _ = superpixels._read("test.npz", 10000)
    edges = superpixels.nearest_neighbors(positions[: int(sizes[:20].sum())], sizes[:20])
    start = 0
    for size in sizes[:20].tolist():
        expected = by_hand(positions[start : start + size].tolist(), 8)
        own = edges[:, (edges[0] >= start) & (edges[0] < start + size)] - start
        assert {tuple(edge) for edge in own.T.tolist()} == expected
        start += size


def test_modelnet_is_as_its_source_says(mirror):
    dataset = datasets.load("modelnet40", num_points=100)
    assert len(dataset.classes) == 40
    assert {name: len(indices) for name, indices in dataset.splits.items()} == {"train": 7873, "val": 1970, "test": 2468}
    assert int(dataset.splits["test"][0]) == 9843
    assert dataset.classes[int(dataset.labels[0])] == "airplane"
    assert dataset.shapes.offsets[0].diff().unique().tolist() == [100]
    assert torch.linalg.vector_norm(dataset.shapes.points, dim=1).max() <= 1.0001
    fewer = datasets.load("modelnet40", num_points=7)
    assert torch.equal(fewer.shapes.points.view(-1, 7, 3), dataset.shapes.points.view(-1, 100, 3)[:, :7])


@pytest.mark.parametrize("kind", ["lacking", "wrong", "garbage"])
@pytest.mark.parametrize("name", ["mnist-superpixels", "modelnet40"])
def test_a_damaged_file_of_arrays_is_named(name, kind, fresh, tmp_path, monkeypatch):
    import numpy as np

    file = {"mnist-superpixels": "mnist_superpixels/train.npz", "modelnet40": "modelnet40/train_1024.npz"}[name]
    path = tmp_path / "mirror" / file
    path.parent.mkdir(parents=True)
    keys = ("pos", "intensity", "offset", "y", "xyz_i16", "class_names")
    if kind == "garbage":
        path.write_bytes(b"garbage")
    else:
        np.savez(path, **{key: np.zeros((3, 2)) for key in keys if kind == "wrong" or key != "y"})
    monkeypatch.setenv("EULERSCAN_MIRROR", str(tmp_path / "mirror"))
    with pytest.raises(ValueError, match=f"{file} is damaged: "):
        datasets.load(name)
    assert not (fresh / "raw" / file).exists()
