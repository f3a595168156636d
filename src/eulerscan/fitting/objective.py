"""What a fit aims at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import directions as spheres
from .._validation import positive
from ..complexes import Complex, Shape, as_complex
from ..functional import ect
from ..grid import MARGIN, soft_scale
from ..grid import thresholds as even_thresholds
from .inverse import Transform, sharpest

NUM_STAGES = 4


@dataclass(frozen=True, eq=False)
class Goal:
    """A wanted transform, and the coordinates that it belongs to.

    Attributes:
        values: Of a scale: the wanted transform ``[T, H]``, normalised.
        divisor: What the transform of the fitted shape is divided by.
        num_points: Of the fitted shape.
        directions, thresholds: ``[T, dim]`` and ``[H]``.
        scales: From soft to sharp.
        centre, radius: Heights are those of ``(points - centre) / radius``.
    """

    values: Callable[[float], Tensor]
    divisor: float
    num_points: int
    directions: Tensor
    thresholds: Tensor
    scales: tuple[float, ...]
    centre: Tensor
    radius: float = 1.0

    @property
    def reach(self) -> float:
        """The largest height that is looked at."""
        return float(self.thresholds.abs().max())

    def inward(self, points: Tensor) -> Tensor:
        """From the coordinates of the target to those of the heights."""
        return (points.to(self.centre) - self.centre) / self.radius

    def outward(self, points: Tensor) -> Tensor:
        """From the coordinates of the heights back to those of the target."""
        return points * self.radius + self.centre

    def difference(self, scale: float) -> Callable[[Complex, Tensor], Tensor]:
        """The function of a complex and directions ``[T, dim]`` that tells how its transform differs from the wanted one."""
        wanted = self.values(scale)

        def difference(complex: Complex, directions: Tensor) -> Tensor:
            return ect(complex, directions, self.thresholds, scale=scale)[0] / self.divisor - wanted

        return difference


def for_points(
    target: Shape | Transform,
    start: Complex | None,
    *,
    num_points: int | None,
    directions: Tensor | None,
    num_directions: int | None,
    num_thresholds: int,
    scales: Sequence[float] | None,
) -> Goal:
    """The goal of points: of those of ``start``, or of a new cloud of ``num_points``."""
    if num_points is not None:
        positive(num_points, "num_points")
        if start is not None and num_points != len(start.points):
            raise ValueError(
                f"num_points must be left out where start is given, which has {len(start.points)}, got {num_points}."
            )
    if isinstance(target, Transform):
        if directions is not None or num_directions is not None:
            raise ValueError("directions and num_directions must be left out: target is a Transform, which has its own.")
        return _of_transform(target, start, num_points, scales)
    if directions is not None and num_directions is not None:
        raise ValueError(f"directions and num_directions say the same thing twice, got {num_directions} of them. Give one.")
    positive(num_thresholds, "num_thresholds")
    complex = one_complex(target, "target")
    if directions is None:
        # In space the same accuracy takes more directions. Opposite ones see the same of a cloud; of a graph they do not, since
        # an edge has the height of its upper end.
        spread = spheres.uniform if start is not None and start.rows else spheres.half_sphere
        count = positive((64 if complex.dim <= 2 else 128) if num_directions is None else num_directions, "num_directions")
        directions = spread(count, complex.dim, dtype=complex.points.dtype)
    elif not isinstance(directions, Tensor):
        raise TypeError(f"directions must be a torch.Tensor [T, {complex.dim}], got {type(directions).__name__}.")
    return _of_shape(complex, start, num_points, directions.detach().to(complex.points), num_thresholds, scales)


def _of_shape(
    target: Complex,
    start: Complex | None,
    num_points: int | None,
    directions: Tensor,
    num_thresholds: int,
    scales: Sequence[float] | None,
) -> Goal:
    """The transform of the target, moved to the unit ball together with the start.

    Where the start is a cloud, that of the vertices of the target alone: a cloud has no other transform to compare.
    """
    if start is not None and start.dim != target.dim:
        raise ValueError(f"start must have points of dimension {target.dim} like the target, got {start.dim}.")
    connected = start is not None and bool(start.rows)
    if connected and not target.rows:
        raise ValueError(
            f"target must have simplices like start, got {target!r}: the transform of a cloud counts something else than that "
            "of a graph or mesh. To compare vertices alone, pass start.points."
        )
    target = target if connected else _vertices(target)
    centre = target.points.mean(dim=0)
    everything = target.points if start is None else torch.cat([target.points, start.points.to(target.points)])
    radius = float(torch.linalg.vector_norm(everything - centre, dim=1).max()) or 1.0
    inside = target.with_points((target.points - centre) / radius)
    thresholds = even_thresholds(num_thresholds, MARGIN, device=centre.device, dtype=centre.dtype)
    if connected:
        # One number for both: the curves of surfaces count pieces and holes, whatever the number of vertices.
        total = divisor = peak(ect(inside, directions, thresholds))
    else:
        total = _total(target, "target")
        divisor = _cloud_divisor(start, num_points or len(target.points))
    return Goal(
        values=lambda scale: ect(inside, directions, thresholds, scale=scale)[0] / total,
        divisor=divisor,
        num_points=(num_points or len(target.points)) if start is None else len(start.points),
        directions=directions,
        thresholds=thresholds,
        scales=checked_scales(scales, soft_scale(MARGIN), 4 * max(1, num_thresholds - 1) / (2 * MARGIN)),
        centre=centre,
        radius=radius,
    )


def _of_transform(target: Transform, start: Complex | None, num_points: int | None, scales: Sequence[float] | None) -> Goal:
    """The given transform, blurred where the scale is softer than its own, in coordinates as they are."""
    if target.directions is None:
        raise ValueError("target must have directions to fit points, got a Transform with directions=None.")
    directions = target.directions.to(target.values)
    if start is not None and start.dim != directions.shape[1]:
        raise ValueError(f"start must have points of dimension {directions.shape[1]} like the target, got {start.dim}.")
    if start is not None and start.rows:
        total = divisor = peak(target.values)
        count = len(start.points)
    else:
        total = target.total
        if not total > 0:
            raise ValueError(
                f"target must be the transform of a cloud, whose curves end at its number of points, got {total:g}. "
                "Is it that of a graph or mesh? Then give its connectivity as start."
            )
        count = len(start.points) if start is not None else num_points or max(1, round(total))
        divisor = _cloud_divisor(start, count)
    return Goal(
        values=lambda scale: target.at(scale) / total,
        divisor=divisor,
        num_points=count,
        directions=directions,
        thresholds=target.thresholds.to(directions),
        scales=not_sharper(
            target.scale, checked_scales(scales, soft_scale(target.radius), min(target.scale, sharpest(target.step)))
        ),
        centre=directions.new_zeros(directions.shape[1]),
    )


def one_complex(shape: Shape, name: str) -> Complex:
    """One complex with at least one point, in float32 at least, without gradients."""
    try:
        complex = as_complex(shape)
    except (TypeError, ValueError, IndexError) as error:
        raise type(error)(f"{name}: {error}") from None
    if complex.num_complexes != 1:
        raise ValueError(f"{name} must be one complex, got {complex.num_complexes}. Fit them one at a time.")
    if len(complex.points) == 0:
        raise ValueError(f"{name} must have at least one point, got none.")
    complex = complex.to(torch.promote_types(complex.points.dtype, torch.float32))
    weights = None if complex.packed.weights is None else complex.packed.weights.detach()
    return Complex.from_packed(complex.packed._replace(points=complex.points.detach(), weights=weights))


def _vertices(complex: Complex) -> Complex:
    """The cloud of its vertices, with their weights."""
    weights = complex.weights
    return Complex(complex.points, weights=None if weights is None else weights[:1])


def _cloud_divisor(start: Complex | None, num_points: int) -> float:
    return float(num_points) if start is None else _total(start, "start")


def _total(cloud: Complex, name: str) -> float:
    """The number of points, or the sum of their weights."""
    total = float(cloud.euler_characteristic())
    if not total > 0:
        raise ValueError(f"{name} must have vertices whose weights have a positive sum, got {total:g}.")
    return total


def peak(transform: Tensor) -> float:
    """The largest absolute value, 1 where that is 0."""
    return float(transform.abs().max()) or 1.0


def checked_scales(scales: Sequence[float] | None, soft: float, sharp: float) -> tuple[float, ...]:
    """The given scales, or a few in equal ratios from soft to sharp."""
    if scales is None:
        if sharp <= soft:
            return (sharp,)
        return tuple(soft * (sharp / soft) ** (stage / (NUM_STAGES - 1)) for stage in range(NUM_STAGES))
    checked = tuple(float(scale) for scale in scales)
    if not checked or not all(0 < scale < math.inf for scale in checked) or list(checked) != sorted(checked):
        raise ValueError(
            f"scales must be positive and finite, from soft to sharp, got {list(scales)}. The exact transform (inf) has no "
            "gradient to follow."
        )
    return checked


def not_sharper(own: float, scales: tuple[float, ...]) -> tuple[float, ...]:
    """The scales, if a target that is itself as sharp as ``own`` can be blurred to all of them."""
    if scales[-1] > own:
        raise ValueError(f"scales must not be sharper than that of the target, {own:g}, got {scales[-1]:g}.")
    return scales
