import gc

import pytest

from eulerscan.loading import uncollected


def test_garbage_is_looked_for_again_after_an_error():
    with pytest.raises(ImportError), uncollected():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_garbage_is_not_looked_for_where_it_was_not_before():
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
