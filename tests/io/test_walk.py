"""Listing the shapes that a user named."""

import os
from pathlib import Path

import numpy as np
import pytest

import eulerscan as es
from eulerscan.io import list_shapes
from eulerscan.io.images import has_light_background

SQUARE = "0,0\n1,0\n1,1\n0,1\n"
WINGS = "name,x1,y1,x2,y2\nB7,0,0,1,0\nA1,0,0,2,0\n"


@pytest.fixture
def folder(tmp_path):
    """Two tables, one of them with two specimens, and files that do not count."""
    place = tmp_path / "shapes"
    (place / "sub").mkdir(parents=True)
    (place / ".hidden").mkdir()
    for name in ("b.csv", "sub/a.CSV", ".hidden/c.csv", ".d.csv"):
        (place / name).write_text(SQUARE)
    (place / "wings.csv").write_text(WINGS)
    for name in ("notes.md", "more.MD", "README"):
        (place / name).write_text("no shape")
    return place


def test_names_in_a_single_folder_are_relative_to_it(folder):
    listing = list_shapes(folder)
    assert listing.folder == folder
    assert listing.names == ["b.csv", "sub/a.CSV", "wings.csv/A1", "wings.csv/B7"]
    assert listing.paths == [folder / name for name in listing.names]
    assert listing.sizes == [len(SQUARE), len(SQUARE), len(WINGS) // 2, len(WINGS) // 2]
    assert listing.changed == [(folder / name).stat().st_mtime_ns for name in ("b.csv", "sub/a.CSV", *["wings.csv"] * 2)]
    assert listing.failures == []
    assert listing.skipped == {".md": 2, "": 1}


def test_names_of_several_paths_are_paths_in_the_given_order(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    given = ["shapes/wings.csv", "shapes/sub", "shapes/b.csv", "shapes/b.csv", "gone.csv"]
    names = ["shapes/wings.csv/B7", "shapes/wings.csv/A1", "shapes/sub/a.CSV", "shapes/b.csv", "gone.csv"]
    listing = list_shapes(given)
    assert (listing.folder, listing.names) == (Path(), names)
    assert listing.changed[-1] is None
    assert list_shapes(given, sort=True).names == sorted(names)


def test_a_single_specimen_may_be_listed(folder):
    listing = list_shapes(folder / "wings.csv" / "A1")
    assert listing.paths == [folder / "wings.csv" / "A1"]
    assert listing.sizes == [len(WINGS)]


def test_excluded_paths_are_not_listed_by_any_name(folder):
    (folder / "link.csv").symlink_to(folder / "b.csv")
    assert list_shapes(folder, exclude=[folder / "b.csv", folder / "sub"]).names == ["wings.csv/A1", "wings.csv/B7"]


def test_broken_links_and_closed_folders_are_failures(folder, monkeypatch):
    (folder / "gone.ply").symlink_to(folder / "nothing.ply")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    listing = list_shapes(folder)
    assert sorted(listing.failures) == [(Path("gone.ply"), "broken link."), (Path("sub"), "Permission denied")]
    assert sorted(listing.path_failures) == [(folder / "gone.ply", "broken link."), (folder / "sub", "Permission denied")]
    assert listing.names == ["b.csv", "wings.csv/A1", "wings.csv/B7"]


def test_linked_folders_are_listed_only_if_given(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    (folder / "again").symlink_to(folder)
    assert list_shapes(tmp_path / "link").names == list_shapes(folder).names
    assert not any(name.startswith("again") for name in list_shapes(folder).names)


def test_only_some_extensions_are_listed_and_others_passed_over(folder):
    (folder / "mesh.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    listing = list_shapes(folder, only=["OFF"])
    assert (listing.names, listing.skipped) == (["mesh.off"], {})
    assert list_shapes([folder / "b.csv"], only=[".off"]).names == [(folder / "b.csv").as_posix()]  # named by the user
    with pytest.raises(ValueError, match=r"only must hold extensions among .*, got '\.docx'"):
        list_shapes(folder, only=["docx"])


def test_groups_are_the_subfolders(folder, monkeypatch):
    assert list_shapes(folder).groups == ["", "sub", "wings.csv", "wings.csv"]
    monkeypatch.chdir(folder.parent)
    monkeypatch.chdir(folder)
    assert list_shapes(".").groups == ["", "sub", "wings.csv", "wings.csv"]
    monkeypatch.chdir(folder.parent)
    assert list_shapes(["shapes/b.csv", "shapes/sub/a.CSV"]).groups == ["shapes", "shapes/sub"]


@pytest.mark.parametrize(("value", "expected"), [(255, True), (0, False)])
def test_images_with_light_corners_are_recognized(value, expected, tmp_path):
    image = pytest.importorskip("PIL.Image").fromarray(np.full((4, 4), value, np.uint8))
    image.save(tmp_path / "a.png")
    assert has_light_background(tmp_path / "a.png") is expected
    assert not has_light_background(tmp_path / "gone.png")


def test_a_listing_is_read_by_its_paths(folder):
    assert [es.read(path).dim for path in list_shapes(folder).paths] == [2] * 4
