import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from drawing import random_complex

import eulerscan as es
from eulerscan import rotations, testing

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from eulerscan.sklearn import SHAPES_AT_ONCE, ECTTransformer
from eulerscan.variants import VARIANTS, power_spectrum


@pytest.fixture
def shapes(rng):
    """Clouds, graphs and meshes of different sizes, some weighted, more of them than one part holds."""
    kinds = [(5, 0, False), (9, 1, False), (12, 2, False), (7, 2, True)]
    return [
        random_complex(rng, num_points=n + i % 5, dim=3, top=top, weighted=weighted)
        for i, (n, top, weighted) in enumerate(kinds * (SHAPES_AT_ONCE // 4 + 3))
    ]


@pytest.fixture
def clouds(rng):
    """Flat and long ones of almost one size, by turns, and which each is."""
    labels = np.arange(40) % 2
    return [rng.normal(size=(30 + i % 3, 3)) * [1, 1, 0.1 + 4 * label] for i, label in enumerate(labels)], labels


def run(code, **environment):
    """What a program prints in an interpreter of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Known answers


def test_centered_shapes_keep_their_size():
    """Two points four apart, wherever they are, stand at -2 and 2; the radius is then 2.2."""
    pairs = [np.array([[100.0], [104.0]]), np.array([[-3.0], [1.0]]), np.array([[50.0], [51.0]])]
    step = ECTTransformer(num_thresholds=5, directions=[[1.0]], normalize="center", radius="max")
    features = step.fit_transform(pairs)
    assert step.radius_ == pytest.approx(2.2)
    assert features.tolist() == [[0, 1, 1, 1, 2], [0, 1, 1, 1, 2], [0, 0, 1, 2, 2]]
    assert step.transform(pairs[2:]).tolist() == features[2:].tolist()


def test_the_features_are_the_transform_direction_after_direction(rng):
    points = rng.normal(size=(4, 10, 3))
    step = ECTTransformer(5, 7).fit(points)
    unit = es.as_complex(points).normalized("unit_ball")
    directions, thresholds = es.directions.fibonacci(5, dtype=torch.float64), es.thresholds(7, dtype=torch.float64)
    expected = es.ect(unit, directions, thresholds)
    features = step.transform(points)
    assert isinstance(features, np.ndarray)
    assert features.dtype == np.float64
    np.testing.assert_array_equal(features, expected.flatten(1).numpy())
    assert step.get_feature_names_out()[[0, 6, 7, 34]].tolist() == ["ect_d0_t0", "ect_d0_t6", "ect_d1_t0", "ect_d4_t6"]
    np.testing.assert_array_equal(step.directions_, directions.numpy())
    np.testing.assert_array_equal(step.thresholds_, thresholds.numpy())


@pytest.mark.parametrize("dim", [2, 3])
def test_a_spectrum_does_not_change_under_rotation(dim, rng):
    points = rng.normal(size=(4, 10, dim))
    rotation = rotations.random(1, dim, torch.Generator().manual_seed(0))[0].numpy()
    step = ECTTransformer(300 if dim == 3 else 33, 7, scale=6.0, spectrum=True).fit(points)
    features = step.transform(points)
    np.testing.assert_allclose(step.transform(points @ rotation.T), features, rtol=1e-3, atol=1e-3)
    assert step.directions_.shape == (1035 if dim == 3 else 53, dim)  # of degree 12 and 16, with a guard
    assert features.shape == (4, (13 if dim == 3 else 17) * 7)
    names = step.get_feature_names_out()
    assert len(names) == features.shape[1]
    assert names[[0, 7]].tolist() == ["ect_l0_t0", "ect_l1_t0"]
    grid = torch.from_numpy(step.directions_), torch.from_numpy(step.thresholds_)
    curves = es.ect(es.as_complex(points).normalized("unit_ball"), *grid, scale=6.0)
    power = power_spectrum(curves, grid[0])[:, : 13 if dim == 3 else 17]
    np.testing.assert_allclose(features, power.sqrt().flatten(1).numpy())
    channels = ECTTransformer(15, 4, variant="channels", spectrum=True).fit(points)
    assert channels.transform(points).shape == (4, len(channels.get_feature_names_out()))


@pytest.mark.parametrize(("dim", "form", "bound"), [(2, 0, 1e-6), (2, 1, 2e-3), (3, 0, 1e-6), (3, 2, 5e-3)])
def test_a_spectrum_has_a_soft_scale_and_a_guard_by_default(dim, form, bound, rng):
    """The largest change of the features of clouds, curves and surfaces under rotation, relative to their norm."""
    if dim == 2:
        angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)[:, None]
        radius = 1 + 0.15 * np.sum(rng.normal(size=5) * np.cos(np.arange(1, 6) * angle + rng.normal(size=5)), axis=1)
        points = torch.from_numpy(radius[:, None] * np.hstack([np.cos(angle), np.sin(angle)]))
        shape = es.Complex(points, [torch.stack([torch.arange(60), torch.arange(1, 61) % 60])])
    else:
        shape = testing.torus(20, 12).complex
        shape = shape.with_points(
            shape.points * torch.tensor([1.0, 0.8, 0.6]) + 0.02 * torch.from_numpy(rng.normal(size=(240, 3)))
        )
    shape = shape if form else es.Complex(shape.points)
    turned = [shape.with_points(shape.points @ matrix) for matrix in rotations.random(6, dim, torch.Generator().manual_seed(0))]

    def change(**options):
        features = ECTTransformer(spectrum=True, **options).fit([shape]).transform([shape, *turned])
        return float(np.linalg.norm(features - features[0], axis=1).max() / np.linalg.norm(features[0]))

    assert change() < bound
    assert change(scale=math.inf) > 1e-3  # steps have harmonics of all degrees
    step = ECTTransformer(spectrum=True, radius=2.2).fit([shape])
    assert step.config_.scale == 4.0
    assert len(step.directions_) == (51 if dim == 2 else 378)
    assert step.transform([shape]).shape == (1, (16 if dim == 2 else 4) * 32)
    assert math.isinf(ECTTransformer().fit([shape]).config_.scale)


@pytest.mark.parametrize("scale", [math.inf, 20.0])
def test_every_variant_is_the_function_of_its_name(scale, rng):
    complex = es.collate([random_complex(rng), random_complex(rng, top=1), random_complex(rng, top=3)])
    grid = es.directions.circle(4, dtype=torch.float64), es.thresholds(6, 2.0, dtype=torch.float64)
    transform = es.ect(complex, *grid, scale=scale)
    expected = {
        "ect": transform,
        "sect": es.sect(complex, *grid, scale=scale),
        "superlevel": es.superlevel(complex, *grid, scale=scale),
        "channels": es.channels(complex, *grid, scale=scale, max_dim=3),
    }
    assert expected.keys() == VARIANTS.keys()
    for name, values in expected.items():
        step = ECTTransformer(4, 6, radius=2.0, normalize=None, variant=name, scale=scale).fit(complex)
        features = step.transform(complex)
        np.testing.assert_array_equal(features, values.flatten(1).numpy())
        growth = step.set_params(derivative=True).fit_transform(complex)
        np.testing.assert_array_equal(growth, es.derivative(values).flatten(1).numpy())
        assert step.get_feature_names_out()[0].startswith(f"{name}_derivative_")
        step.set_params(derivative=False).fit(complex)
        assert len(step.get_feature_names_out()) == len(set(step.get_feature_names_out())) == features.shape[1]
    assert step.get_feature_names_out()[24] == "channels_s1_d0_t0"


def test_the_weights_of_images_count(rng):
    images = rng.uniform(size=(3, 5, 5))
    complex = es.convert.images.from_images(images, weighted=True)
    features = ECTTransformer(4, 6, radius="max", normalize=None).fit_transform(complex)
    step = ECTTransformer(4, 6, radius="max", normalize=None).fit(complex)
    grid = torch.from_numpy(step.directions_), torch.from_numpy(step.thresholds_)
    np.testing.assert_array_equal(features, es.wect(complex.to(torch.float64), *grid).flatten(1).numpy())


def test_all_ways_to_give_shapes_give_the_same_features(rng):
    points = rng.normal(size=(6, 9, 3))
    expected = ECTTransformer(8, 8).fit_transform(points)
    listed = np.empty(6, dtype=object)
    listed[:] = list(points)
    ways = {
        "list of arrays": list(points),
        "tuple": tuple(points),
        "nested lists": points.tolist(),
        "array of arrays": listed,
        "tensor": torch.tensor(points),
        "list of tensors": [torch.tensor(cloud) for cloud in points],
        "a Complex": es.as_complex(points),
        "list of Complex": [es.as_complex(cloud) for cloud in points],
        "mixed": [es.as_complex(points[0]), *points[1:4], torch.tensor(points[4]), points[5].tolist()],
    }
    for name, shapes in ways.items():
        np.testing.assert_array_equal(ECTTransformer(8, 8).fit_transform(shapes), expected, err_msg=name)
    rows = ECTTransformer(8, 8, dim=3).fit_transform(points.reshape(6, -1))
    np.testing.assert_array_equal(rows, expected)


def test_graphs_of_torch_geometric_are_shapes(rng):
    data = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [data.Data(pos=torch.tensor(rng.normal(size=(3, 2))), edge_index=both) for _ in range(4)]
    expected = ECTTransformer(8, 8).fit_transform([es.as_complex(graph) for graph in graphs])
    np.testing.assert_array_equal(ECTTransformer(8, 8).fit_transform(graphs), expected)
    np.testing.assert_array_equal(ECTTransformer(8, 8).fit_transform(data.Batch.from_data_list(graphs)), expected)


def test_whole_numbers_are_points_too():
    grid = np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(1, 9, 2)
    np.testing.assert_array_equal(ECTTransformer(4, 4).fit_transform(grid), ECTTransformer(4, 4).fit_transform(grid / 1.0))


def test_settings_may_be_numbers_of_numpy(rng):
    points = rng.normal(size=(2, 5, 3))
    step = ECTTransformer(np.int64(4), np.int32(5), radius=np.float32(1.5), scale=np.float64(9)).fit(points)
    assert step.transform(points).shape == (2, 20)


# What fit learns


def test_fit_learns_the_radius_only_where_it_is_asked_to(rng):
    shapes = [np.array([[0.0, 0.0], [0.0, size]]) for size in (1.0, 2.0, 3.0, 4.0, 100.0)]
    settings = {"normalize": None, "num_directions": 4}
    assert ECTTransformer(radius="max", **settings).fit(shapes).radius_ == pytest.approx(110)
    assert ECTTransformer(radius="quantile", quantile=0.5, **settings).fit(shapes).radius_ == pytest.approx(3.3)
    assert ECTTransformer(radius=200, **settings).fit(shapes).radius_ == 200
    assert ECTTransformer(4).fit(shapes).radius_ == 1.1
    assert ECTTransformer(radius="max", **settings).fit([np.zeros((3, 2))]).radius_ == 1.1


def test_the_radius_is_that_of_fit_for_whatever_comes_later():
    step = ECTTransformer(4, 5, radius="max", normalize=None).fit([np.ones((3, 2))])
    thresholds = step.thresholds_.copy()
    step.transform([np.full((3, 2), 1000.0)])
    np.testing.assert_array_equal(step.thresholds_, thresholds)


def test_shapes_beyond_the_radius_do_not_go_unnoticed():
    with pytest.warns(UserWarning, match=r"50% of the shapes reach beyond radius=1.1.*up to 5"):
        ECTTransformer(normalize=None).fit([np.array([[3.0, 4.0]]), np.zeros((1, 2))])


def test_the_number_of_channels_is_that_of_fit():
    mesh, cloud = testing.disc(8).complex, es.Complex(torch.rand(5, 2))
    step = ECTTransformer(4, 5, variant="channels").fit([mesh, cloud])
    assert step.config_.max_dim == 2
    assert step.transform([cloud]).shape == (1, 3 * 4 * 5)
    with pytest.raises(ValueError, match="max_dim must be at least 2"):
        clone(step).fit([cloud]).transform([mesh])


def test_random_directions_are_those_of_the_random_state(rng):
    points = rng.normal(size=(4, 10, 3))
    first, again, other = (ECTTransformer(directions="random", random_state=seed).fit(points) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.directions_, again.directions_)
    assert (first.directions_ != other.directions_).all()
    np.testing.assert_allclose(np.linalg.norm(first.directions_, axis=1), 1)


def test_given_directions_are_taken_as_they_are(rng):
    step = ECTTransformer(directions=[[1, 0, 0], [0, 2, 0]]).fit(rng.normal(size=(4, 10, 3)))
    assert step.directions_.tolist() == [[1, 0, 0], [0, 2, 0]]
    assert len(step.get_feature_names_out()) == 2 * 32


# Laws


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [math.inf, 30.0])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_shape_has_the_same_features_in_whatever_company(variant, scale, dtype, shapes):
    step = ECTTransformer(6, 9, variant=variant, scale=scale, dtype=dtype).fit(shapes)
    together = step.transform(shapes)
    assert together.dtype == dtype
    chosen = [0, 2, 3, 100, SHAPES_AT_ONCE - 1, SHAPES_AT_ONCE, len(shapes) - 1]
    alone = np.concatenate([step.transform([shapes[i]]) for i in chosen])
    np.testing.assert_array_equal(together[chosen], alone)
    np.testing.assert_array_equal(step.transform(shapes[::-1]), together[::-1])


def test_single_precision_shapes_in_a_list_with_others_stay_what_they_are(rng):
    single, double = rng.normal(size=(9, 3)).astype(np.float32), rng.normal(size=(9, 3))
    step = ECTTransformer(16, 16, scale=30.0).fit([double])
    np.testing.assert_array_equal(step.transform([single, double])[:1], step.transform([single]))


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_any_number_of_jobs_gives_the_same_bits(n_jobs, shapes):
    step = ECTTransformer(6, 9, scale=30.0).fit(shapes)
    np.testing.assert_array_equal(clone(step).set_params(n_jobs=n_jobs).fit_transform(shapes), step.transform(shapes))


def test_an_estimator_is_what_scikit_learn_expects():
    """All of its checks, none skipped, on matrices whose rows are clouds. One of them needs a switch of scipy's."""
    code = """
        from sklearn.utils.estimator_checks import check_estimator
        from eulerscan.sklearn import ECTTransformer
        learned = {"radius": "max", "normalize": None, "variant": "channels"}
        for settings in ({}, learned, {"directions": "random", "variant": "sect"}, {"dtype": "float32", "scale": 20.0}):
            results = check_estimator(ECTTransformer(4, 5, dim=1, **settings), on_fail=None, on_skip=None)
            print(len(results), *(f"{r['check_name']}: {r['exception']}" for r in results if r["status"] != "passed"))
    """
    lines = run(code, SCIPY_ARRAY_API="1").splitlines()
    assert len(lines) == 4
    assert all(line.isdigit() and int(line) > 40 for line in lines), lines


def test_a_clone_has_the_same_settings_and_learned_nothing(rng):
    step = ECTTransformer(3, 4, radius="quantile", quantile=0.8, variant="sect", directions="random", random_state=3)
    step.fit(rng.normal(size=(4, 10, 3)))
    copy = clone(step)
    assert copy.get_params() == step.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(rng.normal(size=(4, 10, 3)))


def test_pipelines_tell_flat_from_long_clouds(clouds):
    shapes, labels = clouds
    model = make_pipeline(ECTTransformer(8, 8), SVC())
    assert cross_val_score(model, shapes, labels, cv=4).mean() == 1


def test_a_grid_search_chooses_among_settings_of_the_transform(clouds):
    shapes, labels = clouds
    choices = {"ecttransformer__derivative": [False, True], "ecttransformer__num_directions": [2, 8]}
    search = GridSearchCV(make_pipeline(ECTTransformer(num_thresholds=8), SVC()), choices, cv=2)
    for way in (shapes, es.as_complex(shapes), np.array([cloud[:30] for cloud in shapes])):
        search.fit(way, labels)
        assert search.best_score_ > 0.9
        assert search.best_params_.keys() == choices.keys()


def test_tables_come_out_where_they_are_wanted(rng):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = ECTTransformer(2, 3).set_output(transform="pandas").fit_transform(rng.normal(size=(4, 10, 3)))
    assert isinstance(table, pandas.DataFrame)
    assert table.columns.tolist() == [f"ect_d{i}_t{j}" for i in range(2) for j in range(3)]


def test_no_shapes_have_no_features(rng):
    step = ECTTransformer(2, 3).fit(rng.normal(size=(4, 10, 3)))
    assert step.transform([]).shape == (0, 6)


def test_importing_eulerscan_loads_no_scikit_learn_and_this_module_says_what_it_lacks():
    code = """
        import sys
        import eulerscan
        assert "sklearn" not in sys.modules
        sys.modules["sklearn"] = None
        try:
            import eulerscan.sklearn
        except ModuleNotFoundError as error:
            print(error)
    """
    assert 'pip install "eulerscan[sklearn]"' in run(code)


# Errors


def test_shapes_of_another_dimension_are_refused(rng):
    step = ECTTransformer().fit(rng.normal(size=(4, 10, 3)))
    with pytest.raises(ValueError, match="dimension 3 like the shapes in fit, got 2"):
        step.transform(rng.normal(size=(4, 10, 2)))
    with pytest.raises(ValueError, match=r"X\[1\] must be one shape with points of dimension 3, got Complex.*dim=2"):
        step.transform([rng.normal(size=(4, 3)), rng.normal(size=(4, 2))])
    with pytest.raises(ValueError, match=r"agree|dimension"):
        ECTTransformer().fit([rng.normal(size=(4, 3)), rng.normal(size=(4, 2))])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((4, 6)), r"clouds \[n_shapes, n_points, dim\], got \[4, 6\].*give dim="),
        ([np.zeros((2, 4, 3))], r"X\[0\] must be one shape, got Complex\(num_complexes=2"),
        ([np.zeros((4, 3)), np.array([[0, 1, np.nan]])], r"X\[1\]: points must be finite"),
        ([], "0 sample"),
    ],
)
def test_what_are_no_shapes_is_named(X, message):  # noqa: N803
    with pytest.raises(ValueError, match=message):
        ECTTransformer().fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"variant": "wct"}, "variant must be one of ect, sect"),
        ({"radius": "largest"}, 'radius must be a number, "max" or "quantile"'),
        ({"radius": "quantile", "quantile": 95}, "quantile must be from 0 to 1, got 95"),
        ({"directions": "even"}, 'directions must be "uniform", "random" or an array'),
        ({"directions": np.ones((4, 2))}, r"of shape \[num_directions, 3\], got \[4, 2\]"),
        ({"directions": "random", "spectrum": True}, "spectrum needs directions=\"uniform\".*got 'random' in dimension 3"),
        ({"dtype": "float16"}, 'dtype must be "float64" or "float32"'),
        ({"num_directions": 0}, "num_directions must be at least 1"),
        ({"num_thresholds": 0}, "num_thresholds must be at least 1"),
        ({"dim": 4}, "X must have rows of points in dimension 4, got 30 features"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"scale": -1.0}, "scale must be positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, rng):
    with pytest.raises(ValueError, match=message):
        ECTTransformer(**settings).fit_transform(rng.normal(size=(4, 30) if "dim" in settings else (4, 10, 3)))


def test_numbers_that_are_no_coordinates_are_refused(rng):
    for shapes in (np.full((2, 3, 2), 1j), [np.full((3, 2), 1j)], [np.array([["0", "1"]])]):
        with pytest.raises(TypeError, match="must hold numbers, got an array of"):
            ECTTransformer().fit(shapes)
    with pytest.raises(TypeError, match="num_directions must be an int, got float"):
        ECTTransformer(2.5).fit(rng.normal(size=(4, 10, 3)))


def test_shapes_with_gradients_are_transformed():
    clouds = torch.rand(4, 10, 3, dtype=torch.float64)
    expected = ECTTransformer(8, 8).fit_transform(es.as_complex(clouds))
    np.testing.assert_array_equal(ECTTransformer(8, 8).fit_transform(es.as_complex(clouds.requires_grad_())), expected)


def test_divided_by_vertices_clouds_of_any_size_look_alike(rng):
    def clouds(count):
        return [rng.normal(size=(count, 3)) * [1, 1, length] for length in (0.1, 3) * 10]

    labels = ["flat", "long"] * 10
    model = make_pipeline(ECTTransformer(8, 16, divide_by="vertices"), SVC()).fit(clouds(50), labels)
    assert model.score(clouds(30), labels) == model.score(clouds(300), labels) == 1
    with pytest.raises(ValueError, match="divide_by must be None or one of vertices, simplices, peak, got 'size'"):
        ECTTransformer(divide_by="size").fit(clouds(5))


def test_what_was_fitted_does_not_change_with_parameters(rng):
    step = ECTTransformer(directions=np.eye(2), num_thresholds=3).fit(rng.random((4, 5, 2)))
    assert step.config_.num_directions == 2
    names = list(step.get_feature_names_out())
    assert list(step.set_params(variant="sect").get_feature_names_out()) == names
