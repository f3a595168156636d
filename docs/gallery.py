"""The gallery of examples: which can run here, their pictures, and their times."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from sphinx.util.logging import getLogger
from sphinx_gallery.scrapers import figure_rst

from eulerscan import datasets

logger = getLogger(__name__)
# A build never downloads: without a mirror, data sets come from the cache folder, or not at all.
os.environ.setdefault("EULERSCAN_MIRROR", tempfile.mkdtemp())


ORDER = (
    "skulls",
    "cells",
    "wings",
    "images",
    "similar_shapes",
    "mesh_folder",
    "rotated_clouds",
    "graph_encodings",
    "cloud_loss",
    "fit_mesh",
    "paper_tables",
    "gpu",
    "cluster",
)


class Order:
    """The place of an example: from questions about shapes to machines."""

    def __init__(self, src_dir: str) -> None:
        pass

    def __call__(self, filename: str) -> int:
        return ORDER.index(Path(filename).stem)


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **options: Any) -> str:
    """The PNG files that a block of an example has saved to its folder, moved to the gallery."""
    names = []
    for picture in sorted(Path(block_vars["src_file"]).parent.glob("*.png"), key=lambda path: path.stat().st_mtime_ns):
        names.append(next(block_vars["image_path_iterator"]))
        shutil.move(picture, names[-1])
    text: str = figure_rst(names, gallery_conf["src_dir"])
    return text


def runnable(folder: Path) -> str:
    """A pattern of the examples whose data are here. The others are shown without results."""
    names = [path.stem for path in sorted(folder.glob("*.py")) if _has_data(path)]
    return rf"[\\/]({'|'.join(names)})\.py$"


def _has_data(example: Path) -> bool:
    for call in re.findall(r"es\.(datasets\.load\(.*\))", example.read_text("utf-8")):
        try:
            eval(call, {"datasets": datasets})
        except OSError as error:
            logger.info("%s does not run: %s", example.name, error)
            return False
    return True


def add_times(page: Path) -> None:
    """A table of the running times at the end of the page of the gallery, from the pages of the examples."""
    rows = []
    for example in ORDER:
        text = (page.parent / f"{example}.rst").read_text("utf-8")
        found = re.search(r"Total running time of the script:\*\* \((\d+) minutes ([\d.]+) seconds\)", text)
        if found:
            rows.append((example, 60 * int(found[1]) + float(found[2])))
    if not rows:
        return
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - example", "     - seconds"]
    for name, seconds in rows:
        lines += [f"   * - :doc:`{name}`", f"     - {seconds:.1f}"]
    total = sum(seconds for _, seconds in rows)
    lines += ["   * - all", f"     - {total:.1f}"]
    title = "\n\nRunning times\n-------------\n\nOn the machine that built these pages, in one process:\n\n"
    page.write_text(page.read_text("utf-8") + title + "\n".join(lines) + "\n", encoding="utf-8")
