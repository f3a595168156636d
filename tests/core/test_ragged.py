import pytest
import torch

import eulerscan as es
from eulerscan._imports import compiled
from eulerscan.complexes import packed


def joined(values, starts, sizes, shifts):
    """The same with a loop."""
    return torch.cat([values[:0], *(values[a : a + n] - s for a, n, s in zip(starts, sizes, shifts, strict=True))])


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("shape", [(5000,), (5000, 3), (5000, 2, 2)])
@pytest.mark.parametrize("runs", [0, 1, 7, 500])
def test_runs_follow_each_other(dtype, shape, runs, generator):
    values = torch.randint(0, 1000, shape, generator=generator).to(dtype)
    starts = torch.randint(0, 4900, (runs,), generator=generator)
    sizes = torch.randint(0, 100, (runs,), generator=generator)
    shifts = torch.randint(-9, 9, (runs,), generator=generator)
    nothing = torch.zeros_like(shifts)
    assert torch.equal(packed.ragged_gather(values, starts, sizes), joined(values, starts, sizes, nothing))
    if len(shape) == 1:
        assert torch.equal(packed.ragged_gather(values, starts, sizes, shifts), joined(values, starts, sizes, shifts))


def test_gradients_and_strides_are_kept(generator):
    starts, sizes = torch.tensor([10, 0, 10]), torch.tensor([3000, 2000, 1])
    values = torch.rand(5000, 3, generator=generator, dtype=torch.float64)
    strided = values.T.contiguous().T
    assert torch.equal(packed.ragged_gather(strided, starts, sizes), packed.ragged_gather(values, starts, sizes))
    packed.ragged_gather(values.requires_grad_(), starts, sizes).sum().backward()
    assert values.grad[:, 0].tolist() == [1.0] * 10 + [3.0] + [2.0] * 1989 + [1.0] * 1010 + [0.0] * 1990


def test_a_machine_without_a_place_for_the_cache_compiles_all_the_same(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    values, starts, sizes = torch.arange(9000), torch.tensor([1]), torch.tensor([8000])
    compiled.cache_clear()
    assert torch.equal(packed.ragged_gather(values, starts, sizes), values[1:8001])
    compiled.cache_clear()


def test_forward_derivatives_pass_through_large_selections():
    complex = es.Complex(torch.randn(4000, 2), batch=torch.arange(4000) // 100)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(complex.points, torch.ones(4000, 2))
        chosen = complex.with_points(dual).select(list(range(39)))
        tangent = torch.autograd.forward_ad.unpack_dual(chosen.points).tangent
    assert torch.equal(tangent, torch.ones(3900, 2))
