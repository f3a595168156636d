"""The public assertions must fail where they should."""

import numpy as np
import pytest
import torch
from drawing import directions_for, random_complex

import eulerscan as es
from eulerscan import testing

COMPLEX = es.collate([testing.cycle(7).complex, testing.disc(6).complex, testing.random_graph(9, 14).complex])
DIRECTIONS = directions_for(COMPLEX, 4)
THRESHOLDS = es.thresholds(6, dtype=torch.float64)


def transform(complex, directions=DIRECTIONS, thresholds=THRESHOLDS, *, scale=9.0):
    return es.ect(complex, directions, thresholds, scale=scale)


def test_a_correct_transform_passes():
    testing.assert_order_invariant(transform, COMPLEX)
    testing.assert_batch_independent(transform, COMPLEX)
    testing.assert_rotation_consistent(transform, COMPLEX, DIRECTIONS)
    weighted = random_complex(np.random.default_rng(0), weighted=True)
    for scale in (9.0, float("inf")):
        testing.assert_equals_reference(COMPLEX, DIRECTIONS, THRESHOLDS, scale=scale)
        testing.assert_equals_reference(weighted, DIRECTIONS, THRESHOLDS, scale=scale)


def test_cells_that_are_not_simplices_pass():
    corners = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1], [3, 3]], dtype=torch.float64)
    edges = torch.tensor([[0, 1, 2, 3, 1, 2], [1, 2, 3, 0, 4, 4]])
    squares = es.Complex(corners, [edges, torch.tensor([[0, 0], [1, 1], [2, 4], [3, 2]])], dims=(1, 2))
    cells = es.collate([squares, squares.with_points(2 * corners)])
    directions = directions_for(cells, 4)
    for normalize in (None, "unit_ball"):
        testing.assert_order_invariant(lambda shape, how=normalize: transform(shape.normalized(how), directions), cells)
    for scale in (9.0, float("inf")):
        testing.assert_equals_reference(cells, directions, THRESHOLDS, scale=scale)


def test_any_shape_is_accepted():
    layer = es.ECTLayer(2)
    testing.assert_order_invariant(layer, torch.rand(3, 9, 2))
    testing.assert_batch_independent(layer, [torch.rand(4, 2), torch.rand(5, 2)])


@pytest.mark.parametrize("seed", range(4))
def test_what_only_a_reflection_changes_passes(seed):
    def signed_area(complex, directions):
        return torch.linalg.det(directions[:2])

    testing.assert_rotation_consistent(signed_area, COMPLEX, DIRECTIONS, generator=torch.Generator().manual_seed(seed))


def test_dependence_on_order_is_found():
    def first_vertex(complex):
        return complex.points[complex.offsets[0, :-1]]

    with pytest.raises(AssertionError):
        testing.assert_order_invariant(first_vertex, COMPLEX, generator=torch.Generator().manual_seed(1))


def test_dependence_on_the_batch_is_found():
    """The published code divides by the largest value of the whole batch."""
    with pytest.raises(AssertionError):
        testing.assert_batch_independent(lambda c: transform(c) / transform(c).max(), COMPLEX)


def test_a_transform_that_ignores_its_directions_is_found():
    with pytest.raises(AssertionError):
        testing.assert_rotation_consistent(lambda c, d: transform(c), COMPLEX, DIRECTIONS)


def test_a_strict_comparison_is_found():
    def strict(complex, directions, thresholds, *, scale):
        return es.ect(complex, directions, thresholds - 1e-9, scale=scale)

    lattice = es.Complex(torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64))
    with pytest.raises(AssertionError, match="values"):
        testing.assert_equals_reference(lattice, torch.eye(2).double(), torch.tensor([0.0, 1.0]).double(), transform=strict)


def test_a_wrong_gradient_is_found():
    def detached(complex, directions, thresholds, *, scale):
        return es.ect(complex, directions.detach(), thresholds, scale=scale)

    with pytest.raises(AssertionError, match="gradients of directions differ"):
        testing.assert_equals_reference(COMPLEX, DIRECTIONS, THRESHOLDS, scale=9.0, transform=detached)


def test_a_detached_result_is_found():
    def detached(complex, directions, thresholds, *, scale):
        return es.ect(complex, directions, thresholds, scale=scale).detach()

    with pytest.raises(AssertionError, match="gradients differ from the reference"):
        testing.assert_equals_reference(COMPLEX, DIRECTIONS, THRESHOLDS, scale=9.0, transform=detached)


def test_weights_that_are_ignored_are_found():
    def unweighted(complex, directions, thresholds, *, scale):
        return es.ect(es.Complex(complex.points, complex.simplices), directions, thresholds, scale=scale)

    weighted = random_complex(np.random.default_rng(0), weighted=True)
    with pytest.raises(AssertionError):
        testing.assert_equals_reference(weighted, DIRECTIONS, THRESHOLDS, scale=9.0, transform=unweighted)


def test_shuffling_keeps_the_complexes(generator):
    shuffled, order = testing.shuffle(COMPLEX, generator=generator)
    assert torch.equal(shuffled.euler_characteristic(), COMPLEX.euler_characteristic()[order])


def test_too_many_edges_are_rejected():
    with pytest.raises(ValueError, match="num_edges must be .* got 4"):
        testing.random_graph(3, 4)


def test_shapes_with_unknown_curves_are_named():
    with pytest.raises(ValueError, match="between is not known"):
        testing.torus().transform(torch.rand(1, 3), THRESHOLDS)
