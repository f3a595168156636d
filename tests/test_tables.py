from eulerscan._tables import aligned, comma_separated


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
