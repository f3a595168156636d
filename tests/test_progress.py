import sys

import pytest

from eulerscan import _progress


@pytest.mark.parametrize("installed", [True, False])
def test_progress_changes_nothing_about_the_items(installed, monkeypatch):
    if not installed:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(_progress.progress(range(3), "counting")) == [0, 1, 2]
    bar = _progress.progress_bar(3, "counting", hidden=True)
    assert isinstance(bar, _progress._NoBar) != installed
    bar.update(1)
    bar.set_postfix_str("one")
    bar.close()
