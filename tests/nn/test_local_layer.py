"""The positional encoding by the local transform, and the transform of PyG."""

import copy

import pytest
import torch

import eulerscan as es
from eulerscan.nn import LocalECT

PROJECTIONS = ["linear", "conv", "deepsets", "attention"]


def triad(edges):
    """Three nodes, and some of their edges."""
    return es.Complex(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [torch.tensor(edges).reshape(-1, 2).T])


@pytest.mark.parametrize("learn_directions", [True, False])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_every_parameter_learns(projection, learn_directions):
    layer = LocalECT(2, 7, hops=(1, 2), projection=projection, learn_directions=learn_directions)
    encoded = layer(triad([(0, 1), (1, 2)]))
    assert encoded.shape == (3, 7)
    encoded.square().sum().backward()
    assert ("layer.weight" in dict(layer.named_parameters())) == learn_directions
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all()
        assert parameter.grad.any() or "in_proj_bias" in name, name


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_an_encoding_is_that_of_the_neighborhood_alone(projection):
    layer = LocalECT(2, 5, projection=projection)
    path = es.Complex(torch.randn(6, 2), [torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])])
    ball = es.Complex(path.points[1:4], [torch.tensor([[0, 1], [1, 2]])])
    torch.testing.assert_close(layer(path)[2], layer(ball)[1])


@pytest.mark.parametrize("projection", ["deepsets", "attention"])
def test_the_order_of_directions_does_not_matter(projection):
    layer = LocalECT(2, 5, projection=projection, append_directions=projection == "attention")
    shape = triad([(0, 1), (1, 2)])
    before = layer(shape)
    with torch.no_grad():
        layer.layer.weight.copy_(layer.layer.weight.flip(0))
    torch.testing.assert_close(layer(shape), before)


def test_attention_sees_appended_directions():
    layer = LocalECT(2, 5, projection="attention", append_directions=True)
    transform = layer.transform(triad([(0, 1)])).detach()
    before = layer.project(transform)
    with torch.no_grad():
        layer.layer.weight.copy_(layer.layer.weight.roll(4, 0))  # a quarter of a turn
    assert not torch.allclose(layer.project(transform), before)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="projection must be one of"):
        LocalECT(2, projection="mean")
    with pytest.raises(ValueError, match="append_directions"):
        LocalECT(2, append_directions=True)
    with pytest.raises(ValueError, match="one of hops, radius and k"):
        LocalECT(2, hops=1, k=3)
    for size in ({"hops": 0}, {"k": [3, 0]}, {"radius": -1.0}):
        with pytest.raises(ValueError, match=f"{next(iter(size))} must be"):
            LocalECT(2, **size)
    with pytest.raises(ValueError, match="a cloud, which has no edges: make LocalECT with k"):
        LocalECT(2)(torch.rand(4, 2))
    with pytest.raises(ValueError, match="dimension 2, the dim of this layer, got 3"):
        LocalECT(2, k=2)(torch.rand(4, 3))
    with pytest.raises(ValueError, match=r"transform must have shape \[V, 1, 16, 16\], got \[4, 16, 16\]"):
        LocalECT(2).project(torch.rand(4, 16, 16))
    assert "projection='conv'" in repr(LocalECT(2, projection="conv"))


def test_the_transform_of_pyg_equals_the_function():
    data_module = pytest.importorskip("torch_geometric.data")
    from torch_geometric.transforms import Compose

    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    items = [data_module.Data(pos=torch.rand(4, 2), x=torch.rand(4, 3), edge_index=edges) for _ in range(2)]
    batch = data_module.Batch.from_data_list(items)
    add = es.convert.AddLocalECT(8, 5, hops=1, scale=20.0)
    untouched = copy.copy(items[0])
    found = Compose([add])(items[0])
    expected = es.local_ect(items[0], es.directions.uniform(8, 2), es.thresholds(5), hops=1, scale=20.0)
    assert torch.equal(found.local_ect, expected)
    assert items[0].keys() == untouched.keys()  # the transform works on a copy
    torch.testing.assert_close(add(batch).local_ect[:4], expected)
    wide = es.convert.AddLocalECT(8, 5, attr_name=None, hops=1, scale=20.0)(items[0])
    assert torch.equal(wide.x, torch.cat([items[0].x, expected.flatten(1)], dim=1))
    with pytest.raises(TypeError, match="hop"):
        es.convert.AddLocalECT(hop=1)
    assert repr(add) == "AddLocalECT(num_directions=8, num_thresholds=5, attr_name='local_ect', hops=1, scale=20.0)"


def test_an_encoding_goes_in_front_of_a_network_of_pyg():
    geometric = pytest.importorskip("torch_geometric.nn")
    data = pytest.importorskip("torch_geometric.data").Data(
        pos=torch.rand(4, 2), x=torch.rand(4, 3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    )
    encode, network = LocalECT(2), geometric.GCN(13, 8, 2, 3)
    logits = network(torch.cat([data.x, encode(data)], dim=1), data.edge_index)
    logits.sum().backward()
    assert encode.layer.weight.grad.any()
