"""The rows of docs/coming-from.md on LEAP and Diss-l-ECT: the neighborhood of each node by PyG, transformed one by one."""

import pytest
import torch

import eulerscan as es
from eulerscan.nn import LocalECT

utils = pytest.importorskip("torch_geometric.utils", reason="torch_geometric is not installed")


@pytest.fixture
def graph(generator):
    """A path with a triangle and an isolated node, every edge in both directions, as PyG has it."""
    edges = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 2, 3, 4, 5, 5]])
    return torch.rand(7, 3, generator=generator, dtype=torch.float64), torch.cat([edges, edges.flip(0)], dim=1)


@pytest.mark.parametrize(("hops", "normalize"), [(1, "vertices"), (2, None)], ids=["LEAP", "Diss-l-ECT"])
def test_the_local_transform_is_that_of_the_subgraph_of_each_node(graph, hops, normalize):
    x, edge_index = graph
    directions = es.directions.fibonacci(16, dtype=torch.float64)
    thresholds = es.thresholds(16, 1.1, dtype=torch.float64)
    found = es.local_ect(es.Complex(x, [edge_index]), directions, thresholds, hops=hops, normalize=normalize, scale=20.0)
    assert found.shape == (7, 1, 16, 16)
    for node in range(6):  # the seventh has no edges
        subset, edges, _, _ = utils.k_hop_subgraph(node, hops, edge_index, relabel_nodes=True, num_nodes=7)
        points = x[subset]
        if normalize is not None:
            points = points - points.mean(dim=0)
            points = points / points.norm(dim=1).max()
        heights = points @ directions.T
        tops = heights[edges].amax(dim=0)
        curves = torch.sigmoid(20 * (thresholds - heights[..., None])).sum(0) - torch.sigmoid(
            20 * (thresholds - tops[..., None])
        ).sum(0)
        torch.testing.assert_close(found[node, 0], curves)


@pytest.mark.parametrize("projection", ["linear", "conv", "deepsets", "attention"])
def test_the_embeddings_of_leap_have_a_name_here(graph, projection):
    x, edge_index = graph
    encode = LocalECT(3, projection=projection, scale=128.0, append_directions=projection == "attention")
    assert encode(es.Complex(x.float(), [edge_index])).shape == (7, 10)
