"""Advice: number of directions and thresholds, radius, scale and normalization for given shapes, with reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .._validation import positive
from ..complexes import Complex, Shape, as_complex
from ..complexes.normalize import DivideBy, Normalize
from ..config import ECTConfig
from ..grid import scale_of_step, with_margin
from ..nn.layers import ECTLayer
from .quality import remarks
from .resolution import NormalizedCurves, choose_by_accuracy, choose_directions, choose_thresholds, error_scale, percent

MAX_SHAPES = 64  # whose curves are compared for the resolution


@dataclass(frozen=True)
class Advice:
    """Suggested settings, with a reason for each.

    Attributes:
        dim: Dimension of the ambient space of the shapes.
        config: The suggested settings.
        reasons: One sentence for each chosen field of ``config``.
        remarks: What to know about the shapes first, such as specks, stairs of pixels or different orientations.
    """

    dim: int
    config: ECTConfig
    reasons: dict[str, str]
    remarks: tuple[str, ...] = ()

    def layer(self) -> ECTLayer:
        """A layer with these settings."""
        return ECTLayer.from_config(self.dim, self.config)

    def python(self) -> str:
        """Python code that makes the layer."""
        config = self.config
        division = "" if config.divide_by is None else f", divide_by={config.divide_by!r}"
        return (
            f"ECTLayer(dim={self.dim}, num_directions={config.num_directions}, num_thresholds={config.num_thresholds}, "
            f"radius={config.radius:g}, scale={config.scale:g}, normalize={config.normalize!r}{division})"
        )


@torch.no_grad()
def advise(
    shape: Shape,
    *,
    labels: Sequence[str] | None = None,
    normalize: Normalize | Literal["auto"] | None = "auto",
    tolerance: float = 0.1,
    names: Sequence[str] | None = None,
) -> Advice:
    """Suggest settings of the transform for shapes like these.

    The number of thresholds is doubled until linear interpolation predicts the exact curves between them; then the number of
    directions, until neighboring directions predict the smooth curves between them. Errors are relative to the mean difference
    between two shapes, or to the mean value of the curves if that is smaller or there is only one shape. The curves of each
    shape are divided by their mean absolute value first, so that shapes with many vertices do not dominate.

    With labels, and at least five shapes per class, a smaller grid is chosen if an SVM on it is as accurate in
    cross-validation.

    Args:
        shape: One or many complexes, or anything :func:`as_complex` understands.
        labels: Class of each complex, if known. They tell whether size is informative, and which grid is fine enough.
        normalize: ``"auto"`` decides by sizes and positions; otherwise as in :class:`ECTConfig`.
        tolerance: Largest acceptable error, as a fraction.
        names: Names of the shapes, for the remarks.

    Example:
        >>> square = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]])
        >>> advise([square, 3 * square]).config.normalize
        'unit_ball'
    """
    complex = as_complex(shape).to("cpu", torch.float64)
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must be between 0 and 1, got {tolerance}.")
    positive(complex.num_complexes, "the number of shapes")
    empty = (complex.offsets[0].diff() == 0).nonzero()
    if len(empty):
        raise ValueError(f"shape must have points in every complex, got none in complex {int(empty[0, 0])}.")
    if labels is not None and len(labels) != complex.num_complexes:
        raise ValueError(f"labels must have one entry for each of {complex.num_complexes} shapes, got {len(labels)}.")
    found = remarks(complex, names)
    chosen, why_normalize = _choose_normalize(complex, labels)
    if normalize != "auto" and normalize != chosen:
        chosen, why_normalize = normalize, f"As requested. {why_normalize}"
    complex = complex.normalized(chosen)
    radius, why_radius = _choose_radius(complex, chosen)
    count = complex.num_complexes
    some = range(count) if count <= MAX_SHAPES else [i * count // MAX_SHAPES for i in range(MAX_SHAPES)]
    shapes = [NormalizedCurves(complex[i], radius) for i in some]
    relative_to = error_scale(shapes)
    num_thresholds, why_thresholds = choose_thresholds(shapes, relative_to, tolerance)
    num_directions, why_directions = choose_directions(shapes, num_thresholds, relative_to, tolerance)
    divide_by, why_divide_by = _choose_divide_by(complex)
    by_accuracy = None
    if labels is not None:
        largest = ECTConfig(num_directions, num_thresholds, radius, normalize=None, divide_by=divide_by)
        by_accuracy = choose_by_accuracy(complex, labels, largest)
    if by_accuracy is not None:
        (num_directions, num_thresholds), why_directions = by_accuracy
        why_thresholds = "As for the number of directions."
    scale = float(f"{scale_of_step(num_thresholds, radius):.4g}")
    why_scale = (
        f"The sigmoid rises over one step of the grid ({4 / scale:.3g}): every vertex gets at least 42 % of the largest "
        "gradient, and neighboring thresholds still differ. Without training, use the exact transform, scale=inf."
    )
    reasons = {
        "normalize": why_normalize,
        "radius": why_radius,
        "num_thresholds": why_thresholds,
        "num_directions": why_directions,
        "scale": why_scale,
        "divide_by": why_divide_by,
    }
    config = ECTConfig(num_directions, num_thresholds, radius, scale, normalize=chosen, divide_by=divide_by)
    return Advice(complex.dim, config, reasons, tuple(found))


def _choose_normalize(complex: Complex, labels: Sequence[str] | None) -> tuple[Normalize | None, str]:
    """Based on sizes and positions and, with labels, on how much of the variance of size the classes explain."""
    sizes, positions = _sizes(complex)
    smallest, largest, farthest = float(sizes.min()), float(sizes.max()), float(positions.max())
    found = f"sizes range from {smallest:.3g} to {largest:.3g}"
    away = farthest > 0.1 * largest  # from the origin, so far that it matters
    if largest == 0:
        return "unit_ball", "Every shape is a single point: only its number of points distinguishes it."
    explained = None if labels is None else _explained(sizes.clamp(min=largest * 1e-6).log(), labels)
    if explained is not None and explained > 0.5 and largest > 1.25 * smallest:
        why = f"Size is informative: {found}, and classes explain {percent(explained)} of the variance, so sizes are kept."
        if away:
            return "center", f"{why} Positions, up to {farthest:.3g} from the origin, are removed; if they matter, use None."
        return None, f"{why} All shapes are centered, or nearly so."
    if away:
        return "unit_ball", (
            f"Shapes lie up to {farthest:.3g} from the origin and {found}: in the unit ball only form counts. "
            "If size is informative, use center; if position is too, use None."
        )
    if largest > 1.05 * smallest:
        return "unit_ball", f"The {found}: in the unit ball only form counts. If size is informative, use center."
    if abs(largest - 1) < 0.05:
        return None, f"All shapes are centered and {found}: they are in the unit ball already."
    return (
        "unit_ball",
        f"All shapes are centered and of one size, {largest:.3g}: the unit ball suits the usual radius and scale.",
    )


def _choose_divide_by(complex: Complex) -> tuple[DivideBy | None, str]:
    counts = complex.offsets[0].diff()
    fewest, most = int(counts.min()), int(counts.max())
    if complex.max_dim > 0:
        return None, "Curves of shapes with edges end at their Euler characteristic, which is informative."
    if fewest == most:
        return None, f"All clouds have {most} points, so their curves end at the same value."
    return (
        "vertices",
        f"Curves of point clouds end at the number of points, here {fewest} to {most}: divided by it, only form counts.",
    )


def _sizes(complex: Complex) -> tuple[Tensor, Tensor]:
    """``[B]``: largest distance of a point from the mean of its shape, and distance of that mean from the origin."""
    centered, first = complex.normalized("center"), complex.offsets[0, :-1]
    return centered.largest_norms(), torch.linalg.vector_norm(complex.points[first] - centered.points[first], dim=1)


def _explained(values: Tensor, labels: Sequence[str]) -> float | None:
    """Fraction of variance explained by the classes, adjusted for chance; ``None`` if there are too few shapes."""
    classes = sorted(set(labels))
    count = len(labels)
    if len(classes) < 2 or count < 2 * len(classes):
        return None
    number = torch.tensor([classes.index(label) for label in labels])
    sums = values.new_zeros(len(classes)).index_add(0, number, values)
    means = (sums / torch.bincount(number, minlength=len(classes)))[number]
    total = float((values - values.mean()).square().sum())
    within = float((values - means).square().sum())
    return None if total == 0 else 1 - within / (count - len(classes)) * (count - 1) / total


def _choose_radius(complex: Complex, normalize: Normalize | None) -> tuple[float, str]:
    if ECTConfig(normalize=normalize).in_unit_ball:
        return with_margin(1.0), "In the unit ball the largest norm is 1; the margin keeps vertices off the last threshold."
    largest = float(complex.largest_norms().max())
    if largest == 0:
        return with_margin(0.0), "All points are at the origin: any radius will do."
    digits = 10 ** (math.floor(math.log10(largest)) - 2)
    radius = float(f"{math.ceil(with_margin(largest) / digits - 1e-6) * digits:.6g}")
    return radius, f"The largest norm of these shapes is {largest:.4g}; the margin keeps vertices off the last threshold."
