"""Tables of groups and covariates."""

import pytest

from eulerscan._tables import comma_separated
from eulerscan.io import read_metadata


def written(folder, text, encoding="utf-8"):
    (folder / "t.csv").write_text(text, encoding=encoding)
    return folder / "t.csv"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_tables_of_spreadsheets_are_read(separator, encoding, tmp_path):
    text = 'length,File,"species name"\n1.5,a.ply,"müller, 1838"\n\n,b.ply,NA\n'
    table = read_metadata(written(tmp_path, text.replace(",", separator).replace(f"{separator} ", ", "), encoding))
    assert (table.key, table.columns) == ("File", ("length", "species name"))
    assert table.column("species name", ["b.ply", "a.ply"]) == [None, "müller, 1838"]
    assert table.column("length", ["a.ply", "b.ply"]) == ["1.5", None]


def test_numbers_are_those_that_every_reader_accepts(tmp_path):
    table = read_metadata(written(tmp_path, "name;length;site\na;1,5;x\nb;2.5;1_0\nc;NA;2\n"))
    assert table.numbers("length", ["a.ply", "b.ply", "c.ply", "d.ply"]) == [1.5, 2.5, None, None]
    with pytest.raises(ValueError, match="column 'site' must hold numbers, got '1_0'"):
        table.numbers("site", ["b.ply", "c.ply"])


def test_a_separator_within_quotes_separates_nothing(tmp_path):
    table = read_metadata(written(tmp_path, 'name,"length; mm",sex\na,1.5,f\n'))
    assert table.columns == ("length; mm", "sex")


def test_cells_that_were_escaped_for_spreadsheets_are_restored(tmp_path):
    table = read_metadata(written(tmp_path, comma_separated(["name", "group"], [["-a.ply", "=1"], ["'b'.ply", "-2"]])))
    assert table.column("group", ["-a.ply", "'b'.ply"]) == ["=1", "-2"]


def test_names_are_paths_or_file_names_with_or_without_extension(tmp_path):
    table = read_metadata(written(tmp_path, "id,sex\nold/a.ply,f\nb.ply,m\nc,f\nx.tps/C3,m\n"))
    shapes = ["old/a.ply", "new/a.ply", "new/b.ply", "c.off", "x.tps/C3"]
    assert table.column("sex", shapes) == ["f", None, "m", "f", "m"]
    assert table.unmatched(["old/a.ply", "c.off"]) == ["b.ply", "x.tps/C3"]


def test_names_that_differ_in_case_are_found_unless_two_do(tmp_path):
    table = read_metadata(written(tmp_path, "name,sex\nLeaf1.png,f\nleaf2.png,m\nb.png,f\nB.PNG,m\n"))
    assert table.column("sex", ["leaf1.PNG", "leaf2.png", "b.png", "B.png"]) == ["f", "m", "f", None]
    assert table.column("sex", ["leaf2.png", "LEAF2.png"]) == ["m", None]
    assert table.column("sex", ["leaf1.PNG", "LEAF1.png", "b.png"]) == [None, None, "f"]
    assert table.unmatched(["leaf1.PNG"]) == ["leaf2.png", "b.png", "B.PNG"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("specimen,file,sex\nS1,a.png,f\nS1,b.png,f\n", "file"),  # two scans of a specimen
        ("specimen,file,sex\nS1,a.png,f\nS2,b.png,f\n", "file"),
        ("scan,specimen,sex\na,S1,f\nb,S1,f\n", "scan"),
        ("sex,name,id\nf,gorilla,a\nf,gorilla,b\n", "id"),  # the name of the species
    ],
)
def test_names_of_shapes_differ(text, key, tmp_path):
    assert read_metadata(written(tmp_path, text)).key == key


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("name,sex\na,f\na,m\n", ["a.ply"], "'a' again in row 3"),
        ("name,sex\na,f\n", ["old/a.ply", "new/a.ply"], "row 'a' belongs to both old/a.ply and new/a.ply"),
        ("name,sex\nz,f\n", ["a.ply"], r"column 'name' must hold the names of the shapes, such as 'a.ply', got 'z'"),
        ("name,species\na,f\n", ["a.ply"], "no column 'sex'. Its columns are species"),
        ("name,Age,Sex\na,1,f\n", ["a.ply"], "no column 'sex'. Its columns are Age, Sex. Did you mean 'Sex'"),
        ("name,sex,sex\na,f,m\n", ["a.ply"], "got sex more than once"),
        ("name,sex\na\n", ["a.ply"], "row 2 must have 2 cells like the header, got 1"),
        ("name,sex\n", ["a.ply"], "got 1 lines"),
        ('name,sex\n"a,f\n', ["a.ply"], "not a table"),
    ],
)
def test_what_is_wrong_is_said(text, shapes, message, tmp_path):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=rf"t\.csv: .*{message}"):
        read_metadata(path).column("sex", shapes)


def test_a_binary_file_is_no_table(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"PK\3\4\0\0" * 9)
    with pytest.raises(ValueError, match=r"t\.csv: file is binary"):
        read_metadata(tmp_path / "t.csv")


def test_paths_may_be_longer_and_have_backslashes(tmp_path):
    file = tmp_path / "leaves.csv"
    file.write_text("file,kind\nleaves\\oak\\0.png,oak\nleaves/elm/0.png,elm\n")
    table = read_metadata(file)
    assert table.column("kind", ["oak/0.png", "elm/0.png"]) == ["oak", "elm"]
    assert table.unmatched(["oak/0.png"]) == ["leaves/elm/0.png"]
    with pytest.raises(ValueError, match="relative to the folder"):
        table.column("kind", ["0.png"])  # of which folder?


def test_paths_may_begin_with_the_same_folders(tmp_path):
    table = read_metadata(written(tmp_path, "name,kind\ndata/a/1.ply,x\ndata/b/1.ply,y\n"))
    assert table.column("kind", ["a/1.ply", "b/1.ply"]) == ["x", "y"]
    table = read_metadata(written(tmp_path, "name,kind\na/1.ply,x\nb/2.ply,y\n"))
    assert table.column("kind", ["a/1.ply", "1.ply", "2.ply"]) == ["x", None, None]  # they are in other folders
    table = read_metadata(written(tmp_path, "name,kind\na/1.ply,x\na/2.ply,y\n"))
    assert table.column("kind", ["a/1.ply", "1.ply", "2.ply"]) == ["x", None, "y"]
