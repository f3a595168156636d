"""Cells with a dimension of their own: squares, cubes, polygons, hyperedges."""

import warnings

import pytest
import torch

import eulerscan as es
from eulerscan.complexes.boundary import outer_edges, outer_triangles
from eulerscan.testing import torus

CORNERS = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]])
SIDES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
SQUARE = es.Complex(CORNERS, [SIDES, torch.tensor([[0, 1, 2, 3]]).T], dims=(1, 2))


def quads(side):
    """A flat grid of squares, and the same squares cut in two triangles."""
    index = torch.arange(side * side).view(side, side)
    squares = torch.stack([i.reshape(-1) for i in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1])])
    points = torch.cartesian_prod(*2 * [torch.linspace(-1, 1, side, dtype=torch.float64)])
    triangles = torch.cat([squares[[0, 1, 2]], squares[[0, 2, 3]]], dim=1)
    return es.Complex(points, [squares], dims=[2]).closure(), es.Complex(points, [triangles]).closure()


def test_a_square_is_one_cell():
    assert SQUARE.euler_characteristic().tolist() == [1]
    assert (SQUARE.dims, SQUARE.rows, SQUARE.max_dim, SQUARE.is_simplicial) == ((1, 2), (2, 4), 2, False)
    assert repr(SQUARE) == "Complex(num_complexes=1, dim=2, points=4, simplices=(4 edges, 1 2-cells of 4 vertices))"
    assert es.ect(SQUARE, torch.tensor([[0.0, 1.0]]), torch.tensor([-0.5, 0.5, 1.0])).tolist() == [[[0.0, 1.0, 1.0]]]


def test_dims_of_simplices_are_no_cells():
    same = es.Complex(CORNERS, [SIDES], dims=[1])
    assert same.is_simplicial
    assert same.dims == es.Complex(CORNERS, [SIDES]).dims == (1,)


@pytest.mark.parametrize("scale", [9.0, torch.inf])
def test_cutting_convex_cells_into_triangles_changes_no_curve(scale):
    cells, triangles = quads(6)
    assert cells.counts == (36, 60, 25)
    directions, thresholds = es.directions.circle(17, dtype=torch.float64), es.thresholds(23, 1.5, dtype=torch.float64)
    grid = (directions + 0.01, thresholds)
    torch.testing.assert_close(es.ect(cells, *grid, scale=scale), es.ect(triangles, *grid, scale=scale))


def test_triangles_squares_and_tetrahedra_keep_apart_in_batches():
    """Squares and tetrahedra have four vertices, and triangles and squares dimension two."""
    tetrahedron = es.Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2, 3]]).T]).closure()
    loop = es.Complex(torch.zeros(1, 2), [torch.zeros(1, 3, dtype=torch.int64)], dims=[1])
    batch = es.collate([SQUARE, tetrahedron, loop, SQUARE])
    assert batch.packed.kinds == ((1, 2), (1, 1), (2, 3), (2, 4), (3, 4))
    assert batch.euler_characteristic().tolist() == [1, 1, -2, 1]
    chosen = batch.select([3, 1, 0])
    assert chosen.euler_characteristic().tolist() == [1, 1, 1]
    directions, thresholds = es.directions.circle(5), es.thresholds(6, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = torch.cat([es.ect(c, directions, thresholds) for c in (SQUARE, tetrahedron, SQUARE)])
        assert torch.equal(es.ect(chosen, directions, thresholds), expected)


def test_channels_and_weights_know_the_dimension():
    grid = (torch.tensor([[0.0, 1.0]]), torch.tensor([0.0, 1.0]))
    assert es.channels(SQUARE, *grid).tolist() == [[[[2.0, 4.0]], [[1.0, 4.0]], [[0.0, 1.0]]]]
    weighted = SQUARE.with_weights(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert [w.tolist() for w in weighted.weights] == [[1, 2, 3, 4], [2, 3, 4, 4], [4]]
    assert weighted.euler_characteristic().tolist() == [10 - 13 + 4]
    half = weighted.with_weights(tuple(w / 2 for w in weighted.weights))
    assert half.dims == (1, 2)
    assert half.euler_characteristic().tolist() == [0.5]


def test_the_closure_adds_the_sides_of_polygons():
    pentagon = es.Complex(torch.rand(5, 2), [torch.tensor([[0, 2, 4, 1, 3]]).T], dims=[2]).closure()
    assert {frozenset(edge) for edge in pentagon.simplices[0].T.tolist()} == {
        frozenset(pair) for pair in ((0, 2), (2, 4), (4, 1), (1, 3), (3, 0))
    }
    assert pentagon.euler_characteristic().tolist() == [1]
    cube = es.Complex(torch.rand(8, 3), [torch.arange(8)[:, None]], dims=[3])
    with pytest.raises(ValueError, match="3-cells of 8 vertices"):
        cube.closure()


def test_the_centroid_of_polygons_is_that_of_their_area():
    cells, triangles = quads(4)
    moved = torch.where(cells.points > 0, 5 * cells.points, cells.points)  # squares of different sizes
    found, expected = (c.with_points(moved).normalized("center").points for c in (cells, triangles))
    torch.testing.assert_close(found, expected)
    assert (found - (moved - moved.mean(dim=0))).abs().max() > 0.1


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_the_centroid_of_a_polygon_that_is_not_convex_does_not_depend_on_its_first_vertex(dim, generator):
    dart = torch.tensor([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0], [0.0, 4.0]], dtype=torch.float64)
    axes, _ = torch.linalg.qr(torch.randn(dim, 2, dtype=torch.float64, generator=generator))
    for first in range(4):
        for order in (torch.arange(4).roll(first), torch.arange(4).roll(first).flip(0)):
            cell = es.Complex(dart @ axes.T, [order[:, None]], dims=[2])
            center = cell.points - cell.normalized("center").points
            torch.testing.assert_close(center, (torch.ones(4, 2, dtype=torch.float64) @ axes.T))


def test_a_hypergraph_needs_no_faces_and_gets_no_warning():
    hyperedges = [torch.tensor([[0, 1], [1, 2], [2, 3]]), torch.tensor([[0], [1], [2], [3], [4]])]
    hypergraph = es.Complex(torch.rand(5, 2), hyperedges, dims=[1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        es.ect(hypergraph, es.directions.circle(3), es.thresholds(3))
    assert hypergraph.euler_characteristic().tolist() == [5 - 3]


def test_a_hyperedge_of_three_vertices_is_no_triangle():
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    hypergraph = es.Complex(torch.rand(4, 2), [edges, torch.tensor([[0], [1], [2]])], dims=[1, 1])
    assert torch.equal(hypergraph.of_dim(1), edges)
    assert hypergraph.of_dim(2).shape == (3, 0)
    assert torch.equal(outer_edges(hypergraph), edges)
    assert len(outer_triangles(hypergraph)) == 0
    both = es.collate([hypergraph, torus(3, 3).complex.with_points(torch.rand(9, 2))])
    assert torch.equal(both.of_dim(2), both.simplices[2].long())


@pytest.mark.parametrize("count", [2, 3, 4, 5, 40])
def test_transposed_lists_are_named_whatever_their_length(count):
    with pytest.raises(ValueError, match=r"simplices\[0\] holds 5-simplices.*transposed.*dims=\[5\]"):
        es.Complex(torch.rand(99, 3), [torch.arange(6)[:, None].repeat(1, count)])
    assert es.Complex(torch.rand(99, 3), [torch.arange(6)[:, None].repeat(1, count)], dims=[5]).counts == (99, count)


@pytest.mark.parametrize(
    ("dims", "error", "text"),
    [
        ((1,), ValueError, "one entry for each of the 2"),
        ((1, 0), ValueError, "dims must be at least 1"),
        ((1, 2.0), TypeError, "dims must be an int"),
    ],
)
def test_wrong_dims_are_named(dims, error, text):
    with pytest.raises(error, match=text):
        es.Complex(CORNERS, [SIDES, torch.tensor([[0, 1, 2, 3]]).T], dims=dims)


def test_cells_of_one_kind_belong_in_one_entry():
    with pytest.raises(ValueError, match=r"simplices\[1\] holds 1-cells of 2 vertices, and so does an earlier one"):
        es.Complex(CORNERS, [SIDES, SIDES], dims=[1, 1])


def test_what_knows_simplices_only_refuses_cells(tmp_path):
    for function in (es.convert.to_pyg, lambda c: es.io.write(c, tmp_path / "square.npz")):
        with pytest.raises(ValueError, match="simplices"):
            function(SQUARE)


def test_exact_distances_count_cells_by_their_dimension():
    cells, triangles = quads(4)
    directions = es.directions.circle(7, dtype=torch.float64) + 0.01
    assert es.distances.exact_distance(cells, triangles, directions).item() < 1e-9


def test_nothing_changes_for_simplices():
    assert torus().complex.is_simplicial
    assert torus().complex.packed.dims is None
