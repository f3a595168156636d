import math

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.analysis import alignment as aligning
from eulerscan.analysis.alignment import Views, _looked_up, _transformed, align
from eulerscan.analysis.globe import Globe
from eulerscan.analysis.invariant import rotation_distance
from eulerscan.rotations import NEIGHBOURS, different, nearby, principal, spread

OPTIONS = {"p": 2, "candidates": 64, "starts": 2, "rounds": 8, "reflections": False}


def angles_between(a, b):
    """As rotations: the angle of the one that takes the first to the second."""
    return ((torch.einsum("...ij,...ij->...", a, b) - (a.shape[-1] - 2)) / 2).clamp(-1, 1).acos()


def bent(rng, dim=3):
    """A path without symmetry."""
    points = torch.tensor(rng.normal(size=(20, dim)).cumsum(axis=0))
    return es.Complex(points, [torch.stack([torch.arange(19), torch.arange(1, 20)])]).normalized("unit_ball")


# Directions from everywhere


@pytest.mark.parametrize(("n", "dim"), [(1, 2), (7, 2), (64, 2), (1, 3), (50, 3), (1000, 3), (4096, 3)])
def test_the_nearest_direction_is_that_of_trying_them_all(n, dim, rng):
    globe = Globe(n, dim)
    assert len(globe.directions) == pytest.approx(n, rel=0.1, abs=2)
    torch.testing.assert_close(globe.directions.norm(dim=1), torch.ones(len(globe.directions)).double())
    assert torch.equal(globe.nearest(globe.directions), torch.arange(len(globe.directions)))
    wanted = torch.nn.functional.normalize(torch.tensor(rng.normal(size=(500, dim))), dim=1)
    found = (globe.directions[globe.nearest(wanted)] * wanted).sum(dim=1).clamp(-1, 1).acos()
    best = (wanted @ globe.directions.T).amax(dim=1).clamp(-1, 1).acos()
    assert (found <= best + globe.step / 2).all()  # on the next parallel there may be a nearer one
    assert found.max() < globe.step


def test_poles_and_rounding_have_a_nearest_direction():
    globe = Globe(100, 3)
    poles = torch.tensor([[0.0, 0, 1], [0, 0, -1], [0, 0, 1 + 1e-12], [-1, -1e-300, 0]], dtype=torch.float64)
    assert ((globe.directions[globe.nearest(poles)] * poles).sum(dim=1) > math.cos(globe.step)).all()


# Rotations


@pytest.mark.parametrize("dim", [2, 3])
def test_turns_are_rotations_by_their_angle_or_less(dim):
    rotations = spread(5, dim)
    angles = torch.tensor([1.0, 0.5, 0.25, 1e-3, 0.0], dtype=torch.float64)
    turned = nearby(rotations, angles, round=3)
    assert turned.shape == (5, NEIGHBOURS, dim, dim)
    torch.testing.assert_close(turned @ turned.mT, torch.eye(dim).double().expand_as(turned))
    found = angles_between(turned, rotations[:, None])
    torch.testing.assert_close(found.amax(dim=1), angles, atol=1e-6, rtol=0)
    assert not torch.equal(turned, nearby(rotations, angles, round=4)) or dim == 2


def test_principal_axes_tell_how_a_shape_was_turned(rng):
    points, rotation = torch.tensor(rng.normal(size=(30, 3))) * torch.tensor([1.0, 2.0, 3.0]), spread(9, 3)[7]
    found = principal(points, points @ rotation)
    assert len(found) == 4
    assert angles_between(found, rotation).min() < 1e-6
    mirror = torch.diag(torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64))
    found = principal(points, points @ rotation @ mirror, reflections=True)
    assert len(found) == 8
    assert torch.linalg.matrix_norm(found - rotation @ mirror).min() < 1e-9


def test_the_best_are_taken_that_are_apart():
    rotations = spread(8, 2)
    errors = torch.tensor([3.0, 1.0, 2.0, 9.0, 9.0, 4.0, 9.0, 9.0])
    assert different(rotations, errors, 2, apart=math.pi / 3) == [1, 5]  # 2 and 0 are neighbours of 1
    assert different(rotations, errors, 3, apart=0.1) == [1, 2, 0]


# Shapes


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
@pytest.mark.parametrize("dim", [2, 3])
def test_what_is_looked_up_is_near_the_truth(p, dim, rng):
    a, b = (Views(bent(rng, dim), 24, 24, 1.1) for _ in range(2))
    rotations = spread(40, dim)
    exact = _transformed(a, b, p)(rotations)
    rough = _looked_up(a, b, p)(rotations) / 24 ** (1 / p)
    assert ((rough - exact).abs() <= 0.1 * exact.max() + (math.isinf(p))).all()
    assert np.corrcoef(rough, exact)[0, 1] > 0.9 or math.isinf(p)


def test_looking_up_where_a_curve_was_made_is_exact(rng):
    a, b = (Views(bent(rng, 2), 32, 16, 1.1) for _ in range(2))  # 32 divides 4096: each direction is one of the many
    rotations = spread(32, 2)
    torch.testing.assert_close(_looked_up(a, b, 2)(rotations) / 32**0.5, _transformed(a, b, 2)(rotations))


def test_shapes_made_ready_once_have_the_distances_of_pairs(rng):
    shapes = [bent(rng), bent(rng), testing.torus().complex.to(torch.float64).normalized("unit_ball")]
    views = [Views(shape, 16, 12, 1.1) for shape in shapes]
    for i, j in ((0, 1), (1, 0), (0, 2), (1, 2)):
        alone = rotation_distance(shapes[i], shapes[j], num_directions=16, num_thresholds=12, **OPTIONS)
        found = align(views[i], views[j], **OPTIONS)
        assert found.distance == alone.distance
        assert torch.equal(found.rotation, alone.rotation)


def test_a_shape_is_transformed_from_everywhere_once(rng, monkeypatch):
    views, calls = [Views(bent(rng), 16, 12, 1.1) for _ in range(3)], []
    everywhere = len(views[0].globe.directions)
    transform = aligning.ect
    monkeypatch.setattr(aligning, "ect", lambda *a: calls.append(len(a[1])) or transform(*a))
    for a in views:
        for b in views:
            if a is not b:
                align(a, b, **OPTIONS)
    assert calls.count(everywhere) == 3
    assert calls.count(16) >= 3


def test_no_turn_and_the_principal_axes_are_always_tried_in_earnest(rng):
    """However few the trials, a shape is at no distance from itself or from itself turned."""
    shape, few = bent(rng), {**OPTIONS, "candidates": 1, "starts": 1, "rounds": 1}
    turned = shape.with_points(shape.points @ spread(5, 3)[3])
    assert rotation_distance(shape, shape, **few).distance == 0
    assert rotation_distance(shape, turned, **few).distance < 1e-6
    mirrored = turned.with_points(turned.points * torch.tensor([1.0, -1.0, 1.0]))
    assert rotation_distance(shape, mirrored, **{**few, "reflections": True}).distance < 1e-6
