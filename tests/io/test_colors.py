"""Values of vertices as colors in files."""

import numpy as np
import pytest
import torch
import trimesh

import eulerscan as es
from eulerscan.io.colors import COLORED, vertex_colors, write_colored

TETRAHEDRON = es.Complex(
    torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), [torch.tensor([[0, 0, 0, 1], [1, 1, 2, 2], [2, 3, 3, 3]])]
).closure()
VALUES = torch.tensor([0.0, 1.0, 2.0, 9.0])


def test_colors_run_from_gray_to_red_and_end_at_the_limits():
    colors = vertex_colors(VALUES, 1.0, 3.0)
    assert colors[0].tolist() == colors[1].tolist() == [217, 217, 217]
    assert colors[2].tolist() == [252, 141, 89]
    assert colors[3].tolist() == [127, 0, 0]


@pytest.mark.parametrize("extension", COLORED)
def test_other_programs_read_the_colors(extension, tmp_path):
    path = tmp_path / f"a{extension}"
    write_colored(TETRAHEDRON, path, VALUES, low=1.0, high=3.0)
    loaded = trimesh.load(path, process=False, force="mesh")
    assert np.abs(loaded.visual.vertex_colors[:, :3].astype(int) - vertex_colors(VALUES, 1.0, 3.0)).max() <= 1
    np.testing.assert_allclose(loaded.vertices, TETRAHEDRON.points.numpy(), atol=1e-6)
    assert loaded.faces.tolist() == TETRAHEDRON.simplices[1].T.tolist()


def test_ply_holds_the_values_and_is_read_as_the_same_shape(tmp_path):
    path = tmp_path / "a.ply"
    write_colored(TETRAHEDRON, path, VALUES, low=1.0, high=3.0, p_value=VALUES / 10)
    assert es.read(path).counts == TETRAHEDRON.counts
    vertices = trimesh.load(path, process=False).metadata["_ply_raw"]["vertex"]["data"]
    np.testing.assert_array_equal(vertices["value"].ravel(), VALUES.numpy())
    np.testing.assert_array_equal(vertices["p_value"].ravel(), (VALUES / 10).numpy())


def test_bfloat16_is_written_as_float32(tmp_path):
    write_colored(TETRAHEDRON.to(torch.bfloat16), tmp_path / "a.ply", VALUES.bfloat16(), low=1.0, high=3.0)
    assert torch.equal(es.read(tmp_path / "a.ply").points, TETRAHEDRON.points)


def test_outlines_in_the_plane_are_points_of_a_ply(tmp_path):
    path = tmp_path / "a.ply"
    write_colored(es.Complex(torch.rand(4, 2), [torch.tensor([[0], [1]])]), path, VALUES, low=0.0, high=1.0)
    assert es.read(path).counts[0] == 4
    with pytest.raises(ValueError, match="triangles"):
        write_colored(es.Complex(torch.rand(4, 2)), tmp_path / "a.obj", VALUES, low=0.0, high=1.0)


def test_arguments_are_checked(tmp_path):
    for options, message in (
        ({"low": 1.0}, "low"),
        ({"values": VALUES[:3]}, "values"),
        ({"path": tmp_path / "a.stl"}, "extensions"),
    ):
        arguments = {"path": tmp_path / "a.ply", "values": VALUES, "low": 0.0, "high": 1.0, **options}
        with pytest.raises(ValueError, match=message):
            write_colored(TETRAHEDRON, **arguments)
    with pytest.raises(ValueError, match="single"):
        write_colored(es.collate([TETRAHEDRON] * 2), tmp_path / "a.ply", torch.ones(8), low=0.0, high=1.0)
