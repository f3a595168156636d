import gudhi
import networkx
import pytest
import torch

from eulerscan import datasets
from eulerscan.complexes.simplices import faces, unique
from eulerscan.datasets import manifolds

SPHERE, TORUS, MOEBIUS, KLEIN = range(4)


def betti(shape, field):
    tree = gudhi.SimplexTree()
    for triangle in shape.simplices[1].T.tolist():
        tree.insert(triangle)
    tree.compute_persistence(homology_coeff_field=field, persistence_dim_max=True)
    return [*tree.betti_numbers(), 0, 0][:3]


@pytest.mark.parametrize("num_points", [32, 33, 50, 71, 100, 256, 999])
def test_meshes_are_the_surfaces_that_they_are_called(num_points):
    dataset = datasets.load("manifolds", form="meshes", num_shapes=2, num_points=num_points)
    assert dataset.shapes.euler_characteristic().tolist() == [2, 2, 0, 0, 0, 0, 0, 0]
    # Over the fields of 2 and 3 elements; a Klein bottle differs from a torus in the second only.
    expected = {
        SPHERE: ([1, 0, 1], [1, 0, 1]),
        TORUS: ([1, 2, 1], [1, 2, 1]),
        MOEBIUS: ([1, 1, 0], [1, 1, 0]),
        KLEIN: ([1, 2, 1], [1, 1, 0]),
    }
    for shape, label in dataset:
        assert (betti(shape, 2), betti(shape, 3)) == expected[label]
        edges, triangles = shape.simplices
        sides = faces(triangles)
        assert torch.equal(unique(sides), edges.sort(dim=0).values[:, _order(edges)])
        _, uses = torch.unique(sides.sort(dim=0).values, dim=1, return_counts=True)
        boundary = torch.unique(sides.sort(dim=0).values, dim=1)[:, uses == 1]
        assert uses.max() == 2
        rim = networkx.Graph(boundary.T.tolist())
        assert networkx.number_connected_components(rim) == (1 if label == MOEBIUS else 0)
        assert abs(len(shape.points) - num_points) <= 0.3 * num_points


def _order(edges):
    low, high = edges.sort(dim=0).values
    return (low.long() * (int(high.max()) + 1) + high).argsort()


def test_neighbors_in_a_mesh_are_near():
    """Glued sides meet each other, upside down where they must."""
    dataset = datasets.load("manifolds", form="meshes", num_shapes=3, num_points=2000, noise=0.0)
    a, b = dataset.shapes.points[dataset.shapes.simplices[0].long()]
    assert torch.linalg.vector_norm(a - b, dim=1).max() < 0.25


def test_points_lie_on_their_surface_uniformly_by_area():
    x, y, z = manifolds._clouds(TORUS, 4, 50000, torch.Generator().manual_seed(0)).points.view(4, -1, 3).unbind(dim=2)
    rho = torch.hypot(x, y)
    # On a torus with tube r and radius 1 - r, (rho - 1 + r)^2 + z^2 = r^2.
    tube = (((rho - 1).square() + z.square()) / (2 * (1 - rho))).median(dim=1).values
    assert (tube > 0.2).all()
    assert (tube < 0.4).all()
    there = (rho - (1 - tube)[:, None]).square() + z.square()
    torch.testing.assert_close(there, tube.square()[:, None].expand_as(there))
    outer = (rho > (1 - tube)[:, None]).double().mean(dim=1)
    torch.testing.assert_close(outer, 0.5 + tube / (torch.pi * (1 - tube)), atol=0.01, rtol=0)


@pytest.mark.parametrize("form", ["points", "meshes"])
def test_a_seed_decides_everything_and_nothing_else_does(form):
    options = {"form": form, "num_shapes": 3, "num_points": 40}
    state = torch.get_rng_state()
    first = datasets.load("manifolds", **options)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(datasets.load("manifolds", **options).shapes.points, first.shapes.points)
    assert not torch.equal(datasets.load("manifolds", seed=1, **options).shapes.points, first.shapes.points)
    assert first.shapes.points.dtype == torch.float32
    assert first.labels.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert torch.linalg.vector_norm(first.shapes.points, dim=1).max() < 1.2


def test_noise_moves_points_by_as_much_as_it_says():
    still, moved = (datasets.load("manifolds", num_shapes=20, noise=noise).shapes.points for noise in (0.0, 0.1))
    assert 0.095 < float((moved - still).std()) < 0.105
