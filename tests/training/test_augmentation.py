import math

import pytest
import torch

import eulerscan as es
from eulerscan.training.augmentation import Augmentation


def clouds(dim: int) -> es.Complex:
    return es.as_complex(torch.randn(6, 20, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64))


def distances(complex: es.Complex) -> torch.Tensor:
    points = complex.points.view(6, 20, -1)
    return torch.cdist(points, points)


@pytest.mark.parametrize(("dim", "tumble"), [(2, False), (3, False), (2, True), (3, True), (5, True), (1, True)])
def test_rotations_keep_all_distances_and_the_orientation(dim, tumble, generator):
    shapes = clouds(dim)
    rotated = Augmentation(rotate=180, tumble=tumble)(shapes, generator)
    torch.testing.assert_close(distances(rotated), distances(shapes), rtol=1e-5, atol=1e-5)
    if dim <= 20 - 1:
        volume = torch.linalg.det(shapes.points.view(6, 20, dim)[:, :dim])
        after = torch.linalg.det(rotated.points.view(6, 20, dim)[:, :dim])
        torch.testing.assert_close(after, volume, rtol=1e-4, atol=1e-4)


def test_each_shape_is_rotated_independently_and_within_the_angle(generator):
    shapes = es.as_complex(torch.tensor([1.0, 0.0]).expand(500, 1, 2))
    points = Augmentation(rotate=18)(shapes, generator).points
    angles = torch.atan2(points[:, 1], points[:, 0]).rad2deg()
    assert angles.abs().max() <= 18.001
    assert angles.min() < -16
    assert angles.max() > 16


def test_in_space_the_third_axis_stays(generator):
    shapes = clouds(3)
    rotated = Augmentation(rotate=180)(shapes, generator)
    torch.testing.assert_close(rotated.points[:, 2], shapes.points[:, 2])


def test_tumbling_reaches_every_part_of_the_sphere_alike(generator):
    points = Augmentation(tumble=True)(es.as_complex(torch.tensor([0.0, 0.0, 1.0]).expand(4000, 1, 3)), generator).points
    assert points.mean(dim=0).norm() < 4 / math.sqrt(4000)
    torch.testing.assert_close(points.square().mean(dim=0), torch.full((3,), 1 / 3), atol=0.03, rtol=0)


def test_stretching_is_a_factor_a_shape(generator):
    shapes = clouds(3)
    factors = (Augmentation(stretch=0.2)(shapes, generator).points / shapes.points).view(6, -1)
    torch.testing.assert_close(factors, factors[:, :1].expand_as(factors))
    assert factors.min() >= 0.8
    assert factors.max() <= 1.2
    assert len(factors[:, 0].unique()) == 6


def test_squeezing_is_a_factor_a_shape_and_axis(generator):
    shapes = clouds(3)
    factors = (Augmentation(squeeze=0.2)(shapes, generator).points / shapes.points).view(6, 20, 3)
    torch.testing.assert_close(factors, factors[:, :1].expand_as(factors))
    assert factors.min() >= 0.8
    assert factors.max() <= 1.2
    assert len(factors[:, 0].unique()) == 18


def test_jitter_is_relative_to_the_size_of_a_shape(generator):
    large, small = (size * torch.rand(400, 2, dtype=torch.float64) for size in (1000, 1))
    shapes = es.collate([es.as_complex(cloud) for cloud in (large, small, small + 1e6)])
    moved = (Augmentation(jitter=0.01)(shapes, generator).points - shapes.points).view(3, -1)
    sizes = torch.stack([(cloud - cloud.mean(dim=0)).norm(dim=1).max() for cloud in (large, small, small)])
    torch.testing.assert_close(moved.std(dim=1) / sizes, torch.full((3,), 0.01).double(), rtol=0.1, atol=0)


def test_the_default_is_no_augmentation():
    assert not Augmentation()
    assert Augmentation(jitter=0.1)


@pytest.mark.parametrize(
    "options", [{"rotate": -1}, {"rotate": 181}, {"stretch": 1.5}, {"squeeze": -0.1}, {"jitter": -0.1}, {"jitter": math.nan}]
)
def test_invalid_options_are_named(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} must be between 0 and .* got {options[name]}"):
        Augmentation(**options)
