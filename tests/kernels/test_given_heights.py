"""Heights that are given instead of directions, and cells that are not simplices: every kernel equals the reference."""

import math

import numpy as np
import pytest
import torch
from drawing import batches, directions_for, drawn, random_complex, seeds
from hypothesis import strategies as st

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels import dispatch, operation, portable, reference

KERNELS = {"eager": operation.ect, "operation": torch.ops.eulerscan.ect, "portable": portable.ect}
if dispatch.has_triton():
    import interpreter

    KERNELS["triton"] = interpreter.ect
NAMES = ("result", "heights", "thresholds", "scale", "weights")


def arguments(complex, width, scale, *, seed=0, dtype=torch.float64, num_thresholds=13):
    weights = complex.packed.weights
    weights = torch.ones(sum(complex.counts)) if weights is None else weights
    heights = torch.randn(len(complex.points), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    tensors = (heights, es.thresholds(num_thresholds, 1.3), torch.tensor(scale), weights)
    packed = complex.packed
    return [t.to(dtype) for t in tensors], (packed.simplices, packed.offsets, list(packed.rows), packed.dims)


def values_and_gradients(kernel, tensors, layout):
    heights, *others = inputs = [t.clone().requires_grad_() for t in tensors]
    result = kernel(heights, None, *others, *layout)
    upstream = torch.linspace(-1, 1.3, result.numel(), dtype=torch.float64).cos().view_as(result).to(result.dtype)
    gradients = torch.autograd.grad(result, inputs, upstream, materialize_grads=True)
    return dict(zip(NAMES, (result, *gradients), strict=True))


@st.composite
def cell_complexes(draw):
    """Columns of vertices of any number, with dimensions of their own."""
    rng = np.random.default_rng(draw(seeds))
    complexes = []
    kinds = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=4, unique=True))
    for count in draw(st.lists(st.sampled_from([0, 9, 12]), min_size=1, max_size=3)):
        drawn = [[rng.choice(count, rows, replace=False) for _ in range(5 if count else 0)] for _, rows in kinds]
        cells = [torch.tensor(np.array(c).reshape(-1, rows).T) for c, (_, rows) in zip(drawn, kinds, strict=True)]
        weights = [torch.tensor(rng.normal(size=n)) for n in (count, *(c.shape[1] for c in cells))]
        points = torch.tensor(rng.integers(-2, 3, (count, 2)), dtype=torch.float64)
        complexes.append(es.Complex(points, [c.long() for c in cells], dims=[dim for dim, _ in kinds], weights=weights))
    return es.collate(complexes)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [3.0, 900.0, math.inf])
@drawn(complex=st.one_of(batches(weighted=True), cell_complexes()), width=st.integers(1, 19), seed=seeds)
def test_values_and_all_gradients_equal_the_reference(kernel, scale, complex, width, seed):
    given_ = arguments(complex, width, scale, seed=seed)
    expected = values_and_gradients(reference.ect, *given_)
    for name, value in values_and_gradients(KERNELS[kernel], *given_).items():
        atol = 1e-12 * max(1.0, min(scale, 900.0))
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kernel", KERNELS)
@drawn(complex=cell_complexes(), num_directions=st.integers(1, 9))
def test_cells_have_the_sign_of_their_dimension_in_directions_too(kernel, complex, num_directions):
    packed, directions = complex.packed, directions_for(complex, num_directions)
    inputs = (packed.points, directions, es.thresholds(9, 3.0, dtype=torch.float64), torch.tensor(6.0, dtype=torch.float64))
    layout = (packed.weights, packed.simplices, packed.offsets, packed.rows, packed.dims)
    torch.testing.assert_close(KERNELS[kernel](*inputs, *layout), reference.ect(*inputs, *layout))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", [9.0, math.inf])
@drawn(complex=batches(weighted=True), num_directions=st.integers(1, 19), seed=seeds)
def test_directions_of_each_complex_equal_the_reference(kernel, scale, complex, num_directions, seed):
    packed, generator = complex.packed, torch.Generator().manual_seed(seed)
    shape = (complex.num_complexes, num_directions, complex.dim)
    directions = torch.randn(shape, generator=generator, dtype=torch.float64)
    inputs = [packed.points, directions, es.thresholds(9, 1.4, dtype=torch.float64), torch.tensor(scale, dtype=torch.float64)]
    inputs = [tensor.clone().requires_grad_() for tensor in (*inputs, packed.weights)]
    layout = (packed.simplices, packed.offsets, packed.rows)
    found = []
    for function in (KERNELS[kernel], reference.ect):
        result = function(*inputs, *layout)
        upstream = torch.linspace(-1, 1.3, result.numel(), dtype=torch.float64).cos().view_as(result)
        found.append([result, *torch.autograd.grad(result, inputs, upstream, materialize_grads=True)])
    for value, expected in zip(*found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-10)


def test_directions_of_no_complex_are_not_read():
    empty = es.Complex(torch.zeros(0, 2), num_complexes=0)
    directions = torch.zeros(0, 5, 2, requires_grad=True)
    found = es.ect(empty, directions, torch.zeros(3), scale=2.0)
    assert found.shape == (0, 5, 3)
    assert torch.autograd.grad(found.sum(), directions)[0].shape == (0, 5, 2)


def test_heights_and_directions_give_the_same_bits(dtype):
    """One operation: with the heights that it computes itself, it does the same."""
    complex = es.collate([testing.torus(12, 9).complex, testing.sphere(2).complex]).to(dtype=dtype)
    packed, directions, thresholds = complex.packed, es.directions.fibonacci(19).to(dtype), es.thresholds(11).to(dtype)
    layout = (packed.simplices, packed.offsets, packed.rows, packed.dims)
    heights, coefficients = operation.coefficients(packed.points, directions, None, *layout)
    for scale in (20.0, math.inf):
        expected = operation.ect(packed.points, directions, thresholds, scale, None, *layout)
        assert torch.equal(operation.ect(heights, None, thresholds, scale, None, *layout), expected)
    again = operation.coefficients(heights, None, None, *layout)
    assert torch.equal(again[0], heights)
    assert torch.equal(again[1], coefficients)
    by_torch = portable.collapse(heights, list(portable.levels(None, *layout)))
    assert torch.equal(by_torch, coefficients)


@pytest.mark.parametrize("dim_scale", [(1, 8.0), (9, 8.0), (3, 40.0)])
def test_many_vertices_at_a_soft_scale(dim_scale):
    """Moments instead of windows."""
    width, scale = dim_scale
    cloud = es.Complex(torch.zeros(6000, 1, dtype=torch.float64), weights=[torch.linspace(-1, 2, 6000, dtype=torch.float64)])
    given_ = arguments(cloud, width, scale, num_thresholds=9)
    expected = values_and_gradients(reference.ect, *given_)
    for name, value in values_and_gradients(operation.ect, *given_).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("offset", [0.0, 3.0, -1e4, 1e9])
@pytest.mark.parametrize("count", [1, 2, 9, 64, 257])
@pytest.mark.parametrize("even", [True, False])
def test_heights_on_and_beside_thresholds_are_counted_exactly(dtype, offset, count, even):
    """Eight heights at once are found by arithmetic and one comparison, if the thresholds are even."""
    generator = torch.Generator().manual_seed(count)
    grid = torch.linspace(-1, 1, count, dtype=torch.float64) if even else torch.randn(count, generator=generator).sort().values
    thresholds = (grid + offset).to(dtype)
    thresholds = thresholds.sort().values
    beside = [torch.nextafter(thresholds, torch.full_like(thresholds, side)) for side in (-math.inf, math.inf)]
    far = torch.tensor([-1e30, 1e30, -math.inf, math.inf], dtype=dtype)
    between = (thresholds[:1] + torch.rand(50, generator=generator).to(dtype) * 2).to(dtype)
    values = torch.cat([thresholds, *beside, far, between])
    heights = values[torch.randint(0, len(values), (len(values), 8), generator=generator)]
    packed = es.Complex(torch.zeros(len(heights), 1)).packed
    found = operation.ect(heights, None, thresholds, math.inf, None, packed.simplices, packed.offsets, packed.rows)
    expected = (heights[:, :, None] <= thresholds).sum(dim=0)
    assert torch.equal(found[0], expected.to(dtype))


@pytest.mark.usefixtures("poisoned_memory")
def test_no_uninitialised_memory_is_read(dtype):
    complex = es.collate([testing.disc(9).complex, es.Complex(torch.rand(0, 2, dtype=torch.float64)), testing.cycle(5).complex])
    for width in (1, 7, 8, 9):
        for value in values_and_gradients(torch.ops.eulerscan.ect, *arguments(complex, width, 20.0, dtype=dtype)).values():
            assert value.isfinite().all()


def test_any_number_of_threads_gives_the_same_bits_for_directions_of_each_complex():
    complex = es.collate([testing.torus(20 + n, 30).complex for n in range(9)]).to(dtype=torch.float32)
    directions = torch.randn(9, 19, 3, generator=torch.Generator().manual_seed(0))
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            inputs = [complex.points.clone().requires_grad_(), directions.clone().requires_grad_()]
            result = es.ect(complex.with_points(inputs[0]), inputs[1], es.thresholds(16), scale=30.0)
            found.append([result, *torch.autograd.grad(result.cos().sum(), inputs)])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("needs_weights", [False, True])
def test_any_number_of_threads_gives_the_same_bits(needs_weights):
    complex = es.collate([testing.torus(60, 50).complex, testing.sphere(4).complex])
    tensors, layout = arguments(complex, 67, 30.0, dtype=torch.float32)
    if not needs_weights:
        tensors = tensors[:3]
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            inputs = [t.clone().requires_grad_() for t in tensors]
            weights = inputs[3:] or [None]
            result = operation.ect(inputs[0], None, *inputs[1:3], *weights, *layout)
            found.append([result, *torch.autograd.grad(result.cos().sum(), inputs)])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("dims", [None, [1, 3]])
def test_opcheck_without_directions(dims):
    complex = random_complex(np.random.default_rng(0), weighted=True)
    (heights, *others), (simplices, offsets, rows, _) = arguments(complex, 5, 20.0)
    inputs = [heights.requires_grad_(), None, *others, simplices, offsets, rows, dims]
    torch.library.opcheck(torch.ops.eulerscan.ect.default, inputs)
    with torch.no_grad():
        gradient = torch.rand(1, 5, 13, dtype=torch.float64)
        needs = [True, False, True, True, True]
        torch.library.opcheck(torch.ops.eulerscan.ect_backward.default, [gradient, *inputs[:8], needs, dims])


def test_second_derivatives_and_forward_mode_without_directions():
    complex = random_complex(np.random.default_rng(5), num_points=5, weighted=True)
    tensors, layout = arguments(complex, 2, 5.0, num_thresholds=4)
    function = lambda heights, *others: operation.ect(heights, None, *others, *layout)  # noqa: E731
    inputs = [t.requires_grad_() for t in tensors]
    assert torch.autograd.gradgradcheck(function, inputs)
    heights = tensors[0].detach()
    others = [t.detach() for t in tensors[1:]]
    jacobian = torch.func.jacfwd(lambda h: function(h, *others))(heights)
    torch.testing.assert_close(jacobian, torch.autograd.functional.jacobian(lambda h: function(h, *others), heights))
    batched = torch.vmap(lambda h: function(h, *others))(torch.stack([heights, heights + 0.1]))
    torch.testing.assert_close(batched[1], function(heights + 0.1, *others))


def test_no_wrong_size_reaches_a_kernel():
    (heights, *others), layout = arguments(random_complex(np.random.default_rng(0), weighted=True), 5, 20.0)
    with pytest.raises(ValueError, match="offsets must split"):
        torch.ops.eulerscan.ect(heights[:-1], None, *others, *layout)
    with pytest.raises(ValueError, match="shapes"):
        torch.ops.eulerscan.ect(heights[:, 0], None, *others, *layout)
    with pytest.raises(ValueError, match="shapes"):  # directions without axes would pass for given heights
        torch.ops.eulerscan.ect(heights[:, :0], heights.new_empty(5, 0), *others, *layout)
    for sets in (0, 2):  # directions for another number of complexes
        with pytest.raises(ValueError, match="shapes"):
            torch.ops.eulerscan.ect(heights, heights.new_zeros(sets, 4, 5), *others, *layout)
    with pytest.raises(ValueError, match="dims must have one entry a level"):
        torch.ops.eulerscan.ect(heights, None, *others, *layout[:3], [1, 2, 3])
    with pytest.raises(IndexError, match="own complex"):
        torch.ops.eulerscan.ect(heights, None, *others, layout[0] + 100, *layout[1:])
    with pytest.raises(TypeError, match="dtype"):
        torch.ops.eulerscan.ect(heights, None, others[0].float(), *others[1:], *layout)


@pytest.mark.parametrize("scale", [5.0, math.inf])
def test_nan_shows_in_its_curve_alone(scale):
    cloud = es.Complex(torch.zeros(4, 1))
    packed = cloud.packed
    heights = torch.zeros(4, 3)
    heights[1, 1] = math.nan
    for kernel in (operation.ect, portable.ect):
        inputs = (heights, None, torch.zeros(2), torch.tensor(scale), None, packed.simplices, packed.offsets, packed.rows)
        found = kernel(*inputs)
        assert found.isnan().any(dim=-1).tolist() == [[False, True, False]]


def test_infinite_heights_have_finite_gradients_everywhere():
    packed = es.Complex(torch.zeros(3, 1)).packed
    for kernel in (operation.ect, portable.ect):
        heights = torch.tensor([[-math.inf], [0.0], [math.inf]], requires_grad=True)
        scale = torch.tensor(2.0, requires_grad=True)
        result = kernel(heights, None, torch.tensor([0.0, 1.0]), scale, None, packed.simplices, packed.offsets, packed.rows)
        torch.testing.assert_close(result[0, 0], torch.tensor([1.5, 1 + torch.tensor(2.0).sigmoid()]))
        for gradient in torch.autograd.grad(result.sum(), (heights, scale)):
            assert gradient.isfinite().all()
