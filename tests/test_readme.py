"""The code and the commands of the README run when pasted in order, and its figures are those of the committed results."""

import csv
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import torch

import eulerscan as es
from eulerscan.paper.published import PUBLISHED

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_commands_on_files_run_when_pasted_in_order(run, monkeypatch, tmp_path):
    """With fewer epochs. `make` and `pip` have tests of their own."""
    monkeypatch.chdir(tmp_path)
    lines = "".join(re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    script, *arguments = next(words[1:] for words in commands if words[0] == "python")
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    runpy.run_path(str(ROOT / script), run_name="__main__")
    done = set()
    for program, *arguments in commands:
        if program == "eulerscan":
            few = ["--epochs", "2"] if arguments[0] == "train" else []
            run(
                *("2" if before == "--epochs" else word for before, word in zip(["", *arguments], arguments, strict=False)),
                *few,
            )
            done.add(arguments[0])
    assert done >= {"advise", "transform", "distances", "plot", "explore", "train", "evaluate", "predict", "fit"}
    assert {"transforms.npz", "tree.png", "ring.pdf", "ring.html", "predictions.csv", "fit.gif"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_the_readme_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 3
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(block, namespace)
    assert namespace["logits"].shape == (8, 10)
    assert torch.equal(namespace["batch"].euler_characteristic(), torch.tensor([50, 1, 1]))
    assert (tmp_path / "digit.png").stat().st_size > 10_000
    stated = re.search(r"accuracy  # ([\d.]+)", README)[1]
    assert namespace["accuracy"] == pytest.approx(float(stated), abs=0.006)  # two of 359 digits
    assert namespace["sparse"].loss < 0.05 * namespace["sparse"].start_loss


def test_the_readme_names_the_current_version_and_no_package_index():
    assert set(re.findall(r"\d+\.\d+\.\d+(?=[-}])", README)) == {es.__version__}
    assert not re.search(r"pip install \"?eulerscan[^-]", README), "nothing is published yet"


def rows_of(text: str, header: str) -> list[dict[str, str]]:
    """The rows of the Markdown table whose header begins with this cell."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(rf"\|\s*{header}\s*\|", line))
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[start:] if line.startswith("|")]
    end = next((i for i, line in enumerate(lines[start:]) if not line.startswith("|")), len(lines) - start)
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:end]]


def agrees(stated: str, measured: float) -> bool:
    """Whether a number is the measured one, rounded to the digits it has."""
    number = re.sub(r"[,x×]", "", stated)
    decimals = len(number.partition(".")[2])
    return abs(float(number) - measured) <= 0.5 * 10**-decimals + 1e-9


# Rows of the README, and where the runs are: experiment, row, column.
ACCURACIES = {
    "MNIST meshes": ("superpixels", "ECT+MLP, meshes", "accuracy"),
    "MNIST superpixel graphs": ("superpixels", "ECT+CNN, graphs", "accuracy"),
    "Letter-low, 65K parameters": ("small-graphs", "ECT+CNN 65K", "letter-low"),
    "Letter-high, 65K parameters": ("small-graphs", "ECT+CNN 65K", "letter-high"),
    "BZR, 65K parameters": ("small-graphs", "ECT+CNN 65K", "bzr"),
    "DHFR, 65K parameters": ("small-graphs", "ECT+CNN 65K", "dhfr"),
    "ModelNet40, 100 points, CNN in place of Deep Sets": ("modelnet", "ECT+CNN, 100K", "100 points"),
}
OTHERS = {
    "with directions on rings": ("modelnet", "ECT+CNN, rings", "100 points"),
    "with three convolutions": ("superpixels", "ECT+CNN, meshes", "accuracy"),
    "with convolutions along rings": ("superpixels", "ECT+CNN, graphs, rings", "accuracy"),
}
PAPER_ROWS = {"ECT+CNN, 100K": "ECT+Deep Sets"}  # the paper has no CNN on ModelNet40


def measured_accuracy(experiment: str, row: str, column: str) -> dict[str, str]:
    with (ROOT / "results" / f"{experiment}.csv").open(encoding="utf-8", newline="") as file:
        return next(line for line in csv.DictReader(file) if (line["row"], line["column"]) == (row, column))


@pytest.mark.parametrize("page", ["README.md", "paper/paper.md"])
def test_the_accuracies_are_those_of_the_results(page):
    rows = rows_of((ROOT / page).read_text("utf-8"), "data")
    assert {row["data"] for row in rows} <= set(ACCURACIES)
    assert len(rows) >= 3
    for row in rows:
        experiment, name, column = ACCURACIES[row["data"]]
        published = PUBLISHED[experiment]
        assert agrees(row["paper"], published[PAPER_ROWS.get(name, name)][column][0]), row
        competitor = re.match(r"(.+) ([\d.]+)$", row.get("best competitor there", ""))
        if competitor:
            best = max(numbers[column][0] for other, numbers in published.items() if "ECT" not in other)
            theirs = [numbers[column][0] for other, numbers in published.items() if other.startswith(competitor[1])]
            assert theirs == [best], row
            assert agrees(competitor[2], best), row
        ours = re.findall(r"(?:(with [\w ]+) )?([\d.]+) ± ([\d.]+) \((\d+)\)", row["eulerscan"])
        assert ours, row
        for which, mean, deviation, seeds in ours:
            line = measured_accuracy(*(OTHERS[which] if which else (experiment, name, column)))
            assert agrees(mean, float(line["accuracy"])), (row, line)
            assert agrees(deviation, float(line["std"])), (row, line)
            assert seeds == line["runs"], (row, line)


@pytest.mark.parametrize("page", ["README.md", "paper/paper.md"])
def test_the_times_are_those_of_the_benchmark(page):
    text, bench = (ROOT / page).read_text("utf-8"), (ROOT / "benchmarks" / "transform.md").read_text("utf-8")
    both = [row for row in rows_of(bench, "work") if row["pass"] == "forward + backward"]
    rows = rows_of(text, "work")
    assert len(rows) >= 3
    for row in rows:
        work = row["work"].removesuffix(", soft").replace(" × ", "x")
        (found,) = [line for line in both if line["work"].startswith(work)]
        assert agrees(row["eulerscan"].removesuffix(" ms"), float(found["ours ms"])), row
        for ours, theirs in (
            ("dense", "vs dense"),
            ("dense, `torch.compile`", "vs compiled"),
            ("dense, tuned allocator", "vs dense tuned"),
        ):
            if ours in row:
                assert agrees(row[ours], float(found[theirs].split()[0].removesuffix("x"))), (row, found)


def test_the_sentences_on_speed_are_those_of_the_benchmark():
    bench, text = (ROOT / "benchmarks" / "transform.md").read_text("utf-8"), " ".join(README.split())
    packages = {row["package"].split()[0]: row for row in reversed(rows_of(bench, "package"))}
    time, pyect, ect = re.search(r"takes (\d+) ms: `pyect` takes (\d+) times as long, `ect` (\d+) times", text).groups()
    assert agrees(time, float(packages["eulerscan"]["ms"]))
    assert agrees(pyect, float(packages["pyect"]["ours is faster"].removesuffix("x")))
    assert agrees(ect, float(packages["ect"]["ours is faster"].removesuffix("x")))
    forward, both = rows_of(bench[bench.index("## Memory") :], "pass")
    found = re.search(r"million vertices take ([\d.]+) s, or ([\d.]+) s with gradients, in ([\d.]+) GB", text).groups()
    seconds = (forward["seconds"], both["seconds"], both["peak GB beyond the input"])
    assert all(agrees(stated, float(value)) for stated, value in zip(found, seconds, strict=True)), (found, seconds)


def test_a_wrong_figure_would_be_found():
    assert agrees("1,183×", 1183.4)
    assert agrees("0.20", 0.198)
    assert not agrees("0.20", 0.21)
    assert not agrees("97.9", 97.84)
