import runpy
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def test_a_machine_reads_digits_from_their_transforms():
    """A third of the digits and one setting; all of them and a choice of settings take half a minute and give more."""
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "digits_svm.py"))
    accuracies, settings = example["main"](quick=True)
    assert len(accuracies) == len(settings) == 3
    assert accuracies.mean() > 95
