import itertools

import numpy as np
import pytest
import torch
import trimesh

import eulerscan as es
from eulerscan.convert import from_trimesh

SHAPES = {
    "sphere": (trimesh.creation.icosphere(subdivisions=2), 2),
    "torus": (trimesh.creation.torus(1.0, 0.3), 0),
    "annulus": (trimesh.creation.annulus(0.4, 1.0, 1.0), 0),
    "capsule": (trimesh.creation.capsule(), 2),
}


def soup(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Every triangle with vertices of its own, as in STL files."""
    return trimesh.Trimesh(mesh.triangles.reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3), process=False)


@pytest.mark.parametrize("name", SHAPES)
def test_a_mesh_has_the_euler_characteristic_that_trimesh_says(name):
    mesh, known = SHAPES[name]
    assert from_trimesh(mesh).euler_characteristic().tolist() == [mesh.euler_number] == [known]


@pytest.mark.parametrize("name", SHAPES)
def test_vertices_that_every_triangle_repeats_are_merged(name):
    mesh, _ = SHAPES[name]
    assert from_trimesh(soup(mesh)).counts == from_trimesh(mesh).counts
    assert from_trimesh(soup(mesh), merge=False).euler_characteristic().tolist() == [len(mesh.faces)]


def test_zero_has_no_sign():
    vertices = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [-0.0, 0, 0], [1, 0, -0.0], [0, -1, 0]]
    assert from_trimesh(trimesh.Trimesh(vertices, [[0, 1, 2], [3, 4, 5]], process=False)).counts == (4, 5, 2)


def test_degenerate_triangles_and_vertices_without_one_are_left_out_and_copies_count_once():
    vertices = np.random.default_rng(0).random((6, 3))
    mesh = trimesh.Trimesh(vertices, [[0, 1, 2], [2, 1, 0], [3, 3, 4], [0, 1, 3]], process=False)
    complex = from_trimesh(mesh)
    assert complex.counts == (4, 5, 2)
    torch.testing.assert_close(complex.points, torch.tensor(vertices[:4], dtype=torch.float32))


def test_all_points_of_a_cloud_stay():
    cloud = trimesh.PointCloud([[0.0, 0, 0], [0, 0, 0], [1, 0, 0]])
    assert from_trimesh(cloud).counts == (3,)


def test_a_scene_has_everything_where_it_stands():
    box = trimesh.creation.box()
    scene = trimesh.Scene()
    scene.add_geometry(box)
    scene.add_geometry(box, transform=trimesh.transformations.translation_matrix([5, 0, 0]))
    scene.add_geometry(trimesh.PointCloud([[9.0, 9, 9]]))
    complex = from_trimesh(scene)
    assert complex.counts == (17, 36, 24)
    assert complex.points[:, 0].max() == 9.0
    assert ((complex.points[:, 0] >= 4.5) & (complex.points[:, 0] <= 5.5)).sum() == 8


def test_parts_of_a_scene_that_touch_are_joined():
    """Loaders make a part of every material, and the seam must not tear the surface."""
    box = trimesh.creation.box()
    halves = [trimesh.Trimesh(box.vertices, box.faces[part], process=False) for part in (slice(None, 5), slice(5, None))]
    assert from_trimesh(trimesh.Scene(halves)).euler_characteristic().tolist() == [2]
    assert from_trimesh(halves).counts == from_trimesh(box).counts


def test_polylines_are_edges():
    path = trimesh.load_path(np.array([[0.0, 0], [1, 0], [1, 1], [0, 0]]))
    assert from_trimesh(path).counts == (3, 3)
    assert from_trimesh(path).dim == 2


def test_a_path_in_the_plane_joins_a_scene_in_space():
    path = trimesh.load_path(np.array([[0.0, 0], [1, 0], [1, 1]]))
    complex = from_trimesh([path, trimesh.creation.box()])
    assert complex.dim == 3
    assert complex.counts == (3 + 8, 2 + 18, 12)


@pytest.mark.parametrize(("closed", "euler_characteristic"), [(True, 0), (False, 1)])
@pytest.mark.parametrize("reverse", [1, -1])
def test_curves_become_polylines_that_meet_their_neighbours(closed, reverse, euler_characteristic):
    entities = trimesh.path.entities
    arc = entities.Arc([0, 1, 2], closed=closed)
    arc.reverse(reverse)
    path = trimesh.path.Path2D([arc, entities.Line([0, 3])], [[1.0, 0], [0, 1], [-1, 0], [2, 0]])
    complex = from_trimesh(path)
    assert complex.euler_characteristic().tolist() == [euler_characteristic]
    lengths = (complex.points[complex.simplices[0][0]] - complex.points[complex.simplices[0][1]]).norm(dim=1)
    assert lengths.sum().item() == pytest.approx(1 + np.pi * (2 if closed else 1), rel=0.02)


def test_coordinates_have_the_dtype_that_is_asked_for():
    box = trimesh.creation.box()
    assert from_trimesh(box).points.dtype == torch.float32
    assert from_trimesh(box, dtype=torch.float64).points.dtype == torch.float64


def test_as_complex_takes_everything_of_trimesh():
    box, cloud = trimesh.creation.box(), trimesh.PointCloud(np.random.default_rng(0).random((3, 3)))
    assert es.as_complex([box, cloud, trimesh.Scene(box)]).euler_characteristic().tolist() == [2, 3, 2]


def test_a_mixed_batch_equals_its_items_alone_in_every_order():
    items = [
        trimesh.creation.box(),
        trimesh.PointCloud(np.random.default_rng(0).random((7, 3))),
        torch.rand(4, 3),
        es.Complex(torch.rand(3, 3), [torch.tensor([[0, 1], [1, 2]])]),
    ]
    directions, thresholds = es.directions.fibonacci(5), es.thresholds(8, radius=2.0)
    alone = [es.ect(item, directions, thresholds, scale=20.0) for item in items]
    for order in itertools.permutations(range(len(items))):
        together = es.ect([items[i] for i in order], directions, thresholds, scale=20.0)
        torch.testing.assert_close(together, torch.cat([alone[i] for i in order]))


@pytest.mark.parametrize(
    ("vertices", "faces", "error", "text"),
    [
        ([[0.0, 0, 0], [1, 0, 0], [0, np.nan, 0]], [[0, 1, 2]], ValueError, "points must be finite, got .* at row 2"),
        ([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 3]], IndexError, "faces must hold indices from 0 to 2 .* got 3"),
        ([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, -1]], IndexError, "got -1"),
    ],
)
def test_unsound_meshes_are_named(vertices, faces, error, text):
    with pytest.raises(error, match=text):
        from_trimesh(trimesh.Trimesh(vertices, faces, process=False))


def test_what_is_no_geometry_is_named():
    with pytest.raises(TypeError, match=r"geometry must be a Trimesh.*got FilePathResolver"):
        from_trimesh(trimesh.resolvers.FilePathResolver("."))


@pytest.mark.parametrize("geometry", [trimesh.creation.box(), trimesh.PointCloud([[0.0, 0, 0]]), []])
def test_a_tolerance_is_no_way_to_merge(geometry):
    with pytest.raises(TypeError, match=r"merge must be True or False, got 0\.001\."):
        from_trimesh(geometry, merge=0.001)
