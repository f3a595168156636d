import pytest

from eulerscan._imports import require


def test_a_missing_library_is_answered_with_the_command_that_installs_it():
    with pytest.raises(ModuleNotFoundError, match=r'trimesch.* pip install "eulerscan\[mesh\]"'):
        require("trimesch", extra="mesh")


def test_a_library_that_is_broken_inside_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'what_it_needs'"):
        require("halfway", extra="mesh")
