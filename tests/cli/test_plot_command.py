from pathlib import Path

import numpy as np
import pytest
import trimesh
from PIL import Image

from eulerscan.cli.plot import _titles


@pytest.fixture
def shapes(tmp_path, rng):
    """A graph and a weighted image in the plane, a mesh and a cloud in space."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    points, edges = rng.normal(size=(6, 2)), np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    np.savez(folder / "graph.npz", points=points, edges=edges)
    Image.fromarray(rng.integers(0, 255, (4, 5), dtype=np.uint8)).save(folder / "image.png")
    trimesh.creation.icosphere(subdivisions=2).export(folder / "sphere.ply")
    np.savetxt(folder / "cloud.csv", rng.normal(size=(20, 3)), delimiter=",")
    return folder


@pytest.mark.parametrize(
    ("name", "ending", "beginning"),
    [("graph.npz", ".png", b"\x89PNG"), ("sphere.ply", ".pdf", b"%PDF"), ("cloud.csv", ".svg", b"<?xml")],
)
def test_one_shape_is_drawn(name, ending, beginning, run, shapes, tmp_path):
    figure = tmp_path / f"figure{ending}"
    out, _ = run("plot", shapes / name, "-o", figure, "--dpi", 60, "--num-directions", 12, "--num-thresholds", 10)
    assert figure.read_bytes().startswith(beginning)
    assert "1 shape" in out


def test_several_shapes_get_a_row_each(run, shapes, tmp_path):
    heights = []
    for names in (["graph.npz"], ["graph.npz", "sphere.ply", "cloud.csv"]):
        figure = tmp_path / f"{len(names)}.png"
        run("plot", *(shapes / name for name in names), "-o", figure, "--dpi", 40, "--title", "costs $5", "--quiet")
        with Image.open(figure) as image:
            heights.append(image.height)
    assert heights[1] > 2.5 * heights[0]


def test_weights_scale_and_units_reach_the_figure(run, shapes, tmp_path):
    figure = tmp_path / "figure.svg"
    options = ["--data", "weighted=true", "--scale", 20, "--normalize", "none", "--radius", 6.5]
    out, _ = run("plot", shapes / "image.png", "-o", figure, *options, "--quiet")
    assert out == ""
    text = figure.read_text()
    for label in ("weighted Euler characteristic", "threshold (units of the file)", "−6.5 to 6.5", "polar view", "weight"):
        assert f"<!-- {label} -->" in text or f"{label} -->" in text


def test_files_that_usually_have_y_up_are_drawn_so(run, shapes, tmp_path):
    trimesh.creation.cone(1, 2).export(shapes / "cone.obj")
    options = ["--dpi", 40, "--num-directions", 12, "--num-thresholds", 10, "--overwrite"]
    for name, up, title, said in (
        ("cone.obj", "auto", "y", True),
        ("cone.obj", "z", "z", False),
        ("sphere.ply", "auto", "z", False),
    ):
        out, _ = run("plot", shapes / name, "-o", tmp_path / "figure.svg", "--up", up, *options)
        assert ("--up z" in out) == said
        assert f"shape, {title} up, grid" in (tmp_path / "figure.svg").read_text()


def test_two_runs_write_the_same_file(run, shapes, tmp_path):
    figures = [tmp_path / f"{i}.svg" for i in range(2)]
    for figure in figures:
        run("plot", shapes / "graph.npz", "-o", figure)
    assert figures[0].read_bytes() == figures[1].read_bytes()


def test_what_cannot_be_read_is_left_out_and_named(run, shapes, tmp_path):
    (shapes / "broken.ply").write_text("ply\nformat nonsense")
    np.save(shapes / "four.npy", np.zeros((3, 4)))
    files = [shapes / name for name in ("broken.ply", "four.npy", "graph.npz")]
    out, err = run("plot", *files, "-o", tmp_path / "figure.png", "--dpi", 50, status=1)
    assert "1 shape" in out
    assert "skipped" in err
    assert "broken.ply" in err
    assert "dimension 4, expected 2 or 3" in err
    run("plot", shapes / "broken.ply", "-o", tmp_path / "none.png", status=2)
    assert not (tmp_path / "none.png").exists()


def test_slips_are_named_before_any_work(run, shapes, tmp_path):
    graph, figure = shapes / "graph.npz", tmp_path / "figure.png"
    copies = [shapes / f"{i}.npz" for i in range(12)]
    for copy in copies:
        copy.write_bytes(graph.read_bytes())
    for options, text in (
        (["-o", tmp_path / "figure.doc"], "--output must end with one of .png, .pdf, .svg, got 'figure.doc'"),
        (["-o", figure, "--num-directions", 0], "num_directions must be at least 1, got 0"),
        (["-o", figure, "--scale", -1], "scale must be positive, got -1"),
        (["-o", figure, "--radius", 0], "radius must be positive and finite, got 0"),
        (["-o", figure, "--data", "weighted"], "must have the form name=value"),
        ([*copies, "-o", figure], "1 to 12 shapes, one per row, got 13"),
    ):
        assert text in run("plot", graph, *options, status=2)[1]
    assert not figure.exists()
    figure.touch()
    assert "exists already. Use --overwrite" in run("plot", graph, "-o", figure, status=2)[1]
    run("plot", graph, "-o", figure, "--overwrite", "--dpi", 50)
    assert figure.stat().st_size


def test_a_picture_among_shapes_is_none_of_them(run, tmp_path):
    (tmp_path / "b.csv").write_text("0,0\n1,0\n0,1\n")
    run("plot", tmp_path / "b.csv", "-o", tmp_path / "a.png", "--dpi", 50)
    out, err = run("transform", tmp_path, "-o", tmp_path / "out.npz", status=1)
    assert "1 of 2 shapes" in out
    assert err == "skipped a.png: file is an output of eulerscan, not a shape.\n"


def test_a_single_point_is_drawn_too(run, tmp_path):
    (tmp_path / "point.csv").write_text("3,4\n")
    run("plot", tmp_path / "point.csv", "-o", tmp_path / "figure.png", "--dpi", 50)
    with Image.open(tmp_path / "figure.png") as image:
        assert len(image.getcolors(2**24)) > 1


def test_rows_of_files_with_one_name_are_told_apart_by_their_folders():
    assert _titles([Path("a/0.ply"), Path("b/1.ply")]) == ["0.ply", "1.ply"]
    assert _titles([Path("a/0.ply"), Path("b/0.ply")]) == ["a/0.ply", "b/0.ply"]
