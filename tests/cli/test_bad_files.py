import numpy as np
import pytest
import trimesh
from hostile_files import SMALL, write_hostile

from eulerscan.bulk import load_transforms
from eulerscan.cli.main import main

GOOD = 20
GRID = ("--num-directions", 8, "--num-thresholds", 8)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two classes of meshes, and a hostile file of each kind among them, before and after the others."""
    folder, rng = tmp_path_factory.mktemp("bad") / "shapes", np.random.default_rng(0)
    for label, mesh in {"m": trimesh.creation.icosphere(1), "n": trimesh.creation.torus(1.0, 0.4, 12, 8)}.items():
        (folder / label).mkdir(parents=True)
        for i in range(GOOD // 2):
            deformed = trimesh.Trimesh(mesh.vertices * (1 + 0.3 * rng.random(3)), mesh.faces, process=False)
            deformed.export(folder / label / f"good{i}.off")
    bad = write_hostile(folder / "m")
    return folder, bad


@pytest.fixture(autouse=True)
def _limit(monkeypatch):
    monkeypatch.setenv("EULERSCAN_MAX_BYTES", "4e9")


def run(capsys, *words):
    """Exit code, output and errors of a command."""
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return end.value.code, out, err


def check_named(code, err, bad):
    assert code == 1
    for path in bad:
        assert f"{path.name}: " in err, path.name


def test_transform_names_hostile_files_and_finishes(place, capsys, tmp_path):
    folder, bad = place
    code, _, err = run(capsys, "transform", folder, "-o", tmp_path / "t.npz")
    check_named(code, err, bad)
    assert len(load_transforms(tmp_path / "t.npz").names) == GOOD


def test_transform_to_parts_names_hostile_files_and_finishes(place, capsys, tmp_path):
    folder, bad = place
    code, *_ = run(capsys, "transform", folder, "-o", tmp_path / "parts", "--processes", 1)
    assert code == 1
    listed = (tmp_path / "parts" / "failures.csv").read_text(encoding="utf-8")
    assert all(path.name in listed for path in bad)
    assert len(load_transforms(tmp_path / "parts").names) == GOOD


def test_distances_names_hostile_files_and_finishes(place, capsys, tmp_path):
    folder, bad = place
    code, out, err = run(capsys, "distances", folder, "-o", tmp_path / "d.csv")
    check_named(code, err, bad)
    assert f"{GOOD} x {GOOD} distances" in out


def test_advise_names_hostile_files_and_finishes(place, capsys):
    folder, bad = place
    code, out, err = run(capsys, "advise", folder)
    check_named(code, err, bad)
    assert "eulerscan transform" in out


def test_plot_names_hostile_files_and_finishes(place, capsys, tmp_path):
    folder, bad = place
    for start in range(0, len(bad), 9):  # a figure has twelve rows
        some = bad[start : start + 9]
        shapes = [*some, *(folder / "n" / f"good{i}.off" for i in range(2))]
        code, _, err = run(capsys, "plot", *shapes, "-o", tmp_path / f"{start}.png", "--dpi", 20, *GRID)
        check_named(code, err, some)
        assert (tmp_path / f"{start}.png").exists()


@pytest.mark.parametrize("command", ["explore", "fit"])
def test_commands_of_one_shape_name_a_hostile_file(place, command, capsys, tmp_path):
    _, bad = place
    for path in bad:
        code, _, err = run(capsys, command, path, "-o", tmp_path / {"explore": "p.html", "fit": "p.ply"}[command])
        assert code == 2
        assert path.name in err
        assert list(tmp_path.iterdir()) == []


def test_train_evaluate_and_predict_name_hostile_files_and_finish(place, capsys, tmp_path):
    folder, bad = place
    words = ("--folder", folder, "--epochs", 1, "--model", "mlp", "-o", tmp_path / "runs")
    code, out, err = run(capsys, "train", *words)
    check_named(code, err, bad)
    assert f"{GOOD} shapes, 2 classes" in out
    code, out, err = run(capsys, "predict", tmp_path / "runs" / "seed-0", folder)
    check_named(code, err, bad)
    assert out.count("good") == GOOD
    code, out, err = run(capsys, "evaluate", tmp_path / "runs" / "seed-0")
    check_named(code, err, bad)


def test_every_kind_is_there():
    assert len(SMALL) >= 24
