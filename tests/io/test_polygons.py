"""PLY and OFF files with more than triangles: polygons of several sizes, edges, strips, and lists beside the faces."""

import struct

import numpy as np
import pytest
import trimesh

import eulerscan as es

XYZ = "property float x\nproperty float y\nproperty float z\n"
LIST = "property list uchar int vertex_indices\n"
PYRAMID = [[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]]
FACES = [[0, 1, 2, 3], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]


def ply(elements: str, rows: str, kind: str = "ascii") -> str:
    return f"ply\nformat {kind} 1.0\ncomment end_header\n{elements}end_header\n{rows}"


def lines(rows) -> str:
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def read(tmp_path, name: str, content: str | bytes) -> es.Complex:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return es.read(path)


def pyramid(kind: str) -> bytes:
    header = ply(f"element vertex 5\n{XYZ}element face 5\n{LIST}", "", kind).encode()
    if kind == "ascii":
        return header + lines([*PYRAMID, *([len(face), *face] for face in FACES)]).encode()
    order = "<" if "little" in kind else ">"
    faces = b"".join(struct.pack(f"{order}B{len(face)}i", len(face), *face) for face in FACES)
    return header + np.array(PYRAMID, order + "f4").tobytes() + faces


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("kind", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_a_ply_file_may_mix_triangles_and_quads(kind, newline, tmp_path):
    header, end, body = pyramid(kind).partition(b"\nend_header\n")
    body = body.replace(b"\n", newline) if kind == "ascii" else body
    complex = read(tmp_path, "a.ply", (header + end).replace(b"\n", newline) + body)
    assert complex.counts == (5, 9, 6)
    assert complex.points.tolist() == PYRAMID


def test_an_off_file_may_mix_hexagons_and_quads_with_colors(tmp_path):
    angles = np.arange(6) * np.pi / 3
    corners = [[np.cos(angle), np.sin(angle), z] for z in (0, 1) for angle in angles]
    sides = [[4, i, (i + 1) % 6, 6 + (i + 1) % 6, 6 + i, 0.1, 0.2, 0.3] for i in range(6)]
    prism = read(tmp_path, "a.off", "OFF\n12 8 0\n" + lines([*corners, [6, *range(6)], [6, *range(6, 12)], *sides]))
    assert prism.counts == (12, 30, 20)
    assert prism.euler_characteristic().tolist() == [2]


@pytest.mark.parametrize("name", ["a.off", "a.ply"])
def test_faces_of_two_vertices_are_edges(name, tmp_path):
    rows = lines([*PYRAMID[:4], *([2, i, (i + 1) % 4] for i in range(4))])
    header = {"a.off": "OFF\n4 4 0\n", "a.ply": ply(f"element vertex 4\n{XYZ}element face 4\n{LIST}", "")}[name]
    square = read(tmp_path, name, header + rows)
    assert square.counts == (4, 4)
    assert square.euler_characteristic().tolist() == [0]


@pytest.mark.parametrize("face", [[0], [1, 4]])
def test_faces_of_fewer_vertices_are_passed_over(face, tmp_path):
    assert read(tmp_path, "a.off", "OFF\n5 2 0\n" + lines([*PYRAMID, face, [3, 0, 1, 2]])).counts == (3, 3, 1)


@pytest.mark.parametrize("type", ["int64", "uint64", "float16"])
@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian"])
def test_attributes_of_any_type_that_trimesh_writes_are_passed_over(encoding, type, tmp_path):
    mesh = trimesh.creation.icosphere(1)
    mesh.vertex_attributes["label"] = np.arange(len(mesh.vertices)).astype(type)
    mesh.face_attributes["label"] = np.arange(len(mesh.faces)).astype(type)
    mesh.export(tmp_path / "a.ply", encoding="ascii" if encoding == "ascii" else "binary")
    assert es.read(tmp_path / "a.ply").counts == (42, 120, 80)


def test_edges_beside_faces_are_read(tmp_path):
    elements = f"element vertex 5\n{XYZ}element face 1\n{LIST}element edge 1\nproperty int vertex1\nproperty int vertex2\n"
    complex = read(tmp_path, "a.ply", ply(elements, lines([*PYRAMID, [3, 0, 1, 2], [3, 4]])))
    assert complex.counts == (5, 4, 1)


def test_strips_are_triangles_and_begin_again_after_a_minus_one(tmp_path):
    elements = f"element vertex 5\n{XYZ}element tristrips 2\nproperty list int int vertex_indices\n"
    strips = ply(elements, lines([*PYRAMID, [4, 0, 1, 2, 3], [7, 0, 1, 4, -1, 2, 3, 4]]))
    complex = read(tmp_path, "a.ply", strips)
    assert sorted(map(tuple, complex.simplices[1].T.sort(dim=1).values.tolist())) == [
        (0, 1, 2),
        (0, 1, 4),
        (1, 2, 3),
        (2, 3, 4),
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_other_lists_of_faces_and_other_elements_are_passed_over(count, tmp_path):
    elements = f"element camera 1\nproperty double focus\nelement vertex 3\n{XYZ}property uchar red\n"
    elements += f"element face {count}\nproperty list uchar float texcoord\n{LIST}"
    face = [6, 0, 0, 1, 0, 0, 1, 3, 0, 1, 2]
    text = ply(elements, lines([[1.5], *([*row, 255] for row in PYRAMID[:3]), *[face] * count]))
    assert read(tmp_path, "a.ply", text).counts == (3, 3, 1)
    vertices = b"".join(struct.pack("<3fB", *row, 255) for row in PYRAMID[:3])
    rows = struct.pack("<d", 1.5) + vertices + struct.pack("<B6fB3i", *face) * count
    assert read(tmp_path, "b.ply", ply(elements, "", "binary_little_endian").encode() + rows).counts == (3, 3, 1)


@pytest.mark.parametrize("part", [0.5, 0.8, 0.99])
def test_a_binary_file_of_mixed_polygons_that_ends_too_early_is_named(part, tmp_path):
    content = pyramid("binary_little_endian")
    with pytest.raises(ValueError, match="a.ply: .*truncated"):
        read(tmp_path, "a.ply", content[: int(part * len(content))])


@pytest.mark.parametrize(
    ("elements", "rows", "text"),
    [
        (f"element vertex 1\n{XYZ}element vertex 1\n{XYZ}", "0 0 0\n", "declare every element once"),
        (f"element vertex 1\n{XYZ}property quad w\n", "0 0 0 0\n", "unknown type, 'quad w'"),
        ("element vertex 1\nproperty float x\nproperty float y\n", "0 0\n", "properties x, y and z"),
        (
            f"element vertex 3\n{XYZ}element face 1\nproperty list uchar int colors\n",
            "0 0 0\n" * 3 + "1 0\n",
            "list vertex_indices",
        ),
    ],
)
def test_what_is_wrong_with_a_header_is_said(elements, rows, text, tmp_path):
    with pytest.raises(ValueError, match=f"a.ply: .*{text}"):
        read(tmp_path, "a.ply", ply(elements, rows))


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("0 0 0\n1 0 0\n0 1\n3 0 1 2\n", "the last vertex has 1 value of z, got 0"),
        ("0 0 0\n1 0 x\n0 1 0\n3 0 1 2\n", "not a valid PLY file: .*'x'"),
        ("0 0 0\n1_0 0 0\n0 1 0\n3 0 1 2\n", "not a valid PLY file: .*underscores"),
        ("0 0 0\n1 0 0\n0 1 0\n-3 0 1 2\n", "the last face has -3 vertices"),
        ("0 0 0\n1 0 0\n0 1 0\n3 0 1 99999999999999999999\n", "not a valid PLY file"),
        ("0 0 0\n1 0 0\n0 1 0\n3 0 1 2.5\n", "not a valid PLY file"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(rows, text, tmp_path):
    with pytest.raises(ValueError, match=f"a.ply: .*{text}"):
        read(tmp_path, "a.ply", ply(f"element vertex 3\n{XYZ}element face 1\n{LIST}", rows))


@pytest.mark.parametrize("line", ["property float x\n", "property list uchar float z\n"])
@pytest.mark.parametrize("kind", ["ascii", "binary_little_endian"])
def test_coordinates_are_declared_once_and_are_no_lists(kind, line, tmp_path):
    elements = f"element vertex 1\nproperty float x\nproperty float y\n{line}"
    with pytest.raises(ValueError, match=r"a.ply: .*the header declares"):
        read(tmp_path, "a.ply", ply(elements, "0 0 1 0\n", kind))


def test_a_comment_ends_with_its_line_whatever_ends_lines(tmp_path):
    text = "OFF # a square\r4 1 0\r" + lines([*PYRAMID[:4], [4, 0, 1, 2, 3]]).replace("\n", "\r")
    assert read(tmp_path, "a.off", text).counts == (4, 5, 2)
