"""Permutation tests of groups of shapes, from the distances between them.

All tests take a matrix of distances, such as :func:`~eulerscan.analysis.distance_matrix` of transforms, and permute the labels
of the shapes. With ``permutations=999`` the p-value is (1 + number of permutations with a statistic at least as large) / 1000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from torch import Tensor

from .._labels import Labels, numbered
from .._validation import positive
from .ordination import gower_matrix

_Array = np.ndarray[Any, Any]

AT_ONCE = 1 << 23  # entries of labels
ROUNDING = 1e-9  # statistics that differ by less, relatively, are equal: sums depend on the order of the shapes


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """The result of a permutation test.

    Attributes:
        statistic: The pseudo-F statistic.
        p_value: The p-value.
        r2: Share of the variation that groups or covariate explain, from 0 to 1. It grows by chance in small samples.
        omega2: The same without that bias; negative if less is explained than by chance.
        z: Standardized effect size: standard deviations of the logarithm of the statistic above its mean under permutation.
        permutations: Number of permutations.
        smallest_p_value: The smallest p-value that these shapes and permutations allow.
        seed: Seed of the permutations.
        null: ``[permutations]``: the statistic under permutation.
    """

    statistic: float
    p_value: float
    r2: float
    omega2: float
    z: float
    permutations: int
    smallest_p_value: float
    seed: int
    null: _Array = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold, without the null distribution."""
        return {name: value for name, value in vars(self).items() if name != "null"}


@dataclass(frozen=True)
class PairTest:
    """The comparison of two groups.

    Attributes:
        groups: Their names.
        sizes: Their numbers of shapes.
        test: PERMANOVA of the two.
        q_value: The p-value adjusted for the number of pairs, by Benjamini and Hochberg: the false discovery rate.
        distance: Of the means of the two groups.
        d: Standardized distance of the means (Cohen's d): in standard deviations within the groups, without small-sample bias.
    """

    groups: tuple[str, str]
    sizes: tuple[int, int]
    test: PermutationTest
    q_value: float
    distance: float
    d: float


@dataclass(frozen=True, eq=False)
class Dispersion:
    """The result of :func:`permdisp`.

    Attributes:
        test: The test of equal dispersion.
        means: Mean distance of the shapes of each group to its center.
        distances: ``[N]``: distance of each shape to the center of its group.
    """

    test: PermutationTest
    means: dict[str, float]
    distances: _Array


def permanova(
    distances: Tensor | _Array, groups: Labels, *, permutations: int = 999, strata: Labels | None = None, seed: int = 0
) -> PermutationTest:
    """PERMANOVA (Anderson 2001): do the means of two or more groups differ?

    The squared distances within the groups are compared with those between all shapes. As in an analysis of variance, groups of
    different spread may also cause a small p-value, in particular if their sizes differ; :func:`permdisp` tests that.

    Args:
        distances: ``[N, N]``, symmetric.
        groups: Group of each shape.
        permutations: Number of permutations.
        strata: Block of each shape, such as the specimen of several scans. If groups differ within blocks, labels are permuted
            within them; if each block belongs to one group, whole blocks are permuted.
        seed: Seed of the permutations.

    Example:
        >>> points = np.array([0.0, 1, 2, 3, 10, 11, 12, 13])
        >>> result = permanova(abs(points[:, None] - points), list("aaaabbbb"))
        >>> result.p_value < 0.05, round(result.r2, 2)
        (True, 0.95)
    """
    matrix, labels, kinds = _checked(distances, groups)
    return _f_test(matrix**2, labels, len(kinds), permuted_labels(labels, permutations, strata, seed), seed)


def energy_test(
    distances: Tensor | _Array, groups: Labels, *, permutations: int = 999, strata: Labels | None = None, seed: int = 0
) -> PermutationTest:
    """Energy test (DISCO, Rizzo and Székely 2010): do the distributions of two or more groups differ in any way?

    As :func:`permanova`, with distances that are not squared, which makes it sensitive to every difference between
    distributions: of means, spread and form. Arguments are those of :func:`permanova`. ``r2`` is the share of the energy.

    Example:
        >>> points = np.array([-6.0, -5, -4, 4, 5, 6, -0.2, -0.1, 0, 0.1, 0.2, 0.3])
        >>> distances, groups = abs(points[:, None] - points), [*"aaaaaa", *"bbbbbb"]
        >>> permanova(distances, groups).p_value > 0.5, energy_test(distances, groups).p_value < 0.05
        (True, True)
    """
    matrix, labels, kinds = _checked(distances, groups)
    return _f_test(matrix, labels, len(kinds), permuted_labels(labels, permutations, strata, seed), seed)


def permdisp(
    distances: Tensor | _Array, groups: Labels, *, permutations: int = 999, strata: Labels | None = None, seed: int = 0
) -> Dispersion:
    """PERMDISP (Anderson 2006): do groups differ in their spread, that is, the distances of their shapes to their center?

    Centers are computed anew for permuted labels, so the test is exact if groups do not differ at all, and conservative if only
    their means do. Distances to the center of n shapes are multiplied by sqrt(n / (n - 1)), since the center of few shapes lies
    too close to them. Arguments are those of :func:`permanova`. Every group needs two shapes.

    Example:
        >>> points = np.array([-6.0, -5, -4, 4, 5, 6, -0.2, -0.1, 0, 0.1, 0.2, 0.3])
        >>> permdisp(abs(points[:, None] - points), [*"aaaaaa", *"bbbbbb"]).test.p_value < 0.05
        True
    """
    matrix, labels, kinds = _checked(distances, groups)
    sizes = np.bincount(labels)
    if sizes.min() < 2:
        raise ValueError(f"groups must have at least two shapes each to have a spread, got one in {kinds[sizes.argmin()]!r}.")
    if not matrix.any():
        raise ValueError("distances must not all be zero: all shapes are the same.")
    squares = matrix**2

    def to_center(permuted: _Array) -> _Array:
        """Distances ``[P, N]`` to the center of the own group, for labels ``[P, N]``."""
        found = np.zeros(permuted.shape)
        for group in range(len(kinds)):
            member = (permuted == group).astype(np.float64)
            count = member.sum(axis=1, keepdims=True)
            means = member @ squares / count  # mean squared distance to the group
            inside = (means * member).sum(axis=1, keepdims=True) / (2 * count)
            factor = count / np.maximum(1, count - 1)
            found += member * np.sqrt((means - inside).clip(min=0) * factor)
        return found

    def explained(index: _Array) -> _Array:
        """The share of the variance of the distances that lies between groups."""
        permuted = labels[index]
        values = to_center(permuted)
        deviations = values - values.mean(axis=1, keepdims=True)
        total = (deviations**2).sum(axis=1)
        between = np.zeros(len(index))
        for group in range(len(kinds)):
            member = permuted == group
            between += (deviations * member).sum(axis=1) ** 2 / member.sum(axis=1)
        return np.asarray(between / np.where(total > 0, total, 1.0))

    arrangement = permuted_labels(labels, permutations, strata, seed)
    test = _test(explained, 1.0, len(kinds) - 1, len(labels) - len(kinds), arrangement, seed)
    spread = to_center(labels[None])[0]
    return Dispersion(test, {str(kind): float(spread[labels == i].mean()) for i, kind in enumerate(kinds)}, spread)


def pairwise_tests(
    distances: Tensor | _Array, groups: Labels, *, permutations: int = 999, strata: Labels | None = None, seed: int = 0
) -> list[PairTest]:
    """PERMANOVA of every pair of groups, with p-values adjusted for their number. Arguments are those of :func:`permanova`.

    Pairs in which nothing can be permuted, of two groups of one shape or one block, have the p-value 1. If there are only two
    groups, the test is that of :func:`permanova`, with the same permutations.

    Example:
        >>> points = np.array([0.0, 1, 2, 3, 10, 11, 12, 13, 0.1, 1.1, 2.1, 3.1])
        >>> found = pairwise_tests(abs(points[:, None] - points), list("aaaabbbbcccc"))
        >>> [(*pair.groups, pair.q_value < 0.1) for pair in found]
        [('a', 'b', True), ('a', 'c', False), ('b', 'c', True)]
    """
    matrix, labels, kinds = _checked(distances, groups)
    blocks = None if strata is None else numbered(strata, len(labels), "strata")[0]
    found = []
    for i, j in combinations(range(len(kinds)), 2):
        inside = np.flatnonzero((labels == i) | (labels == j))
        own, part = (labels[inside] == j).astype(np.int64), matrix[np.ix_(inside, inside)]
        within = None if blocks is None else blocks[inside]
        units = len(np.unique(within)) if within is not None and blocks_are_whole(own, within) else len(inside)
        if (units < 3 and len(kinds) > 2) or len(inside) < 3 or not part.any():
            nothing = np.ones(permutations)
            test = PermutationTest(1.0, 1.0, 0.0, 0.0, 0.0, permutations, 1.0, seed, nothing)
        else:
            seeds = (seed, i, j) if len(kinds) > 2 else seed
            arrangement = permuted_labels(own, permutations, within, seeds)
            test = _f_test(part**2, own, 2, arrangement, seed)
        sizes = (int((own == 0).sum()), int(own.sum()))
        found.append(((str(kinds[i]), str(kinds[j])), sizes, test, *_mean_distance(part**2, own)))
    adjusted = benjamini_hochberg([test.p_value for _, _, test, _, _ in found])
    return [PairTest(names, sizes, test, q, *means) for (names, sizes, test, *means), q in zip(found, adjusted, strict=True)]


def distance_regression(
    distances: Tensor | _Array,
    covariate: Sequence[float] | _Array,
    *,
    permutations: int = 999,
    strata: Labels | None = None,
    seed: int = 0,
) -> PermutationTest:
    """Distance-based regression (McArdle and Anderson 2001): do shapes change with a number, such as age or size?

    With distances between transforms this is the multivariate linear regression of the transforms on the covariate.

    Args:
        distances: ``[N, N]``, symmetric.
        covariate: A number for each shape.
        permutations, strata, seed: As in :func:`permanova`.

    Example:
        >>> points = np.array([0.0, 1, 2, 3, 10, 11, 12, 13])
        >>> round(distance_regression(abs(points[:, None] - points), points).r2, 6)
        1.0
    """
    matrix = _matrix(distances)
    values = np.asarray(covariate, dtype=np.float64)
    if values.shape != (len(matrix),) or not np.isfinite(values).all():
        raise ValueError(f"covariate must hold a finite number for each of {len(matrix)} shapes, got {_shown(values)}.")
    if len(values) < 3 or not np.ptp(values) > 0:
        raise ValueError("covariate must have different values, for at least three shapes, got a constant.")
    if not matrix.any():
        raise ValueError("distances must not all be zero: all shapes are the same.")
    gower = gower_matrix(matrix)
    centered = values - values.mean()
    centered /= np.linalg.norm(centered)
    total = float(np.trace(gower))

    def explained(index: _Array) -> _Array:
        rows = centered[index]
        rows = rows - rows.mean(axis=1, keepdims=True)  # whole blocks of different sizes change the mean
        sizes = np.maximum((rows**2).sum(axis=1), np.finfo(np.float64).tiny)
        return np.asarray(np.einsum("pn,pn->p", rows @ gower, rows) / sizes)

    kinds = np.unique(values, return_inverse=True)[1]
    return _test(explained, total, 1, len(values) - 2, permuted_labels(kinds, permutations, strata, seed, named=False), seed)


def benjamini_hochberg(p_values: Sequence[float] | _Array) -> list[float]:
    """P-values adjusted for multiple tests, so that those below q have a false discovery rate of at most q.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = values.argsort()[::-1]
    ranks = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum.accumulate((values[order] * len(values) / ranks).clip(max=1.0))
    return [float(q) for q in adjusted]


@dataclass(frozen=True)
class Arrangement:
    """Permutations: shape ``i`` gets the label of shape ``index[p, i]``. A p-value is at least ``smallest_p_value``."""

    index: _Array
    smallest_p_value: float


def permuted_labels(
    labels: _Array, permutations: int, strata: Labels | None, seed: int | tuple[int, ...], *, named: bool = True
) -> Arrangement:
    """Random permutations of the labels ``[N]``, numbers from 0: of all shapes, within blocks, or of whole blocks.

    Labels are names, so that groups of equal size can be exchanged, or else values.
    """
    positive(permutations, "permutations")
    rng = np.random.default_rng(seed)
    n = len(labels)
    if strata is None:
        # One by one: the same permutations as scikit-bio makes with this seed.
        index = np.stack([rng.permutation(n) for _ in range(permutations)])
        return Arrangement(index, _smallest_p_value(labels, np.zeros(n, dtype=np.int64), permutations, named))
    blocks, _ = numbered(strata, n, "strata")
    first = np.unique(blocks, return_index=True)[1]
    if blocks_are_whole(labels, blocks):
        if len(first) < 3:
            raise ValueError(
                f"strata must have at least three blocks if groups do not differ within them, since then whole blocks are "
                f"permuted, got {len(first)}."
            )
        index = np.stack([first[rng.permutation(len(first))][blocks] for _ in range(permutations)])
        return Arrangement(index, _smallest_p_value(labels[first], np.zeros(len(first), dtype=np.int64), permutations, named))
    base = blocks.argsort(kind="stable")
    index = np.empty((permutations, n), dtype=np.int64)
    for rows in np.array_split(np.arange(permutations), -(-permutations * n // AT_ONCE)):
        index[np.ix_(rows, base)] = (blocks + rng.random((len(rows), n))).argsort(axis=1)
    return Arrangement(index, _smallest_p_value(labels, blocks, permutations, named))


def blocks_are_whole(labels: Sequence[Hashable] | _Array, strata: Sequence[Hashable] | _Array) -> bool:
    """Whether each block belongs to one group, so that whole blocks are permuted, and not labels within them."""
    return len(set(zip(labels, strata, strict=True))) == len(set(strata))


def _smallest_p_value(labels: _Array, blocks: _Array, permutations: int, named: bool) -> float:
    """The share of all arrangements within blocks that are the same as a given one, or 1 / (1 + permutations) if larger."""
    counts = np.zeros((blocks.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(counts, (blocks, labels), 1)
    log_number = sum(math.lgamma(row.sum() + 1) - sum(math.lgamma(count + 1) for count in row) for row in counts)
    if named:  # groups of the same sizes can be exchanged
        log_number -= sum(math.lgamma(number + 1) for number in np.unique(counts.T, axis=0, return_counts=True)[1])
    return max(1 / (1 + permutations), min(1.0, math.exp(-log_number)))


def _f_test(matrix: _Array, labels: _Array, num_groups: int, arrangement: Arrangement, seed: int) -> PermutationTest:
    """Test of the sum of a matrix within groups, relative to that between all shapes."""
    if not matrix.any():
        raise ValueError("distances must not all be zero: all shapes are the same.")
    if len(labels) == num_groups:
        raise ValueError(f"groups must not all have a single shape, got {num_groups} groups of {len(labels)} shapes.")
    total = float(matrix.sum()) / (2 * len(matrix))

    def explained(index: _Array) -> _Array:
        within = np.zeros(len(index))
        permuted = labels[index]
        for group in range(num_groups):
            member = (permuted == group).astype(np.float64)
            sums = np.einsum("pn,pn->p", member @ matrix, member)
            within += sums / (2 * member.sum(axis=1))
        return total - within

    return _test(explained, total, num_groups - 1, len(labels) - num_groups, arrangement, seed)


def _test(
    explained: Callable[[_Array], _Array], total: float, model: int, residual: int, arrangement: Arrangement, seed: int
) -> PermutationTest:
    """The pseudo-F test.

    Args:
        explained: The sum of squares that permutations ``[P, N]`` of the shapes explain.
        total: Sum of squares of all shapes.
        model, residual: Degrees of freedom.
        arrangement: The permutations.
        seed: To be recorded.
    """
    index = arrangement.index
    parts = np.array_split(index, -(-index.size // AT_ONCE))
    identity = np.arange(index.shape[1])[None]
    sums = np.concatenate([explained(identity), *(explained(part) for part in parts)])
    shares = (sums / total).clip(max=1.0)
    with np.errstate(divide="ignore"):
        statistics = (shares / model) / ((1 - shares) / residual)
    observed, null = float(shares[0]), shares[1:]  # the statistic grows with the share
    # Where there are few arrangements, chance may draw that of the shapes less often than its share.
    smallest = arrangement.smallest_p_value
    p_value = max(smallest, (1 + int((null >= observed - ROUNDING).sum())) / (1 + len(null)))
    logs = np.log(statistics.clip(min=1e-12, max=1e12))
    deviation = float(logs[1:].std())
    z = float(logs[0] - logs[1:].mean()) / deviation if deviation > ROUNDING else 0.0
    error = (1 - observed) / residual
    omega2 = (observed - model * error) / (1 + error)
    statistic = float(statistics[0])
    return PermutationTest(statistic, p_value, observed, omega2, z, len(null), smallest, seed, statistics[1:])


def _mean_distance(squares: _Array, labels: _Array) -> tuple[float, float]:
    """Distance of the means of groups 0 and 1, and the standardized one."""
    sizes = np.bincount(labels, minlength=2)
    member = np.eye(2)[labels] / sizes
    means = member.T @ squares @ member  # mean squared distances between and within groups
    between = max(0.0, float(means[0, 1] - (means[0, 0] + means[1, 1]) / 2))
    residual = len(labels) - 2
    within = float((sizes * means.diagonal()).sum()) / 2 / residual if residual else 0.0
    if within <= 0:
        return math.sqrt(between), math.inf if between > 0 else 0.0
    return math.sqrt(between), math.sqrt(max(0.0, between - within * float((1 / sizes).sum())) / within)


def _checked(distances: Tensor | _Array, groups: Labels) -> tuple[_Array, _Array, list[Any]]:
    """The matrix, the number of the group of each shape, and the names of the groups."""
    matrix = _matrix(distances)
    labels, kinds = numbered(groups, len(matrix), "groups")
    if len(kinds) < 2:
        raise ValueError(f"groups must have at least two different values, got {', '.join(map(repr, kinds)) or 'none'}.")
    return matrix, labels, kinds


def _matrix(distances: Tensor | _Array) -> _Array:
    matrix = np.asarray(distances.detach().cpu() if isinstance(distances, Tensor) else distances, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"distances must be a square matrix [N, N], got {list(matrix.shape)}.")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError(f"distances must be finite and at least 0, got {_shown(matrix[~(matrix >= 0) | np.isinf(matrix)])}.")
    if not np.allclose(matrix, matrix.T) or matrix.diagonal().any():
        raise ValueError("distances must be symmetric, with zeros on the diagonal.")
    return matrix


def _shown(values: _Array) -> str:
    return np.array2string(values.ravel()[:5], precision=4, separator=", ")
