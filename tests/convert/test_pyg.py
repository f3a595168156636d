import itertools

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import coalesce, to_undirected

import eulerscan as es
from eulerscan.convert import from_pyg, to_pyg

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def random_graph(num_points: int, num_edges: int) -> Data:
    edges = torch.randint(num_points, (2, num_edges)) if num_points else torch.empty(2, 0, dtype=torch.int64)
    edges = edges[:, edges[0] != edges[1]]
    return Data(pos=torch.rand(num_points, 3), edge_index=coalesce(to_undirected(edges)))


def same(one: Data, other: Data) -> bool:
    return set(one.keys()) == set(other.keys()) and all(torch.equal(one[key], other[key]) for key in one.keys())  # noqa: SIM118


def cloud() -> Data:
    return Data(pos=torch.rand(4, 3))


def mesh() -> Data:
    return Data(pos=torch.rand(4, 3), face=torch.tensor([[0, 1], [1, 2], [2, 3]]))


def solid() -> Data:
    return Data(pos=torch.rand(5, 3), tetra_index=torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]]))


def test_an_undirected_graph_counts_its_edges_once_or_as_stored():
    data = Data(pos=torch.rand(3, 2), edge_index=PATH)
    assert from_pyg(data).euler_characteristic().tolist() == [1]
    assert from_pyg(data, edges="as_stored").euler_characteristic().tolist() == [3 - 4]


def test_as_stored_is_the_published_count():
    """V - 2E + F: edges in both directions, faces as they are, nothing added."""
    data = mesh()
    data.edge_index = to_undirected(torch.tensor([[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]]))
    complex = from_pyg(data, edges="as_stored")
    assert complex.euler_characteristic().tolist() == [4 - 2 * 5 + 2]
    assert torch.equal(complex.simplices[0].long(), data.edge_index)


@pytest.mark.filterwarnings("ignore:Sparse")  # of torch, about CSR tensors
def test_a_sparse_adjacency_matrix_stands_for_the_edges():
    graph = random_graph(7, 12)
    graph.edge_index = graph.edge_index[:, : graph.num_edges // 2]  # not symmetric
    sparse = ToSparseTensor(layout=torch.sparse_csr)(graph.clone())
    assert "edge_index" not in sparse
    for edges in ("unique", "as_stored"):
        expected, found = from_pyg(graph, edges=edges), from_pyg(sparse, edges=edges)
        assert set(map(tuple, found.simplices[0].T.tolist())) == set(map(tuple, expected.simplices[0].T.tolist()))


def test_graphs_of_several_types_say_how_to_convert_them():
    with pytest.raises(TypeError, match="got HeteroData. Convert it: data.to_homogeneous"):
        from_pyg(HeteroData())


def test_self_loops_are_no_edges_either_way():
    data = Data(pos=torch.rand(3, 2), edge_index=torch.tensor([[0, 1, 1], [0, 1, 2]]))
    for edges in ("unique", "as_stored"):
        assert from_pyg(data, edges=edges).counts == (3, 1)


def test_directed_neighbours_count_once_whichever_way_they_point():
    """kNN graphs list an edge once or twice, as it happens."""
    data = Data(pos=torch.rand(3, 2), edge_index=torch.tensor([[0, 1, 2], [1, 0, 1]]))
    assert from_pyg(data).counts == (3, 2)


def test_tetrahedra_bring_all_their_faces():
    assert from_pyg(solid()).counts == (5, 9, 7, 2)


def test_tetrahedra_of_a_batch_are_kept_apart():
    complex = from_pyg(Batch.from_data_list([solid(), solid()]))
    assert complex.offsets.tolist() == [[0, 5, 10], [0, 9, 18], [0, 7, 14], [0, 2, 4]]


def test_mixed_lists_lose_nothing_in_any_order():
    """Batch.from_data_list drops what its first item lacks."""
    items = [cloud(), random_graph(5, 7), mesh(), solid()]
    alone = [es.as_complex(item).counts for item in items]
    directions, thresholds = es.directions.fibonacci(4), es.thresholds(9, radius=2.0)
    transforms = [es.ect(item, directions, thresholds) for item in items]
    for order in itertools.permutations(range(4)):
        complex = es.as_complex([items[i] for i in order])
        assert [tuple(n for n in complex[i].counts if n) for i in range(4)] == [alone[i] for i in order]
        assert torch.equal(es.ect(complex, directions, thresholds), torch.cat([transforms[i] for i in order]))


def test_a_list_may_be_taken_as_stored():
    data = Data(pos=torch.rand(3, 2), edge_index=PATH)
    assert from_pyg([data, data], edges="as_stored").counts == (6, 8)


def test_a_data_set_of_pyg_is_a_list(tmp_path):
    from torch_geometric.data import InMemoryDataset

    class Two(InMemoryDataset):
        def __init__(self):
            super().__init__(None)
            self.data, self.slices = self.collate([random_graph(4, 3), random_graph(6, 3)])

    assert es.as_complex(Two()).offsets[0].tolist() == [0, 4, 10]


@pytest.mark.parametrize(("num_points", "num_edges"), [(5, 6), (1, 0), (0, 0), (9, 0), (40, 200)])
def test_a_graph_comes_back_as_it_went(num_points, num_edges):
    graph = random_graph(num_points, num_edges)
    assert same(to_pyg(from_pyg(graph)), graph)


def test_a_batch_comes_back_as_it_went_and_can_be_taken_apart():
    graphs = [random_graph(5, 6), random_graph(0, 0), random_graph(3, 0), random_graph(8, 20), random_graph(0, 0)]
    batch = to_pyg(from_pyg(Batch.from_data_list(graphs)))
    assert torch.equal(batch.batch, Batch.from_data_list(graphs).batch)
    back = batch.to_data_list()
    assert len(back) == len(graphs)
    assert all(same(a, b) for a, b in zip(back, graphs, strict=True))


def test_a_mixed_batch_survives_pyg():
    """Also where the first item has no faces."""
    complex = es.as_complex([cloud(), mesh(), solid(), random_graph(4, 5)])
    back = from_pyg(to_pyg(complex))
    assert torch.equal(back.offsets, complex.offsets)
    assert torch.equal(back.packed.simplices, complex.packed.simplices)


def test_a_complex_in_float64_stays_so():
    assert to_pyg(es.Complex(torch.rand(3, 2, dtype=torch.float64))).pos.dtype == torch.float64


@pytest.mark.parametrize(
    ("complex", "text"),
    [
        (es.Complex(torch.rand(0, 2), num_complexes=0), "complex must hold at least one.*got .*num_complexes=0"),
        (es.Complex(torch.rand(2, 2), weights=[torch.ones(2)]), "complex must be unweighted"),
        (es.Complex(torch.rand(5, 4), [torch.arange(5)[:, None]]), "complex must have .*got 4-simplices"),
    ],
)
def test_what_pyg_cannot_hold_is_named(complex, text):
    with pytest.raises(ValueError, match=text):
        to_pyg(complex)


def test_an_unknown_way_to_count_edges_is_named():
    with pytest.raises(ValueError, match="edges must be one of unique, as_stored, got 'twice'"):
        from_pyg(cloud(), edges="twice")
