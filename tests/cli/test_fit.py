import json

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

import eulerscan as es
from eulerscan import testing
from eulerscan.fitting import fit_points
from eulerscan.io import write
from eulerscan.plot.fits import Recorder


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
    assert "exists already. Use --overwrite" in err


def test_a_mesh_is_deformed_to_another(run, tmp_path):
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


def test_a_poor_fit_warns_with_the_reason(run, circle, tmp_path):
    trimesh.creation.icosphere(subdivisions=1).export(tmp_path / "sphere.ply")
    trimesh.creation.torus(1, 0.4, 12, 8).export(tmp_path / "torus.ply")
    options = ["--start", tmp_path / "sphere.ply", "-o", tmp_path / "bent.ply", "--steps", 60]
    _, err = run("fit", tmp_path / "torus.ply", *options)
    assert "the start has Euler characteristic 2, the target 0" in err
    _, err = run("fit", circle, "-o", tmp_path / "few.csv", "--steps", 1)
    assert "more --steps or --restarts, or more points" in err
    _, err = run("fit", circle, "-o", tmp_path / "enough.csv", "--steps", 120, "--num-thresholds", 32)
    assert err == ""
    _, err = run("fit", circle, "-o", tmp_path / "fewer.csv", "--steps", 1, "--start", tmp_path / "few.csv")
    assert "another --start" in err


def test_a_graph_is_restarted_by_default(run, tmp_path, generator):
    graph = testing.random_graph(8, 12, generator=generator, dtype=torch.float32).complex
    start = graph.with_points(graph.points + 0.2 * torch.randn(graph.points.shape, generator=generator))
    write(graph, tmp_path / "graph.npz")
    write(start, tmp_path / "start.npz")
    options = ["--start", tmp_path / "start.npz", "--steps", 4]
    run("fit", tmp_path / "graph.npz", *options, "--output", tmp_path / "again.npz")
    run("fit", tmp_path / "graph.npz", *options, "--output", tmp_path / "once.npz", "--restarts", 1)
    for name, restarts in (("again", None), ("once", 1)):
        fit = fit_points(graph, start=start, steps=4, restarts=restarts, generator=torch.Generator().manual_seed(0))
        assert len(fit.restart_losses) == (restarts or 10)
        torch.testing.assert_close(es.read(tmp_path / f"{name}.npz").points, fit.shape.points)
    assert not torch.equal(es.read(tmp_path / "again.npz").points, es.read(tmp_path / "once.npz").points)


def test_the_path_from_a_given_start_joins_all_descents_that_improved(generator):
    target, start = torch.rand(10, 2, generator=generator), torch.rand(10, 2, generator=generator)
    recorder = Recorder(every=1)
    fit = fit_points(target, start=start, restarts=3, steps=4, callback=recorder)
    first, second, third = fit.restart_losses
    states = recorder.best(fit)
    assert second < first
    assert len(states) == 4 + 4 + 4 * (third < second) + 1
    assert states[0] is recorder.paths[0][0]
    assert states[-1] is fit.shape


def test_invalid_outputs_are_named_before_any_work(run, circle, tmp_path):
    _, err = run("fit", circle, "--output", tmp_path / "fit.doc", status=2)
    assert "--output must end with one of" in err
    _, err = run("fit", circle, "--output", tmp_path / "fit.ply", "--figure", tmp_path / "fit.doc", status=2)
    assert "--figure must end with one of .png, .pdf, .svg, got 'fit.doc'." in err
    _, err = run("fit", tmp_path / "none.ply", "--output", tmp_path / "fit.ply", status=2)
    assert "none.ply" in err
    assert list(tmp_path.iterdir()) == [circle]


@pytest.mark.parametrize("name", ["learn-directions", "learn-points"])
def test_the_figures_of_the_paper_on_learning(name, run, tmp_path, monkeypatch):
    from eulerscan.paper import optimization

    if name == "learn-points":
        real = optimization.fit_points
        monkeypatch.setattr(optimization, "fit_points", lambda *a, **o: real(*a, **o, steps=80, num_thresholds=32))
    run("reproduce", name, "--seeds", 1, "--results", tmp_path)
    (line,) = (tmp_path / f"{name}.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["left"] < 0.01
    if name == "learn-directions":
        assert 0.9 < record["shortest"] <= record["longest"] < 1.1
    for extension in ("png", "pdf"):
        assert (tmp_path / f"{name}.{extension}").stat().st_size > 5000
    before = (tmp_path / f"{name}.png").stat().st_mtime_ns
    run("reproduce", name, "--seeds", 1, "--results", tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_mtime_ns == before
