import gc
import importlib

import pytest

from eulerscan._loading import uncollected


def test_garbage_is_looked_for_again_after_an_error():
    with pytest.raises(ModuleNotFoundError), uncollected():
        importlib.import_module("no_such_module" if not gc.isenabled() else "gc")
    assert gc.isenabled()


def test_garbage_is_not_looked_for_where_it_was_not_before():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
