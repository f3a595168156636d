"""Thresholds, radius and scale."""

import math

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan.grid import radius_of, scale_of_step, soft_scale


@pytest.mark.parametrize("steps", [0.5, 1.0, 3.0])
def test_the_sigmoid_rises_over_so_many_steps(steps):
    step = float(es.thresholds(16, 1.1, dtype=torch.float64).diff()[0])
    rise = torch.sigmoid(torch.tensor(scale_of_step(16, 1.1, steps=steps) * steps * step / 2))
    assert float(rise) == pytest.approx(0.88, abs=1e-3)


def test_the_soft_scale_is_that_of_the_paper_at_the_default_radius():
    assert soft_scale() == pytest.approx(8.0)
    assert soft_scale(2.2) == pytest.approx(4.0)


def test_the_radius_has_a_margin_and_is_never_zero():
    assert radius_of(es.Complex(torch.tensor([[0.0, 2.0]]))) == pytest.approx(2.2)
    assert radius_of(es.Complex(torch.zeros(3, 2))) == radius_of() == 1.1


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"steps": -1.0}, ValueError, "steps.*got -1"),
        ({"steps": math.nan}, ValueError, "steps.*got nan"),
        ({"steps": "2"}, TypeError, "steps.*got str"),
        ({"radius": 0.0}, ValueError, "radius.*got 0"),
        ({"num_thresholds": 0}, ValueError, "num_thresholds.*got 0"),
    ],
)
def test_wrong_arguments_are_named(options, error, text):
    with pytest.raises(error, match=text):
        scale_of_step(**{"num_thresholds": 16, **options})


def test_numbers_of_numpy_are_numbers():
    assert torch.equal(es.thresholds(np.int64(4)), es.thresholds(4))
