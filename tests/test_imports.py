import gc
import importlib

import pytest

from eulerscan._imports import require, without_gc


def test_a_missing_library_is_answered_with_the_command_that_installs_it():
    with pytest.raises(ModuleNotFoundError, match=r'trimesch.* pip install "eulerscan\[mesh\]"'):
        require("trimesch", extra="mesh")


def test_a_library_that_is_broken_inside_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'what_it_needs'"):
        require("halfway", extra="mesh")


def test_garbage_is_collected_again_after_an_error():
    with pytest.raises(ModuleNotFoundError), without_gc():
        importlib.import_module("no_such_module" if not gc.isenabled() else "gc")
    assert gc.isenabled()


def test_garbage_is_not_collected_where_it_was_not_before():
    gc.disable()
    try:
        with without_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
