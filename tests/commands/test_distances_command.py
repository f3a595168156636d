import csv
from itertools import pairwise

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

import eulerscan as es
from eulerscan.plot.distances import draw_distances


@pytest.fixture
def folder(tmp_path, rng):
    """Rings and paths in the plane; the last ring is the first one turned by a quarter."""
    place = tmp_path / "shapes"
    place.mkdir()
    angles = np.arange(12) * np.pi / 6
    for i in range(4):
        points = np.stack([np.cos(angles), (1 + i / 4) * np.sin(angles)], axis=1) * (1 + 0.1 * rng.random((12, 1)))
        edges = np.stack([np.arange(12), (np.arange(12) + 1) % 12])
        np.savez(place / f"path-{i}.npz", points=points, edges=edges[:, :-1])
        np.savez(place / f"ring-{i}.npz", points=points, edges=edges)
        if i == 0:
            np.savez(place / "ring-turned.npz", points=points @ np.array([[0.0, 1], [-1, 0]]), edges=edges)
    return place


def matrix(path):
    rows = list(csv.reader(path.read_text().splitlines()))
    assert rows[0][0] == "name"
    assert rows[0][1:] == [row[0] for row in rows[1:]]
    return rows[0][1:], np.array([row[1:] for row in rows[1:]], dtype=np.float64)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_distances_equal_brute_force(run, folder, p, tmp_path):
    run("distances", folder, "-o", tmp_path / "d.csv", "--p", p, "--num-directions", 12, "--num-thresholds", 20)
    names, found = matrix(tmp_path / "d.csv")
    assert names == sorted(path.name for path in folder.iterdir())
    shapes = es.collate([es.read(folder / name, dtype=torch.float64) for name in names]).unit_ball()
    heights = es.thresholds(20, dtype=torch.float64)
    curves = es.ect(shapes, es.directions.circle(12, dtype=torch.float64), heights).numpy()[..., :-1]
    gaps = np.abs(curves[:, None] - curves[None])
    step = float(heights[1] - heights[0])
    expected = gaps.max(axis=(2, 3)) if np.isinf(p) else ((gaps**p).mean(axis=2).sum(axis=2) * step) ** (1 / p)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert (found == found.T).all()


def test_turning_a_shape_changes_no_distance_if_one_wants(run, folder, tmp_path):
    run("distances", folder, "-o", tmp_path / "plain.csv")
    run("distances", folder, "-o", tmp_path / "turned.csv", "--turned")
    names, plain = matrix(tmp_path / "plain.csv")
    _, turned = matrix(tmp_path / "turned.csv")
    one, other = names.index("ring-0.npz"), names.index("ring-turned.npz")
    assert turned[one, other] < 0.1 * plain[one, other]
    assert (turned <= plain + 1e-9).all()
    assert (turned == turned.T).all()


def test_shapes_in_space_are_turned_themselves(run, tmp_path):
    box = trimesh.creation.box(extents=(1.0, 1.4, 2.0))
    box.export(tmp_path / "a.ply")
    box.apply_transform(trimesh.transformations.rotation_matrix(0.7, [1, 2, 3]))
    box.export(tmp_path / "b.ply")
    files = [tmp_path / "a.ply", tmp_path / "b.ply"]
    options = ["--num-directions", 12, "--num-thresholds", 12]
    run("distances", *files, "-o", tmp_path / "plain.csv", *options)
    run("distances", *files, "-o", tmp_path / "turned.csv", "--turned", *options)
    assert matrix(tmp_path / "turned.csv")[1][0, 1] < 0.5 * matrix(tmp_path / "plain.csv")[1][0, 1]
    run("transform", *files, "-o", tmp_path / "t.npz")
    _, err = run("distances", tmp_path / "t.npz", "-o", tmp_path / "d.csv", "--turned", status=2)
    assert "--turned needs the shapes themselves" in err


def test_transforms_that_are_made_need_not_be_made_again(run, folder, tmp_path):
    run("distances", folder, "-o", tmp_path / "files.csv")
    for made, options in (("t.npz", []), ("t.csv", []), ("t.parquet", []), ("parts", ["--shards", 2, "--processes", 1])):
        run("transform", folder, "-o", tmp_path / made, *options)
        run("distances", tmp_path / made, "-o", tmp_path / "made.csv", "--overwrite")
        assert (tmp_path / "made.csv").read_bytes() == (tmp_path / "files.csv").read_bytes()
    _, err = run("distances", tmp_path / "t.npz", "-o", tmp_path / "d.csv", "--num-directions", 8, status=2)
    assert "holds transforms already" in err
    _, err = run("distances", folder / "ring-0.npz", "-o", tmp_path / "d.csv", status=2)
    assert "ring-0.npz is no file of `eulerscan transform`" in err


def test_clouds_are_compared_whatever_their_sizes(run, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "clouds").mkdir()
    for name, count, length in (("long-few", 100, 4), ("long-many", 400, 4), ("round", 100, 1)):
        np.savetxt(tmp_path / "clouds" / f"{name}.csv", rng.normal(size=(count, 3)) * [1, 1, length], delimiter=",")
    _, err = run("distances", tmp_path / "clouds", "-o", tmp_path / "plain.csv")
    assert "curves end at 100 to 400" in err
    _, err = run("distances", tmp_path / "clouds", "-o", tmp_path / "divided.csv", "--divide-by", "vertices")
    assert err == ""
    plain, divided = (
        np.loadtxt(tmp_path / f, delimiter=",", skiprows=1, usecols=(1, 2, 3)) for f in ("plain.csv", "divided.csv")
    )
    assert plain[0, 1] > plain[0, 2]  # told by number
    assert divided[0, 1] < divided[0, 2]  # told by shape


def test_what_a_run_could_not_read_is_reported_again(run, folder, tmp_path):
    (folder / "bad.csv").write_text("words\n")
    run("transform", folder, "-o", tmp_path / "out", "--shards", 2, "--processes", 1, status=1)
    _, err = run("distances", tmp_path / "out", "-o", tmp_path / "d.csv", status=1)
    assert "skipped bad.csv" in err
    (tmp_path / "out" / "parts" / "part-00001.parquet").unlink()
    _, err = run("distances", tmp_path / "out", "-o", tmp_path / "e.csv", status=2)
    assert "is not finished: 1 of 2 parts are there" in err


def test_matrix_and_picture_are_no_shapes_of_the_next_run(run, folder):
    arguments = [folder, "-o", folder / "d.csv", "--plot", folder / "d.png"]
    run("distances", *arguments)
    out, err = run("distances", *arguments, "--overwrite")
    assert "9 x 9 distances" in out
    assert not err


def test_what_cannot_be_turned_is_said_before_any_transform(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(es.bulk.Settings, "apply", lambda *a: pytest.fail("a shape was transformed"))
    _, err = run("distances", folder, "-o", tmp_path / "d.csv", "--turned", "--variant", "sect", status=2)
    assert "leave out --variant" in err


def test_the_picture_puts_similar_shapes_side_by_side(run, folder, tmp_path):
    out, _ = run("distances", folder, "-o", tmp_path / "d.csv", "--plot", tmp_path / "d.png")
    assert "9 x 9 distances; picture in" in out
    with Image.open(tmp_path / "d.png") as picture:
        assert min(picture.size) > 600
    names, found = matrix(tmp_path / "d.csv")
    figure = draw_distances(torch.tensor(found), names)
    tree, image = figure.axes[:2]
    assert "distance" in tree.get_xlabel()
    assert (image.get_xlabel(), image.get_ylabel()) == ("shape", "shape")
    labels = [label.get_text() for label in image.get_xticklabels()]
    assert labels == [label.get_text() for label in image.get_yticklabels()]
    order = [names.index(label) for label in labels]
    np.testing.assert_array_equal(image.images[0].get_array(), found[np.ix_(order, order)])
    kinds = [label[:4] for label in labels]
    assert sum(a != b for a, b in pairwise(kinds)) == 1


def test_one_shape_and_many_shapes_can_be_drawn():
    draw_distances(torch.zeros(1, 1), ["alone"]).draw_without_rendering()
    points = torch.arange(100.0)
    figure = draw_distances((points[:, None] - points).abs(), [f"shape {i}" for i in range(100)])
    figure.draw_without_rendering()
    assert figure.axes[1].get_xlabel() == "shape, in the order of the tree"


def test_slips_are_named(run, folder, tmp_path):
    for arguments, text in (
        (["-o", tmp_path / "d.txt"], "--output must end with .csv"),
        (["-o", tmp_path / "d.csv", "--plot", tmp_path / "d.doc"], "--plot must end with one of .png"),
        (["-o", tmp_path / "d.csv", "--p", 0.5], "p must be a number of at least 1"),
        (["-o", tmp_path / "d.csv", "--turned", "--variant", "sect"], "leave out --variant"),
    ):
        _, err = run("distances", folder, *arguments, status=2)
        assert text in err
    assert list(tmp_path.iterdir()) == [folder]
    (folder / "bad.csv").write_text("words\n")
    _, err = run("distances", folder, "-o", tmp_path / "d.csv", status=1)
    assert "skipped bad.csv" in err
    assert len(matrix(tmp_path / "d.csv")[0]) == 9
