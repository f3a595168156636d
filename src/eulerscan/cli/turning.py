"""``eulerscan distances --turned``: shapes whose position means nothing, each turned to where it is closest to the other."""

from __future__ import annotations

import math
import sys
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from .._progress import progress_bar
from .._version import __version__
from ..analysis.alignment import CachedTransforms, align, circular_distance
from ..analysis.pairwise import PairwiseCheckpoint
from ..bulk import Settings, Transforms
from ..complexes import Complex
from ..complexes.normalize import DivideBy, divisors
from ..io import Listing, read


def check_turned(settings: Settings, made: bool) -> None:
    """What cannot be turned is said before any work is done."""
    if settings.ect.variant != "ect" or settings.ect.derivative or (settings.dim == 3 and math.isfinite(settings.ect.scale)):
        raise ValueError(
            "--turned is for the transform itself, and in space for the exact one: leave out --variant and --scale."
        )
    if settings.dim not in (2, 3):
        raise ValueError(f"--turned is for shapes in the plane or in space, got dimension {settings.dim}.")
    if settings.dim == 3 and made:
        raise ValueError("--turned needs the shapes themselves in space, since it turns them: name their files or folder.")


def in_plane(found: Transforms, p: float, quiet: bool) -> Tensor:
    """Distances ``[N, N]`` of transforms, by all turns in whole steps."""
    transforms, thresholds, count = found.transforms.double(), found.settings.ect.thresholds(), len(found.names)
    result = torch.zeros(count, count, dtype=torch.float64)
    bar = progress_bar(math.comb(count, 2), "comparing pairs", hidden=quiet)
    try:
        for i in range(count - 1):
            result[i, i + 1 :] = circular_distance(transforms[i : i + 1], transforms[i + 1 :], thresholds, p=p)
            bar.update(count - 1 - i)
    finally:
        bar.close()
    return result + result.T


def kept_pairs(output: Path, source: Listing, found: Transforms, p: float) -> PairwiseCheckpoint:
    """The pairs that an earlier call for the same output finished, if it had the same files and settings."""
    origin = {
        "version": __version__,
        "names": found.names,
        "fingerprint": source.fingerprint(),
        "changed": source.state(),
        "settings": found.settings.as_dict(),
        "p": str(p),
    }
    return PairwiseCheckpoint(output, origin)


def in_space(found: Transforms, folder: Path, p: float, kept: PairwiseCheckpoint, quiet: bool) -> Tensor:
    """Distances ``[N, N]`` of the shapes in files, by the best of many rotations. Pairs that are kept are not done again."""
    settings, count = found.settings, len(found.names)
    pairs = list(combinations(range(count), 2))
    if kept.values and not quiet:
        print(f"going on: {len(kept.values)} of {len(pairs)} pairs are there from a call that was stopped")
    views = [_views(folder / name, settings) for name in found.names]
    bar = progress_bar(len(pairs), "comparing pairs", initial=len(kept.values), hidden=quiet)
    result = torch.zeros(count, count, dtype=torch.float64)
    try:
        for i, j in pairs:
            if (i, j) not in kept.values:
                kept.add((i, j), align(views[i], views[j], p=p).distance)
                bar.update(1)
            result[i, j] = kept.values[i, j]
    except KeyboardInterrupt:
        if kept.values:
            print(f"{len(kept.values)} of {len(pairs)} pairs are kept: the same command goes on with them", file=sys.stderr)
        raise
    finally:
        bar.close()
    return result + result.T


def _views(path: Path, settings: Settings) -> CachedTransforms:
    config = settings.ect
    shape = read(path, dtype=torch.float64, **settings.reading).normalized(config.normalize)
    grid = (config.num_directions, config.num_thresholds, config.largest_height)
    views = CachedTransforms(shape, *grid)
    return views if config.divide_by is None else CachedTransforms(_divided(views, config.divide_by), *grid)


def _divided(views: CachedTransforms, divide_by: DivideBy) -> Complex:
    """The shape with weights that divide its transform. Its peak is that from everywhere: the same if the shape is turned."""
    shape = views.complex
    weights = shape.weights or tuple(torch.ones(n, dtype=torch.float64) for n in shape.counts)
    seen = views.lookup[None].double() if divide_by == "peak" else views.transform  # the others do not depend on it
    size = divisors(seen, shape.offsets, divide_by)
    return Complex(shape.points, shape.simplices, weights=tuple(weight / size for weight in weights))
