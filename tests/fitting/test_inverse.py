import math

import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.fitting import TransformTarget, back_project

THRESHOLDS = es.thresholds(32)
DIRECTIONS = es.directions.half_sphere(32, 2)


def transform_of(points, scale=math.inf):
    return TransformTarget.of(points, es.directions.half_sphere(32, points.shape[1]), THRESHOLDS, scale=scale)


@pytest.mark.parametrize("scale", [math.inf, 100.0, 8.0])
def test_the_number_of_points_is_read_off_the_transform(scale):
    cloud = es.directions.random(50, 2)
    target = TransformTarget.of(cloud, es.directions.circle(32), THRESHOLDS, scale=scale)
    assert target.total == pytest.approx(50, rel=1e-4)


@pytest.mark.parametrize("scale", [5.0, 20.0, 40.0])
def test_an_exact_transform_is_smoothed_to_nearly_the_smooth_one(scale):
    cloud = 0.9 * es.directions.random(200, 2) * torch.rand(200, 1).sqrt()
    smooth = transform_of(cloud, scale).values
    assert (transform_of(cloud).smoothed(scale) - smooth).abs().mean() < 0.01 * 200
    assert (transform_of(cloud, 100.0).smoothed(scale) - smooth).abs().mean() < 0.01 * 200


def test_a_sharper_scale_leaves_the_values_unchanged():
    target = transform_of(torch.rand(20, 2), 30.0)
    assert target.smoothed(30.0) is target.values
    assert target.smoothed(math.inf) is target.values
    assert transform_of(torch.rand(20, 2)).smoothed(8 / target.step).unique().numel() <= 21


@pytest.mark.parametrize("dim", [2, 3])
def test_back_projection_finds_a_sphere(dim, generator):
    cloud = es.directions.random(300, dim, generator)
    found = back_project(transform_of(cloud), generator=generator)
    assert found.shape == (300, dim)
    assert (found.norm(dim=1) - 1).abs().mean() < 0.06
    assert len(found.unique(dim=0)) == 300


def test_back_projection_of_a_few_points_lands_near_them(generator):
    cloud = torch.tensor([[0.5, 0.5], [-0.5, 0.2], [0.1, -0.7]])
    found = back_project(transform_of(cloud), generator=generator)
    distance = torch.cdist(found, cloud)
    assert distance.argmin(dim=1).unique().numel() == 3
    assert distance.amin(dim=1).max() < 0.1


def test_back_projection_gives_the_requested_number_of_points_reproducibly():
    target = transform_of(es.directions.random(40, 2))
    first, second = (back_project(target, 7, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert first.shape == (7, 2)
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((torch.rand(8, 16), DIRECTIONS, THRESHOLDS), ValueError, r"shape \[32, 32\], got \[8, 16\]"),
        (
            (torch.rand(16, 32), None, es.thresholds(16)),
            ValueError,
            r"values must .* shape \[16, 16\], got \[16, 32\]",
        ),
        ((torch.rand(32, 8), es.directions.circle(8), THRESHOLDS), ValueError, "Did you pass it transposed"),
        ((torch.rand(2, 32, 32), DIRECTIONS, THRESHOLDS), ValueError, r"got \[2, 32, 32\]"),
        ((torch.full((32, 32), torch.nan), DIRECTIONS, THRESHOLDS), ValueError, "values must be finite, got nan"),
        ((torch.ones(32, 32, dtype=torch.int64), DIRECTIONS, THRESHOLDS), TypeError, "values must be .* got torch.int64"),
        ((torch.rand(32, 32), DIRECTIONS[0], THRESHOLDS), ValueError, r"directions must have shape .* got \[2\]"),
        ((torch.rand(32, 32), DIRECTIONS, THRESHOLDS.flip(0)), ValueError, r"thresholds must be .* got \[1\.1"),
        ((torch.rand(32, 1), DIRECTIONS, THRESHOLDS[:1]), ValueError, r"thresholds must be .* got \[-1\.1"),
        ((torch.rand(32, 32), DIRECTIONS, THRESHOLDS, -1.0), ValueError, "scale must be positive, got -1"),
        ((torch.rand(32, 32), DIRECTIONS, None), TypeError, "thresholds must be .* got NoneType"),
    ],
)
def test_a_transform_that_does_not_fit_its_grid_is_named(arguments, error, text):
    with pytest.raises(error, match=text):
        TransformTarget(*arguments)


def test_transforms_of_other_shapes_are_named():
    graph = TransformTarget.of(testing.random_graph(20, 40).complex, DIRECTIONS.double(), es.thresholds(32).double())
    with pytest.raises(ValueError, match=r"target must be .* got one that decreases by \d+.*connectivity as start"):
        back_project(graph)
    nothing = TransformTarget(torch.zeros(32, 32), DIRECTIONS, THRESHOLDS)
    with pytest.raises(ValueError, match=r"got one that ends at 0 \(row 0\)"):
        back_project(nothing)
    with pytest.raises(ValueError, match="target must have directions"):
        back_project(TransformTarget(torch.ones(32, 32), None, THRESHOLDS))
    with pytest.raises(TypeError, match="target must be a TransformTarget, got Tensor"):
        back_project(torch.ones(32, 32))
    with pytest.raises(ValueError, match="num_points must be .* got 0"):
        back_project(transform_of(torch.rand(5, 2)), 0)
