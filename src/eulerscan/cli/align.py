"""``eulerscan distances --align``: distances up to rotation."""

from __future__ import annotations

import math
import sys
from contextlib import closing
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from .._progress import progress_bar
from .._version import __version__
from ..analysis.alignment import CachedTransforms, align, circular_distance
from ..analysis.pairwise import PairwiseCheckpoint
from ..bulk import Settings, Transforms
from ..complexes.normalize import DivideBy, divisors
from ..io import Listing, read


def check_align(settings: Settings, *, transformed: bool = False) -> None:
    """Check that shapes can be aligned.

    Args:
        settings: How they are transformed.
        transformed: Whether only their transforms are given.
    """
    if settings.ect.variant != "ect" or settings.ect.derivative:
        raise ValueError("--align needs the transform itself: leave out --variant and --derivative.")
    if settings.dim not in (None, 2, 3):
        raise ValueError(f"--align needs shapes in the plane or in space, got dimension {settings.dim}.")
    if settings.dim == 3 and math.isfinite(settings.ect.scale):
        raise ValueError(f"--align needs the exact transform in space, got --scale {settings.ect.scale:g}.")
    if settings.dim == 3 and transformed:
        raise ValueError("--align needs the shapes themselves in space, to rotate them: name their files or folder.")


def distances_in_plane(found: Transforms, p: float, quiet: bool) -> Tensor:
    """Distances ``[N, N]`` of transforms up to rotation by multiples of the angle between directions."""
    transforms, thresholds, count = found.transforms.double(), found.settings.ect.thresholds(), len(found.names)
    result = torch.zeros(count, count, dtype=torch.float64)
    with closing(progress_bar(math.comb(count, 2), "comparing pairs", hidden=quiet)) as bar:
        for i in range(count - 1):
            result[i, i + 1 :] = circular_distance(transforms[i : i + 1], transforms[i + 1 :], thresholds, p=p)
            bar.update(count - 1 - i)
    return result + result.T


def load_checkpoint(output: Path, listing: Listing, found: Transforms, p: float) -> PairwiseCheckpoint:
    """The finished pairs of an interrupted call with the same output, files and settings."""
    inputs = {
        "version": __version__,
        "names": found.names,
        "fingerprint": listing.fingerprint(),
        "changed": listing.state(),
        "settings": found.settings.as_dict(),
        "p": str(p),
    }
    return PairwiseCheckpoint(output, inputs)


def distances_in_space(found: Transforms, folder: Path, p: float, checkpoint: PairwiseCheckpoint, quiet: bool) -> Tensor:
    """Distances ``[N, N]`` of the shapes in files up to rotation. Pairs in the checkpoint are not computed again."""
    settings, count, done = found.settings, len(found.names), checkpoint.values
    pairs = list(combinations(range(count), 2))
    if done and not quiet:
        print(f"resuming with {len(done)} of {len(pairs)} pairs")
    shapes = [_cached_transforms(folder / name, settings) for name in found.names]
    result = torch.zeros(count, count, dtype=torch.float64)
    try:
        with closing(progress_bar(len(pairs), "comparing pairs", initial=len(done), hidden=quiet)) as bar:
            for i, j in pairs:
                if (i, j) not in done:
                    checkpoint.add((i, j), align(shapes[i], shapes[j], p=p).distance)
                    bar.update(1)
                result[i, j] = done[i, j]
    except KeyboardInterrupt:
        if done:
            print(f"{len(done)} of {len(pairs)} pairs are saved: the same command resumes with them", file=sys.stderr)
        raise
    return result + result.T


def _cached_transforms(path: Path, settings: Settings) -> CachedTransforms:
    config = settings.ect
    shape = read(path, dtype=torch.float64, **settings.reading).normalized(config.normalize)
    grid = (config.num_directions, config.num_thresholds, config.largest_height)
    transforms = CachedTransforms(shape, *grid)
    return transforms if config.divide_by is None else _divided(transforms, config.divide_by, grid)


def _divided(transforms: CachedTransforms, divide_by: DivideBy, grid: tuple[int, int, float]) -> CachedTransforms:
    """Weight the shape, so that its transform is divided. The peak over all directions does not change with rotation."""
    shape = transforms.complex
    weights = shape.weights or tuple(torch.ones(n, dtype=torch.float64) for n in shape.counts)
    values = transforms.lookup[None].double() if divide_by == "peak" else transforms.transform  # used only for the peak
    divisor = divisors(values, shape.offsets, divide_by)
    return CachedTransforms(shape.with_weights(tuple(w / divisor for w in weights)), *grid)
