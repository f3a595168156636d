"""The exponential of eight lanes against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from eulerscan.kernels.cpu.simd import EXP_LIMIT, exp, load, store


@njit
def _exponentials(x, result):
    for i in range(len(x)):
        store(result, i, 0, exp(load(x, i, 0)))


def exponentials(*values):
    x = np.resize(np.array(values, np.float64), (-(-len(values) // 8), 8))
    result = np.empty_like(x)
    _exponentials(x, result)
    return result.reshape(-1)[: len(values)]


def test_exponentials_are_those_of_numpy_to_the_last_bit_but_one():
    for extent in (1e-3, 1.0, 30.0, EXP_LIMIT):
        x = np.linspace(-extent, extent, 4000)
        np.testing.assert_array_max_ulp(exponentials(*x), np.exp(x), maxulp=2)


def test_zero_gives_one_and_small_numbers_do_not_get_lost():
    assert exponentials(0.0, -0.0, 5e-324).tolist() == [1.0, 1.0, 1.0]
    assert exponentials(1e-12)[0] - 1 == pytest.approx(1e-12, rel=1e-3)


def test_what_is_out_of_range_gives_the_largest_and_the_smallest_result():
    largest, least = np.exp(EXP_LIMIT), np.exp(-EXP_LIMIT)
    found = exponentials(701.0, 1e300, np.inf, -701.0, -1e300, -np.inf, np.nan)
    np.testing.assert_allclose(found, [largest] * 3 + [least] * 4, rtol=1e-13)


def test_other_numbers_than_float64_are_refused():
    x = np.zeros((1, 8), np.float32)
    with pytest.raises(TypingError):
        _exponentials(x, x.copy())
