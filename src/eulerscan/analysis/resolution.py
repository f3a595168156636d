"""Resolution of the grid: how many thresholds and directions predict the curves in between."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from .. import directions as spheres
from .._imports import require
from ..complexes import Complex
from ..config import ECTConfig
from ..functional import ect
from ..grid import scale_of_step
from ..grid import thresholds as even_thresholds

MIN_SIZE, MAX_SIZE = 4, 512
"""Numbers of directions and thresholds that are tried."""

FOLDS = 5  # of the cross-validation
_NUM_PROBES = 64  # directions in between
_COARSE_GRID = (31, 65)  # directions and thresholds that compare the shapes


class ErrorScale(NamedTuple):
    """The quantity that errors are relative to, with its name."""

    value: float
    name: str


class NormalizedCurves:
    """Curves of one shape, divided by their mean absolute value."""

    def __init__(self, complex: Complex, radius: float) -> None:
        self.complex, self.radius, self.unit = complex, radius, 1.0
        self.coarse = self.sample(_uniform(_COARSE_GRID[0], complex.dim), _COARSE_GRID[1])
        self.unit = float(self.coarse.abs().mean()) or 1.0
        self.coarse /= self.unit

    def sample(self, directions: Tensor, num_thresholds: int, scale: float = math.inf) -> Tensor:
        """``[T, H]``."""
        thresholds = even_thresholds(num_thresholds, self.radius, dtype=torch.float64)
        return ect(self.complex, directions, thresholds, scale=scale)[0] / self.unit


def error_scale(shapes: Sequence[NormalizedCurves]) -> ErrorScale:
    """The mean difference between two shapes, or the mean value of the curves, which is 1, if that is smaller."""
    curves = torch.stack([shape.coarse.flatten() for shape in shapes])
    pairs = max(1, len(shapes) * (len(shapes) - 1))
    difference = float(torch.cdist(curves, curves, p=1).sum()) / curves.shape[1] / pairs
    # Shapes that differ only by rounding are equal: there is no difference to compare with.
    if 1e-6 < difference < 1:
        return ErrorScale(difference, "the mean difference between shapes")
    return ErrorScale(1.0, "the mean value of the curves")


def choose_thresholds(shapes: Sequence[NormalizedCurves], relative_to: ErrorScale, tolerance: float) -> tuple[int, str]:
    """Number of thresholds, and the reason."""
    directions = _uniform(_COARSE_GRID[0], shapes[0].complex.dim)

    def error(num_thresholds: int) -> float:
        """Error of linear interpolation halfway between thresholds."""
        errors = []
        for shape in shapes:
            fine = shape.sample(directions, 2 * num_thresholds - 1)
            errors.append(float((fine[:, 1::2] - (fine[:, :-1:2] + fine[:, 2::2]) / 2).abs().mean()))
        return sum(errors) / len(errors) / relative_to.value

    return _double(error, relative_to, tolerance, "thresholds", first=2 * MIN_SIZE)


def choose_directions(
    shapes: Sequence[NormalizedCurves], num_thresholds: int, relative_to: ErrorScale, tolerance: float
) -> tuple[int, str]:
    """Number of directions, given the number of thresholds, and the reason."""
    dim = shapes[0].complex.dim
    if dim == 1:
        return 2, "There are only two directions in dimension 1."
    scale = scale_of_step(num_thresholds, shapes[0].radius)

    def error(num_directions: int) -> float:
        """Error of curves in other directions, interpolated from the nearest directions by inverse distance weighting."""
        directions, probes = _uniform(num_directions, dim), _probes(dim)
        near = (probes @ directions.T).clamp(-1, 1).topk(min(dim, num_directions), dim=1)
        inverse = 1 / near.values.arccos().clamp(min=1e-9)
        weights = (inverse / inverse.sum(dim=1, keepdim=True))[..., None]
        errors = []
        for shape in shapes:
            known, found = (shape.sample(some, num_thresholds, scale) for some in (directions, probes))
            errors.append(float((found - (known[near.indices] * weights).sum(dim=1)).abs().mean()))
        return sum(errors) / len(errors) / relative_to.value

    return _double(error, relative_to, tolerance, "directions", first=MIN_SIZE)


def choose_by_accuracy(complex: Complex, labels: Sequence[str], largest: ECTConfig) -> tuple[tuple[int, int], str] | None:
    """Numbers of directions and thresholds by the cross-validated accuracy of an SVM on the exact transforms, and the reason.

    The smallest grid within one standard error of the best is chosen, or the largest if none tells the classes apart.

    Args:
        complex: The shapes.
        labels: The class of each.
        largest: With the largest grid to try.

    Returns:
        ``None`` if scikit-learn is missing, or if a class has fewer shapes than there are folds.
    """
    if min(Counter(labels).values()) < FOLDS or len(set(labels)) < 2:
        return None
    try:
        selection, svm = require("sklearn.model_selection", extra="sklearn"), require("sklearn.svm", extra="sklearn")
        pipeline, preprocessing = (
            require("sklearn.pipeline", extra="sklearn"),
            require("sklearn.preprocessing", extra="sklearn"),
        )
    except ModuleNotFoundError:
        return None
    folds = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVC(C=10))
    whole = (largest.num_directions, largest.num_thresholds)
    sizes = sorted({(min(n, whole[0]), min(n, whole[1])) for n in (8, 16, 32, 64, 128)})
    accuracy = {}
    for directions, thresholds in sizes:
        config = replace(largest, num_directions=directions, num_thresholds=thresholds)
        features = config.transform(complex).flatten(1).numpy()
        accuracy[directions, thresholds] = float(
            (selection.cross_val_predict(model, features, labels, cv=folds) == labels).mean()
        )
    best = max(accuracy.values())
    error = math.sqrt(best * (1 - best) / len(labels))
    tried = ", ".join(f"{percent(accuracy[size])} with {size[0]} x {size[1]}" for size in sizes)
    reason = f"Cross-validated accuracy of an SVM on these {len(labels)} shapes: {tried}."
    majority = max(Counter(labels).values()) / len(labels)
    if best - error <= majority:
        return whole, (
            f"{reason} No grid tells the classes apart (the largest class has {percent(majority)}), so this one is by the "
            "differences between shapes."
        )
    chosen = next(size for size in sizes if accuracy[size] >= best - error)
    return chosen, f"{reason} This is the smallest grid within one standard error ({percent(error)}) of the best."


def _double(
    error: Callable[[int], float], relative_to: ErrorScale, tolerance: float, name: str, *, first: int
) -> tuple[int, str]:
    """Double the count until the error is within the tolerance. Returns it with the reason."""
    count, previous = first, None
    current = error(count)
    while current > tolerance and count < MAX_SIZE:
        count, previous = 2 * count, current
        current = error(count)
    reason = f"With {count} {name}, the error between them is {percent(current)} of {relative_to.name}"
    if current > tolerance:
        return count, f"{reason}: above the tolerance of {percent(tolerance)}, but {MAX_SIZE} is the largest number tried."
    half = "" if previous is None else f", with {count // 2} it is {percent(previous)}"
    return count, f"{reason}{half} (tolerance {percent(tolerance)})."


def _uniform(n: int, dim: int) -> Tensor:
    return spheres.uniform(n, dim, dtype=torch.float64)


def _probes(dim: int) -> Tensor:
    """Fixed random directions. Midpoints of evenly spaced ones could all look alike on a regular shape."""
    return spheres.random(_NUM_PROBES, dim, torch.Generator().manual_seed(0), dtype=torch.float64)


def percent(fraction: float) -> str:
    """Format a fraction as a percentage.

    >>> percent(0.1234), percent(0.01234)
    ('12.3 %', '1.2 %')
    """
    return f"{100 * fraction:.3g} %" if fraction >= 0.1 else f"{100 * fraction:.2g} %"
