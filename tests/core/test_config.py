"""The one noun for how a shape is transformed."""

import inspect
import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from drawing import random_complex

import eulerscan as es
from eulerscan import ECTConfig, testing

SHAPES = es.collate([testing.known_shapes()[name].complex for name in ("cycle", "disc")])


def test_the_transform_is_normalized_then_transformed_then_divided(rng):
    shapes = es.collate([random_complex(rng), random_complex(rng, top=1)])
    config = ECTConfig(5, 7, scale=9.0, divide_by="simplices")
    ball = shapes.normalized("unit_ball")
    expected = es.ect(ball, config.directions(2), config.thresholds(), scale=9.0)
    sizes = ball.offsets.diff(dim=1).sum(dim=0)
    torch.testing.assert_close(config.transform(shapes), expected / sizes[:, None, None])


@pytest.mark.parametrize("variant", ["ect", "sect", "superlevel", "channels"])
@pytest.mark.parametrize("derivative", [False, True])
def test_every_variant_has_the_announced_shape(variant, derivative):
    config = ECTConfig(5, 7, variant=variant, derivative=derivative)
    assert config.transform(SHAPES).shape == (2, *config.shape(2))


def test_half_precision_rounds_points_but_not_the_grid(rng):
    points = torch.from_numpy(rng.random((3, 50, 2))).half()
    config = ECTConfig(num_directions=32, num_thresholds=32, normalize="unit_ball")
    assert torch.equal(config.transform(points), config.transform(points.float()))


def test_the_derivative_is_that_of_the_curves():
    config = ECTConfig(5, 7)
    growth = replace(config, derivative=True).transform(SHAPES)
    torch.testing.assert_close(growth.cumsum(dim=-1), config.transform(SHAPES))


def test_channels_are_up_to_the_dimension_of_space_or_to_max_dim():
    assert ECTConfig(variant="channels").num_channels(3) == 4
    assert ECTConfig(variant="channels", max_dim=1).num_channels(3) == 2
    assert ECTConfig().num_channels(3) == 1


def test_the_radius_is_that_of_the_unit_ball_unless_it_is_given():
    assert ECTConfig().largest_height == 1.1
    assert ECTConfig(radius=2.0).largest_height == 2.0
    assert ECTConfig(normalize=None, radius=2.0).thresholds()[-1] == 2.0
    for normalize in (None, "center"):
        with pytest.raises(ValueError, match=f"radius.*normalize={normalize!r}"):
            ECTConfig(normalize=normalize).thresholds()


def test_the_radius_is_found_for_shapes_unless_it_is_given():
    pair = es.Complex(torch.tensor([[10.0, 0.0], [20.0, 0.0]]))
    assert ECTConfig(normalize="center").with_radius_of(pair).radius == pytest.approx(5.5)
    assert ECTConfig(normalize=None).with_radius_of(pair).radius == pytest.approx(22.0)
    assert ECTConfig(normalize="vertices").with_radius_of(pair).radius == 1.1
    large = pair.with_points(pair.points * 1e20)
    assert ECTConfig(normalize="center").with_radius_of(large).radius == pytest.approx(5.5e20)
    assert ECTConfig(radius=3.0).with_radius_of(pair).radius == 3.0


def test_shapes_beyond_the_radius_are_counted():
    shapes = es.Complex(torch.tensor([[0.5], [3.0], [4.0], [4.5]]), batch=torch.tensor([0, 1, 2, 2]))
    assert ECTConfig(normalize=None, radius=3.5).num_beyond(shapes) == 1
    assert ECTConfig(normalize="center", radius=3.5).num_beyond(shapes) == 0
    assert ECTConfig().num_beyond(shapes) == 0
    clouds = es.Complex(torch.rand(100_000, 3), batch=torch.arange(100_000) // 10)
    for normalize in ("unit_ball", "vertices"):  # norms are 1 up to rounding
        assert ECTConfig(radius=1.0, normalize=normalize).num_beyond(clouds) == 0
    assert ECTConfig(radius=0.5).num_beyond(shapes) == 1  # a pair reaches norm 1, single points go to 0


@pytest.mark.parametrize("config", [ECTConfig(), ECTConfig(5, 6, 2.0, 3.0, "channels", True, None, "peak", 2)])
def test_json_gives_the_same_configuration_back(config):
    assert ECTConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_numbers_of_numpy_are_numbers():
    options = {"num_directions": np.int64(8), "num_thresholds": np.int32(4), "radius": np.float32(2), "scale": np.float32(8)}
    config = ECTConfig(**options, variant="channels", max_dim=np.int64(1))
    assert config == ECTConfig(8, 4, 2.0, 8.0, "channels", max_dim=1)
    assert ECTConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    assert repr(config) == repr(ECTConfig(8, 4, 2.0, 8.0, "channels", max_dim=1))


def test_what_is_no_configuration_is_named():
    with pytest.raises(ValueError, match="colour"):
        ECTConfig.from_dict({**ECTConfig().as_dict(), "colour": 3})


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_directions": 0}, ValueError, "num_directions.*got 0"),
        ({"num_thresholds": 2.0}, TypeError, "num_thresholds.*got float"),
        ({"num_thresholds": np.float64(2)}, TypeError, "num_thresholds.*got float64"),
        ({"num_thresholds": np.True_}, TypeError, "num_thresholds.*got bool"),
        ({"scale": True}, TypeError, "scale.*got bool"),
        ({"radius": -1.0}, ValueError, "radius.*got -1"),
        ({"scale": 0.0}, ValueError, "scale.*got 0"),
        ({"scale": math.nan}, ValueError, "scale.*got nan"),
        ({"scale": "inf"}, TypeError, "scale.*got str"),
        ({"variant": "dect"}, ValueError, "variant.*got 'dect'"),
        ({"normalize": "ball"}, ValueError, "normalize.*got 'ball'"),
        ({"divide_by": "size"}, ValueError, "divide_by.*got 'size'"),
        ({"max_dim": 1}, ValueError, "max_dim.*got 1"),
        ({"variant": "channels", "max_dim": True}, TypeError, "max_dim.*got bool"),
    ],
)
def test_wrong_settings_are_named(options, error, text):
    with pytest.raises(error, match=text):
        ECTConfig(**options)


def test_every_field_is_documented():
    for field in fields(ECTConfig):
        assert f"    {field.name}: " in inspect.getdoc(ECTConfig)  # Python 3.13 removes the indentation itself
