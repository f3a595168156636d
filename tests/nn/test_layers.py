import copy
import io
import math
import pickle

import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.grid import scale_of_step
from eulerscan.nn import LocalECT

MIXED = es.collate([testing.cycle(9).complex, testing.disc(8).complex, es.Complex(torch.rand(5, 2, dtype=torch.float64))])


def test_the_layer_is_the_function():
    layer = es.ECTLayer(2, 7, 9, scale=30.0, radius=1.3, dtype=torch.float64)
    expected = es.ect(
        MIXED, es.directions.circle(7, dtype=torch.float64), es.thresholds(9, 1.3, dtype=torch.float64), scale=30.0
    )
    torch.testing.assert_close(layer(MIXED), expected)


def test_the_default_rise_takes_one_step_of_the_grid():
    layer = es.ECTLayer(2, num_thresholds=16, dtype=torch.float64)
    step = layer.thresholds.diff()[0]
    torch.testing.assert_close(layer.scale, 4 / step)
    torch.testing.assert_close(
        torch.sigmoid(layer.scale * step / 2), torch.tensor(0.88, dtype=torch.float64), atol=1e-3, rtol=0
    )
    twice = es.ECTLayer(2, num_thresholds=16, scale=scale_of_step(16, steps=2), dtype=torch.float64)
    torch.testing.assert_close(2 * twice.scale, layer.scale)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("on_sphere", [True, False])
def test_directions_are_learned_on_or_off_the_sphere(dim, on_sphere):
    layer = es.ECTLayer(dim, 8, 8, on_sphere=on_sphere)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    before = layer.directions.detach().clone()
    layer(torch.rand(4, 20, dim)).square().mean().backward()
    optimizer.step()
    norms = layer.directions.norm(dim=1)
    assert torch.allclose(norms, torch.ones(8)) == on_sphere
    assert dim == 1 or not torch.allclose(layer.directions, before)


def test_what_is_learned_is_a_parameter_and_the_rest_a_buffer():
    keys = {"weight", "raw_thresholds", "log_scale"}
    for learned in ({}, {"learn_thresholds": True}, {"learn_scale": True}, {"learn_directions": False}):
        layer = es.ECTLayer(2, **learned)
        assert set(layer.state_dict()) == keys
    everything = es.ECTLayer(2, learn_thresholds=True, learn_scale=True)
    assert {name for name, _ in everything.named_parameters()} == keys
    nothing = es.ECTLayer(2, learn_directions=False)
    assert list(nothing.parameters()) == []
    nothing.load_state_dict(everything.state_dict())


def test_all_learned_quantities_receive_gradients():
    layer = es.ECTLayer(2, 6, 6, learn_thresholds=True, learn_scale=True)
    layer(MIXED).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in layer.parameters())


def test_learned_thresholds_stay_in_order_and_the_scale_positive():
    layer = es.ECTLayer(2, 6, 6, learn_thresholds=True, learn_scale=True)
    with torch.no_grad():
        layer.raw_thresholds.copy_(layer.raw_thresholds.flip(0))
        layer.log_scale.fill_(-9.0)
    assert (layer.thresholds.diff() > 0).all()
    assert layer.scale > 0
    layer(MIXED)
    layer.requires_grad_(False)(MIXED)


def test_custom_directions_are_used_and_kept():
    given = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    layer = es.ECTLayer(2, directions=given, on_sphere=False, learn_directions=False)
    assert layer.config.num_directions == 3
    assert torch.equal(layer.directions, given)
    given.zero_()
    layer.reset_parameters()
    assert layer.directions.abs().sum() > 0


def test_resetting_goes_back_to_the_beginning():
    layer = es.ECTLayer(2, learn_scale=True, learn_thresholds=True)
    fresh = copy.deepcopy(layer.state_dict())
    for parameter in layer.parameters():
        parameter.data.add_(1.0)
    layer.reset_parameters()
    torch.testing.assert_close(dict(layer.state_dict()), dict(fresh))


@pytest.mark.parametrize("divide_by", [None, "vertices", "simplices", "peak"])
@pytest.mark.parametrize("normalize", [None, "unit_ball", "center"])
def test_no_option_depends_on_the_rest_of_the_batch(divide_by, normalize):
    layer = es.ECTLayer(2, 5, 7, divide_by=divide_by, dtype=torch.float64, normalize=normalize)
    testing.assert_batch_independent(layer, MIXED, rtol=0, atol=0)
    testing.assert_order_invariant(layer, MIXED)


def test_dividing_is_by_what_it_says():
    raw = es.ECTLayer(2, 5, 7, dtype=torch.float64)(MIXED)
    by = {n: es.ECTLayer(2, 5, 7, divide_by=n, dtype=torch.float64)(MIXED) for n in ("vertices", "simplices", "peak")}
    disc = 8 + 1 + 16 + 8
    torch.testing.assert_close(by["vertices"], raw / torch.tensor([9.0, 9, 5]).double()[:, None, None])
    torch.testing.assert_close(by["simplices"], raw / torch.tensor([18.0, disc, 5]).double()[:, None, None])
    torch.testing.assert_close(by["peak"].abs().amax(dim=(1, 2)), torch.ones(3, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore:Only 0% of the heights")  # they are zero on purpose
@pytest.mark.parametrize("divide_by", ["vertices", "simplices", "peak"])
def test_a_transform_that_is_zero_or_never_positive_survives_division(divide_by):
    """More edges than vertices, or nothing at all: there is no positive maximum to divide by."""
    complete = testing.random_graph(7, 21, dtype=torch.float32).complex
    low = es.Complex(complete.points * 0.01 - 5, complete.simplices)
    shapes = es.collate([low, es.Complex(torch.zeros(0, 2))])
    result = es.ECTLayer(2, 4, 4, directions=torch.ones(1, 2), divide_by=divide_by)(shapes)
    assert result.isfinite().all()
    assert (result[0] < 0).all()
    assert (result[1] == 0).all()


@pytest.mark.parametrize("divide_by", [None, "vertices", "simplices", "peak"])
def test_every_dimension_has_a_channel_of_its_own(divide_by):
    layer = es.ECTLayer(2, 5, 7, variant="channels", max_dim=2, divide_by=divide_by, dtype=torch.float64)
    apart = layer(MIXED)
    assert apart.shape == (3, layer.num_channels, 5, 7)
    testing.assert_batch_independent(layer, MIXED, rtol=0, atol=0)
    if divide_by == "peak":
        torch.testing.assert_close(apart.abs().amax(dim=(1, 2, 3)), torch.ones(3, dtype=torch.float64))
    else:
        together = es.ECTLayer(2, 5, 7, divide_by=divide_by, dtype=torch.float64)(MIXED)
        torch.testing.assert_close(apart[:, 0] - apart[:, 1] + apart[:, 2], together)


@pytest.mark.parametrize("max_dim", [True, 1.0])
def test_max_dim_must_be_a_number_of_dimensions(max_dim):
    with pytest.raises(TypeError, match=f"max_dim.*got {type(max_dim).__name__}"):
        es.ECTLayer(2, variant="channels", max_dim=max_dim)


def test_shapes_with_larger_simplices_than_max_dim_are_refused():
    with pytest.raises(ValueError, match="max_dim.*2-simplices, got 1"):
        es.ECTLayer(2, variant="channels", max_dim=1)(MIXED)


def test_the_unit_ball_option_ignores_place_and_size():
    layer = es.ECTLayer(2, 5, 7, normalize="unit_ball", dtype=torch.float64)
    moved = MIXED.with_points(MIXED.points * 17 + 3)
    torch.testing.assert_close(layer(moved), layer(MIXED))


def test_centering_ignores_position_but_not_size():
    layer = es.ECTLayer(2, 5, 7, radius=3.0, normalize="center", dtype=torch.float64)
    torch.testing.assert_close(layer(MIXED.with_points(MIXED.points + 30)), layer(MIXED))
    assert not torch.allclose(layer(MIXED.with_points(MIXED.points * 2)), layer(MIXED))


def test_a_centered_pair_of_landmarks_is_counted_at_its_own_heights():
    """Two points at 100 and 104 are at -2 and 2 once centered: with the unit ball they would be at -1 and 1."""
    options = {"directions": torch.tensor([[1.0]]), "radius": 3.0, "scale": math.inf}
    curves = es.ECTLayer(1, num_thresholds=7, normalize="center", **options)(torch.tensor([[100.0], [104.0]]))
    assert curves.tolist() == [[[0, 1, 1, 1, 1, 2, 2]]]


@pytest.mark.parametrize("variant", ["sect", "superlevel"])
@pytest.mark.parametrize("derivative", [False, True])
def test_the_layer_gives_any_variant(variant, derivative):
    layer = es.ECTLayer(2, 5, 7, variant=variant, derivative=derivative, dtype=torch.float64)
    expected = getattr(es, variant)(MIXED, layer.directions, layer.thresholds, scale=layer.scale)
    torch.testing.assert_close(layer(MIXED), es.derivative(expected) if derivative else expected)


def test_a_layer_is_made_from_its_configuration():
    config = es.ECTConfig(8, 9, scale=30.0, normalize="center", radius=2.0, divide_by="vertices")
    layer = es.ECTLayer.from_config(2, config, learn_directions=False)
    assert layer.config == config
    torch.testing.assert_close(layer(MIXED.to(torch.float32)), config.transform(MIXED.to(torch.float32)))


def test_the_layer_works_in_its_own_dtype(dtype):
    layer = es.ECTLayer(2, dtype=dtype)
    for given in (torch.float16, torch.float32, torch.float64):
        assert layer(torch.rand(3, 9, 2).to(given)).dtype == dtype
    assert layer.double()(torch.rand(3, 9, 2)).dtype == torch.float64


def test_copies_pickles_and_saved_states_are_equal():
    layer = es.ECTLayer(3, 5, 6, learn_scale=True, directions=torch.rand(5, 3))
    layer.weight.data.mul_(1.7)
    points = torch.rand(2, 10, 3)
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    loaded = es.ECTLayer(3, 5, 6, learn_scale=True)
    loaded.load_state_dict(torch.load(buffer, weights_only=True))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), loaded):
        assert torch.equal(other(points), layer(points))


def test_the_exact_layer_is_the_exact_transform():
    layer = es.ECTLayer(2, 5, 7, scale=math.inf, learn_directions=False, dtype=torch.float64)
    assert torch.equal(layer(MIXED), es.ect(MIXED, layer.directions, layer.thresholds))


def test_the_constructor_has_no_hidden_randomness():
    state = torch.get_rng_state()
    one, other = es.ECTLayer(7), es.ECTLayer(7)
    assert torch.equal(one.weight, other.weight)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("options", [{"dim": 3.0}, {"dim": 3, "num_directions": 8.0}, {"dim": 3, "scale": "8"}])
def test_options_of_another_type_are_named(options):
    with pytest.raises(TypeError, match="must be a"):
        es.ECTLayer(**options)


def test_the_representation_shows_the_scale_of_now():
    layer = es.ECTLayer(2)
    layer.load_state_dict(es.ECTLayer(2, scale=200.0).state_dict())
    assert "scale=200.0," in repr(layer)


def test_a_layer_without_values_has_a_representation():
    assert "scale=50.0," in repr(es.ECTLayer(3, scale=50.0, device="meta"))


@pytest.mark.parametrize("log_scale", [math.nan, -200.0])
def test_a_layer_that_diverged_has_a_representation(log_scale):
    layer = es.ECTLayer(2, learn_scale=True)
    torch.nn.init.constant_(layer.log_scale, log_scale)
    assert f"scale={layer.scale.item()}," in repr(layer)


def test_the_representation_repeats_the_constructor():
    text = repr(es.ECTLayer(3, 8, 9, scale=50.0, normalize="unit_ball", divide_by="peak"))
    assert text == (
        "ECTLayer(dim=3, num_directions=8, num_thresholds=9, radius=1.1, scale=50.0, variant='ect', derivative=False, "
        "normalize='unit_ball', divide_by='peak', max_dim=None, on_sphere=True, rotate_directions=False, "
        "learn_directions=True, learn_thresholds=False, learn_scale=False)"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"directions": torch.rand(2, 5)}, r"directions must have shape \[T, 2\] for dim=2, got \[2, 5\]"),
        ({"divide_by": "batch"}, "divide_by must be None or one of vertices, simplices, peak, got 'batch'"),
        ({"scale": 0.0}, "scale must be positive, got 0.0"),
        ({"scale": math.nan}, "scale must be positive, got nan"),
        ({"normalize": "centre"}, "normalize.*got 'centre'"),
        ({"variant": "dect"}, "variant.*got 'dect'"),
        ({"scale": math.inf, "learn_scale": True}, "scale must be finite.*learn_scale.*got inf"),
        ({"scale": math.inf, "learn_directions": True}, "scale must be finite.*learn_directions.*got inf"),
        ({"max_dim": 1}, "max_dim.*channels.*got 1"),
        ({"num_directions": 0}, "num_directions must be at least 1, got 0"),
        ({"num_thresholds": 0}, "num_thresholds must be at least 1, got 0"),
        ({"radius": 0.0}, "radius must be positive and finite, got 0.0"),
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"variant": "channels", "max_dim": -1}, "max_dim must be at least 0, got -1"),
    ],
)
def test_wrong_options_are_named(options, text):
    with pytest.raises(ValueError, match=text):
        es.ECTLayer(**{"dim": 2, **options})


@pytest.mark.parametrize(
    ("directions", "error", "text"),
    [
        ([[1.0, 0.0]], TypeError, "directions must be a torch.Tensor of floating point, got list"),
        (torch.ones(3, 2, dtype=torch.int64), TypeError, "got torch.int64"),
        (torch.ones(0, 2), ValueError, r"got \[0, 2\]"),
        (torch.full((3, 2), math.nan), ValueError, "directions must be finite, got nan"),
    ],
)
def test_wrong_directions_are_named(directions, error, text):
    with pytest.raises(error, match=text):
        es.ECTLayer(2, directions=directions)


def test_points_of_another_dimension_are_named():
    with pytest.raises(ValueError, match="dimension 2.*got 3"):
        es.ECTLayer(2)(torch.rand(4, 3))


def test_points_far_beyond_the_thresholds_are_warned_of_once():
    pixels = 100 + 64 * torch.rand(1, 200, 2, generator=torch.Generator().manual_seed(0))
    layer = es.ECTLayer(2)
    with pytest.warns(UserWarning, match=r"Only \d+% of the heights.*-1.1, and the last, 1.1,.*normalize=\"unit_ball\""):
        curves = layer(pixels)
    assert (curves.std(dim=2) < 1e-3).float().mean() > 0.8  # constant, but across the line of sight
    layer(pixels)  # warnings are errors in these tests
    with pytest.warns(UserWarning, match="larger radius"):
        es.ECTLayer(2, normalize="center")(1000 * pixels)
    for fitting in (
        es.ECTLayer(2, normalize="unit_ball"),
        es.ECTLayer(2, radius=300.0),
        es.ECTLayer(2, radius=40.0, normalize="center"),
    ):
        fitting(pixels)
    es.ECTLayer(2)(torch.zeros(3, 0, 2))
    es.ECTLayer(2, num_thresholds=1)(torch.rand(1, 9, 2))
    es.ECTLayer(3)(2 * torch.randn(1, 1000, 3, generator=torch.Generator().manual_seed(0)))  # some beyond


def test_heights_are_not_compared_where_values_cannot_be_read():
    pixels = torch.full((1, 5, 2), 100.0)
    layer = es.ECTLayer(2)
    torch.compile(layer, fullgraph=True, backend="eager")(pixels)
    torch.func.vmap(layer)(pixels[None])
    layer.to("meta")(pixels.to("meta"))
    assert not layer._is_checked or layer.weight.is_meta


def test_the_check_of_heights_does_not_compile_a_layer_again():
    layer, points = es.ECTLayer(2, 4, 5), torch.rand(3, 7, 2)
    graphs = []

    def backend(graph, example):
        graphs.append(graph)
        return graph

    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    compiled(points)
    layer(points)  # checks
    assert layer._is_checked
    compiled(points)
    assert len(graphs) == 1


def test_shapes_far_from_the_origin_are_normalized_before_they_are_rounded():
    points = torch.rand(50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    far = points + torch.tensor([5e6, 5e5])
    layer = es.ECTLayer(2, 8, 16, normalize="unit_ball")
    torch.testing.assert_close(layer(far), layer(points), rtol=0, atol=1e-4)
    assert layer(far).dtype == torch.float32
    around = LocalECT(2, 4, k=6)
    torch.testing.assert_close(around(far), around(points), rtol=0, atol=1e-4)
    assert around(far).dtype == torch.float32


def test_an_exported_model_is_saved_loaded_and_takes_other_sizes(tmp_path):
    model = torch.nn.Sequential(es.ECTLayer(3, 4, 5, normalize="unit_ball"), torch.nn.Flatten(), torch.nn.Linear(20, 2)).eval()
    sizes = ({0: torch.export.Dim("clouds", min=2, max=64), 1: torch.export.Dim("points", min=2, max=1000)},)
    torch.export.save(torch.export.export(model, (torch.rand(4, 20, 3),), dynamic_shapes=sizes), tmp_path / "model.pt2")
    exported = torch.export.load(tmp_path / "model.pt2").module()
    for shape in ((4, 20, 3), (7, 33, 3)):
        torch.testing.assert_close(exported(points := torch.rand(shape)), model(points))


def test_the_exact_transform_has_nothing_to_learn():
    layer = es.ECTLayer.from_config(2, es.ECTConfig(normalize="unit_ball"))
    assert not list(layer.parameters())
    assert set(layer.state_dict()) == set(es.ECTLayer(2).state_dict())


def test_switches_are_no_numbers():
    for name in ("on_sphere", "learn_directions", "derivative", "rotate_directions"):
        with pytest.raises(TypeError, match=f"{name} must be True or False, got 0.5"):
            es.ECTLayer(2, **{name: 0.5})


def test_a_radius_may_be_a_tensor():
    assert es.ECTLayer(2, radius=torch.tensor(2.0)).config == es.ECTLayer(2, radius=2.0).config
