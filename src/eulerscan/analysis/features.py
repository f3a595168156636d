"""Features of shapes for statistics: transforms that see different things."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..complexes import Complex
from ..complexes.extent import measure_weighted
from ..complexes.principal_axes import along_axes, principal_frames
from ..config import ECTConfig
from ..directions import quadrature
from ..harmonics import GUARD, quadrature_degree
from ..variants import power_spectrum, rotation_invariant

AT_ONCE = 64  # shapes, transformed in several times as many directions


def shape_features(shapes: Complex, config: ECTConfig, directions: Tensor | None = None) -> dict[str, Tensor]:
    """Transforms of shapes that see different things, ``[B, T, H]`` each.

    - ``transform``: as ``config`` says. It sees corners and holes, however small.
    - ``smooth``: the smooth transform (SECT), which sees them in proportion to their extent in height.
    - ``measure``: the length of the edges, or the area of the triangles, below each height. It sees where the shape is.
      Point clouds and weighted shapes do not have it.

    Args:
        shapes: The shapes.
        config: How they are transformed.
        directions: In place of those of the configuration.
    """
    found = {"transform": config.transform(shapes, directions)}
    if config.variant in ("ect", "superlevel"):
        found["smooth"] = replace(config, variant="sect", derivative=False).transform(shapes, directions)
    weighted = measure_weighted(shapes.normalized(config.normalize))
    if weighted is not None:
        plain = ECTConfig(config.num_directions, config.num_thresholds, config.largest_height, config.scale, normalize=None)
        found["measure"] = plain.transform(weighted, directions)
    return found


def invariant_features(shapes: Complex, config: ECTConfig) -> dict[str, Tensor]:
    """What of the same transforms does not change under rotation: norms of their harmonics over directions.

    In the plane these are the magnitudes of the Fourier coefficients, ``[B, T // 2 + 1, H]``. In space they are the roots of
    the power of each degree, ``[B, L + 1, H]``, up to the degree that as many directions resolve; they come from transforms
    along the principal axes in the directions of a quadrature. In other dimensions they are values sorted over directions,
    ``[B, T, H]``.
    """
    if shapes.dim != 3:
        return {name: rotation_invariant(values, shapes.dim) for name, values in shape_features(shapes, config).items()}
    degree = quadrature_degree(config.num_directions, 3) // 2
    # Of odd degree: the same for either sign of the axes.
    directions = quadrature((2 * degree + GUARD) | 1, 3, dtype=torch.float64).directions.to(shapes.points)
    shapes = shapes.normalized(config.normalize)
    shapes = along_axes(shapes, principal_frames(shapes))
    parts = []
    for part in torch.arange(len(shapes)).split(AT_ONCE):
        found = shape_features(shapes.select(part), config, directions)
        parts.append({name: power_spectrum(one, directions, degree=degree).clamp(min=0).sqrt() for name, one in found.items()})
    names = max(parts, key=len)  # a part of clouds alone has no measure, which is then zero
    return {name: torch.cat([part.get(name, torch.zeros_like(part["transform"])) for part in parts]) for name in names}
