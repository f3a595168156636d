"""Attribution: what every vertex contributes to the output of a model."""

import math

import pytest
import torch
from torch import nn

import eulerscan as es
from eulerscan import rotations
from eulerscan.analysis import attribute
from eulerscan.nn.frames import FrameAveraging
from eulerscan.nn.models import Ensemble
from eulerscan.testing import known_shapes
from eulerscan.training import ModelConfig


def shapes(dtype=torch.float64) -> es.Complex:
    """A tetrahedron, a path and a cloud, none of them in a special position."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(12, 3, dtype=dtype, generator=generator)
    edges = torch.tensor([[0, 0, 0, 1, 1, 2, 4, 5, 6], [1, 2, 3, 2, 3, 3, 5, 6, 7]])
    triangles = torch.tensor([[0, 0, 0, 1], [1, 1, 2, 2], [2, 3, 3, 3]])
    batch = torch.tensor([0] * 4 + [1] * 4 + [2] * 4)
    return es.Complex(points, [edges, triangles], batch=batch)


def linear(num_outputs=3, dtype=torch.float64, **options) -> nn.Module:
    torch.manual_seed(0)
    layer = es.ECTLayer(3, 7, 9, dtype=dtype, **options)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(63, num_outputs, dtype=dtype))


@pytest.mark.parametrize("scale", [None, 5.0, math.inf])
@pytest.mark.parametrize(
    "options", [{}, {"normalize": "unit_ball"}, {"divide_by": "simplices"}, {"derivative": True, "normalize": "center"}]
)
def test_the_additive_split_adds_up_to_the_output(scale, options):
    model, batch = linear(scale=scale, **options), shapes()
    found = attribute(model, batch, 1, method="additive")
    torch.testing.assert_close(found.outputs, model(batch)[:, 1].detach())
    torch.testing.assert_close(found.baselines, model[2].bias[1].detach().expand(3))
    sums = torch.stack([part.sum() for part in found.scores.split([4, 4, 4])])
    torch.testing.assert_close(sums, found.outputs - found.baselines, rtol=1e-6, atol=1e-12)


def test_the_additive_split_of_one_curve_is_its_jumps():
    """A path of heights 1, 2, 3: its curve jumps at its first vertex only, by 1."""
    path = es.Complex(torch.tensor([[1.0], [2.0], [3.0]]), [torch.tensor([[0, 1], [1, 2]])])
    layer = es.ECTLayer(1, directions=torch.ones(1, 1), num_thresholds=8, radius=4.0, scale=math.inf)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(8, 1))
    with torch.no_grad():
        model[2].weight.copy_(torch.arange(8.0))
    above = torch.arange(8.0)[layer.thresholds >= 1].sum()
    torch.testing.assert_close(attribute(model, path, method="additive").scores, torch.stack([above, 0 * above, 0 * above]))


def test_the_additive_split_counts_weights():
    cloud = es.Complex(torch.tensor([[0.0], [0.5]]), weights=(torch.tensor([2.0, -3.0]),))
    layer = es.ECTLayer(1, directions=torch.ones(1, 1), num_thresholds=2, radius=1.0, scale=math.inf)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(2, 1, bias=False))
    with torch.no_grad():
        model[2].weight.fill_(1.0)
    torch.testing.assert_close(attribute(model, cloud, method="additive").scores, torch.tensor([2.0, -3.0]))


def test_a_head_that_is_not_linear_has_no_additive_split():
    model = nn.Sequential(*linear(), nn.Sigmoid())
    with pytest.raises(ValueError, match="linear"):
        attribute(model, shapes(), 0, method="additive")


@pytest.mark.parametrize("options", [{"variant": "sect"}, {"divide_by": "peak"}])
def test_the_additive_split_names_layers_that_it_does_not_support(options):
    with pytest.raises(ValueError, match="additive"):
        attribute(linear(**options), shapes(), 0, method="additive")


@pytest.mark.parametrize("normalize", [None, "unit_ball"])
@pytest.mark.parametrize("head", [nn.Identity, nn.Tanh])
def test_integrated_gradients_add_up_to_the_difference_from_the_baseline(normalize, head):
    model = nn.Sequential(*linear(normalize=normalize, scale=6.0), head())
    found = attribute(model, shapes(), torch.tensor([0, 1, 2]), method="integrated_gradients")
    difference = found.outputs - found.baselines
    assert bool((found.completeness_error.abs() <= 1e-6 * difference.abs()).all())
    assert bool((difference.abs() > 1e-3).all())
    torch.testing.assert_close(found.outputs, model(shapes()).diagonal().detach())


def test_too_few_steps_show_in_the_completeness_error():
    found = attribute(linear(scale=6.0), shapes(), 0, method="integrated_gradients", max_steps=2)
    assert float(found.completeness_error.abs().max()) > 1e-6


def test_gradients_are_those_of_autograd():
    model, batch = linear(scale=6.0), shapes()
    points = batch.points.clone().requires_grad_()
    expected = torch.autograd.grad(model(batch.with_points(points))[:, 2].sum(), points)[0].norm(dim=1)
    found = attribute(model, batch, 2)
    torch.testing.assert_close(found.scores, expected)
    assert found.completeness_error is None


@pytest.mark.parametrize("method", ["gradient", "integrated_gradients", "additive"])
def test_a_shape_in_a_batch_has_the_scores_that_it_has_alone(method):
    model, batch = linear(scale=6.0), shapes()
    together = attribute(model, batch, 0, method=method).scores.split([4, 4, 4])
    for i, expected in enumerate(together):
        torch.testing.assert_close(attribute(model, batch[i], 0, method=method).scores, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", ["gradient", "integrated_gradients"])
def test_gradients_of_the_exact_transform_are_an_error(method):
    with pytest.raises(ValueError, match="scale"):
        attribute(linear(scale=math.inf), shapes(), 0, method=method)


def test_models_with_convolutions_and_batch_norm_are_left_as_they_were():
    model = es.models.ECTCNN(es.ECTLayer(3, 10, 10), 4)
    model.train()
    next(iter(model.head.children())).eval()
    modes = [module.training for module in model.modules()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    found = attribute(model, shapes(torch.float32), 3)
    assert found.scores.shape == (12,)
    assert bool((found.scores > 0).any())
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_scores_of_simplices_are_means_of_their_vertices():
    found = attribute(linear(scale=6.0), shapes(), 0)
    edges, triangles = found.simplex_scores
    torch.testing.assert_close(edges[-1], found.scores[6:8].mean())
    torch.testing.assert_close(triangles[0], found.scores[:3].mean())


def test_known_surfaces_have_exact_splits():
    model = linear(1, scale=math.inf, normalize="unit_ball")
    surfaces = [known.complex for known in known_shapes().values() if known.complex.dim == 3]
    assert len(surfaces) > 1
    error = attribute(model, es.collate(surfaces), method="additive").completeness_error
    assert float(error.abs().max()) < 1e-9


@pytest.mark.parametrize(
    ("target", "error"),
    [(3, IndexError), (-1, IndexError), (None, ValueError), (torch.tensor([0, 1]), ValueError), (0.5, ValueError)],
)
def test_targets_are_checked(target, error):
    with pytest.raises(error, match="target"):
        attribute(linear(), shapes(), target)


@pytest.mark.parametrize("method", ["gradient", "additive"])
def test_a_model_that_changes_coordinates_before_its_layer_is_named(method):
    with pytest.raises(ValueError, match="FrameAveraging, which changes them"):
        attribute(FrameAveraging(linear()), shapes(), 0, method=method)


def test_attribution_of_harmonics_does_not_depend_on_the_rotation_of_a_shape(generator):
    model = ModelConfig("harmonics", num_thresholds=12, degree=3).build(3, 2)
    batch, found = shapes(torch.float32), []
    for rotation in rotations.random(2, 3, generator).float():
        found.append(attribute(model, batch.with_points(batch.points @ rotation.T), 0).scores)
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-3 * float(found[0].max()))


def test_a_model_that_uses_coordinates_past_its_layer_is_named():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    clouds = torch.rand(8, 9, 2) * torch.tensor([1.0, 0.1]).where(torch.arange(8)[:, None, None] < 4, torch.ones(2))
    models = [es.models.ECTSVM(es.ECTLayer(2, 8, 8, normalize="unit_ball"), 2, joint=joint) for joint in (True, False)]
    joint, plain = (model.fit(clouds, torch.arange(8) // 4) for model in models)
    with pytest.raises(ValueError, match="ECTSVM, which uses them"):
        attribute(joint, clouds, 0)
    assert attribute(plain, clouds, 0).scores.shape == (72,)


def test_a_model_must_have_one_layer():
    with pytest.raises(ValueError, match="ECTLayer"):
        attribute(nn.Flatten(), shapes(), 0)
    with pytest.raises(ValueError, match=r"got 2\. Attribute one member"):
        attribute(Ensemble([linear(), linear()]), shapes(), 0)
    with pytest.raises(ValueError, match="model must return"):
        attribute(nn.Sequential(es.ECTLayer(3)), shapes(), 0)
