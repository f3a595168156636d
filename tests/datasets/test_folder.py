"""Folders of files as data sets."""

from pathlib import Path

import pytest
import torch

from eulerscan.datasets.folder import load_folder, read_labeled


def cloud(path, points=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{i},{i * i}\n" for i in range(points)))


@pytest.fixture
def folder(tmp_path):
    """Two classes of four shapes."""
    place = tmp_path / "shapes"
    for i in range(4):
        cloud(place / "cat" / f"{i}.csv", 3 + i)
        cloud(place / "dog" / f"{i}.csv", 10 + i)
    return place


def test_classes_are_the_subfolders_in_order(folder):
    dataset, failures = load_folder(folder)
    assert (dataset.classes, dataset.labels.tolist(), failures) == (("cat", "dog"), [0] * 4 + [1] * 4, [])
    assert dataset.shapes.offsets[0].diff().tolist() == [3, 4, 5, 6, 10, 11, 12, 13]
    assert dataset.names == tuple(str(folder / name / f"{i}.csv") for name in ("cat", "dog") for i in range(4))


def test_small_and_empty_classes_are_named_and_can_be_skipped(folder):
    cloud(folder / "emu" / "0.csv")
    (folder / "fox").mkdir()
    with pytest.raises(ValueError, match=r"got emu with 1, fox with 0\..*skip_small"):
        load_folder(folder)
    dataset, failures = load_folder(folder, skip_small=True)
    assert dataset.classes == ("cat", "dog")
    assert len(dataset) == 8
    assert [(failure.path.name, failure.reason) for failure in failures] == [
        ("emu", "class of 1 shapes, left out."),
        ("fox", "class of 0 shapes, left out."),
    ]


def test_a_table_has_the_classes(folder):
    table = folder / "shapes.csv"
    lines = [f"{name}/{i}.csv,{'odd' if i % 2 else 'even'}" for name in ("cat", "dog") for i in range(4)]
    table.write_text("\n".join(["name,parity", *lines[:-1], "cow/9.csv,odd", "dog/3.csv,"]))
    with pytest.raises(ValueError, match="odd with 3"):
        load_folder(folder, table=table, label="parity")
    cloud(folder / "dog" / "5.csv", 20)
    table.write_text("\n".join(["name,parity", *lines[:-1], "dog/5.csv,odd", "cow/9.csv,odd", "dog/3.csv,"]))
    dataset, failures = load_folder(folder, table=table, label="parity")
    assert dataset.classes == ("even", "odd")
    assert dataset.shapes.offsets[0].diff().tolist() == [3, 5, 10, 12, 4, 6, 11, 20]
    assert [(failure.path.name, failure.reason) for failure in failures] == [
        ("3.csv", f"no parity in {table}."),
        ("shapes.csv", "row 'cow/9.csv' is none of the shapes."),
    ]


def test_a_table_and_its_column_belong_together(folder):
    with pytest.raises(ValueError, match="label needs table"):
        load_folder(folder, label="sex")
    with pytest.raises(ValueError, match="table needs label"):
        load_folder(folder, table=folder / "shapes.csv")


def test_specimens_of_one_file_with_a_table(tmp_path):
    specimens = "\n".join(f"LM=2\n0 0\n{i} 1\nID=s{i}" for i in range(1, 9))
    (tmp_path / "wings.tps").write_text(specimens + "\n")
    table = tmp_path / "sexes.csv"
    table.write_text("specimen,sex\n" + "".join(f"s{i},{'m' if i > 4 else 'f'}\n" for i in range(1, 9)))
    dataset, failures = load_folder(tmp_path / "wings.tps", table=table, label="sex")
    assert (dataset.classes, dataset.labels.tolist(), failures) == (("f", "m"), [0] * 4 + [1] * 4, [])


def test_other_files_are_passed_over(folder):
    (folder / "cat" / "notes.txt").write_text("1 2\n3 4\n")
    assert len(load_folder(folder)[0]) == 9
    assert len(load_folder(folder, only=["csv"])[0]) == 8


def test_labeled_shapes_need_no_split(folder):
    (folder / "cat" / "bad.csv").write_text("")
    shapes, classes, paths, failures, _ = read_labeled(folder)
    assert shapes.num_complexes == len(classes) == len(paths) == 8
    assert classes == ["cat"] * 4 + ["dog"] * 4
    assert [failure.path.name for failure in failures] == ["bad.csv"]
    assert torch.equal(shapes[0].points[:, 0], torch.arange(3.0))


@pytest.mark.parametrize("names", [(), ("cat",)])
def test_a_folder_with_too_few_classes_says_how_to_give_them(names, tmp_path):
    for name in names:
        for i in range(4):
            cloud(tmp_path / name / f"{i}.csv")
    with pytest.raises(ValueError, match=r"must have at least two classes .*--table"):
        load_folder(tmp_path)


@pytest.fixture
def scans(tmp_path):
    """A folder of six specimens of each of two kinds, with two scans each, and their table."""
    place, rows = tmp_path / "scans", ["name,kind,specimen"]
    for i in range(24):
        cloud(place / f"{i}.csv", 3 + i // 2)
        rows.append(f"{i},{'cat' if i < 12 else 'dog'},s{i // 2}")
    (tmp_path / "scans-table.csv").write_text("\n".join(rows))
    return place, tmp_path / "scans-table.csv", rows


def test_splits_do_not_divide_the_blocks_of_a_table(scans):
    folder, table, _ = scans
    dataset, failures = load_folder(folder, table=table, label="kind", strata="specimen")
    assert failures == []
    own = [f"s{int(Path(name).stem) // 2}" for name in dataset.names]
    assert dataset.strata == tuple(own)
    blocks = {name: {own[i] for i in indices.tolist()} for name, indices in dataset.splits.items()}
    assert {name: len(found) for name, found in blocks.items()} == {"train": 8, "val": 2, "test": 2}
    assert len(set().union(*blocks.values())) == 12
    apart, _ = load_folder(folder, table=table, label="kind")
    assert apart.strata == ()


def test_a_class_of_few_blocks_is_named_and_can_be_skipped(scans):
    folder, table, rows = scans
    for i in range(24, 32):
        cloud(folder / f"{i}.csv")
        rows.append(f"{i},emu,s{i // 3}")
    table.write_text("\n".join(rows))
    words = {"table": table, "label": "kind", "strata": "specimen"}
    with pytest.raises(ValueError, match="at least 4 blocks in column 'specimen', .* got emu with 3"):
        load_folder(folder, **words)
    dataset, failures = load_folder(folder, skip_small=True, **words)
    assert (dataset.classes, len(dataset), len(dataset.strata)) == (("cat", "dog"), 24, 24)
    assert [failure.reason for failure in failures] == ["class of 3 blocks, left out."]


def test_blocks_need_a_column_without_gaps(scans):
    folder, table, rows = scans
    with pytest.raises(ValueError, match="strata needs table"):
        load_folder(folder, strata="specimen")
    with pytest.raises(ValueError, match="no column 'specimens'.* Did you mean 'specimen'"):
        load_folder(folder, table=table, label="kind", strata="specimens")
    table.write_text("\n".join([*rows[:-1], "23,dog,"]))
    with pytest.raises(ValueError, match=r"column 'specimen' must have a block for every shape, got none for 23\.csv"):
        load_folder(folder, table=table, label="kind", strata="specimen")


def test_a_file_that_cannot_be_read_needs_no_block(scans):
    folder, table, rows = scans
    (folder / "bad.csv").write_text("this is no table of points")
    table.write_text("\n".join([*rows, "bad,dog,"]))
    dataset, failures = load_folder(folder, table=table, label="kind", strata="specimen")
    assert len(dataset.strata) == 24
    assert [failure.path.name for failure in failures] == ["bad.csv"]
