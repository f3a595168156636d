"""Outlines: points along a curve as closed polygons."""

import numpy as np
import pytest
import torch
from PIL import Image

import eulerscan as es
from eulerscan.convert import from_outline
from eulerscan.variants import direction_spectrum


def circle(count: int, turn: float = 0.0) -> torch.Tensor:
    angle = torch.arange(count, dtype=torch.float64) * (2 * torch.pi / count) + turn
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def test_a_circle_has_one_hole_and_a_disc_has_none():
    assert from_outline(circle(20)).euler_characteristic().item() == 0
    assert from_outline(circle(20), closed=False).euler_characteristic().item() == 1
    assert from_outline(circle(20), filled=True).euler_characteristic().item() == 1


def test_a_repeated_first_point_is_dropped():
    again = torch.cat([circle(5), circle(5)[:1]])
    assert from_outline([again, circle(5), circle(4)]).counts == (14, 14)
    assert from_outline(again, closed=False).counts == (6, 5)


def test_a_batch_is_its_outlines_one_by_one():
    rings = [circle(5), circle(1), circle(2), circle(9)]
    grid = es.directions.circle(7, dtype=torch.float64), es.thresholds(9, dtype=torch.float64)
    each = torch.cat([es.ect(from_outline(ring), *grid) for ring in rings])
    torch.testing.assert_close(es.ect(from_outline(rings), *grid), each)


def test_shapes_with_simplices_are_no_outlines():
    with pytest.raises(ValueError, match="without simplices"):
        from_outline(from_outline(circle(5)))
    with pytest.raises(ValueError, match="filled"):
        from_outline(torch.rand(5, 3), filled=True)


def test_a_filled_outline_keeps_its_coordinates():
    found = from_outline(circle(7), filled=True).points
    torch.testing.assert_close(found.sort(dim=0).values, circle(7).sort(dim=0).values, rtol=0, atol=0)


def test_weights_and_too_few_points_are_named():
    with pytest.raises(ValueError, match="points must be unweighted"):
        from_outline(es.Complex(circle(5), weights=[torch.ones(5)]))
    with pytest.raises(ValueError, match="points must be at least three in each outline to be filled, got 2"):
        from_outline([circle(5), circle(2)], filled=True)


def test_files_of_points_are_read_as_outlines(tmp_path):
    np.savetxt(tmp_path / "a.csv", circle(6).numpy(), delimiter=",")
    np.save(tmp_path / "b.npy", circle(6).numpy())
    (tmp_path / "c.tps").write_text("LM=3\n0 0\n1 0\n0 1\nID=1\nLM=4\n0 0\n1 0\n1 1\n0 1\nID=2\n", encoding="utf-8")
    (tmp_path / "d.csv").write_text("name,x1,y1,x2,y2,x3,y3\nA,0,0,1,0,0,1\nB,0,0,2,0,0,1\n", encoding="utf-8")
    found = [
        es.read(tmp_path / name, outline=True).counts for name in ("a.csv", "b.npy", "c.tps", "c.tps/2", "d.csv", "d.csv/B")
    ]
    assert found == [(6, 6), (6, 6), (7, 7), (4, 4), (6, 6), (3, 3)]
    assert es.read(tmp_path / "a.csv").counts == (6,)
    with pytest.raises(TypeError, match="outline"):
        es.read(tmp_path / "a.csv", outline="yes")


def test_the_spectrum_over_directions_does_not_change_under_rotation():
    shape = es.Complex(torch.rand(9, 2, dtype=torch.float64), [torch.tensor([[0, 1, 2], [3, 4, 5]])]).normalized("unit_ball")
    angle = torch.tensor(2 * torch.pi * 5 / 24)
    matrix = torch.tensor([[angle.cos(), -angle.sin()], [angle.sin(), angle.cos()]], dtype=torch.float64)
    grid = es.directions.circle(24, dtype=torch.float64), es.thresholds(32, dtype=torch.float64)
    one, other = (es.ect(s, *grid, scale=20) for s in (shape, shape.with_points(shape.points @ matrix.T)))
    assert not torch.allclose(one, other, atol=0.1)
    torch.testing.assert_close(direction_spectrum(one), direction_spectrum(other), atol=1e-6, rtol=0)
    assert direction_spectrum(one).shape == (1, 13, 32)


def test_the_option_outline_is_a_switch_for_points_and_a_word_for_images(tmp_path):
    np.save(tmp_path / "points.npy", np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    Image.fromarray(np.pad(np.full((60, 60), 255, dtype=np.uint8), 4)).save(tmp_path / "mask.png")
    assert es.read(tmp_path / "points.npy", outline=True).counts == (3, 3)
    with pytest.raises(TypeError, match="outline must be True or False, got 'contour'"):
        es.read(tmp_path / "points.npy", outline="contour")
    with pytest.raises(ValueError, match="outline must be one of auto, contour, pixels, got True"):
        es.read(tmp_path / "mask.png", outline=True)
    smooth, squares = (es.read(tmp_path / "mask.png", **options) for options in ({}, {"outline": "pixels"}))
    assert smooth.counts != squares.counts
    assert es.read(tmp_path / "mask.png", outline="contour").counts == smooth.counts
    boundary = es.read(tmp_path / "mask.png", outline="contour", filled=False)
    assert boundary.max_dim == 1
    assert boundary.euler_characteristic().item() == 0
