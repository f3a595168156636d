"""Files of many specimens, through every command."""

import csv
import json

import numpy as np
import pytest
import torch

import eulerscan as es

HOUSE = np.array([[0.0, 0], [4, 0], [4, 3], [2, 5], [0, 3]])


def tps(points, name):
    lines = [f"LM={len(points)}", *(f"{x:.6f} {y:.6f}" for x, y in 10 * points), f"IMAGE={name}.jpg", "SCALE=0.1"]
    return "\n".join([*lines, ""])


@pytest.fixture
def folder(tmp_path, rng):
    """Two species of different size, a file of specimens each, somewhere in pictures."""
    folder = tmp_path / "landmarks"
    for species, size in (("mouse", 1), ("rat", 2)):
        (folder / species).mkdir(parents=True)
        shapes = [size * (HOUSE + 0.1 * rng.normal(size=HOUSE.shape)) + rng.uniform(300, 600, 2) for _ in range(6)]
        text = "".join(tps(shape, f"{species} {i}") for i, shape in enumerate(shapes))
        (folder / species / "all.tps").write_text(text)
    return folder


def test_every_specimen_has_a_row_that_depends_on_it_alone(run, folder, tmp_path):
    options = ["--normalize", "center", "--radius", 8, "--num-directions", 5]
    out, err = run("transform", folder, "-o", tmp_path / "all.npz", *options)
    assert "12 of 12 shapes" in out
    assert err == ""
    with np.load(tmp_path / "all.npz") as file:
        names, transforms, grid = file["names"].tolist(), file["transforms"], (file["directions"], file["thresholds"])
    assert names[:2] == ["mouse/all.tps/mouse 0", "mouse/all.tps/mouse 1"]
    shape = es.read(folder / names[1], dtype=torch.float64).normalized("center")
    np.testing.assert_array_equal(transforms[1], es.ect(shape, *map(torch.tensor, grid))[0].numpy())
    run("transform", folder / names[1], "-o", tmp_path / "one.npz", *options)
    with np.load(tmp_path / "one.npz") as file:
        np.testing.assert_array_equal(file["transforms"][0], transforms[1])


def test_parts_go_on_and_notice_that_a_file_of_specimens_has_changed(run, folder, tmp_path):
    command = ["transform", folder / "rat", "-o", tmp_path / "parts", "--shards", 2, "--processes", 1]
    run(*command)
    assert "6 of 6 shapes" in run(*command)[0]
    path = folder / "rat" / "all.tps"
    path.write_text(path.read_text().replace("rat 5", "rat 7"))
    assert "holds another run" in run(*command, status=2)[1]


def test_distances_are_those_of_specimens(run, folder, tmp_path):
    run("distances", folder, "-o", tmp_path / "d.csv", "--normalize", "center", "--radius", 8, "--align")
    with (tmp_path / "d.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][1] == rows[1][0] == "mouse/all.tps/mouse 0"
    matrix = np.array([row[1:] for row in rows[1:]], dtype=float)
    assert matrix[:6, :6].max() < matrix[:6, 6:].min()  # the species differ in size


def test_advice_knows_the_species_by_their_folders(run, folder):
    found = json.loads(run("advise", folder, "--as-json")[0])
    assert (found["read"], found["normalize"]) == (12, "center")


def test_models_are_trained_on_specimens_and_predict_them(run, folder, tmp_path):
    model = [
        "--model",
        "mlp",
        "--num-directions",
        4,
        "--num-thresholds",
        8,
        "--hidden",
        4,
        "--normalize",
        "center",
        "--radius",
        8,
    ]
    out, _ = run("train", "--folder", folder, *model, "--epochs", 1, "--output", tmp_path / "run")
    assert "12 shapes, 2 classes" in out
    out, err = run("predict", tmp_path / "run" / "seed-0", folder / "rat" / "all.tps")
    assert out.count("rat/all.tps/rat ") == 6
    assert "warning" not in err
    pixels = tmp_path / "pixels.tps"
    pixels.write_text((folder / "rat" / "all.tps").read_text().replace("SCALE=0.1\n", ""))
    _, err = run("predict", tmp_path / "run" / "seed-0", pixels)
    assert "6 shapes reach beyond the radius 8 of the model" in err


def test_where_one_shape_is_needed_it_is_asked_for_by_name(run, folder, tmp_path):
    path = folder / "rat" / "all.tps"
    for command, output in (("explore", "a.html"), ("fit", "a.csv")):
        _, err = run(command, path, "-o", tmp_path / output, status=2)
        assert f"{path}: file holds 6 shapes. Name one of them, such as {path / 'rat 0'}" in err
    run("explore", path / "rat 3", "-o", tmp_path / "a.html")
    assert "rat 3" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "6 shapes" in run("plot", path, "-o", tmp_path / "six.png", "--dpi", 30)[0]
    copies = [tmp_path / "a.tps", tmp_path / "b.tps"]
    for copy in copies:
        copy.write_text(path.read_text())
    _, err = run("plot", path, *copies, "-o", tmp_path / "more.png", status=2)
    assert f"1 to 12 shapes, one per row, got 18. Name some of them, such as {path / 'rat 0'}" in err


def test_a_line_that_is_wrong_is_named(run, folder, tmp_path):
    path = folder / "rat" / "all.tps"
    path.write_text(path.read_text().replace("IMAGE=rat 2.jpg", "7 7\nIMAGE=rat 2.jpg"))
    out, err = run("transform", folder, "-o", tmp_path / "all.npz", status=1)
    assert "6 of 7 shapes" in out
    assert "skipped rat/all.tps: line 23 must not be a landmark after the 5 declared, got '7 7'" in err
