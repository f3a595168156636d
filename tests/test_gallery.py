"""The examples of the gallery: the quick ones run here, all of them in `make docs`."""

import re
import runpy
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.glob("*.py"))
QUICK = ["cells", "cloud_loss", "cluster", "fit_mesh", "gpu", "images", "paper_tables", "similar_shapes", "wings"]


def test_there_is_an_example_for_every_task():
    titles = {path.stem: path.read_text("utf-8").splitlines()[1] for path in EXAMPLES}
    assert len(titles) == 13
    assert titles["skulls"] == "Do two groups of skulls differ, and where?"
    assert titles["cluster"] == "A million files on a cluster"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_a_text_and_a_picture(path):
    text = path.read_text("utf-8")
    title, line, blank, first = text.splitlines()[1:5]
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert not blank
    assert len(first) > 40
    assert re.search(r'plot\.save\(.*, "\w+\.png"', text)
    assert len(text.splitlines()) <= 90


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_example_runs_and_saves_its_pictures(name, mirror, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    text = (GALLERY / f"{name}.py").read_text("utf-8")
    runpy.run_path(str(GALLERY / f"{name}.py"))
    pictures = set(re.findall(r'"(\w+\.png)", dpi', text))
    assert pictures == {path.name for path in tmp_path.glob("*.png")}
    assert capsys.readouterr().out
