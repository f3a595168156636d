import inspect
import math

import pytest
import torch
from drawing import random_complex

import eulerscan as es
from eulerscan import directions
from eulerscan.nn.models import ECTCNN, ECTMLP, ECTSVM, MODELS, ECTCurves, ECTDeepSets, ECTHarmonics, Ensemble
from eulerscan.nn.models.ensemble import Calibration, calibrate
from eulerscan.training.config import ModelConfig


def make(model, dim=3, num_classes=5, layer=None, **head):
    """A model on a layer with these options, in the unit ball by default. An SVM is fitted to random clouds."""
    if model is ECTHarmonics:
        quadrature = ECTHarmonics.initial_directions(dim, 3)
        layer, head = {"directions": quadrature, "learn_directions": False} | (layer or {}), {"degree": 3} | head
    made = model(es.ECTLayer(dim, **{"normalize": "unit_ball"} | (layer or {})), num_classes, **head)
    if model is ECTSVM:
        made.fit(torch.rand(2 * num_classes, 6, dim), torch.arange(2 * num_classes) % num_classes)
    return made


NETWORKS = [
    model for model in MODELS.values() if model is not ECTSVM
]  # trained by gradients: tests/nn/test_svm.py has the other


@pytest.mark.parametrize(
    ("model", "dim", "num_classes", "preset", "parameters"),
    [
        (ECTCNN, 2, 15, "4k", 3945),  # PAPER.md
        (ECTCNN, 38, 2, "4k", 4183),  # PAPER.md
        (ECTCNN, 2, 15, "65k", 64827),
        (ECTCNN, 2, 15, "superpixels", 70627),
        (ECTMLP, 2, 10, "4k", 3990),
        (ECTMLP, 2, 10, "65k", 65124),
        (ECTMLP, 2, 10, "superpixels", 113674),
        (ECTDeepSets, 3, 40, "modelnet", 109480),
    ],
)
def test_presets_have_the_sizes_that_they_say(model, dim, num_classes, preset, parameters):
    made = model.from_preset(preset, dim=dim, num_classes=num_classes)
    assert made.num_parameters == parameters
    assert f"{parameters:,}" in model.__doc__ or dim == 38
    assert made(torch.rand(3, 5, dim)).shape == (3, num_classes)


def mixed_batch(rng):
    return [
        random_complex(rng, num_points=n, dim=3, top=top, dtype=torch.float32) for n, top in ((7, 0), (9, 1), (8, 2), (6, 3))
    ]


@pytest.mark.parametrize("model", MODELS.values())
def test_a_shape_has_the_same_logits_alone_and_in_a_mixed_batch(model, rng):
    made, shapes = make(model).eval(), mixed_batch(rng)
    together = made(es.collate(shapes))
    for shape, logits in zip(shapes, together, strict=True):
        torch.testing.assert_close(made(shape)[0], logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", MODELS.values())
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_dtype_is_that_of_the_whole_model(model, dtype, rng):
    for made in (make(model, layer={"dtype": dtype}), make(model).to(dtype)):
        assert {parameter.dtype for parameter in made.parameters()} == {dtype}
        assert made(es.collate(mixed_batch(rng))).dtype == dtype


@pytest.mark.parametrize("model", NETWORKS)
def test_every_parameter_has_a_gradient(model, rng):
    made = make(model)
    made(es.collate(mixed_batch(rng))).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in made.parameters())


@pytest.mark.parametrize("model", NETWORKS)
def test_a_head_on_channels_distinguishes_dimensions(model):
    points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [0.1, 0.0]])
    cloud = es.Complex(points)
    graph = es.Complex(points, [torch.tensor([[1], [2]])])  # the edge takes the second of two equal points away
    fewer = es.Complex(points[:2])
    blind = make(model, 2, 3, {"normalize": None}).eval()
    sighted = make(model, 2, 3, {"normalize": None, "variant": "channels", "max_dim": 1}).eval()
    torch.testing.assert_close(blind(graph), blind(fewer))
    assert not torch.allclose(sighted(graph), sighted(fewer))
    assert not torch.allclose(sighted(graph), sighted(cloud))


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_deep_sets_do_not_see_the_order_of_directions(pooling, rng):
    made = make(ECTDeepSets, layer={"num_directions": 12}, pooling=pooling).eval()
    shapes = es.collate(mixed_batch(rng))
    before = made(shapes)
    with torch.no_grad():
        made.layer.weight.copy_(made.layer.weight[torch.randperm(12)])
    torch.testing.assert_close(made(shapes), before)


def test_a_circular_head_turns_with_the_shape_until_it_is_flattened(rng):
    """A quarter turn moves the transform by four of sixteen rows, which two poolings make one."""
    made = make(ECTCNN, 2, 4, circular=True).eval().double()
    points = torch.tensor(rng.normal(size=(1, 20, 2)))
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    image = made.head[: [type(module) for module in made.head].index(torch.nn.Flatten)]
    rows, turned = image(made.layer(points)), image(made.layer(points @ quarter.T))
    assert rows.shape[2] == 4
    torch.testing.assert_close(turned, rows.roll(1, dims=2), rtol=1e-6, atol=1e-8)


def test_without_the_relu_the_published_architecture_remains():
    head = make(ECTCNN, 2, 15, conv_activation=False).head
    dense = ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert [type(module).__name__ for module in head] == ["RingsToChannels", *["PooledConvolution"] * 2, "Flatten", *dense]
    assert [head[1].relu, head[2].relu] == [False, False]
    assert make(ECTCNN, 2, 15).head[1].relu


@pytest.mark.parametrize("model", [ECTCNN, ECTMLP])
def test_batch_norm_gives_mean_zero_and_variance_one(model, rng):
    made = make(model, batch_norm=True)
    seen = []
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            module.register_forward_hook(lambda module, inputs, output: seen.append(output))
    made(torch.tensor(rng.normal(size=(16, 30, 3)), dtype=torch.float32))
    assert len(seen) == (4 if model is ECTCNN else 2)
    for output in seen:
        values = output.detach().transpose(0, 1).flatten(1)
        torch.testing.assert_close(values.mean(dim=1), torch.zeros(len(values)), rtol=0, atol=1e-5)
        assert float(values.std(dim=1, correction=0).max()) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("model", [ECTCNN, ECTMLP])
def test_a_model_with_batch_norm_trains_on_batches_of_any_size(model, rng):
    made = make(model, batch_norm=True)
    for count in (8, 1, 0):
        shapes = torch.tensor(rng.normal(size=(count, 30, 3)), dtype=torch.float32)
        logits = made(shapes)
        logits.sum().backward()
        assert logits.shape == (count, 5)
        assert bool(logits.isfinite().all())
    made.eval()
    torch.testing.assert_close(made(shapes := torch.rand(3, 9, 3))[1:2], made(shapes[1:2]))  # no shape sees the others


def test_an_ensemble_gives_the_mean_of_the_probabilities(rng):
    members = [make(model).eval() for model in (ECTMLP, ECTCNN, ECTMLP)]
    shapes = es.collate(mixed_batch(rng))
    wanted = torch.stack([member(shapes).softmax(dim=1) for member in members]).mean(dim=0)
    torch.testing.assert_close(Ensemble(members)(shapes).softmax(dim=1), wanted)
    torch.testing.assert_close(Ensemble(members[:1])(shapes).softmax(dim=1), members[0](shapes).softmax(dim=1))
    with pytest.raises(ValueError, match="members"):
        Ensemble([])
    trusted = Ensemble(members[:2], [Calibration(2.0, 3.0), Calibration(1.0, 1.0)])
    one, two = members[0](shapes), members[1](shapes)
    wanted = 0.75 * (one / 2).softmax(dim=1) + 0.25 * two.softmax(dim=1)
    torch.testing.assert_close(trusted(shapes).softmax(dim=1), wanted)
    with pytest.raises(ValueError, match="calibrations must be 2 pairs of positive numbers"):
        Ensemble(members[:2], [Calibration()])


def test_calibrations_may_be_any_pairs():
    members, shapes = [make(ECTMLP), make(ECTMLP)], torch.rand(4, 9, 3)
    expected = Ensemble(members, [Calibration(2.0, 0.5), Calibration()])(shapes)
    torch.testing.assert_close(Ensemble(members, [[2.0, 0.5], (1.0, 1.0)])(shapes), expected)
    for wrong in ([(1.0,), (1.0,)], [(1.0, float("nan")), (1.0, 1.0)], [(1.0, 2.0, 3.0), (1.0, 1.0)]):
        with pytest.raises(ValueError, match="calibrations must be 2 pairs of positive numbers"):
            Ensemble(members, wrong)


def test_a_classifier_that_is_sure_of_wrong_classes_has_a_weight_still():
    wrong = calibrate(1e7 * torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 1, 0]))
    assert 0 < wrong.weight < 1e-200


@pytest.mark.parametrize("num_classes", [2, 3, 70])
def test_the_weight_of_a_guess_does_not_depend_on_the_number_of_classes(num_classes):
    assert calibrate(torch.zeros(9, num_classes), torch.arange(9) % 2).weight == pytest.approx(math.exp(-10))


def test_a_calibration_makes_probabilities_as_sure_as_they_should_be():
    labels = torch.zeros(1000, dtype=torch.int64)
    logits = torch.where(torch.arange(1000)[:, None] < 800, torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, 50.0]]))
    temperature, weight = calibrate(logits, labels)
    sure = (logits / temperature).softmax(dim=1).amax(dim=1)
    torch.testing.assert_close(sure, torch.full_like(sure, 0.8), rtol=0, atol=0.03)
    few = calibrate(torch.tensor([[1.0, 0.0]] * 3), labels[:3])
    assert torch.tensor([1 / few.temperature, 0.0]).softmax(dim=0)[0] < 0.95  # right about three of three is no certainty
    assert weight < calibrate(torch.tensor([[1.0, 0.0]] * 1000), labels).weight <= 1


def test_any_number_of_convolutions():
    made = make(ECTCNN, 2, 3, {"num_directions": 32, "num_thresholds": 32}, channels=(4, 6, 8))
    assert [module.out_channels for module in made.head if isinstance(module, torch.nn.Conv2d)] == [4, 6, 8]
    assert made(torch.rand(5, 9, 2)).shape == (5, 3)


@pytest.mark.parametrize(
    ("model", "options", "text"),
    [
        (ECTCNN, {"channels": ()}, "channels.*got none"),
        (ECTCNN, {"channels": (8, 0)}, "each size in channels must be at least 1, got 0"),
        (ECTMLP, {"hidden": (-3,)}, "each size in hidden must be at least 1, got -3"),
        (ECTMLP, {"hidden": (2.5,)}, "each size in hidden must be an int, got float"),
        (ECTDeepSets, {"embedding": ()}, "embedding.*got none"),
        (ECTCNN, {"channels": (4, 4, 4)}, "directions and thresholds.*got 16 and 16"),
    ],
)
def test_sizes_that_make_no_sense_are_named(model, options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        make(model, 2, 3, **options)


def test_no_hidden_layers_are_a_linear_head():
    assert make(ECTMLP, 2, 3, hidden=(), batch_norm=True)(torch.rand(5, 9, 2)).shape == (5, 3)


def test_options_beside_a_preset_have_the_last_word():
    made = ModelConfig("cnn", "65k", num_thresholds=24, learn_directions=False, normalize=None, hidden=(7,)).build(2, 3)
    assert (made.layer.config.num_directions, made.layer.config.num_thresholds) == (32, 24)
    assert made.layer.config.normalize is None
    assert "layer.weight" not in dict(made.named_parameters())
    linear = [module.out_features for module in made.head if isinstance(module, torch.nn.Linear)]
    assert linear == [7, 3]
    assert any(isinstance(module, torch.nn.Dropout) for module in made.head)  # of the preset


def test_an_empty_batch_gives_no_logits():
    for model in MODELS.values():
        assert make(model, 2, 3)(torch.zeros(0, 4, 2)).shape == (0, 3)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: ECTCNN.from_preset("4K", dim=2, num_classes=3), "preset.*4k, 65k, superpixels, got '4K'"),
        (lambda: ECTCurves.from_preset("4k", dim=2, num_classes=3), r"preset.*none for ECTCurves, got '4k'.*ECTCurves\("),
        (lambda: make(ECTCNN, 2, 3, {"num_thresholds": 8}), "directions and thresholds.*got 16 and 8. 10 of each"),
        (lambda: ECTCNN.initial_directions(2, 16, num_rings=2), "num_rings.*dim=2"),
        (lambda: ECTCNN.initial_directions(3, 16, num_rings=3), "num_rings.*16, got 3"),
        (lambda: make(ECTCNN, 2, 3, {"directions": directions.circle(16)}, num_rings=3), "num_rings.*16, got 3"),
        (lambda: make(ECTCNN, 3, 3, {"num_directions": 15}, num_rings=5), "directions a ring.*got 3 and 16. 10"),
        (lambda: make(ECTDeepSets, 2, 3, pooling="sum"), "pooling.*max, mean, got 'sum'"),
    ],
)
def test_what_cannot_be_built_is_named(build, text):
    with pytest.raises(ValueError, match=text):
        build()


@pytest.mark.parametrize("model", MODELS.values())
def test_options_are_part_of_the_signature(model):
    """So editors complete them, ``help`` shows them, and Python refuses others."""
    parameters = inspect.signature(model).parameters.values()
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters)
    with pytest.raises(TypeError, match="layers"):
        make(model, layers=2)


def test_circular_convolutions_in_space_start_on_a_closed_curve():
    torch.testing.assert_close(ECTCNN.initial_directions(3, 12, circular=True).float(), directions.loop(12))
    model = ModelConfig("cnn", num_directions=12, circular=True).build(3, 2)
    torch.testing.assert_close(model.layer.directions, directions.loop(12))


def test_rings_are_channels_of_a_convolution_that_goes_round(generator):
    """A shape turned by two steps, which pooling keeps, moves on in what the convolutions give."""
    first = ECTCNN.initial_directions(3, 24, num_rings=3)
    torch.testing.assert_close(first.float(), directions.rings(24, 3))
    layer = {"directions": first, "num_thresholds": 10, "normalize": None}
    model = make(ECTCNN, 3, 2, layer, num_rings=3, channels=(4,))
    cloud = torch.rand(30, 3, generator=generator) - 0.5
    quarter = torch.tensor([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])  # two of eight steps
    images = model.head[: [type(layer) for layer in model.head].index(torch.nn.Flatten)]
    seen, turned = (images(model.layer(points.unsqueeze(0))) for points in (cloud, cloud @ quarter.T))
    assert seen.shape == (1, 4, 4, 4)
    torch.testing.assert_close(turned, seen.roll(1, dims=2))
    assert not torch.allclose(turned, seen)


def test_rings_have_channels_for_every_dimension(generator):
    layer = {"num_directions": 24, "num_thresholds": 10, "variant": "channels", "max_dim": 1}
    model = make(ECTCNN, 3, 2, layer, num_rings=3, channels=(4,))
    convolution = next(layer for layer in model.head if isinstance(layer, torch.nn.Conv2d))
    assert convolution.in_channels == 6
    assert model(torch.rand(5, 30, 3, generator=generator)).shape == (5, 2)
