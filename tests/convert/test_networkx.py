import networkx as nx
import pytest
import torch

import eulerscan as es
from eulerscan.convert import from_networkx


def placed(graph):
    nx.set_node_attributes(graph, nx.circular_layout(graph), "pos")
    return graph


@pytest.mark.parametrize("graph", [nx.cycle_graph(7), nx.petersen_graph(), nx.star_graph(4), nx.empty_graph(3)])
def test_a_graph_has_its_nodes_and_edges(graph):
    complex = es.as_complex(placed(graph))
    assert complex.euler_characteristic().tolist() == [len(graph) - graph.number_of_edges()]


def test_edges_count_once_however_they_are_stored():
    graph = nx.MultiDiGraph([(0, 1), (1, 0), (0, 1), (1, 2), (2, 2)])
    assert from_networkx(placed(graph)).counts == (3, 2)


def test_nodes_keep_their_order_and_may_be_anything():
    graph = nx.Graph()
    graph.add_node("b", pos=(1.0, 2.0, 3.0))
    graph.add_node(("a", 1), pos=[0, 0, 0])
    graph.add_edge("b", ("a", 1))
    complex = from_networkx(graph)
    assert complex.points.tolist() == [[1, 2, 3], [0, 0, 0]]
    assert complex.simplices[0].tolist() == [[0], [1]]


def test_positions_come_from_a_mapping_or_from_several_attributes():
    graph = nx.path_graph(3)
    assert from_networkx(graph, {0: [0.0], 1: [1.0], 2: [5.0]}).points.tolist() == [[0], [1], [5]]
    nx.set_node_attributes(graph, {i: {"x": i, "y": -i} for i in graph})
    assert from_networkx(graph, ("x", "y"), dtype=torch.float64).points.tolist() == [[0, 0], [1, -1], [2, -2]]


def test_a_graph_without_nodes_is_an_empty_complex():
    assert from_networkx(nx.Graph()).counts == (0,)


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        ("pos", "node 0 has no attribute 'pos'"),
        ({0: (0, 0)}, "node 1 has no entry in positions"),
        ({0: (0, 0), 1: (1, 2, 3)}, "positions must .*got 2 coordinates for node 0 and 3 for node 1"),
        ({0: (0, 0), 1: "here"}, "positions must be coordinates, got 'here' for node 1"),
        ({0: (0, 0), 1: (0, float("nan"))}, "points must be finite"),
    ],
)
def test_nodes_without_a_place_are_named(positions, text):
    with pytest.raises(ValueError, match=text):
        from_networkx(nx.path_graph(2), positions)
