"""The examples run in a small setting, and stay small."""

import json
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if "--quick" in path.read_text("utf-8"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs_and_says_what_it_found(name, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_there_is_an_example_for_each_task():
    assert {"graphs.py", "meshes.py", "point_clouds.py", "fitting.py", "files.py"} <= set(SCRIPTS)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_fits_a_screen_or_two_and_says_how_to_run_it(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 80
    assert f"python examples/{path.name}" in text


def test_the_notebook_runs_and_holds_no_outputs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text("utf-8"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    for number, cell in enumerate(cells):
        assert not cell["outputs"]
        assert cell["execution_count"] is None
        exec(compile("".join(cell["source"]), f"tour.ipynb[{number}]", "exec"), namespace)
    assert namespace["scores"].accuracy > 0.2
