"""The inverse problem: find points from a transform alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from .._validation import check_finite, check_floating, positive, positive_number, set_fields
from ..complexes import Shape
from ..functional import ect

MAX_DECREASE = 1e-3  # of a curve, relative to its maximum: curves of point clouds do not decrease


@dataclass(frozen=True, eq=False)
class TransformTarget:
    """A transform with its grid: a target to fit to when the shape itself is not available.

    Entry ``values[i, j]`` is the Euler characteristic at or below ``thresholds[j]`` in direction ``directions[i]``.

    Args:
        values: ``[T, H]``, or ``[1, T, H]`` as :func:`ect` returns it for one shape. Not normalized.
        directions: ``[T, dim]``, or ``None`` to fit them (:func:`fitting.fit_directions`).
        thresholds: ``[H]``, ascending, at least two.
        scale: The scale that ``values`` were computed with.

    Example:
        >>> from eulerscan import directions, thresholds
        >>> target = TransformTarget.of(torch.rand(50, 2), directions.circle(16), thresholds(32, radius=1.5))
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
            check_floating(tensor, name)
            check_finite(tensor, name)
        if self.directions is not None and (self.directions.ndim != 2 or not self.directions.numel()):
            raise ValueError(f"directions must have shape [T, dim], got {list(self.directions.shape)}.")
        if self.thresholds.ndim != 1 or len(self.thresholds) < 2 or bool((self.thresholds.diff() <= 0).any()):
            raise ValueError(f"thresholds must be two or more ascending heights [H], got {self.thresholds.tolist()}.")
        values = self.values
        values = values[0] if values.ndim == 3 and len(values) == 1 else values
        expected = [len(values) if self.directions is None else len(self.directions), len(self.thresholds)]
        if list(values.shape) != expected or not len(values):
            hint = " Did you pass it transposed?" if list(values.shape) == expected[::-1] else ""
            raise ValueError(
                f"values must have one row per direction and one column per threshold, shape {expected}, "
                f"got {list(self.values.shape)}.{hint}"
            )
        positive_number(self.scale, "scale")
        set_fields(
            self,
            values=values.detach().to(torch.promote_types(values.dtype, torch.float32)),
            thresholds=self.thresholds.detach(),
            directions=None if self.directions is None else self.directions.detach(),
        )

    @classmethod
    def of(cls, shape: Shape, directions: Tensor, thresholds: Tensor, *, scale: float = math.inf) -> TransformTarget:
        """Transform one shape."""
        return cls(ect(shape, directions, thresholds, scale=scale), directions, thresholds, scale)

    @property
    def step(self) -> float:
        """Mean spacing of the thresholds."""
        return (float(self.thresholds[-1]) - float(self.thresholds[0])) / (len(self.thresholds) - 1)

    @property
    def radius(self) -> float:
        """Largest absolute threshold."""
        return float(self.thresholds.abs().max())

    @property
    def total(self) -> float:
        """Euler characteristic of the whole shape; for a point cloud, its number of points.

        This is the value of the curves at the last threshold. A smooth curve has not yet counted points near the top in full;
        the curve in the opposite direction starts with the missing part. So this is exact for smooth transforms only if
        directions come in opposite pairs. Otherwise, at a soft scale, it is off by a few percent: give the number of points if
        you know it.
        """
        ends = self.values[:, -1] if math.isinf(self.scale) else self.values[:, -1] + self.values[:, 0]
        return float(ends.mean())

    def smoothed(self, scale: float) -> Tensor:
        """``[T, H]``: approximate values of the transform at a softer ``scale``.

        The increase of a curve between two thresholds is spread evenly over the heights between them and convolved with the
        sigmoid. Widths add like variances. The values are unchanged if the scale is as sharp as their own, or so sharp that the
        sigmoid rises within half a step.
        """
        if scale >= self.scale or scale >= sharpest_scale(self.step):
            return self.values
        added = scale if math.isinf(self.scale) else 1 / math.sqrt(scale**-2 - self.scale**-2)
        upper = self.thresholds.double()
        lower = torch.cat([2 * upper[:1] - upper[1:2], upper[:-1]])
        # The sigmoid at every threshold, averaged over the heights between lower and upper.
        area = softplus(added * (upper - lower[:, None])) - softplus(added * (upper - upper[:, None]))
        increases = pad(self.values.double(), (1, 0)).diff(dim=1)
        return (increases @ (area / (added * (upper - lower))[:, None])).to(self.values.dtype)


def sharpest_scale(step: float) -> float:
    """The scale at which the sigmoid rises within half a step of the grid: practically the exact transform."""
    return 8 / step


def back_project(
    target: TransformTarget,
    num_points: int | None = None,
    *,
    candidates: int | None = None,
    iterations: int = 20,
    rounds: int = 3,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Points ``[num_points, dim]`` whose transform is roughly the target, without gradient descent.

    The derivative of a curve of a point cloud is the number of points between two thresholds. Back-projected from all
    directions, these counts give a density, which is refined by expectation maximization (MLEM), as in emission tomography: it
    needs no filter, works in any dimension and with any directions, and keeps the density positive. The density is a weighted
    set of random candidates, resampled more finely around those with large weights.

    Args:
        target: Transform of a point cloud, with directions.
        num_points: Default: ``target.total``.
        candidates: Number of candidates. Default: ``10 * num_points``, at least 8,192.
        iterations: EM iterations per round.
        rounds: Number of times that candidates are sampled.
        generator: Random numbers for the candidates.

    Example:
        >>> cloud = torch.nn.functional.normalize(torch.randn(100, 2), dim=1)
        >>> from eulerscan import directions, thresholds
        >>> target = TransformTarget.of(cloud, directions.circle(32), thresholds(32))
        >>> back_project(target).norm(dim=1).sub(1).abs().mean() < 0.05
        tensor(True)
    """
    directions = _cloud_directions(target)
    num_points = max(1, round(target.total)) if num_points is None else positive(num_points, "num_points")
    count = max(8192, 10 * num_points) if candidates is None else positive(candidates, "candidates")
    dim, num_bins = directions.shape[1], len(target.thresholds) + 1
    # Number of points below the first threshold, between two, and above the last one: none.
    counts = pad(pad(target.values.double(), (1, 0)).diff(dim=1).clamp(min=0), (0, 1))
    measured = (counts / counts.sum(dim=1, keepdim=True)).reshape(-1)
    width = 2 * target.radius / float(directions.norm(dim=1).median())
    points = uniform_in_ball(count, dim, generator).to(directions) * (width / 2)
    width /= count ** (1 / dim)
    first_bin = torch.arange(len(directions), device=directions.device) * num_bins
    weights = equal = torch.full((count,), 1 / count, dtype=torch.float64, device=directions.device)
    for number in range(positive(rounds, "rounds")):
        if number:
            points, weights = _resample(points, weights, count, width, generator), equal
            width /= 2
        heights = (points @ directions.T).contiguous()
        bins = (torch.searchsorted(target.thresholds.to(heights), heights) + first_bin).reshape(-1)  # [count * T]
        for _ in range(iterations):
            repeated = weights[:, None].expand(-1, len(directions)).reshape(-1)
            projected = torch.zeros_like(measured).index_add(0, bins, repeated)
            ratio = measured / projected.clamp(min=1e-12)
            weights = weights * ratio.index_select(0, bins).view(count, -1).mean(dim=1)
            weights = weights / weights.sum()
    # With jitter: coincident points would keep the same gradient and never separate.
    return _resample(points, weights, num_points, width, generator)


def _cloud_directions(target: TransformTarget) -> Tensor:
    """Directions of the transform of a point cloud."""
    if not isinstance(target, TransformTarget):
        raise TypeError(
            f"target must be a TransformTarget, got {type(target).__name__}. TransformTarget(values, ...) makes one."
        )
    if target.directions is None:
        raise ValueError("target must have directions to find points, got None.")
    values = target.values
    top, decrease = float(values.max()), float(-values.diff(dim=1).min())
    decreases = decrease > MAX_DECREASE * top
    if top <= 0 or decreases or float(values[:, -1].min()) <= 0:
        row = int((values.diff(dim=1).amin(dim=1) if decreases else values[:, -1]).argmin())
        what = f"decreases by {decrease:g}" if decreases else f"ends at {float(values[row, -1]):g}"
        raise ValueError(
            "target must be the transform of a point cloud, whose curves increase from 0 to the number of points, got one that "
            f"{what} (row {row}). To fit to a graph or mesh, give its connectivity as start."
        )
    return target.directions


def uniform_in_ball(n: int, dim: int, generator: torch.Generator | None) -> Tensor:
    """``n`` random points, uniform in the unit ball, in float64."""
    normal = torch.randn(n, dim, generator=generator, dtype=torch.float64)
    radius = torch.rand(n, 1, generator=generator, dtype=torch.float64) ** (1 / dim)
    return torch.nn.functional.normalize(normal, dim=1) * radius


def _resample(points: Tensor, weights: Tensor, n: int, width: float, generator: torch.Generator | None) -> Tensor:
    """Systematic resampling: ``n`` of the points, in proportion to their weights, jittered within cubes of this width."""
    order = _morton_order(points)  # along it, each neighborhood gets its proportion
    points, weights = points[order], weights[order]
    steps = torch.arange(n, dtype=torch.float64) + torch.rand(1, generator=generator, dtype=torch.float64)
    cumulative = weights.cumsum(dim=0)
    index = torch.searchsorted(cumulative, (steps / n).to(cumulative) * cumulative[-1]).clamp(max=len(points) - 1)
    jitter = torch.rand(n, points.shape[1], generator=generator, dtype=torch.float64) - 0.5
    return points[index] + width * jitter.to(points)


def _morton_order(points: Tensor) -> Tensor:
    """Order along a Morton curve, on which neighbors in space are mostly close."""
    dim = points.shape[1]
    levels = max(1, min(10, 62 // dim))
    low, high = points.amin(dim=0), points.amax(dim=0)
    cells = ((points - low) / (high - low).clamp(min=1e-30) * (2**levels - 1)).long()
    code = torch.zeros(len(points), dtype=torch.int64, device=points.device)
    for level in reversed(range(levels)):
        for axis in range(min(dim, 62)):
            code = 2 * code + (cells[:, axis] >> level & 1)
    return code.argsort()
