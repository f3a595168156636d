import numpy as np
import pytest
import torch
from writing import written

import eulerscan as es


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n0,1\n2,3.5\n",
        "0;1\n2;3.5",
        "# a comment\n\n0 1\n 2\t3.5\n",
        "\ufeffx y\r\n0 1\r\n2 3.5\r\n",
        "0, 1\n2, 3.5\n\n",
    ],
)
@pytest.mark.parametrize("extension", ["csv", "txt", "CSV"])
def test_tables_may_be_separated_in_every_way(text, extension, tmp_path):
    assert es.read(written(tmp_path, f"points.{extension}", text)).points.tolist() == [[0, 1], [2, 3.5]]


@pytest.mark.parametrize(
    "text",
    [
        "id,x,y,label\n7,0,1,left\n8,2,3.5,right\n",
        "x,y,label\n0,1,left\n2,3.5,\n",
        "Landmark;X;Y\nSmith, J;0;1\n\n# half\n9;2;3.5\n",
        "y , name, x\n1 , a, 0\n3.5, b, 2\n",
        "id x y w\n  7  0 1\t1\n8 2 3.5 1\n",
        "name\tx\ty\tnote\nleft eye\t0\t1\t\nnose\t2\t3.5\tbroken once\n",
        '\ufeff"name","X","Y"\r\n"left, below","0","1"\r\nthe 5" one,2,3.5\r\n',
        '"name" "x" "y"\n"left  eye" 0 1\n "nose"  2  3.5\n',
        ",x,y\n0,0,1\n1,2,3.5\n",
        "\tx\ty\n0\t0\t1\n1\t2\t3.5\n",
        "y,x\n1,0\n3.5,2\n",
    ],
)
@pytest.mark.parametrize("extension", ["csv", "txt", "xyz"])
def test_columns_named_x_and_y_are_found_among_others(text, extension, tmp_path):
    assert es.read(written(tmp_path, f"points.{extension}", text)).points.tolist() == [[0, 1], [2, 3.5]]


@pytest.mark.parametrize("names", ["landmark,x,y,z", "R,Y,Z,X,G", "Z,nx,ny,Y,nz,X"])
@pytest.mark.parametrize("extension", ["csv", "txt", "xyz"])
def test_columns_named_x_y_and_z_are_found_in_any_order(names, extension, tmp_path):
    rows = [[str("xyz".index(name) + i) if name in "xyz" else "text" for name in names.lower().split(",")] for i in (0, 10)]
    path = written(tmp_path, f"points.{extension}", "\n".join([names, *(",".join(row) for row in rows)]))
    assert es.read(path).points.tolist() == [[0, 1, 2], [10, 11, 12]]


@pytest.mark.parametrize("header", ["", "a,b,c,d\n", "x,z,a,b\n", "corners\n", "x1,x2,x3,x4\n"])
def test_without_such_names_all_columns_are_coordinates(header, tmp_path):
    assert es.read(written(tmp_path, "a.csv", header + "0,1,2,3\n4,5,6,7\n")).points.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_what_follows_the_coordinates_in_xyz_is_left_out(tmp_path):
    assert es.read(written(tmp_path, "a.xyz", "0 1 2 255 0 0\n3 4 5 0 0 255\n")).points.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("header", ["", "x|y|z\n", "a|b|c\n"])
@pytest.mark.parametrize("rows", ["1,5|2,25|3\n-4|5|,6e1\n", "1,5|2,25|3\r\n-4|5|6\r\n", "-4|5|6\n1,5|2,25|3\n||\n"])
@pytest.mark.parametrize("extension", ["csv", "txt", "xyz"])
def test_between_semicolons_or_tabs_decimals_may_have_a_comma(separator, header, rows, extension, tmp_path):
    path = written(tmp_path, f"points.{extension}", (header + rows).replace("|", separator))
    assert sorted(es.read(path).points.tolist()) == [[-4, 5, 6], [1.5, 2.25, 3]]


def test_between_commas_a_comma_is_no_decimal_sign(tmp_path):
    assert es.read(written(tmp_path, "a.csv", "1,5\n2,25\n")).points.tolist() == [[1, 5], [2, 25]]
    assert es.read(written(tmp_path, "b.csv", "1,\t5\n2,\t25\n")).points.tolist() == [[1, 5], [2, 25]]
    assert es.read(written(tmp_path, "c.csv", "1\t,5\n2\t,25\n")).points.tolist() == [[1, 5], [2, 25]]


@pytest.mark.parametrize(
    "text",
    [
        "name;x;y\nGr\xf6\xdfe;0;1\nb;2;3,5\n",
        "name\tx\ty\n\xe9paule\t0\t1\nb\t2\t3,5\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_is_in_any_encoding_of_spreadsheets(text, encoding, tmp_path):
    assert es.read(written(tmp_path, "a.csv", text.encode(encoding))).points.tolist() == [[0, 1], [2, 3.5]]


@pytest.mark.parametrize(
    "text",
    [
        "nose,0,1\nleft eye,2,3.5\n",
        "nose 0 1\nLM2 2 3.5\n",
        "nose\t0\t1\nleft eye\t2\t3,5\n",
        "Smith, J;0;1\nnose;2;3,5\n",
        "specimen,landmark,X1,Y1\ns1,nose,0,1\ns1,eye,2,3.5\n",
        '"left, below",0,1\n"nose",2,3.5\n',
        '"name","a","b"\n"nose","0","1"\n"eye","2","3.5"\n',
    ],
)
def test_first_columns_of_text_are_passed_over(text, tmp_path):
    assert es.read(written(tmp_path, "a.csv", text)).points.tolist() == [[0, 1], [2, 3.5]]


@pytest.mark.parametrize(
    "text",
    [
        '"x" "y"\n"1" 0 1\n"2" 2 3.5\n',
        '"x";"y"\n"1";0;1\n"2";2;3,5\n',
        '"V1" "V2"\n"1" 0 1\n"2" 2 3.5\n',
        '"of","y","x"\n"1","a",1,0\n"2","b",3.5,2\n',
        "x y\nnose 0 1\neye 2 3.5\n",
    ],
)
def test_names_of_rows_as_r_writes_them_are_passed_over(text, tmp_path):
    assert es.read(written(tmp_path, "a.csv", text)).points.tolist() == [[0, 1], [2, 3.5]]


@pytest.mark.parametrize(
    "text",
    [
        ",a,b\n0,0,1\n1,2,3.5\n",
        ";a;b\n0;0;1\n1;2;3,5\n",
        "\ta\tb\n0\t0\t1\n1\t2\t3.5\n",
        "\ta\tb\n0\t0\t1\n1\t2\t3,5\n",
        '"" a b\n0 0 1\n1 2 3.5\n',
        '"","V1","V2"\n"1",0,1\n"2",2,3.5\n',
        ",part,V1,V2\n0,nose,0,1\n1,eye,2,3.5\n",
    ],
)
@pytest.mark.parametrize("extension", ["csv", "xyz"])
def test_a_first_column_that_alone_has_no_name_counts_rows(text, extension, tmp_path):
    """As pandas and ``write.csv`` of R write them."""
    assert es.read(written(tmp_path, f"a.{extension}", text)).points.tolist() == [[0, 1], [2, 3.5]]


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n0.5,1e-05,2.0\n-1.5,3.5,4.25\n",
        "0;1;2\n0,5;1e-05;2,0\n-1,5;3,5;4,25\n",
        "0\t1\t2\n0.5\t1e-05\t2.0\n-1.5\t3.5\t4.25\n",
        ",0,1,2\n0,0.5,1e-05,2.0\n1,-1.5,3.5,4.25\n",
        ";0;1;2\n0;0,5;1e-05;2,0\n1;-1,5;3,5;4,25\n",
        ",0,1,2\na,0.5,1e-05,2.0\nb,-1.5,3.5,4.25\n",
    ],
)
def test_columns_that_pandas_numbers_have_no_point_above(text, tmp_path):
    points = es.read(written(tmp_path, "a.csv", text), dtype=torch.float64).points
    assert points.tolist() == [[0.5, 1e-05, 2], [-1.5, 3.5, 4.25]]


def test_rows_that_pandas_numbers_too_are_no_coordinates(tmp_path):
    assert es.read(written(tmp_path, "a.csv", ",0,1\n0,3,4\n1,5,6\n")).points.tolist() == [[3, 4], [5, 6]]


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n",
        "0,1,2\n3,4,5\n",
        "0,1,2\n0.5,0.5,1\n",
        "0.0,1.0,2.0\n0.5,0.5,0.5\n",
        "0,1\n-0.95,0.31\n-0.59,-0.81\n0.59,-0.81\n0.95,0.31\n",
    ],
)
def test_a_point_that_looks_like_numbers_of_columns_is_one(text, tmp_path):
    assert es.read(written(tmp_path, "a.csv", text)).points[0].tolist() in ([0, 1, 2], [0, 1])


@pytest.mark.parametrize("header", [",corners,\n", ",,b\n", ",a,b,c\n"])
def test_a_title_above_some_columns_names_none(header, tmp_path):
    assert es.read(written(tmp_path, "a.csv", header + "0,1,2\n4,5,6\n")).points.tolist() == [[0, 1, 2], [4, 5, 6]]


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\r\nname;x;y\r\na;0;1\r\nb;2;3,5\r\n",
        "SEP=,\n0,1\n2,3.5\n",
        "sep=\t\n0\t1\n2\t3,5\n",
        "0;1;\n2;3.5;\n;;\n",
        "x,y,\n0,1,\n2,3.5\n",
        '"0","1"\n"2","3.5"\n',
        "0;1\n\u22120;1\n2;3.5\n",
        "\ufeffsep=;\r\nx;y\r\n0;1\r\n2;3,5\r\n",
        'x\ty\n"0"\t"1"\n"2"\t"3.5"\n',
        '"0"\t"1"\n"2"\t"3,5"\n',
        "0,1\n  # half\n\N{NO-BREAK SPACE}\n2,3.5\n",
    ],
)
def test_what_spreadsheets_leave_around_numbers_does_not_matter(text, tmp_path):
    points = es.read(written(tmp_path, "a.csv", text)).points.tolist()
    assert (points[0], points[-1]) == ([0, 1], [2, 3.5])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,5 2,25\n", "line 1 must hold numbers, got '5 2'. Use a decimal point, or a decimal comma if"),
        ('"1,5","2,25"\n', "line 1 must hold numbers, got '1,5'. Use a decimal point"),
        ('id,x,y\na,"1,5",2\n', "line 2 must hold a number for x, got '1,5'. Use a decimal point"),
        ("1,5;2\n3;2.25\n", "decimals must all have a point or all a comma, got '1,5' and '2.25'"),
        ("id;x;y\na;1,5;2\nb;3;2.25\n", "decimals must all have a point or all a comma, got '1,5' and '2.25'"),
        ("1.234,5;2\n", "line 1 must hold numbers, got '1.234,5'"),
        ("nose;1.234,5;2.345,6\nears;1;2\n", "line 1 must hold numbers, got '1.234,5'"),
        ("1,234,567;2\n", "line 1 must hold numbers, got '1,234,567'"),
        ("1\N{NO-BREAK SPACE}234,5;2\n", r"line 1 must hold numbers, got '1\?234,5'"),
        ("nose,NA,NA\neye,1,2\n", "line 1 must hold numbers, got 'NA'"),
        ("-,-\n1,2\n", "line 1 must hold numbers, got '-'"),
        ("NA,1,2\nNA,1,2\n", "line 1 must hold numbers, got 'NA'"),
        ("5mm,1,2\n6mm,1,2\n", "line 1 must hold numbers, got '5mm'"),
        ("nose,1_0,2\n", "line 1 must hold numbers, got '1_0'"),
        ("1,2,nose\n3,4,eye\n", "line 1 must hold numbers, got 'nose'. Text columns are ignored if"),
        ("nose,1\neye,4\n", "line 1 must hold numbers, got 'nose'"),
        ("nose,1\n3,4\n", "line 1 must hold numbers, got 'nose'"),
        ("x,y\n0,1,2,3\n", "line 2 must have 2 columns like the header, got 4"),
        ("x,y,z\n0,1,2,3\n", "line 2 must have 3 columns like the header, got 4"),
        ('""\n1\n""\n', "line 3 must hold numbers, got ''"),
        (",a\nid,\n", "line 2 must hold numbers, got 'id'"),
        ("1,2,3\n,,#5\n", "line 2 must hold numbers, got ''"),
        ("name,a.csv,b.csv\na.csv,0,1\nb.csv,1,0\n", "rows and columns have the same names"),
        ("name,group,d0_t0,d0_t1\na,,0,1\nb,,0,2\n", "file is an output of eulerscan"),
        ("file,class,probability,cat,dog\na,cat,0.75,0.75,0.25\n", "file is an output of eulerscan"),
        ("shape,true class,class,probability\na,cat,cat,0.75\n", "file is an output of eulerscan"),
        (" # alone\n\N{NO-BREAK SPACE}\n", "file holds no points"),
        (np.arange(9.0).tobytes(), "file is binary"),
        ("x,y\n1,2\n".encode("utf-16-le"), "file is binary.* UTF-16 with a byte order mark"),
        (b"\xff\xfex", "file is binary"),
    ],
)
def test_what_may_mean_two_things_is_no_point(text, reason, tmp_path):
    with pytest.raises(ValueError, match=f"a.csv: {reason}"):
        es.read(written(tmp_path, "a.csv", text))


@pytest.mark.parametrize("comment", ["water", "", "1 2 3", "# optimised"])
def test_xyz_may_be_a_molecule(comment, tmp_path):
    text = f" 3\n{comment}\nO 0.0 0.0 0.125 -0.8\nH 0.0 0.75 -0.5 0.4\nH 0.0 -0.75 -0.5 0.4\n"
    points = es.read(written(tmp_path, "water.xyz", text)).points
    assert points.tolist() == [[0, 0, 0.125], [0, 0.75, -0.5], [0, -0.75, -0.5]]


def test_a_molecule_has_as_many_atoms_as_it_says(tmp_path):
    with pytest.raises(ValueError, match=r"3 atoms .*got 1"):
        es.read(written(tmp_path, "a.xyz", "3\nwater\nO 0 0 0\n"))
