import io
import sys

import networkx as nx
import numpy as np
import pytest
import torch
import trimesh
from PIL import Image
from writing import FORMATS, MESHES, PLY, RING, array, arrays, picture, save, written

import eulerscan as es
from eulerscan.complexes.packed import pack
from eulerscan.convert import from_image, from_trimesh
from eulerscan.io import READABLE, mesh, read_many
from eulerscan.io.formats import load
from eulerscan.io.mesh import parse_mesh, read_mesh


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", MESHES)
def test_a_mesh_of_every_format_has_the_euler_characteristic_that_trimesh_says(name, format, tmp_path):
    path = save(MESHES[name], tmp_path, format)
    complex = es.read(path)
    merged = trimesh.load_mesh(path)
    merged.merge_vertices(merge_tex=True, merge_norm=True)
    assert complex.euler_characteristic().tolist() == [merged.euler_number] == [MESHES[name].euler_number]
    assert complex.counts[2] == len(MESHES[name].faces)


def test_an_stl_sphere_has_euler_characteristic_two(tmp_path):
    """Not 80, as without merging the vertices that every triangle repeats."""
    path = save(trimesh.creation.icosphere(subdivisions=1), tmp_path, "stl")
    assert es.read(path).euler_characteristic().tolist() == [2]
    assert es.read(path, merge=False).euler_characteristic().tolist() == [80]


def test_a_mesh_keeps_its_coordinates(tmp_path):
    complex = es.read(save(MESHES["sphere"], tmp_path, "off"), dtype=torch.float64)
    torch.testing.assert_close(complex.points, torch.tensor(MESHES["sphere"].vertices), atol=1e-9, rtol=0)


def test_an_obj_of_several_materials_has_no_seams(tmp_path):
    box = trimesh.creation.box()
    faces = [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in box.faces]
    lines = [*(f"v {x} {y} {z}" for x, y, z in box.vertices), "usemtl one", *faces[:5], "usemtl two", *faces[5:]]
    assert es.read(written(tmp_path, "box.obj", "\n".join(lines))).counts == (8, 18, 12)


def test_lines_of_an_obj_are_edges(tmp_path):
    square = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 5 5 5\n"
    assert es.read(written(tmp_path, "a.obj", square + "l 1 2 3 4 1\n")).counts == (4, 4)
    assert es.read(written(tmp_path, "b.obj", square + "f 1 2 3\nl 3/1 4/2\n")).counts == (4, 4, 1)
    assert es.read(written(tmp_path, "c.obj", square + "l -1 -2\nv 9 9 9\n")).points.tolist() == [[0, 1, 0], [5, 5, 5]]


def test_polygons_and_negative_numbers_of_an_obj(tmp_path):
    text = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0 # corner\nf -4/1/1 -3//2 -2 \\\n -1\nv 5 0 0 1 0 0\nf 1 2 -1\n"
    assert es.read(written(tmp_path, "a.obj", text)).counts == (5, 7, 3)
    assert es.read(written(tmp_path, "b.obj", text + "f 1 2 3 4 5\n")).counts == (5, 8, 4)


@pytest.mark.parametrize("format", ["ply", "obj", "xyz", "glb"])
def test_mesh_formats_may_hold_clouds(format, tmp_path):
    cloud = trimesh.PointCloud(np.random.default_rng(0).random((7, 3)))
    content = cloud.export(file_type=format) if format != "obj" else "".join(f"v {x} {y} {z}\n" for x, y, z in cloud.vertices)
    complex = es.read(written(tmp_path, f"cloud.{format}", content))
    assert complex.counts == (7,)
    torch.testing.assert_close(complex.points, torch.tensor(cloud.vertices).float(), atol=1e-6, rtol=0)


def test_edges_of_a_ply_are_edges(tmp_path):
    header = PLY.replace("face 1\nproperty list uchar int vertex_indices", "edge 2\nproperty int vertex1\nproperty int vertex2")
    assert es.read(written(tmp_path, "graph.ply", header + "0 0 0\n1 0 0\n0 1 0\n0 1\n1 2\n")).counts == (3, 2)


def test_arrays_of_numpy_are_points(tmp_path):
    points = np.random.default_rng(0).random((5, 3))
    assert torch.equal(es.read(written(tmp_path, "a.npy", array(points))).points, torch.tensor(points).float())
    assert es.read(written(tmp_path, "b.npy", array(np.arange(6).reshape(3, 2)))).points.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert es.read(written(tmp_path, "a.npz", arrays(anything=points))).counts == (5,)


def test_arrays_of_numpy_may_join_the_points(tmp_path):
    points = np.random.default_rng(0).random((5, 3))
    edges, triangles = np.array([[0, 1, 3], [1, 0, 4]]), np.array([[0], [1], [2]], dtype=np.uint8)
    named = {"points": points, "edges": edges, "triangles": triangles}
    assert es.read(written(tmp_path, "a.npz", arrays(**named))).counts == (5, 4, 1)
    solid = arrays(points=points, tetrahedra=np.arange(4)[:, None])
    assert es.read(written(tmp_path, "b.npz", solid)).counts == (5, 6, 4, 1)


@pytest.mark.parametrize("format", ["png", "tiff", "bmp", "gif", "webp"])
def test_images_are_read_with_the_options_of_from_image(format, tmp_path):
    path = written(tmp_path, f"ring.{format}", picture(format))
    assert es.read(path).euler_characteristic().tolist() == [0]
    assert es.read(path, pixels="vertices", weighted=True).counts == from_image(RING, pixels="vertices").counts
    assert es.read(path, spacing=0.5, dtype=torch.float64).points.dtype == torch.float64


@pytest.mark.parametrize("format", ["png", "tiff", "bmp", "gif", "webp"])
def test_dark_shapes_are_read_inverted(format, tmp_path):
    path = written(tmp_path, f"ring.{format}", picture(format, 255 - RING))
    for options in ({}, {"pixels": "vertices"}, {"weighted": True, "threshold": 0.3}):
        assert es.read(path, invert=True, **options).counts == from_image(RING, **options).counts
    assert es.read(path, invert=False).counts == from_image(255 - RING).counts


def test_the_paper_of_a_drawing_may_be_transparent(tmp_path):
    drawing = Image.new("LA", (8, 9))
    drawing.putalpha(Image.fromarray(RING))
    drawing.save(tmp_path / "ring.png")
    assert es.read(tmp_path / "ring.png", invert=True).counts == from_image(RING).counts


def test_the_first_frame_of_an_animation_is_read(tmp_path):
    frames = [Image.fromarray(RING), Image.new("L", (8, 9), 255)]
    for name in ("ring.gif", "ring.webp"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], lossless=True)
        assert es.read(tmp_path / name).counts == from_image(RING).counts


@pytest.mark.parametrize("format", ["gif", "webp"])
def test_a_broken_animation_is_named(format, tmp_path):
    content = picture(format)
    with pytest.raises(ValueError, match=f"broken.{format}"):
        es.read(written(tmp_path, f"broken.{format}", content[: len(content) // 2]))


def test_images_are_cleaned_while_they_are_read(tmp_path):
    path = written(tmp_path, "ring.png", picture("png"))
    assert es.read(path, fill_holes=True, outline="contour").euler_characteristic().tolist() == [1]


def test_a_jpeg_is_read(tmp_path):
    assert es.read(written(tmp_path, "ring.jpg", picture("jpeg", RING.repeat(8, 0).repeat(8, 1)))).euler_characteristic() == 0


def test_sixteen_bits_of_an_image_count(tmp_path):
    path = written(tmp_path, "deep.png", picture("png", np.array([[0, 256, 65535]], dtype=np.uint16)))
    assert es.read(path, pixels="vertices").counts[0] == 1
    assert es.read(path, pixels="vertices", threshold=0.001).counts[0] == 2


def test_pages_of_a_tiff_are_a_volume(tmp_path):
    pages = [Image.fromarray(RING) for _ in range(3)]
    pages[0].save(tmp_path / "volume.tif", save_all=True, append_images=pages[1:])
    complex = es.read(tmp_path / "volume.tif")
    assert complex.dim == 3
    assert complex.euler_characteristic().tolist() == [0]
    assert torch.equal(complex.points, from_image(np.stack([RING] * 3)).points)


@pytest.mark.parametrize("names", ["xy", "xyz"])
@pytest.mark.parametrize("format", ["graphml", "gml"])
def test_graphs_have_coordinates_in_attributes(format, names, tmp_path):
    graph = nx.cycle_graph(4)
    nx.set_node_attributes(graph, {i: {name: float(i) for name in names} for i in graph})
    (nx.write_graphml if format == "graphml" else nx.write_gml)(graph, tmp_path / f"g.{format}")
    complex = es.read(tmp_path / f"g.{format}")
    assert complex.points.tolist() == [[float(i)] * len(names) for i in range(4)]
    assert complex.euler_characteristic().tolist() == [0]


def test_graphs_may_say_where_their_nodes_are_in_other_ways(tmp_path):
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {i: [float(i), 1.0] for i in graph}, "pos")
    nx.write_gml(graph, tmp_path / "a.gml")
    assert es.read(tmp_path / "a.gml").points.tolist() == [[0, 1], [1, 1], [2, 1]]
    nx.set_node_attributes(graph, {i: f"{i}.5,2" for i in graph}, "pos")
    nx.write_graphml(graph, tmp_path / "a.graphml")
    assert es.read(tmp_path / "a.graphml").points.tolist() == [[0.5, 2], [1.5, 2], [2.5, 2]]
    drawn = "graph [ node [ id 0 graphics [ x 1.0 y 2.0 ] ] node [ id 1 graphics [ x 0.0 y 0.0 ] ] edge [ source 0 target 1 ] ]"
    assert es.read(written(tmp_path, "b.gml", drawn)).points.tolist() == [[1, 2], [0, 0]]
    nx.set_node_attributes(graph, {i: {"lon": 1.0, "lat": 2.0} for i in graph})
    nx.write_gml(graph, tmp_path / "c.gml")
    assert es.read(tmp_path / "c.gml", positions=("lon", "lat")).points.tolist() == [[1, 2]] * 3


@pytest.mark.parametrize(
    ("extension", "content", "counts"),
    [
        ("obj", picture("png"), from_image(RING).counts),
        ("png", picture("bmp"), from_image(RING).counts),
        ("csv", picture("tiff"), from_image(RING).counts),
        ("dat", array(np.zeros((4, 2))), (4,)),
        ("npy", arrays(points=np.zeros((4, 2))), (4,)),
        ("obj", PLY + "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", (3, 3, 1)),
        ("txt", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", (3, 3, 1)),
        ("obj", trimesh.creation.box().export(file_type="stl"), (8, 18, 12)),
        ("ply", trimesh.creation.box().export(file_type="stl_ascii"), (8, 18, 12)),
        ("", trimesh.creation.box().export(file_type="glb"), (8, 18, 12)),
    ],
)
def test_unmistakable_content_is_read_whatever_the_name(extension, content, counts, tmp_path):
    assert es.read(written(tmp_path, f"file.{extension}".rstrip("."), content)).counts == counts


def test_every_readable_extension_is_lower_case_and_known():
    assert {".obj", ".ply", ".off", ".stl", ".glb", ".xyz", ".csv", ".npy", ".npz", ".png", ".tiff", ".graphml"} <= set(
        READABLE
    )
    assert all(extension == extension.lower() and extension.startswith(".") for extension in READABLE)


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbfv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", b"v 0 0 0\rv 1 0 0\rv 0 1 0\rf 1 2 3\r"]
)
def test_other_line_ends_and_byte_order_marks_lose_no_vertex(content, tmp_path):
    (tmp_path / "a.obj").write_bytes(content)
    shape = es.read(tmp_path / "a.obj")
    assert shape.counts == (3, 3, 1)
    assert shape.points.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_a_slip_in_the_first_line_is_no_header(tmp_path):
    (tmp_path / "a.csv").write_text("0.O,0\n1,0\n0,1\n")
    with pytest.raises(ValueError, match="line 1"):
        es.read(tmp_path / "a.csv")


def test_numbers_too_large_to_be_true_are_a_damaged_file(tmp_path):
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999999999999999999\n")
    with pytest.raises(ValueError, match=r"a.obj"):
        es.read(tmp_path / "a.obj")


NODE = nx.Graph()
NODE.add_node(0, x=1.0, y=2.0)


@pytest.fixture
def opened(monkeypatch):
    """The files that are opened, one entry each time."""
    paths, real = [], io.open

    def counting(file, *arguments, **options):
        paths.append(str(file))
        return real(file, *arguments, **options)

    monkeypatch.setattr("builtins.open", counting)
    monkeypatch.setattr(io, "open", counting)
    return paths


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((f"a.{format}", trimesh.creation.box().export(file_type=format)) for format in ("ply", "obj", "off", "stl", "glb")),
        ("text.ply", trimesh.creation.box().export(file_type="ply", encoding="ascii")),
        ("a.csv", "0,0\n1,0\n"),
        ("wide.csv", "id,x1,y1,x2,y2\na,0,0,1,1\nb,0,0,1,2\n"),
        ("a.tps", "LM=1\n0 0\n"),
        ("a.xyz", "0 0 0\n1 0 0\n"),
        ("a.npy", array(np.zeros((4, 2)))),
        ("a.npz", arrays(points=np.zeros((4, 2)), edges=np.array([[0], [1]]))),
        ("a.gml", "graph [ node [ id 0 x 1.0 y 2.0 ] ]"),
        ("a.graphml", "\n".join(nx.generate_graphml(NODE))),
        ("a.png", picture("png")),
        ("a.tif", picture("tiff")),
    ],
)
def test_a_file_is_opened_once(name, content, opened, tmp_path):
    path = written(tmp_path, name, content)
    opened.clear()
    es.read(path)
    assert opened == [str(path)]
    opened.clear()
    read_many([path, path])
    assert opened == [str(path)] * 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_mesh_is_packed_once(format, tmp_path, monkeypatch):
    packed = []
    monkeypatch.setattr(sys.modules["eulerscan.complexes.complex"], "pack", lambda *parts: packed.append(parts) or pack(*parts))
    path = save(MESHES["torus"], tmp_path, format)
    assert es.read(path).counts[2] == len(MESHES["torus"].faces)
    assert len(packed) == 1


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("name", MESHES)
@pytest.mark.parametrize("format", ["ply", "off", "stl"])
def test_our_parsers_read_the_same_as_trimesh(format, name, merge, tmp_path, monkeypatch):
    path = save(MESHES[name], tmp_path, format)
    file = load(path)
    assert parse_mesh(file) is not None
    theirs = from_trimesh(trimesh.load_scene(path, process=False).dump(), merge=merge, dtype=torch.float64).packed
    for quick in (True, False):  # the general parser too
        if not quick:
            monkeypatch.setattr(mesh, "parse_mesh", lambda file: None)
        ours = read_mesh(file, merge=merge, dtype=torch.float64).packed
        assert ours.rows == theirs.rows
        for field in ("points", "offsets", "simplices"):
            torch.testing.assert_close(getattr(ours, field), getattr(theirs, field), rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P"])
def test_an_opaque_image_has_the_same_outline_with_a_channel_of_transparency(mode, tmp_path):
    row, column = np.mgrid[:80, :80]
    gray = Image.fromarray((127 + 90 * np.sin(row / 9) * np.cos(column / 7)).astype(np.uint8))
    gray.save(tmp_path / "gray.png")
    gray.convert(mode).save(tmp_path / "other.png")
    wanted, found = (es.read(tmp_path / name) for name in ("gray.png", "other.png"))
    assert torch.equal(wanted.points, found.points)


@pytest.mark.parametrize("dtype", [torch.int32, "float32"])
def test_a_wrong_dtype_is_no_damaged_file(dtype, tmp_path):
    with pytest.raises(TypeError, match="dtype must be a torch.dtype of floating-point numbers"):
        es.read(save(MESHES["sphere"], tmp_path, "off"), dtype=dtype)
