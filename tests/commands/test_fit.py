import json

import numpy as np
import pytest
import trimesh
from PIL import Image

import eulerscan as es


@pytest.fixture
def circle(tmp_path, rng):
    angles = rng.uniform(0, 2 * np.pi, 60)
    path = tmp_path / "circle.csv"
    np.savetxt(path, 3 + np.stack([np.cos(angles), np.sin(angles)], axis=1), delimiter=",")
    return path


def test_a_cloud_is_fitted_to_a_file_and_drawn(run, circle, tmp_path):
    files = [tmp_path / name for name in ("fit.csv", "fit.png", "fit.gif")]
    options = ["--num-points", 30, "--steps", 120, "--num-thresholds", 32]
    out, _ = run("fit", circle, "--output", files[0], *options, "--figure", files[1], "--animation", files[2])
    points = es.read(files[0]).points
    assert points.shape == (30, 2)
    assert (points - 3).norm(dim=1).sub(1).abs().mean() < 0.1
    assert "fit.csv: 30 points" in out
    with Image.open(files[2]) as animation:
        assert animation.n_frames > 20
    _, err = run("fit", circle, "--output", files[0], *options, status=2)
    assert "is there already. Use --overwrite" in err


def test_a_mesh_is_bent_to_another(run, tmp_path):
    sphere = trimesh.creation.icosphere(subdivisions=1)
    sphere.export(tmp_path / "sphere.ply")
    sphere.vertices *= [1.2, 1.0, 0.9]
    sphere.export(tmp_path / "egg.ply")
    run(
        "fit",
        tmp_path / "egg.ply",
        "--start",
        tmp_path / "sphere.ply",
        "--output",
        tmp_path / "bent.ply",
        "--steps",
        60,
    )
    bent = es.read(tmp_path / "bent.ply")
    assert bent.euler_characteristic().tolist() == [2]
    extent = bent.points.amax(dim=0) - bent.points.amin(dim=0)
    assert extent[0] > 1.1 * extent[2]


def test_slips_are_named_before_any_work(run, circle, tmp_path):
    _, err = run("fit", circle, "--output", tmp_path / "fit.doc", status=2)
    assert "--output must end with one of" in err
    _, err = run("fit", tmp_path / "none.ply", "--output", tmp_path / "fit.ply", status=2)
    assert "none.ply" in err
    assert list(tmp_path.iterdir()) == [circle]


@pytest.mark.parametrize("name", ["learn-directions", "learn-points"])
def test_the_figures_of_the_paper_on_learning(name, run, tmp_path, monkeypatch):
    from eulerscan.paper import optimising

    if name == "learn-points":
        real = optimising.fit_points
        monkeypatch.setattr(optimising, "fit_points", lambda *a, **o: real(*a, **o, steps=80, num_thresholds=32))
    run("reproduce", name, "--seeds", 1, "--results", tmp_path)
    (line,) = (tmp_path / f"{name}.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["left"] < 0.01
    if name == "learn-directions":
        assert 0.9 < record["shortest"] <= record["longest"] < 1.1
    for ending in ("png", "pdf"):
        assert (tmp_path / f"{name}.{ending}").stat().st_size > 5000
    before = (tmp_path / f"{name}.png").stat().st_mtime_ns
    run("reproduce", name, "--seeds", 1, "--results", tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_mtime_ns == before
