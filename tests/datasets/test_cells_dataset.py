"""The outlines of cells."""

import os

import pytest

from eulerscan import datasets

pytestmark = pytest.mark.skipif(
    not os.path.exists(os.path.join(os.environ.get("EULERSCAN_MIRROR", ""), "cells", "cells.txt")),
    reason="EULERSCAN_MIRROR has no cells",
)


def test_650_closed_curves_of_two_lines_and_three_treatments():
    cells = datasets.load("cells")
    assert cells.classes == ("dlm8", "dunn")
    assert cells.labels.bincount().tolist() == [258, 392]
    assert len(cells.shapes) == 650
    assert (cells.shapes.euler_characteristic() == 0).all()
    treated = datasets.load("cells", label="treatment")
    assert treated.classes == ("control", "cytd", "jasp")
    assert treated.labels.bincount().tolist() == [318, 175, 157]


def test_unknown_labels_are_named():
    with pytest.raises(ValueError, match="label"):
        datasets.load("cells", label="size")
