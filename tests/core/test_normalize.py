"""Normalization belongs to the shape, not to its mesh."""

import math

import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.complexes.normalize import _can_compile, centroids


def refined(complex, chosen):
    """The complex with one of its triangles cut at its centroid, for each of the chosen ones."""
    triangles = next(level for level in complex.simplices if len(level) == 3).long()
    mask = torch.zeros(triangles.shape[1], dtype=torch.bool)
    mask[chosen] = True
    new = len(complex.points) + torch.arange(int(mask.sum()))
    a, b, c = triangles[:, mask]
    cut = torch.cat([torch.stack([a, b, new]), torch.stack([b, c, new]), torch.stack([c, a, new])], dim=1)
    points = torch.cat([complex.points, complex.points[triangles[:, mask]].mean(dim=0)])
    return es.Complex(points, [torch.cat([triangles[:, ~mask], cut], dim=1)]).closure()


@pytest.mark.parametrize("normalize", ["unit_ball", "center"])
def test_refining_part_of_a_mesh_moves_nothing(normalize):
    torus = testing.known_shapes()["torus"].complex
    mesh = torus.with_points(torus.points.double() + torch.tensor([3.0, 0, 0]))
    fine = mesh
    for _ in range(3):
        fine = refined(fine, torch.arange(fine.counts[2] // 5))
    before, after = (shape.normalized(normalize).points[: len(mesh.points)] for shape in (mesh, fine))
    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)
    by_vertices = fine.normalized("vertices").points[: len(mesh.points)] - mesh.normalized("vertices").points
    assert by_vertices.abs().max() > 0.05
    grid = es.ECTConfig(16, 32, scale=20.0, normalize=normalize, radius=4.0)
    torch.testing.assert_close(grid.transform(fine), grid.transform(mesh), rtol=0, atol=1e-9)


@pytest.mark.parametrize("normalize", ["unit_ball", "center"])
def test_splitting_edges_of_a_graph_moves_nothing(normalize, generator):
    graph = testing.random_graph(9, 14, generator=generator).complex
    a, b = graph.simplices[0].long()
    middle = 9 + torch.arange(5)
    edges = torch.cat([torch.stack([a[5:], b[5:]]), torch.stack([a[:5], middle]), torch.stack([middle, b[:5]])], dim=1)
    split = es.Complex(torch.cat([graph.points, (graph.points[a[:5]] + graph.points[b[:5]]) / 2]), [edges])
    torch.testing.assert_close(split.normalized(normalize).points[:9], graph.normalized(normalize).points)


def test_splitting_a_tetrahedron_of_a_solid_moves_nothing(generator):
    points = torch.rand(5, 3, dtype=torch.float64, generator=generator)
    solid = es.Complex(points, [torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])]).closure()
    inside = points[:4].mean(dim=0, keepdim=True)
    split = torch.tensor([[0, 1, 2, 5], [0, 1, 3, 5], [0, 2, 3, 5], [1, 2, 3, 5], [1, 2, 3, 4]]).T
    fine = es.Complex(torch.cat([points, inside]), [split]).closure()
    torch.testing.assert_close(fine.normalized().points[:5], solid.normalized().points)


def test_centroids_are_those_of_known_shapes():
    path = es.Complex(torch.tensor([[0.0, 0], [3, 0], [3, 1]]), [torch.tensor([[0, 1], [1, 2]])])
    assert centroids(path.packed, path.batch, path.simplices)[0].tolist() == [
        pytest.approx((3 * 1.5 + 3) / 4),
        pytest.approx(0.5 / 4),
    ]
    # A square of two triangles with a third, of another area, beside it.
    corners = torch.tensor([[0.0, 0], [2, 0], [2, 2], [0, 2], [5, 0]])
    house = es.Complex(corners, [torch.tensor([[0, 0, 1], [1, 2, 4], [2, 3, 2]])]).closure()
    assert centroids(house.packed, house.batch, house.simplices)[0].tolist() == pytest.approx(
        [(4 * 1 + 3 * 3) / 7, (4 * 1 + 3 * 2 / 3) / 7]
    )
    cloud = es.Complex(torch.tensor([[0.0], [1.0], [5.0]]))
    assert centroids(cloud.packed, cloud.batch, cloud.simplices).tolist() == [[2.0]]


def test_degenerate_simplices_leave_the_next_dimension_to_decide():
    flat = torch.tensor([[0.0, 0], [1, 0], [4, 0]])
    needle = es.Complex(flat, [torch.tensor([[0], [1], [2]])]).closure()  # by length: 1, 3 and 4
    assert centroids(needle.packed, needle.batch, needle.simplices)[0].tolist() == pytest.approx(
        [(1 * 0.5 + 3 * 2.5 + 4 * 2) / 8, 0]
    )
    point = es.Complex(torch.full((3, 2), 7.0), [torch.tensor([[0], [1], [2]])]).closure()
    assert (point.normalized().points == 0).all()


def test_a_batch_of_clouds_graphs_meshes_and_solids_is_normalized_one_by_one():
    known = testing.known_shapes()
    shapes = [known[name].complex.to(torch.float64) for name in known if known[name].complex.dim == 3][:6]
    shapes += [es.Complex(torch.rand(5, 3, dtype=torch.float64)), es.Complex(torch.zeros(0, 3, dtype=torch.float64))]
    batch = es.collate(shapes)
    testing.assert_batch_independent(lambda c: c.normalized().points, batch, rtol=0, atol=0)


@pytest.mark.parametrize("normalize", ["unit_ball", "center", "vertices"])
def test_the_centroid_has_gradients(normalize, generator):
    points = torch.rand(6, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    mesh = es.Complex(points.detach(), [torch.tensor([[0, 1, 2], [1, 2, 3], [2, 3, 4]])]).closure()
    torch.autograd.gradcheck(lambda p: mesh.with_points(p).normalized(normalize).points, points)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e-5, 1e30, 1.7e308])
def test_the_units_do_not_matter(size):
    points = torch.rand(9, 3, dtype=torch.float64)
    mesh = es.Complex(points, [torch.tensor([[0, 1, 2], [1, 2, 3], [2, 3, 4]])]).closure()
    torch.testing.assert_close(mesh.with_points(points * size).normalized().points, mesh.normalized().points)


def test_the_largest_norm_is_one_and_weights_do_not_count():
    torus = testing.known_shapes()["torus"].complex
    weighted = torus.with_weights(torch.rand(len(torus.points)))
    assert math.isclose(float(torus.normalized().largest_norms()), 1.0, rel_tol=1e-6)
    torch.testing.assert_close(weighted.normalized().points, torus.normalized().points)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_compiled_loop_equals_the_torch_operations(dim, dtype, generator):
    """They take turns by whether a gradient is needed. The batch has clouds, graphs, surfaces, solids, empty complexes."""
    shapes = []
    for top in (0, 1, 2, 3):
        points = 5 * torch.randn(12, dim, dtype=dtype, generator=generator) + 100
        columns = torch.stack([torch.randperm(12, generator=generator)[: top + 1] for _ in range(9)], dim=1)
        shapes.append(es.Complex(points, [columns] if top else []).closure())
    flat = es.Complex(torch.ones(3, dim, dtype=dtype), [torch.tensor([[0], [1], [2]])]).closure()
    batch = es.collate([*shapes, es.Complex(torch.zeros(0, dim, dtype=dtype)), flat])
    assert _can_compile(batch.packed)
    fast = centroids(batch.packed, batch.batch, batch.simplices)
    tracked = batch.packed._replace(points=batch.points.clone().requires_grad_())
    assert not _can_compile(tracked)
    torch.testing.assert_close(fast, centroids(tracked, batch.batch, batch.simplices).detach(), rtol=1e-10, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_largest_number_has_a_norm(dtype):
    most = torch.finfo(dtype).max
    assert float(es.Complex(torch.tensor([[most, 0.0]], dtype=dtype)).largest_norms()) == most
