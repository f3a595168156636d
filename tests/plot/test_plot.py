import math

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

import eulerscan as es
from eulerscan import plot
from eulerscan.complexes.boundary import occurrences, outer_triangles
from eulerscan.grid import radius_of
from eulerscan.plot import overview, shapes
from eulerscan.plot.distances import draw_distances
from eulerscan.plot.fits import animate, draw_fit
from eulerscan.plot.overview import draw_overview

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


def test_a_transform_is_an_image_with_one_row_per_direction():
    transform = es.ect(square(2), es.directions.circle(6), es.thresholds(9))[0]
    (image,) = plot.plot_transform(transform, axes(), thresholds=es.thresholds(9)).images
    assert image.get_array().shape == (6, 9)
    step = 2.2 / 8
    assert image.get_extent() == pytest.approx((-1.1 - step / 2, 1.1 + step / 2, 5.5, -0.5))
    assert image.get_clim() == (0, transform.max().item())
    (image,) = plot.plot_transform(-transform, axes()).images
    assert image.get_clim() == (-transform.max().item(), transform.max().item())


def test_transforms_are_compared_in_the_same_colors():
    low, high = torch.tensor([[0.0, 2.0]]), torch.tensor([[-1.0, 1.0]])
    limits = plot.color_limits(low, high)
    assert limits == (-1, 2)
    for transform in (low, high):
        (image,) = plot.plot_transform(transform, axes(), limits=limits).images
        (mesh,) = plot.plot_polar(transform, es.thresholds(2), axes("polar"), limits=limits).collections
        assert image.get_clim() == mesh.get_clim() == (-2, 2)
        assert image.get_cmap().name == mesh.get_cmap().name == "RdBu_r"


def test_rows_of_one_kind_have_the_same_colors_in_an_overview(monkeypatch):
    """The curves of a ring are never negative, those of two rings that share a point end at -1; a cloud counts its points."""
    ring = es.Complex(torch.tensor([[0.0, 0], [1, 0], [0, 1]]), [torch.tensor([[0, 1, 2], [1, 2, 0]])])
    points = torch.tensor([[0.0, 0], [1, 0], [0, 1], [-1, 0], [0, -1]])
    rings = es.Complex(points, [torch.tensor([[0, 1, 2, 0, 3, 4], [1, 2, 0, 3, 4, 0]])])
    drawn = []
    monkeypatch.setattr(overview, "save", lambda picture, path, dpi: drawn.append(picture))
    draw_overview([ring, rings, es.Complex(points)], ["1", "2", "3"], "never.png", config=es.ECTConfig(9, 12))
    for colormap, rows, limits in (("RdBu_r", 2, (-2, 2)), ("viridis", 1, (0, 5))):
        shades = [shade for ax in drawn[0].axes for shade in (*ax.images, *ax.collections) if shade.get_cmap().name == colormap]
        shades = [shade for shade in shades if shade.get_array() is not None]
        assert len(shades) == 4 * rows  # image and polar view, and their colorbars
        assert {shade.get_clim() for shade in shades} == {limits}


def test_an_axis_too_short_for_ticks_has_none(monkeypatch):
    drawn = []
    monkeypatch.setattr(overview, "save", lambda picture, path, dpi: drawn.append(picture))
    cube = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
    shapes = [es.Complex(cube), es.Complex(cube * torch.tensor([1, 1, 0.05]))]
    draw_overview(shapes, ["cube", "flat"], "never.png", config=es.ECTConfig(9, 12))
    for ax, named in zip([ax for ax in drawn[0].axes if ax.name == "3d"], ("xyz", "xy"), strict=True):
        for name in "xyz":
            axis = getattr(ax, f"{name}axis")
            assert (len(axis.get_ticklocs()) > 1) == (axis.get_label_text() == name) == (name in named)


def test_a_transform_has_its_angles_beside_it():
    directions = es.directions.circle(6)
    transform = es.ect(square(2), directions, es.thresholds(9))[0]
    ax = plot.plot_transform(transform, axes(), thresholds=es.thresholds(9), directions=directions)
    assert list(ax.images[0].get_extent()[2:]) == [330, -30]
    assert ax.get_ylabel() == "direction (°)"


def test_the_polar_view_has_directions_as_angles_and_thresholds_as_radii():
    transform, thresholds = torch.arange(12.0).view(4, 3), es.thresholds(3, 1.0)
    ax = plot.plot_polar(transform, thresholds, axes("polar"))
    (mesh,) = ax.collections
    assert mesh.get_array().reshape(3, 4).tolist() == transform.T.tolist()
    angles, radii = mesh.get_coordinates()[..., 0], mesh.get_coordinates()[..., 1]
    assert angles[0].tolist() == pytest.approx(
        [math.pi / 2 * (i - 0.5) for i in range(5)]
    )  # each direction at the center of its cell
    assert radii[:, 0].tolist() == pytest.approx([-1.5, -0.5, 0.5, 1.5])
    assert (ax.get_rmin(), ax.get_rmax()) == (-1.5, 1.5)
    assert "threshold, −1 to 1" in ax.get_xlabel()


def test_one_direction_and_one_threshold_are_drawn_too():
    plot.plot_polar(torch.ones(1, 1), es.thresholds(1), axes("polar")).figure.canvas.draw()
    plot.plot_transform(torch.zeros(1, 1), axes(), thresholds=es.thresholds(1)).figure.canvas.draw()


def test_every_direction_has_its_curve():
    assert len(plot.plot_curves(torch.rand(5, 8), es.thresholds(8), axes()).lines) == 5
    named = plot.plot_curves(torch.rand(2, 8), es.thresholds(8), axes(), labels=["up", "down"], steps=False)
    assert [text.get_text() for text in named.get_legend().get_texts()] == ["up", "down"]
    assert named.lines[0].get_drawstyle() == "default"


def test_integer_values_have_integer_ticks():
    ax = plot.plot_curves(torch.tensor([[0.0, 1, 0]]), es.thresholds(3), axes())
    assert all(tick == round(tick) for tick in ax.get_yticks())


def test_weighted_pixels_have_the_colors_of_their_weights():
    pixels = torch.tensor([[0.2, 0.0], [1.0, 0.6]])
    ax = plot.plot_shape(es.convert.from_image(pixels, weighted=True), axes(), weight_bar=True)
    shades = ax.collections[0].get_array()
    assert sorted(set(shades.tolist())) == pytest.approx([0.2, 0.6, 1.0])
    assert ax.figure.axes[1].get_ylabel() == "weight"


def drawn(shape: es.Complex) -> np.ndarray:
    """Gray values of the pixels, from 0 (black) to 1 (white)."""
    ax = plot.plot_shape(shape, axes("3d" if shape.dim == 3 else None))
    ax.figure.set_dpi(150)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].mean(axis=2) / 255


@pytest.mark.parametrize("kind", ["points", "edges", "mesh", "weighted mesh", "coarse weighted mesh", "surface"])
def test_large_shapes_look_the_same(kind, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    pixels = (torch.rand(20, 25, generator=generator) > 0.4) * torch.linspace(0.2, 1, 25)
    shape = es.convert.from_image(pixels, threshold=0, weighted="weighted" in kind)
    if shape.weights is None:  # single lines along an axis would snap to pixels
        shape = shape.with_points(shape.points @ torch.tensor([[0.96, 0.28], [-0.28, 0.96]]))
    if kind in ("points", "edges"):
        shape = es.Complex(shape.points, shape.simplices[:1] if kind == "edges" else ())
    if kind == "surface":
        shape = es.convert.from_image(torch.ones(12, 9, 10))
    exact = drawn(shape)
    monkeypatch.setattr(shapes, "LARGE", 10)
    monkeypatch.setattr(shapes, "PIXELS", 200 if kind == "coarse weighted mesh" else 25)
    assert np.abs(drawn(shape) - exact).mean() < 0.01
    assert exact.mean() < 0.97


def test_merging_vertices_leaves_no_duplicate_or_degenerate_simplex(monkeypatch):
    monkeypatch.setattr(shapes, "CELLS", 2)
    points = np.array([[0.0, 0, 0], [0.1, 0, 0], [1, 0, 0], [0, 1, 0]])
    edges, triangles = np.array([[0, 0, 1], [1, 2, 2]]), np.array([[0, 1, 0], [2, 2, 1], [3, 3, 2]])
    means, levels = shapes._merge_vertices(points, {2: edges, 3: triangles})
    assert sorted(means.tolist()) == [[0, 1, 0], [0.05, 0, 0], [1, 0, 0]]
    assert levels[2].shape == (2, 1)
    assert levels[3].shape == (3, 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("extension", ["png", "pdf", "svg"])
def test_large_shapes_give_small_reproducible_files(extension, weighted, tmp_path):
    shape = es.convert.from_image(torch.ones(150, 150), weighted=weighted)
    files = [tmp_path / f"{i}.{extension}" for i in range(2)]
    for file in files:
        plot.save(plot.plot_shape(shape, axes()).figure, file, dpi=50)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size < 100_000


def test_a_solid_is_drawn_as_its_surface():
    solid = es.convert.from_image(torch.ones(3, 3, 3))
    (surface,) = (c for c in plot.plot_shape(solid, axes("3d")).collections if "Poly" in type(c).__name__)
    assert len(outer_triangles(solid)) == 6 * 9 * 2
    assert len(surface.get_facecolor()) in (0, 6 * 9 * 2)  # none before it is drawn


def test_triangles_of_millions_of_vertices_are_distinguished():
    """Encoded as one 64-bit number, these two would be equal."""
    count = 2**22
    one, other = (torch.tensor([[first], [count // 2], [count - 1]]) for first in (0, count // 4))
    assert occurrences(one, other).tolist() == [0]
    assert occurrences(one, torch.cat([one.flip(0), other], dim=1)).tolist() == [1]


def test_the_radius_covers_shapes_of_any_dimension():
    far, origin = es.Complex(torch.tensor([[0.3, 0.4]])), es.Complex(torch.zeros(2, 3))
    assert radius_of(far, origin) == pytest.approx(0.55)
    assert radius_of(origin) == radius_of() == 1.1


def test_surfaces_are_lit_whatever_the_order_of_the_corners():
    points, triangles = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), torch.tensor([[0, 1], [1, 3], [2, 2]])
    flipped = torch.tensor([[0, 3], [1, 1], [2, 2]])
    colors = []
    for faces in (triangles, flipped):
        ax = plot.plot_shape(es.Complex(points, [faces]), axes("3d"))
        ax.figure.canvas.draw()
        colors.append(ax.collections[0].get_facecolor().tolist())
    assert colors[0] == colors[1]
    assert colors[0][0] == colors[0][1]


@pytest.mark.parametrize("dim", [2, 3])
def test_directions_are_arrows_before_and_after(dim):
    before, after = es.directions.uniform(7, dim), es.directions.random(7, dim)
    ax = plot.plot_directions(after, axes("3d" if dim == 3 else None), before=before)
    circles = 1 if dim == 2 else 3
    assert len(ax.lines) == circles + 14


@pytest.mark.parametrize("validated", [False, True])
def test_training_has_a_curve_per_metric(validated):
    record = {"epoch": 1, "loss": 0.5} | ({"val_loss": 0.6, "val_accuracy": 90.0} if validated else {})
    ax = plot.plot_training([record, record | {"epoch": 2}], axes())
    assert len(ax.lines) == 1 + validated
    assert ax.get_legend().get_texts()[0].get_text() == "training loss"


def test_confusions_show_their_counts():
    ax = plot.plot_confusion(torch.tensor([[5, 1], [0, 7]]), ("cat", "dog"), axes())
    assert sorted(text.get_text() for text in ax.texts) == ["1", "5", "7"]


def test_dollar_signs_in_names_are_no_formulas():
    name = r"a$\bad$.csv"
    draw_distances(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), [name, "b"]).canvas.draw()
    plot.plot_confusion(torch.eye(2), [name, "b"], axes()).figure.canvas.draw()


def test_colorbars_are_labeled():
    transform, thresholds = torch.rand(4, 3), es.thresholds(3)
    for ax in (
        plot.plot_transform(transform, axes(), label="weight"),
        plot.plot_polar(transform, thresholds, axes("polar"), label="weight"),
    ):
        assert ax.figure.axes[1].get_ylabel() == "weight"


@pytest.mark.parametrize("extension", ["png", "pdf", "svg"])
def test_saved_files_are_reproducible(extension, tmp_path, monkeypatch):
    files = [tmp_path / f"{i}.{extension}" for i in range(2)]
    for i, file in enumerate(files):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_000_000_000 * i))  # years later
        plot.save(draw_distances(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), ["a", "b"]), file, dpi=50)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_paths_may_be_strings(tmp_path):
    shape = square(2)
    plot.save(axes().figure, str(tmp_path / "saved.png"))
    draw_overview([shape], ["square"], str(tmp_path / "overview.png"), dpi=40)
    draw_fit(shape, shape, shape, str(tmp_path / "points.png"))
    animate([shape], shape, str(tmp_path / "path.gif"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["overview.png", "path.gif", "points.png", "saved.png"]


def test_without_axes_there_are_new_ones():
    ax = plot.plot_shape(square(2))
    assert ax.figure is not None
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda: plot.plot_shape(torch.rand(3, 4)), "shape must be .* got points of dimension 4"),
        (lambda: plot.plot_shape(torch.rand(2, 3, 2)), "shape must be one complex .* got 2"),
        (lambda: plot.plot_directions(torch.rand(3, 5)), "directions must be .* got dimension 5"),
        (lambda: plot.plot_polar(torch.rand(2, 3), es.thresholds(3), axes()), "ax must be polar axes, .* got rectilinear"),
        (
            lambda: plot.plot_transform(torch.rand(2, 3), axes(), directions=torch.rand(2, 3)),
            r"directions must be .* got shape \[2, 3\]",
        ),
        (lambda: plot.plot_transform(torch.rand(1, 2, 3), axes()), r"transform .*\[T, H\].*got shape \[1, 2, 3\]. Choose one"),
        (
            lambda: plot.plot_confusion(torch.eye(3), ["a", "b"], axes()),
            r"confusion must have .* 2 each, got shape \[3, 3\]",
        ),
    ],
)
def test_invalid_arguments_are_named(draw, text):
    with pytest.raises(ValueError, match=text):
        draw()
