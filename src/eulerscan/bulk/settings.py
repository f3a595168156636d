"""What the transforms of many shapes are made with: one recipe for all, so that they can be compared."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from .. import directions as spheres
from .._validation import check_radius, positive
from ..complexes import Complex
from ..complexes.normalize import placed
from ..dividing import DivideBy, check_divide_by, divided
from ..functional import thresholds as even_thresholds
from ..variants import VARIANTS, Variant


@dataclass(frozen=True)
class Settings:
    """Everything the transform of a shape depends on, besides the shape.

    Args:
        dim: Dimension of the space that holds the shapes.
        num_directions, num_thresholds: T and H.
        radius: Thresholds are evenly spaced from ``-radius`` to ``radius``.
        scale: Steepness of the sigmoid; ``inf`` is the exact transform.
        variant: The transform itself, or one of its relatives in :mod:`eulerscan.variants`.
        unit_ball: Whether each shape is centred and scaled to norm 1 first.
        centre: Whether each shape is centred and keeps its size, in place of ``unit_ball``.
        divide_by: What the transform of each shape is divided by, as in :class:`~eulerscan.ECTLayer`.
        reading: Options of :func:`eulerscan.read`.

    Example:
        >>> Settings(dim=2, num_directions=4, num_thresholds=3).apply(Complex(torch.zeros(1, 2))).tolist()[0][0]
        [0.0, 1.0, 1.0]
    """

    dim: int
    num_directions: int = 32
    num_thresholds: int = 32
    radius: float = 1.1
    scale: float = math.inf
    variant: Variant = "ect"
    unit_ball: bool = True
    centre: bool = False
    divide_by: DivideBy | None = None
    reading: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("dim", "num_directions", "num_thresholds"):
            positive(getattr(self, name), name)
        check_radius(self.radius)
        if not self.scale > 0:
            raise ValueError(f"scale must be positive, got {self.scale}.")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {self.variant!r}.")
        check_divide_by(self.divide_by)
        if self.centre:  # in place of the unit ball, in files and comparisons too
            object.__setattr__(self, "unit_ball", False)
        if "dtype" in self.reading:
            raise ValueError("dtype is no option here: shapes are transformed in float64, and transforms stored in float32.")

    @property
    def directions(self) -> Tensor:
        """``[T, dim]``."""
        return spheres.uniform(self.num_directions, self.dim, dtype=torch.float64)

    @property
    def thresholds(self) -> Tensor:
        """``[H]``."""
        return even_thresholds(self.num_thresholds, self.radius, dtype=torch.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the transform of one shape: ``[T, H]``, or ``[K, T, H]`` for channels."""
        grid = (self.num_directions, self.num_thresholds)
        return (self.dim + 1, *grid) if self.variant == "channels" else grid

    @torch.no_grad()
    def apply(self, complex: Complex) -> Tensor:
        """The transforms of shapes, ``[B, T, H]`` or ``[B, K, T, H]``; each depends on no other shape."""
        complex = self.placed(complex)
        options = {"max_dim": self.dim} if self.variant == "channels" else {}
        transform = VARIANTS[self.variant](complex, self.directions, self.thresholds, scale=self.scale, **options)
        return divided(transform, complex, self.divide_by).float()

    def beyond(self, complex: Complex) -> int:
        """How many shapes have points beyond the radius, which no threshold reaches."""
        if self.unit_ball and self.radius >= 1:
            return 0
        complex = self.placed(complex)
        return int(complex.batch[complex.points.norm(dim=1) > self.radius].unique().numel())

    def placed(self, complex: Complex) -> Complex:
        """The shapes where they are looked at, in float64."""
        return placed(complex.to(torch.float64), unit_ball=self.unit_ball, centre=self.centre)

    def columns(self) -> list[str]:
        """A name for each number of a transform: ``d0_t0`` is the first direction and threshold. ``s1_d0_t0`` is of edges."""
        names = [f"d{i}_t{j}" for i in range(self.num_directions) for j in range(self.num_thresholds)]
        return [f"s{k}_{name}" for k in range(self.dim + 1) for name in names] if self.variant == "channels" else names

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold: of an infinite scale the word."""
        return asdict(self) | {"scale": str(self.scale) if math.isinf(self.scale) else self.scale}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Settings:
        """What :meth:`as_dict` came from."""
        try:
            return Settings(**(values | {"scale": float(values["scale"])}))
        except (KeyError, TypeError) as error:
            raise ValueError(f"values must be what Settings.as_dict returns, got {values!r}.") from error
