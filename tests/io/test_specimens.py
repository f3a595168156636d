"""Files with the landmarks of several specimens."""

import numpy as np
import pytest
import torch
from writing import written

import eulerscan as es
from eulerscan.io import list_shapes

TPS = """LM=3
0.0 0.0
4.00000 0.00000
0 2
IMAGE=C:\\pictures\\wing A.JPG
ID=0
SCALE=0.5

lm=3
10 10
12 10
10 13
CURVES=1
POINTS=2
7 7
8 8
IMAGE=wing B.tif
COMMENT=a = b
ID=1
scale = 2
"""
FIRST, SECOND = [[0, 0], [2, 0], [0, 1]], [[20, 20], [24, 20], [20, 26]]


def named(path):
    """The points of every shape in a file, by its name."""
    return {shape.name: es.read(shape).points.tolist() for shape in list_shapes(path).paths}


@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text.replace("\n", "\r\n")])
def test_a_tps_file_holds_specimens_by_the_names_of_their_images_and_in_their_scale(change, tmp_path):
    path = written(tmp_path, "wings.TPS", change(TPS))
    shapes = es.read(path, dtype=torch.float64)
    assert [shapes[i].points.tolist() for i in range(len(shapes))] == [FIRST, SECOND]
    assert named(path) == {"wing A": FIRST, "wing B": SECOND}


def test_decimals_of_a_tps_file_may_have_a_comma(tmp_path):
    path = written(tmp_path, "a.tps", "LM=2\n0,5 1\n2,25 3\nSCALE=0,5\n")
    assert es.read(path).points.tolist() == [[0.25, 0.5], [1.125, 1.5]]


def test_names_of_images_keep_what_is_no_extension(tmp_path):
    text = TPS.replace("wing A.JPG", "Sp. nov. 1").replace("wing B.tif", "Sp. nov. 2")
    assert list(named(written(tmp_path, "a.tps", text))) == ["Sp. nov. 1", "Sp. nov. 2"]
    text = TPS.replace("wing A.JPG", "1987.12.jp2").replace("wing B.tif", "wing.b")
    assert list(named(written(tmp_path, "b.tps", text))) == ["1987.12", "wing.b"]


def test_ids_are_names_where_images_do_not_tell_specimens_apart_and_numbers_where_neither_does(tmp_path):
    text = TPS.replace("wing B.tif", "wing A.tif")
    assert list(named(written(tmp_path, "a.tps", text))) == ["0", "1"]
    assert list(named(written(tmp_path, "b.tps", text.replace("ID=0", "ID=1")))) == ["1", "2"]
    assert list(named(written(tmp_path, "c.tps", "LM=1\n0 0\nID=A/1\nLM=1\n1 1\nID=A/2\n"))) == ["A_1", "A_2"]
    many = "".join(f"LM=1\n{i} 0\nID=x\n" for i in range(12))
    assert list(named(written(tmp_path, "d.tps", many)))[:2] == ["01", "02"]  # sorted by name they stay in order


def test_landmarks_in_space_and_of_different_numbers(tmp_path):
    path = written(tmp_path, "skulls.tps", "LM3=2\n0 1 2\n3 4 5\nID=a\nLM3=1\n6 7 8\nID=b\n")
    assert named(path) == {"a": [[0, 1, 2], [3, 4, 5]], "b": [[6, 7, 8]]}
    assert es.read(path).batch.tolist() == [0, 0, 1]


def test_a_file_of_one_specimen_is_one_shape(tmp_path):
    path = written(tmp_path, "one.tps", "LM=2\n0 0\n1 0\nIMAGE=a.jpg\n")
    assert list_shapes(path).paths == [path]
    assert es.read(path).num_complexes == 1
    assert es.read(path / "a").points.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ID=3\n", "file holds no landmarks: there is no line LM= or LM3="),
        ("LM=many\n0 0\n", "line 1 must give the number of landmarks, got 'LM=many'"),
        ("LM=0\nCURVES=1\nPOINTS=1\n0 0\n", "line 1 must declare at least one landmark, got 0. Convert curves"),
        ("LM=3\n0 0\n1 0\n", "file ends before landmark 3 of the 3 declared in line 1"),
        ("\nLM=3\n0 0\n1 0\nID=1\n", "line 5 must hold 2 coordinates, landmark 3 of the 3 declared in line 2, got 'ID=1'"),
        ("LM=2\n0 0\n1 0\n2 0\nID=1\n", "line 4 must not be a landmark after the 2 declared, got '2 0'"),
        ("LM=1\n0 0 0\n", "line 2 must hold 2 coordinates, landmark 1 of the 1 declared in line 1, got '0 0 0'"),
        ("LM=1\nNA NA\n", "got 'NA NA'. Missing landmarks are not supported"),
        ("LM=1\n0 nan\n", "line 2 must hold 2 coordinates"),
        ("LM=1\n0 0\nSCALE=0\n", "line 3 must hold a positive scale, got 'SCALE=0'"),
        ("LM=1\n0 0\nSCALE=2\nLM=1\n0 0\n", "SCALE= must be given for all specimens or for none, but the one at line 4"),
        ("LM=1\n0 0\nLM3=1\n0 0 0\n", "line 3 must begin a specimen with LM= like those before, got 'LM3=1'"),
    ],
)
def test_what_is_wrong_with_a_tps_file_is_said_with_the_line(text, message, tmp_path):
    path = written(tmp_path, "bad.tps", text)
    assert list_shapes(path).paths == [path]  # so that whoever reads it is told
    with pytest.raises(ValueError, match=r"bad\.tps: .*") as caught:
        es.read(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "name,x1,y1,x2,y2,x3,y3\nA,0,0,2,0,0,1\nB,20,20,24,20,20,26\n",
        "Name;X1;X2;X3;Y1;Y2;Y3;size\nA;0,0;2;0;0;0;1,0;big\nB;20;24;20;20;20;26;\n",
        '"1.X" "1.Y" "2.X" "2.Y" "3.X" "3.Y"\n"A" 0 0 2 0 0 1\n"B" 20 20 24 20 20 26\n',
        '"","X1.X","X1.Y","X2.X","X2.Y","X3.X","X3.Y"\n"A",0,0,2,0,0,1\n"B",20,20,24,20,20,26\n',
        "sex\tid\tx_1\ty_1\tx_2\ty_2\tx_3\ty_3\nf\tA\t0\t0\t2\t0\t0\t1\nf\tB\t20\t20\t24\t20\t20\t26\n",
        "id,LM1_X,LM1_Y,LM2_X,LM2_Y,LM3_X,LM3_Y\nA,0,0,2,0,0,1\nB,20,20,24,20,20,26\n",
        "# wings\n\nid,x10,y10,x9,y9,x2,y2\nA,0,1,2,0,0,0\nB,20,26,24,20,20,20\n",
        "# how they were measured\n" * 500 + "id,x1,y1,x2,y2,x3,y3\nA,0,0,2,0,0,1\nB,20,20,24,20,20,26\n",
    ],
)
@pytest.mark.parametrize("extension", ["csv", "tsv", "txt"])
def test_a_table_with_a_specimen_a_line_holds_specimens(text, extension, tmp_path):
    path = written(tmp_path, f"wings.{extension}", text)
    assert named(path) == {"A": FIRST, "B": SECOND}
    assert es.read(path).num_complexes == 2


@pytest.mark.parametrize(
    ("head", "cells", "names"),
    [
        (",id,", ["0,A", "1,B"], ["A", "B"]),  # pandas
        ('"","species","id",', ['"1","a","10432"', '"2","a","10433"'], ["10432", "10433"]),  # R
        ('"id",', ['"1","A"', '"2","B"'], ["A", "B"]),  # R, whose column of row names has no place in the first line
        (",size,", ["1,3.5", "2,3"], ["1", "2"]),
        ("size,id,", ["3.5,A", "3,B"], ["A", "B"]),
        (",size,", ["10432,3", "10977,4"], ["10432", "10977"]),  # numbers of a collection
        ("id,age,", ["1,3", "2,4"], ["1", "2"]),
        ("number,", ["1987.1", "1987.2"], ["1987.1", "1987.2"]),
    ],
)
def test_names_of_specimens_go_before_numbers_of_rows_and_those_before_sizes(head, cells, names, tmp_path):
    text = f"{head}x1,y1,x2,y2\n{cells[0]},0,0,1,1\n{cells[1]},0,0,2,2\n"
    assert named(written(tmp_path, "a.csv", text)) == dict(zip(names, [[[0, 0], [1, 1]], [[0, 0], [2, 2]]], strict=True))


def test_lines_without_a_name_are_counted_and_space_has_a_z(tmp_path):
    path = written(tmp_path, "skulls.csv", "x1,y1,z1,x2,y2,z2\n0,1,2,3,4,5\n6,7,8,9,10,11\n")
    assert named(path) == {"1": [[0, 1, 2], [3, 4, 5]], "2": [[6, 7, 8], [9, 10, 11]]}
    wide = "x1,y1,x2,y2\n0,1,2,3\n4,5,6,7\n".encode("utf-16")
    assert es.read(written(tmp_path, "wide.txt", wide)).num_complexes == 2


def test_columns_named_x_and_y_are_read_whatever_is_beside_them(tmp_path):
    path = written(tmp_path, "a.csv", "x,y,x.1,y.1,x.2,y.2\n0,1,5,5,6,6\n2,3,7,7,8,8\n")
    assert es.read(path).points.tolist() == [[0, 1], [2, 3]]
    assert list_shapes(path).paths == [path]


@pytest.mark.parametrize("header", ["x1,y1", "x1,x2", "x,y", "a1,b1"])
def test_other_tables_have_a_point_a_line(header, tmp_path):
    path = written(tmp_path, "a.csv", f"{header}\n0,1\n2,3\n")
    assert es.read(path).points.tolist() == [[0, 1], [2, 3]]
    assert list_shapes(path).paths == [path]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x1,y1,x2\n0,0,1\n", "header must have x and y once for every landmark, got no y2"),
        ("x1,y1,x2,y2,1.x\n0,0,1,1,1\n", "header must have x and y once for every landmark, got 2 x1"),
        ("x1,y1,x2,y2\n", "file holds no specimens: there is no line of numbers"),
        ("id,x1,y1,x2,y2\na,0,0,1,1\nb,0,0,1,NA\n", "line 3 must hold a number for y2, got 'NA'"),
        ("id,x1,y1,x2,y2\na,0,0,1\n", "line 2 must have 5 columns like the header, got 4"),
    ],
)
def test_what_is_wrong_with_a_table_of_specimens_is_said(text, message, tmp_path):
    with pytest.raises(ValueError, match=r"bad\.csv: .*") as caught:
        es.read(written(tmp_path, "bad.csv", text))
    assert message in str(caught.value)


def test_a_name_that_is_not_in_the_file_is_answered_with_some_that_are(tmp_path):
    path = written(tmp_path, "wings.tps", TPS)
    with pytest.raises(ValueError, match=r"wings.tps has no specimen of this name. It has wing A, wing B\."):
        es.read(path / "wing C")
    many = written(tmp_path, "many.tps", "".join(f"LM=1\n0 0\nID={name}\n" for name in "abcdefg"))
    with pytest.raises(ValueError, match=r"It has a, b, c, d, e and 2 more\."):
        es.read(many / "h")


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "0,0\n1,1\n"), ("a.png", b"\x89PNG\r\n\x1a\n"), ("a.npy", b"\x93NUMPY"), ("a.gml", "graph [ ]\n")],
)
def test_nothing_is_below_a_file_of_one_shape(name, content, tmp_path):
    with pytest.raises(NotADirectoryError):
        es.read(written(tmp_path, name, content) / "wing")


def test_a_file_that_was_changed_is_read_again(tmp_path):
    path = written(tmp_path, "wings.tps", TPS)
    assert len(list_shapes(path).paths) == 2
    written(tmp_path, "wings.tps", TPS + TPS.replace("wing", "fin"))
    assert [shape.name for shape in list_shapes(path).paths] == ["wing A", "wing B", "fin A", "fin B"]


def test_landmarks_are_exact(tmp_path):
    points = np.random.default_rng(0).normal(size=(5, 2)) * 1000
    text = "LM=5\n" + "".join(f"{x} {y}\n" for x, y in points.tolist())
    np.testing.assert_array_equal(es.read(written(tmp_path, "a.tps", text), dtype=torch.float64).points.numpy(), points)
