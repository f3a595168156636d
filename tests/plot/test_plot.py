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
from eulerscan.plot.distances import draw_distances, save_distances
from eulerscan.plot.fits import animate, draw_fit
from eulerscan.plot.overview import draw_overview
from eulerscan.plot.training import draw_confusion
from eulerscan.plot.transforms import direction_axis, image_directions

mpl.use("Agg")


def axes(projection=None):
    return plot.figure(3, 3).add_subplot(projection=projection)


def square(dim: int, *, weighted: bool = False) -> es.Complex:
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0.5], [0, 1, 0]])[:, :dim]
    closed = es.Complex(points, [torch.tensor([[0, 0], [1, 2], [2, 3]])]).closure()
    weights = [torch.rand(n) for n in closed.counts] if weighted else None
    return es.Complex(closed.points, closed.simplices, weights=weights)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("kind", ["points", "edges", "mesh", "weighted mesh", "bfloat16"])
def test_shapes_are_drawn_in_the_plane_and_in_space(dim, kind):
    shape = square(dim, weighted=kind == "weighted mesh")
    shape = shape.to(torch.bfloat16) if kind == "bfloat16" else shape
    if kind in ("points", "edges"):
        shape = es.Complex(shape.points, shape.simplices[:1] if kind == "edges" else ())
    ax = axes("3d" if dim == 3 else None)
    assert plot.plot_shape(shape, ax) is ax
    assert ax.collections
    low, high = ax.get_xlim()
    assert low <= 0
    assert high >= 1
    ax.figure.canvas.draw()


def test_half_precision_is_drawn():
    transform, heights = torch.rand(5, 8).bfloat16(), es.thresholds(8).bfloat16()
    assert len(plot.plot_transform(transform, axes(), thresholds=heights).images) == 1
    assert len(plot.plot_curves(transform, heights, axes()).lines) == 5
    assert plot.plot_directions(es.directions.circle(5).bfloat16(), axes(), before=es.directions.circle(5).bfloat16()).lines
    assert plot.color_limits(transform) == plot.color_limits(transform.float())
    assert plot.plot_confusion(torch.eye(2).bfloat16(), ("a", "b"), axes()).images


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


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("normalize", [None, "center", "unit_ball"])
def test_shapes_that_keep_their_size_are_drawn_on_one_scale(monkeypatch, dim, normalize):
    drawn = []
    monkeypatch.setattr(overview, "save", lambda picture, path, dpi: drawn.append(picture))
    cube = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * dim)
    shapes = [es.Complex(cube), es.Complex(5 + 3 * cube)]
    draw_overview(shapes, ["small", "large"], "never.png", config=es.ECTConfig(9, 12, normalize=normalize), up=["z", "y"])
    drawings = [ax for ax in drawn[0].axes if ax.get_title().startswith("shape")]
    ranges = [[getattr(ax, f"get_{name}lim")() for name in "xyz"[:dim]] for ax in drawings]
    lengths = [[high - low for low, high in axis] for axis in ranges]
    assert lengths[0] == pytest.approx(lengths[1])
    assert lengths[0][0] > (2 if normalize == "unit_ball" else 6) / math.sqrt(dim)
    for shape, axis in zip(shapes, ranges, strict=True):
        middle = 0 if normalize else shape.points.mean().item()
        assert [(low + high) / 2 for low, high in axis] == pytest.approx([middle] * dim, abs=1e-6)


def test_a_transform_has_its_angles_beside_it():
    directions = es.directions.circle(6)
    transform = es.ect(square(2), directions, es.thresholds(9))[0]
    ax = plot.plot_transform(transform, axes(), thresholds=es.thresholds(9), directions=directions)
    assert list(ax.images[0].get_extent()[2:]) == [5.5, -0.5]
    assert ax.get_ylabel() == "direction (°)"
    assert ax.get_yticks().tolist() == pytest.approx([0, 1.5, 3, 4.5])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "90", "180", "270"]
    (image,) = plot.plot_transform(transform.flip(0), axes(), directions=directions.flip(0)).images
    assert (image.get_array() == transform.numpy()).all()  # in whatever order the rows are given


@pytest.mark.parametrize("up", ["y", "z"])
def test_neighboring_rows_of_a_transform_in_space_are_neighbors_on_the_sphere(up):
    for directions, largest in ((es.directions.fibonacci(200, dtype=torch.float64), 50), (image_directions(183, 3, up), 40)):
        order = direction_axis(directions, up).order
        assert sorted(order.tolist()) == list(range(len(directions)))
        sorted_ = directions[order]
        angles = torch.rad2deg(torch.arccos((sorted_[1:] * sorted_[:-1]).sum(dim=1).clamp(-1, 1)))
        assert angles.median() < 20
        assert angles.max() < largest


@pytest.mark.parametrize("up", ["y", "z"])
def test_images_in_space_have_five_rings(up):
    directions = image_directions(183, 3, up)
    torch.testing.assert_close(directions.norm(dim=1), torch.ones(183, dtype=torch.float64))
    order, ticks, labels, bounds, label = direction_axis(directions, up)
    assert order.tolist() == list(range(183))
    assert labels == ["72", "36", "0", "−36", "−72"]
    assert ticks == [18, 55, 92, 128.5, 164.5]
    assert bounds == [36.5, 73.5, 110.5, 146.5]
    assert f"+{up} is 90°" in label
    heights = directions[:, "xyz".index(up)]
    assert torch.rad2deg(torch.arcsin(heights[[0, 37, 74, 182]])).tolist() == pytest.approx([72, 36, 0, -72])


def test_the_axis_of_other_directions_has_latitudes():
    directions = es.directions.fibonacci(300)
    values = torch.rad2deg(torch.arcsin(directions[:, 2:])).expand(-1, 5)
    ax = plot.plot_transform(values, axes(), directions=directions)
    shown = ax.images[0].get_array()[:, 0]
    assert len(ax.get_yticks()) == 5
    for row, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True):
        around = shown[int(row) - 3 : int(row) + 4].mean()
        assert abs(around - float(label.get_text().replace("−", "-"))) < 8


def test_one_outlier_does_not_take_the_colors():
    usual = torch.arange(-5.0, 6.0).repeat(20, 20)
    spike = usual.clone()
    spike[3, 4] = 400
    assert plot.color_limits(spike) == (-5, 5)
    assert plot.color_limits(usual, usual, 50 * usual) == (-5, 5)  # one shape of three
    assert plot.color_limits(usual, 2 * usual) == (-10, 10)
    rare = (torch.arange(1000) == 7).float().view(10, 100)
    assert plot.color_limits(rare) == (0, 1)  # almost all values are zero
    assert plot.color_limits(torch.zeros(3, 3)) == (0, 0)


def test_values_beyond_the_colors_are_said():
    values = torch.ones(20, 20)
    values[0, :2] = torch.tensor([40.0, -30.0])
    for draw in (plot.plot_transform, lambda t, a: plot.plot_polar(t, es.thresholds(20), a)):
        bar = draw(values, axes("polar" if draw is not plot.plot_transform else None)).figure.axes[1]
        assert bar._colorbar.extend == "both"
        assert "values from −30 to 40" in bar.get_ylabel()
    assert plot.plot_transform(torch.ones(3, 3), axes()).figure.axes[1]._colorbar.extend == "neither"


@pytest.mark.parametrize("up", ["y", "z"])
def test_the_axis_that_is_up_points_up(up):
    ax = plot.plot_shape(torch.eye(3), axes("3d"), up=up)
    ax.figure.canvas.draw()
    transform = ax.get_proj()
    heights = [(transform @ [*point, 1])[1] / (transform @ [*point, 1])[3] for point in np.vstack([np.eye(3), np.zeros(3)])]
    assert np.argmax(heights[:3]) == "xyz".index(up)
    assert heights["xyz".index(up)] > heights[3]


def test_the_axis_that_is_up_is_guessed_from_the_format():
    assert [plot.guess_up(f"a/b.{extension}") for extension in ("obj", "OFF", "glb", "ply", "stl", "npz")] == [*"yyyzzz"]


def test_filled_regions_have_no_lines_inside():
    """Between triangles or pixels that are drawn one by one, antialiasing leaves lines."""
    shape = es.convert.from_image(torch.ones(9, 13), outline="pixels")
    shape = es.Complex(shape.points @ torch.tensor([[0.96, 0.28], [-0.28, 0.96]]), shape.simplices[1:])
    inside = drawn(shape)
    height, width = inside.shape
    middle = inside[height // 2 - 40 : height // 2 + 40, width // 2 - 40 : width // 2 + 40]
    assert middle.max() == middle.min() < 1


def test_the_outline_of_triangles_winds_around_their_union():
    rng = np.random.default_rng(0)
    points, triangles = rng.normal(size=(12, 2)), rng.integers(0, 12, (3, 25))
    triangles = triangles[:, (np.diff(np.sort(triangles, axis=0), axis=0) > 0).all(axis=0)]  # overlapping, of any orientation
    outline = shapes._path([points[ring] for ring in shapes.outline_rings(points, triangles)])
    samples = rng.normal(size=(400, 2))
    covered = np.zeros(len(samples), dtype=bool)
    for corners in points[triangles.T]:
        covered |= mpl.path.Path(corners).contains_points(samples)
    winding = np.zeros(len(samples))
    for polygon in outline.to_polygons():
        around = polygon[None] - samples[:, None]
        angles = np.unwrap(np.arctan2(around[..., 1], around[..., 0]), axis=1)
        winding += (angles[:, -1] - angles[:, 0]) / (2 * np.pi)
    assert ((winding.round() != 0) == covered).all()
    assert 20 < covered.sum() < 380


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
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > (0.65 if validated else 0.54)
    assert ax.get_legend().get_texts()[0].get_text() == "training loss"


def test_confusions_show_their_counts():
    ax = plot.plot_confusion(torch.tensor([[5, 1], [0, 7]]), ("cat", "dog"), axes())
    assert sorted(text.get_text() for text in ax.texts) == ["1", "5", "7"]


def texts_overlap(texts) -> bool:
    boxes = [text.get_window_extent() for text in texts]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_seventy_classes_are_readable():
    rng = np.random.default_rng(0)
    counts = np.diag(rng.integers(20, 40, 70)) + (rng.random((70, 70)) < 0.02) * rng.integers(1, 9, (70, 70))
    counts[5, 6] = 17
    classes = [f"species {i}" for i in range(70)]
    figure = draw_confusion(torch.tensor(counts), classes)
    figure.canvas.draw()
    (ax,) = figure.axes
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == classes
    assert not texts_overlap(labels)
    assert not texts_overlap(ax.get_xticklabels())
    assert min(label.get_fontsize() for label in labels) >= 6
    (listed,) = (text.get_text() for text in ax.texts if "most confused" in text.get_text())
    assert listed.splitlines()[2] == f"species 5 → species 6: 17 of {counts[5].sum()}"
    assert len(listed.splitlines()) == 22
    small = plot.plot_confusion(torch.tensor(counts), classes, axes())  # not large enough for all
    small.figure.canvas.draw()
    assert not texts_overlap(small.get_yticklabels())
    assert not small.texts


def test_a_few_classes_need_no_list():
    figure = draw_confusion(torch.tensor([[5, 1], [0, 7]]), ("cat", "dog"))
    assert [text.get_text() for text in figure.axes[0].texts] == ["5", "1", "7"]


def test_groups_are_a_strip_with_a_legend():
    points = torch.tensor([0.0, 10, 1, 11, 2])
    figure = draw_distances((points[:, None] - points).abs(), list("abcde"), groups=["low", "high", "low", "high", "low"])
    figure.canvas.draw()
    tree, matrix, _, strip = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["high", "low"]
    order = [label.get_text() for label in matrix.get_yticklabels()]
    colors = {name: tuple(color) for name, color in zip(order, strip.images[0].get_array()[:, 0], strict=True)}
    assert colors["a"] == colors["c"] == colors["e"] != colors["b"] == colors["d"]
    assert "average linkage" in tree.get_xlabel()
    for beside in (tree, strip):  # rows are beside their leaves
        assert beside.get_window_extent().y0 == pytest.approx(matrix.get_window_extent().y0, abs=1)
        assert beside.get_window_extent().y1 == pytest.approx(matrix.get_window_extent().y1, abs=1)
    assert not texts_overlap(matrix.get_yticklabels())


def test_many_groups_have_a_column_each():
    points = torch.rand(140)
    groups = [f"species {i % 70}" for i in range(140)]
    figure = draw_distances((points[:, None] - points).abs(), [f"{i}" for i in range(140)], groups=groups)
    figure.canvas.draw()
    columns = figure.axes[3]
    assert len(columns.get_xticklabels()) == 70
    assert not texts_overlap(columns.get_xticklabels())
    assert not figure.legends


def test_one_outlier_does_not_take_the_colors_of_distances():
    points = torch.tensor([0.0, 1, 2, 3, 4, 5, 100])
    figure = draw_distances((points[:, None] - points).abs(), list("abcdefg"))
    assert figure.axes[1].images[0].get_clim() == (0, 5)
    assert figure.axes[2]._colorbar.extend == "max"
    assert "1 shape is farther, up to 100" in figure.axes[2].get_ylabel()


def test_a_group_that_is_far_away_is_no_outlier():
    points = torch.cat([torch.arange(16.0), 100 + torch.arange(4.0)])
    figure = draw_distances((points[:, None] - points).abs(), [f"{i}" for i in range(20)])
    assert figure.axes[1].images[0].get_clim() == (0, 103)
    assert figure.axes[2].get_ylabel() == "distance"


def test_the_order_is_written_beside_the_figure(tmp_path):
    points = torch.tensor([0.0, 10, 1])
    names = ["a/=1", "b/2", "a/3"]
    table = save_distances((points[:, None] - points).abs(), names, tmp_path / "tree.png")
    assert table == tmp_path / "tree.order.csv"
    header, *rows = table.read_text("utf-8").splitlines()
    assert header == "position,name,group"
    assert sorted(row.split(",")[1] for row in rows) == sorted(names)
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3"]
    assert {tuple(row.split(",")[1:]) for row in rows} == {("a/=1", "a"), ("b/2", "b"), ("a/3", "a")}


def test_fonts_of_pdf_files_are_embedded_as_truetype(tmp_path):
    plot.save(plot.plot_curves(torch.rand(2, 3), es.thresholds(3), axes()).figure, tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content


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
        (lambda: plot.plot_shape(torch.rand(3, 3), axes("3d"), up="x"), "up must be .* got 'x'"),
        (lambda: plot.plot_directions(torch.rand(3, 5)), "directions must be .* got dimension 5"),
        (lambda: plot.plot_polar(torch.rand(2, 3), es.thresholds(3), axes()), "ax must be polar axes, .* got rectilinear"),
        (
            lambda: plot.plot_transform(torch.rand(2, 3), axes(), directions=torch.rand(2, 4)),
            r"directions must be .* got shape \[2, 4\]",
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
