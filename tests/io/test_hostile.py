import json
import os
import pickle
import time
import tracemalloc

import numpy as np
import pytest
import torch
import trimesh
from hostile_files import SMALL, hostile, write_hostile
from PIL import Image
from writing import MESHES, PLY, picture, save, written

import eulerscan as es
from eulerscan._limits import check_bytes, max_bytes
from eulerscan.bulk import load_transforms
from eulerscan.convert import from_trimesh
from eulerscan.io import ReadError, list_shapes, read_many
from eulerscan.training import runs

TRIANGLE = "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"


@pytest.fixture
def bounded():
    """No more than 100 MB may be allocated, and 5 s of CPU time pass."""
    start = time.process_time()
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    assert time.process_time() - start < 5


@pytest.fixture
def limit(monkeypatch):
    return lambda value: monkeypatch.setenv("EULERSCAN_MAX_BYTES", value)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.usefixtures("bounded")
def test_a_hostile_file_is_a_read_error_that_names_it(name, tmp_path, limit):
    limit("4e9")
    path = hostile.CASES[name][1](tmp_path)
    with pytest.raises(ReadError) as caught:
        es.read(path)
    assert caught.value.path == path
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    batches, errors = read_many([path])
    assert not batches
    assert str(errors[0]) == str(caught.value)
    assert list_shapes(tmp_path).names == [path.name]


def test_a_read_error_survives_another_process():
    error = pickle.loads(pickle.dumps(ReadError("a.png", "broken.")))
    assert isinstance(error, ValueError)
    assert (str(error), error.reason) == ("a.png: broken.", "broken.")


def test_hostile_files_spare_the_others(tmp_path, limit):
    limit("4e9")
    bad = write_hostile(tmp_path)
    good = save(MESHES["sphere"], tmp_path, "off")
    batches, errors = read_many([*bad, good])
    assert batches[3].positions == [len(bad)]
    assert {type(error) for error in errors.values()} == {ReadError}


# Each takes seconds in quadratic time.
@pytest.mark.parametrize(
    ("name", "content", "points"),
    [
        ("a.ply", PLY.replace("property list", "property list" + " " * 60_000) + TRIANGLE, 3),
        ("a.ply", PLY.replace("end_header", "comment" + " " * 60_000 + "x\nend_header") + TRIANGLE, 3),
        ("a.tps", f"LM=2\n0 0\n1 0\nIMAGE=a{' ' * 60_000}b\n", 2),
        ("a.csv", "1" + "\t" * 60_000 + "2\n3\t4\n", 2),
        ("a.txt", "1" + "\t" * 60_000 + "2\n3\t4\n", 2),
        ("a.xyz", "1" + "\t" * 60_000 + "2\n3\t4\n", 2),
        ("a.csv", hostile.wide(30_000), 30_000),
        ("a.stl", hostile.repeated(hostile.SOLID, 400_000), 3),
        ("a.gltf", hostile.gltf_chain(3000).replace("A" * 48, "AAAA" * 8 + "AACAPwAAAAAAAAAAAACAPwAAAAA="[:16]), None),
    ],
    ids=["list", "comment", "tps", "csv", "txt", "xyz", "wide", "solids", "chain"],
)
@pytest.mark.usefixtures("bounded")
def test_time_is_linear_in_the_size_of_a_text_file(name, content, points, tmp_path):
    path = written(tmp_path, name, content)
    try:
        assert len(es.read(path).points) == points
    except ReadError:
        assert points is None
    list_shapes(tmp_path)


def test_memory_is_limited_and_the_limit_can_be_raised(tmp_path, limit):
    path = written(tmp_path, "a.png", picture("png", np.full((300, 300), 255, np.uint8)))
    limit("1e5")
    with pytest.raises(ReadError, match=r"a\.png: an image of 300 x 300 pixels needs 720000 bytes .*Set EULERSCAN_MAX_BYTES"):
        es.read(path)
    limit("1e9")
    assert es.read(path).euler_characteristic().tolist() == [1]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", "0,0\n1,0\n" * 200_000, "file needs 1.6 MB"),
        ("a.npy", hostile.npy(shape="(200, 2)", data=bytes(3200)), "points of shape .* needs 9600 bytes"),
        ("a.tif", hostile.tiff(30, 30, 20), "30 x 30 pixels and 20 pages needs 1.15 MB"),
        (
            "a.glb",
            hostile.glb(hostile.scene(scenes=[{"nodes": [0, 1, 2]}], nodes=[{"mesh": 0}] * 3)),
            "a scene of 3 nodes needs",
        ),
    ],
)
def test_every_reader_knows_the_limit(name, content, text, tmp_path, limit):
    path = written(tmp_path, name, content)
    limit("5000")
    with pytest.raises(ReadError, match=f"{text}.*EULERSCAN_MAX_BYTES"):
        es.read(path)


def test_outlines_of_large_images_are_estimated_from_their_pixels(tmp_path, limit):
    stripes = np.zeros((2000, 2000), np.uint8)
    stripes[:, ::2] = 255
    path = written(tmp_path, "a.png", picture("png", stripes))
    limit("2e8")
    with pytest.raises(ReadError, match="the outline of an image of 2000 x 2000 pixels needs 801 MB"):
        es.read(path)
    with pytest.raises(ReadError, match="the outline"):
        es.read(path, weighted=True)
    stripes[:] = 255
    assert len(es.read(written(tmp_path, "a.png", picture("png", stripes))).points) == 8


@pytest.mark.parametrize("value", ["", "abc", "0", "-1", "nan", "inf"])
def test_a_wrong_limit_is_named(value, limit, tmp_path):
    limit(value)
    with pytest.raises(ValueError, match="EULERSCAN_MAX_BYTES must be a number of bytes"):
        es.read(written(tmp_path, "a.png", picture("png")))


def test_the_default_limit_is_a_part_of_the_memory(monkeypatch):
    monkeypatch.delenv("EULERSCAN_MAX_BYTES", raising=False)
    assert 2**27 < max_bytes() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    check_bytes(max_bytes(), "something")
    with pytest.raises(ValueError, match="something needs .* more than the limit"):
        check_bytes(max_bytes() + 1, "something")


def test_an_endless_device_is_limited(limit):
    limit("5e6")
    with pytest.raises(ReadError, match="file needs .* EULERSCAN_MAX_BYTES"):
        es.read("/dev/zero")


def test_large_images_are_the_same_shapes_as_small_ones(tmp_path, monkeypatch, rng):
    image = Image.fromarray((rng.random((40, 50)) > 0.4).astype(np.uint8) * 255).resize((200, 160))
    image.save(tmp_path / "gray.png")
    image.convert("1").save(tmp_path / "bits.png")
    for options in ({}, {"invert": True}, {"threshold": 0.8, "outline": "pixels"}, {"weighted": True, "outline": "pixels"}):
        for name in ("gray.png", "bits.png"):
            expected = es.read(tmp_path / name, **options)
            monkeypatch.setattr("eulerscan.io.images.LARGE", 100)
            monkeypatch.setattr("eulerscan.convert.images._BLOCK", 300)
            found = es.read(tmp_path / name, **options)
            monkeypatch.undo()
            assert torch.equal(found.points, expected.points)
            assert found.counts == expected.counts
    black = written(tmp_path, "black.png", picture("png", np.full((99, 99), 7, np.uint8)))
    with pytest.raises(ReadError) as small:
        es.read(black)
    monkeypatch.setattr("eulerscan.io.images.LARGE", 100)
    with pytest.raises(ReadError) as large:
        es.read(black)
    assert str(small.value) == str(large.value)


def test_a_volume_that_is_all_foreground_has_a_surface(tmp_path):
    path = written(tmp_path, "a.tif", hostile.tiff(60, 60, 4))
    assert es.read(path).euler_characteristic().tolist() == [2]


def test_a_ply_file_may_have_comments_in_any_encoding(tmp_path):
    comment = "comment Müller\nend_header".encode("latin-1")
    text = (PLY + TRIANGLE).encode().replace(b"end_header", comment)
    binary = MESHES["sphere"].export(file_type="ply").replace(b"end_header", comment)
    for content, count in ((text, 3), (binary, len(MESHES["sphere"].vertices))):
        path = written(tmp_path, "a.ply", content)
        batches, errors = read_many([path])
        assert not errors
        assert len(es.read(path).points) == len(batches[3].complex.points) == count


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.off", "OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n2000000000 0 1 2\n3 0 1 2\n"),
        ("a.ply", PLY.replace("face 1", "face 2") + "0 0 0\n1 0 0\n0 1 0\n2000000000 0 1 2\n3 0 1 2\n"),
    ],
)
def test_a_face_has_as_many_vertices_as_it_says(name, content, tmp_path):
    path = written(tmp_path, name, content)
    with pytest.raises(ReadError, match="face 0 has 2000000000 vertices, got 3"):
        es.read(path)
    assert not read_many([path])[0]


@pytest.mark.parametrize("pipe", [True, False], ids=["a pipe", "missing"])
@pytest.mark.parametrize("format", ["ply", "glb"])
def test_textures_are_not_opened(format, pipe, tmp_path, capfd):
    if pipe:
        os.mkfifo(tmp_path / "texture.png")
    name = f"texture.{format} {'a pipe' if pipe else 'missing'}"
    content = PLY.replace("end_header", "comment TextureFile texture.png\nend_header") + TRIANGLE
    path = written(tmp_path, "a.ply", content) if format == "ply" else tmp_path / "texture.glb"
    if format == "glb":
        path.write_bytes(hostile.glb(hostile.TEXTURED, hostile.CORNERS))
    assert name in hostile.CASES
    assert es.read(path).counts == (3, 3, 1)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("pipe.bin", "'pipe.bin' cannot be read: pipe.bin is not a regular file"),
        ("missing.bin", "'missing.bin' cannot be read: No such file"),
        ("../secret.bin", "'../secret.bin' cannot be read: it is not in the folder"),
        ("%2e%2e/secret.bin", "'%2e%2e/secret.bin' cannot be read: it is not in the folder"),
        ("/etc/passwd", "'/etc/passwd' cannot be read: it is not in the folder"),
        ("short.bin", "accessor 0 has 3 entries, more than its buffer view holds"),
    ],
)
def test_buffers_are_regular_files_beside_the_file(uri, text, tmp_path):
    os.mkfifo(tmp_path / "pipe.bin")
    (tmp_path / "short.bin").write_bytes(bytes(35))
    path = written(tmp_path, "a.gltf", json.dumps(hostile.scene(buffers=[{"uri": uri, "byteLength": 36}])))
    with pytest.raises(ReadError, match=f"a.gltf: .*{text}"):
        es.read(path)


def test_names_of_buffers_are_percent_decoded(tmp_path):
    (tmp_path / "my mesh.bin").write_bytes(np.eye(3, dtype="<f4").tobytes())
    path = written(tmp_path, "a.gltf", json.dumps(hostile.scene(buffers=[{"uri": "my%20mesh.bin", "byteLength": 36}])))
    torch.testing.assert_close(es.read(path, dtype=torch.float32).points, torch.eye(3))


@pytest.mark.parametrize("format", ["glb", "gltf"])
def test_scenes_are_read_as_by_trimesh(format, tmp_path, rng):
    scene = trimesh.Scene()
    for i, mesh in enumerate(MESHES.values()):
        turn = trimesh.transformations.random_rotation_matrix(rng.random(3))
        turn[:3, 3] = rng.normal(size=3) * 5
        scene.add_geometry(mesh, node_name=f"n{i}", transform=turn)
        scene.add_geometry(mesh, node_name=f"m{i}", parent_node_name=f"n{i}", transform=turn @ np.diag([2, 2, 2, 1]))
    scene.add_geometry(trimesh.PointCloud(rng.normal(size=(7, 3))))
    scene.add_geometry(trimesh.load_path(rng.normal(size=(5, 3))))
    if format == "glb":
        path = written(tmp_path, "a.glb", scene.export(file_type="glb"))
    else:
        for name, content in trimesh.exchange.gltf.export_gltf(scene).items():
            written(tmp_path, name, content)
        path = tmp_path / "model.gltf"
    ours = es.read(path, dtype=torch.float64)
    theirs = from_trimesh(trimesh.load_scene(path, process=False), dtype=torch.float64)
    assert ours.counts == theirs.counts
    sort = [shape.points[np.lexsort(shape.points.T.numpy().round(6))] for shape in (ours, theirs)]
    torch.testing.assert_close(sort[0], sort[1], rtol=0, atol=1e-6)
    assert ours.euler_characteristic().tolist() == theirs.euler_characteristic().tolist()


@pytest.mark.parametrize(
    ("mode", "counts"), [(0, (4,)), (1, (4, 2)), (2, (4, 4)), (3, (4, 3)), (4, None), (5, (4, 5, 2)), (6, (4, 5, 2))]
)
def test_primitives_of_every_mode(mode, counts, tmp_path):
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], "<f4").tobytes()
    changes = {
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "mode": mode}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 48}],
    }
    path = written(tmp_path, "a.glb", hostile.glb(hostile.scene(**changes), corners))
    if counts is None:
        with pytest.raises(ReadError, match="a.glb"):
            es.read(path)
    else:
        assert es.read(path).counts == counts


@pytest.mark.parametrize("case", [name for name in hostile.CASES if name.startswith("config.json") and "unchanged" not in name])
@pytest.mark.usefixtures("bounded")
def test_a_broken_configuration_of_a_run_is_named_with_its_key(case, tmp_path):
    folder = hostile.CASES[case][1](tmp_path)
    keys = {"dim 3e8": "parameters", "hidden 1e9": "parameters", "directions 1e15": "parameters", "nested": "too deeply"}
    keys |= {"model []": "model must", "nested object": "too deeply", "radius NaN": "model.radius", "rate inf": "learning_rate"}
    keys |= {"no dim": "dim is missing", "classes": "classes must", "data": "data.folder", "unknown": "model.depth"}
    with pytest.raises(ValueError, match=f"config.json .*{keys[case.removeprefix('config.json ')]}".replace("[]", "")):
        runs.load_run(folder)


def test_a_configuration_that_fits_is_read(tmp_path):
    folder = hostile.CASES["config.json unchanged"][1](tmp_path)
    model, config = runs.load_run(folder)
    least = config.model.least_parameters(config.dim, len(config.classes))
    assert least <= sum(tensor.numel() for tensor in model.state_dict().values())


@pytest.mark.parametrize("case", [name for name in hostile.CASES if name.startswith(("saved.npz ", "claims.csv of"))])
@pytest.mark.usefixtures("bounded")
def test_damaged_transforms_are_named(case, tmp_path):
    expected, make, _ = hostile.CASES[case]
    path = make(tmp_path)
    if expected == "result":
        assert load_transforms(path).transforms.shape == (1, 4, 4)
    else:
        with pytest.raises(ValueError, match=f"{path.name} is not an output of `eulerscan transform`, or it is damaged"):
            load_transforms(path)


@pytest.mark.parametrize("save_arrays", [np.savez, np.savez_compressed])
def test_a_flipped_byte_of_an_npz_file_never_changes_the_shape_without_a_word(save_arrays, tmp_path, rng):
    path = tmp_path / "a.npz"
    save_arrays(path, points=rng.normal(size=(9, 2)), edges=np.array([[0, 1], [1, 2]]))
    content, expected = path.read_bytes(), es.read(path)
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 0x55]) + content[i + 1 :])
        try:
            found = es.read(path)
        except ReadError:
            continue
        assert found.counts == expected.counts
        assert torch.equal(found.points, expected.points)
