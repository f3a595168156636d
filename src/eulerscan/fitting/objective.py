"""The objective of a fit: the target transform, and the coordinates in which it is compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import directions as spheres
from .._validation import check_directions, positive
from ..complexes import Complex, Shape, as_complex
from ..functional import ect
from ..grid import MARGIN, scale_of_step, soft_scale
from ..grid import thresholds as even_thresholds
from .inverse import TransformTarget, sharpest_scale

NUM_STAGES = 4


@dataclass(frozen=True, eq=False)
class Objective:
    """A target transform, and the coordinates in which it is compared.

    Attributes:
        values: Function of a scale: the target ``[T, H]``, normalized.
        divisor: Divides the transform of the fitted shape.
        num_points: Of the fitted shape.
        directions, thresholds: ``[T, dim]`` and ``[H]``.
        scales: Ascending, one per stage.
        center, radius: Heights are those of ``(points - center) / radius``.
    """

    values: Callable[[float], Tensor]
    divisor: float
    num_points: int
    directions: Tensor
    thresholds: Tensor
    scales: tuple[float, ...]
    center: Tensor
    radius: float = 1.0

    @property
    def largest_height(self) -> float:
        """Largest absolute threshold."""
        return float(self.thresholds.abs().max())

    def to_internal(self, points: Tensor) -> Tensor:
        """From the coordinates of the target to those of the heights."""
        return (points.to(self.center) - self.center) / self.radius

    def from_internal(self, points: Tensor) -> Tensor:
        """From the coordinates of the heights to those of the target."""
        return points * self.radius + self.center

    def difference(self, scale: float) -> Callable[[Complex, Tensor], Tensor]:
        """A function of a complex and directions ``[T, dim]``: the difference ``[T, H]`` of its transform from the target."""
        values = self.values(scale)

        def difference(complex: Complex, directions: Tensor) -> Tensor:
            return ect(complex, directions, self.thresholds, scale=scale)[0] / self.divisor - values

        return difference


def points_objective(
    target: Shape | TransformTarget,
    start: Complex | None,
    *,
    num_points: int | None,
    directions: Tensor | None,
    num_directions: int | None,
    num_thresholds: int,
    scales: Sequence[float] | None,
) -> Objective:
    """Objective for the points of ``start``, or for a new cloud of ``num_points``."""
    if num_points is not None:
        positive(num_points, "num_points")
        if start is not None and num_points != len(start.points):
            raise ValueError(f"num_points must be None or that of start, {len(start.points)}, got {num_points}.")
    if isinstance(target, TransformTarget):
        if directions is not None or num_directions is not None:
            raise ValueError("directions and num_directions must be None if target is a TransformTarget, which has its own.")
        return _objective_of_transform(target, start, num_points, scales)
    if directions is not None and num_directions is not None:
        raise ValueError(f"num_directions must be None if directions are given, got {num_directions}.")
    positive(num_thresholds, "num_thresholds")
    complex = single_complex(target, "target")
    if directions is None:
        # The same accuracy needs more directions in space. Opposite directions are equivalent for a point cloud, but not for a
        # graph, since an edge has the height of its upper end.
        spread = spheres.uniform if start is not None and start.max_dim else spheres.half_sphere
        count = positive((64 if complex.dim <= 2 else 128) if num_directions is None else num_directions, "num_directions")
        directions = spread(count, complex.dim, dtype=complex.points.dtype)
    check_directions(directions, complex.dim)
    return _objective_of_shape(complex, start, num_points, directions.detach().to(complex.points), num_thresholds, scales)


def _objective_of_shape(
    target: Complex,
    start: Complex | None,
    num_points: int | None,
    directions: Tensor,
    num_thresholds: int,
    scales: Sequence[float] | None,
) -> Objective:
    """The transform of the target, moved to the unit ball together with the start.

    If the start is a point cloud, only the vertices of the target count, since a cloud has nothing else to compare.
    """
    if start is not None and start.dim != target.dim:
        raise ValueError(f"start must have points of dimension {target.dim} like the target, got {start.dim}.")
    connected = start is not None and start.max_dim > 0
    if connected and not target.max_dim:
        raise ValueError(
            f"target must have simplices like start, got {target!r}: transforms of point clouds and of graphs or meshes are "
            "not comparable. To compare only the vertices, pass start.points."
        )
    target = target if connected else _vertices(target)
    center = target.points.mean(dim=0)
    points = target.points if start is None else torch.cat([target.points, start.points.to(target.points)])
    radius = float(torch.linalg.vector_norm(points - center, dim=1).max()) or 1.0
    normalized = target.with_points((target.points - center) / radius)
    thresholds = even_thresholds(num_thresholds, MARGIN, device=center.device, dtype=center.dtype)
    if connected:
        # The same number for both: curves of surfaces count components and holes, whatever the number of vertices.
        total = divisor = peak(ect(normalized, directions, thresholds))
    else:
        total = _total(target, "target")
        divisor = _cloud_divisor(start, num_points or len(target.points))
    return Objective(
        values=lambda scale: ect(normalized, directions, thresholds, scale=scale)[0] / total,
        divisor=divisor,
        num_points=(num_points or len(target.points)) if start is None else len(start.points),
        directions=directions,
        thresholds=thresholds,
        scales=scale_schedule(scales, soft_scale(MARGIN), scale_of_step(num_thresholds, MARGIN)),
        center=center,
        radius=radius,
    )


def _objective_of_transform(
    target: TransformTarget, start: Complex | None, num_points: int | None, scales: Sequence[float] | None
) -> Objective:
    """The given transform, smoothed at softer scales than its own. Coordinates are not changed."""
    if target.directions is None:
        raise ValueError("target must have directions to fit points, got a TransformTarget with directions=None.")
    directions = target.directions.to(target.values)
    if start is not None and start.dim != directions.shape[1]:
        raise ValueError(f"start must have points of dimension {directions.shape[1]} like the target, got {start.dim}.")
    if start is not None and start.max_dim:
        total = divisor = peak(target.values)
        count = len(start.points)
    else:
        total = target.total
        if not total > 0:
            raise ValueError(
                f"target must be the transform of a point cloud, whose curves end at its number of points, got {total:g}. "
                "If it is that of a graph or mesh, give its connectivity as start."
            )
        count = len(start.points) if start is not None else num_points or max(1, round(total))
        divisor = _cloud_divisor(start, count)
    sharp = min(target.scale, sharpest_scale(target.step))
    return Objective(
        values=lambda scale: target.smoothed(scale) / total,
        divisor=divisor,
        num_points=count,
        directions=directions,
        thresholds=target.thresholds.to(directions),
        scales=scale_schedule(scales, soft_scale(target.radius), sharp, limit=target.scale),
        center=directions.new_zeros(directions.shape[1]),
    )


def single_complex(shape: Shape, name: str) -> Complex:
    """One complex with at least one point, in float32 or wider, detached."""
    try:
        complex = as_complex(shape)
    except (TypeError, ValueError, IndexError) as error:
        raise type(error)(f"{name}: {error}") from None
    if complex.num_complexes != 1:
        raise ValueError(f"{name} must be one complex, got {complex.num_complexes}. Fit them one at a time.")
    if len(complex.points) == 0:
        raise ValueError(f"{name} must have at least one point, got none.")
    return complex.detach().to(torch.promote_types(complex.points.dtype, torch.float32))


def _vertices(complex: Complex) -> Complex:
    """The point cloud of the vertices, with their weights."""
    weights = complex.weights
    return Complex(complex.points, weights=None if weights is None else weights[:1])


def _cloud_divisor(start: Complex | None, num_points: int) -> float:
    return float(num_points) if start is None else _total(start, "start")


def _total(cloud: Complex, name: str) -> float:
    """Number of points, or the sum of their weights."""
    total = float(cloud.euler_characteristic())
    if not total > 0:
        raise ValueError(f"{name} must have vertex weights with a positive sum, got {total:g}.")
    return total


def peak(transform: Tensor) -> float:
    """Largest absolute value, 1 instead of 0."""
    return float(transform.abs().max()) or 1.0


def scale_schedule(scales: Sequence[float] | None, soft: float, sharp: float, *, limit: float = math.inf) -> tuple[float, ...]:
    """The given scales, none sharper than the limit, or a geometric sequence from soft to sharp."""
    if scales is None:
        if sharp <= soft:
            return (sharp,)
        return tuple(soft * (sharp / soft) ** (stage / (NUM_STAGES - 1)) for stage in range(NUM_STAGES))
    checked = tuple(float(scale) for scale in scales)
    if not checked or not all(0 < scale < math.inf for scale in checked) or list(checked) != sorted(checked):
        raise ValueError(
            f"scales must be positive, finite and ascending, got {list(scales)}. The exact transform (inf) has no gradient."
        )
    if checked[-1] > limit:
        raise ValueError(f"scales must not be sharper than that of the target, {limit:g}, got {checked[-1]:g}.")
    return checked
