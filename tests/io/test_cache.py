"""Reading many files, once."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

import eulerscan as es
from eulerscan.io import cache, list_shapes, read_all

SQUARE = "0,0\n1,0\n1,1\n0,1\n"
WINGS = "name,x1,y1,x2,y2\nB7,0,0,1,0\nA1,0,0,2,0\n"
MESH = "OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "shapes"
    place.mkdir()
    for name, content in (("a.csv", SQUARE), ("b.off", MESH), ("bad.csv", ""), ("c.csv", SQUARE), ("wings.csv", WINGS)):
        (place / name).write_text(content)
    return place


@pytest.fixture
def counted(fresh, monkeypatch):
    """The files that are parsed. Everything is worth caching."""
    parsed = []

    def read_many(paths, **options):
        parsed.extend(Path(path).name for path in paths)
        return es.io.batch.read_many(paths, **options)

    monkeypatch.setattr(cache, "read_many", read_many)
    monkeypatch.setattr(cache, "WORTH_SECONDS", 0.0)
    return parsed


def same(one, two):
    return one.keys() == two.keys() and all(
        one[dim].positions == two[dim].positions
        and all(
            torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
            for a, b in zip(one[dim].complex.packed, two[dim].complex.packed, strict=True)
        )
        for dim in one
    )


def test_shapes_are_in_the_order_of_the_files_and_failures_returned(folder):
    paths = [*list_shapes(folder).paths, folder / "gone.csv"]
    batches, failures = read_all(paths, cache=False)
    assert {dim: batch.positions for dim, batch in batches.items()} == {2: [0, 3, 4, 5], 3: [1]}
    assert batches[2].complex.offsets[0].diff().tolist() == [4, 4, 2, 2]
    assert failures == [(folder / "bad.csv", "file is empty."), (folder / "gone.csv", "No such file or directory")]


def test_the_second_time_only_what_failed_is_parsed_and_the_shapes_are_the_same_bits(folder, counted):
    paths = list_shapes(folder).paths
    first, failures = read_all(paths)
    assert counted == ["a.csv", "b.off", "bad.csv", "c.csv", "A1", "B7"]
    counted.clear()
    second, again = read_all(paths)
    assert counted == ["bad.csv"]
    assert same(first, second)
    assert failures == again
    assert same(first, read_all(paths, cache=False)[0])


@pytest.mark.parametrize("change", ["content", "time", "option", "order", "dtype"])
def test_whatever_changes_is_read_again(folder, counted, change):
    paths = [folder / "a.csv", folder / "c.csv"]
    options = {}
    read_all(paths)
    counted.clear()
    if change == "content":
        (folder / "a.csv").write_text(SQUARE + "2,2\n")
    elif change == "time":
        os.utime(folder / "a.csv", ns=(1, 1))
    elif change == "option":
        options = {"dtype": torch.float64}
    elif change == "order":
        paths.reverse()
    else:
        torch.set_default_dtype(torch.float64)
    try:
        found, _ = read_all(paths, **options)
        expected, _ = read_all(paths, cache=False, **options)
    finally:
        torch.set_default_dtype(torch.float32)
    assert counted[:2] == [path.name for path in paths]
    assert same(found, expected)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "indices"])
def test_a_damaged_entry_is_read_again(folder, counted, fresh, damage):
    paths = [folder / "a.csv", folder / "b.off"]
    expected, _ = read_all(paths)
    [entry] = (fresh / "shapes").glob("*.npz")
    content = bytearray(entry.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 2] ^= 255
    elif damage == "emptied":
        content = bytearray()
    if damage == "indices":  # consistent as a file, but an index is out of range
        arrays = cache.load_npz(entry)
        arrays["3 simplices"] = arrays["3 simplices"] + 100
        cache.save_npz(entry, arrays)
    else:
        entry.write_bytes(content)
    counted.clear()
    assert same(read_all(paths)[0], expected)
    assert counted == ["a.csv", "b.off"]


def test_the_cache_is_bounded_and_drops_what_was_used_least_recently(folder, counted, fresh, monkeypatch):
    place, entries = fresh / "shapes", {}
    for age, name in enumerate(("b.off", "a.csv", "c.csv")):
        read_all([folder / name])
        [entries[name]] = set(place.glob("*.npz")) - set(entries.values())
        os.utime(entries[name], ns=(1 + age, 1 + age))
    read_all([folder / "b.off"])  # used again
    size = max(entry.stat().st_size for entry in entries.values())
    monkeypatch.setattr(cache, "MAX_BYTES", 4 * size)  # an entry may take a quarter
    read_all([folder / "wings.csv" / "A1"])
    assert all(entry.exists() for entry in entries.values())
    monkeypatch.setattr(cache, "MAX_BYTES", 4 * size - 1)
    read_all([folder / "wings.csv" / "B7"])
    assert {name for name, entry in entries.items() if entry.exists()} == {"b.off", "c.csv"}


def test_a_cache_that_cannot_be_written_is_no_error(folder, counted, fresh):
    fresh.mkdir()
    (fresh / "shapes").write_text("in the way")
    assert read_all([folder / "a.csv"])[0][2].complex.num_complexes == 1


def test_a_cache_that_can_only_be_read_is_used(folder, counted, monkeypatch):
    [first] = read_all([folder / "a.csv"])[0].values()
    monkeypatch.setattr(cache.os, "utime", Mock(side_effect=PermissionError))
    counted.clear()
    [again] = read_all([folder / "a.csv"])[0].values()
    assert not counted
    assert torch.equal(again.complex.points, first.complex.points)


def test_a_complex_in_bfloat16_is_stored_as_float32():
    cloud = es.Complex(torch.rand(3, 2, dtype=torch.bfloat16, requires_grad=True))
    assert torch.equal(cache.from_arrays(cache.to_arrays(cloud)).points, cloud.points.float())


def test_a_shape_with_a_file_beside_it_is_not_cached(folder, counted, fresh):
    (folder / "d.gltf").write_text("{}")
    read_all([folder / "a.csv", folder / "d.gltf"])
    assert not (fresh / "shapes").exists()


def test_wrong_options_are_no_failure_of_a_file(folder):
    with pytest.raises(TypeError, match="options of CSV files are dtype, outline, got merge"):
        read_all([folder / "a.csv"], merge=True)
    batches, failures = read_all([folder / "a.csv", folder / "b.off"], merge=True)
    assert list(batches) == [3]
    assert [failure.path.name for failure in failures] == ["a.csv"]
