"""Convolutions along curves."""

import pytest
import torch

import eulerscan as es
from eulerscan import rotations
from eulerscan.nn.models import ECTCurves


def cloud(count=6, dim=3, seed=0):
    return torch.randn(count, 40, dim, generator=torch.Generator().manual_seed(seed))


def model(dim=3, directed=False, num_directions=64, **options):
    torch.manual_seed(0)
    layer = es.ECTLayer(dim, num_directions, 32, normalize="unit_ball", divide_by="vertices")
    return ECTCurves(layer, 4, directed=directed, **options).eval()


@pytest.mark.parametrize("directed", [False, True])
def test_the_order_of_directions_does_not_matter(directed):
    one, shapes = model(directed=directed), cloud()
    before = one(shapes)
    with torch.no_grad():
        one.layer.weight.copy_(one.layer.weight.flip(0))
    torch.testing.assert_close(one(shapes), before, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_rotations_matter_only_with_directions():
    shapes = cloud()
    rotation = rotations.random(1, 3, torch.Generator().manual_seed(1))[0].float()

    def change(one):
        before, after = one(shapes), one(shapes @ rotation.T)
        return float((after - before).norm() / before.norm())

    many = [change(model(num_directions=n)) for n in (16, 64, 256)]
    assert many[2] < many[0]
    assert many[2] < 0.1
    assert change(model(directed=True, num_directions=256)) > 3 * many[2]


def test_channels_and_gradients():
    layer = es.ECTLayer(2, 16, 16, variant="channels", max_dim=1, normalize="unit_ball")
    one = ECTCurves(layer, 3, channels=(4, 8), hidden=(), directed=True)
    graph = es.Complex(torch.rand(5, 2), [torch.tensor([[0, 1, 2], [1, 2, 3]])])
    logits = one(es.collate([graph, graph, graph]))
    assert logits.shape == (3, 3)
    logits.square().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.abs().sum() > 0
    assert sum("layer." in name for name in one.state_dict()) == 3  # not a second time in the head


def test_a_batch_of_one_with_one_value_a_channel_can_be_trained():
    one = ECTCurves(es.ECTLayer(2, 1, 8), 2).train()
    one(torch.rand(1, 9, 2)).sum().backward()
    assert one.layer.weight.grad.isfinite().all()


def test_too_few_thresholds_are_named():
    with pytest.raises(ValueError, match="at least 8 thresholds for 3 convolutions, got 7"):
        ECTCurves(es.ECTLayer(2, 8, 7), 3)
