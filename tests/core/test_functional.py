import math

import pytest
import torch
from drawing import batches, counted, directions_for, seeds
from hypothesis import given
from hypothesis import strategies as st

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels import operation as kernels
from eulerscan.kernels import portable, reference
from eulerscan.testing import known_shapes

KNOWN = sorted(known_shapes())
SCALES = [math.inf, 10.0]


def test_a_square_is_an_arc_until_it_closes():
    square = es.Complex(torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]]), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])])
    curve = es.ect(square, torch.tensor([[1.0, 0.0]]), torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0]))
    assert curve.tolist() == [[[0, 1, 1, 0, 0]]]


@pytest.mark.parametrize("name", [name for name in KNOWN if known_shapes()[name].between is not None])
def test_shapes_with_a_known_transform_have_it(name, generator):
    shape = known_shapes()[name]
    directions = es.directions.random(50, shape.complex.dim, generator=generator, dtype=torch.float64)
    thresholds = es.thresholds(33, dtype=torch.float64)
    assert torch.equal(es.ect(shape.complex, directions, thresholds), shape.transform(directions, thresholds))


@pytest.mark.parametrize("name", KNOWN)
def test_far_above_a_shape_stands_its_euler_characteristic(name):
    shape = known_shapes()[name]
    directions = es.directions.uniform(5, shape.complex.dim, dtype=torch.float64)
    far = es.ect(shape.complex, directions, torch.tensor([-1e9, 1e9], dtype=torch.float64))
    assert shape.complex.euler_characteristic().tolist() == [shape.euler]
    assert far.tolist() == [[[0, shape.euler]] * 5]


def test_a_smooth_point_is_a_sigmoid():
    curve = es.ect(torch.tensor([[0.5, 0.0]]), torch.tensor([[1.0, 0.0]]), torch.tensor([0.25, 0.5, 0.75]), scale=4.0)
    torch.testing.assert_close(curve, torch.sigmoid(torch.tensor([[[-1.0, 0.0, 1.0]]])))


@given(batches(), seeds)
def test_the_exact_transform_is_what_counting_gives(complex, seed):
    directions = directions_for(complex, 5, seed)
    thresholds = torch.tensor([-3.0, -0.6, -0.5, 0.0, 0.01, 0.3, 0.9, 5.0], dtype=torch.float64)
    assert torch.equal(es.ect(complex, directions, thresholds), counted(complex, directions, thresholds))


@given(batches(lattice=True), st.integers(1, 40), st.sampled_from([torch.float32, torch.float64]))
def test_a_vertex_on_a_threshold_counts(complex, num_thresholds, dtype):
    complex = complex.to(dtype=dtype)
    rng = torch.Generator().manual_seed(num_thresholds)
    directions = torch.randint(-2, 3, (9, complex.dim), generator=rng).to(dtype)
    thresholds = torch.arange(num_thresholds, dtype=dtype) - num_thresholds // 2
    assert torch.equal(es.ect(complex, directions, thresholds).double(), counted(complex, directions, thresholds))


@given(batches(lattice=True), seeds)
def test_ties_count_on_uneven_and_repeated_thresholds(complex, seed):
    rng = torch.Generator().manual_seed(seed)
    directions = torch.randint(-2, 3, (4, complex.dim), generator=rng).double()
    thresholds = torch.randint(-9, 10, (23,), generator=rng).double().sort().values
    assert torch.equal(es.ect(complex, directions, thresholds), counted(complex, directions, thresholds))


def test_ties_count_where_binning_by_rounding_up_fails():
    """0.1 * k is not representable: only a comparison with the threshold itself is right."""
    grid = torch.arange(-50, 51, dtype=torch.float64) * 0.1
    cloud = es.Complex(grid[:, None])
    expected = torch.arange(1, 102, dtype=torch.float64)[None, None]
    assert torch.equal(es.ect(cloud, torch.ones(1, 1, dtype=torch.float64), grid), expected)
    single = grid.float()
    assert torch.equal(es.ect(single[:, None], torch.ones(1, 1), single), expected.float())


@given(batches(weighted=True), seeds)
def test_weights_count_as_often_as_they_say(complex, seed):
    directions = directions_for(complex, 3, seed)
    thresholds = torch.linspace(-2, 2, 9, dtype=torch.float64)
    torch.testing.assert_close(es.ect(complex, directions, thresholds), counted(complex, directions, thresholds))


def test_thresholds_that_crowd_in_one_place_are_told_apart(generator):
    """Almost all thresholds fall into one bucket of the look-up table."""
    thresholds = torch.cat([torch.tensor([-1e6]), torch.linspace(-1, 1, 200), torch.tensor([1e6])]).double()
    complex = testing.random_graph(40, 60, generator=generator).complex
    directions = es.directions.circle(7, dtype=torch.float64)
    assert torch.equal(es.ect(complex, directions, thresholds), counted(complex, directions, thresholds))


# Laws


@pytest.mark.parametrize("scale", SCALES)
@given(complex=batches())
def test_rotating_shape_and_directions_together_changes_nothing(scale, complex):
    thresholds = torch.linspace(-1.7, 1.8, 13, dtype=torch.float64)

    def transform(complex, directions):
        return es.ect(complex, directions, thresholds, scale=scale)

    testing.assert_rotation_consistent(
        transform, complex, directions_for(complex, 3), generator=torch.Generator().manual_seed(1)
    )


@pytest.mark.parametrize("scale", SCALES)
@given(complex=batches(weighted=True), seed=seeds)
def test_no_order_matters(scale, complex, seed):
    directions, thresholds = directions_for(complex, 3), torch.linspace(-2, 2, 9, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    testing.assert_order_invariant(lambda c: es.ect(c, directions, thresholds, scale=scale), complex, generator=generator)


@pytest.mark.parametrize("scale", SCALES)
@given(complex=batches())
def test_a_complex_does_not_depend_on_its_neighbours(scale, complex):
    directions, thresholds = directions_for(complex, 9), torch.linspace(-2, 2, 9, dtype=torch.float64)
    testing.assert_batch_independent(lambda c: es.ect(c, directions, thresholds, scale=scale), complex, rtol=0, atol=0)


@pytest.mark.parametrize("scale", SCALES)
def test_splitting_an_edge_at_its_midpoint_changes_no_curve(scale, generator):
    graph = testing.random_graph(12, 20, generator=generator).complex
    a, b = graph.simplices[0][:, 0].tolist()
    middle = graph.points[[a, b]].mean(dim=0, keepdim=True)
    edges = torch.cat([graph.simplices[0][:, 1:], torch.tensor([[a, 12], [12, b]]).T], dim=1)
    split = es.Complex(torch.cat([graph.points, middle]), [edges])
    directions, thresholds = es.directions.circle(16, dtype=torch.float64), es.thresholds(20, 1.5, dtype=torch.float64)
    before, after = (es.ect(c, directions, thresholds, scale=scale) for c in (graph, split))
    torch.testing.assert_close(after, before)


@pytest.mark.parametrize("scale", SCALES)
@given(a=batches(most=1), seed=seeds)
def test_a_disjoint_union_adds(scale, a, seed):
    b = a.with_points(a.points + 0.3)
    union = es.collate([a, b])
    joined = es.Complex(union.points, union.simplices)
    directions, thresholds = directions_for(a, 4, seed), torch.linspace(-2, 2, 7, dtype=torch.float64)
    separate = es.ect(union, directions, thresholds, scale=scale).sum(dim=0, keepdim=True)
    torch.testing.assert_close(es.ect(joined, directions, thresholds, scale=scale), separate)


@given(complex=batches())
def test_weights_of_one_are_no_weights(complex):
    ones = [torch.ones(n) for n in complex.counts]
    weighted = es.Complex(
        complex.points, complex.simplices, weights=ones, batch=complex.batch, num_complexes=complex.num_complexes
    )
    directions, thresholds = directions_for(complex, 3), torch.linspace(-2, 2, 9, dtype=torch.float64)
    for scale in SCALES:
        expected = es.ect(complex, directions, thresholds, scale=scale)
        assert torch.equal(es.ect(weighted, directions, thresholds, scale=scale), expected)


@given(complex=batches(), factor=st.floats(0.1, 10))
def test_scaling_the_space_scales_the_thresholds(complex, factor):
    directions, thresholds = directions_for(complex, 3), torch.linspace(-2, 2, 9, dtype=torch.float64)
    larger = complex.with_points(complex.points * factor)
    torch.testing.assert_close(
        es.ect(larger, directions, thresholds * factor, scale=10.0 / factor),
        es.ect(complex, directions, thresholds, scale=10.0),
    )


def test_a_steeper_sigmoid_comes_closer_to_the_step():
    complex = known_shapes()["graph"].complex
    directions, thresholds = es.directions.circle(9, dtype=torch.float64), es.thresholds(9, dtype=torch.float64)
    exact = es.ect(complex, directions, thresholds)
    errors = [(es.ect(complex, directions, thresholds, scale=s) - exact).abs().mean() for s in (1.0, 10.0, 100.0, 1e4, 1e6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


# Shapes and dtypes


def test_the_result_always_has_three_axes():
    directions, thresholds = es.directions.circle(1), es.thresholds(1)
    assert es.ect(torch.zeros(1, 2), directions, thresholds).shape == (1, 1, 1)
    assert es.ect(torch.zeros(4, 0, 2), directions, thresholds).shape == (4, 1, 1)
    assert es.ect(torch.zeros(0, 5, 2), directions, thresholds, scale=1.0).shape == (0, 1, 1)
    assert es.ect(torch.zeros(3, 2), torch.zeros(0, 2), thresholds).shape == (1, 0, 1)
    assert es.ect(torch.zeros(3, 2), directions, torch.zeros(0), scale=2.0).shape == (1, 1, 0)


@pytest.mark.parametrize("scale", SCALES)
def test_complexes_without_points_are_zero_wherever_they_stand(scale):
    points = torch.rand(5, 2)
    batch = torch.tensor([3, 1, 3, 1, 3])
    result = es.ect(
        es.Complex(points, batch=batch, num_complexes=7), es.directions.circle(3), es.thresholds(4, 5.0), scale=scale
    )
    assert result.shape == (7, 3, 4)
    assert (result[[0, 2, 4, 5, 6]] == 0).all()
    assert (result[[1, 3], :, -1] > 1).all()


@pytest.mark.parametrize("low", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(low):
    points, directions = torch.rand(30, 3).to(low), es.directions.fibonacci(5, dtype=low)
    thresholds = es.thresholds(8, dtype=low)
    result = es.ect(points, directions, thresholds, scale=20.0)
    assert result.dtype == torch.float32
    assert torch.equal(result, es.ect(points.float(), directions.float(), thresholds.float(), scale=20.0))


def test_float64_wins_over_float32():
    result = es.ect(torch.rand(4, 2, dtype=torch.float64), es.directions.circle(3), es.thresholds(3))
    assert result.dtype == torch.float64


def test_gradients_reach_half_precision_inputs():
    points = torch.rand(6, 2, dtype=torch.bfloat16, requires_grad=True)
    es.ect(points, es.directions.circle(3), es.thresholds(5), scale=5.0).sum().backward()
    assert points.grad.dtype == torch.bfloat16
    assert points.grad.abs().sum() > 0


def test_strided_inputs_are_understood():
    points, directions = torch.rand(2, 30).T, torch.rand(2, 9).T
    thresholds = torch.linspace(-2, 2, 20)[::2]
    assert torch.equal(
        es.ect(points, directions, thresholds), es.ect(points.contiguous(), directions.contiguous(), thresholds.contiguous())
    )


@pytest.mark.parametrize("kernel", [kernels.ect, portable.ect, reference.ect])
@pytest.mark.parametrize("scale", SCALES)
def test_nan_shows_where_it_is_and_nowhere_else(kernel, scale):
    graph = testing.random_graph(6, 9, dtype=torch.float32).complex
    complex = es.collate([graph, graph, graph])
    layout = (complex.packed.simplices, complex.offsets, complex.rows)
    fine = kernel(complex.points, torch.eye(2), es.thresholds(4), torch.tensor(scale), None, *layout)
    points = complex.points.clone()
    points[8, 0] = math.nan
    points.requires_grad_(math.isfinite(scale))
    result = kernel(points, torch.eye(2), es.thresholds(4), torch.tensor(scale), None, *layout)
    if math.isinf(scale) and kernel is reference.ect:
        # A comparison with NaN is false, so the dense formula never counts the vertex, as if it were above all thresholds.
        points[8] = 1e9
        assert torch.equal(result, kernel(points, torch.eye(2), es.thresholds(4), torch.tensor(scale), None, *layout))
        assert not torch.equal(result[1], fine[1])
    else:
        assert result.isnan().all(dim=2).tolist() == [[False, False], [True, True], [False, False]]
    torch.testing.assert_close(result[[0, 2]], fine[[0, 2]])
    if math.isfinite(scale):
        result.sum().backward()
        assert points.grad.isnan().any(dim=1)[6:12].any()
        assert not points.grad.isnan().any(dim=1)[[*range(6), *range(12, 18)]].any()


def test_infinite_and_enormous_heights_are_survived():
    points = torch.tensor([[1e38], [-1e38], [0.0]])
    complex = es.Complex(points, [torch.tensor([[0, 1], [2, 2]])])
    for scale in (math.inf, 1e-3, 1.0, 1e30):
        result = es.ect(complex, torch.tensor([[10.0], [-10.0], [1.0]]), torch.tensor([-1.0, 1.0]), scale=scale)
        assert result.isfinite().all()
        # One vertex at -inf; the other two and their edges cancel or lie at +inf.
        torch.testing.assert_close(result[0, 0], torch.ones(2))


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (2.5, TypeError), (True, TypeError)])
def test_a_wrong_number_of_thresholds_is_named(n, error):
    with pytest.raises(error, match="n must be"):
        es.thresholds(n)


def test_thresholds_are_symmetric_and_leave_room():
    for n in (1, 2, 5, 16, 33):
        for dtype in (torch.float32, torch.float64):
            heights = es.thresholds(n, dtype=dtype)
            assert torch.equal(heights, -heights.flip(0))
            assert n == 1 or heights[-1] == torch.tensor(1.1, dtype=dtype)


# Errors

GRID = (es.directions.circle(3), es.thresholds(4))


@pytest.mark.parametrize(
    ("directions", "thresholds", "error", "text"),
    [
        (torch.rand(2, 5), GRID[1], ValueError, r"directions must have shape \[T, 2\].*got \[2, 5\]. Did you.*transposed"),
        (torch.rand(5, 3), GRID[1], ValueError, r"directions must have shape \[T, 2\].*dimension 2, got \[5, 3\]"),
        (torch.rand(2), GRID[1], ValueError, r"directions must have shape \[T, 2\].*got \[2\]"),
        (torch.ones(5, 2, dtype=torch.int64), GRID[1], TypeError, r"directions must be floating point, got torch.int64"),
        ([[1.0, 0.0]], GRID[1], TypeError, r"directions must be a torch.Tensor \[T, dim\], got list"),
        (GRID[0], torch.rand(4, 1), ValueError, r"thresholds must have shape \[H\], got \[4, 1\]"),
        (GRID[0], torch.tensor([1.0, 0.0]), ValueError, r"thresholds must ascend, got 1 before 0 at position 0"),
        (GRID[0], torch.tensor([0.0, math.nan]), ValueError, r"thresholds must be finite, got"),
        (GRID[0], torch.tensor([math.nan]), ValueError, r"thresholds must be finite, got"),
        (GRID[0], torch.tensor([0.0, math.inf]), ValueError, r"thresholds must be finite, got"),
        (GRID[0], torch.tensor([0, 1]), TypeError, r"thresholds must be floating point, got torch.int64"),
    ],
)  # fmt: skip
def test_a_wrong_grid_is_named(directions, thresholds, error, text):
    with pytest.raises(error, match=text):
        es.ect(torch.rand(4, 2), directions, thresholds)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, -math.inf, torch.tensor(0.0), torch.tensor([-2.0])])
def test_a_scale_that_is_not_positive_is_named(scale):
    with pytest.raises(ValueError, match="scale must be positive"):
        es.ect(torch.rand(4, 2), *GRID, scale=scale)


@pytest.mark.parametrize(
    ("scale", "error"), [("8", TypeError), (None, TypeError), (True, TypeError), (torch.ones(2), ValueError), (1j, TypeError)]
)
def test_a_scale_that_is_no_number_is_named(scale, error):
    with pytest.raises(error, match="scale must be"):
        es.ect(torch.rand(4, 2), *GRID, scale=scale)


def test_a_scale_out_of_the_range_of_float32_is_exact():
    complex = testing.cycle(7, dtype=torch.float32).complex
    assert torch.equal(es.ect(complex, *GRID, scale=1e60), es.ect(complex, *GRID))


def test_triangles_without_edges_are_warned_of():
    bare = es.Complex(torch.rand(3, 2), [torch.tensor([[0], [1], [2]])])
    with pytest.warns(UserWarning, match=r"2-simplices but no 1-simplices.*closure\(\) adds"):
        es.ect(bare, *GRID)
    es.ect(bare.closure(), *GRID)
