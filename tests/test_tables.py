import csv

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eulerscan._tables import aligned, comma_separated, printable, unescaped


def test_text_stands_left_and_numbers_right():
    assert aligned(["file", "p"], [["long name", "1.5"], ["b", "20.25"]]).splitlines() == [
        "file           p",
        "---------  -----",
        "long name    1.5",
        "b          20.25",
    ]


def test_commas_in_names_are_quoted():
    assert comma_separated(["file"], [["a,b.obj"]]) == 'file\n"a,b.obj"\n'


def test_a_table_without_rows_is_its_header():
    assert aligned(["a", "b"], []) == "a  b\n-  -"


@given(st.text(alphabet=st.sampled_from("'=+-@\t\r\n\",;1.eé "), max_size=6))
@example("-1e5")
def test_every_text_comes_back_and_none_is_a_formula(text):
    [_, [_, cell]] = csv.reader(comma_separated(["number", "name"], [[1, text]]).splitlines(keepends=True))
    assert unescaped(cell) == text
    assert not cell.startswith(tuple("=+-@\t\r")) or float(cell) is not None


def test_numbers_are_left_alone():
    assert comma_separated(["a"], [[-0.5, -3, "-1e-9", "+2", float("-inf")]]) == "a\n-0.5,-3,-1e-9,+2,-inf\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain naïve 図", "plain naïve 図"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("right\u202eto left", "right\\u202eto left"),
        ("undecodable \udcff", "undecodable \\udcff"),
        ("no-break\xa0space", "no-break\xa0space"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text, shown):
    assert printable(text) == shown
    assert aligned([text], []).splitlines()[0] == shown
    assert aligned(["a"], [[text]]).splitlines()[-1] == shown
