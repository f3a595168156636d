import subprocess
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
import trimesh
from PIL import Image
from torch_geometric.data import Batch, Data

import eulerscan as es

STAR = torch.tensor([[0, 0, 0, 0, 0], [1, 2, 3, 4, 5]])


def star(**tensors):
    return Data(pos=torch.rand(6, 2), **tensors)


def test_points_are_one_complex_and_stacked_points_are_many():
    assert es.as_complex(torch.rand(7, 3)).num_complexes == 1
    clouds = torch.rand(4, 7, 3)
    complex = es.as_complex(clouds)
    assert complex.offsets.tolist() == [[0, 7, 14, 21, 28]]
    assert torch.equal(complex[2].points, clouds[2])


def test_a_complex_is_returned_as_it_is():
    complex = es.Complex(torch.rand(3, 2))
    assert es.as_complex(complex) is complex


def test_edges_stored_in_both_directions_count_once():
    """PyG stores every undirected edge twice, and kNN graphs store some edges once and some twice."""
    data = Data(pos=torch.rand(4, 2), edge_index=torch.tensor([[0, 1, 1, 2, 2, 3, 3], [1, 0, 2, 1, 3, 2, 3]]))
    complex = es.as_complex(data)
    assert complex.simplices[0].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert complex.euler_characteristic().tolist() == [1]


def test_faces_bring_their_edges():
    data = Data(pos=torch.rand(4, 3), face=torch.tensor([[0, 1], [1, 2], [2, 3]]))
    assert es.as_complex(data).euler_characteristic().tolist() == [4 - 5 + 2]


def test_a_pyg_batch_keeps_its_graphs_apart():
    graphs = [Data(pos=torch.rand(n, 2), edge_index=torch.tensor([[0, 1], [1, 0]])) for n in (2, 3, 5)]
    complex = es.as_complex(Batch.from_data_list(graphs))
    assert complex.euler_characteristic().tolist() == [1, 2, 4]


def test_trailing_graphs_without_a_vertex_are_kept():
    empty = Data(pos=torch.zeros(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    graph = Data(pos=torch.rand(2, 2), edge_index=torch.tensor([[0], [1]]))
    assert es.as_complex(Batch.from_data_list([graph, empty])).num_complexes == 2


def test_features_stand_in_for_positions():
    x = torch.rand(3, 5)
    assert es.as_complex(Data(x=x, edge_index=torch.tensor([[0], [1]]))).points is x


def test_a_list_mixes_everything():
    """Batch.from_data_list would drop the edges and faces that the first item lacks."""
    cloud, mesh = Data(pos=torch.rand(3, 2)), Data(pos=torch.rand(3, 2), face=torch.tensor([[0], [1], [2]]))
    complex = es.as_complex([cloud, mesh, torch.rand(2, 4, 2), es.Complex(torch.rand(1, 2))])
    assert complex.euler_characteristic().tolist() == [3, 1, 4, 4, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f8", np.float16])
def test_arrays_of_numpy_are_points_of_their_dtype(dtype):
    points = np.random.default_rng(0).random((4, 7, 3)).astype(dtype)
    complex = es.as_complex(points)
    assert complex.num_complexes == 4
    assert torch.equal(complex.points, torch.tensor(points.astype(points.dtype.newbyteorder("="))).reshape(-1, 3))
    assert es.as_complex(points[0]).num_complexes == 1


def test_arrays_may_be_read_only_and_in_any_order_of_memory():
    points = np.random.default_rng(0).random((7, 3))
    expected = torch.tensor(points)
    reversed_ = points[::-1]
    assert torch.equal(es.as_complex(reversed_).points, expected.flip(0))
    assert torch.equal(es.as_complex(np.asfortranarray(points)).points, expected)
    points.flags.writeable = False
    assert torch.equal(es.as_complex(points).points, expected)


def test_what_looks_like_a_graph_of_pyg_is_one():
    graph = SimpleNamespace(pos=torch.rand(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert es.as_complex(graph).counts == (3, 1)


def test_classes_that_derive_from_those_of_a_library_are_its():
    class Mine(nx.Graph):
        pass

    graph = Mine([(0, 1)])
    nx.set_node_attributes(graph, {0: (0.0, 0.0), 1: (1.0, 0.0)}, "pos")
    assert es.as_complex(graph).counts == (2, 1)


def test_objects_of_all_libraries_mix_in_a_list():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {i: (float(i), 0.0) for i in graph}, "pos")
    image = Image.fromarray(np.full((2, 2), 255, dtype=np.uint8))
    flat = trimesh.load_path(np.array([[0.0, 0], [1, 0], [0, 1], [0, 0]]))
    items = [graph, image, np.zeros((2, 2)), torch.zeros(5, 2), star(edge_index=STAR), flat]
    assert es.as_complex(items).euler_characteristic().tolist() == [1, 1, 2, 5, 1, 0]
    assert es.as_complex(items[::-1]).euler_characteristic().tolist() == [0, 1, 5, 2, 1, 1]


def test_points_load_no_converter():
    code = "import sys, torch, eulerscan as es; es.as_complex(torch.rand(3, 2)); print('torch_geometric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ("bunny.obj", TypeError, "shape must be a Complex, a tensor of points.*got str"),
        ("bunny.obj", TypeError, r"eulerscan.read\(path\)"),
        (np.zeros((3, 2), dtype=np.int64), TypeError, "points must be floating point"),
        (np.array(["a"]), TypeError, "shape must hold numbers"),
        (np.zeros(3), ValueError, r"needs shape \[V, dim\] or \[B, V, dim\], got \[3\]"),
        (nx.path_graph(2), ValueError, "node 0 has no attribute 'pos'"),
        (None, TypeError, "got NoneType"),
        (torch.rand(3), ValueError, r"needs shape \[V, dim\] or \[B, V, dim\], got \[3\]"),
        (torch.zeros(3, 0), ValueError, r"needs shape \[V, dim\] or \[B, V, dim\], got \[3, 0\]"),
        (torch.zeros(3, 2, dtype=torch.int64), TypeError, "points must be floating point"),
        (torch.full((1, 2), torch.nan), ValueError, "points must be finite"),
        (Data(edge_index=torch.tensor([[0], [1]])), ValueError, "without pos or x"),
        (Data(pos=torch.rand(2, 2), edge_index=torch.tensor([[0], [7]])), IndexError, r"simplices\[0\].*got 7"),
        (
            star(edge_index=STAR.T),
            ValueError,
            r"edge_index must have shape \[2, count\], got \[5, 2\]. Did you pass it transposed",
        ),
        (star(edge_index=STAR[0]), ValueError, r"edge_index must have shape \[2, count\], got \[5\]"),
        (star(edge_index=STAR.float()), TypeError, "edge_index must be a torch.Tensor of integers, got torch.float32"),
        (star(face=STAR), ValueError, r"face must have shape \[3, count\], got \[2, 5\]"),
        ([], ValueError, "empty list"),
        (Data(), ValueError, "without pos or x"),
        ([torch.rand(3, 2), torch.full((1, 2), torch.nan)], ValueError, r"shape\[1\]: points must be finite"),
        ([torch.rand(3, 2), None], TypeError, r"shape\[1\]: shape must be a Complex"),
    ],
)
def test_what_is_no_shape_is_named(shape, error, text):
    with pytest.raises(error, match=text):
        es.as_complex(shape)
