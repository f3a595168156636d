import importlib.util
import itertools
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from drawing import batches, counted, directions_for, random_complex, seeds
from hypothesis import given
from scipy.integrate import quad, simpson

import eulerscan as es
from eulerscan import testing

SCALES = [math.inf, 10.0]
SMOOTH = 7.0
PEERS = Path(__file__).parents[2] / "build" / "peers" / "pyect"
EDGE = es.Complex(torch.tensor([[0.0], [1.0]]), [torch.tensor([[0], [1]])])
UP = torch.tensor([[1.0]])


def grid(complex, seed=0, count=9):
    generator = torch.Generator().manual_seed(seed)
    thresholds = 3 * torch.rand(count, generator=generator, dtype=torch.float64) - 1.5
    return directions_for(complex, 3, seed), thresholds.sort().values


# Known answers


def test_the_smooth_transform_of_a_point_is_a_valley():
    """The curve is 0 before and 1 after the point, which is a quarter up from the bottom: its mean is 3/4."""
    values = es.sect(torch.tensor([[0.25]]), UP, torch.tensor([0.0, 0.25, 0.5, 1.0]))
    torch.testing.assert_close(values, torch.tensor([[[0.0, -0.1875, -0.125, 0.0]]]))


def test_the_step_width_counts():
    """Stretching the heights stretches the integral with them."""
    shape = testing.torus().complex
    directions, thresholds = grid(shape)
    stretched = es.sect(shape.with_points(3 * shape.points), directions, 3 * thresholds)
    torch.testing.assert_close(stretched, 3 * es.sect(shape, directions, thresholds))


@given(batches(weighted=True), seeds)
def test_the_smooth_transform_is_the_integral_by_quadrature(complex, seed):
    """Of what the thresholds see of the curve, integrated by scipy on a fine grid inside every step."""
    directions, thresholds = grid(complex, seed, count=5)
    curves = counted(complex, directions, thresholds).numpy()
    t = thresholds.numpy()
    fine = np.concatenate([np.linspace(low, high, 9) for low, high in itertools.pairwise(t)])
    step = np.repeat(np.arange(len(t) - 1), 9)
    expected = np.zeros_like(curves)
    for b, i in np.ndindex(curves.shape[:2]):
        values = curves[b, i][step]
        pieces = [simpson(values[9 * k : 9 * k + 9], x=fine[9 * k : 9 * k + 9]) for k in range(len(t) - 1)]
        mean = sum(pieces) / (t[-1] - t[0])
        expected[b, i, 1:] = np.cumsum([piece - mean * (t[k + 1] - t[k]) for k, piece in enumerate(pieces)])
    np.testing.assert_allclose(es.sect(complex, directions, thresholds).numpy(), expected, atol=1e-12)


def test_with_every_height_among_the_thresholds_it_is_the_integral_of_the_curve_itself(rng):
    complex = random_complex(rng, num_points=7)
    direction = directions_for(complex, 1)
    heights = (complex.points @ direction.T).view(-1)
    ends = torch.tensor([-1.5, 1.5], dtype=torch.float64)
    thresholds = torch.cat([heights, ends]).sort().values

    def curve(t):
        return float(counted(complex, direction, torch.tensor([t], dtype=torch.float64)))

    jumps = [float(t) for t in heights.sort().values]
    mean = quad(curve, -1.5, 1.5, points=jumps, limit=200)[0] / 3
    expected = [quad(lambda t: curve(t) - mean, -1.5, float(t), points=jumps, limit=200)[0] for t in thresholds]
    np.testing.assert_allclose(es.sect(complex, direction, thresholds)[0, 0].numpy(), expected, atol=1e-7)


@given(batches(lattice=True, weighted=True), seeds)
def test_from_above_counts_the_simplices_with_all_vertices_there_ties_included(complex, seed):
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randint(-2, 3, (3, complex.dim), generator=generator).double()
    thresholds = torch.arange(-3.0, 4.0, dtype=torch.float64)
    heights = complex.points @ directions.T
    weights = complex.weights
    expected = torch.zeros(len(complex), 3, 7, dtype=torch.float64)
    levels = [torch.arange(len(complex.points))[None], *complex.simplices]
    for level, weight in zip(levels, weights, strict=True):
        bottom = heights[level].amin(dim=0)
        inside = (bottom[:, :, None] >= thresholds) * weight[:, None, None] * (-1) ** (len(level) - 1)
        expected.index_add_(0, complex.batch[level[0]], inside)
    torch.testing.assert_close(es.superlevel(complex, directions, thresholds), expected)


@given(batches(weighted=True), seeds)
def test_channels_count_each_dimension_by_itself(complex, seed):
    directions, thresholds = grid(complex, seed)
    found = es.channels(complex, directions, thresholds, max_dim=5)
    assert found.shape == (len(complex), 6, 3, 9)
    heights = complex.points @ directions.T
    expected = torch.zeros_like(found)
    for level, weight in zip([torch.arange(len(complex.points))[None], *complex.simplices], complex.weights, strict=True):
        below = (heights[level].amax(dim=0)[:, :, None] <= thresholds) * weight[:, None, None]
        expected[:, len(level) - 1].index_add_(0, complex.batch[level[0]], below)
    torch.testing.assert_close(found, expected)


def test_there_are_as_many_channels_as_dimensions_or_as_one_asks_for():
    cloud = torch.rand(5, 2)
    directions, thresholds = es.directions.circle(4), es.thresholds(6)
    assert es.channels(cloud, directions, thresholds).shape == (1, 1, 4, 6)
    assert es.channels(cloud, directions, thresholds, max_dim=2).shape == (1, 3, 4, 6)
    assert es.channels(testing.disc(7).complex, directions, thresholds).shape == (1, 3, 4, 6)


def test_a_curve_is_the_sum_of_its_growth():
    transform = es.ect(testing.torus().complex, *grid(testing.torus().complex))
    growth = es.derivative(transform)
    assert torch.equal(growth[..., 0], transform[..., 0])
    assert torch.equal(growth.cumsum(dim=-1), transform)


def test_the_largest_or_the_mean_weight_of_its_vertices_is_that_of_a_simplex():
    weights, at = torch.tensor([2.0, 5.0]), torch.tensor([0.0, 1.0])
    assert es.wect(EDGE, UP, at, weights=weights).tolist() == [[[2, 2 + 5 - 5]]]
    assert es.wect(EDGE, UP, at, weights=weights, extend="mean").tolist() == [[[2, 2 + 5 - 3.5]]]
    assert es.wect(EDGE, UP, at, weights=weights.numpy()).tolist() == [[[2, 2]]]


@pytest.mark.parametrize("pixels", ["cells", "vertices"])
def test_weighted_images_are_what_counting_gives(pixels, rng):
    image = rng.uniform(size=(5, 6)) * (rng.uniform(size=(5, 6)) < 0.7)
    complex = es.convert.from_image(image, weighted=True, pixels=pixels).to(torch.float64)
    directions = torch.cat([es.directions.circle(4, dtype=torch.float64), directions_for(complex, 3)])
    thresholds = torch.arange(-8.0, 8.0, 0.5, dtype=torch.float64)  # lattice points lie on them
    torch.testing.assert_close(es.wect(complex, directions, thresholds), counted(complex, directions, thresholds))


@pytest.mark.skipif(not PEERS.is_dir(), reason="no pyect: pip install --no-deps --target build/peers pyect==1.0.1")
def test_weighted_images_are_those_of_pyect_where_no_height_lies_on_a_threshold(rng, monkeypatch):
    """Its own triangulation and weights of an image; with ours of the vertices extended by their maximum."""
    for name in ("torchvision", "torchvision.transforms", "pyect"):  # of which nothing is needed here
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]
    sys.modules["pyect"].Complex = lambda *levels, device: levels
    image = torch.tensor(rng.uniform(size=(9, 8)) * (rng.uniform(size=(9, 8)) < 0.8)).float()
    levels = load(PEERS / "preprocessing" / "image_processing.py").weighted_freudenthal(image)
    (points, weights), *simplices = levels
    directions = es.directions.random(12, 2, torch.Generator().manual_seed(3))
    theirs = load(PEERS / "wect.py").WECT(directions, 21)(levels)
    radius = float(torch.linalg.vector_norm(points, dim=1).max())
    complex = es.Complex(points, [vertices.T.contiguous() for vertices, _ in simplices])
    ours = es.wect(complex, directions, es.thresholds(21, radius=radius), weights=weights)
    torch.testing.assert_close(ours[0], theirs, atol=1e-4, rtol=0)
    assert (ours != es.ect(complex, directions, es.thresholds(21, radius=radius))).float().mean() > 0.5


def load(file):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Laws


@pytest.mark.parametrize("scale", SCALES)
@given(complex=batches(weighted=True), seed=seeds)
def test_the_alternating_sum_of_the_channels_is_the_transform(scale, complex, seed):
    directions, thresholds = grid(complex, seed)
    apart = es.channels(complex, directions, thresholds, scale=scale)
    signs = torch.tensor([(-1.0) ** k for k in range(apart.shape[1])], dtype=torch.float64)
    together = (signs[:, None, None] * apart).sum(dim=1)
    torch.testing.assert_close(together, es.ect(complex, directions, thresholds, scale=scale))


@given(batches(weighted=True), seeds)
def test_a_smooth_curve_begins_and_ends_at_zero_to_the_bit(complex, seed):
    values = es.sect(complex, *grid(complex, seed))
    assert not values[..., 0].any()
    assert not values[..., -1].any()


def test_a_closed_surface_is_as_connected_from_above_as_from_below():
    """Above and below a height that no vertex has, the parts of a closed surface add up to what it is."""
    shape = testing.torus().complex
    directions, thresholds = grid(shape)
    below, above = (f(shape, directions, thresholds, scale=math.inf) for f in (es.ect, es.superlevel))
    assert torch.equal(below + above, torch.zeros_like(below))  # Alexander duality; the torus itself has 0


@given(complex=batches(weighted=True), seed=seeds)
def test_from_above_a_simplex_counts_by_its_lowest_vertex(complex, seed):
    """Smooth, and simplex by simplex: a sigmoid that falls as the threshold passes it."""
    directions, thresholds = grid(complex, seed)
    expected = torch.zeros(complex.num_complexes, len(directions), len(thresholds), dtype=torch.float64)
    levels = [torch.arange(len(complex.points))[None], *complex.simplices]
    for level, weights in zip(levels, complex.weights, strict=True):
        for vertices, weight in zip(level.T.long(), weights, strict=True):
            lowest = (complex.points[vertices] @ directions.T).amin(dim=0)
            counts = weight / (1 + (SMOOTH * (thresholds - lowest[:, None])).exp())
            expected[complex.batch[vertices[0]]] += (-1) ** (len(vertices) - 1) * counts
    torch.testing.assert_close(es.superlevel(complex, directions, thresholds, scale=SMOOTH), expected)


VARIANTS = {
    "sect": es.sect,
    "superlevel": es.superlevel,
    "wect": es.wect,
    "channels": lambda *a, **k: es.channels(*a, max_dim=4, **k).flatten(2),
    "derivative": lambda *a, **k: es.derivative(es.ect(*a, **k)),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", VARIANTS)
@given(complex=batches(weighted=True, most=5))
def test_a_shape_has_the_same_values_in_whatever_company(name, scale, complex):
    directions, thresholds = grid(complex)
    together = VARIANTS[name](complex, directions, thresholds, scale=scale)
    alone = [VARIANTS[name](complex[i], directions, thresholds, scale=scale) for i in range(len(complex))]
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_are_right(name, rng):
    complex = random_complex(rng, num_points=6, weighted=True)
    directions, thresholds = grid(complex, count=4)
    scale = torch.tensor(SMOOTH, dtype=torch.float64)
    inputs = [tensor.clone().requires_grad_() for tensor in (complex.points, directions, thresholds, scale)]
    inputs += [weight.clone().requires_grad_() for weight in complex.weights]

    def function(points, directions, thresholds, scale, *weights):
        return VARIANTS[name](es.Complex(points, complex.simplices, weights=weights), directions, thresholds, scale=scale)

    torch.autograd.gradcheck(function, inputs)


def test_the_weights_of_vertices_receive_gradients(rng):
    complex = random_complex(rng, num_points=6)
    directions, thresholds = grid(complex, count=4)
    weights = torch.tensor(rng.normal(size=6), requires_grad=True)
    for extend in ("max", "mean"):
        torch.autograd.gradcheck(lambda w: es.wect(complex, directions, thresholds, weights=w, extend=extend), [weights])  # noqa: B023


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_thresholds_to_integrate_over_give_zeros(count):
    assert es.sect(torch.rand(5, 2), es.directions.circle(3), torch.zeros(count)).tolist() == [[[0.0] * count] * 3]


def test_equal_thresholds_enclose_nothing():
    assert es.sect(torch.zeros(5, 2), es.directions.circle(3), torch.ones(4)).tolist() == [[[0.0] * 4] * 3]


def test_results_keep_the_dtype_of_the_transform(dtype):
    for name, variant in VARIANTS.items():
        shape = es.Complex(EDGE.points, EDGE.simplices, weights=[torch.ones(2), torch.ones(1)]).to(dtype)
        assert variant(shape, UP.to(dtype), torch.zeros(3, dtype=dtype)).dtype == dtype, name


# Errors


def test_wect_asks_for_weights_where_there_are_none():
    with pytest.raises(ValueError, match="weights must be given"):
        es.wect(EDGE, UP, torch.zeros(1))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.ones(1, 2), r"shape \[2\], got \[1, 2\]. Use weights.reshape"),
        (torch.ones(3), r"shape \[2\], got \[3\]. Give those of simplices in a tuple"),
        (torch.tensor([1.0, math.nan]), "must be finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        es.wect(EDGE, UP, torch.zeros(1), weights=weights)


def test_slips_are_named():
    at = torch.zeros(1)
    with pytest.raises(ValueError, match="max_dim must be at least 1, since the shape has 1-simplices, got 0"):
        es.channels(EDGE, UP, at, max_dim=0)
    with pytest.raises(TypeError, match="max_dim must be an int"):
        es.channels(EDGE, UP, at, max_dim=2.0)
    with pytest.raises(ValueError, match="extend must be one of max, min, mean"):
        es.wect(EDGE, UP, at, weights=torch.ones(2), extend="sum")
    with pytest.raises(TypeError, match=r"directions must be a torch\.Tensor"):
        es.superlevel(EDGE, [[1.0]], at)
    with pytest.raises(ValueError, match=r"thresholds must have shape \[H\], got \[\]"):
        es.superlevel(EDGE, UP, torch.tensor(1.0))
    for variant in (es.sect, es.superlevel):
        with pytest.raises(ValueError, match="thresholds must ascend, got 2 before 1 at position 0"):
            variant(EDGE, UP, torch.tensor([2.0, 1.0]))
