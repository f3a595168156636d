"""
The paper's tables in one command
=================================

``eulerscan reproduce`` runs every experiment of the paper (Röell and Rieck, ICLR 2024) and writes tables with the published
numbers beside ours. It takes many hours on two cores; it can be interrupted, and finished runs are skipped:

.. code-block:: sh

   eulerscan reproduce --results check             # everything
   eulerscan reproduce directions --results check  # one table
   eulerscan reproduce --render-only               # tables and figures from the runs of the repository

Here the finished runs of the repository are rendered again.
"""

import csv
import shutil
import tempfile
from pathlib import Path

import eulerscan
from eulerscan import plot
from eulerscan.cli.reproduce import reproduce

# %%
# Every run is one line of JSON in ``results/``: settings, seed, accuracy, seconds and version. Tables are made of these.

committed = Path(eulerscan.__file__).parents[2] / "results"  # in a checkout
folder = Path(tempfile.mkdtemp())
for name in ("directions", "small-graphs"):
    shutil.copy(committed / f"{name}.jsonl", folder)
    reproduce(name, results=folder, render_only=True)

# %%
# Beside each table there is a CSV file. The rows for which the paper has a number:

with (folder / "small-graphs.csv").open(encoding="utf-8") as file:
    rows = [row for row in csv.DictReader(file) if row["paper_accuracy"] and row["row"].startswith("ECT")]

picture = plot.figure(8, 0.28 * len(rows) + 1)
ax = picture.add_subplot()
names = [f"{row['column']}, {row['row']}" for row in rows]
ax.errorbar([float(r["accuracy"]) for r in rows], names, xerr=[float(r["std"]) for r in rows], fmt="o", label="eulerscan")
ax.plot([float(r["paper_accuracy"]) for r in rows], names, "x", color="C1", label="paper")
ax.set_xlabel("test accuracy in %, mean and standard deviation")
ax.invert_yaxis()
ax.legend(frameon=False)
plot.save(picture, "paper.png", dpi=110)
