"""``eulerscan local``, and pictures of the local transform."""

import csv

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan.cli.main import main
from eulerscan.io import write
from eulerscan.plot.local import draw_local
from eulerscan.testing import known_shapes


@pytest.fixture
def mesh(tmp_path):
    write(known_shapes()["sphere"].complex.to(torch.float32), tmp_path / "mesh.ply")
    return tmp_path / "mesh.ply"


def run(*words) -> int:
    with pytest.raises(SystemExit) as exit:
        main([str(word) for word in words])
    return int(exit.value.code or 0)


def test_a_table_of_the_vertices_and_a_picture(mesh, tmp_path, capsys):
    words = ("--num-directions", "4", "--num-thresholds", "5")
    assert run("local", mesh, "-o", tmp_path / "vertices.csv", "--picture", tmp_path / "mesh.png", *words) == 0
    shape = es.read(mesh)
    rows = list(csv.DictReader((tmp_path / "vertices.csv").read_text("utf-8").splitlines()))
    assert len(rows) == len(shape.points)
    assert [*rows[0]][:5] == ["x", "y", "z", "direction0_height0", "direction0_height1"]
    expected = es.local_ect(shape, es.directions.uniform(4, 3), es.thresholds(5), hops=2)[:, 0]
    table = np.array([[float(cell) for cell in row.values()] for row in rows])
    np.testing.assert_allclose(table[:, 3:], expected.flatten(1), atol=1e-6)
    np.testing.assert_allclose(table[:, :3], shape.points, atol=1e-6)
    assert (tmp_path / "mesh.png").stat().st_size > 5000
    assert "20 numbers each" in capsys.readouterr().out


def test_components_of_a_cloud_in_an_array(tmp_path):
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32))
    output, colored = tmp_path / "vertices.npy", tmp_path / "colored.ply"
    assert run("local", tmp_path / "cloud.npy", "-o", output, "--components", "6", "-p", colored, "--quiet") == 0
    assert np.load(output).shape == (40, 6)
    assert es.read(colored).counts == (40,)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-o", "vertices.xyz"), "--output must end with one of .csv, .npy"),
        (("-o", "v.csv", "--picture", "v.bmp"), "--picture must end with one of"),
        (("-o", "v.csv", "--hops", "0"), "hops must be at least 1, got 0"),
        (("-o", "v.csv", "--hops", "1", "--k", "3"), "one of hops, radius and k"),
        (("-o", "v.csv", "--components", "0"), "--components must be at least 1"),
    ],
)
def test_bad_options_are_named(words, text, mesh, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("local", mesh, *words) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "v.csv").exists()


def test_a_shape_of_one_vertex_has_one_component(tmp_path):
    np.save(tmp_path / "point.npy", np.ones((1, 2)))
    words = ("--components", "3", "--picture", tmp_path / "point.png")
    assert run("local", tmp_path / "point.npy", "-o", tmp_path / "vertices.npy", *words) == 0
    assert np.load(tmp_path / "vertices.npy").tolist() == [[0.0]]
    assert (tmp_path / "point.png").exists()


def test_an_existing_table_is_kept(mesh, tmp_path, capsys):
    (tmp_path / "v.csv").write_text("mine", encoding="utf-8")
    assert run("local", mesh, "-o", tmp_path / "v.csv") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "v.csv").read_text("utf-8") == "mine"


@pytest.mark.parametrize(("name", "components"), [("sphere", 3), ("graph", 3), ("segment", 1), ("point", 1)])
def test_pictures_are_drawn(name, components):
    shape = known_shapes()[name].complex
    grid = (es.directions.uniform(8, shape.dim, dtype=shape.points.dtype), es.thresholds(8, dtype=shape.points.dtype))
    axes = draw_local(shape, es.local_ect(shape, *grid, hops=1)).axes
    assert sum(ax.get_label() == "<colorbar>" for ax in axes) == len(axes) / 2 == components
    with pytest.raises(ValueError, match="a row for each"):
        draw_local(shape, torch.rand(3, 1, 4, 4))


def test_a_shape_far_from_the_origin_has_the_same_descriptors(mesh, tmp_path):
    points = es.read(mesh, dtype=torch.float64)
    far = torch.tensor([500000.0, 4600000.0, 300.0], dtype=torch.float64)
    write(points.with_points(points.points + far), tmp_path / "far.npz")
    for path in (mesh, tmp_path / "far.npz"):
        assert run("local", path, "-o", tmp_path / f"{path.stem}.csv", "--num-directions", "4", "--quiet") == 0
    near, distant = (np.loadtxt(tmp_path / f"{name}.csv", delimiter=",", skiprows=1) for name in ("mesh", "far"))
    np.testing.assert_allclose(distant[:, 3:], near[:, 3:], atol=1e-6)
    np.testing.assert_allclose(distant[:, :3] - far.numpy(), near[:, :3], atol=1e-6)
