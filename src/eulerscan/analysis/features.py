"""Features of shapes for statistics: transforms that see different things."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ..complexes import Complex
from ..complexes.extent import measure_weighted
from ..config import ECTConfig


def shape_features(shapes: Complex, config: ECTConfig) -> dict[str, Tensor]:
    """Transforms of shapes that see different things, ``[B, T, H]`` each.

    - ``transform``: as ``config`` says. It sees corners and holes, however small.
    - ``smooth``: the smooth transform (SECT), which sees them in proportion to their extent in height.
    - ``measure``: the length of the edges, or the area of the triangles, below each height. It sees where the shape is.
      Point clouds and weighted shapes do not have it.

    Args:
        shapes: The shapes.
        config: How they are transformed.
    """
    found = {"transform": config.transform(shapes)}
    if config.variant in ("ect", "superlevel"):
        found["smooth"] = replace(config, variant="sect", derivative=False).transform(shapes)
    weighted = measure_weighted(shapes.normalized(config.normalize))
    if weighted is not None:
        plain = ECTConfig(config.num_directions, config.num_thresholds, config.largest_height, config.scale, normalize=None)
        found["measure"] = plain.transform(weighted)
    return found
