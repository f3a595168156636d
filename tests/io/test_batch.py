import warnings

import numpy as np
import pytest
import torch
import trimesh

import eulerscan as es
from eulerscan.io.batch import read_many
from eulerscan.io.formats import load
from eulerscan.io.mesh import parse_mesh


@pytest.fixture
def folder(tmp_path, rng):
    """Meshes of all formats and other shapes, among them what the fast way must leave to the careful one."""
    for i, extension in enumerate(["off", "ply", "stl", "obj", "glb", "off", "ply", "stl"]):
        mesh = trimesh.creation.icosphere(subdivisions=1)
        mesh.vertices *= 1 + rng.random((len(mesh.vertices), 3))
        mesh.export(tmp_path / f"{i}.{extension}")
    (tmp_path / "text.stl").write_text(trimesh.creation.box().export(file_type="stl_ascii"))
    (tmp_path / "text.ply").write_bytes(trimesh.creation.box().export(file_type="ply", encoding="ascii"))
    (tmp_path / "quads.off").write_text("OFF\n5 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n2 2 1\n4 0 1 2 3\n3 1 4 2\n")
    (tmp_path / "colors.off").write_text("OFF 3 1 0\n0 0 0\n1 0 0 # here\n0 1 0\n3 0 1 2 255 0 0\n")
    (tmp_path / "twice.off").write_text("OFF\n6 2 0\n" + 2 * "0 0 0\n1 0 0\n-0.0 1 0\n" + "3 0 1 2\n3 3 4 5\n")
    (tmp_path / "unused.off").write_text("OFF\n5 2 0\n9 9 9\n0 0 0\n1 0 0\n0 1 0\n8 8 8\n3 1 2 3\n3 1 1 3\n")
    colored = trimesh.creation.box()
    colored.visual.vertex_colors = rng.integers(0, 255, (8, 4), dtype=np.uint8)
    colored.export(tmp_path / "colored.ply", vertex_normal=True)
    trimesh.PointCloud(rng.random((7, 3))).export(tmp_path / "cloud.ply")
    np.save(tmp_path / "cloud.npy", rng.random((9, 3)))
    (tmp_path / "plane.csv").write_text("0,0\n1,0\n0,1\n")
    return tmp_path


@pytest.mark.parametrize("options", [{}, {"dtype": torch.float64}])
def test_many_files_are_the_same_shapes_as_one_by_one(folder, options):
    paths = sorted(folder.iterdir())
    batches, errors = read_many(paths, **options)
    assert not errors
    assert sorted(i for batch in batches.values() for i in batch.positions) == list(range(len(paths)))
    for dim, (positions, complex) in batches.items():
        alone = [es.read(paths[i], **options) for i in positions]
        assert {shape.dim for shape in alone} == {dim}
        expected = es.collate(alone)
        for field in ("points", "offsets", "simplices"):
            torch.testing.assert_close(getattr(complex.packed, field), getattr(expected.packed, field), rtol=0, atol=0)


def assert_as_one_by_one(paths, **options):
    batches, errors = read_many(paths, **options)
    assert not errors
    (batch,) = batches.values()
    assert batch.positions == list(range(len(paths)))
    expected = es.collate([es.read(path, **options) for path in paths])
    assert batch.complex.rows == expected.rows
    for field in ("points", "offsets", "simplices"):
        torch.testing.assert_close(getattr(batch.complex.packed, field), getattr(expected.packed, field), rtol=0, atol=0)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("extension", ["ply", "off", "obj"])
def test_meshes_with_the_same_triangles_keep_their_own_coordinates(tmp_path, rng, extension, merge):
    """Some of them have equal vertices, some leave a vertex unused, and some have their triangles in another order."""
    sphere = trimesh.creation.icosphere(subdivisions=1)
    for i in range(12):
        vertices, faces = sphere.vertices * (1 + rng.random((len(sphere.vertices), 1))), sphere.faces
        if i % 3 == 1:
            vertices[7], vertices[9, 0] = vertices[4], vertices[3, 0]
        if i % 4 == 2:
            faces = faces[(faces != 5).all(axis=1)]
        if i % 5 == 4:
            faces = faces[::-1]
        trimesh.Trimesh(vertices, faces, process=False).export(tmp_path / f"{i:02}.{extension}")
    assert_as_one_by_one(sorted(tmp_path.iterdir()), merge=merge, dtype=torch.float64)


def test_the_same_triangles_of_more_vertices_are_another_mesh(tmp_path):
    triangle = "0 0 0\n1 0 0\n0 1 0\n"
    (tmp_path / "a.off").write_text(f"OFF\n3 1 0\n{triangle}3 0 1 2\n")
    (tmp_path / "b.off").write_text(f"OFF\n4 1 0\n{triangle}5 5 5\n3 0 1 2\n")
    assert_as_one_by_one([tmp_path / name for name in ("a.off", "b.off", "a.off")])


def test_indices_that_are_no_whole_numbers_are_refused_as_in_one_file(tmp_path):
    path = tmp_path / "real.off"
    path.write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0.0 1.0 2.0\n")
    with pytest.raises(ValueError, match="OFF"):
        es.read(path)
    shapes, failures = read_many([path])
    assert (shapes, list(failures)) == ({}, [0])


def test_equal_vertices_are_found_where_sums_overflow(tmp_path):
    vertices = "1e308 1e308 1e308\n-1e308 -1e308 -1e308\n1e308 1e308 0\n"
    (tmp_path / "a.off").write_text(f"OFF\n6 2 0\n{vertices * 2}3 0 1 2\n3 3 4 5\n")
    assert_as_one_by_one([tmp_path / "a.off"], dtype=torch.float64)
    assert read_many([tmp_path / "a.off"], dtype=torch.float64)[0][3].complex.counts == (3, 3, 1)


def test_coordinates_too_large_for_the_dtype_spare_the_other_files(tmp_path):
    (tmp_path / "a.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1e300 0\n3 0 1 2\n")
    (tmp_path / "b.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    batches, errors = read_many([tmp_path / "a.off", tmp_path / "b.off"], dtype=torch.float32)
    assert batches[3].positions == [1]
    assert "points must be finite" in str(errors[0])


def test_vertices_may_stay_apart(folder):
    paths = sorted([*folder.glob("*.stl"), *folder.glob("*.off")])
    batches, errors = read_many(paths, merge=False)
    assert not errors
    assert batches[3].complex.counts == es.collate([es.read(paths[i], merge=False) for i in batches[3].positions]).counts


def test_what_is_wrong_with_a_file_is_said_as_for_one(folder):
    (folder / "short.off").write_text("OFF\n9 9 0\n0 0 0\n")
    (folder / "strange.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 nan 0\n3 0 1 2\n")
    (folder / "far.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n")
    (folder / "flat.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 1 1 1\n")
    (folder / "half.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 1.5\n")
    (folder / "words.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 two\n")
    (folder / "noise.ply").write_bytes(b"ply\nnothing of the kind")
    (folder / "empty.stl").write_bytes(b"")
    paths = sorted(folder.iterdir())
    batches, errors = read_many(paths)
    assert {paths[i].name for i in errors} == {
        *("short.off", "strange.off", "far.off", "flat.off", "half.off", "words.off", "noise.ply", "empty.stl")
    }
    assert sum(len(batch.positions) for batch in batches.values()) == len(paths) - 8
    for i, error in errors.items():
        with pytest.raises(type(error)) as alone:
            es.read(paths[i])
        assert str(alone.value) == str(error)


def test_filters_of_warnings_are_left_alone(folder, monkeypatch):
    monkeypatch.setattr(warnings, "catch_warnings", lambda *a, **k: pytest.fail("they are shared by all threads"))
    assert parse_mesh(load(folder / "0.off")) is not None


def test_options_of_another_format_are_an_error_of_each_file(folder):
    batches, errors = read_many(sorted(folder.glob("*.off")), positions="pos")
    assert not batches
    assert "options of OFF files" in str(errors[0])


def test_the_default_device_of_others_does_not_matter(folder):
    """Files are read into main memory, also where new tensors would be elsewhere."""
    paths = sorted(folder.glob("*.off"))
    with torch.device("meta"):  # first: what follows from the triangles is remembered
        batches, errors = read_many(paths)
    expected, wrong = read_many(paths)
    assert errors.keys() == wrong.keys()
    assert batches[3].positions == expected[3].positions
    torch.testing.assert_close(batches[3].complex.points, expected[3].complex.points, rtol=0, atol=0)
