import math

import numpy as np
import pytest
import torch
from drawing import random_complex

import eulerscan as es
from eulerscan import rotations, testing
from eulerscan.analysis import alignment, circular_distance, distance, rotation_distance
from eulerscan.analysis.alignment import CachedTransforms, SphereGrid, align

POWERS = [1, 2, 3.5, math.inf]
OPTIONS = {"p": 2, "candidates": 64, "starts": 2, "rounds": 8, "reflections": False}


def angles_between(a, b):
    """Angles of the relative rotations."""
    return ((torch.einsum("...ij,...ij->...", a, b) - (a.shape[-1] - 2)) / 2).clamp(-1, 1).acos()


def random_path(rng, dim=3):
    """A path without symmetry."""
    points = torch.tensor(rng.normal(size=(20, dim)).cumsum(axis=0))
    return es.Complex(points, [torch.stack([torch.arange(19), torch.arange(1, 20)])]).normalized("unit_ball")


# Grid of directions


@pytest.mark.parametrize(("n", "dim"), [(1, 2), (7, 2), (64, 2), (1, 3), (50, 3), (1000, 3), (4096, 3)])
def test_the_nearest_direction_equals_brute_force(n, dim, rng):
    grid = SphereGrid(n, dim)
    assert len(grid.directions) == pytest.approx(n, rel=0.1, abs=2)
    torch.testing.assert_close(grid.directions.norm(dim=1), torch.ones(len(grid.directions)).double())
    assert torch.equal(grid.nearest(grid.directions), torch.arange(len(grid.directions)))
    wanted = torch.nn.functional.normalize(torch.tensor(rng.normal(size=(500, dim))), dim=1)
    found = (grid.directions[grid.nearest(wanted)] * wanted).sum(dim=1).clamp(-1, 1).acos()
    best = (wanted @ grid.directions.T).amax(dim=1).clamp(-1, 1).acos()
    assert (found <= best + grid.spacing / 2).all()  # the next circle may have a nearer one
    assert found.max() < grid.spacing


def test_poles_and_rounding_have_a_nearest_direction():
    grid = SphereGrid(100, 3)
    poles = torch.tensor([[0.0, 0, 1], [0, 0, -1], [0, 0, 1 + 1e-12], [-1, -1e-300, 0]], dtype=torch.float64)
    assert ((grid.directions[grid.nearest(poles)] * poles).sum(dim=1) > math.cos(grid.spacing)).all()


# Rotations


@pytest.mark.parametrize("dim", [2, 3])
def test_perturbations_rotate_by_at_most_their_angle(dim):
    matrices = rotations.uniform(5, dim)
    angles = torch.tensor([1.0, 0.5, 0.25, 1e-3, 0.0], dtype=torch.float64)
    perturbed = rotations.perturb(matrices, angles, seed=3)
    assert perturbed.shape == (5, rotations.NUM_PERTURBATIONS, dim, dim)
    torch.testing.assert_close(perturbed @ perturbed.mT, torch.eye(dim).double().expand_as(perturbed))
    found = angles_between(perturbed, matrices[:, None])
    torch.testing.assert_close(found.amax(dim=1), angles, atol=1e-6, rtol=0)
    assert not torch.equal(perturbed, rotations.perturb(matrices, angles, seed=4)) or dim == 2


def test_principal_axes_recover_a_rotation(rng):
    points, rotation = torch.tensor(rng.normal(size=(30, 3))) * torch.tensor([1.0, 2.0, 3.0]), rotations.uniform(9, 3)[7]
    found = rotations.align_principal_axes(points, points @ rotation)
    assert len(found) == 4
    assert angles_between(found, rotation).min() < 1e-6
    mirror = torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    found = rotations.align_principal_axes(points, points @ rotation @ mirror, reflections=True)
    assert len(found) == 8
    assert torch.linalg.matrix_norm(found - rotation @ mirror).min() < 1e-9


def test_the_best_distinct_rotations_are_selected():
    matrices = rotations.uniform(8, 2)
    errors = torch.tensor([3.0, 1.0, 2.0, 9.0, 9.0, 4.0, 9.0, 9.0])
    assert rotations.select_distinct(matrices, errors, 2, min_angle=math.pi / 3) == [1, 5]  # 2 and 0 are neighbors of 1
    assert rotations.select_distinct(matrices, errors, 3, min_angle=0.1) == [1, 2, 0]


# Alignment


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
@pytest.mark.parametrize("dim", [2, 3])
def test_lookup_is_close_to_exact_transforms(p, dim, rng):
    a, b = (CachedTransforms(random_path(rng, dim), 24, 24, 1.1) for _ in range(2))
    matrices = rotations.uniform(40, dim)
    exact = alignment._exact_errors(a, b, p)(matrices)
    rough = alignment._lookup_errors(a, b, p)(matrices) / 24 ** (1 / p)
    assert ((rough - exact).abs() <= 0.1 * exact.max() + (math.isinf(p))).all()
    assert np.corrcoef(rough, exact)[0, 1] > 0.9 or math.isinf(p)


def test_lookup_is_exact_at_directions_of_the_grid(rng):
    a, b = (CachedTransforms(random_path(rng, 2), 32, 16, 1.1) for _ in range(2))  # 32 divides 4096: all are in the grid
    matrices = rotations.uniform(32, 2)
    rough, exact = (errors(a, b, 2)(matrices) for errors in (alignment._lookup_errors, alignment._exact_errors))
    torch.testing.assert_close(rough / 32**0.5, exact)


def test_cached_transforms_give_the_same_distances(rng):
    shapes = [random_path(rng), random_path(rng), testing.torus().complex.to(torch.float64).normalized("unit_ball")]
    cached = [CachedTransforms(shape, 16, 12, 1.1) for shape in shapes]
    for i, j in ((0, 1), (1, 0), (0, 2), (1, 2)):
        alone = rotation_distance(shapes[i], shapes[j], num_directions=16, num_thresholds=12, **OPTIONS)
        found = align(cached[i], cached[j], **OPTIONS)
        assert found.distance == alone.distance
        assert torch.equal(found.rotation, alone.rotation)


def test_the_lookup_of_a_shape_is_computed_once(rng, monkeypatch):
    cached, calls = [CachedTransforms(random_path(rng), 16, 12, 1.1) for _ in range(3)], []
    size = len(cached[0].lookup_grid.directions)
    transform = alignment.ect
    monkeypatch.setattr(alignment, "ect", lambda *a: calls.append(len(a[1])) or transform(*a))
    for a in cached:
        for b in cached:
            if a is not b:
                align(a, b, **OPTIONS)
    assert calls.count(size) == 2  # the first of a pair needs none, and one of the three is always first
    assert calls.count(16) >= 3


def test_the_identity_and_the_principal_axes_are_always_tried_exactly(rng):
    """However few the candidates, the distance of a shape to itself, rotated or not, is zero."""
    shape, few = random_path(rng), {**OPTIONS, "candidates": 1, "starts": 1, "rounds": 1}
    rotated = shape.with_points(shape.points @ rotations.uniform(5, 3)[3])
    assert rotation_distance(shape, shape, **few).distance == 0
    assert rotation_distance(shape, rotated, **few).distance < 1e-6
    mirrored = rotated.with_points(rotated.points * torch.tensor([1.0, -1.0, 1.0]))
    assert rotation_distance(shape, mirrored, **{**few, "reflections": True}).distance < 1e-6


# Distances up to rotation


@pytest.mark.parametrize("p", POWERS)
def test_rotation_by_whole_steps_has_distance_zero(p, rng):
    complex = random_complex(rng)
    circle, thresholds = es.directions.circle(12, dtype=torch.float64), es.thresholds(9, 1.5, dtype=torch.float64)
    transform = es.ect(complex, circle, thresholds)
    for steps in (0, 1, 5, 11):
        angle = 2 * math.pi * steps / 12
        rotation = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]).double()
        rotated = es.ect(complex.with_points(complex.points @ rotation.T), circle, thresholds)
        assert circular_distance(transform, rotated, thresholds, p=p).item() == 0
        assert steps == 0 or distance(transform, rotated, thresholds, p=p) > 0


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("reflections", [False, True])
def test_the_best_rotation_equals_brute_force(p, reflections, rng):
    a, b = (torch.tensor(rng.integers(-3, 4, (3, 5, 4))).double() for _ in range(2))
    thresholds = torch.tensor([0.0, 0.1, 0.5, 2.0], dtype=torch.float64)
    shifts = [b.roll(s, dims=1) for s in range(5)]
    shifts += [shift.flip(1) for shift in shifts] if reflections else []
    expected = torch.stack([distance(a, shift, thresholds, p=p) for shift in shifts]).amin(dim=0)
    torch.testing.assert_close(circular_distance(a, b, thresholds, p=p, reflections=reflections), expected)
    torch.testing.assert_close(circular_distance(b, a, thresholds, p=p, reflections=reflections), expected)


def test_a_mirror_image_is_another_shape_unless_reflections_are_allowed():
    hook = torch.tensor([[0.9, 0.0], [-0.3, 0.6], [-0.3, 0.2]])
    mirrored = hook * torch.tensor([1.0, -1.0])
    circle, thresholds = es.directions.circle(16), es.thresholds(33)
    a, b = (es.ect(points, circle, thresholds) for points in (hook, mirrored))
    assert circular_distance(a, b) > 0.1
    assert circular_distance(a, b, reflections=True) == 0
    assert rotation_distance(hook, mirrored, candidates=64, starts=2).distance > 0.1
    assert rotation_distance(hook, mirrored, candidates=64, starts=2, reflections=True).distance < 1e-3


def random_rotation(rng):
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return torch.tensor(q * np.sign(np.linalg.det(q)))


def test_a_shape_rotated_in_space_is_aligned(rng):
    for _ in range(3):
        complex, rotation = random_complex(rng, dim=3, num_points=12).normalized("unit_ball"), random_rotation(rng)
        rotated = complex.with_points(complex.points @ rotation.T)
        found = rotation_distance(complex, rotated, num_directions=32, candidates=64, starts=2, rounds=16)
        assert found.distance < 1e-6
        torch.testing.assert_close(found.rotation, rotation.T, atol=1e-3, rtol=0)


def test_symmetric_shapes_without_principal_axes_are_aligned_by_search(rng):
    for name in ("torus", "moebius"):
        complex = testing.known_shapes()[name].complex.normalized("unit_ball")
        rotated = complex.with_points(complex.points @ random_rotation(rng).T)
        assert rotation_distance(complex, rotated, num_directions=32, num_thresholds=32).distance < 0.05


def test_the_result_is_a_rotation_with_that_distance(rng):
    """An upper bound that can be verified, and never larger than without rotation."""
    a, b = (random_complex(rng, dim=3, num_points=n).normalized("unit_ball") for n in (9, 11))
    found = rotation_distance(a, b, num_directions=20, num_thresholds=16, candidates=32, starts=2, rounds=4)
    torch.testing.assert_close(found.rotation @ found.rotation.T, torch.eye(3, dtype=torch.float64))
    assert torch.linalg.det(found.rotation) > 0
    directions, thresholds = es.directions.fibonacci(20, dtype=torch.float64), es.thresholds(16, dtype=torch.float64)

    def after(rotation):
        pairs = ((a, b.with_points(b.points @ rotation.T)), (b, a.with_points(a.points @ rotation)))
        transforms = ([es.ect(shape, directions, thresholds) for shape in pair] for pair in pairs)
        return sum(distance(*pair, thresholds).item() for pair in transforms) / 2

    assert after(found.rotation) == pytest.approx(found.distance, abs=1e-9)
    assert found.distance <= after(torch.eye(3, dtype=torch.float64))
    again = rotation_distance(a, b, num_directions=20, num_thresholds=16, candidates=32, starts=2, rounds=4)
    assert again.distance == found.distance
    assert torch.equal(again.rotation, found.rotation)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("reflections", [False, True])
def test_rotation_distance_is_symmetric_and_never_above_the_plain_distance(p, dim, reflections, rng):
    thresholds = es.thresholds(12, dtype=torch.float64)
    directions = es.directions.uniform(10, dim, dtype=torch.float64)
    for case in range(4):
        a, b = (random_complex(rng, dim=dim, num_points=n, weighted=case % 2 == 1).normalized("unit_ball") for n in (9, 11))
        b = a.with_points(a.points + 0.03 * torch.tensor(rng.normal(size=a.points.shape))) if case == 3 else b
        few = {"p": p, "candidates": 16, "starts": 2, "rounds": 4, "reflections": reflections}
        forth, back = (rotation_distance(*pair, num_directions=10, num_thresholds=12, **few) for pair in ((a, b), (b, a)))
        assert forth.distance == back.distance
        assert torch.equal(forth.rotation, back.rotation.T)
        assert forth.distance <= distance(*(es.ect(c, directions, thresholds) for c in (a, b)), thresholds, p=p).item()


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_circular_distance_is_symmetric_and_never_above_the_plain_distance(p, dtype, rng):
    """To the last bit: the sums are the same, but rounding depends on their order."""
    a, b = (torch.tensor(rng.normal(size=(40, 7, 5))).to(dtype) for _ in range(2))
    b[::2] = a[::2] + 0.01 * b[::2]  # so that not rotating is best
    thresholds = es.thresholds(5, dtype=torch.float64)
    for reflections in (False, True):
        found = circular_distance(a, b, thresholds, p=p, reflections=reflections)
        assert torch.equal(found, circular_distance(b, a, thresholds, p=p, reflections=reflections))
        assert (found <= distance(a, b, thresholds, p=p)).all()


# Errors


def test_slips_are_named():
    with pytest.raises(ValueError, match="a must be one shape with points, got Complex"):
        rotation_distance(torch.zeros(2, 4, 3), torch.zeros(4, 3))
    with pytest.raises(ValueError, match="a and b must .* got dimensions 3 and 2"):
        rotation_distance(torch.zeros(4, 3), torch.zeros(4, 2))
    with pytest.raises(ValueError, match="num_directions must be at least 1, got 0"):
        rotation_distance(torch.zeros(4, 3), torch.zeros(4, 3), num_directions=0)
    with pytest.raises(ValueError, match=r"shape \[B, T, H\], got \[2, 3\]"):
        circular_distance(torch.zeros(2, 3), torch.zeros(2, 3))
