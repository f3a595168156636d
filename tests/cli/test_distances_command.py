import csv
import math
import os
import shutil
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

import eulerscan as es
from eulerscan import rotations
from eulerscan.cli import align
from eulerscan.plot.distances import draw_distances


@pytest.fixture
def folder(tmp_path, rng):
    """Rings and paths in the plane; the last ring is the first one rotated by a quarter."""
    place = tmp_path / "shapes"
    place.mkdir()
    angles = np.arange(12) * np.pi / 6
    for i in range(4):
        points = np.stack([np.cos(angles), (1 + i / 4) * np.sin(angles)], axis=1) * (1 + 0.1 * rng.random((12, 1)))
        edges = np.stack([np.arange(12), (np.arange(12) + 1) % 12])
        np.savez(place / f"path-{i}.npz", points=points, edges=edges[:, :-1])
        np.savez(place / f"ring-{i}.npz", points=points, edges=edges)
        if i == 0:
            np.savez(place / "ring-rotated.npz", points=points @ np.array([[0.0, 1], [-1, 0]]), edges=edges)
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
    shapes = es.collate([es.read(folder / name, dtype=torch.float64) for name in names]).normalized("unit_ball")
    heights = es.thresholds(20, dtype=torch.float64)
    curves = es.ect(shapes, es.directions.circle(12, dtype=torch.float64), heights).numpy()[..., :-1]
    gaps = np.abs(curves[:, None] - curves[None])
    step = float(heights[1] - heights[0])
    expected = gaps.max(axis=(2, 3)) if np.isinf(p) else ((gaps**p).mean(axis=2).sum(axis=2) * step) ** (1 / p)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert (found == found.T).all()


def test_rotating_a_shape_changes_no_aligned_distance(run, folder, tmp_path):
    run("distances", folder, "-o", tmp_path / "plain.csv")
    run("distances", folder, "-o", tmp_path / "aligned.csv", "--align")
    names, plain = matrix(tmp_path / "plain.csv")
    _, aligned = matrix(tmp_path / "aligned.csv")
    one, other = names.index("ring-0.npz"), names.index("ring-rotated.npz")
    assert aligned[one, other] < 0.1 * plain[one, other]
    assert (aligned <= plain + 1e-9).all()
    assert (aligned == aligned.T).all()


def test_shapes_in_space_are_rotated_themselves(run, tmp_path):
    box = trimesh.creation.box(extents=(1.0, 1.4, 2.0))
    box.export(tmp_path / "a.ply")
    box.apply_transform(trimesh.transformations.rotation_matrix(0.7, [1, 2, 3]))
    box.export(tmp_path / "b.ply")
    files = [tmp_path / "a.ply", tmp_path / "b.ply"]
    options = ["--num-directions", 12, "--num-thresholds", 12]
    run("distances", *files, "-o", tmp_path / "plain.csv", *options)
    run("distances", *files, "-o", tmp_path / "aligned.csv", "--align", *options)
    assert matrix(tmp_path / "aligned.csv")[1][0, 1] < 0.5 * matrix(tmp_path / "plain.csv")[1][0, 1]
    run("transform", *files, "-o", tmp_path / "t.npz")
    _, err = run("distances", tmp_path / "t.npz", "-o", tmp_path / "d.csv", "--align", status=2)
    assert "--align needs the shapes themselves" in err


@pytest.fixture
def boxes(tmp_path):
    """Four boxes in space, two of them alike."""
    place = tmp_path / "boxes"
    place.mkdir()
    for name, extents in (("a", (1.0, 1.4, 2.0)), ("b", (1.0, 1.0, 3.0)), ("c", (1.0, 2.0, 2.0)), ("d", (1.0, 1.4, 2.0))):
        box = trimesh.creation.box(extents=extents)
        box.apply_transform(trimesh.transformations.rotation_matrix(ord(name), [1, 2, 3]))
        box.export(place / f"{name}.ply")
    return place


@pytest.mark.parametrize("divide_by", ["vertices", "simplices", "peak"])
def test_shapes_in_space_are_divided_however_they_are_rotated(divide_by, run, tmp_path):
    rng = np.random.default_rng(0)
    few = rng.normal(size=(30, 3)) * [1, 2, 3]
    (tmp_path / "clouds").mkdir()
    for name, points in (("few", few), ("rotated", few[:, [1, 2, 0]]), ("many", rng.normal(size=(300, 3)) * [3, 2, 1])):
        np.savetxt(tmp_path / "clouds" / f"{name}.csv", points, delimiter=",")
    options = ["--divide-by", divide_by, "--num-directions", 12, "--num-thresholds", 12]
    run("distances", tmp_path / "clouds", "-o", tmp_path / "plain.csv", *options)
    run("distances", tmp_path / "clouds", "-o", tmp_path / "aligned.csv", "--align", *options)
    names, plain = matrix(tmp_path / "plain.csv")
    _, aligned = matrix(tmp_path / "aligned.csv")
    assert names == ["few.csv", "many.csv", "rotated.csv"]
    assert aligned[0, 2] < 1e-6
    assert (aligned <= plain + 1e-6).all()
    assert 0 < aligned[0, 1] < 1  # as plain ones are: curves end at 1


def test_a_rotated_shape_is_divided_by_the_same_peak(run, tmp_path):
    """Where that of few directions depends on how the shape lies, which that of a cloud never does."""
    rng = np.random.default_rng(3)
    path, edges = rng.normal(size=(60, 3)).cumsum(axis=0), np.stack([np.arange(59), np.arange(1, 60)])
    settings = ["--divide-by", "peak", "--num-directions", 32, "--num-thresholds", 32]
    (tmp_path / "paths").mkdir()
    for name, rotation in zip("ab", rotations.uniform(5, 3)[[0, 3]].numpy(), strict=True):
        np.savez(tmp_path / "paths" / f"{name}.npz", points=path @ rotation.T, edges=edges)
    run("distances", tmp_path / "paths", "-o", tmp_path / "aligned.csv", "--align", *settings)
    assert matrix(tmp_path / "aligned.csv")[1].max() < 1e-6


class Stopped:
    """Aligns so many pairs, and is then interrupted."""

    def __init__(self, monkeypatch):
        self.align, self.pairs, self.done = align.align, math.inf, 0
        monkeypatch.setattr(align, "align", self)

    def __call__(self, *views, **options):
        if self.done == self.pairs:
            raise KeyboardInterrupt
        self.done += 1
        return self.align(*views, **options)

    def after(self, pairs):
        self.pairs, self.done = pairs, 0


ALIGNED = ["--align", "--num-directions", 12, "--num-thresholds", 12]


def test_distances_in_space_go_on_where_they_were_stopped(run, boxes, tmp_path, monkeypatch):
    calls, output = Stopped(monkeypatch), tmp_path / "out" / "d.csv"
    out, _ = run("distances", boxes, "-o", output, *ALIGNED)
    assert "resuming" not in out
    whole = output.read_bytes()
    assert [path.name for path in output.parent.iterdir()] == ["d.csv"]
    output.unlink()
    calls.after(2)
    _, err = run("distances", boxes, "-o", output, *ALIGNED, status=130)
    assert "2 of 6 pairs are saved" in err
    assert not output.exists()
    calls.after(3)
    out, err = run("distances", boxes, "-o", output, *ALIGNED, status=130)
    assert "resuming with 2 of 6 pairs" in out
    assert "5 of 6 pairs are saved" in err
    calls.after(math.inf)
    out, _ = run("distances", boxes, "-o", output, *ALIGNED)
    assert "resuming with 5 of 6 pairs" in out
    assert calls.done == 1
    assert output.read_bytes() == whole
    assert [path.name for path in output.parent.iterdir()] == ["d.csv"]


def test_a_picture_that_fails_costs_no_pairs(run, boxes, tmp_path, monkeypatch):
    calls, blocked = Stopped(monkeypatch), tmp_path / "file"
    blocked.write_text("")
    _, err = run("distances", boxes, "-o", tmp_path / "d.csv", "--plot", blocked / "d.png", *ALIGNED, status=2)
    assert "Not a directory" in err or "exists" in err
    calls.after(0)
    run("distances", boxes, "-o", tmp_path / "d.csv", "--plot", tmp_path / "d.png", "--overwrite", *ALIGNED)
    assert (tmp_path / "d.png").exists()
    assert not list(tmp_path.glob(".*"))


def test_what_is_stopped_before_its_first_pair_keeps_none(run, boxes, tmp_path, monkeypatch):
    Stopped(monkeypatch).after(0)
    _, err = run("distances", boxes, "-o", tmp_path / "d.csv", *ALIGNED, status=130)
    assert "saved" not in err


@pytest.mark.parametrize("change", ["p", "directions", "touched", "unreadable", "more"])
def test_pairs_of_other_settings_or_files_are_not_used(change, run, boxes, tmp_path, monkeypatch):
    calls, arguments = Stopped(monkeypatch), [boxes, "-o", tmp_path / "d.csv", *ALIGNED]
    calls.after(4)
    run("distances", *arguments, status=130)
    calls.after(math.inf)
    status, pairs = 0, 6
    if change == "p":
        arguments += ["--p", 1]
    elif change == "directions":
        arguments[arguments.index("--num-directions") + 1] = 13
    elif change == "touched":
        os.utime(boxes / "b.ply", (1, 1))
    elif change == "unreadable":
        (boxes / "b.ply").write_text("words")
        status, pairs = 1, 3
    else:
        shutil.copy(boxes / "a.ply", boxes / "e.ply")
        pairs = 10
    out, _ = run("distances", *arguments, status=status)
    assert "resuming" not in out
    assert calls.done == pairs
    assert not list(tmp_path.glob(".*"))


def test_a_call_that_was_killed_is_gone_on_with(run, boxes, tmp_path, monkeypatch):
    """By a signal that nobody can answer, as a cluster sends it."""
    code = f"""
        import os, signal
        from eulerscan.cli.main import main
        from eulerscan.cli import align as module
        align, done = module.align, []
        def deadly(*views, **options):
            if len(done) == 3:
                os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
            done.append(1)
            return align(*views, **options)
        module.align = deadly
        main({list(map(str, ["distances", boxes, "-o", tmp_path / "d.csv", *ALIGNED]))!r})
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=300).returncode != 0
    calls = Stopped(monkeypatch)
    out, _ = run("distances", boxes, "-o", tmp_path / "d.csv", *ALIGNED)
    assert "resuming with 3 of 6 pairs" in out
    assert calls.done == 3
    names, found = matrix(tmp_path / "d.csv")
    assert found[names.index("a.ply"), names.index("d.ply")] < 1e-3
    assert not list(tmp_path.glob(".*"))


def test_transforms_that_are_made_need_not_be_made_again(run, folder, tmp_path):
    run("distances", folder, "-o", tmp_path / "files.csv")
    for made, options in (("t.npz", []), ("t.csv", []), ("t.parquet", []), ("parts", ["--shards", 2, "--processes", 1])):
        run("transform", folder, "-o", tmp_path / made, *options)
        run("distances", tmp_path / made, "-o", tmp_path / "made.csv", "--overwrite")
        assert (tmp_path / "made.csv").read_bytes() == (tmp_path / "files.csv").read_bytes()
    _, err = run("distances", tmp_path / "t.npz", "-o", tmp_path / "d.csv", "--num-directions", 8, status=2)
    assert "holds transforms" in err
    _, err = run("distances", folder / "ring-0.npz", "-o", tmp_path / "d.csv", status=2)
    assert "ring-0.npz is not an output of `eulerscan transform`" in err


def test_clouds_are_compared_whatever_their_sizes(run, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "clouds").mkdir()
    for name, count, length in (("long-few", 100, 4), ("long-many", 400, 4), ("round", 100, 1)):
        np.savetxt(tmp_path / "clouds" / f"{name}.csv", rng.normal(size=(count, 3)) * [1, 1, length], delimiter=",")
    _, err = run("distances", tmp_path / "clouds", "-o", tmp_path / "plain.csv")
    assert "the point clouds have 100 to 400 points" in err
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
    assert "is not finished: it has 1 of 2 parts" in err


def test_if_no_shape_fits_the_reasons_are_said(run, folder, tmp_path):
    _, err = run("distances", folder, "-o", tmp_path / "d.csv", "--dim", 4, status=2)
    assert "expected 4" in err
    assert err.endswith("error: no readable shapes\n")


def test_matrix_and_picture_are_no_shapes_of_the_next_run(run, folder):
    arguments = [folder, "-o", folder / "d.csv", "--plot", folder / "d.png"]
    run("distances", *arguments)
    out, err = run("distances", *arguments, "--overwrite")
    assert "9 x 9 distances" in out
    assert not err


def test_what_cannot_be_aligned_is_said_before_any_transform(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(es.ECTConfig, "transform", lambda *a: pytest.fail("a shape was transformed"))
    _, err = run("distances", folder, "-o", tmp_path / "d.csv", "--align", "--variant", "sect", status=2)
    assert "leave out --variant" in err


def test_the_picture_puts_similar_shapes_side_by_side(run, folder, tmp_path):
    out, _ = run("distances", folder, "-o", tmp_path / "d.csv", "--plot", tmp_path / "d.png")
    assert "9 x 9 distances; figure in" in out
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


def test_folders_are_groups_and_the_order_is_written(run, folder, tmp_path):
    for kind in ("ring", "path"):
        (folder / kind).mkdir()
        for file in folder.glob(f"{kind}-*.npz"):
            file.rename(folder / kind / file.name)
    out, _ = run("distances", folder, "-o", tmp_path / "d.csv", "--plot", tmp_path / "d.pdf")
    assert "its order in" in out
    rows = list(csv.DictReader((tmp_path / "d.order.csv").read_text().splitlines()))
    assert sorted(row["name"] for row in rows) == sorted(matrix(tmp_path / "d.csv")[0])
    assert all(row["group"] == row["name"].split("/")[0] for row in rows)
    assert sum(a["group"] != b["group"] for a, b in pairwise(rows)) == 1
    (tmp_path / "shapes.csv").write_text(
        "name,size\n" + "".join(f"{row['name']},{'ab'[i % 2]}\n" for i, row in enumerate(rows))
    )
    table = ["--table", tmp_path / "shapes.csv", "--label", "size"]
    run("distances", folder, "-o", tmp_path / "t.csv", "--plot", tmp_path / "t.pdf", *table)
    labeled = list(csv.DictReader((tmp_path / "t.order.csv").read_text().splitlines()))
    assert [row["group"] for row in labeled] == ["ab"[i % 2] for i in range(9)]
    _, err = run("distances", folder, "-o", tmp_path / "e.csv", "--plot", tmp_path / "d.svg", status=2)
    assert "d.order.csv exists already" in err
    _, err = run("distances", folder, "-o", tmp_path / "f.order.csv", "--plot", tmp_path / "f.png", status=2)
    assert "--output must differ" in err


def test_one_shape_and_many_shapes_can_be_drawn():
    draw_distances(torch.zeros(1, 1), ["alone"]).draw_without_rendering()
    points = torch.arange(100.0)
    figure = draw_distances((points[:, None] - points).abs(), [f"shape {i}" for i in range(100)])
    figure.draw_without_rendering()
    assert figure.axes[1].get_xlabel() == "100 shapes, in the order of the dendrogram"


def test_slips_are_named(run, folder, tmp_path):
    for arguments, text in (
        (["-o", tmp_path / "d.txt"], "--output must end with .csv"),
        (["-o", tmp_path / "d.csv", "--plot", tmp_path / "d.doc"], "--plot must end with one of .png"),
        (["-o", tmp_path / "d.csv", "--p", 0.5], "p must be at least 1"),
        (["-o", tmp_path / "d.csv", "--align", "--variant", "sect"], "leave out --variant"),
    ):
        _, err = run("distances", folder, *arguments, status=2)
        assert text in err
    assert list(tmp_path.iterdir()) == [folder]
    (folder / "bad.csv").write_text("words\n")
    _, err = run("distances", folder, "-o", tmp_path / "d.csv", status=1)
    assert "skipped bad.csv" in err
    assert len(matrix(tmp_path / "d.csv")[0]) == 9


def test_a_table_of_points_with_names_is_no_table_of_transforms(run, tmp_path):
    (tmp_path / "landmarks.csv").write_text("name,x,y\nnose,0,0\neye,1,2\n")
    run("distances", tmp_path / "landmarks.csv", "-o", tmp_path / "d.csv")
    assert matrix(tmp_path / "d.csv")[1].tolist() == [[0]]


def test_shapes_that_the_grid_does_not_tell_apart_are_named(run, folder, tmp_path):
    shutil.copy(folder / "ring-0.npz", folder / "ring-copy.npz")
    _, err = run("distances", folder, "-o", tmp_path / "d.csv")
    assert "1 pair has distance 0, such as ring-0.npz and ring-copy.npz." in err
