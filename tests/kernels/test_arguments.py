"""Kernels read tensors by address: the memory is contiguous, on the CPU and alive."""

import numpy as np
import pytest
import torch
from drawing import random_complex
from numba import njit

import eulerscan as es
from eulerscan.kernels import operation, reference
from eulerscan.kernels.cpu.arguments import split_into_ranges
from eulerscan.kernels.cpu.jit import array_at


def example():
    complex = random_complex(np.random.default_rng(0), num_points=12)
    layout = (complex.packed.weights, complex.packed.simplices, complex.offsets, complex.rows)
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(11, complex.dim, generator=generator, dtype=torch.float64)
    gradient = torch.randn(1, 11, 13, generator=generator, dtype=torch.float64)
    return complex, layout, directions, es.thresholds(13, dtype=torch.float64), gradient


def strided(tensor):
    """The same values with gaps between them."""
    wide = torch.full((*tensor.shape, 3), torch.nan, dtype=tensor.dtype)
    wide[..., 1] = tensor
    return wide[..., 1]


@pytest.mark.parametrize("which", ["points", "directions", "thresholds", "gradient"])
def test_tensors_with_gaps_give_the_values_and_gradients_of_the_reference(which):
    complex, layout, directions, thresholds, gradient = example()
    tensors = {"points": complex.points, "directions": directions, "thresholds": thresholds, "gradient": gradient}
    results = []
    for ect, given in ((reference.ect, tensors), (operation.ect, {**tensors, which: strided(tensors[which])})):
        inputs = [given[name].detach().requires_grad_() for name in ("points", "directions", "thresholds")]
        assert ect is reference.ect or not given[which].is_contiguous()
        transform = ect(*inputs, torch.tensor(9.0, dtype=torch.float64), *layout)
        results.append([transform, *torch.autograd.grad(transform, inputs, given["gradient"])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_an_expanded_gradient_is_that_of_the_sum():
    complex, layout, directions, thresholds, _ = example()
    points = complex.points.clone().requires_grad_()
    transform = operation.ect(points, directions, thresholds, torch.tensor(9.0, dtype=torch.float64), *layout)
    (found,) = torch.autograd.grad(transform.sum(), points, retain_graph=True)
    (expected,) = torch.autograd.grad(transform, points, torch.ones_like(transform))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("num_directions", [40, 4000])  # with and without fields that are kept
def test_parameters_may_get_other_memory_between_the_passes(num_directions):
    layer = es.ECTLayer(2, num_directions, 8, on_sphere=False)
    points = torch.rand(50, 2, generator=torch.Generator().manual_seed(0)).requires_grad_()
    inputs = (points, layer.directions)
    expected = torch.autograd.grad(layer(points).square().sum(), inputs)
    loss = layer(points).square().sum()
    layer.directions.data = layer.directions.data.clone()
    others = [torch.full_like(layer.directions, 1e6) for _ in range(20)]  # where the first memory was
    found = torch.autograd.grad(loss, inputs)
    assert len(others) == 20
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_storage_may_be_emptied_and_filled_again_between_the_passes():
    directions = torch.nn.Parameter(torch.randn(2000, 3, generator=torch.Generator().manual_seed(0)))
    transform = es.ect(torch.rand(50, 3, generator=torch.Generator().manual_seed(1)), directions, es.thresholds(16), scale=8.0)
    (expected,) = torch.autograd.grad(transform.sum(), directions, retain_graph=True)
    values, storage = directions.detach().clone(), directions.untyped_storage()
    size = storage.nbytes()
    storage.resize_(0)  # as training in shards does
    with pytest.raises(ValueError, match=r"memory.*storage is empty"):
        torch.autograd.grad(transform.sum(), directions, retain_graph=True)
    others = [torch.full_like(values, 1e6) for _ in range(20)]
    storage.resize_(size)
    directions.data.copy_(values)
    (found,) = torch.autograd.grad(transform.sum(), directions)
    assert len(others) == 20
    assert torch.equal(found, expected)


def test_lazy_negation_is_resolved():
    complex, layout, directions, thresholds, gradient = example()
    scale = torch.tensor(9.0, dtype=torch.float64)
    negated = torch._neg_view(-directions)
    assert negated.is_neg()
    plain = operation._prepare(complex.points, directions, thresholds, scale, *layout)
    lazy = operation._prepare(complex.points, negated, thresholds, scale, *layout)
    assert torch.equal(plain.transform(), lazy.transform())
    needs = [True, True, True, True, False]
    for one, two in zip(
        plain.differentiate(gradient, needs), lazy.differentiate(torch._neg_view(-gradient), needs), strict=True
    ):
        assert one is two is None or torch.equal(one, two)


@pytest.mark.parametrize("position", [1, 2, 4, 5, 6])
def test_tensors_on_another_device_do_not_reach_the_kernel(position):
    complex, _, directions, thresholds, _ = example()
    weights = torch.ones(sum(complex.counts), dtype=torch.float64)
    scale = torch.tensor(9.0, dtype=torch.float64)
    inputs = [complex.points, directions, thresholds, scale, weights, complex.packed.simplices, complex.offsets, complex.rows]
    inputs[position] = inputs[position].to("meta")
    with pytest.raises(ValueError, match=r"must be on the CPU like points, got .*meta"):
        operation.ect(*inputs)


def test_a_gradient_on_another_device_does_not_reach_the_kernel():
    complex, layout, directions, thresholds, gradient = example()
    scale = torch.tensor(9.0, dtype=torch.float64)
    problem = operation._prepare(complex.points, directions, thresholds, scale, *layout)
    with pytest.raises(ValueError, match=r"gradient must have .* on meta"):
        problem.differentiate(gradient.to("meta"), [True] * 5)


def test_an_array_at_an_address_is_the_memory_there():
    numbers = torch.arange(6.0)

    @njit
    def double(address, like):
        matrix = array_at(address, (2, 3), like)
        matrix *= 2
        return matrix[1, 0]

    assert double(numbers.data_ptr(), np.float32(0)) == 6
    assert numbers.tolist() == [0, 2, 4, 6, 8, 10]


@njit
def _split(offsets, count):
    return split_into_ranges(offsets, count)


@pytest.mark.parametrize(
    "sizes", [[], [0], [5], [0, 0, 0], [5000], [3000, 0, 0, 3000], [1] * 10, [700] * 40, [1, 100_000, 1, 1], [9] * 30_000]
)
@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_ranges_divide_the_complexes_into_about_equal_work(sizes, count):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)[None]
    bounds = _split(offsets, count)
    assert bounds[0] == 0
    assert bounds[-1] == len(sizes)
    assert (np.diff(bounds) >= 0).all()
    assert len(bounds) == count + 1
    work = np.diff(offsets[0, bounds])
    assert work.max() <= sum(sizes) / (len(bounds) - 1) + max(sizes, default=0)
