"""Pictures against a count over their cubical cells, which knows nothing of triangulations."""

import itertools

import gudhi
import numpy as np
import pytest
import torch
from PIL import Image

import eulerscan as es
from eulerscan.convert import from_image, from_images

SHAPES = [(1, 1), (4, 5), (7, 3), (1, 6), (3, 3, 3), (2, 4, 3), (1, 1, 5)]


def cells_of(array: np.ndarray, threshold: float) -> dict[tuple, float]:
    """The cells of the cubical complex, each a product of points and intervals, and the largest pixel that has it.

    A cell is named by twice its centre: even numbers are centres of pixels, odd ones the faces between.
    """
    cells: dict[tuple, float] = {}
    for pixel in np.argwhere(array > threshold):
        for step in itertools.product((-1, 0, 1), repeat=array.ndim):
            cell = tuple((2 * pixel + step).tolist())
            cells[cell] = max(cells.get(cell, -np.inf), float(array[tuple(pixel)]))
    return cells


def counted(array, directions, heights, threshold, *, weighted):
    """The transform of the cubical complex, cell by cell, in whole numbers: everything is measured twice."""
    result = np.zeros((1, len(directions), len(heights)))
    for cell, value in cells_of(array, threshold).items():
        spread = [(c,) if c % 2 else (c - 1, c + 1) for c in cell]
        corners = np.array(list(itertools.product(*spread)))
        if array.ndim == 2:
            corners = np.stack([corners[:, 1], -corners[:, 0]], axis=1)
        sign = (-1) ** sum(len(s) == 2 for s in spread)
        for i, direction in enumerate(directions):
            top = (corners @ direction).max()
            result[0, i] += sign * (value if weighted else 1.0) * (top <= 2 * heights)
    return torch.tensor(result)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_triangulated_cells_have_the_transform_of_the_cubical_complex(shape, weighted):
    """At every height where something happens, ties included: lattice directions make all arithmetic exact."""
    rng = np.random.default_rng(sum(shape))
    for _ in range(4):
        array = rng.integers(0, 4, shape) / 4
        directions = rng.integers(-3, 4, (6, len(shape)))
        heights = np.arange(-80, 80) / 2
        if (array > 0.25).any():
            complex = from_image(array, threshold=0.25, weighted=weighted).to(torch.float64)
            found = es.ect(complex, torch.tensor(directions).double(), torch.tensor(heights))
            assert torch.equal(found, counted(array, directions, heights, 0.25, weighted=weighted))


@pytest.mark.parametrize("shape", [(5, 4), (3, 2, 3)])
def test_the_smooth_transform_is_that_of_the_cubical_complex_too(shape):
    array = np.random.default_rng(0).random(shape)
    complex = from_image(array, weighted=True).to(torch.float64)
    directions = es.directions.random(5, len(shape), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    thresholds = torch.linspace(-4, 4, 9, dtype=torch.float64)
    expected = torch.zeros(1, 5, 9, dtype=torch.float64)
    for cell, value in cells_of(array, 0.0).items():
        spread = [(c / 2,) if c % 2 else (c / 2 - 0.5, c / 2 + 0.5) for c in cell]
        corners = torch.tensor(list(itertools.product(*spread)), dtype=torch.float64)
        corners = torch.stack([corners[:, 1], -corners[:, 0]], dim=1) if len(shape) == 2 else corners
        top = (corners @ directions.T).amax(dim=0)
        expected += (-1) ** sum(len(s) == 2 for s in spread) * value * torch.sigmoid(6.0 * (thresholds - top[:, None]))
    torch.testing.assert_close(es.ect(complex, directions, thresholds, scale=6.0), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("shape", [(20, 30), (9, 8, 7)])
def test_cells_have_the_euler_characteristic_that_gudhi_says(shape):
    array = np.random.default_rng(1).random(shape)
    cubical = gudhi.CubicalComplex(top_dimensional_cells=1 - array)  # sublevel sets
    cubical.compute_persistence()
    betti = cubical.persistent_betti_numbers(0.4, 0.4)
    expected = sum((-1) ** i * b for i, b in enumerate(betti))
    assert from_image(array, threshold=0.6).euler_characteristic().tolist() == [expected]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_pixels_as_vertices_are_joined_by_the_freudenthal_triangulation(shape, weighted):
    """All simplices of lattice points that ascend by steps of 0 and 1, where all of them are foreground."""
    array = np.random.default_rng(sum(shape)).integers(0, 3, shape) / 2
    array.flat[0] = 1.0
    places = [tuple(p) for p in np.argwhere(array > 0.25).tolist()]
    above = {p: [q for q in places if q != p and all(0 <= b - a <= 1 for a, b in zip(p, q, strict=True))] for p in places}
    simplices = {1: [(p,) for p in places]}
    for size in range(2, len(shape) + 2):
        simplices[size] = [(*s, q) for s in simplices[size - 1] for q in above[s[-1]] if size == 2 or q in above[s[0]]]
    complex = from_image(array, threshold=0.25, weighted=weighted, pixels="vertices")
    points = complex.points if len(shape) == 3 else torch.stack([-complex.points[:, 1], complex.points[:, 0]], dim=1)
    names = [tuple(p) for p in points.int().tolist()]
    levels = [torch.arange(len(names))[None], *complex.simplices]
    for i, (size, level) in enumerate(zip(simplices, levels, strict=True)):
        found = {frozenset(names[v] for v in column): j for j, column in enumerate(level.T.tolist())}
        assert found.keys() == {frozenset(s) for s in simplices[size]}
        assert len(found) == level.shape[1]
        if weighted:
            assert all(complex.weights[i][j] == max(array[p] for p in s) for s, j in found.items())


def test_an_image_stands_upright():
    image = np.zeros((3, 4), dtype=np.uint8)
    image[2, 1] = 255
    assert from_image(image, pixels="vertices").points.tolist() == [[1, -2]]
    corners = from_image(image).points
    assert sorted(corners.tolist()) == [[0.5, -2.5], [0.5, -1.5], [1.5, -2.5], [1.5, -1.5]]


def test_a_volume_keeps_its_axes_and_spacing_stretches_them():
    volume = np.zeros((2, 3, 4))
    volume[1, 2, 3] = 1.0
    assert from_image(volume, pixels="vertices", spacing=(1.0, 2.0, 0.5)).points.tolist() == [[1, 4, 1.5]]
    assert from_image(volume, pixels="vertices", spacing=2.0).points.tolist() == [[2, 4, 6]]
    image = np.zeros((3, 4))
    image[1, 3] = 1.0
    assert from_image(image, pixels="vertices", spacing=(10.0, 1.0)).points.tolist() == [[3, -10]]


@pytest.mark.parametrize(
    ("image", "count"),
    [
        (np.array([[127, 128, 255]], dtype=np.uint8), 2),
        (np.array([[32767, 32768, 65535]], dtype=np.uint16), 2),
        (np.array([[False, True, True]]), 2),
        (np.array([[0, 1, 1]]), 2),
        (np.array([[-1000, 0, 300]], dtype=np.int16), 1),
        (np.array([[0.5, 0.51, -1.0]], dtype=np.float32), 1),
        (torch.tensor([[0, 200, 255]], dtype=torch.uint8), 2),
        (torch.tensor([[0.5, 0.75, -1.0]], dtype=torch.bfloat16), 1),
    ],
)
def test_values_are_scaled_by_the_range_of_unsigned_types(image, count):
    assert len(from_image(image, pixels="vertices").points) == count


def test_a_pixel_on_the_threshold_is_background():
    image = np.array([[51, 52]], dtype=np.uint8)
    assert len(from_image(image, threshold=51 / 255, pixels="vertices").points) == 1


def test_weights_are_intensities_and_black_is_left_out():
    image = np.array([[0, 51, 255]], dtype=np.uint8)
    complex = from_image(image, weighted=True, pixels="vertices")
    torch.testing.assert_close(complex.weights[0], torch.tensor([0.2, 1.0]))
    torch.testing.assert_close(complex.weights[1], torch.tensor([1.0]))
    assert len(from_image(image, weighted=True, threshold=0.5, pixels="vertices").points) == 1


def assert_same(one, other):
    assert torch.equal(one.points, other.points)
    assert torch.equal(one.packed.simplices, other.packed.simplices)
    assert (one.packed.weights is None) == (other.packed.weights is None)
    assert one.packed.weights is None or torch.equal(one.packed.weights, other.packed.weights)


@pytest.mark.parametrize("pixels", ["cells", "vertices"])
@pytest.mark.parametrize("options", [{}, {"threshold": 0.2}, {"weighted": True}, {"weighted": True, "threshold": 0.2}])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.bool_, np.int8, np.float32])
def test_an_inverted_image_is_its_negative(dtype, options, pixels):
    """To the bit, in every way to read one: also of pixels on the threshold."""
    white = np.iinfo(dtype).max if np.dtype(dtype).kind == "u" else 1
    chosen = np.array([0, 1, 2, 4, 5]) / 5 if np.dtype(dtype).kind in "uf" else np.array([0, 1])
    image = (np.random.default_rng(0).choice(chosen, (2, 6, 7)) * white).astype(dtype)
    negative = white - image.astype(np.float64)
    negative = negative if np.dtype(dtype).kind == "f" else negative.astype(dtype)
    assert_same(from_images(image, pixels=pixels, invert=True, **options), from_images(negative, pixels=pixels, **options))
    assert_same(from_image(image, pixels=pixels, invert=True, **options), from_image(negative, pixels=pixels, **options))


def test_the_dark_part_is_the_shape_and_its_darkness_the_weight():
    image = np.array([[255, 204, 0]], dtype=np.uint8)
    assert from_image(image, invert=True, pixels="vertices").points.tolist() == [[2, 0]]
    complex = from_image(image, invert=True, weighted=True, pixels="vertices")
    torch.testing.assert_close(complex.weights[0], torch.tensor([0.2, 1.0]))
    assert len(from_image(image, invert=True, threshold=51 / 255, pixels="vertices").points) == 1
    assert len(from_image(image, invert=True, threshold=0.19, pixels="vertices").points) == 2


def test_the_least_of_signed_integers_is_inverted_without_running_over():
    assert from_image(np.array([[-128, 127]], dtype=np.int8), invert=True, pixels="vertices").points.tolist() == [[0, 0]]


def test_many_images_are_what_they_are_alone():
    rng = np.random.default_rng(0)
    images = rng.random((5, 6, 7))
    images[2] = 0.0
    for pixels, weighted in itertools.product(("cells", "vertices"), (False, True)):
        together = from_images(images, pixels=pixels, weighted=weighted, threshold=0.4)
        assert together.num_complexes == 5
        assert together[2].counts == (0, 0, 0)
        for i in (0, 1, 3, 4):
            alone, item = from_image(images[i], pixels=pixels, weighted=weighted, threshold=0.4), together[i]
            assert torch.equal(alone.points, item.points)
            for one, other in zip(alone.simplices, item.simplices, strict=True):
                assert torch.equal(one, other)
            assert not weighted or torch.equal(alone.packed.weights, item.packed.weights)


def test_blocks_of_images_are_joined_without_a_seam(monkeypatch):
    images = np.random.default_rng(0).random((7, 4, 4))
    whole = from_images(images)
    monkeypatch.setattr("eulerscan.convert.cubical._BLOCK", 35)
    parts = from_images(images)
    assert torch.equal(whole.offsets, parts.offsets)
    assert torch.equal(whole.packed.simplices, parts.packed.simplices)
    assert whole.packed.simplices.dtype == torch.int32


def test_what_is_made_passes_the_checks_of_a_complex():
    images = np.random.default_rng(0).random((3, 5, 4))
    complex = from_images(images, weighted=True)
    again = es.Complex(complex.points, complex.simplices, weights=complex.weights, batch=complex.batch, num_complexes=3)
    assert torch.equal(again.offsets, complex.offsets)
    assert torch.equal(again.packed.simplices, complex.packed.simplices)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3), (0, 2, 2, 2)])
def test_no_images_and_images_without_pixels_are_empty(shape):
    complex = from_images(np.ones(shape))
    assert complex.num_complexes == shape[0]
    assert len(complex.points) == 0


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "I;16", "F", "RGBA", "LA", "CMYK"])
def test_pillow_images_of_every_mode_are_made_gray(mode):
    array = np.zeros((6, 5), dtype=np.uint8)
    array[1:4, 1:4] = 255
    array[2, 2] = 0
    image = Image.fromarray(array)
    image = Image.fromarray(array.astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
    assert image.mode == mode
    assert from_image(image).counts == from_image(array).counts
    assert es.as_complex(image).euler_characteristic().tolist() == [0]


def test_what_is_transparent_is_background():
    image = Image.new("RGBA", (4, 4), (255, 255, 255, 0))
    image.putpixel((1, 1), (255, 255, 255, 255))
    assert from_image(image, pixels="vertices").points.tolist() == [[1, -1]]


def test_what_is_transparent_is_background_of_dark_shapes_too():
    image = Image.new("RGBA", (4, 66), (0, 0, 0, 0))
    for opacity in range(256):  # white on white, in spite of rounding
        image.putpixel((opacity % 4, 2 + opacity // 4), (255, 255, 255, opacity))
    image.putpixel((1, 1), (0, 0, 0, 255))
    image.putpixel((2, 1), (0, 0, 0, 102))
    assert from_image(image, invert=True, pixels="vertices").points.tolist() == [[1, -1]]
    torch.testing.assert_close(
        from_image(image, invert=True, weighted=True, pixels="vertices").weights[0], torch.tensor([1, 0.4])
    )


@pytest.mark.parametrize(
    ("image", "options", "error", "text"),
    [
        (np.zeros((3, 3)), {}, ValueError, "image has no foreground: all pixels are 0."),
        (np.ones((3, 3)), {"invert": True}, ValueError, "no foreground: all pixels of the inverted image are 0"),
        (
            np.array([[0.1, 0.2]]),
            {},
            ValueError,
            "image has no foreground: no pixel is larger than 0.5, got values from 0.1 to 0.2. .*invert",
        ),
        (np.ones((3, 3)), {"invert": "yes"}, TypeError, "invert must be True or False, got 'yes'"),
        (Image.new("RGBA", (3, 3)), {"invert": 1}, TypeError, "invert must be True or False, got 1"),
        (np.zeros((0, 3)), {}, ValueError, "got no pixels"),
        (np.zeros(3), {}, ValueError, r"must have shape \[rows, columns\] or \[i, j, k\], got \[3\]"),
        (np.array([[0.0, np.nan]]), {}, ValueError, r"image must be finite, got nan at \[0, 1\]"),
        (np.array([["a"]]), {}, TypeError, "image must hold real numbers"),
        (np.ones((2, 2)), {"pixels": "squares"}, ValueError, "pixels.*cells, vertices, got 'squares'"),
        (np.ones((2, 2)), {"spacing": (1, 2, 3)}, ValueError, "one for each of the 2 axes"),
        (np.ones((2, 2)), {"spacing": 0.0}, ValueError, "spacing must be one positive number"),
        (np.ones((2, 2)), {"spacing": "0,5"}, TypeError, "spacing must be a number, with a decimal point, .* got '0,5'"),
        (np.ones((2, 2)), {"threshold": "0,5"}, TypeError, "threshold must be a number, with a decimal point, got '0,5'"),
        (np.ones((2, 2)), {"threshold": float("nan")}, ValueError, "threshold must be finite, got nan"),
    ],
)
def test_what_is_no_image_is_named(image, options, error, text):
    with pytest.raises(error, match=text):
        from_image(image, **options)


def test_one_image_where_many_are_wanted_is_named():
    with pytest.raises(ValueError, match=r"images must have shape \[N, rows, columns\] or \[N, i, j, k\], got \[3, 3\]"):
        from_images(np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"images must be finite, got inf at \[0, 0, 1\]"):
        from_images(np.array([[[0.0, np.inf]]]))


def test_on_a_transparent_background_opaque_pixels_are_the_shape_whatever_their_color():
    image = Image.new("RGBA", (4, 4), (255, 255, 255, 0))
    image.putpixel((1, 1), (20, 90, 30, 255))
    image.putpixel((2, 1), (255, 255, 255, 100))
    assert from_image(image, pixels="vertices").points.tolist() == [[1, -1]]
    assert from_image(image, threshold=0.3, pixels="vertices").points.tolist() == [[2, -1]]  # of the brightness
    image.putalpha(255)
    assert len(from_image(image, pixels="vertices").points) == 15


def test_a_transparent_corner_is_no_transparent_background():
    image = Image.new("RGBA", (5, 5), (0, 0, 0, 255))
    image.putpixel((2, 2), (255, 255, 255, 255))
    image.putpixel((0, 0), (0, 0, 0, 0))
    assert from_image(image, pixels="vertices").points.tolist() == [[2, -2]]


def test_the_opacity_counts_on_all_pages_or_on_none(tmp_path):
    pages = [Image.new("RGBA", (5, 5), (0, 0, 0, 0)) for _ in range(3)]
    for page in (pages[0], pages[2]):
        page.putpixel((2, 2), (0, 0, 0, 255))
    pages[1].putalpha(255)
    pages[0].save(tmp_path / "a.tif", save_all=True, append_images=pages[1:])
    assert es.read(tmp_path / "a.tif", pixels="vertices").counts[0] == 27


def test_what_is_transparent_is_background_in_gray_images_too(tmp_path):
    image = Image.fromarray(np.array([[255, 0, 100]], dtype=np.uint8))
    image.save(tmp_path / "a.png", transparency=255)
    assert es.read(tmp_path / "a.png", pixels="vertices").points.tolist() == [[1, 0], [2, 0]]
    with pytest.raises(ValueError, match="no foreground"):
        es.read(tmp_path / "a.png", threshold=0.5)
