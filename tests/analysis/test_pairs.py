import math

import pytest

from eulerscan.analysis.pairs import KeptPairs

ORIGIN = {"names": ["a", "ü\n"], "p": "2"}


def begun(folder, origin=ORIGIN):
    return KeptPairs(folder / "d.csv", origin)


def test_pairs_are_found_again_to_the_last_bit(tmp_path):
    values = {(0, 1): 0.1 + 0.2, (0, 12): 0.0, (3, 4): math.nextafter(1, 2), (5, 6): 1e-320}
    kept = begun(tmp_path)
    assert kept.values == {}
    for pair, value in values.items():
        kept.add(pair, value)
    assert kept.values == begun(tmp_path).values == values
    begun(tmp_path).add((7, 8), 2.5)
    assert begun(tmp_path).values == {**values, (7, 8): 2.5}


def test_nothing_is_left_behind(tmp_path):
    kept = begun(tmp_path)
    kept.add((0, 1), 1.0)
    assert [path.name for path in tmp_path.iterdir()] == [".d.csv.pairs"]
    kept.remove()
    assert not list(tmp_path.iterdir())
    assert begun(tmp_path).values == {}


@pytest.mark.parametrize("other", [{"names": ["a"], "p": "2"}, {**ORIGIN, "p": "1"}, {}])
def test_pairs_of_another_origin_do_not_count(other, tmp_path):
    begun(tmp_path).add((0, 1), 1.0)
    assert begun(tmp_path, other).values == {}
    assert begun(tmp_path).values == {}  # they are gone


@pytest.mark.parametrize("missing", [1, 2, 4, 9, 20, 21, 23, 24, 25, 30, 80])
@pytest.mark.parametrize("after", ["", "\0\0\0\0\n", "the line of another call"])
def test_what_was_half_written_does_not_count(missing, after, tmp_path):
    """A number without its last digits is a number too, so a line counts only with its end."""
    kept = begun(tmp_path)
    kept.add((2, 3), 0.1)
    line = kept.path.read_text()
    kept.path.write_text(line.replace(" 2 3 ", " 0 1 ") + line[:-missing] + after.replace("the line of another call", line))
    again = begun(tmp_path)
    assert again.values == {(0, 1): 0.1}
    again.add((2, 3), 7.0)
    assert begun(tmp_path).values == {(0, 1): 0.1, (2, 3): 7.0}


def test_two_calls_with_one_output_do_not_take_what_the_other_found(tmp_path):
    """Of which the first was begun with other settings, and goes on."""
    first, second = begun(tmp_path, {"p": "1"}), begun(tmp_path, {"p": "2"})
    first.add((0, 1), 1.0)
    second.add((0, 2), 2.0)
    first.remove()
    second.add((1, 2), 3.0)
    assert begun(tmp_path, {"p": "2"}).values == {(1, 2): 3.0}
    first.add((0, 1), 1.0)
    assert begun(tmp_path, {"p": "2"}).values == {(1, 2): 3.0}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\n0 1 0x1p+0\n", b"words\n0 1 0x1p+0\n"])
def test_a_file_that_is_none_of_ours_is_begun_anew(content, tmp_path):
    (tmp_path / ".d.csv.pairs").write_bytes(content)
    assert begun(tmp_path).values == {}
