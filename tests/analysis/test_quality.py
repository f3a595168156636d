"""What disturbs a comparison of form."""

import numpy as np
import pytest
import torch
import trimesh

import eulerscan as es
from eulerscan.analysis.quality import remarks, unusual_topology
from eulerscan.convert import from_image, from_trimesh


def disc(size=80, holes=0, specks=0, squash=1.0, angle=0.0):
    row, column = np.mgrid[:size, :size] - size / 2
    x, y = column * np.cos(angle) + row * np.sin(angle), row * np.cos(angle) - column * np.sin(angle)
    mask = x**2 + (y / squash) ** 2 < (size * 0.35) ** 2
    for i in range(holes):
        mask[size // 2 - 14 + 4 * (i % 8), size // 2 - 10 + 4 * (i // 8)] = False
    for i in range(specks):
        mask[2, 2 + 3 * i] = True
    return mask


def batch(masks, **options):
    return es.collate([from_image(mask, **options) for mask in masks])


def test_good_shapes_have_no_remarks():
    assert remarks(batch([disc(size) for size in (70, 80, 90, 100, 110)])) == []
    assert remarks(from_trimesh(trimesh.creation.icosphere(2))) == []


@pytest.mark.parametrize(
    ("options", "words"), [({"holes": 12}, "-11, most have 1: many more holes"), ({"specks": 9}, "10, most")]
)
def test_a_shape_with_specks_or_holes_is_named(options, words):
    [remark] = remarks(batch([disc(), disc(), disc(90), disc(**options), disc(100)]), names=list("abcde"))
    assert remark.startswith("d has Euler characteristic ")
    assert words in remark


def test_many_shapes_with_holes_are_not_unusual():
    assert unusual_topology(torch.tensor([1, -11, 1, -13, -9])) == []
    assert unusual_topology(torch.tensor([1, 1])) == []
    assert unusual_topology(torch.tensor([1] * 20 + [3, -40, 9])) == [21, 22]


def test_specks_of_all_shapes_are_noticed():
    [remark] = remarks(batch([disc(90 + i, specks=2 * i) for i in range(5)]))
    assert "from 1 to 9" in remark
    assert "min_size" in remark
    assert remarks(batch([disc(90), disc(90, holes=1), disc(90, holes=2)])) == []  # like digits


def test_stairs_of_pixels_are_recognized_and_contours_are_not():
    masks = [disc(90 + i) for i in range(3)]
    [remark] = remarks(batch(masks, outline="pixels"))
    assert "stairs" in remark
    assert remarks(batch(masks, outline="contour")) == []


def test_different_units_are_a_question():
    [remark] = remarks(es.collate([from_image(disc()), from_image(disc(), spacing=0.001)]), names=["mm", "m"])
    assert remark == "mm is 1000 times as large as m: are their units the same?"


def test_elongated_shapes_in_all_orientations_are_noticed():
    angles = np.linspace(0, np.pi, 7)[:-1]
    [remark] = remarks(batch([disc(squash=0.4, angle=angle) for angle in angles]))
    assert "longest axes" in remark
    assert remarks(batch([disc(squash=0.4, angle=angle) for angle in angles]), orientation=False) == []
    assert remarks(batch([disc(squash=0.4, angle=0.1 * angle) for angle in angles])) == []


def test_open_meshes_are_named():
    ball = trimesh.creation.icosphere(1)
    holed = trimesh.Trimesh(ball.vertices, ball.faces[3:])
    [remark] = remarks(es.collate([from_trimesh(ball), from_trimesh(holed)]), names=["ball", "holed"])
    assert remark == "1 mesh has open edges (holed): gaps count as holes."


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 0, 2]])
@pytest.mark.parametrize("apex", [[0.5, 0, 0], [1e-9, 0, 0], [0, 0, 0]])
def test_degenerate_triangles_are_counted_in_any_order_of_their_corners(order, apex):
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0], apex], dtype=torch.float64)
    [remark] = remarks(es.Complex(points, [torch.arange(3)[order][:, None]]).closure())
    assert "100% of the triangles are degenerate" in remark


def test_a_triangle_whose_corners_coincide_is_degenerate():
    points = torch.tensor([[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 0]])
    [remark] = remarks(es.Complex(points, [torch.tensor([[0], [1], [2]])]).closure())
    assert "100% of the triangles are degenerate" in remark


def test_the_open_one_of_large_meshes_is_named():
    ball = trimesh.creation.icosphere(6)  # two of them have more than 46,341 vertices, whose square is beyond int32
    holed = trimesh.Trimesh(ball.vertices, ball.faces[3:])
    [remark] = remarks(es.collate([from_trimesh(ball), from_trimesh(holed)]), names=["ball", "holed"])
    assert "1 mesh has open edges (holed)" in remark


def test_surfaces_without_edges_and_cells_are_no_error():
    corners = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    triangles = torch.tensor([[0, 0, 0, 1], [1, 1, 2, 2], [2, 3, 3, 3]])
    bare = es.Complex(corners, [triangles])
    assert remarks(es.collate([bare] * 2)) == remarks(es.collate([bare.closure()] * 2))
    square = es.Complex(torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]]), [torch.tensor([[0], [1], [2], [3]])], dims=[2])
    assert not [remark for remark in remarks(square) if "stairs" in remark]


def test_one_light_background_among_masks_is_named():
    rows, columns = np.mgrid[:80, :80]
    masks = [(rows - 40) ** 2 + (columns - 40) ** 2 < radius**2 for radius in range(20, 30)]
    masks += [~masks[0], np.pad(np.ones((40, 60), dtype=bool), 10)]  # the corners of a box are no frame
    shapes = es.collate([from_image(mask) for mask in masks])
    names = [f"{i}.png" for i in range(len(masks))]
    assert "10.png fills its image but for a hole: is the background light?" in remarks(shapes, names)[0]
    assert not any("background" in remark for remark in remarks(shapes[torch.arange(10)], names))


def test_points_along_closed_curves_are_pointed_out():
    angle = torch.arange(40) * (2 * torch.pi / 40)
    ring = torch.stack([angle.cos(), 0.6 * angle.sin()], dim=1)
    mixed = ring[torch.randperm(40, generator=torch.Generator().manual_seed(0))]
    assert any("outline=true" in remark for remark in remarks(es.collate([es.Complex(ring)] * 3)))
    raster = torch.cartesian_prod(torch.arange(12.0), torch.arange(12.0))
    line = torch.stack([torch.linspace(0, 1, 30), torch.linspace(0, 1, 30).square()], dim=1)
    outlier = torch.randn(40, 2, generator=torch.Generator().manual_seed(1))
    outlier[0] *= 12
    for points in (mixed, raster, line, outlier):
        assert not any("outline=true" in remark for remark in remarks(es.collate([es.Complex(points)] * 3)))
