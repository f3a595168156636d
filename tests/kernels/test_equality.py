"""Every kernel equals the reference: values, and the gradients of all five inputs."""

import math

import numpy as np
import pytest
import torch
from drawing import batches, directions_for, drawn, random_complex, seeds
from hypothesis import strategies as st
from numba import njit

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels import dispatch, portable, reference
from eulerscan.kernels import operation as kernels
from eulerscan.kernels.cpu.moments import make_bins, num_nonzero
from eulerscan.kernels.cpu.windows import make_grid

KERNELS = {"eager": kernels.ect, "operation": torch.ops.eulerscan.ect, "portable": portable.ect}
if dispatch.has_triton():
    import interpreter

    KERNELS["triton"] = interpreter.ect
SCALES = [3.0, 40.0, 900.0, 1e5]


def arguments(complex, num_directions, thresholds, scale, dtype=torch.float64):
    """What a kernel takes, with weights even where the complex has none."""
    weights = complex.packed.weights
    weights = torch.ones(sum(complex.counts)) if weights is None else weights
    directions = directions_for(complex, num_directions, seed=num_directions)
    tensors = (complex.points, directions, thresholds, torch.tensor(scale), weights)
    return [t.to(dtype) for t in tensors], (complex.packed.simplices, complex.offsets, list(complex.rows))


def values_and_gradients(kernel, tensors, layout):
    inputs = [t.clone().requires_grad_() for t in tensors]
    result = kernel(*inputs, *layout)
    upstream = torch.linspace(-1, 1.3, result.numel(), dtype=torch.float64).cos().view_as(result).to(result.dtype)
    gradients = torch.autograd.grad(result, inputs, upstream, materialize_grads=True)
    return dict(zip(("result", "points", "directions", "thresholds", "scale", "weights"), (result, *gradients), strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", SCALES)
@drawn(complex=batches(weighted=True), num_directions=st.integers(1, 19), num_thresholds=st.integers(1, 37))
def test_values_and_all_gradients_equal_the_reference(kernel, scale, complex, num_directions, num_thresholds):
    thresholds = es.thresholds(num_thresholds, 1.3, dtype=torch.float64)
    given_ = arguments(complex, num_directions, thresholds, scale)
    expected = values_and_gradients(reference.ect, *given_)
    for name, value in values_and_gradients(KERNELS[kernel], *given_).items():
        # A gradient is a sum of terms as large as scale times the upstream gradient.
        torch.testing.assert_close(
            value, expected[name], rtol=1e-9, atol=1e-12 * max(1.0, scale), msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("kernel", KERNELS)
@drawn(complex=batches(weighted=True), seed=seeds, scale=st.sampled_from([*SCALES, math.inf]))
def test_uneven_thresholds_equal_the_reference(kernel, complex, seed, scale):
    rng = np.random.default_rng(seed)
    thresholds = torch.tensor(np.sort(np.concatenate([rng.normal(size=9), rng.normal(size=4) * 1e-4, [-50, 50, 50]])))
    given_ = arguments(complex, 5, thresholds, scale)
    expected = values_and_gradients(reference.ect, *given_)
    for name, value in values_and_gradients(KERNELS[kernel], *given_).items():
        atol = 1e-12 * (min(scale, 1e5))
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("jitter", [0.0, 0.24, 0.26])  # of a step: even, nearly even, uneven
@pytest.mark.parametrize("steepness", [0.5, 4.0, 99.0, 101.0])  # of the sigmoid, in steps
def test_the_ends_of_windows_equal_the_reference(kernel, jitter, steepness):
    rng, count = np.random.default_rng(0), 21
    thresholds = torch.tensor(np.linspace(-1, 1, count) + jitter * 0.1 * rng.choice([-1, 1], count))
    scale = steepness / 0.1
    reach = thresholds.new_tensor([-37, -1e-9, 0, 1e-9, 37]) / scale
    heights = torch.cat([(thresholds[:, None] + reach).flatten(), thresholds.new_tensor([-1e60, -1e3, 1e3, 1e60])])
    complex = es.Complex(heights[:, None], weights=[torch.tensor(rng.uniform(0.5, 1.5, len(heights)))])
    tensors, layout = arguments(complex, 1, thresholds, scale)
    tensors[1] = torch.ones_like(tensors[1])
    expected = values_and_gradients(reference.ect, tensors, layout)
    for name, value in values_and_gradients(KERNELS[kernel], tensors, layout).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_exact_transform_has_gradients_in_its_weights_alone(kernel):
    complex = random_complex(np.random.default_rng(1), weighted=True)
    given_ = arguments(complex, 9, es.thresholds(8, dtype=torch.float64), math.inf)
    found, expected = (values_and_gradients(k, *given_) for k in (KERNELS[kernel], reference.ect))
    torch.testing.assert_close(found["weights"], expected["weights"])
    assert found["weights"].abs().max() > 0
    assert all((found[name] == 0).all() for name in ("points", "directions", "thresholds", "scale"))


@pytest.mark.parametrize("kernel", KERNELS)
@drawn(complex=batches(lattice=True), seed=seeds)
def test_ties_give_a_subgradient_that_no_order_changes(kernel, complex, seed):
    """Equal heights everywhere: the gradient must not depend on how vertices of a simplex or simplices are listed."""
    directions = torch.eye(complex.dim, dtype=torch.float64)
    thresholds = torch.linspace(-2.5, 2.5, 11, dtype=torch.float64)

    def gradient(c):
        points = c.points.clone().requires_grad_()
        scale = torch.tensor(4.0, dtype=torch.float64)
        result = KERNELS[kernel](points, directions, thresholds, scale, None, c.packed.simplices, c.offsets, list(c.rows))
        return torch.autograd.grad(result, points, torch.arange(result.numel(), dtype=torch.float64).view_as(result))[0]

    generator = torch.Generator().manual_seed(seed)
    levels = []
    for level in complex.simplices:
        columns = torch.randperm(level.shape[1], generator=generator)
        levels.append(level[torch.randperm(len(level), generator=generator)][:, columns])
    reordered = es.Complex(complex.points, levels, batch=complex.batch, num_complexes=complex.num_complexes)
    torch.testing.assert_close(gradient(reordered), gradient(complex), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("count", [1, 3000])  # by windows, by moments
@pytest.mark.parametrize(
    ("height", "scale"), [(1e20, 1.0), (1.0, 1e20), (-3e7, 1e12), (1e300, 1e-3), (1.0, 2.0**52), (2.0**60, 0.1)]
)
def test_ties_equal_the_reference_where_the_sigmoid_is_narrower_than_rounding(kernel, height, scale, count, dtype):
    """The ends of the window round to the height itself, where the sigmoid is one half."""
    if abs(height) > torch.finfo(dtype).max:
        pytest.skip("beyond float32")
    count = min(count, 1400) if kernel == "triton" else count  # two of its chunks: the interpreter is slow
    at = torch.tensor(height, dtype=dtype)
    steps = [torch.nextafter(at, at.new_tensor(end)) for end in (-math.inf, math.inf)]
    points = torch.stack([steps[0], at, steps[1]]).repeat(count)[:, None]
    layout = (torch.empty(0, dtype=torch.long), torch.tensor([[0, len(points)]]), [])
    weights = torch.linspace(0.5, 1.5, len(points), dtype=dtype)
    tensors = [points, at.new_ones(1, 1), torch.stack([at - at.abs(), steps[0], at, steps[1]]), at.new_tensor(scale), weights]
    expected = values_and_gradients(reference.ect, tensors, layout)
    for name, value in values_and_gradients(KERNELS[kernel], tensors, layout).items():
        size = float(expected[name].detach().abs().max())
        rtol = 1e-4 if dtype == torch.float32 else 1e-9
        torch.testing.assert_close(value, expected[name], rtol=rtol, atol=rtol * size, msg=lambda m, n=name: f"{n}: {m}")
    assert 0.3 < float(expected["result"].detach()[0, 0, 2] / weights.sum()) < 0.55  # two thirds, were the ties counted in full


@pytest.mark.parametrize("scale", [8.0, 200.0])
@pytest.mark.parametrize("name", ["result", "points", "directions", "thresholds", "scale", "weights"])
def test_float32_is_no_worse_than_the_dense_formula_in_float32(scale, name, generator):
    complex = testing.sphere(3).complex
    weights = [torch.rand(n, generator=generator, dtype=torch.float64) + 0.5 for n in complex.counts]
    complex = es.Complex(complex.points.float().double(), complex.simplices, weights=weights)
    thresholds = es.thresholds(32).double()
    # The truth is that of the rounded inputs.
    rounded, layout = arguments(complex, 16, thresholds, scale, torch.float32)
    exact = values_and_gradients(reference.ect, [t.double() for t in rounded], layout)[name]
    errors = [
        (values_and_gradients(kernel, rounded, layout)[name].double() - exact).abs().mean()
        for kernel in (torch.ops.eulerscan.ect, reference.ect)
    ]
    assert errors[0] <= errors[1]


@pytest.mark.parametrize("scale", [5.0, 60.0])
def test_gradcheck_in_all_five_inputs(scale):
    complex = es.collate([random_complex(np.random.default_rng(s), num_points=5, dim=3, top=3, weighted=True) for s in (0, 1)])
    tensors, layout = arguments(complex, 3, es.thresholds(5, 1.5, dtype=torch.float64), scale)
    inputs = [t.requires_grad_() for t in tensors]
    assert torch.autograd.gradcheck(lambda *t: kernels.ect(*t, *layout), inputs)


def test_second_derivatives_come_from_torch():
    complex = random_complex(np.random.default_rng(5), num_points=5, weighted=True)
    tensors, layout = arguments(complex, 2, es.thresholds(4, 1.5, dtype=torch.float64), 5.0)
    inputs = [t.requires_grad_() for t in tensors]
    assert torch.autograd.gradgradcheck(lambda *t: kernels.ect(*t, *layout), inputs)


@pytest.mark.usefixtures("poisoned_memory")
def test_no_uninitialised_memory_is_read(dtype):
    complex = es.collate([testing.disc(9).complex, es.Complex(torch.rand(0, 2, dtype=torch.float64)), testing.cycle(5).complex])
    for num_directions in (1, 7, 8, 9):
        tensors, layout = arguments(complex, num_directions, es.thresholds(11, dtype=torch.float64), 20.0, dtype)
        for value in values_and_gradients(torch.ops.eulerscan.ect, tensors, layout).values():
            assert value.isfinite().all()


@pytest.mark.parametrize("num_directions", [1, 8, 19])
def test_what_small_problems_keep_for_the_backward_pass_changes_no_bit(dtype, num_directions):
    complexes = [random_complex(np.random.default_rng(s), num_points=n) for s, n in enumerate((9, 0, 30, 1))]
    tensors, layout = arguments(es.collate(complexes), num_directions, es.thresholds(11, dtype=torch.float64), 20.0, dtype)
    inputs, weights = [t.requires_grad_() for t in tensors[:4]], tensors.pop()
    assert len(kernels._prepare(*inputs, None, *layout, keep=True).arguments.fields) == -(-num_directions // 8) * 40
    assert not len(kernels._prepare(*inputs, weights, *layout, keep=True).arguments.fields)
    transform = kernels.ect(*inputs, None, *layout)
    gradient = torch.linspace(-1, 1.3, transform.numel(), dtype=dtype).view_as(transform)
    anew = torch.ops.eulerscan.ect_backward(gradient, *inputs, None, *layout, [True] * 4 + [False])
    for _ in range(2):
        found = torch.autograd.grad(transform, inputs, gradient, retain_graph=True)
        assert all(torch.equal(a, b) for a, b in zip(found, anew[:4], strict=True))


def test_what_was_kept_does_not_outlive_the_backward_pass():
    """A history of losses, say, holds the graphs of all steps."""
    points = torch.rand(9, 2, requires_grad=True)
    transform = es.ect(points, es.directions.circle(3), es.thresholds(4), scale=5.0)
    assert len(transform.grad_fn.problem.arguments.fields)
    transform.sum().backward()
    assert transform.grad_fn.problem is None


def test_large_problems_keep_nothing():
    tensors, layout = arguments(testing.torus(40, 40).complex, 64, es.thresholds(5, dtype=torch.float64), 20.0)
    assert not len(kernels._prepare(*tensors[:4], None, *layout, keep=True).arguments.fields)


def test_inputs_computed_from_each_other_are_differentiated_once():
    points = torch.rand(5, 2, dtype=torch.float64, requires_grad=True)
    thresholds = es.thresholds(4, dtype=torch.float64)

    def loss():
        weighted = es.Complex(points, weights=[points.norm(dim=1)])
        return es.ect(weighted, 2 * points[:3], thresholds, scale=3.0).square().sum()

    (first,) = torch.autograd.grad(loss(), points)
    (again,) = torch.autograd.grad(loss(), points, create_graph=True)
    torch.testing.assert_close(again, first)
    assert torch.autograd.gradgradcheck(lambda p: es.ect(p, p[:2] + 1, thresholds, scale=3.0), points)


def test_the_gradient_of_the_scale_survives_a_large_offset():
    generator = torch.Generator().manual_seed(0)
    complex = testing.random_graph(30, 40, generator=generator).complex
    tensors, layout = arguments(complex, 1, es.thresholds(9, dtype=torch.float64), 5.0)
    tensors[0], tensors[1] = tensors[0] + 1e9, torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    tensors[2] = tensors[2] + 1e9
    got, expected = (values_and_gradients(kernel, tensors, layout)["scale"] for kernel in (kernels.ect, reference.ect))
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=0)


def test_autocast_does_not_reach_into_second_derivatives_or_portable():
    complex = random_complex(np.random.default_rng(4))
    tensors, layout = arguments(complex, 4, es.thresholds(5, dtype=torch.float64), 9.0, torch.float32)
    expected = reference.ect(*tensors, *layout)
    tensors[0].requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for kernel in (reference.ect, portable.ect, kernels.ect):
            result = kernel(*tensors, *layout)
            torch.testing.assert_close(result, expected)
            (gradient,) = torch.autograd.grad(result.sum(), tensors[0], create_graph=True)
            gradient.square().sum().backward()


def test_portable_splits_directions_to_save_memory(monkeypatch):
    complex = testing.torus().complex
    tensors, layout = arguments(complex, 13, es.thresholds(9, dtype=torch.float64), 30.0)
    whole = values_and_gradients(portable.ect, tensors, layout)
    monkeypatch.setattr(portable, "MAX_ENTRIES", 3000)
    for name, value in values_and_gradients(portable.ect, tensors, layout).items():
        torch.testing.assert_close(value, whole[name])


@pytest.mark.parametrize("scale", [30.0, math.inf])
def test_other_devices_take_the_portable_way(scale):
    """What a CUDA tensor would run, on the CPU."""
    complex = random_complex(np.random.default_rng(2), weighted=True)
    tensors, layout = arguments(complex, 5, es.thresholds(6, dtype=torch.float64), scale)
    torch.testing.assert_close(portable.ect(*tensors, *layout), reference.ect(*tensors, *layout))
    gradient = torch.rand(1, 5, 6, dtype=torch.float64)
    for needs in ([True] * 5, [False, True, False, False, False], [False, False, False, False, True]):
        expected = torch.ops.eulerscan.ect_backward(gradient, *tensors, *layout, needs)
        for found, tensor, needed in zip(
            portable.Problem((*tensors, *layout)).differentiate(gradient, needs), expected, needs, strict=True
        ):
            assert (found is not None) == needed
            if found is not None:
                torch.testing.assert_close(found, tensor)


def test_many_thresholds_and_a_steep_scale(generator):
    """More than a sigmoid's table holds: every window is tabulated anew."""
    complex = testing.random_graph(50, 80, generator=generator).complex
    tensors, layout = arguments(complex, 5, es.thresholds(5000, 1.5, dtype=torch.float64), 2000.0)
    expected = values_and_gradients(reference.ect, tensors, layout)
    for name, value in values_and_gradients(torch.ops.eulerscan.ect, tensors, layout).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=1e-8, msg=lambda m, n=name: f"{n}: {m}")


# Many vertices at a soft scale: moments instead of windows


def cloud(num_points, *, seed=0, weighted=True, stretch=1.0):
    """Points in a ball, a few of them on each other, their weights of both signs and some zero."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(num_points, 3))
    points *= stretch / np.linalg.norm(points, axis=1).max(initial=1e-9)
    points[: num_points // 20] = points[num_points // 20 : num_points // 20 + 1]
    weights = rng.normal(size=num_points) * (rng.uniform(size=num_points) > 0.1)
    return es.Complex(torch.tensor(points), weights=[torch.tensor(weights)] if weighted else None)


def wavy_mesh(side):
    """A square of vertices on a lattice, lifted a little; two triangles in every cell."""
    index = torch.arange(side * side).view(side, side)
    a, b, c, d = (i.reshape(-1) for i in (index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:]))
    flat = torch.cartesian_prod(*2 * [torch.linspace(-0.7, 0.7, side, dtype=torch.float64)])
    points = torch.cat([flat, (9 * flat).sin().prod(dim=1, keepdim=True) / 9], dim=1)
    return es.Complex(points, [torch.cat([torch.stack([a, b, d]), torch.stack([a, c, d])], dim=1)]).closure()


UNEVEN = torch.tensor(
    np.sort(np.concatenate([np.random.default_rng(3).normal(size=13) / 2, [-4, -0.1, -0.1, -0.1, 0.2, 3, 3]]))
)
SOFT = {
    "a cloud": (cloud(2500), 11, es.thresholds(19, dtype=torch.float64), 8.0),
    "steeper": (cloud(5000), 5, es.thresholds(33, dtype=torch.float64), 40.0),
    "uneven thresholds": (cloud(4000), 3, UNEVEN, 11.0),
    "one threshold": (cloud(2500), 9, torch.tensor([0.1], dtype=torch.float64), 20.0),
    "heights outside": (cloud(4000, stretch=30.0), 5, es.thresholds(16, dtype=torch.float64), 20.0),
    "heights on thresholds": (wavy_mesh(110), 2, torch.linspace(-0.7, 0.7, 15, dtype=torch.float64), 6.0),
    "very soft": (cloud(2500), 2, es.thresholds(9, dtype=torch.float64), 1e-3),
}


@njit
def _takes_moments(thresholds, scale, saturation, num_points, offsets):
    return num_nonzero(offsets, 0) >= make_bins(make_grid(thresholds, scale, saturation), thresholds, num_points).min_vertices


def takes_moments(complex, thresholds, scale, dtype):
    """Whether the transform of one complex does."""
    saturation = portable.SATURATION[dtype]
    return _takes_moments(thresholds.to(dtype).numpy(), scale, saturation, len(complex.points), complex.offsets.numpy())


@pytest.mark.parametrize("kind", SOFT)
def test_moments_equal_the_reference(kind):
    complex, num_directions, thresholds, scale = SOFT[kind]
    assert takes_moments(complex, thresholds, scale, torch.float64)
    tensors, layout = arguments(complex, num_directions, thresholds, scale)
    tensors[1][-1] *= 3.0
    tensors[1][0] = torch.tensor([1.0, 0.0, 0.0])  # levels the mesh: ties everywhere
    # Where simplices tie, the reference takes another subgradient, and rounds the same way 10,000 times.
    expected = values_and_gradients(portable.ect if complex.simplices else reference.ect, tensors, layout)
    found = values_and_gradients(torch.ops.eulerscan.ect, tensors, layout)
    for name, value in expected.items():
        atol = 1e-12 * max(1.0, scale) * (len(complex.points) if name in ("directions", "scale", "thresholds") else 1)
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=atol, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kind", ["a cloud", "steeper", "uneven thresholds", "heights outside"])
def test_moments_in_float32_are_no_worse_than_the_dense_formula(kind, generator):
    """On the mean over a few draws: the gradient of the scale is one number, in which roundings may cancel by luck."""
    complex, num_directions, thresholds, scale = SOFT[kind]
    assert takes_moments(complex, thresholds, scale, torch.float32)
    errors: dict[str, list[float]] = {}
    for draw in range(6):
        order = torch.randperm(len(complex.points), generator=generator)
        moved = complex.with_points((1 + 0.01 * draw) * complex.points[order])
        rounded, layout = arguments(moved, num_directions, thresholds, scale, torch.float32)
        exact = values_and_gradients(reference.ect, [t.double() for t in rounded], layout)
        for i, kernel in enumerate((torch.ops.eulerscan.ect, reference.ect)):
            for name, value in values_and_gradients(kernel, rounded, layout).items():
                errors.setdefault(name, [0.0, 0.0])[i] += (value.double() - exact[name]).abs().mean().item()
    for name, (ours, dense) in errors.items():
        assert ours <= dense, name


def test_moments_of_many_weights_at_one_height_are_no_worse_than_the_dense_formula(generator):
    """The hardest case for sums in float32: all that there is falls in one cell."""
    weights, thresholds = torch.rand(6000, generator=generator), es.thresholds(32)
    complex = es.Complex(torch.full((6000, 2), 0.3))
    assert takes_moments(complex, thresholds, 20.0, torch.float32)
    inputs = [complex.points, es.directions.circle(4), thresholds, torch.tensor(20.0), weights]
    layout = (complex.packed.simplices, complex.offsets, complex.rows)
    exact = reference.ect(*[tensor.double() for tensor in inputs], *layout)
    ours, dense = ((ect(*inputs, *layout) - exact).abs().max() for ect in (kernels.ect, reference.ect))
    assert ours <= dense


def test_moments_of_a_weighted_mesh_equal_the_reference(generator):
    complex = wavy_mesh(100)
    weights = [torch.rand(n, generator=generator, dtype=torch.float64) - 0.3 for n in complex.counts]
    complex = es.Complex(complex.points, complex.simplices, weights=weights)
    thresholds = es.thresholds(9, dtype=torch.float64)
    assert takes_moments(complex, thresholds, 3.0, torch.float64)
    given_ = arguments(complex, 3, thresholds, 3.0)
    expected = values_and_gradients(reference.ect, *given_)
    for name, value in values_and_gradients(torch.ops.eulerscan.ect, *given_).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


def test_small_and_steep_complexes_keep_their_windows():
    thresholds = es.thresholds(32)
    assert not takes_moments(cloud(100), thresholds, 8.0, torch.float32)
    assert not takes_moments(cloud(1000), thresholds, 500.0, torch.float32)
    assert not takes_moments(cloud(5000), thresholds, math.inf, torch.float32)
    assert not takes_moments(wavy_mesh(30), thresholds, 8.0, torch.float32)
    assert not takes_moments(cloud(5000), torch.empty(0), 8.0, torch.float32)


def test_neither_batch_nor_threads_change_a_bit_across_the_switch(dtype):
    complexes = [cloud(n, seed=n) for n in (40, 3000, 0, 700, 4000, 1200)]
    thresholds, before, results = es.thresholds(24, dtype=torch.float64), torch.get_num_threads(), []
    try:
        for num_threads in (1, 2, 3):
            torch.set_num_threads(num_threads)
            results.append(
                values_and_gradients(torch.ops.eulerscan.ect, *arguments(es.collate(complexes), 13, thresholds, 9.0, dtype))
            )
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(value, other[name]) for name, value in results[0].items())
    alone = [
        torch.ops.eulerscan.ect(*given_[0], *given_[1])
        for given_ in (arguments(c, 13, thresholds, 9.0, dtype) for c in complexes)
    ]
    assert torch.equal(torch.cat(alone), results[0]["result"])


def test_an_unknown_height_reaches_all_that_depends_on_it(dtype):
    """As it does with windows: NaN in its own directions and its own point, nowhere else."""
    complex = cloud(3000)
    tensors, layout = arguments(complex, 9, es.thresholds(12, dtype=torch.float64), 8.0, dtype)
    tensors[0][5, 0], tensors[1][:4, 0] = math.nan, 1.0
    tensors[4][5] = 1.0
    found = values_and_gradients(torch.ops.eulerscan.ect, tensors, layout)
    assert found["result"].isnan().all()
    assert found["scale"].isnan()
    assert found["directions"].isnan().all()
    assert found["points"].isnan().any(dim=1).nonzero().tolist() == [[5]]
    assert found["thresholds"].isfinite().all()


def test_infinite_heights_are_below_or_above_everything(dtype):
    complex = cloud(3000)
    tensors, layout = arguments(complex, 2, es.thresholds(12, dtype=torch.float64), 8.0, dtype)
    tensors[1] = torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], dtype=dtype)
    tensors[0][5, 0], tensors[4][5] = 0.0, 2.0
    without = [t.clone() for t in tensors]
    without[4][5] = 0.0
    tensors[0][5, 0] = torch.finfo(dtype).max
    tensors[1][:, 0] *= 4.0
    without[1][:, 0] *= 4.0
    result, rest = (torch.ops.eulerscan.ect(*t, *layout) for t in (tensors, without))
    torch.testing.assert_close(result[0, 0], rest[0, 0])
    torch.testing.assert_close(result[0, 1], rest[0, 1] + 2.0)


def test_the_gradient_of_the_scale_survives_a_large_offset_by_moments():
    tensors, layout = arguments(cloud(3000), 1, es.thresholds(9, dtype=torch.float64), 5.0)
    tensors[0], tensors[1] = tensors[0] + 1e9, torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    tensors[2] = tensors[2] + 1e9
    got, expected = (values_and_gradients(kernel, tensors, layout)["scale"] for kernel in (kernels.ect, reference.ect))
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=0)
