"""Lattices and what is made of them: MNIST and digits."""

import gudhi
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import eulerscan as es
from eulerscan import datasets
from eulerscan.datasets import mnist
from eulerscan.datasets.pixels import triangulate


def alpha_complex(points: torch.Tensor, alpha: float) -> es.Complex:
    tree = gudhi.AlphaComplex(points=points.tolist(), precision="exact").create_simplex_tree(max_alpha_square=alpha**2)
    levels = [[s for s, _ in tree.get_skeleton(2) if len(s) == size] for size in (2, 3)]
    # gudhi numbers the points in their order.
    return es.Complex(points, [torch.tensor(level).T for level in levels if level])


def transform(shape: es.Complex) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    directions = es.directions.random(9, 2, generator=generator, dtype=torch.float64)
    return es.ect(shape, directions, torch.linspace(-0.9, 0.9, 33, dtype=torch.float64))


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0.1, 1), st.integers(0, 2**31))
def test_a_lattice_is_the_alpha_complex_of_its_pixels(height, width, density, seed):
    mask = torch.rand(1, height, width, generator=torch.Generator().manual_seed(seed)) < density
    shape = triangulate(mask).to(torch.float64)
    assert len(shape.points) == mask.sum()
    if len(shape.points) == 0:
        return
    integers = mask[0].nonzero().double()
    expected = alpha_complex(integers, 0.81).with_points(shape.points)
    assert shape.counts == (*expected.counts, 0, 0)[:3]
    assert torch.equal(transform(shape), transform(expected))
    assert torch.equal(shape.euler_characteristic(), shape.closure().euler_characteristic())


def test_dimensions_nest():
    masks = torch.rand(5, 6, 7, generator=torch.Generator().manual_seed(0)) < 0.7
    points, graphs, meshes = (triangulate(masks, dimension=dimension) for dimension in range(3))
    assert points.rows == ()
    assert torch.equal(points.points, meshes.points)
    assert torch.equal(graphs.simplices[0], meshes.simplices[0])
    for i in range(5):
        assert torch.equal(triangulate(masks[i : i + 1]).packed.simplices, meshes[i].packed.simplices)


def test_x_is_to_the_right_and_y_is_up():
    mask = torch.zeros(1, 3, 5, dtype=torch.bool)
    mask[0, 0, 4] = mask[0, 2, 0] = True
    assert triangulate(mask).points.tolist() == [[0.5, 0.5], [-0.5, -0.5]]


@pytest.fixture(scope="module")
def images():
    return {}


@pytest.fixture
def mnist_images(mirror, images):
    """Read once."""
    if not images:
        images["all"] = mnist.read()
    return images["all"]


def test_mnist_is_as_its_source_says(mnist_images):
    pixels, labels, splits = mnist_images
    assert pixels.shape == (70000, 28, 28)
    assert torch.bincount(labels[:60000]).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert torch.bincount(labels[60000:]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert {name: (int(i[0]), int(i[-1])) for name, i in splits.items()} == {
        "train": (5000, 59999),
        "val": (0, 4999),
        "test": (60000, 69999),
    }
    assert int((pixels > 0).sum()) == 10505375


def test_mnist_meshes_are_the_delaunay_complexes_of_the_paper(mnist_images):
    pixels, _, _ = mnist_images
    chosen = torch.arange(0, 70000, 3001)
    meshes = mnist.shapes_of(pixels[chosen], "meshes").to(torch.float64)
    found = transform(meshes)
    for i in range(len(chosen)):
        expected = alpha_complex(meshes[i].points, 0.03)  # in the units of the paper, where squares are not quite square
        assert meshes[i].counts == expected.counts
        assert torch.equal(found[i], transform(expected)[0])


def test_mnist_comes_in_pieces_and_is_one(mnist_images, monkeypatch):
    pixels = mnist_images[0][:50]
    whole = mnist.shapes_of(pixels, "meshes")
    monkeypatch.setattr(mnist, "CHUNK", 7)
    pieces = mnist.shapes_of(pixels, "meshes")
    assert torch.equal(whole.packed.simplices, pieces.packed.simplices)
    assert torch.equal(whole.offsets, pieces.offsets)
    assert whole.packed.simplices.dtype == torch.int32
    assert mnist.shapes_of(pixels, "points").rows == ()
    assert whole.points.abs().max() <= 0.5


@pytest.mark.parametrize("form", ["points", "graphs", "meshes"])
def test_digits_are_their_bright_pixels(form):
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    dataset = datasets.load("digits", form=form, threshold=5)
    images = torch.from_numpy(load_digits().images)
    assert dataset.shapes.rows == {"points": (), "graphs": (2,), "meshes": (2, 3)}[form]
    assert dataset.shapes.offsets[0].diff().tolist() == (images > 5).sum(dim=(1, 2)).tolist()
    assert (len(dataset), dataset.classes) == (1797, tuple("0123456789"))
    assert len(dataset.splits["test"]) == 359


def test_most_digits_have_the_holes_that_one_expects():
    pytest.importorskip("sklearn")
    dataset = datasets.load("digits")
    expected = torch.tensor([0, 1, 1, 1, 1, 1, 0, 1, -1, 0])[dataset.labels]
    assert (dataset.shapes.euler_characteristic() == expected).double().mean() > 0.8


def test_pixels_are_weighted_by_their_brightness():
    load_digits = pytest.importorskip("sklearn.datasets").load_digits
    dataset = datasets.load("digits", form="pixels")
    image = torch.from_numpy(load_digits().images[7]).float() / 16
    shape, _ = dataset[7]
    assert shape.counts == (64, 2 * 7 * 8 + 49, 2 * 49)
    vertices, edges, triangles = shape.weights
    assert torch.equal(vertices, image.view(-1))
    for weights, columns in zip((edges, triangles), shape.simplices, strict=True):
        assert torch.equal(weights, image.view(-1)[columns].amax(dim=0))
