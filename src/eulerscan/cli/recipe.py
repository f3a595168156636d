"""The options of every command that transforms files."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..bulk import Settings, Source, first_dimension
from ..dividing import DivideBy
from ..variants import Variant
from .options import parse_pairs


@dataclass(frozen=True)
class Recipe:
    """How files are transformed.

    Args:
        num_directions: Directions to look from, evenly spread.
        num_thresholds: Thresholds in each direction, evenly spaced.
        radius: Largest height that is looked at. Default: 1.1, for shapes in the unit ball.
        scale: Steepness of the sigmoid of the smooth transform. Default: the exact transform.
        variant: The transform, or a relative: integrated (sect), growth from threshold to threshold (derivative), counted
            from above (superlevel), or vertices, edges and faces apart (channels).
        unit_ball: Centre each shape and scale it to norm 1, or take the coordinates as they are in the file.
        centre: Centre each shape and keep its size, in place of the unit ball: for shapes whose size matters and whose place
            does not.
        divide_by: What the transform of each shape is divided by: its number of vertices or simplices, or its peak. Clouds of
            different sizes can be compared if divided by their vertices. Default: nothing.
        dim: Dimension of the space of the shapes. Default: that of the first.
        data: Options of reading the files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
    """

    num_directions: int = 32
    num_thresholds: int = 32
    radius: float | None = None
    scale: float = math.inf
    variant: Variant = "ect"
    unit_ball: bool = True
    centre: bool = False
    divide_by: DivideBy | None = None
    dim: int | None = None
    data: tuple[str, ...] = ()

    def check(self) -> None:
        """What can be known to be wrong before any file is read."""
        if (self.centre or not self.unit_ball) and self.radius is None:
            option, norm = ("--centre", "norm, once centred,") if self.centre else ("--no-unit-ball", "norm")
            raise ValueError(
                f"{option} needs a --radius: the largest {norm} that your shapes have, and a little more. "
                "`eulerscan advise` finds it."
            )
        self._settings(self.dim or 2)

    def settings(self, source: Source) -> Settings:
        """The same for the shapes of a source, whose first one is read for the dimension."""
        return self._settings(first_dimension(source, parse_pairs(self.data)) if self.dim is None else self.dim)

    def _settings(self, dim: int) -> Settings:
        return Settings(
            dim,
            self.num_directions,
            self.num_thresholds,
            1.1 if self.radius is None else self.radius,
            self.scale,
            self.variant,
            self.unit_ball,
            self.centre,
            self.divide_by,
            parse_pairs(self.data),
        )
