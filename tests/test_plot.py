import matplotlib as mpl
import pytest
import torch

import eulerscan as es
from eulerscan import plot

mpl.use("Agg")


def axes(projection=None):
    return plot.figure(3, 3).add_subplot(projection=projection)


def square(dim: int, *, weighted: bool = False) -> es.Complex:
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0.5], [0, 1, 0]])[:, :dim]
    closed = es.Complex(points, [torch.tensor([[0, 0], [1, 2], [2, 3]])]).closure()
    weights = [torch.rand(n) for n in closed.counts] if weighted else None
    return es.Complex(closed.points, closed.simplices, weights=weights)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("kind", ["points", "edges", "mesh", "weighted mesh"])
def test_shapes_are_drawn_in_the_plane_and_in_space(dim, kind):
    shape = square(dim, weighted=kind == "weighted mesh")
    if kind in ("points", "edges"):
        shape = es.Complex(shape.points, shape.simplices[:1] if kind == "edges" else ())
    ax = axes("3d" if dim == 3 else None)
    assert plot.plot_shape(shape, ax) is ax
    assert ax.collections
    low, high = ax.get_xlim()
    assert low <= 0
    assert high >= 1
    ax.figure.canvas.draw()


def test_a_transform_is_an_image_with_a_row_a_direction():
    transform = es.ect(square(2), es.directions.circle(6), es.thresholds(9))[0]
    (image,) = plot.plot_transform(transform, axes(), thresholds=es.thresholds(9)).images
    assert image.get_array().shape == (6, 9)
    step = 2.2 / 8
    assert image.get_extent() == pytest.approx((-1.1 - step / 2, 1.1 + step / 2, 5.5, -0.5))
    assert image.get_clim() == (0, transform.max().item())
    (image,) = plot.plot_transform(-transform, axes()).images
    assert image.get_clim() == (-transform.max().item(), transform.max().item())


def test_every_direction_has_its_curve():
    assert len(plot.plot_curves(torch.rand(5, 8), es.thresholds(8), axes()).lines) == 5


@pytest.mark.parametrize("dim", [2, 3])
def test_directions_are_arrows_before_and_after(dim):
    before, after = es.directions.uniform(7, dim), es.directions.random(7, dim)
    ax = plot.plot_directions(after, axes("3d" if dim == 3 else None), before=before)
    circles = 1 if dim == 2 else 3
    assert len(ax.lines) == circles + 14


@pytest.mark.parametrize("validated", [False, True])
def test_training_has_curves_for_what_was_measured(validated):
    record = {"epoch": 1, "loss": 0.5} | ({"val_loss": 0.6, "val_accuracy": 90.0} if validated else {})
    ax = plot.plot_training([record, record | {"epoch": 2}], axes())
    assert len(ax.lines) == 1 + validated
    assert ax.get_legend().get_texts()[0].get_text() == "training loss"


def test_confusions_show_their_counts():
    ax = plot.plot_confusion(torch.tensor([[5, 1], [0, 7]]), ("cat", "dog"), axes())
    assert sorted(text.get_text() for text in ax.texts) == ["1", "5", "7"]


def test_without_axes_there_are_new_ones():
    ax = plot.plot_shape(square(2))
    assert ax.figure is not None
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda: plot.plot_shape(torch.rand(3, 4)), "plane or in space to be drawn, got points of dimension 4"),
        (lambda: plot.plot_shape(torch.rand(2, 3, 2)), "one complex to be drawn, got 2"),
        (lambda: plot.plot_directions(torch.rand(3, 5)), "plane or in space to be drawn, got dimension 5"),
        (lambda: plot.plot_transform(torch.rand(1, 2, 3), axes()), r"got shape \[1, 2, 3\]. Choose one complex"),
    ],
)
def test_what_cannot_be_drawn_is_named(draw, text):
    with pytest.raises(ValueError, match=text):
        draw()
