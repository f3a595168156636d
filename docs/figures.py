"""Writes the figures of the committed results into README.md and paper/paper.md; tests/test_readme.py checks them.

python docs/figures.py
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "paper/paper.md")
RATIOS = {"dense": "vs dense", "dense, tuned allocator": "vs dense tuned", "dense, `torch.compile`": "vs compiled"}
# The runs of each row: experiment, row, column. Stronger networks have a second number.
ACCURACIES = {
    "MNIST meshes": [("superpixels", "ECT+MLP, meshes", "accuracy"), ("superpixels", "ECT+CNN, meshes", "accuracy")],
    "MNIST superpixel graphs": [
        ("superpixels", "ECT+CNN, graphs", "accuracy"),
        ("superpixels", "ECT+CNN, graphs, rings", "accuracy"),
    ],
    "Letter-low, 65K parameters": [("small-graphs", "ECT+CNN 65K", "letter-low")],
    "Letter-high, 65K parameters": [("small-graphs", "ECT+CNN 65K", "letter-high")],
    "BZR, 65K parameters": [("small-graphs", "ECT+CNN 65K", "bzr")],
    "DHFR, 65K parameters": [("small-graphs", "ECT+CNN 65K", "dhfr")],
    "ModelNet40, 100 points, CNN in place of Deep Sets": [
        ("modelnet", "ECT+CNN, 100K", "100 points"),
        ("modelnet", "ECT+CNN, rings", "100 points"),
    ],
}


def tables(text: str) -> list[list[dict[str, str]]]:
    """The tables of a Markdown text: a list of rows each."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def number(cell: str) -> float:
    """The first number of a cell: ``1335x``, ``0.23``, ``2,052``."""
    return float(re.match(r"[\d.,]+", cell)[0].replace(",", ""))  # type: ignore[index]


def updated(text: str) -> str:
    """A page with the figures of the committed results."""
    bench = tables((ROOT / "benchmarks" / "transform.md").read_text("utf-8"))
    works = [row for row in bench[0] if row["pass"] == "forward + backward"]
    for table in tables(text):
        for row in table:
            if "work" in row:
                work = row["work"].removesuffix(", soft").replace(" × ", "x")
                found = next(line for line in works if line["work"].startswith(work))
                row |= {"eulerscan": f"{number(found['ours ms']):#.2g} ms"}
                row |= {ours: f"{number(found[theirs]):,.0f}×" for ours, theirs in RATIOS.items() if ours in row}
                first = row["work"]
            elif "data" in row and "eulerscan" in row:
                means = iter([accuracy(*runs) for runs in ACCURACIES[row["data"]]])
                row["eulerscan"] = re.sub(r"[\d.]+ ± [\d.]+ \(\d+\)", lambda _, means=means: next(means), row["eulerscan"])
                first = row["data"]
            else:
                continue
            text = re.sub(
                rf"^\| {re.escape(first)} \|.*$", lambda _, row=row: f"| {' | '.join(row.values())} |", text, flags=re.M
            )
    packages, memory = bench[1], next(table for table in bench if "peak GB beyond the input" in table[0])
    text = put(text, r"takes (\S+) ms: `pyect`", f"{number(packages[0]['ms']):.0f}")
    text = put(text, r"`pyect` takes (\S+) times", f"{number(packages[1]['ours is faster']):.0f}")
    text = put(text, r"`ect` (\S+) times", f"{number(packages[2]['ours is faster']):.0f}")
    text = put(text, r"million vertices take (\S+) s", f"{number(memory[0]['seconds']):.1f}")
    text = put(text, r"or (\S+) s with gradients", f"{number(memory[1]['seconds']):.1f}")
    return put(text, r"gradients, in (\S+) GB", f"{number(memory[1]['peak GB beyond the input']):.1f}")


def put(text: str, pattern: str, value: str) -> str:
    """The text with a value in place of the group of the pattern, where a space may be a line break."""
    found = re.search(pattern.replace(" ", r"\s+"), text)
    return text if found is None else text[: found.start(1)] + value + text[found.end(1) :]


def accuracy(experiment: str, row: str, column: str) -> str:
    """Mean, standard deviation and number of seeds."""
    with (ROOT / "results" / f"{experiment}.csv").open(encoding="utf-8", newline="") as file:
        line = next(line for line in csv.DictReader(file) if (line["row"], line["column"]) == (row, column))
    return f"{float(line['accuracy']):.1f} ± {float(line['std']):.1f} ({line['runs']})"


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(updated(path.read_text("utf-8")), encoding="utf-8")
