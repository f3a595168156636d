import pytest
import torch

import eulerscan as es
from eulerscan.nn.models import ECTMLP
from eulerscan.thinning import thin


def clouds() -> es.Complex:
    """Of 3, 0, 1 and 5 points, which are numbered through."""
    return es.Complex(torch.arange(9.0)[:, None], batch=torch.tensor([0, 0, 0, 2, 3, 3, 3, 3, 3]), num_complexes=4)


def test_the_first_points_of_each_cloud_stay():
    thinned = thin(clouds(), 2)
    assert thinned.points.flatten().tolist() == [0, 1, 3, 4, 5]
    assert thinned.batch.tolist() == [0, 0, 2, 3, 3]
    assert thinned.num_complexes == 4


def test_clouds_with_fewer_points_stay_as_they_are():
    assert torch.equal(thin(clouds(), 5).points, clouds().points)
    assert torch.equal(thin(clouds(), 10**9, at_random=True).points, clouds().points)


def test_at_random_every_point_has_the_same_chance_and_stays_in_its_cloud():
    torch.manual_seed(0)
    seen = torch.zeros(9)
    for _ in range(2000):
        thinned = thin(clouds(), 2, at_random=True)
        assert thinned.batch.tolist() == [0, 0, 2, 3, 3]
        seen[thinned.points.flatten().long()] += 1 / 2000
    torch.testing.assert_close(seen, torch.tensor([2 / 3] * 3 + [1.0] + [2 / 5] * 5), rtol=0, atol=0.05)


def test_weights_go_with_their_points():
    cloud = es.Complex(torch.arange(4.0)[:, None], weights=[torch.arange(4.0)])
    torch.manual_seed(1)
    thinned = thin(cloud, 3, at_random=True)
    assert thinned.weights is not None
    assert torch.equal(thinned.weights[0], thinned.points.flatten())


def test_gradients_reach_the_points_that_stay():
    points = torch.rand(5, 2, requires_grad=True)
    thin(es.Complex(points), 2).points.sum().backward()
    assert points.grad is not None
    assert points.grad.tolist() == [[1, 1]] * 2 + [[0, 0]] * 3


def test_what_holds_together_is_not_thinned():
    edge = es.Complex(torch.rand(2, 2), [torch.tensor([[0], [1]])])
    with pytest.raises(ValueError, match="num_points is for clouds"):
        thin(edge, 1)


@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (-3, ValueError), (1.5, TypeError), (True, TypeError)])
def test_numbers_that_make_no_sense_are_named(number, error):
    with pytest.raises(error, match="num_points"):
        thin(clouds(), number)
    with pytest.raises(error, match="num_points"):
        ECTMLP(2, 3, num_points=number)


def test_a_model_sees_other_points_each_time_in_training_and_the_first_ones_otherwise():
    shapes = torch.rand(4, 50, 2)
    model = ECTMLP(2, 3, num_points=10)
    assert not torch.equal(model(shapes), model(shapes))
    torch.manual_seed(2)
    once = model(shapes)
    torch.manual_seed(2)
    assert torch.equal(model(shapes), once)
    model.eval()
    assert torch.equal(model(shapes), model(shapes[:, :10]))
