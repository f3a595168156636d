import sys

import pytest

from eulerscan import _imports as extras


def test_a_missing_library_is_answered_with_the_command_that_installs_it():
    with pytest.raises(ModuleNotFoundError, match=r'needs trimesch, .* pip install "eulerscan\[mesh\]"'):
        extras.require("trimesch", extra="mesh")


def test_a_library_that_is_broken_inside_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'what_it_needs'"):
        extras.require("halfway", extra="mesh")


@pytest.mark.parametrize("installed", [True, False])
def test_progress_changes_nothing_about_the_items(installed, monkeypatch):
    if not installed:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(extras.progress(range(3), "counting")) == [0, 1, 2]
    bar = extras.progress_bar(3, "counting", hidden=True)
    assert isinstance(bar, extras._Nothing) != installed
    bar.update(1)
    bar.set_postfix_str("one")
    bar.close()
