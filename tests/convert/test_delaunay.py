import gudhi
import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

import eulerscan as es
from eulerscan.convert import alpha_complex, delaunay


def simplices_of(complex: es.Complex) -> set[tuple[int, ...]]:
    return {tuple(sorted(column)) for level in complex.simplices for column in level.T.tolist()}


def lattice(*shape: int) -> torch.Tensor:
    return torch.stack(torch.meshgrid(*(torch.arange(float(n)) for n in shape), indexing="ij"), dim=-1).reshape(-1, len(shape))


def volume(complex: es.Complex) -> float:
    """Of the cells of highest dimension together, which is that of space."""
    points = complex.points.double()[complex.simplices[-1]]
    return float(torch.linalg.det((points[1:] - points[0]).transpose(0, 1)).abs().sum() / np.prod(range(1, complex.dim + 1)))


@pytest.mark.parametrize("dim", [2, 3, 4])
@pytest.mark.parametrize("n", [5, 12, 60])
def test_a_triangulation_fills_the_convex_hull_with_a_ball(dim, n):
    points = np.random.default_rng(n).random((n, dim))
    complex = delaunay(points)
    assert complex.euler_characteristic().tolist() == [1]
    assert len(complex.points) == n
    assert volume(complex) == pytest.approx(ConvexHull(points).volume)


@pytest.mark.parametrize("scale", [1.0, 1 / 28, 0.1])
@pytest.mark.parametrize("shape", [(9, 9), (28, 28), (4, 4, 4), (3, 3, 3, 3)])
def test_a_lattice_is_filled_though_its_points_share_spheres(shape, scale, dtype):
    points = lattice(*shape).to(dtype) * scale - 0.5
    complex = delaunay(points)
    assert complex.euler_characteristic().tolist() == [1]
    assert volume(complex) == pytest.approx(scale ** len(shape) * np.prod([n - 1 for n in shape]), rel=1e-4)


@pytest.mark.parametrize(
    ("points", "counts"),
    [
        (lattice(1, 5), (5, 4)),
        (lattice(5), (5, 4)),
        (lattice(3, 1, 3) @ torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))[0], (9, 16, 8)),
        (torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), (3, 3, 1)),
        (torch.eye(5), (5, 10, 10, 5, 1)),
        (torch.tensor([[1.0, 2.0]]), (1,)),
        (torch.empty(0, 3), (0,)),
        (torch.tensor([[3.0], [1.0]]), (2, 1)),
    ],
)
def test_points_that_span_less_than_space_are_triangulated_in_their_span(points, counts):
    for complex in (delaunay(points), alpha_complex(points, float("inf"))):
        assert complex.counts == counts


def test_collinear_points_are_joined_in_their_order_along_the_line():
    along = torch.tensor([3.0, 1.0, 2.0, 0.0])
    edges = delaunay(torch.stack([along, 2 * along], dim=1)).simplices[0]
    assert sorted(sorted(e) for e in edges.T.tolist()) == [[0, 2], [1, 2], [1, 3]]


def test_points_that_coincide_are_named_or_merged():
    points = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 0], [2, 2]])
    with pytest.raises(ValueError, match=r"rows 1 and 3 coincide.*merge=True"):
        delaunay(points)
    complex = delaunay(points, merge=True)
    assert complex.points.tolist() == [[0, 0], [1, 0], [0, 1], [2, 2]]
    assert complex.euler_characteristic().tolist() == [1]


def test_points_too_close_to_be_told_apart_are_named_or_merged():
    points = np.random.default_rng(0).random((50, 2))
    points[7] = points[3] + 1e-15
    with pytest.raises(ValueError, match=r"row [37] nearly coincides.*merge=True"):
        delaunay(points)
    complex = delaunay(points, merge=True)
    assert len(complex.points) == 49
    assert complex.euler_characteristic().tolist() == [1]


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("n", [5, 20, 70])
def test_an_alpha_complex_is_that_of_gudhi(dim, n):
    points = np.random.default_rng(dim * n).random((n, dim))
    tree = gudhi.AlphaComplex(points=points).create_simplex_tree()
    values = {tuple(simplex): value**0.5 for simplex, value in tree.get_filtration()}
    for alpha in [*np.quantile(list(values.values()), np.linspace(0.1, 0.9, 9)) * 1.0001, 10.0]:
        expected = {simplex for simplex, value in values.items() if value <= alpha and len(simplex) > 1}
        complex = alpha_complex(points, alpha)
        assert simplices_of(complex) == expected
        assert len(complex.points) == n


@pytest.mark.parametrize("scale", [1.0, 1 / 28, 0.1])
def test_the_alpha_complex_of_a_lattice_grows_cell_by_cell(scale, dtype):
    """At the radius of a cell, which no rounding hits exactly, all of its simplices are there."""
    points = lattice(5, 4).to(dtype) * scale - 0.5
    counts = [alpha_complex(points, alpha * scale).euler_characteristic().item() for alpha in (0.49, 0.5, 0.7, 0.5**0.5, 2)]
    assert counts == [20, 20 - 31, 20 - 31, 1, 1]
    cube = [
        alpha_complex(lattice(3, 3, 3).to(dtype) * scale, a * scale).euler_characteristic().item() for a in (0.5, 0.71, 0.87)
    ]
    assert cube == [27 - 54, 1 + 8, 1]


def test_points_on_one_circle_are_filled_at_its_radius():
    circle = es.directions.circle(100, dtype=torch.float64)
    assert [alpha_complex(circle, a).euler_characteristic().item() for a in (0.01, 0.1, 0.99, 1.0)] == [100, 0, 0, 1]


def test_an_alpha_complex_has_the_faces_of_its_simplices():
    points = np.random.default_rng(0).random((40, 3))
    for alpha in (0.1, 0.15, 0.2, 0.3):
        complex = alpha_complex(points, alpha)
        assert complex.closure().counts == complex.counts


def test_gradients_reach_the_points():
    points = torch.rand(9, 2, requires_grad=True)
    es.ect(delaunay(points), es.directions.circle(4), es.thresholds(5), scale=8.0).sum().backward()
    assert points.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("points", "error", "text"),
    [
        (torch.zeros(3, 2, dtype=torch.int64), TypeError, "points must be floating point"),
        (torch.full((3, 2), torch.inf), ValueError, "points must be finite"),
        (torch.rand(3), ValueError, r"points must have shape \[V, dim\]"),
        (np.array([["a"]]), TypeError, "points must hold numbers"),
    ],
)
def test_what_are_no_points_is_named(points, error, text):
    with pytest.raises(error, match=text):
        delaunay(points)


@pytest.mark.parametrize("alpha", [-1.0, float("nan")])
def test_a_radius_below_zero_is_named(alpha):
    with pytest.raises(ValueError, match=r"alpha must be .*got"):
        alpha_complex(torch.rand(4, 2), alpha)


@pytest.mark.parametrize("make", [delaunay, lambda points, merge: alpha_complex(points, 1.0, merge=merge)])
def test_a_tolerance_is_no_way_to_merge(make):
    with pytest.raises(TypeError, match=r"merge must be True or False, got 0\.001\."):
        make(torch.rand(5, 2), merge=0.001)


def test_a_lattice_far_from_the_origin_is_triangulated_like_one_near_it():
    near = torch.cartesian_prod(torch.arange(5.0), torch.arange(5.0)) * 0.25
    assert delaunay(near + 1e6).counts == delaunay(near).counts
