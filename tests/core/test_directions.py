import math

import pytest
import torch

import eulerscan as es
from eulerscan import directions


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 16, 100])
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 9])
def test_all_directions_have_unit_length(n, dim, dtype, generator):
    for made in (
        directions.uniform(n, dim, dtype=dtype),
        directions.half_sphere(n, dim, dtype=dtype),
        directions.random(n, dim, generator=generator, dtype=dtype),
    ):
        assert (made.shape, made.dtype) == ((n, dim), dtype)
        torch.testing.assert_close(made.norm(dim=1), torch.ones(n, dtype=dtype))


@pytest.mark.parametrize("n", [2, 3, 12, 16, 97])
def test_no_direction_of_the_circle_occurs_twice(n):
    cosines = directions.circle(n, dtype=torch.float64) @ directions.circle(n, dtype=torch.float64).T
    assert (cosines.fill_diagonal_(-1) < math.cos(math.pi / n)).all()


@pytest.mark.parametrize("n", [4, 8, 12, 24, 360])
def test_the_circle_is_exactly_symmetric(n, dtype):
    circle = directions.circle(n, dtype=dtype)
    quarter = circle.roll(-n // 4, dims=0)
    assert torch.equal(quarter, torch.stack([-circle[:, 1], circle[:, 0]], dim=1))
    angle = torch.arange(n, dtype=torch.float64) * (2 * math.pi / n)
    torch.testing.assert_close(circle.double(), torch.stack([angle.cos(), angle.sin()], dim=1), rtol=0, atol=1e-7)


def test_lattice_points_that_are_level_stay_level():
    """A cosine of 6e-17 instead of zero would lift a distant point above the threshold at zero."""
    lattice = torch.cartesian_prod(torch.arange(-9.0, 10), torch.arange(-9.0, 10)).double()
    counts = es.ect(lattice * 1e3, directions.circle(8, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    assert counts.view(8).tolist() == [190] * 8


@pytest.mark.parametrize("dim", [2, 3, 4, 6])
def test_even_directions_leave_no_large_gap(dim, generator):
    """The largest gap is smaller than with random directions."""
    probes = directions.random(4000, dim, generator=generator)
    even = (probes @ directions.uniform(200, dim).T).amax(dim=1).min()
    scattered = [(probes @ directions.random(200, dim, generator=generator).T).amax(dim=1).min() for _ in range(5)]
    assert even > max(scattered)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_a_half_sphere_has_no_opposites(dim):
    half = directions.half_sphere(60, dim, dtype=torch.float64)
    assert ((half @ half.T) > -1 + 1e-6).all()


def test_consecutive_directions_of_a_loop_are_neighbors():
    loop = directions.loop(32, dtype=torch.float64)
    gaps = (loop - loop.roll(1, dims=0)).norm(dim=1)
    assert gaps.max() < 0.5
    assert torch.unique(loop, dim=0).shape == (32, 3)
    assert loop[:, 2].abs().max() > 0.5


def test_rings_rotate_with_the_shape():
    """A rotation about the third axis by one step shifts the curves of every ring by one position."""
    ringed, around = directions.rings(18, 3, dtype=torch.float64), directions.circle(6, dtype=torch.float64)
    cosine, sine = around[1].tolist()
    rotation = torch.tensor([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]], dtype=torch.float64)
    cloud = torch.rand(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.5
    heights, rotated = ((points @ ringed.T).view(-1, 3, 6) for points in (cloud, cloud @ rotation.T))
    torch.testing.assert_close(rotated, heights.roll(1, dims=2))
    assert not torch.allclose(rotated, heights, atol=0.01)


@pytest.mark.parametrize(("n", "num_rings"), [(6, 1), (12, 2), (40, 5)])
def test_rings_are_level_and_have_no_opposites(n, num_rings):
    ringed = directions.rings(n, num_rings, dtype=torch.float64)
    torch.testing.assert_close(ringed.norm(dim=1), torch.ones(n, dtype=torch.float64))
    levels = ringed[:, 2].view(num_rings, -1)
    assert torch.equal(levels, levels[:, :1].expand_as(levels))
    assert levels.unique().numel() == num_rings
    assert ((ringed @ ringed.T) > -1 + 1e-6).all()


def test_rings_are_equally_long():
    with pytest.raises(ValueError, match="n must be .* num_rings, 3, got 10"):
        directions.rings(10, 3)


def test_random_directions_come_from_the_generator_alone():
    state = torch.get_rng_state()
    one, other = (directions.random(5, 3, generator=torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("make", [directions.circle, directions.fibonacci, lambda n: directions.random(n, 2)])
def test_a_wrong_number_is_named(make):
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        make(0)
    with pytest.raises(TypeError, match="n must be an int, got float"):
        make(2.0)
