import pytest
import torch

from eulerscan.complexes import simplices


def test_faces_leave_out_one_vertex_each():
    assert simplices.faces(torch.tensor([[1], [2], [3]])).T.tolist() == [[2, 3], [1, 3], [1, 2]]


@pytest.mark.parametrize("base", [0, 2**40])
def test_unique_drops_copies_orders_and_loops(base):
    """Vertices near 2**40 do not fit in one 64-bit key: the slow path must agree with the fast one."""
    given = torch.tensor([[5, 1, 2, 3, 1], [1, 5, 2, 1, 3], [3, 3, 4, 5, 5]]) + base
    assert (simplices.unique(given) - base).tolist() == [[1], [3], [5]]
    assert simplices.unique(given[:, :0]).shape == (3, 0)


def test_missing_finds_what_is_not_there_in_any_order():
    wanted, present = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([[1, 7], [0, 8]])
    assert simplices.missing(wanted, present).T.tolist() == [[0, 2], [1, 2]]
