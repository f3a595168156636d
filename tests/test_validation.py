"""Bad input of a Complex: an error that names the argument, what it needs, and what came."""

import math

import pytest
import torch

import eulerscan as es

POINTS = torch.rand(6, 2)
EDGES = torch.tensor([[0, 1, 2], [1, 2, 3]])


def bad_point(value):
    points = POINTS.clone()
    points[4, 1] = value
    return points


@pytest.mark.parametrize(
    ("points", "error", "text"),
    [
        ([[0.0, 1.0]], TypeError, r"points must be a torch.Tensor \[V, dim\], got list"),
        (
            torch.zeros(4, 2, dtype=torch.int64),
            TypeError,
            r"points must be floating point, got torch.int64. Use points.float\(\)",
        ),
        (torch.zeros(4, 2, dtype=torch.complex64), TypeError, "points must be floating point, got torch.complex64"),
        (torch.zeros(4), ValueError, r"points must have shape \[V, dim\].*got \[4\]"),
        (torch.zeros(2, 3, 2), ValueError, r"points must have shape \[V, dim\].*got \[2, 3, 2\]"),
        (torch.zeros(4, 0), ValueError, r"dim at least 1, got \[4, 0\]"),
        (bad_point(math.nan), ValueError, r"points must be finite, got \[.*nan\] at row 4"),
        (bad_point(math.inf), ValueError, r"points must be finite, got \[.*inf\] at row 4"),
    ],
)
def test_wrong_points_are_named(points, error, text):
    with pytest.raises(error, match=text):
        es.Complex(points)


@pytest.mark.parametrize(
    ("simplices", "error", "text"),
    [
        (EDGES.T.repeat(3, 1), ValueError, r"simplices\[0\] holds 8-simplices, so it needs.*got \[9, 2\].*transposed"),
        (EDGES.float(), TypeError, r"simplices\[0\] must hold integers, got torch.float32"),
        (EDGES.bool(), TypeError, r"simplices\[0\] must hold integers, got torch.bool"),
        (EDGES.tolist(), TypeError, r"simplices\[0\] must be a torch.Tensor of integers, got list"),
        (EDGES[0], ValueError, r"simplices\[0\] must have shape \[k \+ 1, count\].*got \[3\]"),
        (EDGES[:1], ValueError, r"k at least 1, got \[1, 3\]. The points are its vertices already"),
        (EDGES[:0], ValueError, r"k at least 1, got \[0, 3\]"),
        (EDGES + 3, IndexError, r"simplices\[0\] must hold indices from 0 to 5 \(there are 6 points\), got 6"),
        (EDGES - 1, IndexError, r"simplices\[0\] must hold indices from 0 to 5.*got -1"),
        (EDGES + 2**40, IndexError, r"simplices\[0\] must hold indices from 0 to 5"),
        (torch.tensor([[0, 1], [1, 1]]), ValueError, r"different vertices in every column, got \[1, 1\] in column 1"),
    ],
)  # fmt: skip
def test_wrong_simplices_are_named(simplices, error, text):
    with pytest.raises(error, match=text):
        es.Complex(POINTS, [simplices])


def test_simplices_without_brackets_are_named():
    with pytest.raises(TypeError, match=r"one tensor of shape \[2, 3\]. Put it in brackets"):
        es.Complex(POINTS, EDGES)


def test_transposed_triangles_beside_edges_are_named():
    triangles = torch.tensor([[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [0, 4, 5]])
    with pytest.raises(ValueError, match=r"simplices\[1\].*Did you pass it transposed"):
        es.Complex(POINTS, [EDGES, triangles])


def test_a_single_simplex_of_high_dimension_is_welcome():
    assert es.Complex(POINTS, [torch.arange(6)[:, None]]).closure().euler_characteristic().tolist() == [1]


def test_long_transposed_lists_are_named_at_once_and_in_short():
    tetrahedra = torch.arange(40_000).view(-1, 4) % 997
    with pytest.raises(ValueError, match="transposed") as error:
        es.Complex(torch.rand(40_000, 3), [tetrahedra])
    assert len(str(error.value)) < 300


def test_two_entries_of_one_dimension_are_named():
    with pytest.raises(ValueError, match=r"simplices\[1\] holds 1-simplices, and so does an earlier one"):
        es.Complex(POINTS, [EDGES, EDGES])


def test_simplices_that_cross_complexes_are_named():
    batch = torch.tensor([0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match=r"one complex, got \[2, 3\] of the complexes \[0, 1\] in column 2"):
        es.Complex(POINTS, [EDGES], batch=batch)


@pytest.mark.parametrize(
    ("batch", "num_complexes", "error", "text"),
    [
        (torch.zeros(5, dtype=torch.int64), None, ValueError, r"batch must have one entry per point, shape \[6\], got \[5\]"),
        (torch.zeros(6), None, TypeError, "batch must hold integers, got torch.float32"),
        ([0] * 6, None, TypeError, "batch must be a torch.Tensor of integers, got list"),
        (torch.tensor([0, 0, 0, -1, 0, 0]), None, IndexError, "batch must hold numbers from 0.*got -1"),
        (torch.tensor([0, 0, 0, 5, 0, 0]), 3, IndexError, "num_complexes - 1 = 2, got 5"),
        (None, 0, ValueError, "num_complexes must be at least 1, since there are 6 points, got 0"),
        (None, -1, ValueError, "num_complexes must be at least 0, got -1"),
        (None, 2.0, TypeError, "num_complexes must be an int, got float"),
    ],
)
def test_a_wrong_batch_is_named(batch, num_complexes, error, text):
    with pytest.raises(error, match=text):
        es.Complex(POINTS, batch=batch, num_complexes=num_complexes)


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        ((None,), ValueError, r"1 entries of simplices \(2 in all.*got 1 entries"),
        (torch.ones(6), ValueError, r"got a tensor of shape \[6\]"),
        ((torch.ones(5), None), ValueError, r"weights\[0\] must have one entry per simplex, shape \[6\], got \[5\]"),
        ((None, torch.ones(6)), ValueError, r"weights\[1\] must have one entry per simplex, shape \[3\], got \[6\]"),
        ((None, [1, 2, 3]), TypeError, r"weights\[1\] must be a torch.Tensor or None, got list"),
        ((None, torch.tensor([1.0, math.nan, 1.0])), ValueError, r"weights\[1\] must be finite.*got nan"),
        (
            (None, torch.tensor([1.0, 1e300, 1.0], dtype=torch.float64)),
            ValueError,
            r"weights\[1\] must be finite.*float32, got 1e\+300",
        ),
        ((None, torch.ones(3) * 1j), TypeError, r"weights\[1\] must be real, got torch.complex64"),
    ],
)
def test_wrong_weights_are_named(weights, error, text):
    with pytest.raises(error, match=text):
        es.Complex(POINTS, [EDGES], weights=weights)


def test_another_device_is_named():
    with pytest.raises(ValueError, match=r"simplices\[0\] must be on cpu like points, got meta"):
        es.Complex(POINTS, [EDGES.to("meta")])
    with pytest.raises(ValueError, match="directions must be on cpu like the points, got meta"):
        es.ect(POINTS, torch.zeros(3, 2, device="meta"), es.thresholds(3))
