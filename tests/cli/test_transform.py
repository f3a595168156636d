import csv
import importlib
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

import eulerscan as es
from eulerscan.bulk import load_transforms
from eulerscan.io import list_shapes

NPZ = {"names", "groups", "transforms", "directions", "thresholds", "settings"}


@pytest.fixture
def folder(tmp_path, rng):
    """Meshes in space, in sub-folders and several formats."""
    place = tmp_path / "shapes"
    for i, ending in enumerate(["ply", "off", "stl", "obj", "ply", "off"]):
        mesh = trimesh.creation.torus(1, 0.4, 12, 8) if i % 2 else trimesh.creation.icosphere(subdivisions=1)
        mesh.vertices *= 1 + 0.5 * rng.random((len(mesh.vertices), 3)) if ending != "stl" else 1
        (place / f"{i % 2}").mkdir(parents=True, exist_ok=True)
        mesh.export(place / f"{i % 2}" / f"{i}.{ending}")
    return place


@pytest.fixture
def graphs(tmp_path, rng):
    """Graphs in the plane."""
    place = tmp_path / "graphs"
    place.mkdir()
    for i in range(5):
        edges = np.unique(np.sort(rng.integers(0, 12, (20, 2)), axis=1), axis=0)
        np.savez(place / f"{i}.npz", points=rng.normal(size=(12, 2)), edges=edges[edges[:, 0] < edges[:, 1]].T)
    return place


def loaded(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def of_the_package_ect(shape, directions, thresholds):
    ect = pytest.importorskip("ect")
    embedded = ect.EmbeddedComplex()
    embedded.add_nodes_from(list(enumerate(shape.points.numpy())))
    levels = {len(level): level.T.tolist() for level in shape.simplices}
    embedded.add_edges_from(levels.get(2, []))
    for triangle in levels.get(3, []):
        embedded.add_cell(triangle, dim=2)
    transform = ect.ECT(directions=ect.Directions.from_vectors(directions), thresholds=thresholds)
    return np.asarray(transform.calculate(embedded))


@pytest.mark.parametrize("kind", ["folder", "graphs"])
def test_exact_transforms_equal_those_of_the_package_ect(run, kind, tmp_path, request):
    place = request.getfixturevalue(kind)
    out, err = run("transform", place, "-o", tmp_path / "out.npz", "--num-directions", 12, "--num-thresholds", 25)
    assert not err
    file = loaded(tmp_path / "out.npz")
    assert file.keys() == NPZ
    assert f"{len(file['names'])} of {len(file['names'])} shapes, 12 directions x 25 thresholds each" in out
    assert file["names"].tolist() == sorted(p.relative_to(place).as_posix() for p in place.rglob("*.*"))
    for name, transform in zip(file["names"], file["transforms"], strict=True):
        shape = es.read(place / str(name), dtype=torch.float64).normalized("unit_ball")
        np.testing.assert_array_equal(transform, of_the_package_ect(shape, file["directions"], file["thresholds"]))


def test_coordinates_can_be_taken_as_they_are(run, graphs, tmp_path):
    options = ["--normalize", "none", "--radius", 5, "--num-thresholds", 30]
    run("transform", graphs, "-o", tmp_path / "out.npz", *options)
    file = loaded(tmp_path / "out.npz")
    assert file["thresholds"][-1] == 5
    shape = es.read(graphs / "2.npz", dtype=torch.float64)
    expected = es.ect(shape, torch.tensor(file["directions"]), torch.tensor(file["thresholds"]))
    np.testing.assert_array_equal(file["transforms"][2], expected[0].numpy())
    assert json.loads(str(file["settings"]))["normalize"] is None
    _, err = run("transform", graphs, "-o", tmp_path / "b.npz", "--normalize", "none", status=2)
    assert "radius must be given with normalize=None" in err


def test_shapes_can_be_centered_and_keep_their_size(run, tmp_path):
    """Two points four apart, wherever they are, stand at -2 and 2; two points one apart at -0.5 and 0.5."""
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    for name, x in (("far", 100), ("near", 0)):
        (pairs / f"{name}.csv").write_text(f"{x},7\n{x + 4},7\n")
    (pairs / "small.csv").write_text("50,7\n51,7\n")
    run(
        "transform",
        pairs,
        "-o",
        tmp_path / "a.npz",
        "--normalize",
        "center",
        "--radius",
        3,
        "--num-thresholds",
        7,
        "--num-directions",
        1,
    )
    file = loaded(tmp_path / "a.npz")
    np.testing.assert_array_equal(file["transforms"][:, 0], [[0, 1, 1, 1, 1, 2, 2]] * 2 + [[0, 0, 0, 1, 2, 2, 2]])
    assert json.loads(str(file["settings"]))["normalize"] == "center"
    run(
        "transform",
        pairs / "small.csv",
        "-o",
        tmp_path / "b.npz",
        "--normalize",
        "center",
        "--radius",
        3,
        "--num-thresholds",
        7,
    )
    alone = loaded(tmp_path / "b.npz")
    np.testing.assert_array_equal(alone["transforms"][0, 0], file["transforms"][2, 0])
    _, err = run("transform", pairs, "-o", tmp_path / "c.npz", "--normalize", "center", "--radius", 1)
    assert "2 shapes reach beyond --radius 1" in err
    _, err = run("transform", pairs, "-o", tmp_path / "d.npz", "--normalize", "center", status=2)
    assert "radius must be given with normalize='center'" in err


@pytest.mark.parametrize("variant", ["ect", "sect", "superlevel", "derivative", "channels"])
def test_every_variant_is_that_of_the_library(run, folder, variant, tmp_path):
    chosen = ["--derivative"] if variant == "derivative" else ["--variant", variant]
    run("transform", folder, "-o", tmp_path / "out.npz", *chosen, "--scale", 10, "--num-directions", 5)
    file = loaded(tmp_path / "out.npz")
    grid = torch.tensor(file["directions"]), torch.tensor(file["thresholds"])
    shape = es.read(folder / str(file["names"][1]), dtype=torch.float64).normalized("unit_ball")
    if variant == "derivative":
        expected = es.derivative(es.ect(shape, *grid, scale=10))
    elif variant == "channels":
        expected = es.channels(shape, *grid, scale=10, max_dim=3)
    else:
        expected = getattr(es, variant)(shape, *grid, scale=10)
    np.testing.assert_array_equal(file["transforms"][1], expected[0].float().numpy())


def test_weighted_images_count_by_their_weights(run, tmp_path, rng):
    place = tmp_path / "images"
    place.mkdir()
    Image.fromarray(rng.integers(1, 255, (6, 7), dtype=np.uint8)).save(place / "a.png")
    run("transform", place, "-o", tmp_path / "out.npz", "--data", "weighted=true")
    shape = es.read(place / "a.png", weighted=True)
    last = loaded(tmp_path / "out.npz")["transforms"][0, :, -1]
    np.testing.assert_allclose(last, np.full(32, float(shape.euler_characteristic())), rtol=1e-5)


def test_dark_shapes_are_inverted_by_an_option(run, tmp_path, rng):
    image = rng.integers(1, 255, (6, 7), dtype=np.uint8)
    for name, values in (("dark", image), ("light", 255 - image)):
        (tmp_path / name).mkdir()
        Image.fromarray(values).save(tmp_path / name / "a.png")
    run("transform", tmp_path / "dark", "-o", tmp_path / "dark.npz", "--data", "invert=true", "threshold=0.3")
    run("transform", tmp_path / "light", "-o", tmp_path / "light.npz", "--data", "threshold=0.3")
    np.testing.assert_array_equal(*(loaded(tmp_path / f"{name}.npz")["transforms"] for name in ("dark", "light")))


@pytest.mark.parametrize("command", ["transform", "distances"])
@pytest.mark.parametrize(
    ("background", "options", "warned"),
    [
        (255, (), True),
        (255, ("weighted=true",), True),
        (255, ("invert=true",), False),
        (255, ("invert=false",), False),
        (255, ("threshold=0.3",), False),
        (0, (), False),
    ],
)
def test_a_light_background_is_pointed_out(command, background, options, warned, run, tmp_path):
    image = np.full((8, 9), background, dtype=np.uint8)
    image[2:5, 3:6] = 128
    image[3, 4] = 255 - background
    (tmp_path / "images").mkdir()
    Image.fromarray(image).save(tmp_path / "images" / "a.png")
    data = ("--data", *options) if options else ()
    _, err = run(command, tmp_path / "images", "-o", tmp_path / "out.csv", *data)
    assert ("a.png has a light background" in err) is warned


@pytest.mark.parametrize("command", ["transform", "distances"])
def test_labels_without_a_shape_and_shapes_without_a_label_are_listed(command, run, folder, tmp_path):
    first, *others = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    (tmp_path / "kinds.csv").write_text("\n".join(["name,kind", *(f"{name},a" for name in others), "nowhere.ply,b"]))
    _, err = run(command, folder, "--table", tmp_path / "kinds.csv", "--label", "kind", "-o", tmp_path / "out.csv")
    assert f"{first}: no kind in" in err
    assert "row 'nowhere.ply' is none of the shapes" in err


def test_tables_hold_the_same_numbers(run, folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for ending in ("npz", "csv", "parquet"):
        run("transform", folder, "-o", tmp_path / f"out.{ending}", "--variant", "sect", "--num-directions", 4)
    file = loaded(tmp_path / "out.npz")
    flat = file["transforms"].reshape(6, -1)
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[0][:3] == ["name", "group", "d0_t0"]
    assert rows[0][-1] == "d3_t31"
    assert [row[0] for row in rows[1:]] == file["names"].tolist()
    np.testing.assert_array_equal(np.array([row[2:] for row in rows[1:]], dtype=np.float32), flat)
    about = json.loads((tmp_path / "out.json").read_text())
    np.testing.assert_array_equal(about["thresholds"], file["thresholds"])
    np.testing.assert_array_equal(about["directions"], file["directions"])
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == rows[0]
    np.testing.assert_array_equal(np.stack([table[name].to_numpy() for name in rows[0][2:]], axis=1), flat)
    assert json.loads(parquet.read_metadata(tmp_path / "out.parquet").metadata[b"eulerscan"]) == about


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet", "parts"])
def test_tables_carry_the_groups(run, folder, ending, tmp_path):
    output = tmp_path / ("out" if ending == "parts" else f"out.{ending}")
    run("transform", folder, "-o", output)
    found = load_transforms(output)
    assert found.groups == [name.rpartition("/")[0] for name in found.names]
    (tmp_path / "t.csv").write_text("name,size\n" + "".join(f"{name},s{i}\n" for i, name in enumerate(found.names[1:])))
    run("transform", folder, "-o", output, "--table", tmp_path / "t.csv", "--label", "size", "--overwrite")
    assert load_transforms(output).groups == ["", *(f"s{i}" for i in range(len(found.names) - 1))]


def test_whole_numbers_stay_whole_in_a_table(run, graphs, tmp_path):
    run("transform", graphs, "-o", tmp_path / "out.csv")
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert all(entry.lstrip("-").isdigit() for row in rows[1:] for entry in row[2:])


def test_two_runs_give_identical_files_and_neighbors_change_nothing(run, folder, tmp_path):
    run("transform", folder, "-o", tmp_path / "a.npz", "--quiet")
    run("transform", folder, "-o", tmp_path / "b.npz", "--quiet")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    run("transform", folder / "1", "-o", tmp_path / "c.npz")
    whole, half = loaded(tmp_path / "a.npz"), loaded(tmp_path / "c.npz")
    chosen = [f"1/{name}" for name in half["names"]]
    assert chosen == whole["names"].tolist()[3:]
    np.testing.assert_array_equal(half["transforms"], whole["transforms"][3:])


def test_files_are_named_as_they_were_given(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    run("transform", "1/3.obj", "0/4.ply", "-o", tmp_path / "out.npz")
    assert loaded(tmp_path / "out.npz")["names"].tolist() == ["0/4.ply", "1/3.obj"]


def test_the_output_of_a_run_is_no_shape_of_the_next(run, graphs):
    run("transform", graphs, "-o", graphs / "out.csv")
    out, err = run("transform", graphs, "-o", graphs / "out.csv", "--overwrite")
    assert "5 of 5 shapes" in out
    assert not err
    out, err = run("transform", graphs / "0.npz", graphs / "1.npz", "-o", graphs / "parts", "--processes", 1)
    run("transform", graphs, "-o", graphs / "parts", "--processes", 1, "--overwrite", status=1)  # the CSV file is none


def test_a_folder_is_not_written_into_itself(run, graphs):
    _, err = run("transform", graphs, "-o", graphs, status=2)
    assert "--output must not be one of the inputs" in err
    assert not (graphs / "manifest.json").exists()


def test_overwriting_removes_what_a_run_wrote_and_nothing_else(run, graphs, tmp_path):
    output = tmp_path / "out"
    run("transform", graphs, "-o", output, "--shards", 3, "--processes", 1)
    (output / "parts" / "mine.txt").write_text("mine")
    run("transform", graphs, "-o", output, "--shards", 2, "--processes", 1, "--overwrite")
    assert {file.name for file in (output / "parts").iterdir()} == {"mine.txt", "part-00000.parquet", "part-00001.parquet"}
    (output / "manifest.json").write_text('{"name": "an app"}')
    _, err = run("transform", graphs, "-o", output, "--overwrite", status=2)
    assert "manifest.json is not a manifest of eulerscan" in err
    assert (output / "parts" / "part-00001.parquet").exists()


def test_shapes_that_are_cut_off_are_counted(run, graphs, tmp_path):
    np.savez(graphs / "far.npz", points=np.array([[0.0, 0], [100, 0]]), edges=np.array([[0], [1]]))
    options = ["--normalize", "none", "--radius", 50, "--processes", 1]
    for _ in range(2):  # a second run, which does nothing, says so too
        _, err = run("transform", graphs, "-o", tmp_path / "out", *options)
        assert err == "warning: 1 shape reaches beyond --radius 50, and what lies there is cut off\n"
    _, err = run("transform", graphs, "-o", tmp_path / "out.npz", "--radius", 0.5)
    assert err.startswith("warning: 6 shapes reach beyond --radius 0.5")
    _, err = run("transform", graphs, "-o", tmp_path / "b.npz", "--normalize", "none", "--radius", 100)
    assert not err


def test_what_cannot_be_read_is_reported_and_left_out(run, graphs, tmp_path):
    (graphs / "bad.off").write_text("OFF\n3 1 0\n0 0 0\n")
    (graphs / "deep.csv").write_text("0,0,0\n1,1,1\n")
    out, err = run("transform", graphs, graphs / "gone.obj", "-o", tmp_path / "out.npz", status=1)
    assert "5 of 8 shapes" in out
    lines = err.splitlines()
    assert len(lines) == 3
    assert "bad.off: file is truncated" in lines[0]
    assert "deep.csv: points of dimension 3, expected 2" in lines[1]
    assert "gone.obj: No such file or directory" in lines[2]
    assert len(loaded(tmp_path / "out.npz")["names"]) == 5
    out, err = run("transform", graphs, "-o", tmp_path / "deep.npz", "--dim", 3, status=1)
    assert "1 of 7 shapes" in out


def test_a_folder_of_parts_is_finished_once(run, graphs, tmp_path):
    (graphs / "bad.off").write_text("OFF\n3 1 0\n0 0 0\n")
    output = tmp_path / "out"
    out, err = run("transform", graphs, "-o", output, "--shards", 3, "--processes", 1, status=1)
    assert "5 of 6 shapes" in out
    assert "skipped bad.off: file is truncated" in err
    rows = list(csv.reader((output / "failures.csv").read_text().splitlines()))
    assert rows[0] == ["name", "reason"]
    assert [row[0] for row in rows[1:]] == ["bad.off"]
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in output.rglob("*.*")}
    assert len(before) == 5
    again, err = run("transform", graphs, "-o", output, status=1)
    assert (again, {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in output.rglob("*.*")}) == (out, before)
    _, err = run("transform", graphs, "-o", output, "--num-directions", 8, status=2)
    assert "num_directions was 32 and is 8. Choose another output, or overwrite" in err
    run("transform", graphs, "-o", output, "--num-directions", 8, "--overwrite", "--processes", 1, status=1)
    assert json.loads((output / "manifest.json").read_text())["shards"] == 1


def test_many_failures_are_listed_in_the_file(run, tmp_path):
    place = tmp_path / "shapes"
    place.mkdir()
    for i in range(30):
        (place / f"{i:02}.csv").write_text("0,0\n" if i == 0 else f"0,0\n1,word{i}\n")
    _, err = run("transform", place, "-o", tmp_path / "out", status=1)
    assert len(err.splitlines()) == 21
    assert "and 9 more" in err
    assert len((tmp_path / "out" / "failures.csv").read_text().splitlines()) == 30


def test_names_with_escape_codes_are_printed_without_effect(run, tmp_path):
    place = tmp_path / "shapes"
    place.mkdir()
    (place / "good.csv").write_text("0,0\n1,0\n")
    (place / "red\x1b[31m.csv").write_text("nothing\n")
    (place / "odd.\x1b[2J").write_text("nothing\n")
    _, err = run("transform", place, "-o", tmp_path / "out.npz", status=1)
    assert "skipped red\\x1b[31m.csv: " in err
    assert "extensions: .\\x1b[2j" in err
    _, more = run("transform", place / "red\x1b[31m.csv", "-o", tmp_path / "two.npz", status=2)
    _, missing = run("plot", tmp_path / "no\x1b[31m.csv", "-o", tmp_path / "a.png", status=2)
    assert "\x1b" not in err + more + missing
    assert "no\\x1b[31m.csv" in missing


@pytest.mark.parametrize("options", [[], ["--dim", 3]], ids=["dimension unknown", "dimension known"])
@pytest.mark.parametrize("name", ["out", "out.npz", "out.csv", "out.parquet"])
def test_if_every_file_fails_that_is_said(run, tmp_path, name, options):
    place = tmp_path / "bad"
    place.mkdir()
    for i in range(3):
        (place / f"{i}.ply").write_bytes(b"ply\nnothing of the kind")
    out, err = run("transform", place, "-o", tmp_path / name, *options, "--quiet", status=2)
    assert [line.partition(":")[0] for line in err.splitlines()] == ["skipped 0.ply", "skipped 1.ply", "skipped 2.ply", "error"]
    assert err.endswith("error: no readable shapes\n")
    assert not out
    assert not (tmp_path / name).is_file()  # nothing in the way of the next try


def test_a_damaged_manifest_is_an_error_and_stays(run, folder, tmp_path):
    run("transform", folder, "-o", tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text("{}")
    for options in ([], ["--overwrite"]):
        _, err = run("transform", folder, "-o", tmp_path / "out", *options, status=2)
        assert err.startswith("error: ")
        assert "manifest.json is not a manifest of eulerscan" in err
    assert (tmp_path / "out" / "manifest.json").read_text() == "{}"


def test_a_command_loads_only_what_it_needs_and_forks_what_is_loaded(folder, tmp_path):
    """A second run needs no kernels; neither run needs trimesh for plain meshes, nor dask, nor scipy."""
    code = """
        import sys
        from eulerscan.cli.main import main
        try:
            main(sys.argv[1:])
        finally:
            print(*sorted({"numba", "trimesh", "dask", "scipy", "matplotlib"} & set(sys.modules)))
    """
    words = ["transform", str(folder), "-o", str(tmp_path / "out"), "--shards", "3", "--processes", "2", "--quiet"]
    for expected in ("numba" if sys.platform == "linux" else "", ""):
        result = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code), *words], capture_output=True, text=True, timeout=300
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() == expected
    assert len(load_transforms(tmp_path / "out").names) == 6


def test_slips_are_named_before_any_work(run, graphs, tmp_path):
    for arguments, text in (
        ([graphs, "-o", tmp_path / "out.txt"], "--output must end with one of .npz, .csv, .parquet, or be a folder"),
        ([graphs, "-o", tmp_path / "out.npz", "--shards", 2], "--shards needs a folder"),
        ([graphs, "-o", tmp_path / "out", "--shards", 0], "--shards must be at least 1"),
        ([graphs, "-o", tmp_path / "out", "--processes", 2, "--scheduler", "tcp://x:1"], "exclude each other"),
        ([graphs, "-o", tmp_path / "out.npz", "--num-thresholds", 0], "num_thresholds must be at least 1"),
        ([graphs, "-o", tmp_path / "out.npz", "--data", "weighted"], "must have the form name=value"),
        ([graphs, "-o", tmp_path / "out.npz", "--data", "weighted=true"], "got weighted"),
        (["-o", tmp_path / "out.npz"], "Name files, or folders"),
        ([tmp_path / "gone", "-o", tmp_path / "out.npz"], "gone: No such file or directory"),
    ):
        _, err = run("transform", *arguments, status=2)
        assert text in err
    assert list(tmp_path.iterdir()) == [graphs]
    run("transform", graphs, "-o", tmp_path / "out.npz")
    _, err = run("transform", graphs, "-o", tmp_path / "out.npz", status=2)
    assert "exists already. Use --overwrite" in err


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
def test_an_output_that_cannot_be_written_is_named_as_it_was_given(run, graphs, tmp_path, ending):
    output = tmp_path / f"{'x' * 300}.{ending}"
    _, err = run("transform", graphs, "-o", output, "--quiet", status=2)
    assert err.startswith(f"error: {output}: ")
    assert "partial" not in err


def test_a_tolerance_is_no_way_to_merge(run, folder, tmp_path):
    _, err = run("transform", folder, "-o", tmp_path / "out.npz", "--data", "merge=0.001", status=2)
    assert "merge must be True or False, got 0.001." in err
    assert list(tmp_path.iterdir()) == [folder]


def test_a_process_forks_only_while_it_has_one_thread_and_no_kernels(monkeypatch):
    command = importlib.import_module("eulerscan.cli.transform")
    monkeypatch.setattr(command.sys, "platform", "linux")
    monkeypatch.setattr(command.threading, "active_count", lambda: 1)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert command._can_fork()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numba", command)
        assert not command._can_fork()
    monkeypatch.setattr(command.threading, "active_count", lambda: 2)
    assert not command._can_fork()


def test_files_dated_1970_are_there(run, tmp_path):
    bad = tmp_path / "bad.obj"
    bad.write_text("v 0 0\n")
    os.utime(bad, (0, 0))
    assert list_shapes([bad, tmp_path / "gone.obj"]).changed == [0, None]
    _, errors = run("transform", bad, "-o", tmp_path / "out.npz", status=2)
    assert "every vertex must have three coordinates" in errors


def test_a_folder_without_shapes_is_named_by_what_it_holds(run, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xlsx").write_text("0,0")
    for command, output in (("transform", "t.npz"), ("distances", "d.csv")):
        _, err = run(command, tmp_path / "in", "-o", tmp_path / output, status=2)
        assert err.endswith(" Found only .xlsx.\n")


def test_files_with_unsupported_extensions_are_counted(run, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "b.vtk", "c.WRL", "d.vtk", "README", ".hidden.vtk"):
        (tmp_path / "in" / name).write_text("0,0\n1,0\n")
    for command, output in (("transform", "t.npz"), ("distances", "d.csv")):
        _, err = run(command, tmp_path / "in", "-o", tmp_path / output)
        assert err == "skipped 4 files with unsupported extensions: (none) .vtk .wrl\n"
        _, err = run(command, tmp_path / "in", "-o", tmp_path / output, "--overwrite", "--quiet")
        assert err == ""


@pytest.mark.parametrize(("output", "word"), [("out", "the same command completes them"), ("out.npz", "nothing was written")])
def test_an_interrupted_command_says_what_is_kept(run, tmp_path, monkeypatch, output, word):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    (tmp_path / "a.csv").write_text("0,0\n1,0\n")
    for name in ("transform_files", "transform_folder"):
        monkeypatch.setattr(importlib.import_module("eulerscan.cli.transform"), name, interrupt)
    _, err = run("transform", tmp_path / "a.csv", "-o", tmp_path / output, status=130)
    assert word in err
    assert err.endswith("interrupted\n")
