"""The inverse problem: a transform is given, and the points are wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from .._validation import positive
from ..complexes import Shape
from ..functional import ect

FALL = 1e-3  # how much the curve of a cloud may fall, relative to its top, before it is taken for something else


@dataclass(frozen=True, eq=False)
class Transform:
    """A transform together with what it was computed with: a target to fit to where the shape itself is not at hand.

    Entry ``values[i, j]`` is the Euler characteristic at or below ``thresholds[j]`` in direction ``directions[i]``.

    Args:
        values: ``[T, H]``, or ``[1, T, H]`` as :func:`ect` returns it for one shape. Not normalised.
        directions: ``[T, dim]``; ``None`` where they are what is wanted (:func:`fitting.fit_directions`).
        thresholds: ``[H]``, ascending, two at least.
        scale: The scale that ``values`` were computed with.

    Example:
        >>> from eulerscan import directions, thresholds
        >>> target = Transform.of(torch.rand(50, 2), directions.circle(16), thresholds(32, radius=1.5))
        >>> target.values.shape, target.total
        (torch.Size([16, 32]), 50.0)
    """

    values: Tensor
    directions: Tensor | None
    thresholds: Tensor
    scale: float = math.inf

    def __post_init__(self) -> None:
        for name in ("values", "directions", "thresholds"):
            tensor = getattr(self, name)
            if name == "directions" and tensor is None:
                continue
            if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
                got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
                raise TypeError(f"{name} must be a torch.Tensor of floating point, got {got}.")
            if not bool(torch.isfinite(tensor).all()):
                raise ValueError(f"{name} must be finite, got {tensor[~torch.isfinite(tensor)][0].item()}.")
        if self.directions is not None and (self.directions.ndim != 2 or not self.directions.numel()):
            raise ValueError(f"directions must have shape [T, dim], got {list(self.directions.shape)}.")
        if self.thresholds.ndim != 1 or len(self.thresholds) < 2 or bool((self.thresholds.diff() <= 0).any()):
            raise ValueError(f"thresholds must be at least two ascending heights [H], got {self.thresholds.tolist()}.")
        values = self.values
        values = values[0] if values.ndim == 3 and len(values) == 1 else values
        expected = [len(values) if self.directions is None else len(self.directions), len(self.thresholds)]
        if list(values.shape) != expected or not len(values):
            hint = " Did you pass it transposed?" if list(values.shape) == expected[::-1] else ""
            raise ValueError(
                f"values must have one row a direction and one column a threshold, shape {expected}, "
                f"got {list(self.values.shape)}.{hint}"
            )
        if not self.scale > 0:  # NaN too
            raise ValueError(f"scale must be positive, got {self.scale}.")
        object.__setattr__(self, "values", values.detach().to(torch.promote_types(values.dtype, torch.float32)))
        object.__setattr__(self, "thresholds", self.thresholds.detach())
        object.__setattr__(self, "directions", None if self.directions is None else self.directions.detach())

    @classmethod
    def of(cls, shape: Shape, directions: Tensor, thresholds: Tensor, *, scale: float = math.inf) -> Transform:
        """The transform of one shape."""
        return cls(ect(shape, directions, thresholds, scale=scale), directions, thresholds, scale)

    @property
    def step(self) -> float:
        """The mean distance of two thresholds."""
        return (float(self.thresholds[-1]) - float(self.thresholds[0])) / (len(self.thresholds) - 1)

    @property
    def radius(self) -> float:
        """The largest height that is looked at."""
        return float(self.thresholds.abs().max())

    @property
    def total(self) -> float:
        """The Euler characteristic of the whole shape, for a cloud its number of points.

        What the curves come to at the last threshold. Where they are smooth, a point near the top of one curve is not yet
        counted in full there; it is near the bottom of the opposite one, which begins with what is missing. So a smooth
        transform needs directions in opposite pairs for this to be exact. Of others it is off by a few per cent if the scale
        is soft: give the number of points where it is known.
        """
        ends = self.values[:, -1] if math.isinf(self.scale) else self.values[:, -1] + self.values[:, 0]
        return float(ends.mean())

    def at(self, scale: float) -> Tensor:
        """``[T, H]``: nearly the values that a transform with a softer ``scale`` would have had.

        What a curve gains between two thresholds is spread evenly over the heights between them, and each part of it counts
        with a sigmoid. Two blurs add like variances. A scale at least as sharp as that of the values, or so sharp
        that the sigmoid rises within half a step, leaves the values as they are.
        """
        if scale >= self.scale or scale >= sharpest(self.step):
            return self.values
        added = scale if math.isinf(self.scale) else 1 / math.sqrt(scale**-2 - self.scale**-2)
        upper = self.thresholds.double()
        lower = torch.cat([2 * upper[:1] - upper[1:2], upper[:-1]])
        # The sigmoid of every threshold, averaged over the heights between lower and upper.
        area = softplus(added * (upper - lower[:, None])) - softplus(added * (upper - upper[:, None]))
        gains = pad(self.values.double(), (1, 0)).diff(dim=1)
        return (gains @ (area / (added * (upper - lower))[:, None])).to(self.values.dtype)


def sharpest(step: float) -> float:
    """The scale at which a sigmoid rises within half a step of the grid: thresholds see it as the exact transform."""
    return 8 / step


def back_project(
    transform: Transform,
    num_points: int | None = None,
    *,
    candidates: int | None = None,
    iterations: int = 20,
    rounds: int = 3,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Points ``[num_points, dim]`` whose transform is roughly the given one, found without descending from a random start.

    The derivative of a curve of a point cloud tells how many points lie between two thresholds. Spread back over the slabs of
    space that they were counted in, from all directions, these numbers give a density. The curves of that density are
    compared with the given ones, and the density is corrected by the ratio (expectation maximisation, as in emission
    tomography: it needs no filter, works in every dimension and with any directions, and the density stays positive).
    The density lives on random candidates, which are drawn again, finer, around those that carry weight.

    Args:
        transform: Of a point cloud, with its directions.
        num_points: As many as ``transform.total`` by default.
        candidates: How many, ten times ``num_points`` and at least 8,192 by default.
        iterations: Corrections for each set of candidates.
        rounds: Sets of candidates.
        generator: Where the candidates come from.

    Example:
        >>> cloud = torch.nn.functional.normalize(torch.randn(100, 2), dim=1)
        >>> from eulerscan import directions, thresholds
        >>> seen = Transform.of(cloud, directions.circle(32), thresholds(32))
        >>> back_project(seen).norm(dim=1).sub(1).abs().mean() < 0.05
        tensor(True)
    """
    directions = _cloud_directions(transform)
    num_points = max(1, round(transform.total)) if num_points is None else positive(num_points, "num_points")
    count = max(8192, 10 * num_points) if candidates is None else positive(candidates, "candidates")
    dim, num_bins = directions.shape[1], len(transform.thresholds) + 1
    gains = pad(pad(transform.values.double(), (1, 0)).diff(dim=1).clamp(min=0), (0, 1))  # none above the last threshold
    seen = (gains / gains.sum(dim=1, keepdim=True)).reshape(-1)
    width = 2 * transform.radius / float(directions.norm(dim=1).median())
    places = uniform_in_ball(count, dim, generator).to(directions) * (width / 2)
    width /= count ** (1 / dim)
    first = torch.arange(len(directions), device=directions.device) * num_bins
    weights = equal = torch.full((count,), 1 / count, dtype=torch.float64, device=directions.device)
    for number in range(positive(rounds, "rounds")):
        if number:
            places, weights = _draw(places, weights, count, width, generator), equal
            width /= 2
        heights = (places @ directions.T).contiguous()
        bins = (torch.searchsorted(transform.thresholds.to(heights), heights) + first).reshape(-1)  # [count * T]
        for _ in range(iterations):
            spread = weights[:, None].expand(-1, len(directions)).reshape(-1)
            projected = torch.zeros_like(seen).index_add(0, bins, spread)
            ratio = seen / projected.clamp(min=1e-12)
            weights = weights * ratio.index_select(0, bins).view(count, -1).mean(dim=1)
            weights = weights / weights.sum()
    # Apart from each other: points at one place would get the same gradient for ever.
    return _draw(places, weights, num_points, width, generator)


def _cloud_directions(transform: Transform) -> Tensor:
    """The directions of the transform of a cloud."""
    if not isinstance(transform, Transform):
        raise TypeError(f"transform must be a Transform, got {type(transform).__name__}. Transform(values, ...) makes one.")
    if transform.directions is None:
        raise ValueError("transform must have directions to find points, got None.")
    values = transform.values
    top, fall = float(values.max()), float(-values.diff(dim=1).min())
    if top <= 0 or fall > FALL * top or float(values[:, -1].min()) <= 0:
        falls = fall > FALL * top
        row = int((values.diff(dim=1).amin(dim=1) if falls else values[:, -1]).argmin())
        what = f"falls by {fall:g}" if falls else f"ends at {float(values[row, -1]):g}"
        raise ValueError(
            f"transform must be that of a point cloud, whose curves rise from 0 to the number of points, got one that "
            f"{what} (row {row}). Curves of graphs and meshes fall: to fit to those, give their connectivity as start."
        )
    return transform.directions


def uniform_in_ball(n: int, dim: int, generator: torch.Generator | None) -> Tensor:
    """``n`` points, uniform in the unit ball, in float64."""
    normal = torch.randn(n, dim, generator=generator, dtype=torch.float64)
    radius = torch.rand(n, 1, generator=generator, dtype=torch.float64) ** (1 / dim)
    return torch.nn.functional.normalize(normal, dim=1) * radius


def _draw(places: Tensor, weights: Tensor, n: int, width: float, generator: torch.Generator | None) -> Tensor:
    """``n`` points near the places, as many in each neighbourhood as its weight says, in cubes of the given width."""
    order = _neighbours_together(places)
    places, weights = places[order], weights[order]
    steps = torch.arange(n, dtype=torch.float64) + torch.rand(1, generator=generator, dtype=torch.float64)
    up_to = weights.cumsum(dim=0)
    index = torch.searchsorted(up_to, (steps / n).to(up_to) * up_to[-1]).clamp(max=len(places) - 1)
    jitter = torch.rand(n, places.shape[1], generator=generator, dtype=torch.float64) - 0.5
    return places[index] + width * jitter.to(places)


def _neighbours_together(places: Tensor) -> Tensor:
    """An order in which neighbours in space mostly follow each other: along a curve through ever finer cubes (Morton)."""
    dim = places.shape[1]
    levels = max(1, min(10, 62 // dim))
    low, high = places.amin(dim=0), places.amax(dim=0)
    cells = ((places - low) / (high - low).clamp(min=1e-30) * (2**levels - 1)).long()
    code = torch.zeros(len(places), dtype=torch.int64, device=places.device)
    for level in reversed(range(levels)):
        for axis in range(min(dim, 62)):
            code = 2 * code + (cells[:, axis] >> level & 1)
    return code.argsort()
