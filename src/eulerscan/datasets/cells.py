"""Outlines of mouse osteosarcoma cells, of two lines and under three treatments."""

from __future__ import annotations

import numpy as np
import torch

from .._validation import check_choice
from ..complexes import Complex
from ..convert.outlines import from_outline
from .dataset import Dataset
from .download import Source, reading

URL = "https://raw.githubusercontent.com/geomstats/geomstats/main/geomstats/datasets/data/cells"
COUNT = 650
LABELS = {"line": "cell_lines.txt", "treatment": "treatments.txt"}
MD5 = {
    "cells.txt": "ad48992a0fe8bd720e8993596b32a9af",
    "cell_lines.txt": "9c0a7226e9c03ea906166e4776580dc3",
    "treatments.txt": "b56746394a765efe8d730f425dc0190c",
}


def cells(name: str = "cells", *, label: str = "line", filled: bool = False) -> Dataset:
    """650 outlines of cells in pixels: of the lines dlm8 (258) and dunn (392), without a drug (318), or with cytd or jasp.

    The data are those of ``geomstats.datasets.utils.load_cells``.

    Args:
        label: ``line`` or ``treatment``.
        filled: Whether cells are filled with triangles, or closed curves.
    """
    check_choice(label, "label", tuple(LABELS))
    with reading(Source("cells/cells.txt", f"{URL}/cells.txt", MD5["cells.txt"])) as path:
        blocks = path.read_text("utf-8").strip().split("\n\n")
        outlines = [np.array(block.split(), dtype=np.float64).reshape(-1, 2) for block in blocks]
        if len(outlines) != COUNT:
            raise ValueError(f"it must hold {COUNT} outlines, got {len(outlines)}")
    file = LABELS[label]
    with reading(Source(f"cells/{file}", f"{URL}/{file}", MD5[file])) as path:
        classes = path.read_text("utf-8").split()
        if len(classes) != COUNT:
            raise ValueError(f"it must hold {COUNT} words, got {len(classes)}")
    kinds = sorted(set(classes))
    shapes: Complex = from_outline([torch.from_numpy(outline).float() for outline in outlines], filled=filled)
    return Dataset(name, shapes, torch.tensor([kinds.index(kind) for kind in classes]), tuple(kinds))
