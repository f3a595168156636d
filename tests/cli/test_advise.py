import json
import shlex

import numpy as np
import pytest


@pytest.fixture
def clouds(tmp_path, rng):
    """Two classes of ten clouds each, one twice as large as the other."""
    folder = tmp_path / "some clouds"
    for name, size in (("mouse", 1.0), ("rat", 2.0)):
        (folder / name).mkdir(parents=True)
        for i in range(10):
            points = rng.normal(size=(30, 2))
            np.save(folder / name / f"{i}.npy", size * points / np.linalg.norm(points - points.mean(axis=0), axis=1).max())
    return folder


def test_every_setting_has_its_reason(run, clouds, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    out, err = run("advise", clouds)
    for setting in ("unit ball", "radius", "num thresholds", "num directions", "scale"):
        assert f"\n{setting}  " in out
    assert "Size carries meaning" in " ".join(out.split())
    assert "20 shapes were looked at." in out
    table = out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 90
    assert err == ""


def test_the_command_and_the_layer_it_ends_with_work(run, clouds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, _ = run("advise", clouds, "--unit-ball")
    (command,) = (line.strip() for line in out.splitlines() if line.startswith("  eulerscan transform"))
    (python,) = (line.strip() for line in out.splitlines() if line.startswith("  ECTLayer"))
    import eulerscan as es

    layer = eval(python, {"ECTLayer": es.ECTLayer})
    _, *words = shlex.split(command)
    run(*words)
    with np.load(tmp_path / "transforms.npz") as saved:
        assert saved["transforms"].shape == (20, layer.num_directions, layer.num_thresholds)


def test_landmarks_whose_size_matters_are_centred_wherever_they_lie(run, clouds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    near = json.loads(run("advise", clouds, "--centre", "--as-json")[0])
    for path in clouds.rglob("*.npy"):
        np.save(path, np.load(path) + 1000)
    far = json.loads(run("advise", clouds, "--as-json")[0])
    for name in ("unit_ball", "centre", "radius", "num_thresholds", "num_directions", "scale"):
        assert far[name] == near[name]
    assert far["command"].endswith("--radius 2.2 --centre")
    _, *words = shlex.split(far["command"])
    out, err = run(*words)
    assert "20 of 20 shapes" in out
    assert err == ""  # none reaches beyond the radius


def test_json_holds_the_same(run, clouds):
    found = json.loads(run("advise", clouds, "--as-json", "--no-unit-ball", "--data", "dtype=null")[0])
    assert found["files"] == found["looked_at"] == 20
    assert found["dim"] == 2
    assert found["unit_ball"] is False
    assert 1.9 < found["radius"] < 3
    assert set(found["reasons"]) == {"unit_ball", "centre", "radius", "num_thresholds", "num_directions", "scale", "divide_by"}
    assert "--no-unit-ball --data dtype=null" in found["command"]
    assert f"num_directions={found['num_directions']}" in found["python"]


def test_of_many_files_some_are_looked_at_evenly(run, clouds):
    out, _ = run("advise", clouds, "--max-files", 4, "--no-unit-ball")
    assert "4 of 20 shapes were looked at. Those that were not may be larger." in out
    from eulerscan.cli.advise import _evenly

    assert _evenly(list(range(10)), 4) == [0, 3, 6, 9]
    assert _evenly(list(range(3)), 4) == [0, 1, 2]
    assert _evenly(list(range(10)), 1) == [0]


def test_what_cannot_be_read_is_reported(run, clouds):
    (clouds / "mouse" / "broken.ply").write_text("ply\nnonsense")
    np.save(clouds / "rat" / "space.npy", np.zeros((3, 3)))
    out, err = run("advise", clouds, status=1)
    assert "20 of 22 shapes were looked at" in out
    assert "broken.ply" in err
    assert "points of dimension 3, those of the first shape have 2" in err
    out, err = run("advise", clouds / "mouse" / "broken.ply", status=2)
    assert out == ""


def test_slips_are_named(run, clouds, tmp_path):
    (tmp_path / "empty").mkdir()
    for arguments, text in (
        ([tmp_path / "empty"], "Name files, or folders that hold files"),
        ([clouds, "--unit-ball", "--centre"], "--unit-ball, --no-unit-ball and --centre exclude each other"),
        ([clouds, "--no-unit-ball", "--centre"], "--unit-ball, --no-unit-ball and --centre exclude each other"),
        ([clouds, "--max-files", 0], "--max-files must be at least 1, got 0"),
        ([clouds, "--tolerance", 5], "--tolerance must be a share between 0 and 1, such as 0.1, got 5"),
    ):
        assert text in run("advise", *arguments, status=2)[1]
