"""Counting the values of cells equals comparing each value with each threshold."""

import math

import numpy as np
import pytest
import torch
from drawing import batches, seeds
from hypothesis import given
from hypothesis import strategies as st

import eulerscan as es
from eulerscan.complexes import filtration
from eulerscan.kernels import dispatch
from eulerscan.kernels.cpu.problem import MIN_THREAD_CELLS, count


def compared(levels, signs, offsets, thresholds):
    """``[P, H]``, value by value."""
    parts = []
    for p in range(offsets.shape[1] - 1):
        cells = [level[begin:end] for level, begin, end in zip(levels, offsets[:, p], offsets[:, p + 1], strict=True)]
        counts = [s * (c[:, None] <= thresholds).sum(dim=0) for s, c in zip(signs, cells, strict=True)]
        parts.append(torch.stack(counts).sum(dim=0))
    return torch.stack(parts)


@pytest.mark.parametrize("offset", [0.0, -1e4, 1e9])
@pytest.mark.parametrize("size", [1, 2, 9, 256])
@pytest.mark.parametrize("kind", ["even", "nearly even", "uneven", "equal"])
def test_values_on_and_beside_thresholds_are_counted_exactly(dtype, offset, size, kind):
    generator = torch.Generator().manual_seed(size)
    steps = torch.arange(size, dtype=torch.float64)
    noise = torch.rand(size, generator=generator, dtype=torch.float64) - 0.5
    moved = {"even": steps, "nearly even": steps + 0.4 * noise, "uneven": steps + 9 * noise, "equal": 0 * steps}[kind]
    thresholds = (offset + moved / size).to(dtype).sort().values
    beside = [torch.nextafter(thresholds, torch.full_like(thresholds, side)) for side in (-math.inf, math.inf)]
    far = torch.tensor([-1e30, 1e30, -math.inf, math.inf, torch.finfo(dtype).min, torch.finfo(dtype).max], dtype=dtype)
    near = (offset + 3 * torch.rand(99, generator=generator, dtype=torch.float64) - 1).to(dtype)
    values = torch.cat([thresholds, *beside, far, near])
    levels = [values[torch.randint(0, len(values), (n,), generator=generator)] for n in (1003, 8, 0, 7)]
    offsets = torch.tensor([[0, 0, 501, 1003], [0, 3, 3, 8], [0, 0, 0, 0], [0, 7, 7, 7]])
    arguments = (levels, [1, -1, 1, -1], offsets, thresholds)
    assert torch.equal(count(*arguments), compared(*arguments))


def test_any_number_of_threads_and_any_layout_give_the_same_counts():
    generator = torch.Generator().manual_seed(0)
    values = torch.rand(MIN_THREAD_CELLS, 2, generator=generator)[:, 0]  # every other number in memory
    offsets = torch.tensor([[i * len(values) // 7 for i in range(8)]])
    arguments = ([values], [-1], offsets, torch.linspace(0, 1, 33))
    expected, before = compared(*arguments), torch.get_num_threads()
    try:
        for num_threads in (1, 2, 3):
            torch.set_num_threads(num_threads)
            assert torch.equal(count(*arguments), expected)
    finally:
        torch.set_num_threads(before)


def test_nothing_invalid_is_read():
    values, thresholds = torch.zeros(9), torch.zeros(2)
    for offsets in ([[0, 10]], [[0, 5]], [[1, 9]], [[0, 7, 3, 9]], [[0, -1, 9]]):
        with pytest.raises(ValueError, match="offsets"):
            count([values], [1], torch.tensor(offsets), thresholds)
    with pytest.raises(TypeError, match="float32"):
        count([values.double()], [1], torch.tensor([[0, 9]]), thresholds)
    with pytest.raises(ValueError, match="2, got 1 and 1"):
        count([values, values], [1], torch.tensor([[0, 9]]), thresholds)
    with pytest.raises(ValueError, match="must ascend"):
        count([values], [1], torch.tensor([[0, 9]]), torch.tensor([1.0, 0.0]))
    with pytest.raises(ValueError, match="finite"):
        count([values], [1], torch.tensor([[0, 9]]), torch.tensor([0.0, math.nan]))
    count([values.fill_(math.nan)], [1], torch.tensor([[0, 9]]), torch.linspace(0, 1, 5))  # of no use, but no crash


@given(complex=batches(), seed=seeds, superlevel=st.booleans(), single=st.booleans(), wide=st.booleans())
def test_curves_equal_the_reference(complex, seed, superlevel, single, wide):
    rng = np.random.default_rng(seed)
    complex = complex[0] if single and len(complex) else complex
    dtype = torch.float64 if wide else torch.float32
    levels = tuple(torch.tensor(rng.integers(-4, 5, n) / 4, dtype=dtype) for n in complex.counts)
    thresholds = torch.linspace(-1, 1, 9)
    found = es.ecc(complex, levels, thresholds, superlevel=superlevel, monotone="assume")
    with dispatch.use("reference"):
        expected = es.ecc(complex, levels, thresholds, superlevel=superlevel, monotone="assume")
    assert found.dtype == expected.dtype == dtype
    assert torch.equal(found, expected)


def test_only_what_needs_no_gradient_is_counted(monkeypatch):
    """Gradients of weights need the kernels; those of values are zero, but they exist."""
    shape, values = es.convert.filtration_from_image(torch.rand(40, 50, generator=torch.Generator().manual_seed(0)))
    thresholds = torch.linspace(0, 1, 17)
    leaves = [level.clone().requires_grad_() for level in values]
    smooth = es.ecc(shape, leaves, thresholds)
    assert [g.abs().sum() for g in torch.autograd.grad(smooth.sum(), leaves)] == [0, 0, 0]
    calls = []
    monkeypatch.setattr(filtration, "cells_as_points", lambda *_, **__: calls.append(1))
    monkeypatch.setattr("eulerscan.functional.cells_as_points", lambda *_, **__: calls.append(1))
    assert torch.equal(es.ecc(shape, values, thresholds), smooth)
    with torch.no_grad():
        assert torch.equal(es.ecc(shape, leaves, thresholds), smooth)
    assert not calls


def test_a_large_image_is_counted_in_parts():
    image = torch.rand(300, 200, generator=torch.Generator().manual_seed(0)).mul(64).round().div(64)  # on thresholds
    thresholds = torch.linspace(0, 1, 65)
    for pixels in ("cells", "vertices"):
        shape, values = es.convert.filtration_from_image(image, pixels=pixels)
        expected = sum(s * (v[:, None] <= thresholds).sum(dim=0) for s, v in zip((1, -1, 1), values, strict=True))
        assert torch.equal(es.ecc(shape, values, thresholds)[0, 0], expected.float())


def test_no_image_has_no_curve():
    none = es.convert.filtration_from_images(torch.zeros(0, 4, 5))
    assert es.ecc(*none, torch.linspace(0, 1, 3)).shape == (0, 1, 3)
    assert es.ecc(*es.convert.filtration_from_image(torch.zeros(4, 5)), torch.zeros(0)).shape == (1, 1, 0)
