"""``eulerscan compare``: groups in folders and tables, the report, bad input, and resuming."""

import csv
import json
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

import eulerscan as es
from eulerscan.analysis import comparison, means
from eulerscan.cli.main import main
from eulerscan.convert import from_outline
from eulerscan.plot import draw_means
from eulerscan.plot.report import summary, write_report

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")


SMALL = ["--num-directions", "12", "--num-thresholds", "16", "--permutations", "99", "--folds", "3", "--quiet"]


@pytest.fixture(autouse=True)
def quick_fits(monkeypatch):
    """How well mean shapes are fitted is another test."""
    monkeypatch.setattr(means, "fit_shape", partial(means.fit_shape, steps=20))


def run(*words) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *map(str, words), *SMALL])
    return ended.value.code or 0


def ellipse(width: float, rng: np.random.Generator, count: int = 24) -> np.ndarray:
    angle = 2 * np.pi * np.arange(count) / count
    points = np.stack([np.cos(angle), width * np.sin(angle)], axis=1)
    return points + 0.02 * rng.normal(size=points.shape)


def folder_of(path, widths=(0.4, 0.6), number=6):
    rng = np.random.default_rng(0)
    for name, width in zip(("thin", "wide", "round"), widths, strict=False):
        (path / name).mkdir(parents=True)
        for i in range(number):
            np.savetxt(path / name / f"{i}.csv", ellipse(width, rng), delimiter=",")
    return path


def results(output):
    return json.loads((output / "results.json").read_text("utf-8"))


@pytest.mark.parametrize("dim", [1, 4])
def test_shapes_that_cannot_be_drawn_have_a_report_without_mean_shapes(tmp_path, dim):
    rng = np.random.default_rng(0)
    for name, width in (("thin", 0.5), ("wide", 2.0)):
        (tmp_path / "shapes" / name).mkdir(parents=True)
        for i in range(4):
            np.save(tmp_path / "shapes" / name / f"{i}.npy", rng.uniform(size=(12, dim)) ** width)
    output = tmp_path / "out"
    assert run(tmp_path / "shapes", "-o", output, "--no-classify") == 0
    assert "permanova" in results(output)
    page = (output / "report.html").read_text("utf-8")
    assert "PERMANOVA" in page
    assert "Mean shapes" not in page
    assert not (output / "means.html").exists()
    assert run(tmp_path / "shapes", "-o", tmp_path / "where", "--where", "--no-classify") == 2
    assert not (tmp_path / "where").exists()


def test_a_report_of_two_folders(tmp_path):
    output = tmp_path / "out"
    assert run(folder_of(tmp_path / "shapes"), "--data", "outline=true", "-o", output) == 0
    found = results(output)
    assert found["groups"] == {"thin": 6, "wide": 6}
    assert found["permanova"]["p_value"] == 0.01
    assert found["permanova"]["permutations"] == 99
    assert found["permanova"]["r2"] > 0.3
    assert found["smallest_p_value"] == 0.01
    assert found["pairwise"][0]["groups"] == ["thin", "wide"]
    assert found["classification"]["accuracy"] > 0.9
    assert found["classification"]["majority"] == 0.5
    assert found["classification"]["folds"] == 3
    page = (output / "report.html").read_text("utf-8")
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "PERMANOVA p = 0.01" in page
    files = {path.name for path in output.rglob("*") if path.is_file()}
    assert {"groups.png", "groups.pdf", "means.png", "confusion.pdf", "shapes.csv", "distances.csv", "pairwise.csv"} <= files
    assert not (output / ".stages").exists()
    interactive = (output / "means.html").read_text("utf-8")
    places = [interactive.index(f"mean of {name}") for name in ('thin"', 'wide"', 'all shapes"')]
    assert places == sorted(places)
    assert len((output / "distances.csv").read_text("utf-8").splitlines()) == 13
    shares = found["classifications"]
    assert f"from shape {100 * shares['shape']['accuracy']:.1f} % (" in page
    assert f"from shape and size {100 * shares['shape and size']['accuracy']:.1f} % (" in page


def test_the_pair_of_two_groups_and_the_shares_of_the_tables(tmp_path):
    output = tmp_path / "out"
    assert run(folder_of(tmp_path / "shapes", widths=(0.4, 0.41)), "--data", "outline=true", "--no-means", "-o", output) == 0
    found = results(output)
    assert found["pairwise"][0]["p_value"] == found["permanova"]["p_value"]
    [pair] = csv.DictReader((output / "pairwise.csv").read_text("utf-8").splitlines())
    assert float(pair["p-value"]) == found["permanova"]["p_value"]
    assert (pair["shapes"], pair["other shapes"]) == ("6", "6")
    rows = list(csv.DictReader((output / "classification.csv").read_text("utf-8").splitlines()))
    assert [row["from"] for row in rows] == list(found["classifications"])
    for row in rows:
        own = found["classifications"][row["from"]]
        for column in ("accuracy", "balanced", "majority"):
            assert float(row[column]) == pytest.approx(own[column], rel=1e-5)
        assert [float(row[f"{end} bound"]) for end in ("lower", "upper")] == pytest.approx(own["interval"], rel=1e-5)
        assert own["interval"][0] < own["accuracy"] <= own["interval"][1] <= 1
    assert f"<td>{100 * float(rows[0]['accuracy']):.1f} %</td>" in (output / "report.html").read_text("utf-8")


def test_where_leaves_out_groups_of_one(tmp_path, capsys):
    shapes = folder_of(tmp_path / "shapes", widths=(0.4, 0.6, 0.9), number=4)
    for i in range(1, 4):
        (shapes / "round" / f"{i}.csv").unlink()
    words = ("--data", "outline=true", "--no-means", "--no-classify", "--where")
    assert run(shapes, *words, "-o", tmp_path / "out") == 0
    assert (tmp_path / "out" / "figures" / "evidence.png").exists()
    assert "Where the groups differ" in (tmp_path / "out" / "report.html").read_text("utf-8")
    for i in range(1, 4):
        (shapes / "thin" / f"{i}.csv").unlink()
    assert run(shapes, *words, "-o", tmp_path / "again") == 2
    assert "--where" in capsys.readouterr().err


def test_a_table_gives_groups_covariates_traits_and_blocks(tmp_path):
    rng = np.random.default_rng(1)
    header = ["name", *(f"{axis}{i}" for i in range(1, 13) for axis in "xy")]
    widths = np.linspace(0.3, 0.9, 12)
    rows = [[f"s{i:02}", *ellipse(width, rng, 12).ravel()] for i, width in enumerate(widths)]
    (tmp_path / "wings.csv").write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]), encoding="utf-8")
    table = ["id,sex,age,length,site", *(f"s{i:02},{'mf'[i % 2]},{i if i != 3 else ''},{i * i},{i // 4}" for i in range(12))]
    (tmp_path / "table.csv").write_text("\n".join([*table, "s99,m,1,1,1"]), encoding="utf-8")
    output = tmp_path / "out"
    words = ["--table", tmp_path / "table.csv", "--label", "sex", "--data", "outline=true", "--no-means", "-o", output]
    code = run(tmp_path / "wings.csv", *words, "--covariates", "age", "--traits", "length", "--strata", "site")
    found = results(output)
    assert code == 1  # for the row that is no shape
    assert "'s99'" in found["left_out"][0]["reason"]
    assert found["regressions"]["age"]["p_value"] <= 0.05
    assert found["regressions"]["age"]["r2"] > 0.5
    assert any("1 shape has no age, and is left out" in remark for remark in found["remarks"])
    assert list(found["classifications"]) == ["shape", "shape and size", "traits", "shape and traits"]
    assert found["classification"]["uses"] == "shape and traits"
    assert found["strata"] is True


def test_a_covariate_named_size_is_tested_beside_the_sizes_of_the_shapes():
    rng = np.random.default_rng(0)
    outlines = [torch.from_numpy((1 + i % 5) * ellipse(0.3 + 0.05 * i, rng)) for i in range(12)]
    options = {"permutations": 99, "classification": False, "means": False, "progress": False}
    body = {"size": [float(i) for i in range(12)]}
    found = comparison.compare(from_outline(outlines), ["a", "b"] * 6, covariates=body, **options)
    assert found.regressions["size"].r2 > 0.5 > found.regressions["centroid size"].r2
    assert any(": size p = 0.01 (" in line and "; centroid size p = " in line for line in summary(found))
    with pytest.raises(ValueError, match="covariates .* 'centroid size'"):
        comparison.compare(from_outline(outlines), ["a", "b"] * 6, covariates={"centroid size": body["size"]}, **options)


@pytest.mark.parametrize("folded", [False, True])
def test_meshes_that_fold_are_marked(tmp_path, monkeypatch, folded):
    def push_the_top(values, template, config):
        points = template.points.clone()
        points[2, 2] = -2.0 if folded else 0.5
        return template.with_points(points)

    monkeypatch.setattr(means, "fit_shape", push_the_top)
    corners = torch.cat([torch.eye(3), -torch.eye(3)]).double()
    triangles = torch.tensor([[a, b, c] for a in (0, 3) for b in (1, 4) for c in (2, 5)]).T
    octahedra = [es.Complex(corners * torch.tensor([1, 1, 1 + 0.1 * i]), [triangles]).closure() for i in range(6)]
    found = comparison.compare(es.collate(octahedra), "aaabbb", permutations=9, classification=False, progress=False)
    number = 4 if folded else 0
    assert found.folded_means == ({"a": number, "b": number} if folded else {})
    assert {extreme.folded for extreme in found.extremes} == {number}
    assert {"(folded)" in name for name in found.warps} == {folded}
    titles = [ax.get_title() for ax in draw_means(found).axes]
    assert {title.endswith("(4 of 8 triangles fold)") for title in titles} == {folded}
    assert ("Triangles fold where" in write_report(found, tmp_path).read_text("utf-8")) == folded


def test_bad_files_are_named_and_left_out(tmp_path, capsys):
    shapes = folder_of(tmp_path / "shapes")
    (shapes / "thin" / "broken.csv").write_text("1,2\nthree,four\n", encoding="utf-8")
    (shapes / "wide" / "nan.csv").write_text("1,2\nnan,4\n", encoding="utf-8")
    (shapes / "wide" / "constant.csv").write_text("1,2\n1,2\n1,2\n", encoding="utf-8")
    (shapes / "alone.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    output = tmp_path / "out"
    assert run(shapes, "--data", "outline=true", "--no-classify", "--no-means", "-o", output) == 1
    page, errors = (output / "report.html").read_text("utf-8"), capsys.readouterr().err
    for name in ("broken.csv", "nan.csv", "constant.csv", "alone.csv"):
        assert name in page
        assert name in errors
    assert results(output)["groups"] == {"thin": 6, "wide": 6}


def test_many_files_with_the_same_reason_are_one_line(tmp_path, capsys):
    shapes = folder_of(tmp_path / "shapes", number=3)
    for i in range(9):
        (shapes / "wide" / f"constant{i}.csv").write_text("1,2\n1,2\n1,2\n", encoding="utf-8")
    assert run(shapes, "--no-classify", "--no-means", "-o", tmp_path / "out") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("skipped 9 files, ")
    assert line.endswith("constant2.csv, ...: all points coincide.")
    assert len(results(tmp_path / "out")["left_out"]) == 9


def test_a_group_of_one_is_reported(tmp_path):
    shapes = folder_of(tmp_path / "shapes", widths=(0.4, 0.6, 0.9), number=5)
    for i in range(1, 5):
        (shapes / "round" / f"{i}.csv").unlink()
    output = tmp_path / "out"
    assert run(shapes, "--data", "outline=true", "--no-means", "-o", output) == 0
    found = results(output)
    assert "round has one shape only" in found["remarks"][0]
    assert found["classification"]["groups"] == ["thin", "wide"]
    assert "round" not in found["permdisp"]["means"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("one group", "at least two groups"),
        ("dimensions", "same dimension, got dimension 2 in 3, such as"),
        ("flat", "No shape has a group"),
    ],
)
def test_input_that_cannot_be_compared(tmp_path, capsys, change, named):
    shapes = folder_of(tmp_path / "shapes", widths=(0.4,) if change == "one group" else (0.4, 0.6), number=3)
    if change == "dimensions":
        for path in (shapes / "wide").iterdir():
            path.write_text("1,2,3\n4,5,6\n", encoding="utf-8")
    if change == "flat":
        for path in sorted(shapes.rglob("*.csv")):
            path.rename(shapes / f"{path.parent.name}-{path.name}")
    assert run(shapes, "-o", tmp_path / "out") == 2
    assert named in capsys.readouterr().err


def test_groups_of_different_kinds_are_reported(tmp_path):
    shapes = folder_of(tmp_path / "shapes", number=4)
    for path in (shapes / "wide").iterdir():
        points = np.loadtxt(path, delimiter=",")
        count = len(points)
        edges = np.stack([np.arange(count), (np.arange(count) + 1) % count])
        np.savez(path.with_suffix(".npz"), points=points, edges=edges)
        path.unlink()
    output = tmp_path / "out"
    assert run(shapes, "--no-classify", "--no-means", "-o", output) == 0
    assert "differ in kind" in results(output)["remarks"][0]


def test_options_that_need_a_table(tmp_path, capsys):
    assert run(folder_of(tmp_path / "shapes", number=3), "--covariates", "age", "-o", tmp_path / "out") == 2
    assert "--table" in capsys.readouterr().err


def test_an_existing_report_is_not_replaced_unless_asked(tmp_path, capsys):
    shapes, output = folder_of(tmp_path / "shapes", number=3), tmp_path / "out"
    words = (shapes, "--no-classify", "--no-means", "-o", output)
    assert run(*words) == 0
    assert run(*words) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(*words, "--overwrite") == 0


def test_a_killed_command_resumes(tmp_path, monkeypatch, capsys):
    shapes, output = folder_of(tmp_path / "shapes"), tmp_path / "out"
    words = (shapes, "--data", "outline=true", "-o", output)

    def killed(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(means, "fit_shape", killed)
        assert run(*words) == 130
    assert "the same command resumes" in capsys.readouterr().err
    stored = {path.name for path in (output / ".stages").iterdir()}
    assert sum(name.startswith("fold-") for name in stored) == 15
    assert not (output / "report.html").exists()
    with monkeypatch.context() as patched:
        patched.setattr(comparison, "shape_features", killed)  # not computed again
        assert run(*words) == 0
    assert run(shapes, "--data", "outline=true", "-o", tmp_path / "again") == 0
    first, second = results(output), results(tmp_path / "again")
    assert first["permanova"] == second["permanova"]
    assert first["classification"] == second["classification"]


def test_a_table_without_a_label_is_an_error_before_files_are_read(tmp_path, capsys):
    (tmp_path / "table.csv").write_text("name,sex\na,f\n")
    assert run(tmp_path / "nowhere", "--table", tmp_path / "table.csv", "-o", tmp_path / "out") == 2
    assert "--table and --label belong together" in capsys.readouterr().err


QUICK = ("--no-classify", "--no-means")


def test_a_folder_that_does_not_exist_is_named(tmp_path, capsys):
    assert run(tmp_path / "nowhere", "-o", tmp_path / "out") == 2
    assert "nowhere does not exist" in capsys.readouterr().err


def test_a_report_among_the_shapes_is_refused(tmp_path, capsys):
    shapes = folder_of(tmp_path / "shapes", number=3)
    assert run(shapes, *QUICK, "-o", shapes / "report") == 2
    assert "--output must be outside" in capsys.readouterr().err


def test_an_error_of_the_input_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise ValueError("bad input")

    monkeypatch.setattr(comparison, "permanova", fail)  # after the first stages
    assert run(folder_of(tmp_path / "shapes", number=3), *QUICK, "-o", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_a_light_background_is_in_the_report(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("few", "many"):
        (tmp_path / "scans" / name).mkdir(parents=True)
        for i in range(3):
            image = np.full((16, 16), 255, np.uint8)
            image[4 : rng.integers(6, 12), 4:12] = 0
            Image.fromarray(image).save(tmp_path / "scans" / name / f"{i}.png")
    assert run(tmp_path / "scans", *QUICK, "-o", tmp_path / "out") == 0
    assert "has a light background" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert run(tmp_path / "scans", *QUICK, "--data", "invert=true", "-o", tmp_path / "inverted") == 0
    assert "light background" not in (tmp_path / "inverted" / "report.html").read_text("utf-8")


def test_a_column_of_measurements_as_label_is_pointed_out(tmp_path, capsys):
    shapes = folder_of(tmp_path / "shapes", number=3)
    names = [f"{group}/{i}.csv" for group in ("thin", "wide") for i in range(3)]
    table = "\n".join(["name,length", *(f"{name},{i or 1}.5" for i, name in enumerate(names))])
    (tmp_path / "lengths.csv").write_text(table)
    run(shapes, *QUICK, "--table", tmp_path / "lengths.csv", "--label", "length", "-o", tmp_path / "out")
    assert "--covariates" in capsys.readouterr().err


def test_too_few_shapes_are_said(tmp_path):
    assert run(folder_of(tmp_path / "shapes", number=3), *QUICK, "-o", tmp_path / "out") == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "There are too few shapes to tell whether the groups differ in shape" in page


def test_the_summary_fits_the_tests():
    rng = np.random.default_rng(0)
    clouds = [torch.from_numpy(ellipse(0.5, rng)) for _ in range(12)]
    groups, ages = ["a"] * 6 + ["b"] * 6, [float(i) for i in range(12)]
    options = {"permutations": 99, "classification": False, "means": False, "progress": False}
    found = comparison.compare(from_outline(clouds), groups, covariates={"age": ages}, **options)
    likely, unlikely = (replace(found.permanova, p_value=p) for p in (0.5, 0.01))
    spread = replace(found.dispersion, test=unlikely)
    same = summary(replace(found, permanova=likely, dispersion=spread), label="species")
    assert "do not differ significantly" in same[0]
    assert "species explains" in same[0]
    assert "But the groups differ in their spread (PERMDISP p = 0.01)." in same
    assert any("without adjustment for the group: age p = " in line for line in same)
    differ = summary(replace(found, permanova=unlikely, dispersion=spread))
    told_apart = SimpleNamespace(accuracy=0.9, interval=(0.7, 0.98), majority=0.5)
    guessed = SimpleNamespace(accuracy=0.6, interval=(0.4, 0.8), majority=0.5)
    for test, classified, contradicts in ((likely, told_apart, True), (likely, guessed, False), (unlikely, told_apart, False)):
        by_size = {"shape": classified, "shape and size": told_apart}
        lines = summary(replace(found, permanova=test, classifications=by_size))
        assert lines[-1].startswith("So groups can be told apart") == contradicts
    assert any("part of the difference may be one of spread" in line for line in differ)
