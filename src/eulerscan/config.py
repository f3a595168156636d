"""How a shape is transformed: one configuration that layers, features, bulk work, plots and commands share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import torch
from torch import Tensor

from . import directions as spheres
from ._validation import check_bool, check_choice, check_radius, integer, positive, positive_number, set_fields
from .complexes import Complex, Shape, as_complex
from .complexes.normalize import DivideBy, Normalize, divided
from .grid import MARGIN, radius_of
from .grid import thresholds as even_thresholds
from .variants import VARIANTS, Variant, derivative


@dataclass(frozen=True)
class ECTConfig:
    """How a shape is transformed: normalized, swept on a grid of directions and thresholds, and divided by its size.

    docs/defaults.md lists every default, and where others differ.

    Args:
        num_directions: Number of directions, evenly spread.
        num_thresholds: Number of thresholds, evenly spaced from -radius to radius.
        radius: Largest threshold. Default: 1.1 in the unit ball; for other shapes give a little more than their largest norm.
        scale: Steepness of the sigmoid that replaces the step. inf is the exact transform.
        variant: ect is the plain transform, sect is smoothed by integration, superlevel is swept downward, channels has a curve
            for vertices, one for edges, and so on.
        derivative: Take the difference of each curve from one threshold to the next.
        normalize: unit_ball centers each shape at its centroid and scales it so that its farthest vertex has norm 1; vertices
            does the same about the mean of its vertices; center keeps the size, none the coordinates.
        divide_by: Divide the transform of each shape by its number of vertices or simplices, or by its peak: the largest
            absolute value. Point clouds of different sizes are comparable if divided by their vertices.
        max_dim: Dimension of the last channel, with variant channels. Default: the dimension of space.

    Example:
        >>> config = ECTConfig(num_directions=4, num_thresholds=3)
        >>> config.transform(torch.rand(8, 100, 2)).shape
        torch.Size([8, 4, 3])
    """

    num_directions: int = 32
    num_thresholds: int = 32
    radius: float | None = None
    scale: float = math.inf
    variant: Variant = "ect"
    derivative: bool = False
    normalize: Normalize | None = "unit_ball"
    divide_by: DivideBy | None = None
    max_dim: int | None = None

    def __post_init__(self) -> None:
        check_radius(self.radius, optional=True)
        check_choice(self.variant, "variant", get_args(Variant))
        check_bool(self.derivative, "derivative")
        check_choice(self.normalize, "normalize", get_args(Normalize), optional=True)
        check_choice(self.divide_by, "divide_by", get_args(DivideBy), optional=True)
        if self.max_dim is not None and self.variant != "channels":
            raise ValueError(f"max_dim must be None unless variant is 'channels', got {self.max_dim}.")
        set_fields(  # JSON does not know the numbers of NumPy
            self,
            num_directions=positive(self.num_directions, "num_directions"),
            num_thresholds=positive(self.num_thresholds, "num_thresholds"),
            radius=None if self.radius is None else float(self.radius),
            scale=positive_number(self.scale, "scale"),
            max_dim=None if self.max_dim is None else integer(self.max_dim, "max_dim", least=0),
        )

    @property
    def in_unit_ball(self) -> bool:
        """Whether shapes are scaled to largest norm 1."""
        return self.normalize in ("unit_ball", "vertices")

    @property
    def is_plain(self) -> bool:
        """Whether curves are Euler characteristics, exact or smooth: no variant, no derivative, no division."""
        return self.variant == "ect" and not self.derivative and self.divide_by is None

    @property
    def largest_height(self) -> float:
        """The radius, or its default."""
        if self.radius is None and not self.in_unit_ball:
            raise ValueError(
                f"radius must be given with normalize={self.normalize!r}: a little more than the largest norm of the shapes. "
                "`eulerscan advise` suggests one."
            )
        return MARGIN if self.radius is None else self.radius

    def with_radius_of(self, *complexes: Complex) -> ECTConfig:
        """The same with the radius that these shapes need once normalized, unless it is given."""
        if self.radius is not None:
            return self
        if self.in_unit_ball:
            return replace(self, radius=self.largest_height)
        return replace(self, radius=radius_of(*(complex.normalized(self.normalize) for complex in complexes)))

    def directions(self, dim: int) -> Tensor:
        """``[T, dim]``, in float64."""
        return spheres.uniform(self.num_directions, dim, dtype=torch.float64)

    def thresholds(self) -> Tensor:
        """``[H]``, in float64."""
        return even_thresholds(self.num_thresholds, self.largest_height, dtype=torch.float64)

    def num_channels(self, dim: int) -> int:
        """Number of curves in each direction, for shapes in space of this dimension."""
        return 1 if self.variant != "channels" else 1 + (dim if self.max_dim is None else self.max_dim)

    def shape(self, dim: int) -> tuple[int, ...]:
        """Shape of one transform: ``[T, H]``, or ``[K, T, H]`` with channels."""
        grid = (self.num_directions, self.num_thresholds)
        return (self.num_channels(dim), *grid) if self.variant == "channels" else grid

    def transform(
        self,
        shape: Shape,
        directions: Tensor | None = None,
        thresholds: Tensor | None = None,
        *,
        scale: float | Tensor | None = None,
        dtype: torch.dtype | None = None,
    ) -> Tensor:
        """Normalize, transform, divide: ``[B, T, H]``, or ``[B, K, T, H]`` with channels. No shape depends on another one.

        Args:
            shape: A :class:`Complex`, or anything :func:`as_complex` understands.
            directions, thresholds, scale: In place of those of the configuration, as a layer that learned them has.
            dtype: Of the coordinates once they are normalized: rounded before, shapes far from the origin would be lost.
        """
        complex = shape if isinstance(shape, Complex) else as_complex(shape)
        if complex.points.dtype.itemsize < 4:
            complex = complex.to(dtype=torch.float32)  # not a grid in half precision
        directions = self.directions(complex.dim).to(complex.points) if directions is None else directions
        if thresholds is None:
            thresholds = even_thresholds(self.num_thresholds, self.largest_height, dtype=torch.float64).to(complex.points)
        complex = complex if self.normalize is None else complex.normalized(self.normalize)
        complex = complex if dtype is None else complex.to(dtype=dtype)
        options = {"max_dim": self.num_channels(complex.dim) - 1} if self.variant == "channels" else {}
        scale = self.scale if scale is None else scale
        curves = VARIANTS[self.variant](complex, directions, thresholds, scale=scale, **options)
        return divided(derivative(curves) if self.derivative else curves, complex.offsets, self.divide_by)

    def num_beyond(self, complex: Complex) -> int:
        """Number of shapes that reach beyond the radius, where no threshold sees them."""
        radius = self.largest_height
        if self.in_unit_ball and radius >= 1:
            return 0
        return int((complex.normalized(self.normalize).largest_norms() > radius).sum())

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold: an infinite scale is the word."""
        return asdict(self) | {"scale": str(self.scale) if math.isinf(self.scale) else self.scale}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> ECTConfig:
        """The inverse of :meth:`as_dict`."""
        try:
            return ECTConfig(**{**values, "scale": float(values["scale"])})
        except (KeyError, TypeError) as error:
            raise ValueError(f"values must be those of ECTConfig.as_dict, got {values!r}.") from error
