import gudhi
import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan.convert import from_simplex_tree


def tree_of(*simplices):
    tree = gudhi.SimplexTree()
    for simplex in simplices:
        tree.insert(simplex)
    return tree


def test_a_tree_has_the_euler_characteristic_of_its_betti_numbers():
    points = np.random.default_rng(0).random((30, 2))
    tree = gudhi.RipsComplex(points=points, max_edge_length=0.3).create_simplex_tree(max_dimension=6)
    tree.compute_persistence(persistence_dim_max=True)
    betti = tree.betti_numbers()
    complex = from_simplex_tree(tree, points)
    assert complex.euler_characteristic().tolist() == [sum((-1) ** i * b for i, b in enumerate(betti))]
    assert sum(complex.counts) == tree.num_simplices()
    assert complex.points.dtype == torch.float64


def test_points_outside_the_tree_are_left_out_and_the_rest_renumbered():
    points = torch.arange(10.0)[:, None]
    complex = from_simplex_tree(tree_of([7, 2, 4], [9]), points)
    assert complex.points.tolist() == [[2], [4], [7], [9]]
    assert complex.simplices[1].tolist() == [[0], [1], [2]]


def test_gradients_reach_the_points():
    points = torch.rand(3, 2, requires_grad=True)
    es.ect(from_simplex_tree(tree_of([0, 1, 2]), points), es.directions.circle(4), es.thresholds(5), scale=8.0).sum().backward()
    assert points.grad.abs().sum() > 0


def test_an_empty_tree_is_an_empty_complex():
    assert from_simplex_tree(gudhi.SimplexTree(), torch.rand(3, 2)).counts == (0,)


def test_a_tree_without_points_is_told_how_to_get_them():
    with pytest.raises(ValueError, match=r"convert.from_simplex_tree\(tree, points\)"):
        es.as_complex(tree_of([0, 1]))


def test_a_vertex_without_a_point_is_named():
    with pytest.raises(IndexError, match="at least 8, got 3"):
        from_simplex_tree(tree_of([0, 7]), torch.rand(3, 2))


def test_what_is_no_tree_is_named():
    with pytest.raises(TypeError, match=r"tree must be a gudhi.SimplexTree, got list"):
        from_simplex_tree([[0, 1]], torch.rand(3, 2))
