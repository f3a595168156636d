"""Wings, fossils and skulls."""

import pytest
import torch

from eulerscan import datasets

pytestmark = pytest.mark.usefixtures("mirror")


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("wings", {"AE": 57, "AN": 11, "CA": 7, "CX": 25, "DE": 1, "MA": 3, "OR": 1, "PS": 12, "TO": 1, "UR": 4, "WY": 4}),
        ("gorillas", {"female": 30, "male": 29}),
        ("vertebrae", {"control": 30, "large": 23, "small": 23}),
        ("macaques", {"female": 9, "male": 9}),
        ("trilobites", {"Cambrian": 31, "Ordovician": 35, "Silurian": 46, "Devonian": 153, "Carboniferous": 31}),
    ],
)
def test_the_classes_have_the_published_sizes(name, sizes):
    data = datasets.load(name)
    assert dict(zip(data.classes, data.labels.bincount().tolist(), strict=True)) == sizes
    assert sum(map(len, data.splits.values())) == len(data)


@pytest.mark.parametrize(("name", "points"), [("wings", 100), ("gorillas", 8), ("apes", 8), ("vertebrae", 60)])
def test_outlines_are_closed_curves_or_filled(name, points):
    curves = datasets.load(name).shapes
    assert (curves.offsets[0].diff() == points).all()
    assert (curves.euler_characteristic() == 0).all()
    if name != "vertebrae":
        assert (datasets.load(name, filled=True).shapes.euler_characteristic() == 1).all()


def test_a_cephalon_has_sixteen_landmarks_and_four_curves():
    shape = datasets.load("trilobites").shapes[0]
    assert shape.points[0].tolist() == pytest.approx([3.671741, -0.849694])
    assert shape.points.shape == (88, 2)
    assert shape.euler_characteristic().item() == 16 + 4
    assert torch.equal(shape.simplices[0][:, 0], torch.tensor([16, 17]))


def test_macaques_are_clouds_in_space():
    shapes = datasets.load("macaques").shapes
    assert shapes.dim == 3
    assert (shapes.euler_characteristic() == 7).all()


def test_a_file_of_another_size_is_damaged(tmp_path, monkeypatch, fresh):
    (tmp_path / "morphometrics").mkdir()
    (tmp_path / "morphometrics" / "gorillas.csv").write_text("name,sex,x1,y1\ng00,female,1,2\n", encoding="utf-8")
    monkeypatch.setenv("EULERSCAN_MIRROR", str(tmp_path))
    with pytest.raises(ValueError, match=r"gorillas.csv is damaged: it must hold 59 rows, got 1"):
        datasets.load("gorillas")


def test_a_specimen_without_curves_is_damaged(tmp_path, monkeypatch, fresh):
    (tmp_path / "morphometrics").mkdir()
    (tmp_path / "morphometrics" / "trilobites.csv").write_text("min_age\n" + 300 * "emsian\n", encoding="utf-8")
    (tmp_path / "morphometrics" / "trilobites.tps").write_text("LM=16\n" + 16 * "0.5 0.5\n" + "ID=1\n", encoding="utf-8")
    monkeypatch.setenv("EULERSCAN_MIRROR", str(tmp_path))
    with pytest.raises(ValueError, match=r"trilobites.tps is damaged: a specimen must have curves.*POINTS="):
        datasets.load("trilobites")


def test_what_cannot_be_downloaded_says_how_it_is_made(fresh):
    with pytest.raises(FileNotFoundError, match="R package shapes"):
        datasets.load("gorillas")
