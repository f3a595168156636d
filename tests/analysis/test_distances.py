import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from drawing import batches, counted, directions_for, random_complex, seeds
from hypothesis import given

import eulerscan as es
from eulerscan.analysis.distances import distance, distance_matrix, exact_distance

POWERS = [1, 2, 3.5, math.inf]
LINE = torch.ones(1, 1, dtype=torch.float64)


def on_line(*points):
    return torch.tensor(points, dtype=torch.float64)[:, None]


def pair(rng, **options):
    return [random_complex(rng, num_points=n, **options) for n in (6, 8)]


def by_hand(a, b, widths, p):
    """``[N, M]``, in a loop."""
    result = np.zeros((len(a), len(b)))
    for i, j in np.ndindex(*result.shape):
        gaps = (a[i] - b[j]).abs().double().numpy()
        if math.isinf(p):
            result[i, j] = gaps[:, widths > 0].max()
        else:
            result[i, j] = (gaps**p * widths).sum(axis=1).mean() ** (1 / p)
    return result


# Known answers


def test_two_points_differ_between_their_heights():
    """One curve is 1 and the other 0 over an interval of length 1/4."""
    assert exact_distance(on_line(0.0), on_line(0.25), LINE, p=1).tolist() == [0.25]
    assert exact_distance(on_line(0.0), on_line(0.25), LINE, p=2).tolist() == [0.5]
    assert exact_distance(on_line(0.0), on_line(0.25), LINE, p=math.inf).tolist() == [1.0]


def test_shapes_of_different_euler_characteristic_differ_up_to_the_end_of_the_range():
    assert exact_distance(on_line(0.0), on_line(0.0, 0.0), LINE, p=1, radius=5).tolist() == [5.0]


def test_heights_below_the_range_are_clamped_and_those_above_do_not_count():
    assert exact_distance(on_line(-9.0, 9.0), on_line(0.0), LINE, p=1, radius=2).tolist() == [2.0]


def test_curves_do_not_depend_on_the_order_of_equal_heights():
    """Ties included: a single height has no length."""
    assert exact_distance(on_line(0.1, 0.1, 0.3), on_line(0.3, 0.1, 0.1), LINE, p=math.inf).tolist() == [0.0]


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("lattice", [False, True])
def test_the_exact_distance_equals_brute_force_between_all_heights(p, lattice, rng):
    for _ in range(5):
        a, b = pair(rng, lattice=lattice, weighted=not lattice)
        directions = torch.tensor([[1.0, 0.0], [1.0, 1.0], [-2.0, 1.0]], dtype=torch.float64)
        sums = []
        for direction in directions:
            cuts = torch.cat([x.points @ direction for x in (a, b)] + [torch.tensor([-1.3, 1.3])]).clamp(-1.3, 1.3).unique()
            middles = (cuts[1:] + cuts[:-1]) / 2
            gaps = (counted(a, direction[None], middles) - counted(b, direction[None], middles)).abs()[0, 0]
            sums.append(gaps.max() if math.isinf(p) else (gaps**p * cuts.diff()).sum())
        expected = max(sums) if math.isinf(p) else (sum(sums) / 3) ** (1 / p)
        torch.testing.assert_close(exact_distance(a, b, directions, p=p, radius=1.3), expected[None])


@pytest.mark.parametrize("p", POWERS)
def test_distances_of_transforms_equal_a_loop_over_differences(p, rng):
    a, b = (torch.tensor(rng.integers(-3, 4, (n, 2, 5))).double() for n in (4, 3))
    thresholds = torch.tensor([-1.0, -0.5, -0.5, 0.2, 1.0], dtype=torch.float64)
    even, widths = np.full(5, 0.2), np.array([0.5, 0.0, 0.7, 0.8, 0.0])
    np.testing.assert_allclose(distance_matrix(a, b, p=p).numpy(), by_hand(a, b, even, p))
    np.testing.assert_allclose(distance_matrix(a, b, p=p, thresholds=thresholds).numpy(), by_hand(a, b, widths, p))
    np.testing.assert_allclose(distance_matrix(a, p=p, thresholds=thresholds).numpy(), by_hand(a, a, widths, p))
    np.testing.assert_allclose(distance(a[:3], b, p=p).numpy(), by_hand(a[:3], b, even, p).diagonal())


@pytest.mark.parametrize("p", POWERS)
def test_with_every_height_among_the_thresholds_transforms_have_the_exact_distance(p, rng):
    a, b = pair(rng, weighted=True)
    direction = directions_for(a, 1)
    heights = torch.cat([(x.points @ direction.T).view(-1) for x in (a, b)])
    thresholds = torch.cat([heights[heights.abs() < 1], torch.tensor([-1.0, 1.0])]).sort().values
    sampled = distance(es.ect(a, direction, thresholds), es.ect(b, direction, thresholds), thresholds, p=p)
    torch.testing.assert_close(exact_distance(a, b, direction, p=p, radius=1), sampled)


# Laws


@pytest.mark.parametrize("p", POWERS)
def test_a_matrix_of_distances_is_a_metric(p, rng):
    """Nearby transforms included, where matrix products lose all digits."""
    base = rng.integers(-1000, 1000, (1, 3, 8)).repeat(12, axis=0)
    transforms = torch.tensor(base + (rng.uniform(size=base.shape) < 0.02) * rng.choice([1, 1e-9], size=base.shape))
    transforms = torch.cat([transforms, transforms[:2], torch.tensor(rng.normal(size=(4, 3, 8)))])
    matrix = distance_matrix(transforms, p=p)
    assert torch.equal(matrix, matrix.T)
    identical = (transforms[:, None] == transforms).all(dim=-1).all(dim=-1)
    assert torch.equal(matrix == 0, identical)
    detours = (matrix[:, :, None] + matrix[None]).amin(dim=1)
    assert bool((matrix <= detours * (1 + 1e-12)).all())
    crossed = distance_matrix(transforms, transforms.clone(), p=p)
    torch.testing.assert_close(crossed, matrix, rtol=1e-9, atol=0)
    torch.testing.assert_close(distance(transforms[:1], transforms, p=p), matrix[0], rtol=1e-9, atol=0)


@pytest.mark.parametrize("p", POWERS)
@given(complex=batches(weighted=True, most=2), seed=seeds)
def test_exact_distances_are_symmetric_and_zero_to_itself(p, complex, seed):
    directions = directions_for(complex, 4, seed)
    assert not exact_distance(complex, complex, directions, p=p).any()
    a, b = complex[0], complex[len(complex) - 1]
    torch.testing.assert_close(exact_distance(a, b, directions, p=p), exact_distance(b, a, directions, p=p))


@pytest.mark.parametrize("p", POWERS)
def test_the_triangle_inequality_holds(p, rng):
    shapes = [random_complex(rng, num_points=n, weighted=True) for n in (4, 6, 7, 5)]
    directions = directions_for(shapes[0], 5)
    d = np.array([[exact_distance(a, b, directions, p=p).item() for a in shapes] for b in shapes])
    assert (d <= (d[:, :, None] + d[None]).min(axis=1) + 1e-12).all()


@pytest.mark.parametrize("p", POWERS)
def test_the_distance_of_a_pair_does_not_depend_on_the_batch(p, generator):
    a, b = (torch.randn(7, 3, 50, generator=generator) for _ in range(2))
    thresholds = es.thresholds(50)
    together = distance(a, b, thresholds, p=p)
    assert torch.equal(together, torch.cat([distance(a[i : i + 1], b[i : i + 1], thresholds, p=p) for i in range(7)]))


def test_one_shape_is_compared_with_many(rng):
    many = es.collate(pair(rng))
    directions = directions_for(many, 3)
    found = exact_distance(many[1], many, directions)
    assert found.shape == (2,)
    assert found[1] == 0
    assert found[0] > 0


def test_many_close_pairs_are_as_exact_as_a_few(generator):
    """Almost all pairs are recomputed from differences: matrix products would lose all digits."""
    transforms = 1000 + 1e-6 * torch.randn(40, 2, 6, generator=generator, dtype=torch.float64)
    expected = by_hand(transforms, transforms, np.full(6, 1 / 6), 2)
    np.testing.assert_allclose(distance_matrix(transforms).numpy(), expected, rtol=1e-6)


PEAK = """
import re, sys
import torch
from pathlib import Path
from eulerscan.analysis.distances import distance_matrix

def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

transforms = torch.randint(0, 9, (400, 10, 100)).float()
distance_matrix(transforms[:2], p=float(sys.argv[1]))
before = peak()
distance_matrix(transforms, p=float(sys.argv[1]))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc, which only Linux has")
@pytest.mark.parametrize("p", [1, 2])
def test_a_matrix_needs_no_memory_for_all_differences(p):
    """400 x 400 differences of 1,000 numbers would take 1.3 GB. In a new process: this one may have a higher peak."""
    found = subprocess.run([sys.executable, "-c", PEAK, str(p)], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 100e3  # in kB


def test_channels_have_distances_too(rng):
    shapes = es.collate(pair(rng))
    values = es.channels(shapes, directions_for(shapes, 3), torch.linspace(-1, 1, 6, dtype=torch.float64))
    assert distance_matrix(values).shape == (2, 2)
    torch.testing.assert_close(distance_matrix(values)[0, 1:], distance(values[:1], values[1:]))


# Gradients


@pytest.mark.parametrize("p", [1, 2])
def test_exact_distances_are_differentiable_although_the_curves_are_not(p, rng):
    a, b = pair(rng, weighted=True)
    directions = directions_for(a, 3).requires_grad_()
    points = a.points.clone().requires_grad_()
    weights = a.packed.weights.clone().requires_grad_()

    def function(points, directions, weights):
        moved = es.Complex(points, a.simplices, weights=weights.split(list(a.counts)))
        return exact_distance(moved, b, directions, p=p)

    torch.autograd.gradcheck(function, [points, directions, weights])


@pytest.mark.parametrize("p", [1, 2])
def test_gradients_vanish_where_shapes_are_equal(p, rng):
    points = torch.tensor(rng.normal(size=(5, 2)), requires_grad=True)
    exact_distance(points, points.detach(), es.directions.circle(3, dtype=torch.float64), p=p).sum().backward()
    assert torch.isfinite(points.grad).all()
    transforms = torch.randn(3, 2, 4, requires_grad=True)
    distance_matrix(transforms, p=p).sum().backward()
    assert torch.isfinite(transforms.grad).all()


# Errors


def test_slips_are_named(rng):
    a, b = torch.zeros(2, 3, 4), torch.zeros(2, 3, 5)
    with pytest.raises(ValueError, match=r"grid.*got \[2, 3, 4\] and \[2, 3, 5\]"):
        distance(a, b)
    with pytest.raises(ValueError, match="a and b must .* got 2 and 3"):
        distance(a, torch.zeros(3, 3, 4))
    with pytest.raises(ValueError, match=r"thresholds must be a torch\.Tensor \[4\]"):
        distance_matrix(a, thresholds=torch.zeros(5))
    with pytest.raises(ValueError, match=r"thresholds must ascend, got 1 before 0\.5 at position 1"):
        distance_matrix(a, thresholds=torch.tensor([0.0, 1.0, 0.5, 2.0]))
    with pytest.raises(ValueError, match="thresholds must be finite, got nan"):
        distance_matrix(a, thresholds=torch.tensor([0.0, 1.0, math.nan, 2.0]))
    with pytest.raises(ValueError, match=r"p must be .* got 0\.5"):
        distance_matrix(a, p=0.5)
    with pytest.raises(ValueError, match="first transforms must be .* got ndarray"):
        distance_matrix(np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="a and b must .* got 2 and 3"):
        exact_distance(torch.zeros(4, 2), torch.zeros(4, 3), es.directions.circle(2))
    with pytest.raises(ValueError, match="radius must be .* got inf"):
        exact_distance(torch.zeros(4, 2), torch.zeros(4, 2), es.directions.circle(2), radius=math.inf)
    with pytest.raises(ValueError, match=r"directions must have shape \[T, 2\]"):
        exact_distance(torch.zeros(4, 2), torch.zeros(4, 2), torch.zeros(3, 3))


def test_nan_directions_give_nan_and_overflow_gives_infinity():
    assert exact_distance(on_line(0.0), on_line(0.25), LINE * math.nan).isnan().all()
    many = torch.zeros(1000, 1, dtype=torch.float64)
    assert exact_distance(many, on_line(0.0), LINE, p=110).isinf().all()
