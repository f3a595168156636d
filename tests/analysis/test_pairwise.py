import math

import pytest

from eulerscan.analysis.pairwise import PairwiseCheckpoint

INPUTS = {"names": ["a", "ü\n"], "p": "2"}


def resume(folder, inputs=INPUTS):
    return PairwiseCheckpoint(folder / "d.csv", inputs)


def test_pairs_are_restored_to_the_last_bit(tmp_path):
    values = {(0, 1): 0.1 + 0.2, (0, 12): 0.0, (3, 4): math.nextafter(1, 2), (5, 6): 1e-320}
    checkpoint = resume(tmp_path)
    assert checkpoint.values == {}
    for pair, value in values.items():
        checkpoint.add(pair, value)
    assert checkpoint.values == resume(tmp_path).values == values
    resume(tmp_path).add((7, 8), 2.5)
    assert resume(tmp_path).values == {**values, (7, 8): 2.5}


def test_nothing_is_left_behind(tmp_path):
    checkpoint = resume(tmp_path)
    checkpoint.add((0, 1), 1.0)
    assert [path.name for path in tmp_path.iterdir()] == [".d.csv.pairs"]
    checkpoint.remove()
    assert not list(tmp_path.iterdir())
    assert resume(tmp_path).values == {}


@pytest.mark.parametrize("other", [{"names": ["a"], "p": "2"}, {**INPUTS, "p": "1"}, {}])
def test_pairs_of_other_inputs_are_discarded(other, tmp_path):
    resume(tmp_path).add((0, 1), 1.0)
    assert resume(tmp_path, other).values == {}
    assert resume(tmp_path).values == {}  # discarded


@pytest.mark.parametrize("missing", [1, 2, 4, 9, 20, 21, 23, 24, 25, 30, 80])
@pytest.mark.parametrize("after", ["", "\0\0\0\0\n", "the line of another call"])
def test_incomplete_lines_are_ignored(missing, after, tmp_path):
    """A truncated number is still a number, so a line counts only with its line break."""
    checkpoint = resume(tmp_path)
    checkpoint.add((2, 3), 0.1)
    line = checkpoint.path.read_text()
    checkpoint.path.write_text(
        line.replace(" 2 3 ", " 0 1 ") + line[:-missing] + after.replace("the line of another call", line)
    )
    again = resume(tmp_path)
    assert again.values == {(0, 1): 0.1}
    again.add((2, 3), 7.0)
    assert resume(tmp_path).values == {(0, 1): 0.1, (2, 3): 7.0}


def test_concurrent_calls_with_one_output_do_not_mix(tmp_path):
    """The first has other inputs and keeps running."""
    first, second = resume(tmp_path, {"p": "1"}), resume(tmp_path, {"p": "2"})
    first.add((0, 1), 1.0)
    second.add((0, 2), 2.0)
    first.remove()
    second.add((1, 2), 3.0)
    assert resume(tmp_path, {"p": "2"}).values == {(1, 2): 3.0}
    first.add((0, 1), 1.0)
    assert resume(tmp_path, {"p": "2"}).values == {(1, 2): 3.0}


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\n0 1 0x1p+0\n", b"words\n0 1 0x1p+0\n"])
def test_a_foreign_file_is_replaced(content, tmp_path):
    (tmp_path / ".d.csv.pairs").write_bytes(content)
    assert resume(tmp_path).values == {}
