import pytest
import torch

import eulerscan as es


def clouds() -> es.Complex:
    """Of 3, 0, 1 and 5 points, which are numbered through."""
    return es.Complex(torch.arange(9.0)[:, None], batch=torch.tensor([0, 0, 0, 2, 3, 3, 3, 3, 3]), num_complexes=4)


def test_the_first_points_of_each_cloud_stay():
    subsampled = clouds().subsample(2)
    assert subsampled.points.flatten().tolist() == [0, 1, 3, 4, 5]
    assert subsampled.batch.tolist() == [0, 0, 2, 3, 3]
    assert subsampled.num_complexes == 4


def test_clouds_with_fewer_points_stay_as_they_are():
    assert torch.equal(clouds().subsample(5).points, clouds().points)
    assert torch.equal(clouds().subsample(10**9, generator=torch.Generator()).points, clouds().points)


def test_at_random_every_point_has_the_same_chance_and_stays_in_its_cloud():
    generator = torch.Generator().manual_seed(0)
    seen = torch.zeros(9)
    for _ in range(1000):
        subsampled = clouds().subsample(2, generator=generator)
        assert subsampled.batch.tolist() == [0, 0, 2, 3, 3]
        seen[subsampled.points.flatten().long()] += 1 / 1000
    torch.testing.assert_close(seen, torch.tensor([2 / 3] * 3 + [1.0] + [2 / 5] * 5), rtol=0, atol=0.05)


def test_weights_go_with_their_points():
    cloud = es.Complex(torch.arange(4.0)[:, None], weights=[torch.arange(4.0)])
    subsampled = cloud.subsample(3, generator=torch.Generator().manual_seed(1))
    assert subsampled.weights is not None
    assert torch.equal(subsampled.weights[0], subsampled.points.flatten())


def test_gradients_reach_the_points_that_stay():
    points = torch.rand(5, 2, requires_grad=True)
    es.Complex(points).subsample(2).points.sum().backward()
    assert points.grad is not None
    assert points.grad.tolist() == [[1, 1]] * 2 + [[0, 0]] * 3


def test_graphs_and_meshes_are_not_subsampled():
    edge = es.Complex(torch.rand(2, 2), [torch.tensor([[0], [1]])])
    with pytest.raises(ValueError, match="num_points.*1-simplices"):
        edge.subsample(1)


@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (-3, ValueError), (1.5, TypeError), (True, TypeError)])
def test_numbers_that_make_no_sense_are_named(number, error):
    with pytest.raises(error, match="num_points"):
        clouds().subsample(number)


def test_a_generator_draws_the_same_points_again():
    drawn = [clouds().subsample(2, generator=torch.Generator().manual_seed(2)).points for _ in range(2)]
    assert torch.equal(*drawn)
