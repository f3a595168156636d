import runpy
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")


def test_an_svm_reads_digits_from_their_transforms():
    """On a third of the digits with one setting; all digits and a grid search take half a minute and give more."""
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "digits_svm.py"))
    accuracies, settings = example["main"](quick=True)
    assert len(accuracies) == len(settings) == 3
    assert accuracies.mean() > 95
