"""Memory that a kernel reads by address is there, in one piece, and where the processor finds it."""

import gc
import signal
import threading
import weakref

import numpy as np
import pytest
import torch
from drawing import random_complex
from numba import njit

import eulerscan as es
from eulerscan.kernels import reference
from eulerscan.kernels.cpu import planning, team, threads
from eulerscan.kernels.cpu.addresses import array_at


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
    for ect, given in ((reference.ect, tensors), (es.kernels.ect, {**tensors, which: strided(tensors[which])})):
        inputs = [given[name].detach().requires_grad_() for name in ("points", "directions", "thresholds")]
        assert ect is reference.ect or not given[which].is_contiguous()
        transform = ect(*inputs, torch.tensor(9.0, dtype=torch.float64), *layout)
        results.append([transform, *torch.autograd.grad(transform, inputs, given["gradient"])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_an_expanded_gradient_is_that_of_the_sum():
    complex, layout, directions, thresholds, _ = example()
    points = complex.points.clone().requires_grad_()
    transform = es.kernels.ect(points, directions, thresholds, torch.tensor(9.0, dtype=torch.float64), *layout)
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
    with pytest.raises(ValueError, match="must have memory"):
        torch.autograd.grad(transform.sum(), directions, retain_graph=True)
    others = [torch.full_like(values, 1e6) for _ in range(20)]
    storage.resize_(size)
    directions.data.copy_(values)
    (found,) = torch.autograd.grad(transform.sum(), directions)
    assert len(others) == 20
    assert torch.equal(found, expected)


def test_signs_that_are_still_to_be_applied_are():
    complex, layout, directions, thresholds, gradient = example()
    scale = torch.tensor(9.0, dtype=torch.float64)
    turned = torch._neg_view(-directions)
    assert turned.is_neg()
    plain = es.kernels._prepare(complex.points, directions, thresholds, scale, *layout)
    lazy = es.kernels._prepare(complex.points, turned, thresholds, scale, *layout)
    assert torch.equal(plain.transform(), lazy.transform())
    needs = [True, True, True, True, False]
    for one, two in zip(
        plain.differentiate(gradient, needs), lazy.differentiate(torch._neg_view(-gradient), needs), strict=True
    ):
        assert one is two is None or torch.equal(one, two)


@pytest.mark.parametrize("position", [1, 2, 4, 5, 6])
def test_tensors_elsewhere_than_the_points_do_not_reach_the_kernel(position):
    complex, _, directions, thresholds, _ = example()
    weights = torch.ones(sum(complex.counts), dtype=torch.float64)
    scale = torch.tensor(9.0, dtype=torch.float64)
    inputs = [complex.points, directions, thresholds, scale, weights, complex.packed.simplices, complex.offsets, complex.rows]
    inputs[position] = inputs[position].to("meta")
    with pytest.raises(ValueError, match=r"must be on the CPU like points, got .*meta"):
        es.kernels.ect(*inputs)


def test_a_gradient_elsewhere_does_not_reach_the_kernel():
    complex, layout, directions, thresholds, gradient = example()
    scale = torch.tensor(9.0, dtype=torch.float64)
    problem = es.kernels._prepare(complex.points, directions, thresholds, scale, *layout)
    with pytest.raises(ValueError, match=r"gradient must have .* on meta"):
        problem.differentiate(gradient.to("meta"), [True] * 5)


@pytest.fixture
def interruptible():
    """Programs that a shell starts in the background ignore Ctrl-C, and so would the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_memory_outlives_a_caller_who_is_interrupted(monkeypatch):
    monkeypatch.setattr(team, "_openmp", None)  # who returns when all are done
    caller, helping, release = threading.current_thread(), threading.Event(), threading.Event()
    alive = []

    def kernel(counter):
        if threading.current_thread() is caller:
            assert helping.wait(timeout=60)
            return 0
        helping.set()
        while not interrupted:
            signal.pthread_kill(caller.ident, signal.SIGINT)  # while it waits for us
            threading.Event().wait(0.1)
        assert release.wait(timeout=60)
        alive.append(memory() is not None)
        return 0

    kept, interrupted = np.zeros(3), []
    memory = weakref.ref(kept)
    with pytest.raises(KeyboardInterrupt):
        threads.run(kernel, 2, kept=(kept,))
    interrupted.append(True)
    del kept
    gc.collect()
    release.set()
    while not alive:
        threading.Event().wait(0.01)
    assert alive == [True]


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
def ranges_of(offsets, count):
    return planning.ranges_of(offsets, count)


@pytest.mark.parametrize(
    "sizes", [[], [0], [5], [0, 0, 0], [5000], [3000, 0, 0, 3000], [1] * 10, [700] * 40, [1, 100_000, 1, 1], [9] * 30_000]
)
@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_ranges_divide_the_complexes_into_about_equal_work(sizes, count):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)[None]
    bounds = ranges_of(offsets, count)
    assert bounds[0] == 0
    assert bounds[-1] == len(sizes)
    assert (np.diff(bounds) >= 0).all()
    assert len(bounds) == count + 1
    work = np.diff(offsets[0, bounds])
    assert work.max() <= sum(sizes) / (len(bounds) - 1) + max(sizes, default=0)
