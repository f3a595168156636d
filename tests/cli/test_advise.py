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
    for setting in ("normalize", "radius", "num thresholds", "num directions", "scale"):
        assert f"\n{setting}  " in out
    assert "Size is informative" in " ".join(out.split())
    assert "Based on 20 shapes." in out
    table = out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 90
    assert err == ""


def test_a_shape_without_a_group_is_left_out(run, clouds):
    before, _ = run("advise", clouds)
    np.save(clouds / "stray.npy", np.load(clouds / "rat" / "0.npy"))
    after, _ = run("advise", clouds)
    assert "Cross-validated accuracy" in " ".join(before.split())
    assert after == before.replace("Based on 20 shapes.", "Based on 20 of 21 shapes.")


def test_the_command_and_the_layer_it_ends_with_work(run, clouds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, _ = run("advise", clouds, "--normalize", "unit_ball")
    (command,) = (line.strip() for line in out.splitlines() if line.startswith("  eulerscan transform"))
    (python,) = (line.strip() for line in out.splitlines() if line.startswith("  ECTLayer"))
    import eulerscan as es

    layer = eval(python, {"ECTLayer": es.ECTLayer})
    _, *words = shlex.split(command)
    run(*words)
    with np.load(tmp_path / "transforms.npz") as saved:
        assert saved["transforms"].shape == (20, *layer.config.shape(2))


def test_landmarks_whose_size_matters_are_centered_wherever_they_lie(run, clouds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    near = json.loads(run("advise", clouds, "--normalize", "center", "--as-json")[0])
    for path in clouds.rglob("*.npy"):
        np.save(path, np.load(path) + 1000)
    far = json.loads(run("advise", clouds, "--as-json")[0])
    for name in ("normalize", "radius", "num_thresholds", "num_directions", "scale"):
        assert far[name] == near[name]
    assert far["command"].endswith("--radius 2.2 --normalize center")
    _, *words = shlex.split(far["command"])
    out, err = run(*words)
    assert "20 of 20 shapes" in out
    assert err == ""  # none reaches beyond the radius


def test_json_holds_the_same(run, clouds):
    found = json.loads(run("advise", clouds, "--as-json", "--normalize", "none", "--data", "dtype=null")[0])
    assert found["files"] == found["read"] == 20
    assert found["dim"] == 2
    assert found["normalize"] is None
    assert 1.9 < found["radius"] < 3
    assert set(found["reasons"]) == {"normalize", "radius", "num_thresholds", "num_directions", "scale", "divide_by"}
    assert "--normalize none --data dtype=null" in found["command"]
    assert f"num_directions={found['num_directions']}" in found["python"]


def test_of_many_files_an_even_sample_is_read(run, clouds):
    out, _ = run("advise", clouds, "--max-files", 4, "--normalize", "none")
    assert "Based on 4 of 20 shapes. The others may be larger." in out
    from eulerscan.cli.advise import _sample

    assert _sample(list(range(10)), 4) == [0, 3, 6, 9]
    assert _sample(list(range(3)), 4) == [0, 1, 2]
    assert _sample(list(range(10)), 1) == [0]


def test_what_cannot_be_read_is_reported(run, clouds):
    (clouds / "mouse" / "broken.ply").write_text("ply\nnonsense")
    np.save(clouds / "rat" / "space.npy", np.zeros((3, 3)))
    out, err = run("advise", clouds, status=1)
    assert "Based on 20 of 22 shapes" in out
    assert "broken.ply" in err
    assert "points of dimension 3, expected 2" in err
    out, err = run("advise", clouds / "mouse" / "broken.ply", status=2)
    assert out == ""


def test_slips_are_named(run, clouds, tmp_path):
    (tmp_path / "empty").mkdir()
    for arguments, text in (
        ([tmp_path / "empty"], "Name files, or folders"),
        ([clouds, "--max-files", 0], "--max-files must be at least 1, got 0"),
        ([clouds, "--tolerance", 5], "--tolerance must be between 0 and 1, such as 0.1, got 5"),
    ):
        assert text in run("advise", *arguments, status=2)[1]
