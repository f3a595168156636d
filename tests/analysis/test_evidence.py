"""Evidence: where on the shapes groups differ."""

import sys

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan.analysis import evidence
from eulerscan.analysis.evidence import _components, _discovery_rates, group_weights, labeled_scores, neighbor_mean
from eulerscan.analysis.groups import permuted_labels
from eulerscan.complexes.boundary import outlined

MODULE = sys.modules["eulerscan.analysis.evidence"]
NUM_POINTS = 48
DENT = slice(20, 26)
CONFIG = es.ECTConfig(24, 24, normalize="center")


def outlines(count: int, seed: int = 0, *, dented=lambda i: i % 2 == 1, dtype=torch.float64) -> es.Complex:
    """Noisy circles, all with a bump, some with a dent."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.arange(NUM_POINTS, dtype=dtype) * (2 * torch.pi / NUM_POINTS)
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    edges = torch.stack([torch.arange(NUM_POINTS), (torch.arange(NUM_POINTS) + 1) % NUM_POINTS])
    shapes = []
    for i in range(count):
        points = circle * (1 + 0.02 * torch.randn(NUM_POINTS, 1, generator=generator, dtype=dtype))
        points[2:6] *= 1.3
        if dented(i):
            points[DENT] *= 0.6
        shapes.append(es.Complex(points, [edges]))
    return es.collate(shapes)


def by_autograd(complex, labelings, weights, directions, thresholds, scale):
    """The score of every vertex as a plain gradient, one labeling and one direction at a time."""
    result = torch.zeros(len(complex.points), labelings.shape[1], dtype=complex.points.dtype)
    for p in range(labelings.shape[1]):
        own = weights[labelings[:, p], :, :, p]  # [B, T, H]
        for i in range(len(directions)):
            points = complex.points.clone().requires_grad_()
            curves = es.ect(complex.with_points(points), directions[i : i + 1], thresholds, scale=scale)
            (gradient,) = torch.autograd.grad((curves[:, 0] * own[:, i]).sum(), points)
            result[:, p] += gradient.square().sum(dim=1)
    return result.sqrt()


@pytest.mark.parametrize("num_groups", [2, 3])
@pytest.mark.parametrize("memory", [1 << 25, 100])
def test_scores_of_all_labelings_at_once_are_gradients(num_groups, memory, monkeypatch):
    monkeypatch.setattr(MODULE, "AT_ONCE", memory)
    tetrahedron = es.Complex(torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)),
                             [torch.tensor([[0], [1], [2]])]).closure()  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    complex = es.collate(
        [tetrahedron.with_points(torch.randn(4, 3, dtype=torch.float64, generator=generator)) for _ in range(6)]
    )
    directions, thresholds = es.directions.fibonacci(7, dtype=torch.float64), es.thresholds(9, 3.0, dtype=torch.float64)
    labelings = torch.stack([torch.arange(6) % num_groups, torch.arange(6).flip(0) % num_groups], dim=1)
    weights = group_weights(es.ect(complex, directions, thresholds), labelings)
    arguments = (complex, labelings, weights, directions, thresholds, 4.0)
    torch.testing.assert_close(labeled_scores(*arguments), by_autograd(*arguments))
    assert float(labeled_scores(*arguments).max()) > 0


def test_weights_are_differences_of_means():
    transforms = torch.rand(6, 2, 3, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 0, 1, 1])
    weights = group_weights(transforms, labels[:, None])
    variance = (transforms.std(dim=0, correction=0) + 0.5) ** 2
    for group in range(3):
        expected = (transforms[labels == group].mean(dim=0) - transforms[labels != group].mean(dim=0)) / variance
        torch.testing.assert_close(weights[group, ..., 0], expected)


def test_the_mean_over_neighbors_of_a_path():
    path = es.Complex(torch.rand(3, 2), [torch.tensor([[0, 1], [1, 2]])])
    torch.testing.assert_close(neighbor_mean(path, torch.tensor([[1.0], [2.0], [6.0]])), torch.tensor([[1.5], [3.0], [4.0]]))
    cloud = es.Complex(torch.rand(3, 2))
    torch.testing.assert_close(neighbor_mean(cloud, torch.eye(3)), torch.eye(3))
    triangle = es.Complex(torch.rand(3, 2), [torch.tensor([[0], [1], [2]])])  # without its edges
    torch.testing.assert_close(neighbor_mean(triangle, torch.tensor([[0.0], [0.0], [3.0]])), torch.ones(3, 1))


def test_components_are_connected_for_each_labeling():
    path = es.Complex(torch.rand(6, 2), [torch.tensor([[4, 0, 2, 1, 3], [5, 1, 3, 2, 4]])])
    inside = torch.tensor([[1, 1, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1]]).T.bool()
    roots = torch.full(inside.shape, -1)
    roots[inside] = _components(path, inside)
    assert [len(column[column >= 0].unique()) for column in roots.T] == [2, 1, 3]
    assert roots[0, 0] == roots[1, 0] != roots[3, 0] == roots[4, 0] == roots[5, 0]
    assert len(roots[roots >= 0].unique()) == 6


def test_discovery_rates_are_shares_of_the_null():
    scores, null = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([[0.5, 2.5], [1.5, 0.5], [0.5, 0.5]])
    # At least 3: none of the null. At least 2: 1 of 2 permutations, of 2 scores. At least 1: 2 of 2, of 3 scores.
    torch.testing.assert_close(_discovery_rates(scores, null), torch.tensor([0.0, 1 / 3, 1 / 4]))


def test_evidence_is_where_the_dent_is_and_not_at_the_shared_bump():
    found = evidence(outlines(24), [0, 1] * 12, permutations=60, config=CONFIG)
    scores, p_values, q_values = (x.reshape(24, NUM_POINTS)[1::2] for x in (found.scores, found.p_values, found.q_values))
    mean = scores.mean(dim=0)
    assert int(mean.argmax()) in range(DENT.start - 2, DENT.stop + 2)
    assert float(mean[DENT].mean()) > 2 * float(mean[2:6].mean())
    assert float((p_values[:, DENT] <= 0.05).float().mean()) > 0.8
    assert float((q_values[:, DENT] <= 0.05).float().mean()) > 0.8
    assert float((p_values[:, 30:45] <= 0.05).float().mean()) < 0.1
    best = found.regions[next(i for i, region in enumerate(found.regions) if region.shape == 1)]
    assert best.p_value <= 0.05
    assert set(range(DENT.start + 1, DENT.stop - 1)) <= set((best.vertices - NUM_POINTS).tolist())


def test_regions_have_the_evidence_of_their_outlines():
    """Filling moves the center of mass away from a dent, and so the opposite side too."""
    rings, labels = outlines(16), [i % 2 for i in range(16)]
    size = len(rings.points) // 16
    filled = es.convert.from_outline(list(rings.points.split(size)), filled=True)
    found, expected = (evidence(shapes, labels, permutations=20) for shapes in (filled, rings))
    torch.testing.assert_close(found.scores.sort().values, expected.scores.sort().values)  # filling reorders vertices
    assert found.shapes.max_dim == 2
    empty = es.Complex(rings.points[:3], [torch.tensor([[0, 0, 1], [1, 1, 2]]), torch.zeros(3, 0, dtype=torch.int64)])
    assert outlined(empty) is empty  # a graph is no region


def test_five_per_cent_of_p_values_are_at_most_005_if_groups_do_not_differ():
    rates = []
    for seed in range(12):
        labels = np.random.default_rng(seed).permutation([0, 1] * 10)
        found = evidence(outlines(20, seed, dented=lambda i: i < 9), labels, permutations=39, seed=seed, config=CONFIG)
        rates.append(float((found.p_values <= 0.05).float().mean()))
        assert float(found.p_values.min()) >= found.smallest_p_value == 1 / 40
    assert 0.03 < np.mean(rates) < 0.07


def test_names_and_order_of_groups_do_not_matter():
    shapes = outlines(12)
    first = evidence(shapes, [0, 1] * 6, permutations=20, config=CONFIG)
    second = evidence(shapes, ["b", "a"] * 6, permutations=20, config=CONFIG)
    third = evidence(shapes, torch.tensor([1, 0] * 6), permutations=20, config=CONFIG)
    for other in (second, third):
        torch.testing.assert_close(other.scores, first.scores)
        torch.testing.assert_close(other.p_values, first.p_values)
    assert second.groups == ("b", "a") * 6


def test_chunks_of_shapes_do_not_matter(monkeypatch):
    shapes = outlines(9)
    labels = [0, 1, 2] * 3
    whole = evidence(shapes, labels, permutations=30, config=CONFIG)
    monkeypatch.setattr(MODULE, "AT_ONCE", 2 * NUM_POINTS * 31)
    parts = evidence(shapes, labels, permutations=30, config=CONFIG)
    torch.testing.assert_close(parts.scores, whole.scores)
    assert [(r.shape, r.vertices.tolist()) for r in parts.regions] == [(r.shape, r.vertices.tolist()) for r in whole.regions]


def test_the_seed_decides_about_permutations():
    shapes = outlines(12)
    first, again, other = (evidence(shapes, [0, 1] * 6, permutations=20, seed=seed, config=CONFIG) for seed in (3, 3, 4))
    assert torch.equal(first.scores, again.scores)
    assert not torch.equal(first.null, other.null)


def test_scores_average_to_one_over_all_labelings():
    """Four shapes in two pairs have few labelings, so that many permutations have each about equally often."""
    shapes = outlines(4, dented=lambda i: i < 2)
    apart = evidence(shapes, [0, 0, 1, 1], permutations=600, config=CONFIG).scores
    mixed = [evidence(shapes, labels, permutations=600, config=CONFIG).scores for labels in ([0, 1, 0, 1], [0, 1, 1, 0])]
    mean = torch.stack([apart, *mixed]).mean(dim=0)
    assert float(mean.max()) < 1.1  # less than 1 where the mean is small
    assert float(mean.quantile(0.5)) > 0.75


def test_shapes_of_different_kinds_and_sizes():
    generator = torch.Generator().manual_seed(0)
    clouds = [es.Complex(torch.rand(n, 2, generator=generator)) for n in (5, 9, 3, 7)]
    found = evidence(es.collate([*clouds, outlines(2, dtype=torch.float32)]), list("aabbab"), permutations=19, config=CONFIG)
    assert found.scores.shape == (24 + 2 * NUM_POINTS,)
    assert bool(torch.isfinite(found.scores).all())


def test_identical_shapes_have_no_evidence():
    found = evidence(es.collate([outlines(1)] * 6), [0, 1] * 3, permutations=19, config=CONFIG)
    assert float(found.scores.abs().max()) == 0
    assert float(found.p_values.min()) == 1
    assert not found.regions


def repeated(specimens: int, scans: int, seed: int) -> es.Complex:
    """Scans of specimens, which differ from specimen to specimen much more than from scan to scan."""
    specimen = outlines(specimens, seed, dented=lambda i: False)
    generator = torch.Generator().manual_seed(seed)
    points = specimen.points.reshape(specimens, 1, NUM_POINTS, 2)
    place = torch.randint(NUM_POINTS, (specimens,), generator=generator)  # of a dent that the specimen has by chance
    for i, start in enumerate(place.tolist()):
        points[i, :, (torch.arange(6) + start) % NUM_POINTS] *= 0.6
    noise = 1 + 0.005 * torch.randn(specimens, scans, NUM_POINTS, 1, generator=generator, dtype=points.dtype)
    scanned = (points * noise).reshape(-1, NUM_POINTS, 2)
    return es.collate([specimen[0].with_points(shape) for shape in scanned])


def test_blocks_keep_the_level_where_scans_of_a_specimen_are_alike():
    """Groups do not differ, but each has only five specimens: as independent shapes, their scores are above chance."""
    specimen = np.repeat(np.arange(10), 4)
    rates, scores = [], {"blocks": [], "shapes": []}
    for seed in range(12):
        labels = np.random.default_rng(seed).permutation([0, 1] * 5)[specimen]
        shapes = repeated(10, 4, seed)
        for kind, strata in {"blocks": specimen, "shapes": None}.items():
            found = evidence(shapes, labels, permutations=39, strata=strata, seed=seed, config=CONFIG)
            scores[kind].append(float(found.scores.mean()))
            if kind == "blocks":
                rates.append(float((found.p_values <= 0.05).float().mean()))
    assert 0.03 < np.mean(rates) < 0.07
    assert 0.7 < np.mean(scores["blocks"]) < 1
    assert np.mean(scores["shapes"]) > 1.4


def test_labels_are_permuted_within_blocks(monkeypatch):
    seen = []

    def watched(transforms, labelings):
        seen.append(labelings)
        return group_weights(transforms, labelings)

    monkeypatch.setattr(MODULE, "group_weights", watched)
    block = list("aaaabbbbbbcc")
    labels = [0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]
    found = evidence(outlines(12), labels, permutations=50, strata=block, config=CONFIG)
    for name in "abc":
        inside = seen[0][[i for i, own in enumerate(block) if own == name]]
        assert (inside.sum(dim=0) == inside[:, 0].sum()).all()  # also in c, where all have the same label
    assert (seen[0] != seen[0][:, :1]).any(dim=1).tolist() == [True] * 10 + [False] * 2
    assert found.strata == tuple(block)
    assert found.smallest_p_value == pytest.approx(1 / (4 * 6))  # so many different labelings
    assert "by blocks" in MODULE.legend(found)


def test_a_difference_within_specimens_is_found():
    """Left and right side of specimens that differ much: only the right one has a dent at a fixed place."""
    shapes = repeated(12, 2, 0)
    points = shapes.points.reshape(12, 2, NUM_POINTS, 2)
    points[:, 1, DENT] *= 0.7
    found = evidence(shapes, [0, 1] * 12, permutations=60, strata=np.repeat(np.arange(12), 2), config=CONFIG)
    mean = found.scores.reshape(12, 2, NUM_POINTS)[:, 1].mean(dim=0)
    assert int(mean.argmax()) in range(DENT.start - 2, DENT.stop + 2)


@pytest.mark.parametrize(
    ("strata", "message"),
    [
        (["a", "a", "b", "b"], "strata must have at least three blocks .* got 2"),  # as the labels
        (["a", "b", "c"], "strata must hold a value for each of 4 shapes, got 3"),
        (["a", "a", None, "b"], "strata must have no missing values, got one for shape 2"),
    ],
)
def test_strata_are_checked(strata, message):
    with pytest.raises(ValueError, match=message):
        evidence(outlines(4), [0, 0, 1, 1], permutations=9, strata=strata)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], "groups .* 4 shapes, got 2"),
        ([0, 0, 0, 0], "groups must be at least two"),
        ([0, 0, 0, 1], "two shapes"),
        ([0, 0, 1, float("nan")], "groups .* missing .* shape 3"),
    ],
)
def test_groups_are_checked(groups, message):
    with pytest.raises(ValueError, match=message):
        evidence(outlines(4), groups, permutations=9)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="config"):
        evidence(outlines(4), [0, 1] * 2, config=es.ECTConfig(scale=8.0))
    with pytest.raises(ValueError, match="permutations"):
        evidence(outlines(4), [0, 1] * 2, permutations=0)
    with pytest.raises(ValueError, match="vertex"):
        evidence(es.Complex(torch.rand(4, 2), batch=torch.tensor([0, 1, 1, 2]), num_complexes=4), [0, 1] * 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labelings_with_the_same_partition_are_ties(dtype):
    labels = np.array([0, 0, 1, 1])
    found = evidence(outlines(4, dtype=dtype), labels, permutations=200, config=CONFIG)
    partitions = labels[permuted_labels(labels, 200, None, 0).index]
    same = 1 + int(((partitions == labels).all(axis=1) | (partitions != labels).all(axis=1)).sum())
    assert float(found.p_values.min()) >= same / 201 - 1e-9
    assert all(region.p_value >= same / 201 - 1e-9 for region in found.regions)


def test_regions_have_small_p_values_with_few_labelings_too():
    for count in (6, 8, 20):
        found = evidence(outlines(count), [i % 2 for i in range(count)], permutations=199, config=CONFIG)
        inside = torch.cat([torch.zeros(0, dtype=torch.int64), *(region.vertices for region in found.regions)])
        assert not bool((found.p_values[inside] > 0.05 + 1e-9).any())
    assert len(inside)


def test_shapes_with_gradients_have_evidence():
    shapes = outlines(4)
    weights = torch.rand(len(shapes.points), dtype=torch.float64)
    plain = evidence(shapes.with_weights(weights), [0, 1] * 2, permutations=5, config=CONFIG)
    differentiable = shapes.with_points(shapes.points.clone().requires_grad_()).with_weights(weights.requires_grad_())
    found = evidence(differentiable, [0, 1] * 2, permutations=5, config=CONFIG)
    torch.testing.assert_close(found.scores, plain.scores)
