"""Train, evaluate and predict on the command line."""

import contextlib
import csv
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

import eulerscan as es
from eulerscan._storage import locked
from eulerscan.cli.main import main
from eulerscan.cli.predict import _unfit
from eulerscan.datasets import Dataset
from eulerscan.datasets.source import load_source
from eulerscan.io import read
from eulerscan.training.choice import Choice
from eulerscan.training.config import RunConfig
from eulerscan.training.runs import load_run

TINY = ["--model", "mlp", "--num-directions", "6", "--num-thresholds", "8", "--hidden", "12"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Spheres and tori in several formats."""
    place, rng = tmp_path_factory.mktemp("shapes"), np.random.default_rng(0)
    for i, extension in enumerate(["obj", "ply", "stl", "off", "glb", "obj", "ply", "stl", "off", "obj"]):
        for name in ("sphere", "torus"):
            mesh = trimesh.creation.icosphere(subdivisions=1) if name == "sphere" else trimesh.creation.torus(1, 0.4, 12, 8)
            mesh.vertices *= 1 + 0.2 * rng.random(3)
            (place / name).mkdir(exist_ok=True)
            mesh.export(place / name / f"{i}.{extension}")
    return place


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "shapes"
    with pytest.raises(SystemExit) as exit:
        main(["train", "--folder", str(folder), *TINY, "--epochs", "15", "--learning-rate", "0.02", "--output", str(output)])
    assert exit.value.code == 0
    return output


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """A folder of runs with two seeds and plots, the command without these, and what it said."""
    output = tmp_path_factory.mktemp("seeds") / "out"
    command = ["train", "manifolds", "--data", "num_shapes=12", "num_points=40", *TINY, "--epochs", 2, "--output", output]
    with pytest.raises(SystemExit) as exit, contextlib.redirect_stdout(io.StringIO()) as said:
        main([*map(str, command), "--seeds", "2", "--plots"])
    assert exit.value.code == 0
    return output, command, said.getvalue()


def test_a_data_set_is_trained_with_several_seeds(run, seeds):
    output, command, out = seeds
    summary = json.loads((output / "summary.json").read_text())
    results = [json.loads((output / f"seed-{seed}" / "result.json").read_text()) for seed in (0, 1)]
    assert summary["test_accuracy"] == pytest.approx(np.mean([r["test_accuracy"] for r in results]))
    assert f"accuracy {summary['test_accuracy']:.2f} ± {summary['test_accuracy_std']:.2f} %" in out
    assert ", tested on 8; runs in" in out
    assert "s/epoch" in out
    for name in ("training", "confusion", "directions", "transforms"):
        with Image.open(output / "seed-0" / f"{name}.png") as picture:
            assert picture.size[0] > 300
    _, err = run(*command, status=2)
    assert "--resume" in err
    again, _ = run(*command, "--seeds", 2, "--resume")
    assert again.splitlines()[:4] == out.splitlines()[:4]


def test_an_svm_has_no_training_curves(run, tmp_path):
    options = ["--model", "svm", "--num-directions", 8, "--num-thresholds", 8, "--plots", "--output", tmp_path / "runs"]
    run("train", "manifolds", "--data", "num_shapes=12", "num_points=40", *options)
    found = {path.name for path in (tmp_path / "runs" / "seed-0").glob("*.png")}
    assert found == {"confusion.png", "directions.png", "transforms.png"}


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ("2x", "must be a time such as"),
        ("m", "must be a time"),
        ("-1s", "must be a time"),
        ("2m", "must not be given with --model svm"),
    ],
)
def test_budgets_that_cannot_be(run, budget, message, tmp_path):
    options = ["--model", "svm", "--output", tmp_path / "runs"]
    _, err = run("train", "digits", f"--budget={budget}", *options, status=2)
    assert message in err


def test_every_channel_is_plotted(run, seeds, tmp_path):
    """One picture is twice as high as the other, whose run has no channels."""
    output, command, _ = seeds
    run(*command[:-1], tmp_path / "channels", "--max-dim", 2, "--epochs", 1, "--plots")
    heights = []
    for place in (output, tmp_path / "channels"):
        with Image.open(place / "seed-0" / "transforms.png") as picture:
            heights.append(picture.size[1])
    assert heights[1] == 2 * heights[0]


def test_predictions_for_files_equal_those_in_memory(run, folder, trained, tmp_path):
    table = tmp_path / "predictions.csv"
    run("predict", trained / "seed-0", folder, "--output", table)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 20
    model, _ = load_run(trained / "seed-0")
    for row in rows:
        with torch.no_grad():
            probabilities = model(read(row["file"])).softmax(dim=1)[0]
        torch.testing.assert_close(
            torch.tensor([float(row["sphere"]), float(row["torus"])]), probabilities, rtol=1e-5, atol=1e-6
        )
        assert row["class"] == ("sphere", "torus")[int(probabilities.argmax())]
    assert np.mean([row["class"] in row["file"] for row in rows]) >= 0.9


def test_an_interruption_says_how_to_resume(run, folder, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("eulerscan.cli.train"), "start", stopped)
    _, err = run("train", "--folder", folder, *TINY, "--output", tmp_path / "out", status=130)
    assert err.startswith(f"finished epochs are in {tmp_path / 'out' / 'seed-0'}")
    assert "--resume" in err


def test_two_commands_do_not_train_in_one_folder(run, folder, tmp_path):
    with locked(tmp_path / "out" / "seed-0" / ".lock"):
        for option in ([], ["--resume"], ["--overwrite"]):
            _, err = run("train", "--folder", folder, "-o", tmp_path / "out", *option, status=2)
            assert re.search(rf"error: .*seed-0 is in use by process {os.getpid()} on ", err)
    assert not list((tmp_path / "out" / "seed-0").iterdir())


def test_a_missing_folder_of_the_run_is_named(run, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    config = tmp_path / "run" / "seed-0" / "config.json"
    written = json.loads(config.read_text())
    written["data"]["folder"] = "gone"
    config.write_text(json.dumps(written))
    _, err = run("evaluate", config.parent, status=2)
    assert "The run was trained on the folder gone, which does not exist." in err


def test_a_corrupt_file_among_many_is_reported_and_skipped(run, folder, trained, tmp_path):
    bad = tmp_path / "bad.obj"
    bad.write_bytes(b"\x00\x01garbage")
    flat = tmp_path / "flat.csv"
    flat.write_text("0,0\n1,0\n0,1\n")
    out, err = run("predict", trained / "seed-0", bad, folder / "torus" / "0.obj", flat, status=1)
    assert "0.obj" in out
    assert "bad.obj" not in out
    assert f"skipped {bad}" in err
    assert "points of dimension 2, but the model was trained on dimension 3" in err


def test_without_predictions_no_file_is_written(run, trained, tmp_path):
    bad = tmp_path / "bad.obj"
    bad.write_bytes(b"\x00\x01garbage")
    _, err = run("predict", trained / "seed-0", bad, "-o", tmp_path / "predictions.csv", status=2)
    assert f"skipped {bad}" in err
    assert "no readable shapes" in err
    assert not (tmp_path / "predictions.csv").exists()


def test_a_folder_in_place_of_a_data_set_is_recognized(run, folder, tmp_path):
    _, err = run("train", folder, "-o", tmp_path / "run", status=2)
    assert f"use --folder {folder}" in err
    _, err = run("train", "digits", "--folder", folder, status=2)
    assert f"got both: digits and {folder}" in err


def test_a_max_dim_that_is_too_small_is_named_before_anything_is_written(run, folder, tmp_path):
    _, err = run("train", "--folder", folder, *TINY, "--max-dim", 1, "--output", tmp_path / "run", status=2)
    assert "max_dim must be at least 2" in err
    assert not (tmp_path / "run" / "seed-0").exists()


def test_meshes_are_not_subsampled_and_nothing_is_written(run, folder, tmp_path):
    _, err = run("train", "--folder", folder, *TINY, "--num-points", 9, "--output", tmp_path / "run", status=2)
    assert "num_points must be None" in err
    assert not (tmp_path / "run" / "seed-0").exists()


@pytest.fixture
def clouds(tmp_path):
    """Two classes of point clouds with nine points each."""
    rng = np.random.default_rng(0)
    for name in ("wide", "narrow"):
        (tmp_path / "clouds" / name).mkdir(parents=True)
        for i in range(6):
            np.savetxt(tmp_path / "clouds" / name / f"{i}.csv", rng.normal(size=(9, 3)), delimiter=",")
    return tmp_path / "clouds"


@pytest.mark.parametrize(("option", "value", "reason"), [("--max-dim", 0, "max_dim=0"), ("--num-points", 5, "num_points=5")])
def test_shapes_with_larger_simplices_than_the_model_knows_are_skipped(run, folder, clouds, tmp_path, option, value, reason):
    run("train", "--folder", clouds, *TINY, "--epochs", 2, option, value, "--output", tmp_path / "run")
    out, err = run("predict", tmp_path / "run" / "seed-0", clouds / "wide" / "0.csv", folder / "torus" / "0.obj", status=1)
    assert "0.csv" in out
    assert re.search(f"simplices of dimension 2, .*{reason}", err)


def test_shapes_with_weights_are_skipped_by_a_model_on_joint_features(run, folder, tmp_path):
    options = ("--model", "svm", "--joint", "--num-directions", 8, "--num-thresholds", 8)
    run("train", "--folder", folder, *options, "--output", tmp_path / "run")
    _, config = load_run(tmp_path / "run" / "seed-0")
    edge = torch.tensor([[0], [1]])
    for weights, reason in ((None, None), ([torch.ones(2), torch.ones(1)], "weights")):
        found = _unfit(es.Complex(torch.rand(2, 3), [edge], weights=weights), config)
        assert found is None if reason is None else reason in found
    out, _ = run("predict", tmp_path / "run" / "seed-0", folder / "torus" / "0.obj")
    assert "torus" in out


def test_clouds_are_subsampled_to_their_first_points_for_evaluation_and_prediction(run, clouds, tmp_path):
    run("train", "--folder", clouds, *TINY, "--epochs", 3, "--num-points", 5, "--output", tmp_path / "run")
    trained = tmp_path / "run" / "seed-0"
    scores, _ = run("evaluate", trained, "--as-json")
    assert json.loads(scores)["loss"] == json.loads((trained / "result.json").read_text())["test_loss"]
    lines = (clouds / "wide" / "0.csv").read_text().splitlines()
    (tmp_path / "first.csv").write_text("\n".join(lines[:5]))
    run("predict", trained, clouds / "wide" / "0.csv", tmp_path / "first.csv", "-o", tmp_path / "predictions.csv")
    whole, first = csv.DictReader((tmp_path / "predictions.csv").read_text().splitlines())
    assert whole["probability"] == first["probability"]


def test_shapes_of_a_dimension_that_was_not_trained_on_are_a_warning(run, folder, trained, tmp_path):
    cloud = tmp_path / "cloud.csv"
    np.savetxt(cloud, np.random.default_rng(0).normal(size=(9, 3)), delimiter=",")
    out, err = run("predict", trained / "seed-0", cloud, folder / "torus" / "0.obj")
    assert "cloud.csv" in out
    assert f"warning: {cloud} is a point cloud" in err
    _, err = run("predict", trained / "seed-0", folder / "torus" / "0.obj")
    assert "warning" not in err


def test_scores_are_means_over_the_runs_that_have_them():
    scores = {"svm": {"validation": 80.0, "test": 70.0}, "curves": {"validation": 90.0, "test": 60.0}}
    module = importlib.import_module("eulerscan.cli.train")
    choices = [Choice(scores, "curves", []), Choice({"svm": {"validation": 90.0, "test": 80.0}}, "svm", [])]
    lines = module._scores(choices, 50.0).splitlines()
    assert " ".join(lines[-2].split()) == "svm 85.0 75.0 kept in 1 of 2 runs"
    assert " ".join(lines[-1].split()) == "curves 90.0 60.0 tried in 1 of 2 runs, kept in 1 of 2 runs"
    with_ensemble = {"ensemble": scores["svm"], **scores}
    assert module._scores([Choice(with_ensemble, "ensemble", [])], 50.0).splitlines()[-1].split()[::3] == ["ensemble", "kept"]


def test_folds_are_named_and_weigh_as_many_shapes_as_they_have(run, folder, tmp_path):
    out, _ = run("train", "--folder", folder, "--model", "svm", "--folds", 3, "--output", tmp_path / "out")
    assert [line.split()[0] for line in out.splitlines()[:5]][::2] == ["fold", "0", "2"]
    assert "seconds" in out
    assert "epoch" not in out  # an SVM has none
    assert "over 3 folds)" in out
    module = importlib.import_module("eulerscan.cli.train")
    found = module._interval([{"test_accuracy": 100.0}, {"test_accuracy": 50.0}], [3, 2], 5, 2)
    assert found.startswith("test accuracy 80.0 %")
    _, err = run("train", "--folder", folder, "--model", "svm", "--folds", 999, "--output", tmp_path / "x", status=2)
    assert "num_folds must be at most" in err


def test_evaluating_gives_the_scores_of_training(run, trained):
    out, _ = run("evaluate", trained / "seed-0", "--as-json")
    result = json.loads((trained / "seed-0" / "result.json").read_text())
    assert json.loads(out)["accuracy"] == result["test_accuracy"]
    out, _ = run("evaluate", trained / "seed-0")
    assert "confusion matrix on 4 shapes of the test split" in out


def test_predictions_of_an_evaluation_are_written_by_name(run, trained, folder, tmp_path):
    out, _ = run("evaluate", trained / "seed-0", "-o", tmp_path / "shapes.csv")
    assert "accuracy" in out
    assert "%" in out
    assert f"predictions in {tmp_path / 'shapes.csv'}" in out
    rows = list(csv.DictReader((tmp_path / "shapes.csv").read_text().splitlines()))
    result = json.loads((trained / "seed-0" / "result.json").read_text())
    assert 100 * np.mean([row["true class"] == row["class"] for row in rows]) == pytest.approx(result["test_accuracy"])
    assert len({row["shape"] for row in rows}) == len(rows) == 4
    for row in rows:
        assert Path(row["shape"]).parent == folder / row["true class"]
        assert 0.5 <= float(row["probability"]) <= 1
    _, err = run("evaluate", trained / "seed-0", "-o", tmp_path / "shapes.csv", status=2)
    assert "exists already" in err


def test_every_shape_is_evaluated_once(run, trained, tmp_path, monkeypatch):
    seen = []
    get = Dataset.__getitems__
    monkeypatch.setattr(Dataset, "__getitems__", lambda self, indices: seen.extend(indices.tolist()) or get(self, indices))
    run("evaluate", trained / "seed-0", "-o", tmp_path / "shapes.csv")
    assert len(seen) == len(set(seen)) == 4


def test_shapes_that_reach_beyond_the_radius_are_a_warning(run, folder, tmp_path):
    command = ["train", "--folder", folder, *TINY, "--epochs", 1, "--normalize", "none"]
    _, err = run(*command, "--output", tmp_path / "near")
    assert re.search(r"warning: \d+ shapes reach beyond --radius 1.1", err)
    _, err = run(*command, "--radius", 2, "--output", tmp_path / "far")
    assert "warning" not in err
    _, err = run(*command[:-1], "center", "--output", tmp_path / "centered")
    assert re.search(r"warning: \d+ shapes reach beyond --radius 1.1", err)
    config = tmp_path / "centered" / "seed-0" / "config.json"
    assert json.loads(config.read_text())["model"]["normalize"] == "center"


def test_a_folder_that_has_changed_is_not_evaluated_as_if_it_had_not(run, folder, tmp_path):
    """One file more divides the folder anew, and test shapes would be among those that were trained on."""
    shapes = shutil.copytree(folder, tmp_path / "shapes")
    run("train", "--folder", shapes, "--data", "seed=3", *TINY, "--epochs", 1, "--output", tmp_path / "out")
    run("evaluate", tmp_path / "out" / "seed-0")
    out, _ = run("predict", tmp_path / "out" / "seed-0", shapes / "torus" / "0.obj")
    assert "0.obj" in out
    shutil.copy(shapes / "torus" / "0.obj", shapes / "torus" / "new.obj")
    _, err = run("evaluate", tmp_path / "out" / "seed-0", status=2)
    assert "not what the run was trained on" in err


def test_images_are_shapes_too(run, tmp_path, rng):
    for name, hole in (("ring", True), ("disc", False)):
        for i in range(5):
            y, x = np.mgrid[:24, :24] - 11.5
            radius = np.hypot(x, y)
            image = (radius < 9 + rng.random()) & ~(hole & (radius < 4 + rng.random()))
            (tmp_path / "in" / name).mkdir(parents=True, exist_ok=True)
            Image.fromarray((255 * image).astype(np.uint8)).save(tmp_path / "in" / name / f"{i}.png")
    run(
        "train",
        "--folder",
        tmp_path / "in",
        "--data",
        "pixels=vertices",
        *TINY,
        "--epochs",
        10,
        "--output",
        tmp_path / "out",
    )
    out, _ = run("predict", tmp_path / "out" / "seed-0", tmp_path / "in")
    assert len(out.splitlines()) == 12


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["train"], "Give a data set, or a folder"),
        (["train", "leter-low"], "'leter-low'. Did you mean letter-low"),
        (["train", "digits", "--model", "cn"], "Did you mean cnn"),
        (["train", "digits", "--data", "form=cubes"], "got 'cubes'"),
        (["train", "digits", "--data", "color=red"], "digits has no option 'color'"),
        (["train", "digits", "--data", "form"], "name=value, got 'form'"),
        (["train", "digits", "--epochs", "0"], "epochs must be at least 1, got 0"),
        (["train", "digits", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["train", "--folder", "nowhere"], "nowhere is not a folder"),
        (["evaluate", "nowhere"], "nowhere is not a folder"),
        (["predict", "nowhere", "a.obj"], "nowhere is not a folder"),
    ],
)
def test_slips_are_answered_with_a_sentence(run, arguments, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, err = run(*arguments, status=2)
    assert text in err.replace("\n", " ")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_folders_that_are_not_a_data_set_are_named(run, tmp_path):
    point_file = "0,0,0\n1,0,0\n0,1,0\n"
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.csv").write_text(point_file)
    for extra, text in (
        (None, "must have at least two classes of at least 4 shapes, each in a subfolder, got none"),
        (
            "dog",
            "every class must have at least 4 readable shapes, for training, validation and test, got cat with 1, dog with 0",
        ),
        ("dog/1.csv", "got cat with 1, dog with 1"),
    ):
        if extra:
            path = tmp_path / extra
            path.mkdir(exist_ok=True) if not path.suffix else path.write_text(point_file)
        _, err = run("train", "--folder", tmp_path, status=2)
        assert text in err.replace("\n", " ")
    for name in ("cat", "dog"):
        for i in range(1, 5):
            (tmp_path / name / f"{i}.csv").write_text(point_file)
    (tmp_path / "dog" / "5.csv").write_text("0,0\n1,1\n")
    _, err = run("train", "--folder", tmp_path, status=2)
    assert "must have points of the same dimension, got dimension 3 in" in err
    assert "5.csv" in err


def test_a_table_assigns_classes_and_its_run_can_be_evaluated_and_tested_on_another_folder(run, folder, tmp_path):
    flat = tmp_path / "flat"
    flat.mkdir()
    rows = ["file,kind,size"]
    for path in sorted(folder.glob("*/*")):
        shutil.copy(path, flat / f"{path.parent.name}-{path.name}")
        rows.append(f"{path.parent.name}-{path.name},{path.parent.name}s,{len(rows)}")
    (flat / "shapes.csv").write_text("\n".join(rows))
    (flat / "notes.csv").write_text("0,0\n1,1\n")  # a sidecar in the plane
    only = ["--only", "obj", "ply", "stl", "off", "glb"]
    table = ["--table", flat / "shapes.csv", "--label", "kind"]
    run("train", "--folder", flat, *table, *only, *TINY, "--epochs", 12, "--learning-rate", 0.02, "--output", tmp_path / "out")
    trained = tmp_path / "out" / "seed-0"
    assert "spheres" in run("evaluate", trained)[0]
    other = tmp_path / "other"
    for name in ("sphere", "torus"):
        shutil.copytree(folder / name, other / f"{name}s")
    shutil.rmtree(other / "toruss")  # a class may be missing
    out, err = run("evaluate", trained, other, "--as-json")
    assert json.loads(out)["count"] == 10
    assert "too high" not in err
    (flat / "notes.csv").unlink()
    (flat / "shapes.csv").rename(tmp_path / "shapes.csv")
    _, err = run("evaluate", trained, flat, "--table", tmp_path / "shapes.csv", "--label", "kind")
    assert f"warning: the run was trained on shapes of {flat}, so these scores are too high" in err
    (other / "cubes").mkdir()
    shutil.copy(next((folder / "torus").glob("*.obj")), other / "cubes")
    _, err = run("evaluate", trained, other, status=2)
    assert "the run does not know cubes" in err
    _, err = run("evaluate", trained, "--split", "tset", status=2)
    assert "tset" in err


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Two scans of each of 20 random specimens, whose kinds mean nothing, and the words for their table."""
    place, rng, rows = tmp_path_factory.mktemp("copies"), np.random.default_rng(0), ["file,kind,specimen"]
    for i in range(20):
        points = rng.normal(size=(12, 2))
        for scan in "ab":
            np.savetxt(place / f"{i}{scan}.csv", points + 1e-3 * rng.normal(size=(12, 2)), delimiter=",")
            rows.append(f"{i}{scan},{'odd' if i % 2 else 'even'},s{i}")
    table = place.parent / "copies.csv"
    table.write_text("\n".join(rows))
    return ["--folder", place, "--table", table, "--label", "kind"]


def specimens(dataset):
    """The specimens of each split."""
    names = {split: [Path(dataset.names[i]).stem for i in indices.tolist()] for split, indices in dataset.splits.items()}
    return {split: {name[:-1] for name in found} for split, found in names.items()}


SVM = ["--model", "svm", "--num-directions", 8, "--num-thresholds", 16]


def test_copies_in_training_make_the_accuracy_of_noise_high_unless_blocks_are_not_divided(run, copies, tmp_path):
    words = ["train", *copies, *SVM, "--folds", 5, "--output"]
    leak, _ = run(*words, tmp_path / "leak")
    honest, _ = run(*words, tmp_path / "honest", "--strata", "specimen")
    shares = [json.loads((tmp_path / name / "summary.json").read_text())["test_accuracy"] for name in ("leak", "honest")]
    assert shares[0] > 75
    assert shares[1] < 60
    assert "for 40 shapes, each tested once" in leak
    assert "for 20 blocks, each tested once" in honest
    tested = set()
    for number in range(5):
        config = RunConfig.read(tmp_path / "honest" / f"fold-{number}" / "config.json")
        assert config.data["strata"] == "specimen"
        dataset, _ = load_source(config.data)
        config.check_data(dataset)  # evaluate does, too
        found = specimens(dataset)
        assert {split: len(own) for split, own in found.items()} == {"train": 12, "val": 4, "test": 4}
        assert sum(map(len, found.values())) == len(set().union(*found.values())) == 20
        tested |= found["test"]
    assert len(tested) == 20


def test_a_run_remembers_its_blocks(run, copies, tmp_path):
    words = ["train", *copies, *SVM, "--output", tmp_path / "out"]
    out, _ = run(*words, "--strata", "specimen")
    assert "for 4 blocks: too few to mean much" in out
    assert ", tested on 8; runs in" in out
    result = json.loads((tmp_path / "out" / "seed-0" / "result.json").read_text())
    scores = json.loads(run("evaluate", tmp_path / "out" / "seed-0", "--as-json")[0])
    assert (scores["accuracy"], scores["count"]) == (pytest.approx(result["test_accuracy"]), 8)
    again, _ = run(*words, "--strata", "specimen", "--resume")
    assert again == out
    _, err = run(*words, "--resume", status=2)
    assert "other settings" in err
    run("predict", tmp_path / "out" / "seed-0", copies[1])


def test_the_last_training_of_a_choice_keeps_blocks_whole(run, copies, tmp_path):
    few = ["--num-directions", 4, "--num-thresholds", 8, "--epochs", 1]
    run("train", *copies, "--strata", "specimen", *few, "--output", tmp_path / "out")
    config = RunConfig.read(tmp_path / "out" / "seed-0" / "config.json")
    assert (config.data["refit"], config.data["strata"]) == (True, "specimen")
    found = specimens(load_source(config.data)[0])
    assert {split: len(own) for split, own in found.items()} == {"train": 16, "val": 0, "test": 4}
    assert not found["train"] & found["test"]
    for path in (tmp_path / "out" / "candidates").glob("*/config.json"):
        own = specimens(load_source(RunConfig.read(path).data)[0])
        assert own["test"] == found["test"]
        assert not own["val"] & own["train"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--strata", "specimens"], "no column 'specimens'. .* Did you mean 'specimen'?"),
        (["--strata", "half"], "at least 4 blocks in column 'half', .* got even with 1, odd with 1"),
        (["--strata", "half", "--skip-small"], "at least two classes of at least 4 blocks"),
        (["--strata", "gap"], "column 'gap' must have a block for every shape, got none for 3a.csv"),
        (["--strata", "specimen", "--folds", 21], "num_folds must be at most 20, the number of blocks, got 21"),
    ],
)
def test_blocks_that_do_not_fit_are_named(run, copies, tmp_path, words, text):
    rows = [row.split(",") for row in copies[3].read_text().splitlines()[1:]]
    table = ["file,kind,specimen,half,gap", *(f"{f},{k},{s},{k[0]},{'' if f == '3a' else s}" for f, k, s in rows)]
    (tmp_path / "table.csv").write_text("\n".join(table))
    changed = [*copies[:3], tmp_path / "table.csv", *copies[4:]]
    _, err = run("train", *changed, *SVM, *words, "--output", tmp_path / "out", status=2)
    assert re.search(text, err.replace("\n", " "))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["digits"], ["--folder", "shapes"], ["digits", "--table", "t.csv", "--label", "kind"]])
def test_blocks_need_a_folder_and_a_table(run, words):
    _, err = run("train", *words, "--strata", "specimen", status=2)
    assert "--strata is a column of a table: give --folder, --table and --label" in err


def test_options_are_checked_before_files_are_read(run, folder, tmp_path, monkeypatch):
    def fail(*args, **options):
        raise AssertionError("a file was read")

    monkeypatch.setattr("eulerscan.datasets.folder.read_all", fail)
    (tmp_path / "seed-0").mkdir()
    (tmp_path / "seed-0" / "mine.txt").write_text("keep")
    command = ["train", "--folder", folder]
    for options, text in (
        (["--model", "cmm"], "model must be one of curves, svm, cnn"),
        (["--preset", "1k"], "preset of cnn must be one of"),
        (["--output", tmp_path], "exists and is not the folder of a run"),
        (["--table", "t.csv"], "--table and --label belong together"),
        (["--data", "weighted"], "options must have the form name=value"),
        (["--resume", "--overwrite"], "either --resume or --overwrite"),
    ):
        _, err = run(*command, *options, status=2)
        assert text in err


KILLED = [
    "train",
    "manifolds",
    "--data",
    "num_shapes=40",
    "num_points=60",
    *TINY,
    "--epochs",
    "12",
    "--dropout",
    "0.2",
    "--rotate",
    "20",
]


def test_a_run_killed_at_any_moment_resumes_to_the_same_result(tmp_path, run):
    run(*KILLED, "--output", tmp_path / "whole")
    command = [sys.executable, "-m", "eulerscan", *KILLED, "--output", str(tmp_path / "killed"), "--resume"]
    lines = tmp_path / "killed" / "seed-0" / "metrics.jsonl"
    for epochs in (2, 6):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 120
            while process.poll() is None and (not lines.exists() or len(lines.read_text().splitlines()) < epochs):
                assert time.monotonic() < deadline
                time.sleep(0.002)
            process.kill()
    run(*KILLED, "--output", tmp_path / "killed", "--resume")
    one, other = (json.loads((tmp_path / name / "seed-0" / "result.json").read_text()) for name in ("whole", "killed"))
    del one["seconds_per_epoch"], other["seconds_per_epoch"]
    assert one == other  # sha256 of the weights included


def test_tensorboard_gets_the_numbers_of_every_epoch(run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    data = ("manifolds", "--data", "num_shapes=8", "num_points=30")
    for epochs in (4, 3):  # the curves of the first run are replaced too
        run("train", *data, *TINY, "--epochs", epochs, "--output", tmp_path / "out", "--tensorboard", "--overwrite")
        events = EventAccumulator(str(tmp_path / "out" / "seed-0" / "tensorboard")).Reload()
        assert [event.step for event in events.Scalars("val_accuracy")] == [*range(1, epochs + 1)]


def test_tensorboard_gets_the_epochs_of_every_candidate(run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    data = ("manifolds", "--data", "num_shapes=8", "num_points=30")
    grid = ("--num-directions", 8, "--num-thresholds", 8)
    run("train", *data, *grid, "--epochs", 2, "--output", tmp_path / "out", "--tensorboard")
    for candidate in ("curves", "curves-invariant"):
        events = EventAccumulator(str(next((tmp_path / "out").glob(f"candidates/**/*{candidate}/tensorboard")))).Reload()
        assert [event.step for event in events.Scalars("val_accuracy")] == [1, 2]


def test_torchrun_trains_with_the_same_command(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "eulerscan"]
    command += [
        "train",
        "manifolds",
        "--data",
        "num_shapes=8",
        "num_points=30",
        *TINY,
        "--epochs",
        "2",
        "--output",
        str(tmp_path / "out"),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("runs in") == 1
    assert json.loads((tmp_path / "out" / "seed-0" / "result.json").read_text())["processes"] == 2


@pytest.mark.parametrize(
    ("device", "processes", "text"),
    [
        ("meta", 1, "got 'meta', which holds no values"),
        ("cuda:99", 1, "--device must be a device of this machine.*got 'cuda:99'"),
        ("gpu", 1, "--device must be a device of this machine.*got 'gpu'"),
        ("cuda:1", 2, "--device must be cpu or cuda under torchrun.*got 'cuda:1'"),
    ],
)
def test_a_device_that_cannot_train_is_named(run, monkeypatch, device, processes, text):
    """Before any data are read."""
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    if processes > 1:
        monkeypatch.setattr(torch, "empty", lambda *size, device: None)  # as if there were two GPUs
    _, err = run("train", "digits", "--device", device, status=2)
    assert re.search(text, err)


def test_under_torchrun_a_gpu_is_that_of_the_process(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch, "empty", lambda *size, device: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    from eulerscan.cli.train import _device

    assert _device("cuda") == torch.device("cuda:1")
    assert _device("cpu") == torch.device("cpu")


def test_the_current_folder_is_cross_validated_beside_the_largest_class_of_all_its_shapes(run, folder, tmp_path, monkeypatch):
    place = tmp_path / "shapes"
    for name, count in (("sphere", 5), ("torus", 4)):
        (place / name).mkdir(parents=True)
        for file in sorted((folder / name).iterdir())[:count]:
            shutil.copy(file, place / name)
    monkeypatch.chdir(place)
    grid = ("--num-directions", 8, "--num-thresholds", 8, "--epochs", 1)
    out, _ = run("train", "--folder", ".", "--folds", 3, *grid, "--output", tmp_path / "out")
    assert "shapes: 9 shapes, 2 classes, tested on 9" in out
    run("train", "--folder", ".", "--model", "svm", *grid[:4])
    run("evaluate", "runs/shapes-svm/seed-0")  # the runs in the folder are no class
    assert f"the largest class alone is {100 * 5 / 9:.1f} %" in out


def test_other_images_are_read_like_those_of_the_run_unless_data_says_otherwise(run, tmp_path):
    for name, background in (("dark", 0), ("light", 255)):
        for group, width in (("thin", 4), ("wide", 12)):
            (tmp_path / name / group).mkdir(parents=True)
            for i in range(5):
                image = np.full((20, 20), background, np.uint8)
                image[2 + i : 12 + i, 4 : 4 + width] = 255 - background
                Image.fromarray(image).save(tmp_path / name / group / f"{i}.png")
    options = ("--model", "svm", "--num-directions", "6", "--num-thresholds", "8")
    for name, data in (("dark", ()), ("light", ("--data", "invert=true"))):
        _, err = run("train", "--folder", tmp_path / name, *options, "--output", tmp_path / f"run-{name}", *data)
        assert "light background" not in err
    dark, light = tmp_path / "run-dark" / "seed-0", tmp_path / "run-light" / "seed-0"
    remembered, err = run("predict", light, tmp_path / "light")
    assert "light background" not in err
    _, err = run("predict", dark, tmp_path / "light")
    assert "light background" in err
    given, err = run("predict", dark, tmp_path / "light", "--data", "invert=true")
    assert "light background" not in err
    assert given == remembered
    _, err = run("evaluate", dark, tmp_path / "light")
    assert "light background" in err
    _, err = run("evaluate", dark, tmp_path / "light", "--data", "invert=true")
    assert "light background" not in err
    _, err = run("evaluate", dark, "--data", "invert=true", status=2)
    assert "--data need another folder" in err
