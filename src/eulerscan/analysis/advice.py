"""How many directions and thresholds, which radius and which scale suit some shapes, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .._validation import positive
from ..complexes import Complex
from ..complexes.coerce import Shape, as_complex
from ..complexes.normalize import placed
from ..dividing import DivideBy
from ..grid import largest_norms, widened
from ..nn.layers import ECTLayer
from .resolution import Sampled, choose_directions, choose_thresholds, percent, yardstick_of


@dataclass(frozen=True)
class Advice:
    """Settings for some shapes, with a reason for each of them in one sentence.

    Attributes:
        dim: Dimension of the space of the shapes.
        num_directions, num_thresholds, radius, scale, unit_ball, centre, divide_by: As in :class:`ECTLayer`.
        reasons: One sentence for each of these seven names.
    """

    dim: int
    num_directions: int
    num_thresholds: int
    radius: float
    scale: float
    unit_ball: bool
    centre: bool
    divide_by: DivideBy | None
    reasons: dict[str, str]

    def layer(self) -> ECTLayer:
        """A layer with these settings."""
        return ECTLayer(
            self.dim,
            self.num_directions,
            self.num_thresholds,
            radius=self.radius,
            scale=self.scale,
            unit_ball=self.unit_ball,
            centre=self.centre,
            divide_by=self.divide_by,
        )

    def python(self) -> str:
        """The line of Python that makes the layer."""
        place = "centre=True" if self.centre else f"unit_ball={self.unit_ball}"
        division = "" if self.divide_by is None else f", divide_by={self.divide_by!r}"
        return (
            f"ECTLayer(dim={self.dim}, num_directions={self.num_directions}, num_thresholds={self.num_thresholds}, "
            f"radius={self.radius:g}, scale={self.scale:g}, {place}{division})"
        )


@torch.no_grad()
def advise(
    shape: Shape,
    *,
    labels: Sequence[str] | None = None,
    unit_ball: bool | None = None,
    centre: bool = False,
    tolerance: float = 0.1,
) -> Advice:
    """Suggest settings of the transform for shapes like these.

    Thresholds are doubled until the values of the exact curves halfway between two are predicted by those at both sides, and
    then directions until the curves in between are predicted by their neighbours, smooth ones on that grid. Both are to be
    within the tolerance: a share of the mean difference between two shapes, or of the mean value of the curves where that is
    less or there is but one shape. The curves of each shape are divided by their mean absolute value first, so that shapes
    of many vertices count no more than others.

    Args:
        shape: One or many complexes, or anything :func:`as_complex` understands.
        labels: Class of each complex, if known: they tell whether size carries meaning.
        unit_ball: Whether shapes are to be centred and scaled to the unit ball. ``None`` decides by their sizes and places.
        centre: Whether they are to be centred and keep their sizes, in place of ``unit_ball``.
        tolerance: The largest error that is taken, as a share.

    Example:
        >>> square = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]])
        >>> advise([square, 3 * square]).unit_ball
        True
    """
    complex = as_complex(shape).to("cpu", torch.float64)
    if not 0 < tolerance < 1:
        raise ValueError(f"tolerance must be a share between 0 and 1, got {tolerance}.")
    positive(complex.num_complexes, "the number of shapes")
    empty = (complex.offsets[0].diff() == 0).nonzero()
    if len(empty):
        raise ValueError(f"shape must have points in every complex, got none in complex {int(empty[0, 0])}.")
    if labels is not None and len(labels) != complex.num_complexes:
        raise ValueError(f"labels must name the class of each of {complex.num_complexes} shapes, got {len(labels)}.")
    sizes, places = _sizes(complex)
    scaled, why_unit_ball = _choose_unit_ball(sizes, places, labels)
    wanted = False if centre else unit_ball
    if wanted is not None and wanted != scaled:
        scaled, why_unit_ball = wanted, f"You chose so. {why_unit_ball}"
    centred, why_centre = _choose_centre(sizes, places, scaled)
    if wanted is not None and centre != centred:
        centred, why_centre = centre, f"You chose so. {why_centre}"
    complex = placed(complex, unit_ball=scaled, centre=centred)
    radius, why_radius = _choose_radius(complex, scaled)
    shapes = [Sampled(complex[i], radius) for i in range(complex.num_complexes)]
    yardstick = yardstick_of(shapes)
    count, why_count = choose_thresholds(shapes, yardstick, tolerance)
    views, why_views = choose_directions(shapes, count, yardstick, tolerance)
    divide_by, why_divide_by = _choose_divide_by(complex)
    step = 2 * radius / (count - 1)
    why_scale = (
        f"The sigmoid rises over one step of the grid ({step:.3g}): no vertex has less than 42 % of the largest gradient, and "
        "neighbouring thresholds still differ; without training take the exact transform, scale=inf."
    )
    reasons = {
        "unit_ball": why_unit_ball,
        "centre": why_centre,
        "radius": why_radius,
        "num_thresholds": why_count,
        "num_directions": why_views,
        "scale": why_scale,
        "divide_by": why_divide_by,
    }
    return Advice(complex.dim, views, count, radius, float(f"{4 / step:.4g}"), scaled, centred, divide_by, reasons)


def _choose_unit_ball(sizes: Tensor, places: Tensor, labels: Sequence[str] | None) -> tuple[bool, str]:
    """By sizes, places and, where there are classes, by how much of the differences in size they explain."""
    smallest, largest = float(sizes.min()), float(sizes.max())
    found = f"sizes go from {smallest:.3g} to {largest:.3g}"
    if largest == 0:
        return True, "Every shape is a single place: nothing but the number of its points tells them apart."
    explained = None if labels is None else _explained(sizes.clamp(min=largest * 1e-6).log(), labels)
    if explained is not None and explained > 0.5 and largest > 1.25 * smallest:
        share = percent(explained)
        return False, f"Size carries meaning: {found}, and the classes explain {share} of that; the unit ball would lose it."
    if _are_apart(sizes, places):
        return True, (
            f"Shapes lie up to {float(places.max()):.3g} from the origin and {found}: in the unit ball only their form counts. "
            "If size carries meaning, only centre them; if place does, too, leave them as they are."
        )
    if largest > 1.05 * smallest:
        return True, f"The {found}: in the unit ball only the form counts. If size carries meaning, do without."
    if abs(largest - 1) < 0.05:
        return False, f"All shapes are centred and {found}: they are in the unit ball already."
    return (
        True,
        f"All shapes are centred and of one size, {largest:.3g}: in the unit ball the usual radius and scale suit them.",
    )


def _choose_centre(sizes: Tensor, places: Tensor, unit_ball: bool) -> tuple[bool, str]:
    """Places are mostly those on a table or in a picture: where sizes count, shapes are centred."""
    if unit_ball:
        return False, "In the unit ball they are centred already."
    if not _are_apart(sizes, places):
        return False, "All shapes are centred, or nearly so."
    return True, (
        f"Shapes lie up to {float(places.max()):.3g} from the origin, which would count like size. If place carries meaning, "
        "leave them as they are."
    )


def _are_apart(sizes: Tensor, places: Tensor) -> bool:
    """Whether some lie so far from the origin that it matters."""
    return float(places.max()) > 0.1 * float(sizes.max())


def _choose_divide_by(complex: Complex) -> tuple[DivideBy | None, str]:
    counts = complex.offsets[0].diff()
    fewest, most = int(counts.min()), int(counts.max())
    if complex.max_dim > 0:
        return None, "Curves of shapes with edges end at their Euler characteristics, which tell something of their form."
    if fewest == most:
        return None, f"All clouds have {most} points, so their curves end at the same height."
    return (
        "vertices",
        f"Curves of clouds end at their numbers of points, here {fewest} to {most}: divided by them, form counts.",
    )


def _sizes(complex: Complex) -> tuple[Tensor, Tensor]:
    """``[B]``: the largest distance of a point from the mean of its shape, and the distance of that mean from the origin."""
    centred, first = complex.centred(), complex.offsets[0, :-1]
    return largest_norms(centred), torch.linalg.vector_norm(complex.points[first] - centred.points[first], dim=1)


def _explained(values: Tensor, labels: Sequence[str]) -> float | None:
    """Share of the variance of ``values`` between the classes, corrected for chance; ``None`` where that cannot be said."""
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


def _choose_radius(complex: Complex, unit_ball: bool) -> tuple[float, str]:
    if unit_ball:
        return widened(1.0), "In the unit ball the largest norm is 1; a tenth more keeps every vertex off the last threshold."
    largest = float(largest_norms(complex).max())
    if largest == 0:
        return widened(0.0), "All points are at the origin: any radius sees them."
    digits = 10 ** (math.floor(math.log10(largest)) - 2)
    radius = float(f"{math.ceil(widened(largest) / digits - 1e-6) * digits:.6g}")
    return radius, f"The largest norm of these shapes is {largest:.4g}; a tenth more keeps every vertex off the last threshold."
