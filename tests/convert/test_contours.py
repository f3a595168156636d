"""Contours of masks: the topology of the pixels, without their stairs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

import eulerscan as es
from eulerscan.convert.contours import boundary, polygons, region
from eulerscan.convert.cubical import cubes, squares

DIRECTIONS = es.directions.circle(96, dtype=torch.float64)


def disc(size, shift=0.3):
    row, column = np.mgrid[:size, :size]
    center = (size - 1) / 2
    return (row - center - shift) ** 2 + (column - center + shift / 2) ** 2 <= (size / 2 - 1.5) ** 2


@st.composite
def masks(draw):
    """Noise, from sparse to dense, or smooth blobs with holes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.tuples(st.integers(1, 22), st.integers(1, 22)))
    if draw(st.booleans()):
        return ndimage.gaussian_filter(rng.normal(size=size), 1.2) > 0
    return rng.random(size) < draw(st.floats(0, 1))


def exact(complex):
    at = torch.linspace(-30, 30, 181, dtype=torch.float64)
    return es.ect(complex.to(torch.float64), DIRECTIONS, at)


@pytest.mark.parametrize("size", [16, 31, 64, 127, 256, 1024])
def test_a_disc_of_any_size_has_euler_characteristic_one_from_everywhere(size):
    found = region(polygons(disc(size)))
    curves = es.ECTConfig(360, 256).transform(found.to(torch.float64))
    assert curves.unique().tolist() == [0, 1]
    assert len(found.points) < 8 * size ** (2 / 3)  # the vertices of a digital convex set


def test_a_disc_of_pixels_has_stairs():
    curves = es.ECTConfig(360, 256).transform(squares(disc(256)[None]).to(torch.float64))
    assert curves.max() > 10


@given(masks())
def test_components_and_holes_are_those_of_the_pixels(mask):
    found = polygons(mask)
    assert len(found) == ndimage.label(mask, np.ones((3, 3)))[1]
    assert sum(len(polygon.holes) for polygon in found) == ndimage.label(~np.pad(mask, 1))[1] - 1
    pixels = es.convert.from_images(mask[None], outline="pixels")
    assert region(found).euler_characteristic().tolist() == (pixels.euler_characteristic().tolist() if mask.any() else [0])
    assert boundary(found).euler_characteristic().tolist() == [0]


@given(masks())
def test_the_contour_separates_foreground_and_background(mask):
    """Twice the area of the triangles is at most that of the pixels grown to their neighbors, and every center is inside."""
    found = polygons(mask)
    for polygon in found:
        assert len(np.unique(polygon.outer, axis=0)) == len(polygon.outer) >= 3
    rings = [(ring, sign) for p in found for ring, sign in [(p.outer, 1), *((hole, -1) for hole in p.holes)]]
    inside = np.zeros(mask.shape, np.int64)
    for row, column in np.ndindex(*mask.shape):
        inside[row, column] = sum(sign * winds(ring, row, column) for ring, sign in rings)
    assert ((inside > 0) == mask).all()


def winds(ring, row, column):
    """Whether a point is inside a ring, by counting crossings of a ray."""
    (y, x), (next_y, next_x) = ring.T, np.roll(ring, -1, axis=0).T
    crosses = (y > row) != (next_y > row)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = x + (row - y) * (next_x - x) / (next_y - y)
    return int(np.count_nonzero(crosses & (at > column)) % 2)


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 18), st.integers(1, 18), st.floats(0, 1))
def test_few_triangles_give_the_transform_of_all_pixels(seed, count, height, width, share):
    mask = np.random.default_rng(seed).random((count, height, width)) < share
    few, all_pixels = squares(mask), cubes(mask)
    assert torch.equal(few.euler_characteristic(), all_pixels.euler_characteristic())
    assert torch.equal(exact(few), exact(all_pixels))
    lattice = torch.arange(-40, 41, dtype=torch.float64) / 2  # heights of corners in these directions: ties
    axes = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [1, -1]], dtype=torch.float64)
    ties = [es.ect(complex.to(torch.float64), axes, lattice) for complex in (few, all_pixels)]
    assert torch.equal(*ties)
    smooth = [es.ect(complex.to(torch.float64), DIRECTIONS, lattice, scale=2.0) for complex in (few, all_pixels)]
    torch.testing.assert_close(*smooth, rtol=0, atol=1e-9)
    assert few.closure().counts == few.counts


def test_the_size_of_a_filled_mask_is_that_of_its_outline():
    small, large = squares(np.ones((1, 50, 500), dtype=bool)), squares(np.ones((1, 50, 5000), dtype=bool))
    assert small.counts == large.counts


def test_gray_values_place_the_contour_between_pixels():
    ramp = np.clip(np.arange(40) / 4 - 4.1, 0, 1)[None].repeat(40, axis=0)  # 0.5 is crossed at column 18.4
    [polygon] = polygons(ramp > 0.5, ramp, 0.5)
    assert abs(polygon.outer[:, 1].min() - 18.4) <= 0.5


def test_large_images_have_contours_and_small_ones_pixels():
    assert len(es.convert.from_image(disc(64)).points) < 100
    assert len(es.convert.from_image(disc(48)).points) > 100
    assert len(es.convert.from_image(disc(64), outline="pixels").points) > 150
    assert es.convert.from_image(disc(64), outline="contour", filled=False).max_dim == 1


def test_the_contour_of_a_volume_is_a_smooth_closed_surface():
    i, j, k = np.mgrid[:56, :56, :56] - 27.5
    ball = i**2 + j**2 + k**2 < 22**2
    surface = es.convert.from_image(ball)
    assert surface.euler_characteristic().tolist() == [2]
    curves = es.ECTConfig(64, 64).transform(surface.to(torch.float64))
    assert curves.abs().max() <= 3
    norms = (surface.points - 27.5).norm(dim=1)
    assert norms.min() > 21
    assert norms.max() < 22.5


SPECKS = np.zeros((9, 12), dtype=bool)
SPECKS[1:6, 1:6] = True
SPECKS[3, 3] = False
SPECKS[7, 9:11] = True
SPECKS[1, 10] = True


@pytest.mark.parametrize(
    ("options", "euler"),
    [
        ({}, 2),
        ({"fill_holes": True}, 3),
        ({"largest_component": True}, 0),
        ({"largest_component": True, "fill_holes": True}, 1),
        ({"min_size": 2}, 1),
        ({"min_size": 3, "fill_holes": True}, 1),
    ],
)
@pytest.mark.parametrize("outline", ["pixels", "contour"])
def test_masks_are_cleaned(options, euler, outline):
    assert es.convert.from_image(SPECKS, outline=outline, **options).euler_characteristic().tolist() == [euler]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.6])
@pytest.mark.parametrize("blur", [None, 0.0, 0.7])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float64])
def test_surfaces_of_volumes_are_cleaned_at_any_threshold(threshold, blur, dtype):
    grid = np.stack(np.mgrid[:24, :24, :24])

    def ball(center, radius):
        return ((grid - center) ** 2).sum(axis=0) < radius**2

    white = 255 if dtype == np.uint8 else 1
    two, hollow = ((mask * white).astype(dtype) for mask in (ball(7, 5) | ball(18, 3), ball(11, 9) & ~ball(11, 4)))
    for volume, clean in ((two, {"largest_component": True}), (two, {"min_size": 300}), (hollow, {"fill_holes": True})):
        surface = es.convert.from_image(volume, threshold=threshold, blur=blur, outline="contour", **clean)
        assert surface.euler_characteristic().tolist() == [2]


@pytest.mark.parametrize("options", [{"resize": 100}, {"resize": 37, "outline": "pixels"}])
def test_resizing_keeps_place_and_size(options):
    large = disc(400, shift=0)
    small = es.convert.from_image(large, **options).points
    full = es.convert.from_image(large, outline=options.get("outline", "auto")).points
    pixel = 400 / options["resize"]
    torch.testing.assert_close(small.amax(dim=0), full.amax(dim=0), rtol=0, atol=pixel)
    torch.testing.assert_close(small.amax(dim=0) + small.amin(dim=0), full.amax(dim=0) + full.amin(dim=0), rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"outline": "smooth"}, ValueError, "outline.*got 'smooth'"),
        ({"outline": "contour", "weighted": True}, ValueError, "outline.*weighted"),
        ({"filled": False}, ValueError, "filled.*got false"),
        ({"blur": -1.0}, ValueError, "blur.*got -1"),
        ({"resize": 0}, ValueError, "resize.*got 0"),
        ({"min_size": 1.5}, TypeError, "min_size.*got float"),
        ({"fill_holes": 1}, TypeError, "fill_holes.*got 1"),
    ],
)
def test_wrong_options_are_named(options, error, text):
    with pytest.raises(error, match=text):
        es.convert.from_image(disc(20), **options)


def test_numbers_of_numpy_are_options():
    options = {"min_size": np.int64(2), "resize": np.int32(10), "blur": np.float32(1), "threshold": np.float64(0.4)}
    expected = {"min_size": 2, "resize": 10, "blur": 1.0, "threshold": 0.4}
    found, same = (es.convert.from_image(disc(20), **given) for given in (options, expected))
    assert torch.equal(found.points, same.points)


@pytest.mark.parametrize("size", [1, 60])
def test_one_pixel_all_foreground_and_all_background(size):
    one = np.zeros((size, size), dtype=bool)
    one[size // 2, size // 2] = True
    assert es.convert.from_image(one).euler_characteristic().tolist() == [1]
    assert es.convert.from_image(np.ones((size, size), dtype=bool)).euler_characteristic().tolist() == [1]
    with pytest.raises(ValueError, match="no foreground"):
        es.convert.from_image(np.zeros((size, size), dtype=bool))
