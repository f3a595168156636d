"""Permutation tests: known answers, scikit-bio's figures, their level, and errors."""

from itertools import permutations as all_permutations

import numpy as np
import pytest
import torch

from eulerscan.analysis.groups import (
    benjamini_hochberg,
    distance_regression,
    energy_test,
    pairwise_tests,
    permanova,
    permdisp,
)

TESTS = {"permanova": permanova, "energy": energy_test, "permdisp": lambda *a, **k: permdisp(*a, **k).test}


def distances(points):
    return np.linalg.norm(points[:, None] - points, axis=2)


def three_groups():
    """30 points, and figures that scikit-bio 0.7.4 gives for them: permanova(matrix, groups, permutations=, seed=)."""
    points = np.random.default_rng(7).normal(size=(30, 4))
    points[10:20, 0] += 0.6
    points[20:, 1] *= 1.6
    return distances(points), list("a" * 10 + "b" * 10 + "c" * 10)


@pytest.mark.parametrize(("number", "seed", "p"), [(10, 0, 2 / 11), (10, 1, 1 / 11), (999, 0, 0.089), (999, 1, 0.077)])
def test_permanova_is_that_of_scikit_bio(number, seed, p):
    result = permanova(*three_groups(), permutations=number, seed=seed)
    assert result.statistic == pytest.approx(1.8294267787438503, rel=1e-12)
    assert result.p_value == pytest.approx(p, rel=1e-12)
    assert (result.permutations, result.seed) == (number, seed)


def test_permanova_in_one_dimension_is_the_analysis_of_variance():
    values = np.array([[1.0], [2], [4], [6], [7], [9], [3]])
    groups = np.array([0, 0, 0, 1, 1, 1, 1])
    within = sum(((values[groups == g] - values[groups == g].mean()) ** 2).sum() for g in (0, 1))
    total = ((values - values.mean()) ** 2).sum()
    result = permanova(distances(values), groups)
    assert result.statistic == pytest.approx((total - within) / (within / 5), rel=1e-12)
    assert result.r2 == pytest.approx(1 - within / total, rel=1e-12)


def test_regression_in_one_dimension_is_the_linear_one():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 20))
    y = y + x
    result = distance_regression(distances(y[:, None]), x)
    assert result.r2 == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2, rel=1e-9)


def test_p_values_are_those_of_all_permutations_up_to_chance():
    points, groups = np.random.default_rng(1).normal(size=(6, 2)), np.array([0, 0, 0, 1, 1, 1])
    matrix = distances(points)
    statistics = [permanova(matrix, groups[list(order)], permutations=1).r2 for order in all_permutations(range(6))]
    observed = permanova(matrix, groups, permutations=1).r2
    exact = np.mean([r2 >= observed - 1e-9 for r2 in statistics])
    result = permanova(matrix, groups, permutations=4999)
    assert result.p_value == pytest.approx(exact, abs=0.03)
    assert result.smallest_p_value == pytest.approx(1 / 10)  # 20 arrangements, two of which are the same two groups


def test_permutations_stay_within_blocks():
    # The blocks differ much, the groups within them a little: only within blocks is the difference seen.
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(10), 2)
    groups = np.tile([0, 1], 10)
    points = (10.0 * rng.normal(size=10))[block] + 0.5 * groups + 0.1 * rng.normal(size=20)
    matrix = distances(points[:, None])
    assert permanova(matrix, groups).p_value > 0.5
    assert permanova(matrix, groups, strata=block).p_value < 0.01


def test_blocks_of_one_group_are_permuted_as_a_whole():
    # Four scans of each of eight specimens: as independent shapes, any two sets of specimens seem to differ.
    rng = np.random.default_rng(2)
    specimen = np.repeat(np.arange(8), 4)
    groups = (specimen >= 4).astype(int)
    seen = {"naive": 0, "blocks": 0}
    for _ in range(100):
        points = rng.normal(size=(8, 2))[specimen] + 0.01 * rng.normal(size=(32, 2))
        matrix = distances(points)
        seen["naive"] += permanova(matrix, groups, permutations=99).p_value <= 0.05
        seen["blocks"] += permanova(matrix, groups, permutations=99, strata=specimen).p_value <= 0.05
    assert seen["naive"] > 30
    assert seen["blocks"] <= 12
    assert permanova(matrix, groups, strata=specimen).smallest_p_value == pytest.approx(2 / 70)


@pytest.mark.parametrize("name", TESTS)
def test_the_level_is_that_of_the_p_value(name):
    rng = np.random.default_rng(3)
    groups = np.arange(24) % 3
    p = [TESTS[name](distances(rng.normal(size=(24, 3))), groups, permutations=99, seed=i).p_value for i in range(300)]
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.09  # three standard errors
    assert np.mean(p) == pytest.approx(0.505, abs=0.06)


def test_power_grows_with_the_effect():
    rng = np.random.default_rng(4)
    points, groups = rng.normal(size=(40, 3)), np.arange(40) % 2
    p = [permanova(distances(points + shift * groups[:, None]), groups).p_value for shift in (0, 0.4, 1.0)]
    assert p[0] > p[1] > p[2]
    assert p[2] == 0.001


def test_dispersion_ignores_the_means_and_finds_the_spread():
    rng = np.random.default_rng(5)
    points, groups = rng.normal(size=(60, 3)), np.arange(60) % 2
    shifted, plain = (permdisp(distances(points + shift * groups[:, None]), groups) for shift in (100, 0))
    assert shifted.test.statistic == pytest.approx(plain.test.statistic)
    assert min(shifted.test.p_value, plain.test.p_value) > 0.05
    wide = permdisp(distances(points * (1 + groups[:, None])), groups)
    assert wide.test.p_value == 0.001
    assert wide.means["1"] > 1.5 * wide.means["0"]


def test_distances_to_the_center_are_those_of_coordinates():
    points, groups = np.random.default_rng(6).normal(size=(12, 3)), np.arange(12) % 3
    expected = np.empty(12)
    for group in range(3):
        own = points[groups == group]
        expected[groups == group] = np.linalg.norm(own - own.mean(axis=0), axis=1) * np.sqrt(4 / 3)
    np.testing.assert_allclose(permdisp(distances(points), groups).distances, expected)


def test_dispersion_holds_its_level_for_outliers_and_unequal_groups():
    # Outliers pull the center of their own group: centers must be computed anew for permuted labels.
    rng = np.random.default_rng(7)
    groups = np.repeat([0, 1, 2], [15, 10, 5])
    p = [
        permdisp(distances(rng.standard_t(2, size=(30, 40))), groups, permutations=99, seed=i).test.p_value for i in range(300)
    ]
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.09


def test_effect_sizes_without_an_effect_are_about_zero():
    rng = np.random.default_rng(6)
    found = [permanova(distances(rng.normal(size=(20, 5))), np.arange(20) % 4, permutations=99) for _ in range(50)]
    assert abs(np.mean([result.omega2 for result in found])) < 0.02
    assert abs(np.mean([result.z for result in found])) < 0.4
    assert np.mean([result.r2 for result in found]) > 0.1  # which is biased


def test_standardized_distance_of_means():
    rng = np.random.default_rng(8)
    points, groups = rng.normal(size=(2000, 1)), np.arange(2000) % 2
    [pair] = pairwise_tests(distances(points + 1.5 * groups[:, None]), groups, permutations=19)
    assert pair.d == pytest.approx(1.5, abs=0.15)
    assert pair.distance == pytest.approx(1.5, abs=0.15)
    assert pair.sizes == (1000, 1000)


def test_adjusted_p_values():
    assert benjamini_hochberg([0.005, 0.009, 0.05, 0.5]) == pytest.approx([0.018, 0.018, 0.2 / 3, 0.5])
    assert benjamini_hochberg([]) == []


def test_a_tensor_and_an_array_give_the_same():
    matrix, groups = three_groups()
    assert permanova(torch.from_numpy(matrix), groups).p_value == permanova(matrix, np.array(groups)).p_value


def test_single_shapes_have_no_spread_and_few_permutations():
    matrix = distances(np.arange(5.0)[:, None] ** 2)
    result = permanova(matrix, list("aaaab"))
    assert result.smallest_p_value == pytest.approx(1 / 5)
    with pytest.raises(ValueError, match="'b'"):
        permdisp(matrix, list("aaaab"))
    assert [pair.test.p_value for pair in pairwise_tests(matrix, list("aaabc")) if pair.groups == ("b", "c")] == [1.0]


@pytest.mark.parametrize(
    ("matrix", "groups", "named"),
    [
        (np.zeros((3, 3)), list("aab"), "all be zero"),
        (np.ones((3, 2)), list("aab"), r"\[3, 2\]"),
        (np.triu(np.ones((3, 3)), 1), list("aab"), "symmetric"),
        (np.full((3, 3), np.nan), list("aab"), "nan"),
        (1 - np.eye(3), list("aaa"), "'a'"),
        (1 - np.eye(3), list("ab"), "got 2"),
        (1 - np.eye(3), ["a", "b", None], "shape 2"),
        (1 - np.eye(3), list("abc"), "single shape"),
    ],
)
def test_errors_name_what_is_wrong(matrix, groups, named):
    with pytest.raises(ValueError, match=named):
        permanova(matrix, groups)


def test_covariates_must_vary_and_be_finite():
    matrix = 1 - np.eye(4)
    for covariate, named in (([1.0] * 4, "constant"), ([1.0, 2, np.nan, 3], "finite"), ([1.0, 2], "each of 4")):
        with pytest.raises(ValueError, match=named):
            distance_regression(matrix, covariate)


def test_a_pair_of_groups_of_one_block_each_has_nothing_to_permute():
    points = np.random.default_rng(0).normal(size=12)
    matrix, groups, strata = abs(points[:, None] - points), list("aabbbccccccc"), [0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    found = {pair.groups: pair.test for pair in pairwise_tests(matrix, groups, strata=strata)}
    assert found["a", "b"].p_value == found["a", "b"].smallest_p_value == 1
    assert found["a", "c"].smallest_p_value == pytest.approx(1 / 5)  # blocks that may be the one of a
    with pytest.raises(ValueError, match="at least three blocks .* got 2"):
        pairwise_tests(matrix[:5, :5], groups[:5], strata=strata[:5])


@pytest.mark.parametrize("strata", [None, [0, 1, 2, 3] * 5])
def test_the_pair_of_two_groups_has_the_p_value_of_permanova(strata):
    points = np.random.default_rng(0).normal(size=20)
    points[::2] += 0.4
    matrix, groups = abs(points[:, None] - points), list("ab" * 10) if strata is None else list("aabb" * 4 + "abab")
    whole, [pair] = permanova(matrix, groups, strata=strata), pairwise_tests(matrix, groups, strata=strata)
    assert 0.005 < whole.p_value < 0.995
    assert pair.test.p_value == pair.q_value == whole.p_value
    np.testing.assert_array_equal(pair.test.null, whole.null)


def test_a_p_value_is_never_below_the_smallest_possible():
    places = np.array([0.0, 0.1, 0.2, 9.0, 9.1, 9.2])
    for seed in range(20):
        test = permanova(np.abs(places[:, None] - places), list("aaabbb"), permutations=99, seed=seed)
        assert test.p_value >= test.smallest_p_value == pytest.approx(0.1)
