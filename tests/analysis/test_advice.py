import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.analysis import advise
from eulerscan.analysis.resolution import MAX_SIZE


def star(points: int, *, wobble: float = 0.3) -> es.Complex:
    """A closed curve around the origin with the given number of teeth."""
    angles = 2 * math.pi * torch.arange(8 * points, dtype=torch.float64) / (8 * points)
    radius = 1 + wobble * (points * angles).cos()
    here = torch.arange(len(angles))
    return es.Complex(torch.stack([radius * angles.cos(), radius * angles.sin()], dim=1), [torch.stack([here, here.roll(-1)])])


def ragged(corners: int, seed: int) -> es.Complex:
    """A closed curve around the origin whose corners have random distances."""
    angles = 2 * math.pi * torch.arange(corners, dtype=torch.float64) / corners
    generator = torch.Generator().manual_seed(seed)
    radius = 0.3 + 0.7 * torch.rand(corners, generator=generator, dtype=torch.float64)
    here = torch.arange(corners)
    return es.Complex(torch.stack([radius * angles.cos(), radius * angles.sin()], dim=1), [torch.stack([here, here.roll(-1)])])


@pytest.mark.parametrize("seed", range(3))
def test_details_need_directions_and_thresholds(seed):
    plain, detailed = (advise(ragged(corners, seed), normalize="unit_ball").config for corners in (4, 50))
    assert 2 * plain.num_directions < detailed.num_directions
    assert plain.num_thresholds < detailed.num_thresholds


def test_rotationally_symmetric_shapes_need_few_directions():
    assert advise(testing.sphere(4).complex).config.num_directions == 4
    assert advise(testing.disc(200).complex).config.num_directions == 4
    assert advise(testing.torus(48, 24).complex).config.num_directions > 16


def test_a_smaller_tolerance_needs_a_finer_grid():
    loose, strict = (advise(star(5), tolerance=tolerance).config for tolerance in (0.2, 0.02))
    assert loose.num_directions < strict.num_directions
    assert loose.num_thresholds < strict.num_thresholds


@pytest.mark.parametrize("shape", [star(3), testing.torus().complex], ids=["plane", "space"])
def test_thresholds_predict_a_curve_as_well_as_the_reason_says(shape):
    """Recomputed from the transform alone."""
    advice = advise(shape, normalize="unit_ball", tolerance=0.05)
    radius = advice.config.radius
    thresholds = es.thresholds(2 * advice.config.num_thresholds - 1, radius, dtype=torch.float64)
    directions = es.directions.uniform(31, shape.dim, dtype=torch.float64)
    curves = es.ect(shape.normalized("unit_ball"), directions, thresholds)[0]
    predicted = (curves[:, :-1:2] + curves[:, 2::2]) / 2
    unit = es.ect(shape.normalized("unit_ball"), directions, es.thresholds(65, radius, dtype=torch.float64)).abs().mean()
    error = (curves[:, 1::2] - predicted).abs().mean() / unit
    assert error <= 0.05
    assert f"error between them is {100 * error:.2g} % of" in advice.reasons["num_thresholds"]


def test_a_tolerance_out_of_reach_is_reported(rng):
    ends = torch.tensor(rng.permuted(np.tile(np.arange(300), (900, 1)), axis=1)[:, :2].T.copy())
    noise = es.Complex(torch.tensor(rng.normal(size=(300, 3))), [ends])
    advice = advise(noise, tolerance=0.001)
    assert advice.config.num_directions == advice.config.num_thresholds == MAX_SIZE
    assert f"{MAX_SIZE} is the largest number tried" in advice.reasons["num_directions"]


def test_without_the_unit_ball_the_radius_is_a_tenth_above_the_largest_norm():
    shape = star(3, wobble=0.0)
    advice = advise(shape.with_points(5 * shape.points), normalize=None)
    assert advice.config.radius == 5.5
    assert "largest norm of these shapes is 5;" in advice.reasons["radius"]
    tiny = advise(shape.with_points(3e-7 * shape.points), normalize=None)
    assert tiny.config.radius == pytest.approx(3.3e-7)
    assert advise(shape, normalize="unit_ball").config.radius == 1.1


def test_clouds_of_different_sizes_are_divided_by_them(rng):
    clouds = [torch.tensor(rng.normal(size=(count, 2))) for count in (20, 30)]
    advice = advise(clouds)
    assert advice.config.divide_by == advice.layer().config.divide_by == "vertices"
    assert "20 to 30" in advice.reasons["divide_by"]
    assert "divide_by='vertices'" in advice.python()
    assert advise(clouds[:1]).config.divide_by is None
    assert advise(star(3)).config.divide_by is None


def test_different_sizes_and_positions_need_the_unit_ball():
    shape = star(3)
    larger = advise(es.collate([shape, shape.with_points(3 * shape.points)]))
    assert larger.config.normalize == "unit_ball"
    assert "sizes range from 1.3 to 3.9" in larger.reasons["normalize"]
    moved = advise(shape.with_points(shape.points + 10))
    assert moved.config.normalize == "unit_ball"
    assert "14.1 from the origin" in moved.reasons["normalize"]
    normalized = advise(shape.normalized("unit_ball"))
    assert normalized.config.normalize is None
    assert "in the unit ball already" in normalized.reasons["normalize"]


def test_sizes_that_distinguish_the_classes_are_kept():
    shape = star(3)
    small, large = ([shape.with_points(s * shape.points) for s in sizes] for sizes in ((1, 1.1, 1.05), (3, 3.1, 3.2)))
    shapes = es.collate([*small, *large])
    kept = advise(shapes, labels=["mouse"] * 3 + ["rat"] * 3)
    assert kept.config.normalize is None
    assert "sizes are kept" in kept.reasons["normalize"]
    moved = advise(shapes.with_points(shapes.points + 10), labels=["mouse"] * 3 + ["rat"] * 3)
    assert moved.config == replace(kept.config, normalize="center")
    assert "14.1 from the origin" in moved.reasons["normalize"]
    assert "normalize='center'" in moved.python()
    assert moved.layer().config.normalize == "center"
    assert kept.config.radius == 4.58  # 1.1 * 1.3 * 3.2, rounded up
    assert advise(shapes, labels=["mouse", "rat"] * 3).config.normalize == "unit_ball"
    # One shape of each class is not enough to judge.
    assert advise(shapes, labels=["mouse", "rat", "a", "b", "c", "d"]).config.normalize == "unit_ball"
    forced = advise(shapes, labels=["mouse"] * 3 + ["rat"] * 3, normalize="unit_ball")
    assert forced.config.normalize == "unit_ball"
    assert forced.reasons["normalize"].startswith("As requested.")


def test_normalization_can_be_requested():
    shape = star(3)
    far = shape.with_points(shape.points + 10)
    centered, unchanged = advise(far, normalize="center"), advise(far, normalize=None)
    assert (centered.config.normalize, centered.config.radius) == ("center", 1.43)
    assert centered.reasons["normalize"].startswith("As requested.")
    assert unchanged.config.normalize is None
    assert unchanged.reasons["normalize"].startswith("As requested.")
    assert unchanged.config.radius > 14


def test_copies_of_a_shape_get_the_advice_of_one():
    one, many = advise(star(4)).config, advise(es.collate([star(4)] * 3)).config
    assert (one.num_directions, one.num_thresholds) == (many.num_directions, many.num_thresholds)


def test_large_values_of_one_shape_do_not_dominate():
    def weighted(shape: es.Complex, weight: float) -> es.Complex:
        return es.Complex(
            shape.points, shape.simplices, weights=[torch.full((n,), weight, dtype=torch.float64) for n in shape.counts]
        )

    shapes = [star(5), star(9)]
    alike, unlike = (advise(es.collate([weighted(shapes[0], 1), weighted(shapes[1], w)])) for w in (1, 1000))
    assert alike.reasons == unlike.reasons


def test_the_layer_has_the_settings_and_a_scale_of_one_step():
    advice = advise(star(3))
    layer, config = advice.layer(), advice.config
    assert torch.equal(layer.thresholds, es.thresholds(config.num_thresholds, config.radius))
    assert len(layer.directions) == config.num_directions
    default = es.ECTLayer(2, 4, config.num_thresholds, radius=config.radius).scale
    torch.testing.assert_close(layer.scale, default, rtol=1e-3, atol=0)
    again = eval(advice.python(), {"ECTLayer": es.ECTLayer})
    assert again.extra_repr() == layer.extra_repr()


def test_every_vertex_gets_at_least_42_percent_of_the_largest_gradient():
    """The reason of the scale, measured: a vertex moves from one threshold to the next."""
    advice = advise(star(3), normalize=None)
    layer = advice.layer().double()
    first, second = layer.thresholds[advice.config.num_thresholds // 2 :][:2].tolist()
    heights = torch.linspace(first, second, 101, dtype=torch.float64, requires_grad=True)
    values = layer((heights[:, None] * layer.directions[0].detach())[:, None, :])[:, 0]
    slopes = torch.stack([torch.autograd.grad(column.sum(), heights, retain_graph=True)[0] for column in values.T])
    strongest = slopes.abs().amax(dim=0)
    assert float(strongest.min() / strongest.max()) == pytest.approx(0.42, abs=5e-4)
    assert "every vertex gets at least 42 % of the largest gradient" in advice.reasons["scale"]


@pytest.mark.parametrize("dim", [1, 4])
def test_any_dimension_is_advised(dim):
    advice = advise(torch.rand(3, 20, dim))
    assert advice.dim == dim
    assert advice.config.num_directions == 2 or dim > 1
    advice.layer()(torch.rand(3, 20, dim))


def test_single_points_are_advised():
    advice = advise(torch.ones(1, 2))
    assert advice.config.normalize == "unit_ball"
    assert "a single point" in advice.reasons["normalize"]
    assert advise(torch.zeros(1, 2), normalize=None).config.radius == 1.1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": torch.rand(3, 2), "tolerance": 0}, "tolerance must be .* got 0"),
        ({"shape": torch.rand(2, 3, 2), "labels": ["a"]}, "labels must .* 2 shapes, got 1"),
        ({"shape": torch.rand(2, 0, 2)}, "shape must have points .* got none in complex 0"),
        ({"shape": torch.rand(0, 3, 2)}, "number of shapes must be .* got 0"),
    ],
)
def test_slips_are_named(arguments, text):
    with pytest.raises(ValueError, match=text):
        advise(**arguments)


def test_a_grid_is_as_small_as_the_classes_allow_unless_no_grid_tells_them_apart():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    curves = [ragged(12, seed) for seed in range(12)] + [star(5, wobble=0.1 + 0.01 * i) for i in range(12)]
    shapes, unlabeled = es.collate(curves), advise(curves).config
    apart = advise(shapes, labels=["ragged"] * 12 + ["star"] * 12)
    assert "smallest grid" in apart.reasons["num_directions"]
    assert apart.config.num_directions < unlabeled.num_directions
    mixed = advise(shapes, labels=["a", "b"] * 12)
    assert "No grid tells the classes apart (the largest class has 50 %)" in mixed.reasons["num_directions"]
    assert (mixed.config.num_directions, mixed.config.num_thresholds) == (unlabeled.num_directions, unlabeled.num_thresholds)
