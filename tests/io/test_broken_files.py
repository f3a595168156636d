import struct
import sys

import networkx as nx
import numpy as np
import pytest
from PIL import Image
from writing import MESHES, PLY, RING, array, arrays, picture, save, written

import eulerscan as es
from eulerscan.io import READABLE
from eulerscan.io.batch import read_many

GARBAGE = b"\x07" + np.random.default_rng(0).bytes(3000)


@pytest.mark.parametrize("extension", READABLE)
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "file is empty"),
        (GARBAGE, "not an? |binary|no vertices|truncated"),
        (b"\n\nsome words, and nothing else\n", "not an? |holds no|truncated"),
    ],
    ids=["empty", "garbage", "words"],
)
def test_a_file_that_is_nothing_is_named(extension, content, text, tmp_path):
    path = written(tmp_path, f"file{extension}", content)
    with pytest.raises(ValueError, match=rf"file\{extension}: .*({text})"):
        es.read(path)


@pytest.mark.parametrize("part", [0.2, 0.6, 0.95])
@pytest.mark.parametrize("format", ["ply", "ply ascii", "off", "stl", "stl ascii", "glb", "gltf"])
def test_a_truncated_mesh_is_named(format, part, tmp_path):
    path = save(MESHES["sphere"], tmp_path, format)
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(ValueError, match=rf"{path.name}: .*truncated"):
        es.read(path)


@pytest.mark.parametrize("part", [0.3, 0.8])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.png", picture("png", np.random.default_rng(0).integers(0, 255, (50, 50), dtype=np.uint8))),
        ("a.tif", picture("tiff")),
        ("a.jpg", picture("jpeg", RING.repeat(20, 0).repeat(20, 1))),
        ("a.bmp", picture("bmp")),
        ("a.npy", array(np.zeros((40, 3)))),
        ("a.npz", arrays(points=np.zeros((40, 3)), edges=np.zeros((2, 5), dtype=np.int64))),
        ("a.graphml", "\n".join(nx.generate_graphml(nx.path_graph(9)))),
    ],
)
def test_a_truncated_file_is_named(name, content, part, tmp_path):
    content = content.encode() if isinstance(content, str) else content
    path = written(tmp_path, name, content[: int(part * len(content))])
    with pytest.raises(ValueError, match=rf"{name}: .*truncated"):
        es.read(path)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.obj", "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "points must be finite"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 7\n", "vertices 1 to 3, got 7"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", "vertices 1 to 3, got 0"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -4\n", "got -4"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf a b c\n", "must consist of vertex numbers"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2\n", "every face must have at least 3 vertices, got 2"),
        ("a.obj", "v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", "every vertex must have three coordinates"),
        ("a.obj", "v 0 0 0\nv 1 0\n", "every vertex must have three coordinates"),
        ("a.obj", "v 0 0 0\nv \nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "every vertex must have three coordinates"),
        ("a.obj", "f 1 2 3\n", "file holds no vertices"),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 1 3\n", "no triangle with three distinct vertices"),
        ("a.off", "OFF\n3 1 0\n0 0 nan\n1 0 0\n0 1 0\n3 0 1 2\n", "points must be finite"),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", "faces must hold indices from 0 to 2 .* got 3"),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n-1 0\n", "the last face has -1 vertices"),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0\n0 1 0\n3 0 1 2\n", "every vertex must have three coordinates"),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 x\n", "not a valid OFF file"),
        ("a.off", "OFF\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "truncated: 3 vertices and 2 faces need as many lines, got 4"),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1\n", "truncated: the last face has 3 vertices, got 2"),
        ("a.ply", PLY + "0 0 0\n1 0 0\n0 1 0\n3 0 1\n", "truncated: the last face has 3 vertices, got 2"),
        ("a.ply", PLY + "0 0 inf\n1 0 0\n0 1 0\n3 0 1 2\n", "points must be finite"),
        ("a.ply", PLY + "0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", "faces must hold indices from 0 to 2 .* got 3"),
        ("a.ply", PLY + "0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n", "got -1"),
        ("a.ply", PLY + "0 0 0\n1 0 0\n0 1 0\n", "the header declares 4 lines, got 3"),
        ("a.ply", "ply\nformat ascii 1.0\nelement vertex 3\n", "the header has no end"),
        ("a.stl", struct.pack("<80xI12fH", 1, *[0.0] * 3, *[float("nan")] * 9, 0), "points must be finite"),
        ("a.csv", "x,y\n1,2\n3\n", "line 3 must have 2 columns like the header, got 1"),
        ("a.csv", "1,2\n3,4,5\n", "line 2 must have 2 columns"),
        ("a.csv", "# first\n1,2\n\n3,four\n", "line 4 must hold numbers, got 'four'"),
        ("a.csv", "1,2\n3,\n", "line 2 must hold numbers, got ''"),
        ("a.csv", "x,y\n", "holds no points"),
        ("a.csv", "id,x,y\n", "holds no points"),
        ("a.csv", "id,x,y\n1,2,3\n# half\na,2\n", "line 4 must have 3 columns like the header, got 2"),
        ("a.csv", "id,x,y\n1,2,3,4\n", "line 2 must have 3 columns like the header, got 4"),
        ("a.csv", "id,X,y\na,2,3\nb, NA,3\n", "line 3 must hold a number for x, got 'NA'"),
        ("a.csv", "x,y,z,id\n1,2,,a\n", "line 2 must hold a number for z, got ''"),
        ("a.csv", "x,y,X\n1,2,3\n", "header must have one column x.* got 2"),
        ("a.csv", "id,x,y\na,inf,3\n", "points must be finite"),
        ("a.csv", 'id,x,y\n"a,1,2\n', "line 2 must have 3 columns like the header, got 1"),
        ("a.csv", f'id,x,y\n"{"a" * 200_000},1,2\n', "line 2 must have 3 columns like the header, got 1"),
        ("a.csv", "1,2\nnan,4\n", "points must be finite"),
        ("a.npy", array(np.zeros(3)), r"points must have shape \[V, dim\], got \[3\]"),
        ("a.npy", array(np.zeros((0, 3))), "holds no points"),
        ("a.npy", array(np.full((2, 2), np.nan)), "points must be finite"),
        ("a.npy", array(np.array([["a", "b"]])), "points must be numbers"),
        ("a.npy", array(np.array([[{}]], dtype=object)), "Python objects"),
        ("a.npz", arrays(points=np.array([[{}]], dtype=object)), "Python objects"),
        ("a.npz", arrays(points=np.zeros((3, 2)), faces=np.zeros((3, 1))), "got faces, points"),
        ("a.npz", arrays(edges=np.zeros((2, 1), dtype=np.int64)), "must hold an array points.* got edges"),
        (
            "a.npz",
            arrays(points=np.zeros((3, 2)), edges=np.zeros((1, 2), dtype=int)),
            r"\[2, count\], got \[1, 2\]. Is it trans",
        ),
        ("a.npz", arrays(points=np.zeros((3, 2)), edges=np.zeros((2, 1))), "edges must hold integers"),
        ("a.npz", arrays(points=np.zeros((3, 2)), edges=np.array([[0], [3]])), r"must hold indices from 0 to 2 .* got 3"),
        ("a.npz", arrays(), "must hold an array points.* got nothing"),
        ("a.png", picture("png", np.zeros((4, 4), dtype=np.uint8)), "image has no foreground"),
        ("a.gml", "graph [ node [ id 0 ] ]", "must have attributes pos, or x and y, but node 0"),
        ("a.gml", "graph [ ]", "holds no nodes"),
        ("a.xlsx", arrays(), "workbooks are not supported. Save the sheet as CSV"),
        ("a.xls", "1,2\n3,4", "workbooks are not supported"),
        ("a.dat", "1,2\n3,4", r"unknown format.* .bmp .csv"),
        ("a.png", PLY.replace("ply\n", "pl"), "not a PNG file"),
        ("a.gltf", "{}", "no vertices|not a valid GLTF"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(name, content, text, tmp_path):
    with pytest.raises(ValueError, match=f"{name}: .*({text})") as caught:
        es.read(written(tmp_path, name, content))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_pages_of_different_sizes_are_named(tmp_path):
    Image.fromarray(RING).save(tmp_path / "a.tif", save_all=True, append_images=[Image.fromarray(RING[1:])])
    with pytest.raises(ValueError, match=r"a\.tif: image must have .*got 2 of different sizes"):
        es.read(tmp_path / "a.tif")


def test_a_missing_file_and_a_folder_are_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.obj"):
        es.read(tmp_path / "nowhere.obj")
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        es.read(tmp_path)


def test_options_of_another_format_are_named(tmp_path):
    with pytest.raises(TypeError, match="options of CSV files are dtype, outline, got threshold"):
        es.read(written(tmp_path, "a.csv", "1,2\n"), threshold=0.5)
    with pytest.raises(TypeError, match="options of OBJ files are dtype, merge, got thresh"):
        es.read(written(tmp_path, "a.obj", "v 0 0 0\n"), thresh=0.5)


def test_a_wrong_option_is_named(tmp_path):
    with pytest.raises(ValueError, match="pixels must be"):
        es.read(written(tmp_path, "a.png", picture("png")), pixels="squares")


@pytest.mark.parametrize("value", [0.001, 1, 0, "false", None])
@pytest.mark.parametrize("format", ["obj", "stl", "ply", "off", "glb"])
def test_a_tolerance_is_no_way_to_merge(format, value, tmp_path):
    path = save(MESHES["sphere"], tmp_path, format)
    with pytest.raises(TypeError, match=f"merge must be True or False, got {value!r}\\."):
        es.read(path, merge=value)
    batches, errors = read_many([path], merge=value)
    assert not batches
    assert str(errors[0]) == f"merge must be True or False, got {value!r}."


@pytest.mark.parametrize("value", [0.5, 1, "true", None])
@pytest.mark.parametrize("name", ["weighted", "invert"])
def test_a_switch_of_images_is_on_or_off(name, value, tmp_path):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got {value!r}\\."):
        es.read(written(tmp_path, "a.png", picture("png")), **{name: value})


@pytest.mark.parametrize(("name", "library"), [("a.png", "PIL"), ("a.gml", "networkx")])
def test_a_missing_library_is_named_with_what_installs_it(name, library, tmp_path, monkeypatch):
    content = {"a.png": picture("png"), "a.gml": "graph [ ]"}[name]
    for module in (library, f"{library}.Image"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=rf'This needs {library}.*pip install "eulerscan\[mesh\]"'):
        es.read(written(tmp_path, name, content))
