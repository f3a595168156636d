import math

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.analysis.advice import advise
from eulerscan.analysis.resolution import MOST


def star(points: int, *, wobble: float = 0.3) -> es.Complex:
    """A closed line around the origin with so many teeth."""
    angles = 2 * math.pi * torch.arange(8 * points, dtype=torch.float64) / (8 * points)
    radius = 1 + wobble * (points * angles).cos()
    here = torch.arange(len(angles))
    return es.Complex(torch.stack([radius * angles.cos(), radius * angles.sin()], dim=1), [torch.stack([here, here.roll(-1)])])


def ragged(corners: int, seed: int) -> es.Complex:
    """A closed line around the origin whose corners are at random distances."""
    angles = 2 * math.pi * torch.arange(corners, dtype=torch.float64) / corners
    generator = torch.Generator().manual_seed(seed)
    radius = 0.3 + 0.7 * torch.rand(corners, generator=generator, dtype=torch.float64)
    here = torch.arange(corners)
    return es.Complex(torch.stack([radius * angles.cos(), radius * angles.sin()], dim=1), [torch.stack([here, here.roll(-1)])])


@pytest.mark.parametrize("seed", range(3))
def test_details_need_directions_and_thresholds(seed):
    plain, detailed = (advise(ragged(corners, seed), unit_ball=True) for corners in (4, 50))
    assert 2 * plain.num_directions < detailed.num_directions
    assert plain.num_thresholds < detailed.num_thresholds


def test_what_looks_the_same_from_everywhere_needs_few_directions():
    assert advise(testing.sphere(4).complex).num_directions == 4
    assert advise(testing.disc(200).complex).num_directions == 4
    assert advise(testing.torus(48, 24).complex).num_directions > 16


def test_a_smaller_tolerance_takes_more():
    loose, strict = advise(star(5), tolerance=0.2), advise(star(5), tolerance=0.02)
    assert loose.num_directions < strict.num_directions
    assert loose.num_thresholds < strict.num_thresholds


@pytest.mark.parametrize("shape", [star(3), testing.torus().complex], ids=["plane", "space"])
def test_thresholds_predict_a_curve_as_well_as_the_reason_says(shape):
    """Counted anew, from the transform alone."""
    advice = advise(shape, unit_ball=True, tolerance=0.05)
    thresholds = es.thresholds(2 * advice.num_thresholds - 1, advice.radius, dtype=torch.float64)
    directions = es.directions.uniform(31, shape.dim, dtype=torch.float64)
    curves = es.ect(shape.normalized("unit_ball"), directions, thresholds)[0]
    predicted = (curves[:, :-1:2] + curves[:, 2::2]) / 2
    unit = es.ect(shape.normalized("unit_ball"), directions, es.thresholds(65, advice.radius, dtype=torch.float64)).abs().mean()
    error = (curves[:, 1::2] - predicted).abs().mean() / unit
    assert error <= 0.05
    assert f"{100 * error:.2g} % off" in advice.reasons["num_thresholds"]


def test_where_the_tolerance_is_out_of_reach_that_is_said(rng):
    ends = torch.tensor(rng.permuted(np.tile(np.arange(300), (900, 1)), axis=1)[:, :2].T.copy())
    noise = es.Complex(torch.tensor(rng.normal(size=(300, 3))), [ends])
    advice = advise(noise, tolerance=0.001)
    assert advice.num_directions == advice.num_thresholds == MOST
    assert "this is the most that is tried" in advice.reasons["num_directions"]


def test_without_the_unit_ball_the_radius_is_a_tenth_above_the_largest_norm():
    shape = star(3, wobble=0.0)
    advice = advise(shape.with_points(5 * shape.points), unit_ball=False)
    assert advice.radius == 5.5
    assert "largest norm of these shapes is 5;" in advice.reasons["radius"]
    tiny = advise(shape.with_points(3e-7 * shape.points), unit_ball=False)
    assert tiny.radius == pytest.approx(3.3e-7)
    assert advise(shape, unit_ball=True).radius == 1.1


def test_clouds_of_different_sizes_are_to_be_divided_by_them(rng):
    clouds = [torch.tensor(rng.normal(size=(count, 2))) for count in (20, 30)]
    advice = advise(clouds)
    assert advice.divide_by == advice.layer().divide_by == "vertices"
    assert "20 to 30" in advice.reasons["divide_by"]
    assert "divide_by='vertices'" in advice.python()
    assert advise(clouds[:1]).divide_by is None
    assert advise(star(3)).divide_by is None


def test_sizes_and_places_that_differ_ask_for_the_unit_ball():
    shape = star(3)
    larger = advise(es.collate([shape, shape.with_points(3 * shape.points)]))
    assert larger.unit_ball
    assert "sizes go from 1.3 to 3.9" in larger.reasons["unit_ball"]
    moved = advise(shape.with_points(shape.points + 10))
    assert moved.unit_ball
    assert "14.1 from the origin" in moved.reasons["unit_ball"]
    there = advise(shape.normalized("unit_ball"))
    assert not there.unit_ball
    assert "in the unit ball already" in there.reasons["unit_ball"]


def test_sizes_that_tell_the_classes_apart_are_kept():
    shape = star(3)
    small, large = ([shape.with_points(s * shape.points) for s in sizes] for sizes in ((1, 1.1, 1.05), (3, 3.1, 3.2)))
    shapes = es.collate([*small, *large])
    kept = advise(shapes, labels=["mouse"] * 3 + ["rat"] * 3)
    assert not kept.unit_ball
    assert kept.reasons["unit_ball"].endswith("the unit ball would lose it.")
    moved = advise(shapes.with_points(shapes.points + 10), labels=["mouse"] * 3 + ["rat"] * 3)
    assert (moved.unit_ball, moved.centre, moved.radius) == (False, True, kept.radius)
    assert "14.1 from the origin" in moved.reasons["centre"]
    assert "centre=True" in moved.python()
    assert moved.layer().centre
    assert (moved.num_directions, moved.num_thresholds) == (kept.num_directions, kept.num_thresholds)
    assert not kept.centre
    assert kept.radius == 4.58  # 1.1 * 1.3 * 3.2, rounded up
    assert advise(shapes, labels=["mouse", "rat"] * 3).unit_ball
    assert advise(shapes, labels=["mouse", "rat", "a", "b", "c", "d"]).unit_ball  # one of each kind says nothing
    forced = advise(shapes, labels=["mouse"] * 3 + ["rat"] * 3, unit_ball=True)
    assert forced.unit_ball
    assert forced.reasons["unit_ball"].startswith("You chose so.")
    assert not forced.centre


def test_centring_and_doing_without_can_be_chosen():
    shape = star(3)
    far = shape.with_points(shape.points + 10)
    centred, as_it_is = advise(far, centre=True), advise(far, unit_ball=False)
    assert (centred.unit_ball, centred.centre, centred.radius) == (False, True, 1.43)
    assert centred.reasons["unit_ball"].startswith("You chose so.")
    assert (as_it_is.unit_ball, as_it_is.centre) == (False, False)
    assert as_it_is.reasons["centre"].startswith("You chose so.")
    assert as_it_is.radius > 14


def test_copies_of_a_shape_are_judged_as_one():
    one, many = advise(star(4)), advise(es.collate([star(4)] * 3))
    assert (one.num_directions, one.num_thresholds) == (many.num_directions, many.num_thresholds)


def test_large_values_of_one_shape_do_not_drown_the_others():
    def weighed(shape: es.Complex, weight: float) -> es.Complex:
        return es.Complex(
            shape.points, shape.simplices, weights=[torch.full((n,), weight, dtype=torch.float64) for n in shape.counts]
        )

    shapes = [star(5), star(9)]
    alike, unlike = (advise(es.collate([weighed(shapes[0], 1), weighed(shapes[1], w)])) for w in (1, 1000))
    assert alike.reasons == unlike.reasons


def test_the_layer_has_the_settings_and_a_rise_of_one_step():
    advice = advise(star(3))
    layer = advice.layer()
    assert torch.equal(layer.thresholds, es.thresholds(advice.num_thresholds, advice.radius))
    assert len(layer.directions) == advice.num_directions
    default = es.ECTLayer(2, 4, advice.num_thresholds, radius=advice.radius).scale
    torch.testing.assert_close(layer.scale, default, rtol=1e-3, atol=0)
    again = eval(advice.python(), {"ECTLayer": es.ECTLayer})
    assert again.extra_repr() == layer.extra_repr()


def test_no_vertex_has_less_than_42_percent_of_the_largest_gradient():
    """What the reason of the scale says, measured: a vertex that goes from threshold to threshold in its direction."""
    advice = advise(star(3), unit_ball=False)
    layer = advice.layer().double()
    first, second = layer.thresholds[advice.num_thresholds // 2 :][:2].tolist()
    heights = torch.linspace(first, second, 101, dtype=torch.float64, requires_grad=True)
    values = layer((heights[:, None] * layer.directions[0].detach())[:, None, :])[:, 0]
    slopes = torch.stack([torch.autograd.grad(column.sum(), heights, retain_graph=True)[0] for column in values.T])
    strongest = slopes.abs().amax(dim=0)
    assert float(strongest.min() / strongest.max()) == pytest.approx(0.42, abs=5e-4)
    assert "no vertex has less than 42 % of the largest gradient" in advice.reasons["scale"]


@pytest.mark.parametrize("dim", [1, 4])
def test_any_dimension_is_advised(dim):
    advice = advise(torch.rand(3, 20, dim))
    assert advice.dim == dim
    assert advice.num_directions == 2 or dim > 1
    advice.layer()(torch.rand(3, 20, dim))


def test_single_points_are_advised():
    advice = advise(torch.ones(1, 2))
    assert advice.unit_ball
    assert "a single place" in advice.reasons["unit_ball"]
    assert advise(torch.zeros(1, 2), unit_ball=False).radius == 1.1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": torch.rand(3, 2), "tolerance": 0}, "tolerance must be a share between 0 and 1, got 0"),
        ({"shape": torch.rand(2, 3, 2), "labels": ["a"]}, "class of each of 2 shapes, got 1"),
        ({"shape": torch.rand(2, 0, 2)}, "points in every complex, got none in complex 0"),
        ({"shape": torch.rand(0, 3, 2)}, "number of shapes must be at least 1, got 0"),
    ],
)
def test_slips_are_named(arguments, text):
    with pytest.raises(ValueError, match=text):
        advise(**arguments)
