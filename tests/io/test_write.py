import pytest
import torch

import eulerscan as es
from eulerscan.io import WRITABLE, write
from eulerscan.io.write import MESHES, POINTS

TETRAHEDRON = es.Complex(torch.rand(4, 3), [torch.tensor([[0], [1], [2], [3]])]).closure()
SPHERE = es.Complex(TETRAHEDRON.points, TETRAHEDRON.simplices[:2])
GRAPH = es.Complex(TETRAHEDRON.points, TETRAHEDRON.simplices[:1])
TRIANGLE = torch.tensor([[0], [1], [2]])
DANGLING = es.Complex(torch.rand(4, 3), [torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]]), TRIANGLE])
ISOLATED = es.Complex(torch.rand(4, 3), [torch.tensor([[0, 0, 1], [1, 2, 2]]), TRIANGLE])
CLOUD = es.Complex(torch.rand(7, 3))


def same_transform(one: es.Complex, other: es.Complex) -> None:
    directions, heights = es.directions.fibonacci(9), es.thresholds(12, radius=2.0)
    torch.testing.assert_close(es.ect(one, directions, heights, scale=20.0), es.ect(other, directions, heights, scale=20.0))


@pytest.mark.parametrize(
    ("shape", "extension"),
    [
        *((CLOUD, extension) for extension in (*POINTS, ".ply", ".npz")),
        *((SPHERE, extension) for extension in (*MESHES, ".npz")),
        (GRAPH, ".npz"),
        (TETRAHEDRON, ".npz"),
    ],
)
def test_what_is_written_is_read_back(shape, extension, tmp_path):
    path = tmp_path / f"shape{extension}"
    write(shape, path)
    same_transform(es.read(path), shape)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("extension", POINTS)
def test_points_are_read_back_to_the_bit(extension, dtype, generator, tmp_path):
    """Even if they begin like the names that pandas gives to columns."""
    points = torch.randn(500, 3, dtype=dtype, generator=generator) * 10.0 ** torch.linspace(-30, 3, 500, dtype=dtype)[:, None]
    points[0] = torch.arange(3)
    write(es.Complex(points), tmp_path / f"cloud{extension}")
    assert torch.equal(es.read(tmp_path / f"cloud{extension}", dtype=dtype).points, points)


@pytest.mark.parametrize("extension", [".obj", ".off"])
def test_a_small_mesh_is_read_back_to_the_bit(extension, dtype, generator, tmp_path):
    triangle = es.Complex(1e-9 * torch.rand(3, 3, dtype=dtype, generator=generator), [TRIANGLE]).closure()
    write(triangle, tmp_path / f"small{extension}")
    assert torch.equal(es.read(tmp_path / f"small{extension}", dtype=dtype).points, triangle.points)


@pytest.mark.parametrize("extension", [".csv", ".npy", ".npz", ".ply"])
def test_bfloat16_is_written_as_float32(extension, tmp_path):
    cloud = CLOUD.to(torch.bfloat16)
    write(cloud, tmp_path / f"cloud{extension}")
    assert torch.equal(es.read(tmp_path / f"cloud{extension}").points, cloud.points.float())


@pytest.mark.parametrize(
    ("shape", "name", "text"),
    [
        (CLOUD, "a.txt", r"path must have .*npz, .csv.*got 'a.txt'"),
        (es.collate([CLOUD, CLOUD]), "a.npz", "complex must be .*got 2"),
        (es.Complex(torch.rand(2, 3), weights=[torch.rand(2)]), "a.npz", "complex must be unweighted"),
        (SPHERE, "a.csv", ".csv files cannot hold 2-simplices"),
        (GRAPH, "a.ply", ".ply files cannot hold 1-simplices. Use .npz"),
        (TETRAHEDRON, "a.obj", ".obj files cannot hold 3-simplices"),
        (DANGLING, "a.ply", "would be lost. Use .npz"),
        (ISOLATED, "a.obj", "would be lost. Use .npz"),
        (CLOUD, "a.stl", "must have triangles for .stl files"),
        (es.Complex(torch.rand(3, 4)), "a.ply", "in the plane or in space, got dimension 4"),
        (es.Complex(torch.rand(3, 4)), "a.xyz", "in the plane or in space, got dimension 4"),
    ],
)
def test_what_a_format_cannot_hold_is_named_and_nothing_is_left_behind(shape, name, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        write(shape, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_everything_writable_is_readable():
    assert set(WRITABLE) <= set(es.io.READABLE)
