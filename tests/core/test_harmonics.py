"""Quadratures, harmonics, and the power spectrum of the transform."""

import math

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import rotations
from eulerscan.directions import circle, fibonacci, quadrature, quadrature_size
from eulerscan.harmonics import coefficients, degrees, harmonics, projection, quadrature_degree
from eulerscan.variants import direction_spectrum, power_spectrum


def monomial_mean(*powers):
    """The mean of x^a y^b z^c over the sphere, or of x^a y^b over the circle."""
    if any(power % 2 for power in powers):
        return 0.0
    numerator = math.prod(math.gamma((power + 1) / 2) for power in powers) / math.pi ** (len(powers) / 2)
    return numerator * math.gamma(len(powers) / 2) / math.gamma((sum(powers) + len(powers)) / 2)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("degree", [0, 1, 2, 5, 8, 13])
def test_a_quadrature_integrates_all_monomials_up_to_its_degree(degree, dim):
    nodes, weights = quadrature(degree, dim, dtype=torch.float64)
    assert (weights > 0).all()
    torch.testing.assert_close(nodes.norm(dim=1), torch.ones(len(nodes), dtype=torch.float64))

    def error(*powers):
        values = math.prod(nodes[:, axis] ** power for axis, power in enumerate(powers))
        return abs(float(weights @ values) - monomial_mean(*powers))

    exponents = list(np.ndindex(*[degree + 3] * dim))
    assert max(error(*powers) for powers in exponents if sum(powers) <= degree) < 1e-14
    assert max(error(*powers) for powers in exponents if degree < sum(powers) <= degree + 2) > 1e-6


def test_degrees_and_lags_may_be_numbers_of_numpy():
    nodes = quadrature(np.int64(4)).directions
    assert torch.equal(nodes, quadrature(4).directions)
    transform = torch.rand(2, len(nodes), 5)
    assert torch.equal(power_spectrum(transform, nodes, lag=np.int64(1)), power_spectrum(transform, nodes, lag=1))


def test_transforms_of_integers_have_the_coefficients_of_the_same_floats():
    nodes = quadrature(6).directions
    transform = torch.arange(2 * len(nodes) * 5).reshape(2, len(nodes), 5) % 7
    assert torch.equal(coefficients(transform, nodes), coefficients(transform.float(), nodes))
    assert torch.equal(power_spectrum(transform, nodes), power_spectrum(transform.float(), nodes))


def test_a_quadrature_in_the_plane_is_the_circle():
    nodes, weights = quadrature(7, 2)
    assert torch.equal(nodes, circle(8))
    assert torch.equal(weights, torch.full((8,), 1 / 8))


def test_spherical_harmonics_are_those_of_scipy():
    special = pytest.importorskip("scipy.special")
    nodes = es.directions.random(40, 3, torch.Generator().manual_seed(0), dtype=torch.float64)
    polar, azimuth = nodes[:, 2].clamp(-1, 1).acos().numpy(), torch.atan2(nodes[:, 1], nodes[:, 0]).numpy()
    wanted = []
    for n in range(9):
        for m in range(n + 1):
            value = (-1) ** m * math.sqrt(4 * math.pi) * special.sph_harm_y(n, m, polar, azimuth)
            wanted += [value.real] if m == 0 else [math.sqrt(2) * value.real, math.sqrt(2) * value.imag]
    torch.testing.assert_close(harmonics(nodes, 8), torch.tensor(np.stack(wanted, axis=1)))


def test_harmonics_in_the_plane_are_a_fourier_series():
    angle = torch.linspace(0, 6, 11, dtype=torch.float64)
    found = harmonics(torch.stack([angle.cos(), angle.sin()], dim=1), 3)
    pairs = [f for m in (1, 2, 3) for f in (math.sqrt(2) * (m * angle).cos(), math.sqrt(2) * (m * angle).sin())]
    torch.testing.assert_close(found, torch.stack([torch.ones_like(angle), *pairs], dim=1))


@pytest.mark.parametrize(("dim", "degree"), [(2, 0), (2, 9), (3, 0), (3, 4), (3, 12)])
def test_harmonics_are_orthonormal(dim, degree):
    nodes, weights = quadrature(2 * degree, dim, dtype=torch.float64)
    values = harmonics(nodes, degree)
    assert values.shape[1] == len(degrees(degree, dim)) == ((degree + 1) ** 2 if dim == 3 else 2 * degree + 1)
    torch.testing.assert_close(values.T @ (weights[:, None] * values), torch.eye(values.shape[1], dtype=torch.float64))


@pytest.mark.parametrize("dim", [2, 3])
def test_rotations_mix_only_harmonics_of_one_degree(dim):
    nodes = quadrature(10, dim, dtype=torch.float64).directions
    rotation = rotations.random(1, dim, torch.Generator().manual_seed(0))[0]
    matrix = coefficients(harmonics(nodes @ rotation.T, 5), nodes)  # of rotated harmonics in the harmonics
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(len(matrix), dtype=torch.float64))
    degree = degrees(5, dim)
    assert float(matrix[degree[:, None] != degree].abs().max()) < 1e-12


@pytest.mark.parametrize("dim", [2, 3])
def test_a_sum_of_harmonics_has_its_coefficients_back_and_their_power(dim, generator):
    nodes = quadrature(8, dim, dtype=torch.float64).directions
    wanted = torch.randn(2, len(degrees(4, dim)), 6, generator=generator, dtype=torch.float64)
    transform = harmonics(nodes, 4) @ wanted
    torch.testing.assert_close(coefficients(transform, nodes), wanted)
    power = torch.stack([wanted[:, degrees(4, dim) == n].square().sum(dim=1) for n in range(5)], dim=1)
    torch.testing.assert_close(power_spectrum(transform, nodes), power)
    torch.testing.assert_close(power_spectrum(transform, nodes, degree=2), power[:, :3])
    cross = torch.stack([(wanted[..., :-2] * wanted[..., 2:])[:, degrees(4, dim) == n].sum(dim=1) for n in range(5)], dim=1)
    torch.testing.assert_close(power_spectrum(transform, nodes, lag=2), cross)


def test_the_power_of_a_point_is_that_of_legendre_polynomials():
    """A soft curve of one point is a function of the angle to it, whose power has a formula of one integral a degree."""
    nodes = quadrature(40, dtype=torch.float64).directions
    grid = es.thresholds(5, dtype=torch.float64)
    power = power_spectrum(es.ect(torch.tensor([[0.3, -0.6, 0.2]], dtype=torch.float64), nodes, grid, scale=4.0), nodes)[0]
    x, weights = np.polynomial.legendre.leggauss(200)
    curves = 1 / (1 + np.exp(-4.0 * (grid.numpy()[:, None] - 0.7 * x)))
    for n in range(8):
        integral = (curves * np.polynomial.legendre.Legendre.basis(n)(x)) @ weights / 2
        torch.testing.assert_close(power[n], torch.tensor((2 * n + 1) * integral**2))


@pytest.mark.parametrize("dim", [2, 3])
def test_the_power_of_a_soft_transform_does_not_change_under_rotation(dim, generator):
    grid, points = es.thresholds(12), torch.randn(9, dim, generator=generator)
    rotation = rotations.random(1, dim, generator)[0].float()
    cloud = es.Complex(points).normalized("unit_ball")

    def change(shape, degree, scale=5.0):
        nodes = quadrature(degree, dim).directions
        rotated = shape.with_points(shape.points @ rotation.T)
        one, other = (power_spectrum(es.ect(s, nodes, grid, scale=scale), nodes)[:, :6] for s in (shape, rotated))
        return float((one - other).abs().max() / one.abs().max())

    assert change(cloud, 30) < 1e-5
    assert change(cloud, 10, scale=math.inf) > 1e-2  # steps have all degrees
    path = es.Complex(cloud.points, [torch.stack([torch.arange(8), torch.arange(1, 9)])])
    assert change(path, 40) < 2e-3  # the higher end of an edge changes at once, which leaves a kink
    assert change(path, 40) < change(path, 10)


def test_in_the_plane_power_is_the_squared_magnitude_of_the_fourier_coefficients(generator):
    transform = torch.randn(3, 9, 4, generator=generator, dtype=torch.float64)
    magnitudes = direction_spectrum(transform).square() / 9
    magnitudes[:, 1:] *= 2  # of positive and negative frequencies
    torch.testing.assert_close(power_spectrum(transform, circle(9, dtype=torch.float64)), magnitudes)


def test_rotated_quadratures_are_quadratures():
    nodes = quadrature(6).directions @ rotations.random(1, 3)[0].float()
    assert projection(nodes).shape == (16, 28)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: projection(fibonacci(29)), r"directions.*got 29, which no quadrature has.*quadrature\(6\)"),
        (lambda: projection(fibonacci(28)), r"directions.*got 28 others"),
        (lambda: projection(circle(8).flip(1), 4), r"degree 8 exactly, got 8 for degree 7.*quadrature\(8, dim=2\)"),
        (lambda: coefficients(torch.zeros(2, 27, 5), quadrature(6).directions), r"\[..., 28, H\].*got \[2, 27, 5\]"),
        (lambda: power_spectrum(torch.zeros(1, 28, 5), quadrature(6).directions, lag=5), "lag must be at most 4, got 5"),
        (lambda: quadrature(-1), "degree.*got -1"),
        (lambda: quadrature(2.0), "degree.*got float"),
        (lambda: quadrature(2, 4), "dim must be 2 or 3.*got 4"),
    ],
)
def test_what_is_no_quadrature_is_named(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call()


def test_the_power_spectrum_has_gradients(generator):
    nodes = quadrature(4, dtype=torch.float64).directions
    points = torch.randn(3, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    grid = es.thresholds(3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p: power_spectrum(es.ect(p, nodes, grid, scale=3.0), nodes, lag=1), points)


def test_autocast_does_not_round_coefficients():
    quadrature = es.directions.quadrature(6, 3)
    transform = torch.rand(2, len(quadrature.directions), 5)
    expected = power_spectrum(transform, quadrature.directions)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = power_spectrum(transform, quadrature.directions)
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


def test_spectra_of_nothing_are_zero_or_empty():
    assert torch.equal(direction_spectrum(torch.empty(2, 0, 3)), torch.zeros(2, 1, 3))
    assert power_spectrum(torch.empty(2, 28, 0), quadrature(6).directions).shape == (2, 4, 0)
    with pytest.raises(ValueError, match="transform must have shape"):
        power_spectrum(torch.tensor(1.0), quadrature(6).directions)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_smallest_quadrature_for_a_number_of_directions(dim):
    for count in range(1, 200):
        degree = quadrature_degree(count, dim)
        assert quadrature_size(degree, dim) >= count
        assert degree == 0 or quadrature_size(degree - 1, dim) < count
    assert quadrature_degree(10**15, dim) > 10**7  # at once
