import numpy as np
import trimesh


def test_a_page_is_written(run, tmp_path):
    trimesh.creation.box().export(tmp_path / "box.ply")
    out, _ = run("explore", tmp_path / "box.ply", "-o", tmp_path / "box.html")
    assert "open it in a browser" in out
    text = (tmp_path / "box.html").read_text(encoding="utf-8")
    assert "<title>box.ply · eulerscan</title>" in text
    assert "8 vertices, 18 edges, 12 triangles; in space, centered and scaled to the unit ball" in text
    assert "{{" not in text.split('<script type="application/json"')[0]
    _, err = run("explore", tmp_path / "box.ply", "-o", tmp_path / "box.html", status=2)
    assert "exists already. Use --overwrite" in err
    out, _ = run("explore", tmp_path / "box.ply", "-o", tmp_path / "box.html", "--overwrite", "--quiet", "--title", "a box")
    assert out == ""
    assert "a box" in (tmp_path / "box.html").read_text(encoding="utf-8")


def test_the_axis_that_is_up_is_guessed_and_said(run, tmp_path):
    for extension in ("obj", "ply"):
        trimesh.creation.box().export(tmp_path / f"box.{extension}")
    for name, up, text in (("box.obj", "auto", "y up"), ("box.obj", "z", "z up"), ("box.ply", "auto", "z up")):
        run("explore", tmp_path / name, "-o", tmp_path / "box.html", "--up", up, "--overwrite")
        assert f"drawn with {text}" in (tmp_path / "box.html").read_text(encoding="utf-8")


def test_two_runs_write_the_same_page(run, tmp_path):
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).normal(size=(9, 2)))
    for name in ("a.html", "b.html"):
        run("explore", tmp_path / "cloud.npy", "-o", tmp_path / name, "--normalize", "none")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_shape_can_be_centered_and_keep_its_size(run, tmp_path):
    np.save(tmp_path / "pair.npy", np.array([[100.0, 7.0], [104.0, 7.0]]))
    run("explore", tmp_path / "pair.npy", "-o", tmp_path / "pair.html", "--normalize", "center")
    text = (tmp_path / "pair.html").read_text(encoding="utf-8")
    assert "2 vertices; in the plane, centered, in the units of the file" in text
    assert '"radius": 2.2' in text  # a tenth more than half of their distance


def test_slips_are_named(run, tmp_path):
    np.save(tmp_path / "four.npy", np.zeros((3, 4)))
    np.save(tmp_path / "cloud.npy", np.zeros((3, 2)))
    for arguments, text in (
        (["cloud.npy", "-o", "page.pdf"], "--output must end with one of .html, .htm, got 'page.pdf'"),
        (["none.ply", "-o", "page.html"], "none.ply"),
        (["four.npy", "-o", "page.html"], "got points of dimension 4"),
        (["cloud.npy", "-o", "page.html", "--num-thresholds", 0], "num_thresholds must be at least 1, got 0"),
        (["cloud.npy", "-o", "page.html", "--radius", -1], "radius must be positive and finite, got -1"),
        (["cloud.npy", "-o", "page.html", "--data", "weighted=true"], "got weighted"),
    ):
        shape, flag, page, *rest = arguments
        assert text in run("explore", tmp_path / shape, flag, tmp_path / page, *rest, status=2)[1]
    assert not list(tmp_path.glob("*.html"))
