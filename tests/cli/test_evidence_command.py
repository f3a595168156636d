"""``eulerscan evidence``, and the files and figures of evidence."""

import csv

import numpy as np
import pytest
import torch
import trimesh
from matplotlib.backends.backend_agg import FigureCanvasAgg

import eulerscan as es
from eulerscan.analysis import evidence, write_evidence
from eulerscan.cli.main import main
from eulerscan.io import write
from eulerscan.plot import draw_evidence
from eulerscan.testing import known_shapes

CONFIG = es.ECTConfig(20, 16, normalize="center")


def spheres(count: int) -> es.Complex:
    """Noisy spheres, every other one with a dent at the top."""
    sphere = known_shapes()["sphere"].complex
    generator = torch.Generator().manual_seed(0)
    found = []
    for i in range(count):
        points = sphere.points * (1 + 0.02 * torch.randn(len(sphere.points), 1, generator=generator, dtype=torch.float64))
        points[points[:, 2] > 0.8] *= 0.5 if i % 2 else 1.0
        found.append(sphere.with_points(points))
    return es.collate(found)


def table(path):
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


@pytest.fixture
def folder(tmp_path):
    shapes = spheres(20)
    for i in range(20):
        place = tmp_path / "shapes" / ("dented" if i % 2 else "round")
        place.mkdir(parents=True, exist_ok=True)
        write(shapes[i].to(torch.float32), place / f"{i}.ply")
    return tmp_path / "shapes"


def run(*words) -> int:
    with pytest.raises(SystemExit) as exit:
        main([str(word) for word in words])
    return int(exit.value.code or 0)


def test_the_command_writes_meshes_tables_a_figure_and_pages(folder, tmp_path, capsys):
    output = folder / "out"  # which is no group when the command is run again
    words = ("evidence", folder, "-o", output, "--permutations", "39", "--num-directions", "20", "--num-thresholds", "16")
    assert run(*words) == 0
    assert "1 is chance" in capsys.readouterr().out
    names = {path.name for path in output.iterdir()}
    assert {"vertices.csv", "regions.csv", "legend.txt", "evidence.png", "dented-1.html", "round-0.html"} <= names
    assert sum(name.endswith(".ply") for name in names) == 40
    rows = table(output / "vertices.csv")
    dented = [row for row in rows if row["shape"] == "dented-1"]
    best = max(dented, key=lambda row: float(row["score"]))
    assert float(best["z"]) > 0
    top = [float(row["p_value"]) for row in dented if float(row["z"]) > 0.2]
    bottom = [float(row["p_value"]) for row in dented if float(row["z"]) < -0.2]
    assert min(top) == pytest.approx(1 / 40)
    assert sum(top) / len(top) < 0.5 * sum(bottom) / len(bottom)
    assert {row["group"] for row in rows} == {"dented", "round"}
    assert run(*words) != 0  # it exists
    assert run(*words, "--overwrite") == 0
    assert table(output / "vertices.csv") == rows


def test_blocks_are_a_column_of_the_table(folder, tmp_path, capsys):
    rows = [f"{i},{'dented' if i % 2 else 'round'},{i // 4}" for i in range(20)]
    (tmp_path / "table.csv").write_text("\n".join(["name,kind,specimen", *rows]), encoding="utf-8")
    few = ("--permutations", "19", "--num-directions", "8", "--num-thresholds", "8")
    words = ("evidence", folder, "-o", tmp_path / "out", *few, "--strata", "specimen")
    assert run(*words) != 0
    assert "--table" in capsys.readouterr().err
    assert run(*words, "--table", tmp_path / "table.csv", "--label", "kind") == 0
    assert "19 permutations by blocks" in (tmp_path / "out" / "legend.txt").read_text("utf-8")


def test_regions_that_chance_gives_too_are_called_so(tmp_path, capsys):
    """Bars at any angle, of groups that do not differ."""
    generator = torch.Generator().manual_seed(0)
    for i, turn in enumerate(es.rotations.random(20, 2, generator).float()):
        points = torch.tensor([[-1.0, -0.3], [0, -0.3], [1, -0.3], [1, 0.3], [0, 0.3], [-1, 0.3]])
        points = (points + 0.05 * torch.randn(6, 2, generator=generator)) @ turn.T
        (tmp_path / "shapes" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "shapes" / "ab"[i % 2] / f"{i}.npy", points.numpy())
    few = ("--permutations", "39", "--num-directions", "8", "--num-thresholds", "8")
    assert run("evidence", tmp_path / "shapes", "-o", tmp_path / "out", *few, "--data", "outline=true") == 0
    said = capsys.readouterr().out
    assert "No region is significant" in said or "no more regions than chance gives" in said
    assert "longest axes point in all directions" in said


def test_a_folder_without_groups_is_an_error(tmp_path, capsys):
    (tmp_path / "one").mkdir()
    write(spheres(1).to(torch.float32), tmp_path / "one" / "a.ply")
    assert run("evidence", tmp_path, "-o", tmp_path / "out") != 0
    assert "two groups" in capsys.readouterr().err


def test_files_of_evidence(tmp_path):
    found = evidence(spheres(20), [0, 1] * 10, permutations=39, config=CONFIG)
    files = write_evidence(found, tmp_path, format=".glb")
    assert {path.name for path in files} == {path.name for path in tmp_path.iterdir()}
    colors = trimesh.load(tmp_path / "shape-1.glb", force="mesh").visual.vertex_colors
    assert int(colors[:, 0].astype(int).max() - colors[:, 1].astype(int).min()) > 100
    listed = table(tmp_path / "regions.csv")
    assert len(listed) == len(found.regions)
    assert listed[0]["vertices"].split()[0] == str(int(found.regions[0].vertices[0]) % (len(found.scores) // 20))
    with pytest.raises(ValueError, match="names"):
        write_evidence(found, tmp_path, ["a"])


@pytest.mark.parametrize("kind", ["surfaces", "outlines", "clouds", "discs"])
def test_figures_show_the_evidence_beside_its_null(kind):
    shapes = spheres(4)
    if kind != "surfaces":
        known = known_shapes()["disc" if kind == "discs" else "cycle"].complex
        noise = torch.Generator().manual_seed(0)
        base = es.Complex(known.points) if kind == "clouds" else known
        moved = [base.points + 0.1 * torch.randn(base.points.shape, generator=noise, dtype=torch.float64) for _ in range(4)]
        shapes = es.collate([base.with_points(points) for points in moved])
    found = evidence(shapes, ["a", "b"] * 2, permutations=19, config=CONFIG)
    picture = draw_evidence(found, truth=torch.zeros(len(found.scores), dtype=torch.bool))
    FigureCanvasAgg(picture).draw()
    titles = [ax.get_title() for ax in picture.axes if ax.get_title()]
    assert [title for title in titles if "behind" not in title] == ["truth", "evidence", "null: permuted labels"]
    assert "chance" in picture.axes[-1].get_xlabel()


def test_names_that_become_the_same_in_one_folder_get_a_number(tmp_path):
    shapes = spheres(8)
    for i in range(8):
        path = tmp_path / "shapes" / (f"a/b-{i // 2}.ply" if i % 2 else f"a-b/{i // 2}.ply")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(shapes[i].to(torch.float32), path)
    output = tmp_path / "out"
    assert run("evidence", tmp_path / "shapes", "-o", output, "--permutations", "9", "--num-directions", "6", "--quiet") == 0
    assert len(list(output.glob("*.html"))) == 2
    assert len({row["shape"] for row in table(output / "vertices.csv")}) == 8
