"""A common orientation of shapes: by their principal axes, or by the best rotation to their mean."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from .. import rotations
from .._progress import progress
from .._validation import check_choice
from ..complexes import Complex, Shape, as_complex
from ..config import ECTConfig
from .alignment import CachedTransforms
from .alignment import align as align_pair

FINE = 180  # directions in the plane: rotations by multiples of two degrees
ROUNDS = 10


def oriented(shapes: Shape, align: Literal["pca", "best"]) -> Complex:
    """Rotate each shape to a common orientation about its centroid. Groups play no part in it.

    Args:
        shapes: In the plane or in space.
        align: ``"pca"``: principal axes of the vertices along the coordinate axes, the longest first, with the heavier tail of
            each on the positive side. ``"best"``: in the plane, the rotation after which its transform is closest to the mean
            transform, which is repeated until nothing changes; in space, the best rotation found to the shape nearest to the
            mean (:func:`~eulerscan.analysis.rotation_distance`), which takes about a second for each shape.

    Returns:
        The shapes, centered and rotated.

    Example:
        >>> bar = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 4.0], [0.2, 0.0]])
        >>> rotated = oriented(bar, "pca")
        >>> (rotated.points.amax(dim=0) - rotated.points.amin(dim=0)).round(decimals=1)
        tensor([4.0000, 0.2000])
    """
    check_choice(align, "align", ("pca", "best"))
    complex = as_complex(shapes)
    if complex.dim not in (2, 3):
        raise ValueError(f"align needs shapes in the plane or in space, got dimension {complex.dim}.")
    centered = complex.normalized("center")
    if align == "pca":
        matrices = _principal(centered)
    elif complex.dim == 2:
        matrices = _best_in_plane(centered)
    else:
        matrices = _best_in_space(centered)
    rotated = torch.einsum("vij,vj->vi", matrices.to(centered.points)[centered.batch], centered.points)
    return centered.with_points(rotated)


def _principal(shapes: Complex) -> Tensor:
    """Rotations ``[B, dim, dim]`` to the principal axes."""
    points = shapes.points.double()
    _, columns = rotations.principal_axes(points, shapes.batch, shapes.num_complexes)
    axes = columns.flip(-1).mT  # a row per axis, the longest first
    places = torch.einsum("vij,vj->vi", axes[shapes.batch], points)
    tails = places.new_zeros(shapes.num_complexes, shapes.dim).index_add(0, shapes.batch, places**3)
    axes = axes * torch.where(tails < 0, -1.0, 1.0)[:, :, None]
    # A rotation, not a reflection: the axis with the least certain side is flipped.
    mirrored = torch.linalg.det(axes) < 0
    least = tails.abs().argmin(dim=1)
    flipped = mirrored[:, None] & (torch.arange(shapes.dim, device=shapes.device) == least[:, None])
    flip = torch.where(flipped, -1.0, 1.0)
    return axes * flip[:, :, None]


def _best_in_plane(shapes: Complex) -> Tensor:
    """Rotations ``[B, 2, 2]`` to the mean, by circular correlation of the transforms over directions."""
    config = ECTConfig(num_directions=FINE, num_thresholds=32, variant="sect")
    spectra = torch.fft.fft(config.transform(shapes.to(torch.float64)), dim=1)  # [B, T, H]
    magnitudes = spectra.abs()
    first = int((magnitudes - magnitudes.mean(dim=0)).square().sum(dim=(1, 2)).argmin())
    target, shift = spectra[first], torch.full((len(spectra),), -1, device=shapes.device)
    frequency = torch.fft.fftfreq(FINE, 1 / FINE, dtype=torch.float64, device=shapes.device)
    for _ in range(ROUNDS):
        correlation = torch.fft.ifft((target * spectra.conj()).sum(dim=2), dim=1).real  # [B, shifts]
        found = correlation.argmax(dim=1)
        if bool((found == shift).all()):
            break
        shift = found
        phases = torch.exp(-2j * math.pi * frequency * shift[:, None] / FINE)
        target = (spectra * phases[:, :, None]).mean(dim=0)
    return rotations.in_plane(2 * math.pi * shift.double() / FINE)


def _best_in_space(shapes: Complex) -> Tensor:
    """Rotations ``[B, 3, 3]`` to the shape nearest to the mean."""
    config = ECTConfig(num_directions=64, num_thresholds=32, variant="sect")
    invariant = config.transform(shapes.to(torch.float64)).sort(dim=1).values
    first = int((invariant - invariant.mean(dim=0)).square().sum(dim=(1, 2)).argmin())
    unit = shapes.to(torch.float64).normalized("unit_ball")
    cached = [CachedTransforms(unit[i], 64, 64, config.largest_height) for i in range(len(unit))]
    found = [
        torch.eye(3).to(unit.points) if i == first else align_pair(cached[first], one).rotation
        for i, one in enumerate(progress(cached, "aligning shapes"))
    ]
    return torch.stack(found)
