"""The SVM on the transform."""

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import eulerscan as es
from eulerscan.datasets import load
from eulerscan.nn import LocalECT
from eulerscan.nn.models import ECTSVM
from eulerscan.nn.models.svm import _disturbs
from eulerscan.testing import assert_rotation_invariant
from eulerscan.training.config import ModelConfig


def clouds(num_classes, count=15, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count * num_classes) % num_classes
    points = torch.randn(len(labels), 12, 2, generator=generator)
    points[..., 0] *= 1 + 2 * labels[:, None]
    return points, labels


@pytest.mark.parametrize("num_classes", [2, 3, 7])
@pytest.mark.parametrize("spectrum", [False, True])
def test_the_module_equals_scikit_learn(num_classes, spectrum):
    points, labels = clouds(num_classes)
    layer = es.ECTLayer(2, 8, 12, normalize="center", radius=20.0, dtype=torch.float64)
    model = ECTSVM(layer, num_classes, cost=3.0, spectrum=spectrum).fit(points.double(), labels)
    features = model.features(points.double()).detach().numpy()
    centered = features - features.mean(axis=0)
    standardized = centered / (centered.std(axis=0) + np.sqrt((centered**2).mean()))
    kernel = rbf_kernel(standardized, gamma=1 / (standardized.shape[1] * standardized.var()))
    expected = SVC(C=3.0, kernel="precomputed", break_ties=num_classes > 2).fit(kernel, labels.numpy())
    found = model(points.double())
    assert np.array_equal(found.argmax(dim=1).numpy(), expected.predict(kernel))
    decision = expected.decision_function(kernel)
    # Without the kernel, the solver takes other steps, up to its tolerance.
    by_default = SVC(C=3.0).fit(standardized, labels.numpy()).decision_function(standardized)
    np.testing.assert_allclose(decision, by_default, rtol=0, atol=1e-3)
    if num_classes == 2:
        assert np.array_equal((found[:, 1] > found[:, 0]).numpy(), decision > 0)
    else:
        np.testing.assert_allclose(found.numpy(), decision, rtol=1e-9, atol=1e-9)


def test_shapes_of_many_pieces_do_not_outweigh_the_others():
    """Squares of two sizes, of which a few have hundreds of further pieces inside, as a mesh with debris has."""
    generator = torch.Generator().manual_seed(0)
    shapes, labels = [], torch.arange(60) % 2
    for number, label in enumerate(labels):
        corners = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]) * torch.tensor([1.0, 0.4 + 0.2 * label])
        pieces = torch.randn(500 if number % 7 == 0 else 0, 2, generator=generator) / 20
        edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        shapes.append(es.Complex(torch.cat([corners, pieces]), [edges]))
    train, test = torch.arange(40), torch.arange(40, 60)
    model = ECTSVM(es.ECTLayer(2, 16, 16, normalize="unit_ball"), 2).fit(es.collate(shapes[:40]), labels[train])
    assert (model(es.collate(shapes[40:])).argmax(dim=1) == labels[test]).double().mean() > 0.85


def test_joint_features_are_those_of_the_shape_below_each_height_and_its_size():
    """Squares of side 2, a mesh with a vertex inside and an outline: area 4 and length 8; and the same at twice the size."""
    corners = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]], dtype=torch.float64)
    edges, middle = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), torch.full((1, 4), 4)
    mesh = es.Complex(torch.cat([corners, torch.zeros(1, 2)]), [torch.cat([edges, middle])]).closure()
    shapes = [mesh, es.Complex(corners, [edges])]
    both = es.collate([*shapes, *(shape.with_points(2 * shape.points) for shape in shapes)])
    layer = es.ECTLayer(2, 4, 5, scale=torch.inf, normalize="unit_ball", dtype=torch.float64)
    model = ECTSVM(layer, 2, joint=True)
    found = model.features(both)
    curves, smooth, below, *invariant, size = found.split(model.head.blocks, dim=1)
    torch.testing.assert_close(curves.square() * curves.sign(), layer(both).flatten(1))
    torch.testing.assert_close(smooth, es.sect(both.normalized("unit_ball"), layer.directions, layer.thresholds).flatten(1))
    # In the unit ball the side is the root of 2.
    torch.testing.assert_close(below.view(4, 4, 5)[:2, :, -1], torch.tensor([[2.0], [4 * 2**0.5]]).double().expand(2, 4))
    for block in (curves, smooth, below, *invariant):
        torch.testing.assert_close(block[2:], block[:2])  # without size
    torch.testing.assert_close(size**4, torch.tensor([8 / 5, 2, 32 / 5, 8], dtype=torch.float64)[:, None])
    rotated = both.with_points(both.points.flip(1) * torch.tensor([-1.0, 1.0]))  # by a right angle
    for block, other in zip(invariant, model.features(rotated).split(model.head.blocks, dim=1)[3:6], strict=True):
        torch.testing.assert_close(other, block)


def test_joint_features_see_regions_by_their_outlines(generator):
    angle = 2 * torch.pi * torch.arange(12) / 12
    outlines = (1 + torch.rand(3, 12, 1, generator=generator)) * torch.stack([angle.cos(), angle.sin()], dim=1)
    regions, lines = (es.convert.from_outline(outlines, filled=filled) for filled in (True, False))
    model = ECTSVM(es.ECTLayer(2, 8, 8, normalize="unit_ball"), 2, joint=True)
    assert not torch.equal(model.features(regions), model.features(lines))
    model.fit(regions, torch.tensor([0, 1, 1]))
    found = model.features(regions)
    torch.testing.assert_close(found, model.features(lines))
    # Whatever the other shapes of the batch are: a mesh, a graph whose edges count twice, triangles that lack edges.
    mesh = load("digits", form="meshes").shapes[0]
    twice = es.Complex(outlines[0], [torch.cat([lines[0].simplices[0], lines[0].simplices[0].flip(0)], dim=1)])
    open_ones = es.Complex(outlines[0], [lines[0].simplices[0][:, :1], regions[0].simplices[1]])
    others = [mesh, twice, open_ones, *(regions[i] for i in range(3))]
    for shape, features in zip(others, model.features(es.collate(others)), strict=True):
        torch.testing.assert_close(model.features(shape)[0], features)


def test_regions_with_vertices_inside_are_not_seen_by_their_outlines(generator):
    """A mesh among the shapes to fit: all stay regions, or length would be compared with area."""
    angle = 2 * torch.pi * torch.arange(9) / 9
    outlines = (1 + torch.rand(3, 9, 1, generator=generator)) * torch.stack([angle.cos(), angle.sin()], dim=1)
    regions = es.convert.from_outline(outlines, filled=True)
    fan = torch.stack([torch.arange(4), torch.arange(1, 5) % 4, torch.full((4,), 4)])
    mesh = es.Complex(torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.4, 0.5]]), [fan]).closure()
    model = ECTSVM(es.ECTLayer(2, 8, 6, normalize="unit_ball"), 2, joint=True)
    before = model.features(regions)
    model.fit(es.collate([regions, mesh]), torch.tensor([0, 1, 1, 0]))
    assert torch.equal(model.features(regions), before)
    copy = ECTSVM(es.ECTLayer(2, 8, 6, normalize="unit_ball"), 2, joint=True)
    model.fit(regions, torch.tensor([0, 1, 1]))
    copy.load_state_dict(model.state_dict())
    assert torch.equal(copy(regions), model(regions))


def test_joint_spectra_are_the_part_of_joint_features_that_rotations_keep(generator):
    shapes = es.convert.from_outline(torch.rand(3, 9, 2, generator=generator))
    layer = es.ECTLayer(2, 8, 6, normalize="unit_ball")
    joint, spectra = (ECTSVM(layer, 2, joint=True, spectrum=spectrum) for spectrum in (False, True))
    parts = joint.features(shapes).split(joint.head.blocks, dim=1)
    torch.testing.assert_close(spectra.features(shapes), torch.cat(parts[3:], dim=1))
    assert spectra.head.blocks == joint.head.blocks[3:]


def test_joint_spectra_in_space_do_not_see_rotations(generator):
    shapes = load("manifolds", form="meshes", num_shapes=2, num_points=60).shapes
    model = ModelConfig("svm", joint=True, spectrum=True, num_thresholds=12).build(3, 4)
    rotated = shapes.with_points(shapes.points @ es.rotations.random(1, 3, generator)[0].float().T)
    pairs = zip(*(model.features(x).split(model.head.blocks, dim=1) for x in (shapes, rotated)), strict=True)
    for one, other in pairs:
        assert float((one - other).norm() / one.norm()) < 0.02


def test_joint_features_see_the_size():
    """Squares of two sizes, which are the same in the unit ball."""
    corners, edges = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 2
    factors = (1 + labels[:, None, None]) * (1 + 0.1 * torch.rand(40, 4, 2, generator=generator))
    shapes = es.collate([es.Complex(corners * factor, [edges]) for factor in factors])
    train, test = torch.arange(20), torch.arange(20, 40)
    layer = es.ECTLayer(2, 8, 8, normalize="unit_ball")
    scores = [
        float(
            (ECTSVM(layer, 2, joint=joint).fit(shapes[train], labels[train])(shapes[test]).argmax(dim=1) == labels[test]).sum()
        )
        for joint in (True, False)
    ]
    assert scores[0] >= 18
    assert scores[1] <= 14


@pytest.mark.parametrize("spectrum", [False, True])
def test_a_size_that_says_nothing_is_left_out(spectrum):
    """Rectangles of twenty kinds, from thin to square: of any size, or of a size for each kind."""
    corners, edges = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(120) % 20
    widths = torch.stack([torch.ones(120), torch.linspace(0.1, 1, 20)[labels]], dim=1)
    points = corners * widths[:, None] + 0.05 * torch.rand(120, 4, 2, generator=generator)
    sizes = torch.exp(4 * torch.rand(120, generator=generator))
    for factors, matters in ((sizes, False), (1.0 + labels, True)):
        shapes = es.collate([es.Complex(one * factor, [edges]) for one, factor in zip(points, factors, strict=True)])
        layer = es.ECTLayer(2, 8, 16, normalize="unit_ball")
        model = ECTSVM(layer, 20, joint=True, spectrum=spectrum).fit(shapes, labels)
        assert model.head.deviation[:-1].isfinite().all()
        assert model.sees_size == matters
        assert bool(model.head.support[:, -1].any()) == matters
        again = ECTSVM(layer, 20, joint=True, spectrum=spectrum)
        again.load_state_dict(model.state_dict())
        assert torch.equal(again(shapes), model(shapes))
        larger = model(shapes.with_points(2 * shapes.points))
        assert bool((larger - model(shapes)).abs().amax() < 1e-3) != matters


def test_a_feature_disturbs_if_nearest_neighbors_without_it_are_better():
    pairs = torch.tensor([0.0, 0.1, 5, 5.1, 10, 10.1, 15, 15.1])
    features = torch.stack([pairs, torch.tensor([0.0, 9.0]).repeat(4)], dim=1)  # the last one joins shapes of other pairs
    labels, scans = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3]), ["a", "a", "b", "b", "c", "c", "d", "d"]
    assert _disturbs(features, 1, labels)
    assert not _disturbs(features, 1, torch.tensor([0, 1]).repeat(4))  # it is the class
    assert not _disturbs(features, 1, labels, scans)  # shapes of a block are not each other's neighbors
    assert not _disturbs(features, 1, labels, ["a"] * 8)
    doubled, copies = features.repeat_interleave(2, dim=0), [number // 2 for number in range(16)]
    assert _disturbs(doubled, 1, labels.repeat_interleave(2), copies)
    assert not _disturbs(doubled, 1, labels.repeat_interleave(2))  # each has a copy of itself
    assert not ECTSVM(es.ECTLayer(2), 2).sees_size


def test_scans_of_a_specimen_do_not_decide_about_its_size(monkeypatch):
    seen = []
    monkeypatch.setattr("eulerscan.nn.models.svm._disturbs", lambda *arguments: bool(seen.append(arguments)))
    shapes, labels, blocks = (
        es.collate([segment(1.0 + i) for i in range(16)]),
        torch.arange(16) // 8,
        [str(i // 2) for i in range(16)],
    )
    splits = {"train": torch.tensor([4, 5, 12, 13]), "test": torch.arange(4)}
    dataset = es.datasets.Dataset("scans", shapes, labels, ("small", "large"), splits, strata=blocks)
    for joint in (True, False):
        es.training.train(ECTSVM(es.ECTLayer(2), 2, joint=joint), dataset, es.training.TrainingConfig(), progress=False)
    assert [strata for _, _, _, strata in seen] == [["2", "2", "6", "6"]]


def segment(length):
    return es.Complex(torch.tensor([[0.0, 0], [length, 0]]), [torch.tensor([[0], [1]])])


def test_joint_features_of_a_shape_do_not_depend_on_the_others_and_points_have_no_measure():
    edge = es.Complex(torch.tensor([[0.0, 0], [1, 0]]), [torch.tensor([[0], [1]])])
    shapes = [edge, es.Complex(torch.rand(3, 2)), es.Complex(torch.zeros(1, 2)), es.Complex(torch.empty(0, 2))]
    model = ECTSVM(es.ECTLayer(2, 4, 5, normalize="unit_ball"), 2, joint=True)
    together = model.features(es.collate(shapes))
    assert together.isfinite().all()
    for shape, features in zip(shapes, together, strict=True):
        assert torch.equal(model.features(shape)[0], features)
    assert together[0, 40:60].any()
    assert not together[1:, 40:60].any()


def test_joint_features_in_space_change_less_under_rotation_than_the_transform(generator):
    points, triangles = torch.rand(1, 8, 3, generator=generator), torch.tensor([[0, 1, 2], [1, 2, 3], [4, 5, 6]]).T
    shape = es.Complex(points[0], [triangles]).closure()
    model = ECTSVM(es.ECTLayer(3, 64, 16, normalize="unit_ball"), 2, joint=True)
    rotated = shape.with_points(shape.points @ es.rotations.random(1, 3, generator)[0].float().T)
    pairs = zip(*(model.features(x).split(model.head.blocks, dim=1) for x in (shape, rotated)), strict=True)
    changes = [float((one - other).norm() / one.norm()) for one, other in pairs]
    assert all(invariant < plain / 2 for plain, invariant in zip(changes[:3], changes[3:6], strict=True))
    assert changes[6] < 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_points_and_layers_have_joint_features(dtype):
    corners, edges = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]]), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    model = ECTSVM(es.ECTLayer(2, 4, 5, normalize="unit_ball", dtype=dtype), 2, joint=True)
    found = model.features(es.Complex((300 * corners).to(dtype), [edges]))
    assert found.dtype == dtype
    assert float(found[0, -1].square()) == pytest.approx(300 * 2**0.5, rel=0.02)


def test_joint_features_of_nothing_and_their_gradients(generator):
    layer = es.ECTLayer(2, 4, 5, scale=10.0, normalize="unit_ball")
    model = ECTSVM(layer, 2, joint=True)
    assert model.features(torch.empty(0, 3, 2)).shape == (0, sum(model.head.blocks))
    points = torch.rand(4, 2, generator=generator).requires_grad_()
    shapes = es.Complex(points, [torch.tensor([[0, 1], [1, 2]])], batch=torch.tensor([0, 0, 0, 1]), num_complexes=2)
    gradient = torch.autograd.grad(model.features(shapes).square().sum(), points)[0]
    assert gradient.isfinite().all()
    assert gradient[:3].any()


def test_the_spectrum_does_not_see_rotations_by_the_angle_between_directions():
    points, labels = clouds(3)
    layer = es.ECTLayer(2, 16, 16, normalize="unit_ball", dtype=torch.float64)
    model = ECTSVM(layer, 3, spectrum=True).fit(points.double(), labels)
    angle = torch.tensor(3 * 2 * torch.pi / 16, dtype=torch.float64)
    rotation = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
    torch.testing.assert_close(model(points.double() @ rotation.T), model(points.double()), rtol=1e-6, atol=1e-6)
    plain = ECTSVM(layer, 3).fit(points.double(), labels)
    assert (plain(points.double() @ rotation.T) - plain(points.double())).abs().max() > 0.1


def test_the_spectrum_in_space_does_not_see_rotations(generator):
    shapes = torch.randn(20, 9, 3, generator=generator)
    shapes[10:] *= torch.tensor([1.0, 0.5, 0.2])
    directions = es.directions.quadrature(24, dtype=torch.float64).directions
    layer = es.ECTLayer(3, num_thresholds=8, scale=6.0, directions=directions, normalize="unit_ball")
    labels = (torch.arange(20) > 9).long()
    model = ECTSVM(layer, 2, spectrum=True).fit(shapes, labels)
    assert model.head.support.shape[1] == 13 * 8
    assert_rotation_invariant(model, shapes, tolerance=0.01, generator=generator)
    with pytest.raises(AssertionError, match="depends on the rotation"):
        assert_rotation_invariant(ECTSVM(layer, 2).fit(shapes, labels), shapes, tolerance=0.5, generator=generator)
    made = ModelConfig("svm", num_directions=300, spectrum=True).build(3, 2)
    assert made.layer.config.num_directions == 325
    by_default = ModelConfig("svm", spectrum=True).build(3, 2).layer.config
    assert (by_default.num_directions, by_default.num_thresholds) == (561, 32)  # with a guard


def test_the_state_dict_holds_the_machine():
    points, labels = clouds(3)
    model = ECTSVM(es.ECTLayer(2), 3).fit(points, labels)
    other = ECTSVM(es.ECTLayer(2), 3)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(points), model(points))
    assert model.num_parameters == 0
    other.load_state_dict({"head.support": model.head.support}, strict=False)  # nothing is lost
    assert torch.equal(other(points), model(points))


def test_bad_input():
    points, labels = clouds(3)
    with pytest.raises(ValueError, match="at least two of the classes from 0 to 1, got 45 entries with the classes 0, 1, 2"):
        ECTSVM(es.ECTLayer(2), 2).fit(points, labels)
    with pytest.raises(ValueError, match=r"got 45 entries with the classes 0\."):
        ECTSVM(es.ECTLayer(2), 3).fit(points, torch.zeros_like(labels))
    with pytest.raises(ValueError, match="cost must be positive, got 0"):
        ECTSVM(es.ECTLayer(2), 3, cost=0)
    with pytest.raises(ValueError, match="spectrum must be False unless shapes are in the plane or in space, got dim=4"):
        ECTSVM(es.ECTLayer(4), 3, spectrum=True)
    with pytest.raises(ValueError, match="directions must be those of a quadrature, got 16"):
        ECTSVM(es.ECTLayer(3), 3, spectrum=True)
    with pytest.raises(ValueError, match="joint must be False with derivative"):
        ECTSVM(es.ECTLayer(2, derivative=True), 3, joint=True)
    for options in ({"derivative": True}, {"max_dim": 1}, {"rotate_directions": True}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must not be given with joint"):
            ModelConfig("svm", joint=True, **options).check()
    layer = es.ECTLayer(2, derivative=True)
    with pytest.raises(ValueError, match="joint must be False with derivative"):
        ECTSVM(layer, 3, joint=True)
    assert layer.weight.requires_grad  # of a layer that was refused
    with pytest.raises(RuntimeError, match="ECTSVM must be fitted before it classifies"):
        ECTSVM(es.ECTLayer(2), 3)(points)
    weighted = es.Complex(points[0], weights=(torch.ones(12),))
    with pytest.raises(ValueError, match="shape must be simplicial and have no weights"):
        ECTSVM(es.ECTLayer(2), 3, joint=True).features(weighted)


@pytest.mark.parametrize("spectrum", [False, True])
@pytest.mark.parametrize("dim", [2, 3])
def test_gradients_are_finite_where_curves_vanish(spectrum, dim, generator):
    shapes = torch.randn(10, 9, dim, generator=generator)
    directions = es.directions.quadrature(6, dim, dtype=torch.float64).directions
    layer = es.ECTLayer(dim, num_thresholds=16, directions=directions, normalize="unit_ball", derivative=True)
    model = ECTSVM(layer, 2, spectrum=spectrum).fit(shapes, torch.arange(10) % 2)
    shapes.requires_grad_()
    assert (layer(shapes) == 0).any()
    gradient = torch.autograd.grad(model(shapes)[:, 0].sum(), shapes)[0]
    assert gradient.isfinite().all()
    assert gradient.any()


@pytest.mark.parametrize("given", [[0, 1, 2, 4], [1, 3], [0, 4]])
def test_a_class_without_shapes_is_never_predicted(given):
    points, labels = clouds(len(given))
    model = ECTSVM(es.ECTLayer(2, 8, 12, normalize="center", radius=20.0), 5).fit(points, torch.tensor(given)[labels])
    alone = ECTSVM(es.ECTLayer(2, 8, 12, normalize="center", radius=20.0), len(given)).fit(points, labels)
    assert torch.equal(model(points).argmax(dim=1), torch.tensor(given)[alone(points).argmax(dim=1)])


def test_errors_in_rare_classes_cost_more_if_balanced():
    points, labels = clouds(2, count=40)
    points[..., 0] /= 1 + labels[:, None]  # hard to tell apart
    rare = torch.cat([(labels == 0).nonzero(), (labels == 1).nonzero()[:6]]).squeeze(1)
    layer = es.ECTLayer(2, 8, 12, normalize="center", radius=20.0)
    found = [ECTSVM(layer, 2, cost=0.3).fit(points[rare], labels[rare], balanced=balanced) for balanced in (False, True)]
    plain, balanced = (int(model(points).argmax(dim=1).sum()) for model in found)
    assert plain < balanced


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    points, labels = clouds(3)
    model = ECTSVM(es.ECTLayer(2, 8, 12, normalize="unit_ball"), 3).fit(points, labels)
    whole = model(points).argmax(dim=1)
    half = model.to(dtype)(points)
    assert half.dtype == dtype
    assert (half.argmax(dim=1) == whole).double().mean() > 0.9
    assert LocalECT(2, 4, k=4).to(dtype)(points[0]).dtype == dtype
