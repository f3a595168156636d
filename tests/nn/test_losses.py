import runpy
from pathlib import Path

import pytest
import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.nn.losses import ECTLoss, edge_length_loss, edge_lengths, laplacian_loss


def circle(n, generator=None):
    return es.directions.random(n, 2, generator)


def test_the_loss_is_the_mean_squared_difference_of_normalized_transforms():
    a, b = torch.rand(7, 2, dtype=torch.float64), torch.rand(11, 2, dtype=torch.float64)
    loss = ECTLoss(2, 5, 9, scale=20.0, dtype=torch.float64)
    transforms = [
        es.ect(x, es.directions.circle(5, dtype=torch.float64), es.thresholds(9, dtype=torch.float64), scale=20.0) / len(x)
        for x in (a, b)
    ]
    torch.testing.assert_close(loss(a, b), (transforms[0] - transforms[1]).square().mean())


@pytest.mark.parametrize("norm", ["squared", "absolute", "largest"])
def test_every_norm_is_a_distance(norm):
    loss = ECTLoss(2, 8, 16, norm=norm, dtype=torch.float64)
    a, b = circle(20), 0.5 * circle(20)
    assert loss(a, a.flip(0)) < 1e-7
    assert loss(a, b) > 1e-4
    torch.testing.assert_close(loss(a, b), loss(b, a))


def test_a_shape_and_its_copy_with_every_point_twice_are_the_same():
    cloud = circle(30)
    assert ECTLoss(2)(cloud, cloud.repeat(2, 1)) < 1e-12


def test_meshes_of_different_resolution_are_near_each_other_where_nothing_is_divided():
    coarse, fine = (testing.sphere(n, dtype=torch.float32).complex for n in (2, 3))
    loss = ECTLoss(3, divide_by=None)
    assert loss(coarse, fine) < 0.1 * loss(coarse, testing.torus(dtype=torch.float32).complex)


def test_place_and_size_do_not_matter_in_the_unit_ball_and_size_does_if_centered():
    cloud = torch.rand(20, 3)
    moved = 5 * cloud + torch.tensor([1.0, -2.0, 7.0])
    assert ECTLoss(3, normalize="unit_ball")(cloud, moved) < 1e-9
    assert ECTLoss(3, normalize="center")(cloud, moved) > 1e-3
    assert ECTLoss(3, normalize="center")(cloud, cloud + 5) < 1e-9


def test_reductions_go_over_shapes():
    shapes, target = torch.rand(4, 10, 2), torch.rand(12, 2)
    each = ECTLoss(2, 8, 8, reduction="none")(shapes, target)
    assert each.shape == (4,)
    torch.testing.assert_close(ECTLoss(2, 8, 8)(shapes, target), each.mean())
    torch.testing.assert_close(ECTLoss(2, 8, 8, reduction="sum")(shapes, target), each.sum())


def test_one_shape_of_a_batch_does_not_change_the_loss_of_another():
    loss = ECTLoss(2, 8, 8, reduction="none")
    shapes, targets = torch.rand(3, 10, 2), torch.rand(3, 5, 2)
    torch.testing.assert_close(loss(shapes, targets)[1:2], loss(shapes[1], targets[1]))


def test_a_transform_computed_once_stands_for_its_target():
    loss = ECTLoss(2)
    a, b = circle(10), torch.rand(8, 2)
    torch.testing.assert_close(loss(a, transform=loss.transform(b)), loss(a, b))


def test_gradients_reach_the_points_of_both_and_nothing_else_learns():
    loss = ECTLoss(2, 6, 7, dtype=torch.float64)
    assert list(loss.parameters()) == []
    a, b = (torch.rand(n, 2, dtype=torch.float64, requires_grad=True) for n in (4, 5))
    assert torch.autograd.gradcheck(loss, (a, b))


def test_a_step_along_the_gradient_comes_nearer():
    loss, target = ECTLoss(2), circle(50)
    points = (0.5 * circle(30)).requires_grad_()
    before = loss(points, target)
    before.backward()
    assert loss(points.detach() - 10 * points.grad, target) < before


def test_the_state_is_saved_and_loaded():
    directions = es.directions.random(5, 3)
    loss, other = ECTLoss(3, directions=directions), ECTLoss(3, 5)
    other.load_state_dict(loss.state_dict())
    a, b = torch.rand(2, 6, 3)
    torch.testing.assert_close(other(a, b), loss(a, b))
    assert "norm='squared', reduction='mean'" in repr(loss)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ECTLoss(2, norm="l2"), "norm must be one of squared, absolute, largest, got 'l2'"),
        (lambda: ECTLoss(2, reduction=None), "reduction must be one of mean, sum, none, got None"),
        (lambda: ECTLoss(2, radius=0.0), "radius must be positive"),
        (lambda: ECTLoss(2)(torch.rand(3, 2)), "target or transform.*got neither"),
        (lambda: ECTLoss(2)(torch.rand(3, 2), torch.rand(3, 3)), "dimension 2"),
        (lambda: ECTLoss(2)(torch.rand(2, 3, 2), torch.rand(3, 3, 2)), r"target must give a transform of shape \[2, 64, 64\]"),
        (lambda: ECTLoss(2)(torch.rand(3, 2), transform=torch.rand(1, 3, 3)), "Is it the result of transform"),
        (lambda: edge_lengths(es.Complex(torch.rand(3, 2))), "must have edges"),
        (lambda: edge_length_loss(testing.cycle(5).complex, torch.ones(4)), r"lengths must have .*shape \[5\], got \[4\]"),
        (lambda: laplacian_loss(es.Complex(torch.rand(3, 2))), "must have edges"),
    ],
)
def test_what_does_not_fit_is_named(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_edges_that_keep_their_length_cost_nothing():
    cycle = testing.cycle(7).complex
    lengths = edge_lengths(cycle)
    assert edge_length_loss(cycle, lengths) == 0
    torch.testing.assert_close(edge_length_loss(cycle.with_points(3 * cycle.points), lengths), torch.tensor(4.0).double())


def test_roughness_depends_on_neither_size_nor_place():
    sphere = testing.sphere(2).complex
    noisy = sphere.with_points(sphere.points + 0.05 * torch.randn_like(sphere.points))
    assert laplacian_loss(noisy) > 1.3 * laplacian_loss(sphere)
    torch.testing.assert_close(laplacian_loss(noisy.with_points(7 * noisy.points + 1)), laplacian_loss(noisy))


def test_a_vertex_without_an_edge_is_not_rough():
    path = torch.tensor([[0.0, 0], [1, 0]])
    lonely = torch.cat([path, torch.tensor([[5.0, 5]])])
    edge = [torch.tensor([[0], [1]])]
    torch.testing.assert_close(laplacian_loss(es.Complex(lonely, edge)), laplacian_loss(es.Complex(path, edge)))


def test_edge_terms_have_right_gradients():
    graph = testing.random_graph(6, 8).complex
    lengths = 0.9 * edge_lengths(graph)
    points = graph.points.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda p: edge_length_loss(graph.with_points(p), lengths), points)
    assert torch.autograd.gradcheck(lambda p: laplacian_loss(graph.with_points(p)), points)


def test_the_autoencoder_of_the_examples_learns():
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "autoencoder.py"))
    before, after = example["main"](steps=12, batch=8, num_points=16)
    assert after < 0.5 * before
