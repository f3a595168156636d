"""Comparison of groups of shapes: tests, classification, ordination and mean shapes in one call."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from .._progress import progress_bar
from .._storage import replacing
from .._validation import check_choice, positive
from .._version import __version__
from ..complexes import Complex, Shape, as_complex
from ..complexes.extent import centroid_sizes, top_dims
from ..config import ECTConfig
from ..variants import rotation_invariant
from . import quality
from .classification import FEWEST, FOLDS, Classification, FeatureSet, classify, num_repeats
from .distances import distance_matrix
from .features import feature_blocks
from .groups import (
    Dispersion,
    Labels,
    PairTest,
    PermutationTest,
    distance_regression,
    energy_test,
    pairwise_tests,
    permanova,
    permdisp,
)
from .means import fit_shape
from .ordination import Ordination, pca
from .orientation import oriented

_Array = np.ndarray[Any, Any]
Align = Literal["pca", "best", "invariant"]

CONFIG = ECTConfig(num_directions=48, num_thresholds=48)
MAX_MEANS = 12  # groups: more do not fit on a page
MAX_VERTICES = 3000  # of a shape that is fitted
EXTREMES = 2.0  # standard deviations from the mean along an axis
POOR = 1.2  # a fit this many times as far from the wanted transform as the nearest shape says little


class Extreme(NamedTuple):
    """A shape at a place of the plane of principal components."""

    axis: int
    deviations: float  # standard deviations from the mean
    shape: Complex


@dataclass(frozen=True, eq=False)
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
        dispersion: The test of equal spread, without groups of one shape. ``None`` if fewer than two groups remain.
        size: PERMANOVA of the logarithms of the sizes. ``None`` if all are the same.
        pairs: Comparison of every pair of groups.
        regressions: Tests of covariates, by name.
        classifications: Cross-validated classification, by what it uses; the last one uses most.
        ordination: Principal components of the transforms.
        means: A mean shape for each group, and ``means_fitted``: whether they are fitted, else the shape nearest to the mean.
        extremes: Shapes at two standard deviations from the mean along the first two principal components.
        warps: One outline or mesh, warped to the mean of all shapes, of each group, and to the extremes, by name: the same
            simplices at other places, for :func:`eulerscan.explorer.page`. Names say where the fit is poor.
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
    extremes: list[Extreme]
    warps: dict[str, Complex]
    remarks: list[str]
    strata: tuple[str, ...] | None
    permutations: int
    seed: int

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
                    "q": pair.q,
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
            "smallest_p": self.permanova.smallest_p,
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
        covariates: Numbers for each shape, by name, ``None`` where missing: does the shape change with them?
        traits: Numbers for each shape, by name, to be joined with the transform in classification.
        use_size: Whether classification may use the size of the shapes.
        classification: Whether to classify. It needs scikit-learn.
        means: Whether to fit mean shapes.
        folds: Number of folds of the cross-validation.
        seed: Of permutations and folds.
        folder: Where to keep intermediate results, so that an interrupted call resumes with the same arguments.
        progress: Whether to show a progress bar, on a terminal with tqdm.

    Example:
        >>> clouds = torch.rand(12, 30, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 0.3])
        >>> clouds[6:, :, 1] *= 2
        >>> found = compare(clouds, ["thin"] * 6 + ["wide"] * 6, permutations=99, classification=False, means=False)
        >>> found.permanova.p <= 0.05
        True
    """
    check_choice(align, "align", get_args(Align), optional=True)
    positive(permutations, "permutations")
    complex = as_complex(shapes).to(torch.float64)
    count = complex.num_complexes
    labels = tuple(map(str, groups))
    known_names = tuple(map(str, range(count))) if names is None else tuple(names)
    blocks = None if strata is None else tuple(map(str, strata))
    for name, values in (("groups", labels), ("names", known_names), ("strata", blocks)):
        if values is not None and len(values) != count:
            raise ValueError(f"{name} must hold a value for each of {count} shapes, got {len(values)}.")
    remarks: list[str] = []
    sizes = centroid_sizes(complex)
    if bool((sizes <= 0).any()):
        flat = [known_names[i] for i in (sizes <= 0).nonzero().squeeze(1).tolist()]
        raise ValueError(f"shapes must have an extent, but all points coincide in {_listed(flat)}. Leave them out.")
    _check_sizes(labels, remarks)
    config = _checked_config(complex, labels, config, remarks)
    stages = _Stages(folder, complex, labels, blocks, config, align, seed, folds, use_size, traits)
    numbers = Counter(labels)
    classified = [i for i, label in enumerate(labels) if numbers[label] >= FEWEST]
    classification = classification and len({labels[i] for i in classified}) > 1
    if blocks is not None and classification and len(set(blocks)) < 3:
        classification = False
        remarks.append("Fewer than three blocks cannot be cross-validated, so shapes were not classified.")
    repeats = num_repeats(len(classified))
    num_means = len(numbers) if means and len(numbers) <= MAX_MEANS else 0
    total = 3 + classification * folds * repeats + 2 * num_means + 9
    with closing(progress_bar(total, "comparing groups", hidden=not progress)) as bar:
        if align in ("pca", "best"):
            rotated = stages("orientation", lambda: {"points": oriented(complex, align).points.numpy()})
            complex = complex.with_points(torch.from_numpy(rotated["points"]))
        in_ball = config.normalize == "unit_ball"
        config = replace(config, radius=config.largest_height) if in_ball else config.with_radius_of(complex)
        remarks += quality.remarks(complex, known_names, orientation=align != "invariant")
        bar.update(1)
        features = stages("features", lambda: _features(complex, config, align))
        transforms = torch.from_numpy(features["transform" if align != "invariant" else "invariant transform"])
        bar.update(1)
        matrix = distance_matrix(transforms, thresholds=None if config.derivative else config.thresholds())
        options: dict[str, Any] = {"permutations": permutations, "strata": blocks, "seed": seed}
        tests = (permanova(matrix, labels, **options), energy_test(matrix, labels, **options))
        pairs = pairwise_tests(matrix, labels, **options)
        dispersion = _dispersion(matrix, labels, blocks, permutations, seed)
        logs = sizes.log()
        spread = float(logs.max() - logs.min())
        differences = (logs[:, None] - logs).abs()
        size = permanova(differences, labels, **options) if spread > 1e-6 else None
        given = dict(covariates or {})
        if size is not None and "size" not in given:
            given["size"] = logs.tolist()
        regressions = _regressions(matrix, given, labels, blocks, permutations, seed, remarks)
        bar.update(1)
        found: dict[str, Classification] = {}
        if classification:
            candidates = _candidates(features, complex.dim, use_size and size is not None)
            joined = {name: block[classified] for name, block in _balanced(features, complex.dim).items()}
            joined["size"] = logs.numpy()[classified, None]
            if traits:
                joined["traits"] = _traits(traits, known_names)[classified]
                candidates |= {
                    "traits": [("traits",)],
                    "shape and traits": [(*one, "traits") for one in [*candidates.values()][-1]],
                }
            found = classify(
                joined,
                [labels[i] for i in classified],
                candidates,
                folds=folds,
                repeats=repeats,
                strata=None if blocks is None else [blocks[i] for i in classified],
                seed=seed,
                stage=stages,
                progress=lambda: bar.update(1),
            )
        plane = pca(transforms)
        shown, extremes, warps, fitted = {}, [], {}, False
        if num_means:
            fitted = _can_fit(complex, config, align)
            shown = _means(complex, transforms, labels, config, fitted, stages, bar.update)
            if fitted:
                extremes = _extremes(complex, plane, config, stages, bar.update)
                warps = _warps(complex, transforms, labels, plane, config, stages, bar.update)
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
        extremes=extremes,
        warps=warps,
        remarks=remarks,
        strata=blocks,
        permutations=permutations,
        seed=seed,
    )


class _Stages:
    """Intermediate results, each computed once for the same inputs."""

    def __init__(self, folder: Path | None, shapes: Complex, *inputs: Any) -> None:
        self.folder = folder
        digest = hashlib.sha256(shapes.points.numpy().tobytes())
        for values in (*shapes.simplices, *(shapes.weights or ())):
            digest.update(values.numpy().tobytes())
        digest.update(json.dumps([__version__, shapes.packed.kinds, shapes.offsets.tolist(), inputs], default=str).encode())
        self.key = digest.hexdigest()[:16]

    def __call__(self, name: str, compute: Callable[[], dict[str, _Array]]) -> dict[str, _Array]:
        if self.folder is None:
            return compute()
        path = self.folder / f"{name}-{self.key}.npz"
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        except FileNotFoundError:
            found = compute()
        with replacing(path) as partial, partial.open("wb") as output:
            np.savez(output, allow_pickle=False, **found)
        return found


def _check_sizes(labels: Sequence[str], remarks: list[str]) -> None:
    single = sorted(label for label, number in Counter(labels).items() if number == 1)
    if len(set(labels)) < 2:
        raise ValueError(f"groups must be at least two, got {_listed(sorted(set(labels)))}.")
    if single:
        remarks.append(
            f"{_listed(single)} {'has' if len(single) == 1 else 'have'} one shape only: too few for the tests of pairs and "
            "spread, and left out of classification."
        )


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
            else ("Shapes of different kinds are compared")
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
    blocks = feature_blocks(shapes, config)
    invariant = {f"invariant {name}": rotation_invariant(block, shapes.dim) for name, block in blocks.items()}
    used = invariant if align == "invariant" else blocks | invariant
    return {name: block.numpy() for name, block in used.items()}


def _balanced(features: Mapping[str, _Array], dim: int) -> dict[str, _Array]:
    """Features for classification: of spectra the square roots, since few magnitudes are much larger than the others."""
    spectra = {name for name in features if dim == 2 and name.startswith("invariant")}
    return {name: np.sqrt(block) if name in spectra else block for name, block in features.items()}


def _candidates(features: Mapping[str, Any], dim: int, use_size: bool) -> dict[str, list[FeatureSet]]:
    """Sets of features to choose from, the preferred one first.

    Corners and holes count in the transform however small they are, which is often noise: where there are other features it is
    among the alternatives only. Spectra in the plane have twice the weight of the features with orientation.
    """
    plain = tuple(name for name in features if not name.startswith("invariant"))
    invariant = tuple(name for name in features if name.startswith("invariant"))
    calm, calm_invariant = (tuple(name for name in names if "transform" not in name) or names for names in (plain, invariant))
    both = calm + calm_invariant * (2 if calm and dim == 2 else 1)
    sets = [one for one in dict.fromkeys((both, calm, calm_invariant, plain + invariant)) if one]
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
        if strata is not None and whole:
            numbers = np.unique([strata[i] for i in known.tolist()], return_inverse=True)[1]
            count = len(np.unique(numbers))
            column[known] = (np.bincount(numbers, column[known]) / np.bincount(numbers))[numbers]
        if count < 3 or not np.ptp(column[known]) > 0:
            remarks.append(f"The covariate {name} is left out: it has {count} values, and needs three different ones.")
            continue
        if len(known) < len(column):
            missing = len(column) - len(known)
            have = "1 shape has no" if missing == 1 else f"{missing} shapes have no"
            remarks.append(f"{have} {name}, and {'is' if missing == 1 else 'are'} left out of its test.")
        blocks = None if strata is None else [strata[i] for i in known.tolist()]
        part = matrix[known][:, known]
        found[name] = distance_regression(part, column[known], permutations=permutations, strata=blocks, seed=seed)
    return found


def blocks_are_whole(labels: Sequence[str], strata: Sequence[str]) -> bool:
    """Whether each block belongs to one group, so that whole blocks are permuted, and not labels within them."""
    return len(set(zip(labels, strata, strict=True))) == len(set(strata))


def _dispersion(
    matrix: Tensor, labels: Sequence[str], strata: Sequence[str] | None, permutations: int, seed: int
) -> Dispersion | None:
    numbers = Counter(labels)
    kept = [i for i, label in enumerate(labels) if numbers[label] > 1]
    if len({labels[i] for i in kept}) < 2:
        return None
    blocks = None if strata is None else [strata[i] for i in kept]
    own = [labels[i] for i in kept]
    found = permdisp(matrix[kept][:, kept], own, permutations=permutations, strata=blocks, seed=seed)
    everywhere = np.full(len(labels), np.nan)
    everywhere[kept] = found.distances
    return replace(found, distances=everywhere)


def _can_fit(shapes: Complex, config: ECTConfig, align: Align | None) -> bool:
    """Whether mean shapes can be fitted, rather than the nearest shapes shown."""
    plain = config.variant == "ect" and not config.derivative and config.divide_by is None and math.isinf(config.scale)
    return plain and align != "invariant" and shapes.weights is None and int(shapes.offsets[0].diff().max()) <= MAX_VERTICES


def _means(
    shapes: Complex,
    transforms: Tensor,
    labels: Sequence[str],
    config: ECTConfig,
    fitted: bool,
    stages: _Stages,
    done: Callable[[int], object],
) -> dict[str, Complex]:
    found: dict[str, Complex] = {}
    for label in sorted(set(labels)):
        members = [i for i, own in enumerate(labels) if own == label]
        mean = transforms[members].mean(dim=0)
        nearest = shapes[members[int((transforms[members] - mean).flatten(1).norm(dim=1).argmin())]]
        nearest = nearest.normalized(config.normalize) if config.normalize else nearest
        found[label] = _fitted(mean, nearest, config, stages, f"mean-{len(found)}") if fitted else nearest
        done(1)
    return found


def _extremes(
    shapes: Complex, plane: Ordination, config: ECTConfig, stages: _Stages, done: Callable[[int], object]
) -> list[Extreme]:
    found: list[Extreme] = []
    for axis in range(min(2, plane.scores.shape[1])):
        for deviations in (-EXTREMES, EXTREMES):
            place = _place(plane, axis, deviations)
            nearest = shapes[int((plane.scores - place).norm(dim=1).argmin())]
            fit = _fitted(plane.transform_at(place), nearest, config, stages, f"extreme-{axis}-{len(found)}")
            found.append(Extreme(axis, deviations, fit))
            done(1)
    return found


def _place(plane: Ordination, axis: int, deviations: float) -> Tensor:
    """Coordinates of a place along an axis, so many standard deviations from the mean."""
    place = torch.zeros(plane.scores.shape[1], dtype=plane.scores.dtype)
    place[axis] = deviations * plane.scores[:, axis].std()
    return place


def _warps(
    shapes: Complex,
    transforms: Tensor,
    labels: Sequence[str],
    plane: Ordination,
    config: ECTConfig,
    stages: _Stages,
    done: Callable[[int], object],
) -> dict[str, Complex]:
    """The shape nearest to the mean, fitted to the mean transform and from there to the others."""
    mean = transforms.mean(dim=0)
    nearest = shapes[int((transforms - mean).flatten(1).norm(dim=1).argmin())]
    base = _fitted(mean, nearest, config, stages, "warp")
    targets: dict[str, Tensor] = {}
    for label in sorted(set(labels)):
        targets[f"mean of {label}"] = transforms[[i for i, own in enumerate(labels) if own == label]].mean(dim=0)
    targets["mean of all shapes"] = mean
    for axis in range(min(2, plane.scores.shape[1])):
        for deviations in (-EXTREMES, EXTREMES):
            name = f"axis {axis + 1}, {'−' if deviations < 0 else '+'}{EXTREMES:g} SD"
            targets[name] = plane.transform_at(_place(plane, axis, deviations))
    found = {}
    for number, (name, target) in enumerate(targets.items()):
        fit = base if target is mean else _fitted(target, base, config, stages, f"warp-{number}")
        away = float((config.transform(fit)[0] - target).norm())
        poor = away > POOR * float((transforms - target).flatten(1).norm(dim=1).min())
        found[name + " (poor fit)" * poor] = fit
        done(1)
    return found


def _fitted(values: Tensor, start: Complex, config: ECTConfig, stages: _Stages, name: str) -> Complex:
    template = start.normalized(config.normalize) if config.normalize else start
    points = stages(name, lambda: {"points": fit_shape(values, template, config).points.numpy()})["points"]
    return template.with_points(torch.from_numpy(points))


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
