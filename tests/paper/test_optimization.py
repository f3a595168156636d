import torch

from eulerscan import plot, thresholds
from eulerscan.fitting import TransformTarget, fit_directions
from eulerscan.paper import optimization


def test_transforms_before_after_and_target_are_drawn_in_the_same_colors(tmp_path, monkeypatch):
    """From the left only the half of a row of points lies below the last threshold, from the right all of it."""
    cloud = torch.stack([torch.linspace(0, 2, 20), torch.zeros(20)], dim=1)
    left, right = torch.tensor([[1.0, 0.0]]), torch.tensor([[-1.0, 0.0]])
    target = TransformTarget.of(cloud, right, thresholds(8), scale=8.0)
    fit = fit_directions(cloud, target, start=left, steps=1, restarts=1)
    drawn = []
    monkeypatch.setattr(plot, "save", lambda figure, path, dpi: drawn.append(figure))
    optimization._draw_directions(cloud, left, fit, target, tmp_path / "figure")
    images = {ax.get_title(): image for ax in drawn[0].axes for image in ax.images}
    assert set(images) == {"transform before", "transform after", "target"}
    assert images["transform before"].get_array().max() < 15 < images["target"].get_array().max()
    assert {image.get_clim() for image in images.values()} == {(0.0, float(target.values.max()))}
