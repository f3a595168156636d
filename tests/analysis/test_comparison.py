"""Features, orientation, ordination, classification and mean shapes."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import rotations
from eulerscan.analysis import compare, distance_matrix, fit_shape, mds, means, oriented, pca
from eulerscan.analysis.features import invariant_features, shape_features
from eulerscan.analysis.stages import Stages
from eulerscan.complexes.extent import centroid_sizes, measure_weighted
from eulerscan.convert import from_outline
from eulerscan.datasets import load
from eulerscan.nn.losses import laplacian_loss
from eulerscan.variants import rotation_invariant

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from eulerscan.analysis.classification import classify, wilson  # noqa: E402


def turned(points: torch.Tensor, angle: float) -> torch.Tensor:
    matrix = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=points.dtype)
    return points @ matrix.T


def blob(seed: int, count: int = 40) -> torch.Tensor:
    """An outline without symmetry."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(count) / count
    radius = 1 + 0.4 * np.cos(angle) + 0.15 * np.cos(2 * angle + 1) + 0.02 * rng.normal(size=count)
    return torch.from_numpy(radius[:, None] * np.stack([1.5 * np.cos(angle), np.sin(angle)], axis=1))


def test_the_measure_below_the_last_height_is_the_length_or_area():
    square = torch.tensor([[0.0, 0], [2, 0], [2, 1], [0, 1]], dtype=torch.float64)
    shapes = es.collate([from_outline(square), from_outline(square, filled=True)])
    grid = es.directions.circle(5, dtype=torch.float64), torch.tensor([-9.0, 9.0], dtype=torch.float64)
    found = es.ect(measure_weighted(shapes), *grid)
    torch.testing.assert_close(found[0, :, 1], torch.full((5,), 6.0, dtype=torch.float64))
    torch.testing.assert_close(found[1, :, 1], torch.full((5,), 2.0, dtype=torch.float64))
    assert measure_weighted(es.as_complex(square)) is None


def test_blocks_by_kind_of_shape():
    config = es.ECTConfig(num_directions=6, num_thresholds=8)
    assert list(shape_features(es.as_complex(torch.rand(3, 9, 2)), config)) == ["transform", "smooth"]
    assert list(shape_features(from_outline(torch.rand(3, 9, 2)), config)) == ["transform", "smooth", "measure"]


@pytest.mark.parametrize("dim", [2, 3])
def test_invariant_features_do_not_change_under_rotation(dim):
    if dim == 2:
        shape, config = blob(0), es.ECTConfig(num_directions=48, num_thresholds=16, variant="sect")
        one, other = (config.transform(from_outline(points)) for points in (shape, turned(shape, 2 * math.pi * 7 / 48)))
        torch.testing.assert_close(rotation_invariant(one, 2), rotation_invariant(other, 2), atol=1e-9, rtol=0)
    else:
        config = es.ECTConfig(num_directions=500, num_thresholds=16, variant="sect")
        points = torch.rand(40, 3, dtype=torch.float64)
        matrix = rotations.random(1, 3, torch.Generator().manual_seed(0))[0]
        one, other = (rotation_invariant(config.transform(x), 3) for x in (points, points @ matrix.T))
        assert (one - other).abs().mean() < 0.05 * one.abs().mean()


@pytest.mark.parametrize("align", ["pca", "best"])
def test_rotated_copies_are_rotated_back(align):
    shape = blob(1)
    angles = [0.0, 0.7, 2.0, 3.5, 5.0]
    found = oriented([from_outline(turned(shape, angle)) for angle in angles], align)
    first = found[0].points
    for i in range(1, len(angles)):
        gap = (found[i].points - first).norm(dim=1).max() / first.norm(dim=1).max()
        assert gap < (1e-6 if align == "pca" else math.radians(2.1))


def test_best_rotation_in_space():
    cloud = torch.rand(30, 3, dtype=torch.float64) * torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    quarter = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
    found = oriented([cloud, cloud @ quarter.T], "best")
    torch.testing.assert_close(found[0].points, found[1].points, atol=1e-6, rtol=0)


def test_principal_components_keep_the_distances():
    transforms = torch.rand(7, 4, 5, dtype=torch.float64)
    found = pca(transforms)
    matrix = distance_matrix(transforms)
    torch.testing.assert_close(torch.cdist(found.scores, found.scores), matrix * math.sqrt(20), atol=1e-9, rtol=0)
    torch.testing.assert_close(found.transform_at(found.scores[3]), transforms[3])
    assert found.explained.sum().item() == pytest.approx(1.0)
    scaled = mds(matrix).scores * math.sqrt(20)
    torch.testing.assert_close(scaled.abs(), found.scores.abs(), atol=1e-6, rtol=0)
    with pytest.raises(ValueError, match="mds"):
        mds(matrix).transform_at(torch.zeros(2))


@pytest.mark.parametrize(
    "config", [es.ECTConfig(12, 16), es.ECTConfig(12, 16, radius=0.7), es.ECTConfig(12, 16, derivative=True)]
)
def test_axes_of_a_comparison_have_the_unit_of_its_distances(config):
    options = {"permutations": 9, "classification": False, "means": False, "progress": False}
    shapes = from_outline([blob(i) * torch.tensor([1.0, 1 + 0.2 * (i % 2)]) for i in range(6)])
    found = compare(shapes, "ababab", config=config, **options)
    scores = found.ordination.scores
    torch.testing.assert_close(torch.cdist(scores, scores), found.distances, atol=1e-9, rtol=0)
    torch.testing.assert_close(found.ordination.transform_at(scores[3]), config.transform(shapes)[3], atol=1e-9, rtol=0)


@pytest.mark.parametrize("count", [3, 7, 30])
def test_principal_components_are_those_of_the_singular_values(count):
    transforms = torch.randn(count, 2, 4, dtype=torch.float64)
    found = pca(transforms, 3)
    rows = transforms.flatten(1) - transforms.flatten(1).mean(dim=0)
    values = torch.linalg.svdvals(rows)
    kept = min(3, count - 1)
    torch.testing.assert_close(torch.linalg.vector_norm(found.scores, dim=0), values[:kept])
    torch.testing.assert_close(found.explained, (values.square() / values.square().sum())[:kept])
    torch.testing.assert_close(rows @ found.components.flatten(1).T, found.scores)
    assert bool((found.scores.amax(dim=0) >= found.scores.abs().amax(dim=0)).all())


@pytest.mark.parametrize("method", [pca, mds])
def test_integers_have_the_coordinates_of_the_same_floats(method):
    values = torch.tensor([[0, 3, 4, 1], [3, 0, 5, 7], [4, 5, 0, 2], [1, 7, 2, 0]])
    found, expected = method(values), method(values.float())
    assert found.scores.dtype == torch.get_default_dtype()
    assert torch.equal(found.scores, expected.scores)
    assert torch.equal(found.explained, expected.explained)


def test_components_of_repeated_transforms_have_unit_length():
    found = pca(torch.rand(3, 8, generator=torch.Generator().manual_seed(0))[[0, 0, 1, 1, 2, 2]])
    torch.testing.assert_close(found.components @ found.components.T, torch.eye(2))


def test_a_single_transform_has_the_score_zero():
    found = pca(torch.rand(1, 2, 4))
    assert found.scores.tolist() == [[0.0]]
    assert found.explained.tolist() == [0.0]
    with pytest.raises(ValueError, match="transforms .* empty"):
        pca(torch.rand(0, 2, 4))


def test_the_interval_of_a_share_stays_between_0_and_1():
    for count, share in itertools.product(range(1, 200), (0.0, 1.0)):
        low, high = wilson(share, count)
        assert 0 <= low <= share <= high <= 1


def test_sizes_scale_with_the_shape():
    shape = from_outline(blob(0))
    one, other = (centroid_sizes(shape.with_points(factor * shape.points + 5)) for factor in (1.0, 3.0))
    torch.testing.assert_close(3 * one, other)


def test_noise_is_not_classified_better_than_by_chance():
    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=(120, 10)) for name in "abc"}
    sets = [("a",), ("b",), ("c",), ("a", "b", "c")]
    found = classify(features, np.arange(120) % 2, {"all": sets}, repeats=2)["all"]
    assert 0.35 < found.accuracy < 0.65
    assert found.confusion.sum() == 240


def test_informative_features_are_chosen():
    rng = np.random.default_rng(1)
    labels = np.arange(90) % 3
    features = {"noise": rng.normal(size=(90, 30)), "signal": rng.normal(size=(90, 4)) + 2 * np.eye(4)[labels]}
    found = classify(features, labels, {"noise": [("noise",)], "both": [("noise",), ("signal",)]}, repeats=1)
    assert found["noise"].accuracy < 0.55
    assert found["both"].accuracy > 0.75
    assert next(iter(found["both"].chosen)) == "signal"


def test_blocks_of_shapes_are_in_one_fold():
    # Ten scans each of ten specimens with random labels: only who has seen the specimen can know its label.
    rng = np.random.default_rng(2)
    specimen = np.repeat(np.arange(10), 10)
    labels = rng.permutation(np.arange(10) % 2)[specimen]
    features = {"a": rng.normal(size=(10, 5))[specimen] + 0.01 * rng.normal(size=(100, 5))}
    assert classify(features, labels, repeats=1)["all"].accuracy > 0.95
    found = classify(features, labels, repeats=3, strata=specimen)["all"]
    assert found.accuracy < 0.8
    assert found.interval == wilson(found.accuracy, len(set(specimen)))


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (4, 4, 2)])
@pytest.mark.parametrize("with_strata", [False, True])
def test_folds_are_as_many_as_the_largest_group_has_shapes(sizes, with_strata):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    features = {"far": 10.0 * labels[:, None] + np.arange(len(labels))[:, None] / 10, "constant": np.ones((len(labels), 1))}
    strata = np.arange(len(labels)) if with_strata else None
    found = classify(features, labels, {"all": [("far",), ("constant",)]}, strata=strata)["all"]
    assert found.folds == max(sizes)
    assert list(found.chosen) == ["far"]
    assert found.confusion.sum() == found.repeats * len(labels)


def test_a_comparison_says_that_it_has_fewer_folds():
    shapes = from_outline(torch.stack([blob(i) * torch.tensor([1.0, 1 + i % 2]) for i in range(6)]))
    found = compare(shapes, ["a", "b"] * 3, permutations=9, means=False, progress=False)
    assert found.classification.folds == 3
    assert any("3 folds instead of 5: no group has more than 3 shapes" in remark for remark in found.remarks)
    found = compare(shapes, ["a", "b"] * 3, permutations=9, means=False, progress=False, folds=3)
    assert not any("folds" in remark for remark in found.remarks)


def test_one_shape_is_warped_to_the_means_and_extremes(monkeypatch):
    monkeypatch.setattr(means, "fit_shape", partial(fit_shape, steps=60))
    angle = torch.arange(24, dtype=torch.float64) * (2 * math.pi / 24)
    widths = [0.40, 0.42, 0.44, 0.46, 0.60, 0.62, 0.64, 0.66]
    shapes = from_outline([torch.stack([angle.cos(), width * angle.sin()], dim=1) for width in widths])
    options = {"permutations": 9, "classification": False, "progress": False, "config": es.ECTConfig(24, 24)}
    warps = compare(shapes, list("aaaabbbb"), **options).warps
    names = ["mean of a", "mean of b", "mean of all shapes", *(f"axis {i}, {side}2 SD" for i in (1, 2) for side in "−+")]
    assert sorted(name.removesuffix(" (poor fit)") for name in warps) == sorted(names)
    fitted = ["poor fit" not in name for name in warps]
    assert fitted == sorted(fitted, reverse=True)  # those that fit come first
    first = next(iter(warps.values()))
    assert all(torch.equal(warp.simplices[0], first.simplices[0]) for warp in warps.values())
    heights = [float(warps[name].points[:, 1].max()) for name in names[:3]]
    assert heights == pytest.approx([0.43, 0.63, 0.53], abs=0.05)


def test_the_mean_of_smooth_outlines_is_smooth():
    """Although the grid is coarse: a vertex between two heights may lie anywhere."""
    angle = torch.arange(90, dtype=torch.float64) * (2 * math.pi / 90)
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    lobed = [circle * (1 + depth * torch.cos(3 * angle))[:, None] for depth in (0.1, 0.15, 0.2, 0.25, 0.3)]
    shapes, config = from_outline(lobed), es.ECTConfig(24, 24)
    mean = fit_shape(config.transform(shapes).mean(dim=0), shapes[0], config)
    assert laplacian_loss(mean) < 1.5 * laplacian_loss(shapes[2])


def test_a_mean_shape_lies_between_its_shapes():
    angle = 2 * torch.pi * torch.arange(32, dtype=torch.float64) / 32
    shapes = from_outline([torch.stack([angle.cos(), width * angle.sin()], dim=1) for width in (0.4, 0.5, 0.6, 0.7, 0.8)])
    config = es.ECTConfig(num_directions=32, num_thresholds=48)
    mean = fit_shape(config.transform(shapes).mean(dim=0), shapes[0], config)
    assert mean.points[:, 1].max().item() == pytest.approx(0.6, abs=0.05)
    assert mean.counts == (32, 32)


def test_groups_are_compared_up_to_rotation():
    rng = np.random.default_rng(3)
    outlines = [blob(i) * torch.tensor([1.0, 0.6 if i % 2 else 1.0], dtype=torch.float64) for i in range(20)]
    outlines = [turned(points, rng.uniform(0, 6)) for points in outlines]
    labels = ["wide", "thin"] * 10
    options = {"permutations": 99, "classification": False, "means": False, "progress": False}
    r2 = {
        align: compare(from_outline(outlines), labels, align=align, **options).permanova.r2 for align in (None, "pca", "best")
    }
    invariant = compare(from_outline(outlines), labels, align="invariant", **options).permanova
    assert r2[None] < 0.2
    assert min(r2["pca"], r2["best"], invariant.r2) > 0.5
    assert invariant.p_value == 0.01


def test_rotated_groups_in_space_are_told_apart(generator):
    """Balls with a dent, and egg-shaped ones, at random rotations: neither has more volume at any height in all directions."""
    ball = es.directions.fibonacci(120)
    heights = torch.linspace(0.2, 0.4, 24)[:, None, None]
    labels = ["dented", "flat"] * 12
    dents = 1 - heights * torch.exp(-8 * (1 - ball[:, 2:]))
    flat = 1 - 0.3 * heights * ball[:, 2:].square()
    points = ball * torch.where(torch.arange(24)[:, None, None] % 2 == 0, dents, flat)
    points = points * (1 + 0.01 * torch.randn(24, 120, 1, generator=generator))
    points = points @ rotations.random(24, 3, generator).float()
    hull = torch.from_numpy(pytest.importorskip("scipy.spatial").ConvexHull(ball.numpy()).simplices.T).long()
    shapes = es.collate([es.Complex(one, [hull]).closure() for one in points])
    for align in (None, "invariant"):
        found = compare(shapes, labels, align=align, means=False, permutations=99, progress=False)
        assert found.classification.accuracy > 0.95
    assert found.permanova.p_value == 0.01


def test_features_that_do_not_change_under_rotation_in_space(generator):
    shapes = load("manifolds", form="meshes", num_shapes=1, num_points=80).shapes.to(dtype=torch.float64)
    rotated = shapes.with_points(shapes.points @ rotations.random(1, 3, generator)[0].T)
    config = es.ECTConfig(num_directions=64, num_thresholds=16, normalize="unit_ball")
    for name, one in invariant_features(shapes, config).items():
        other, plain = (function(rotated, config)[name] for function in (invariant_features, shape_features))
        assert one.shape == (4, 6, 16)  # degrees up to 5
        assert float((one - other).norm() / one.norm()) < 1e-6
        assert float((plain - shape_features(shapes, config)[name]).norm() / plain.norm()) > 0.02


def test_parts_of_clouds_alone_have_no_measure(monkeypatch):
    meshes = load("manifolds", form="meshes", num_shapes=1, num_points=32).shapes
    clouds = es.Complex(meshes.points, batch=meshes.batch)
    together, config = es.collate([meshes, clouds]), es.ECTConfig(num_directions=8, num_thresholds=6, normalize="unit_ball")
    wanted = invariant_features(together, config)
    monkeypatch.setattr("eulerscan.analysis.features.AT_ONCE", 4)
    for name, found in invariant_features(together, config).items():
        torch.testing.assert_close(found, wanted[name], rtol=1e-4, atol=1e-4 * float(wanted[name].max()))


def test_regions_are_compared_alike():
    """One of them has a vertex inside: all stay regions, or the test would tell how shapes are triangulated."""
    regions = from_outline([blob(i) for i in range(8)], filled=True)
    first = regions[0]
    corners = first.simplices[1][:, 0]
    middle = len(first.points) * torch.ones(3, dtype=torch.int64)
    fan = torch.stack([corners, corners.roll(-1), middle])
    finer = es.Complex(
        torch.cat([first.points, first.points[corners].mean(dim=0, keepdim=True)]),
        [torch.cat([first.simplices[1][:, 1:], fan], dim=1)],
    ).closure()
    options = {"permutations": 19, "classification": False, "means": False, "progress": False}
    labels = ["a", "b"] * 4
    assert compare(regions, labels, **options).shapes.max_dim == 1
    assert compare(es.collate([finer, *(regions[i] for i in range(1, 8))]), labels, **options).shapes.max_dim == 2


def test_missing_and_wrong_arguments_are_named():
    shapes = torch.rand(6, 5, 2)
    with pytest.raises(ValueError, match="each of 6"):
        compare(shapes, ["a"] * 5)
    with pytest.raises(ValueError, match="coincide in 0"):
        compare(torch.cat([torch.zeros(1, 5, 2), shapes[1:]]), list("aaabbb"))
    with pytest.raises(ValueError, match="'mass' is for 2"):
        compare(shapes, list("aaabbb"), traits={"mass": [1, 2, None, 4, 5, 6]}, permutations=9, means=False, progress=False)
    with pytest.raises(ValueError, match="align"):
        compare(shapes, list("aaabbb"), align="procrustes")


def test_names_of_groups_do_not_depend_on_what_holds_them():
    shapes = torch.rand(6, 9, 2)
    options = {"permutations": 9, "classification": False, "means": False, "progress": False}
    groups = torch.tensor([0, 0, 0, 1, 1, 1])
    assert [compare(shapes, held, **options).counts for held in (groups, groups.numpy(), groups.tolist())] == [
        {"0": 3, "1": 3}
    ] * 3


def test_features_that_are_named_twice_have_twice_the_weight():
    """As if there were a copy of them."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    signal, noise = rng.normal(size=(60, 3)) + labels[:, None], rng.normal(size=(60, 3))
    features = {"signal": signal, "noise": noise}
    found = classify(features, labels, {"once": [("signal", "noise")], "twice": [("signal", "signal", "noise")]}, repeats=3)
    assert found["twice"].chosen == found["once"].chosen == {"signal + noise": 15}
    assert found["twice"].predictions != found["once"].predictions
    again = classify(features | {"copy": signal}, labels, {"copy": [("signal", "copy", "noise")]}, repeats=3)["copy"]
    assert again.predictions == found["twice"].predictions


def test_covariates_of_repeated_scans_are_those_of_their_specimens():
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.arange(40) / 40
    age = np.repeat(rng.uniform(1, 9, 14), 2)
    widths = 0.3 + 0.05 * age + 0.01 * rng.normal(size=28)
    outlines = [torch.from_numpy(np.stack([np.cos(angle), width * np.sin(angle)], axis=1)) for width in widths]
    measured = age + 0.1 * rng.normal(size=28)  # differs between the scans
    specimen, groups = np.repeat(np.arange(14), 2).tolist(), ["a", "a", "b", "b"] * 7
    only_tests = {"permutations": 199, "classification": False, "means": False}
    covariates = {"age": measured.tolist(), "few": [1.0, 1.2, 2.0, 2.1, *[None] * 24]}
    found = compare(from_outline(outlines), groups, strata=specimen, covariates=covariates, **only_tests)
    assert found.regressions["age"].p_value <= 0.01
    assert "few" not in found.regressions
    assert any("few is left out: it has 2 values" in remark for remark in found.remarks)
    treated = compare(from_outline(outlines), ["a", "b"] * 14, strata=specimen, covariates=covariates, **only_tests)
    assert treated.regressions["age"].p_value > 0.01  # within specimens


def test_the_radius_is_that_of_the_oriented_shapes():
    outlines = [blob(i) * torch.tensor([1.0, 0.6 if i % 2 else 1.0], dtype=torch.float64) for i in range(8)]
    options = {"permutations": 19, "classification": False, "means": False, "progress": False}
    config = es.ECTConfig(16, 16, normalize=None)
    found = [
        compare(from_outline([points + away for points in outlines]), ["a", "b"] * 4, config=config, align="pca", **options)
        for away in (0.0, 1000.0)
    ]
    assert found[0].config.radius == pytest.approx(found[1].config.radius)
    assert found[0].permanova.r2 == pytest.approx(found[1].permanova.r2)


def test_shapes_with_gradients_are_compared():
    points = torch.stack([blob(i) for i in range(4)]).requires_grad_()
    weighted = from_outline(points).with_weights(torch.rand(160, dtype=torch.float64, requires_grad=True))
    found = compare(weighted, "aabb", permutations=9, classification=False, means=False, progress=False)
    assert not found.shapes.packed.weights.requires_grad
    torch.testing.assert_close(found.shapes.points, points.detach().flatten(0, 1))


def test_channels_of_meshes_are_compared():
    corners, triangles = torch.eye(4, 3, dtype=torch.float64), torch.combinations(torch.arange(4), 3).T
    stretched = [corners * torch.tensor([1.0, 1.0, 1 + i]) for i in range(4)]
    tetrahedra = [es.Complex(points, [triangles]).closure() for points in stretched]
    config = es.ECTConfig(num_directions=8, num_thresholds=8, variant="channels", max_dim=2)
    found = compare(es.collate(tetrahedra), "aabb", config=config, permutations=9, means=False, progress=False)
    assert found.classification is not None


def test_stages_are_of_these_weights():
    cloud = es.Complex(torch.rand(4, 2))
    keys = {Stages(None, one, 1).key for one in (cloud, *(cloud.with_weights(torch.full((4,), w)) for w in (1.0, 2.0)))}
    assert len(keys) == 3


def test_groups_that_differ_only_in_case_are_pointed_out():
    clouds = torch.rand(9, 20, 2, generator=torch.Generator().manual_seed(0))
    groups = ["maple", "oak", "Maple"] * 3
    found = compare(clouds, groups, permutations=9, classification=False, means=False)
    assert "The names of the groups Maple and maple differ only in case: are they the same?" in found.remarks


@pytest.mark.parametrize(
    ("groups", "covariates", "has_dispersion"),
    [
        (["before", "after"] * 6, {"age": [3.0] * 6 + [5.0] * 6}, True),  # constant within two specimens
        (["a"] * 5 + ["c"] + ["b"] * 6, {}, False),  # without the group of one shape, whole blocks
    ],
)
def test_a_test_that_too_few_blocks_allow_is_left_out(groups, covariates, has_dispersion, rng):
    angles = torch.arange(20) * (2 * math.pi / 20)
    outlines = [torch.stack([angles.cos(), width * angles.sin()], dim=1) for width in rng.uniform(0.4, 0.9, 12)]
    options = {"means": False, "classification": False, "progress": False, "permutations": 19}
    found = compare(from_outline(outlines), groups, strata=["s1"] * 6 + ["s2"] * 6, covariates=covariates, **options)
    assert 0 < found.permanova.p_value <= 1
    assert (found.dispersion is not None) == has_dispersion
    assert "age" not in found.regressions
    assert any("age is left out" in remark for remark in found.remarks) == bool(covariates)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_group_is_no_group(missing, rng):
    groups = [missing, *["a"] * 5, *["b"] * 6]
    with pytest.raises(ValueError, match="groups must have no missing values, got one for shape 0"):
        compare(torch.rand(12, 9, 2), groups)
    with pytest.raises(ValueError, match="groups must have no missing values"):
        classify({"a": rng.normal(size=(12, 2))}, groups)
    with pytest.raises(ValueError, match="strata must hold a value for each of 12 shapes, got 6"):
        classify({"a": rng.normal(size=(12, 2))}, ["a", "b"] * 6, strata=range(6))
