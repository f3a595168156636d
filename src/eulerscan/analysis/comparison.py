"""Comparison of groups of shapes: tests, classification, ordination and mean shapes in one call."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from .._labels import Labels, as_names
from .._progress import progress_bar
from .._validation import check_choice, positive
from .._version import __version__
from ..complexes import Complex, Shape, as_complex
from ..complexes.boundary import outlined
from ..complexes.extent import centroid_sizes, top_dims
from ..config import ECTConfig
from . import quality
from .classification import FEWEST, FOLDS, Classification, FeatureSet, classify, num_folds, num_repeats
from .distances import distance_matrix, scaled
from .features import invariant_features, shape_features
from .groups import (
    Dispersion,
    PairTest,
    PermutationTest,
    blocks_are_whole,
    distance_regression,
    energy_test,
    pairwise_tests,
    permanova,
    permdisp,
)
from .means import Extreme, can_fit, extreme_shapes, group_means, warped_shapes
from .ordination import Ordination, pca
from .orientation import oriented
from .stages import Stages

_Array = np.ndarray[Any, Any]
Align = Literal["pca", "best", "invariant"]

CONFIG = ECTConfig(num_directions=48, num_thresholds=48)
MAX_MEANS = 12  # groups: more do not fit on a page
SIZE = "centroid size"  # the covariate that is always tested


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The result of :func:`compare`.

    Attributes:
        shapes: The shapes, rotated to a common orientation if wanted.
        names: Their names.
        groups: The group of each.
        config: How they were transformed.
        align: How their orientation was treated.
        distances: ``[N, N]``: distances between the transforms.
        sizes: ``[N]``: centroid sizes.
        permanova, energy: Tests of the groups.
        dispersion: The test of equal spread, without groups of one shape. ``None`` if fewer than two groups remain, or
            fewer than three blocks where whole blocks are permuted.
        size: PERMANOVA of the logarithms of the sizes. ``None`` if all are the same.
        pairs: Comparison of every pair of groups.
        regressions: Tests of covariates, by name, over the shapes of all groups. ``"centroid size"`` is always among them,
            unless all sizes are the same.
        classifications: Cross-validated classification, by what it uses; the last one uses most.
        ordination: Principal components of the transforms, in the unit of ``distances``.
        means: A mean shape for each group, and ``means_fitted``: whether they are fitted, else the shape nearest to the mean.
        poor_means: The groups whose mean shape is a poor fit: farther from the mean transform than the nearest shape is.
        folded_means: The groups whose fitted mesh has triangles that folded over others, and how many.
        extremes: Shapes at two standard deviations from the mean along the first two principal components.
        warps: One outline or mesh, warped to the mean of all shapes, of each group, and to the extremes, by name: the same
            simplices at other places, for :func:`eulerscan.explorer.page`. Names say where the fit is poor or folded.
        remarks: What a reader should know: groups of one shape, missing values, groups that differ in kind, and what
            disturbs a comparison, such as specks.
        strata: Block of each shape.
        permutations, seed: Of the tests.
    """

    shapes: Complex
    names: tuple[str, ...]
    groups: tuple[str, ...]
    config: ECTConfig
    align: Align | None
    distances: Tensor
    sizes: Tensor
    permanova: PermutationTest
    energy: PermutationTest
    dispersion: Dispersion | None
    size: PermutationTest | None
    pairs: list[PairTest]
    regressions: dict[str, PermutationTest]
    classifications: dict[str, Classification]
    ordination: Ordination
    means: dict[str, Complex]
    means_fitted: bool
    poor_means: list[str]
    folded_means: dict[str, int]
    extremes: list[Extreme]
    warps: dict[str, Complex]
    remarks: list[str]
    strata: tuple[str, ...] | None
    permutations: int
    seed: int

    def __repr__(self) -> str:
        test = self.permanova
        return f"Comparison({len(self.groups)} shapes, {len(self.counts)} groups, p_value={test.p_value:.3g}, r2={test.r2:.3g})"

    @property
    def counts(self) -> dict[str, int]:
        """Number of shapes in each group."""
        return dict(sorted(Counter(self.groups).items()))

    @property
    def classification(self) -> Classification | None:
        """The one that uses most: shapes, sizes and traits."""
        return list(self.classifications.values())[-1] if self.classifications else None

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold: all numbers of the report."""
        dispersion = None if self.dispersion is None else self.dispersion.test.as_dict() | {"means": self.dispersion.means}
        others = {name: found.as_dict() for name, found in self.classifications.items()}
        main = self.classification
        return {
            "groups": self.counts,
            "permanova": self.permanova.as_dict(),
            "energy": self.energy.as_dict(),
            "permdisp": dispersion,
            "size": None if self.size is None else self.size.as_dict(),
            "pairwise": [
                {
                    "groups": list(pair.groups),
                    "sizes": list(pair.sizes),
                    **pair.test.as_dict(),
                    "q_value": pair.q_value,
                    "distance": pair.distance,
                    "d": pair.d,
                }
                for pair in self.pairs
            ],
            "regressions": {name: test.as_dict() for name, test in self.regressions.items()},
            "classification": None if main is None else main.as_dict() | {"uses": list(others)[-1]},
            "classifications": others,
            "explained": self.ordination.explained.tolist(),
            "remarks": self.remarks,
            "permutations": self.permutations,
            "smallest_p_value": self.permanova.smallest_p_value,
            "seed": self.seed,
            "align": self.align,
            "strata": self.strata is not None,
            "config": self.config.as_dict(),
            "version": __version__,
        }


def compare(
    shapes: Shape,
    groups: Labels,
    *,
    names: Sequence[str] | None = None,
    config: ECTConfig = CONFIG,
    align: Align | None = None,
    permutations: int = 999,
    strata: Labels | None = None,
    covariates: Mapping[str, Sequence[float | None]] | None = None,
    traits: Mapping[str, Sequence[float | None]] | None = None,
    use_size: bool = True,
    classification: bool = True,
    means: bool = True,
    folds: int = FOLDS,
    seed: int = 0,
    folder: Path | None = None,
    progress: bool = True,
) -> Comparison:
    """Compare groups of shapes: do they differ, how much, can they be told apart, and how do their means look?

    Tests are about the transforms, by default of the shapes without their size and position. Classification chooses, within
    each fold, among features with and without orientation, and with and without size.

    Args:
        shapes: A batch of shapes in one ambient space.
        groups: Group of each shape.
        names: Names of the shapes. Default: their numbers.
        config: How shapes are transformed.
        align: ``"pca"`` and ``"best"`` rotate the shapes to a common orientation first
            (:func:`~eulerscan.analysis.orientation.oriented`); ``"invariant"`` compares what does not change under rotation.
        permutations: Number of permutations of every test.
        strata: Block of each shape, such as the specimen of several scans (:func:`permanova`).
        covariates: Numbers for each shape, by name, ``None`` where missing: does the shape change with them? Each is tested
            alone, over the shapes of all groups, without adjustment for the group.
        traits: Numbers for each shape, by name, to be joined with the transform in classification.
        use_size: Whether classification may use the size of the shapes.
        classification: Whether to classify. It needs scikit-learn.
        means: Whether to fit mean shapes, in the plane and in space.
        folds: Number of folds of the cross-validation. Fewer if no group has so many shapes.
        seed: Of permutations and folds.
        folder: Where to keep intermediate results, so that an interrupted call resumes with the same arguments.
        progress: Whether to show a progress bar, on a terminal with tqdm.

    Example:
        >>> clouds = torch.rand(12, 30, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 0.3])
        >>> clouds[6:, :, 1] *= 2
        >>> found = compare(clouds, ["thin"] * 6 + ["wide"] * 6, permutations=99, classification=False, means=False)
        >>> found.permanova.p_value <= 0.05
        True
    """
    check_choice(align, "align", get_args(Align), optional=True)
    positive(permutations, "permutations")
    if SIZE in (covariates or {}):
        raise ValueError(f"covariates must not be named {SIZE!r}, which is always tested. Rename it.")
    complex = as_complex(shapes).detach().to("cpu", torch.float64)
    count = complex.num_complexes
    labels = as_names(groups, count, "groups")
    known_names = as_names(range(count) if names is None else names, count, "names")
    blocks = None if strata is None else as_names(strata, count, "strata")
    remarks: list[str] = []
    sizes = centroid_sizes(complex)
    if bool((sizes <= 0).any()):
        flat = [known_names[i] for i in (sizes <= 0).nonzero().squeeze(1).tolist()]
        raise ValueError(f"shapes must have an extent, but all points coincide in {_listed(flat)}. Leave them out.")
    _check_sizes(labels, remarks)
    config = _checked_config(complex, labels, config, remarks)
    stages = Stages(folder, complex, labels, blocks, config, align, seed, folds, use_size, traits)
    numbers = Counter(labels)
    classified, folds = _classified(labels, blocks, folds, remarks) if classification else ([], folds)
    num_means = len(numbers) if means and complex.dim in (2, 3) and len(numbers) <= MAX_MEANS else 0
    total = 3 + bool(classified) * folds * num_repeats(len(classified)) + 2 * num_means + 9
    with closing(progress_bar(total, "comparing groups", hidden=not progress)) as bar:
        if align in ("pca", "best"):
            rotated = stages("orientation", lambda: {"points": oriented(complex, align).points.numpy()})
            complex = complex.with_points(torch.from_numpy(rotated["points"]))
        remarks += quality.remarks(complex, known_names, orientation=align != "invariant")
        regions, complex = complex, outlined(complex)
        if complex is not regions:
            remarks.append("Regions were compared by their outlines, which show more of their form than what fills them.")
        config = config.with_radius_of(complex)
        bar.update(1)
        features = stages("features", lambda: _features(complex, config, align))
        transforms = torch.from_numpy(features["transform" if align != "invariant" else "invariant transform"])
        bar.update(1)
        thresholds = None if config.derivative else config.thresholds()
        matrix = distance_matrix(transforms, thresholds=thresholds)
        options: dict[str, Any] = {"permutations": permutations, "strata": blocks, "seed": seed}
        tests = (permanova(matrix, labels, **options), energy_test(matrix, labels, **options))
        pairs = pairwise_tests(matrix, labels, **options)
        dispersion = _dispersion(matrix, labels, blocks, permutations, seed)
        logs = sizes.log()
        spread = float(logs.max() - logs.min())
        differences = (logs[:, None] - logs).abs()
        size = permanova(differences, labels, **options) if spread > 1e-6 else None
        given = dict(covariates or {})
        if size is not None:
            given[SIZE] = logs.tolist()
        regressions = _regressions(matrix, given, labels, blocks, permutations, seed, remarks)
        bar.update(1)
        found: dict[str, Classification] = {}
        if classified:
            sets = _candidates(features, complex.dim, use_size and size is not None)
            joined = _balanced(features, complex.dim) | {"size": logs.numpy()[:, None]}
            if traits:
                joined["traits"] = _traits(traits, known_names)
                sets |= {"traits": [("traits",)], "shape and traits": [(*one, "traits") for one in [*sets.values()][-1]]}
            found = classify(
                {name: values[classified] for name, values in joined.items()},
                [labels[i] for i in classified],
                sets,
                folds=folds,
                repeats=num_repeats(len(classified)),
                strata=None if blocks is None else [blocks[i] for i in classified],
                seed=seed,
                stage=stages,
                progress=lambda: bar.update(1),
            )
        plane = _principal_components(transforms, thresholds)
        shown: dict[str, Complex] = {}
        poor: list[str] = []
        folded: dict[str, int] = {}
        extremes, warps, fitted = [], {}, False
        if num_means:
            fitted = align != "invariant" and can_fit(complex, config)
            shown, poor, folded = group_means(complex, transforms, labels, config, fitted, stages, bar.update)
            if fitted:
                extremes = extreme_shapes(complex, transforms, plane, config, stages, bar.update)
                warps = warped_shapes(complex, transforms, labels, plane, config, stages, bar.update)
    return Comparison(
        shapes=complex,
        names=known_names,
        groups=labels,
        config=config,
        align=align,
        distances=matrix,
        sizes=sizes,
        permanova=tests[0],
        energy=tests[1],
        dispersion=dispersion,
        size=size,
        pairs=pairs,
        regressions=regressions,
        classifications=found,
        ordination=plane,
        means=shown,
        means_fitted=fitted,
        poor_means=poor,
        folded_means=folded,
        extremes=extremes,
        warps=warps,
        remarks=remarks,
        strata=blocks,
        permutations=permutations,
        seed=seed,
    )


def _check_sizes(labels: Sequence[str], remarks: list[str]) -> None:
    single = sorted(label for label, number in Counter(labels).items() if number == 1)
    if len(set(labels)) < 2:
        raise ValueError(f"groups must be at least two, got {_listed(sorted(set(labels)))}.")
    for label, other in itertools.pairwise(sorted(set(labels), key=lambda label: (label.lower(), label))):
        if label.lower() == other.lower():
            remarks.append(f"The names of the groups {label} and {other} differ only in case: are they the same?")
    if single:
        remarks.append(
            f"{_listed(single)} {'has' if len(single) == 1 else 'have'} one shape only: too few for the tests of pairs and "
            "spread, and left out of classification."
        )


def _classified(labels: Sequence[str], strata: Sequence[str] | None, folds: int, remarks: list[str]) -> tuple[list[int], int]:
    """The shapes that can be cross-validated, those of groups that are large enough if there are two, and in how many folds."""
    numbers = Counter(labels)
    found = [i for i, label in enumerate(labels) if numbers[label] >= FEWEST]
    if len({labels[i] for i in found}) < 2:
        return [], folds
    blocks = None if strata is None else [strata[i] for i in found]
    if blocks is not None and len(set(blocks)) < 3:
        remarks.append("Fewer than three blocks cannot be cross-validated, so shapes were not classified.")
        return [], folds
    possible = num_folds(folds, [labels[i] for i in found], blocks)
    if possible < folds:
        few = (
            f"no group has more than {possible} shapes" if possible == max(numbers.values()) else f"there are {possible} blocks"
        )
        remarks.append(f"Shapes were classified in {possible} folds instead of {folds}: {few}.")
    return found, possible


def _checked_config(shapes: Complex, labels: Sequence[str], config: ECTConfig, remarks: list[str]) -> ECTConfig:
    """The configuration, in which clouds of different sizes are divided by their number of points."""
    kinds = top_dims(shapes)
    words = ("point clouds", "graphs or outlines", "surfaces", "solids")
    of_group: dict[str, set[int]] = {}
    for label, kind in zip(labels, kinds.tolist(), strict=True):
        of_group.setdefault(label, set()).add(min(kind, 3))
    if len(set().union(*of_group.values())) > 1:
        listed = "; ".join(f"{label}: {' and '.join(words[kind] for kind in sorted(of_group[label]))}" for label in of_group)
        confounded = len({tuple(sorted(kinds)) for kinds in of_group.values()}) > 1
        why = (
            "Groups differ in kind, so every test finds a difference that is not one of shape"
            if confounded
            else "Shapes of different kinds are compared"
        )
        remarks.append(f"{why} ({listed}). Convert all shapes to one kind.")
    points = shapes.offsets[0].diff()
    if int(kinds.max()) == 0 and config.divide_by is None and int(points.min()) < int(points.max()):
        config = replace(config, divide_by="vertices")
        remarks.append(
            f"Point clouds have {int(points.min())} to {int(points.max())} points, so transforms are divided by their number."
        )
    return config


def _features(shapes: Complex, config: ECTConfig, align: Align | None) -> dict[str, _Array]:
    used = {f"invariant {name}": values for name, values in invariant_features(shapes, config).items()}
    if align != "invariant":
        used = shape_features(shapes, config) | used
    return {name: values.numpy() for name, values in used.items()}


def _balanced(features: Mapping[str, _Array], dim: int) -> dict[str, _Array]:
    """Features for classification: of spectra the square roots, since few magnitudes are much larger than the others."""
    spectra = {name for name in features if dim in (2, 3) and name.startswith("invariant")}
    return {name: np.sqrt(values) if name in spectra else values for name, values in features.items()}


def _candidates(features: Mapping[str, Any], dim: int, use_size: bool) -> dict[str, list[FeatureSet]]:
    """Sets of features to choose from, the preferred one first.

    Corners and holes count in the transform however small they are, which is often noise: where there are other features it is
    among the alternatives only. Spectra in the plane have twice the weight of the features with orientation.
    """
    plain = tuple(name for name in features if not name.startswith("invariant"))
    invariant = tuple(name for name in features if name.startswith("invariant"))
    without_counts, invariant_without_counts = (
        tuple(name for name in names if "transform" not in name) or names for names in (plain, invariant)
    )
    both = without_counts + invariant_without_counts * (2 if without_counts and dim == 2 else 1)
    sets = [one for one in dict.fromkeys((both, without_counts, invariant_without_counts, plain + invariant)) if one]
    found = {"shape": sets}
    return found | {"shape and size": [(*one, "size") for one in sets] + sets[:1]} if use_size else found


def _traits(traits: Mapping[str, Sequence[float | None]], names: Sequence[str]) -> _Array:
    columns = []
    for trait, values in traits.items():
        column = np.array([math.nan if value is None else float(value) for value in values])
        if len(column) != len(names):
            raise ValueError(f"traits must hold a number for each of {len(names)} shapes, got {len(column)} for {trait!r}.")
        if not np.isfinite(column).all():
            missing = [names[i] for i in np.flatnonzero(~np.isfinite(column)).tolist()]
            raise ValueError(f"traits must not be missing, but {trait!r} is for {_listed(missing)}. Leave these shapes out.")
        columns.append((column - column.mean()) / (column.std() or 1.0))
    return np.stack(columns, axis=1)


def _regressions(
    matrix: Tensor,
    covariates: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    strata: Sequence[str] | None,
    permutations: int,
    seed: int,
    remarks: list[str],
) -> dict[str, PermutationTest]:
    """Tests of the covariates.

    Where whole blocks are permuted, such as the scans of a specimen, a covariate is averaged over each block. Otherwise a
    number that differs between scans, as size does, would be permuted within specimens, and the test would hardly see
    differences between them.
    """
    whole = strata is not None and blocks_are_whole(labels, strata)
    found = {}
    for name, values in covariates.items():
        column = np.array([math.nan if value is None else float(value) for value in values])
        if len(column) != len(matrix):
            raise ValueError(f"covariates must hold a number for each of {len(matrix)} shapes, got {len(column)} for {name!r}.")
        known = np.flatnonzero(np.isfinite(column))
        count = len(known)
        blocks = None if strata is None else [strata[i] for i in known.tolist()]
        if blocks is not None and (whole or blocks_are_whole(column[known], blocks)):
            numbers = np.unique(blocks, return_inverse=True)[1]
            count = len(set(blocks))
            column[known] = (np.bincount(numbers, column[known]) / np.bincount(numbers))[numbers]
        if count < 3 or not np.ptp(column[known]) > 0:
            remarks.append(f"The covariate {name} is left out: it has {count} values, and needs three different ones.")
            continue
        if len(known) < len(column):
            missing = len(column) - len(known)
            have = "1 shape has no" if missing == 1 else f"{missing} shapes have no"
            remarks.append(f"{have} {name}, and {'is' if missing == 1 else 'are'} left out of its test.")
        part = matrix[known][:, known]
        found[name] = distance_regression(part, column[known], permutations=permutations, strata=blocks, seed=seed)
    return found


def _principal_components(transforms: Tensor, thresholds: Tensor | None) -> Ordination:
    """Principal components with the distances of :func:`distance_matrix`, and the transforms along them."""
    found = pca(scaled(transforms, thresholds, p=2))
    mean = transforms.mean(dim=0)
    # By regression on the scores, since the value at the last threshold has no width, and no part in the distances.
    along = torch.tensordot(found.scores / found.scores.square().sum(dim=0), transforms - mean, dims=([0], [0]))
    return replace(found, mean=mean, components=along)


def _dispersion(
    matrix: Tensor, labels: Sequence[str], strata: Sequence[str] | None, permutations: int, seed: int
) -> Dispersion | None:
    numbers = Counter(labels)
    kept = [i for i, label in enumerate(labels) if numbers[label] > 1]
    if len({labels[i] for i in kept}) < 2:
        return None
    blocks = None if strata is None else [strata[i] for i in kept]
    own = [labels[i] for i in kept]
    if blocks is not None and blocks_are_whole(own, blocks) and len(set(blocks)) < 3:
        return None
    found = permdisp(matrix[kept][:, kept], own, permutations=permutations, strata=blocks, seed=seed)
    everywhere = np.full(len(labels), np.nan)
    everywhere[kept] = found.distances
    return replace(found, distances=everywhere)


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
