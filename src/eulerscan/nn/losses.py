"""Losses: distance between the transforms of shapes, and smoothness of a mesh."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from .._validation import check_choice
from ..complexes import Complex, Shape
from ..complexes.normalize import DivideBy, Normalize
from ..grid import soft_scale
from .layers import ECTLayer

Norm = Literal["squared", "absolute", "largest"]
Reduction = Literal["mean", "sum", "none"]


class ECTLoss(nn.Module):
    """Distance between the normalized transforms of shapes, as a loss or as a regularizer in any model.

    By default the mean over directions and thresholds of the squared difference of the two transforms, each divided by the
    number of vertices of its own shape, so that clouds of different sizes are comparable. The transform sums over points, so
    neither their order nor their number has to agree, and no points are matched. Gradients reach the points (and weights) of
    both arguments.

    Args:
        dim: Dimension of the ambient space.
        num_directions: Number of directions, T. Ignored if ``directions`` are given.
        num_thresholds: Number of thresholds, H, evenly spaced in ``[-radius, radius]``.
        radius: Largest height; points farther out only count as outside.
        scale: Steepness of the sigmoid. By default ``8.8 / radius``, the paper's 8 for a radius of 1.1: soft enough to pull a
            point across half of the ball, where a sharp transform pulls it only to the nearest threshold.
        directions: ``[T, dim]``; by default evenly spread over the sphere. For clouds a half sphere suffices
            (:func:`directions.half_sphere`); for graphs and meshes it does not, since an edge has the height of its upper end.
        divide_by: As in :class:`ECTLayer`. For graphs and meshes of equal connectivity every choice is the same up to a factor;
            for meshes of different resolution use ``None``, since their curves count components and holes.
        normalize: ``"unit_ball"`` makes the loss invariant to position and size, ``"center"`` to position alone.
        norm: ``"squared"`` is the mean squared difference, ``"absolute"`` the mean of its absolute value,
            ``"largest"`` the largest absolute value.
        reduction: Over the shapes of a batch: ``"mean"``, ``"sum"``, or ``"none"`` for one number per shape, ``[B]``.
        device, dtype: Of the directions and thresholds.

    Example:
        >>> loss = ECTLoss(dim=2)
        >>> circle = torch.nn.functional.normalize(torch.randn(50, 2), dim=1)
        >>> points = torch.zeros(30, 2, requires_grad=True)
        >>> loss(points, circle).backward()
        >>> points.grad.shape
        torch.Size([30, 2])
        >>> loss(circle, circle.flip(0)).item() < 1e-12
        True
    """

    def __init__(
        self,
        dim: int,
        num_directions: int = 64,
        num_thresholds: int = 64,
        *,
        radius: float = 1.1,
        scale: float | None = None,
        directions: Tensor | None = None,
        divide_by: DivideBy | None = "vertices",
        normalize: Normalize | None = None,
        norm: Norm = "squared",
        reduction: Reduction = "mean",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_choice(norm, "norm", get_args(Norm))
        check_choice(reduction, "reduction", get_args(Reduction))
        self.norm = norm
        self.reduction = reduction
        self.layer = ECTLayer(
            dim,
            num_directions,
            num_thresholds,
            radius=radius,
            scale=soft_scale(radius) if scale is None else scale,
            directions=directions,
            learn_directions=False,
            on_sphere=False,
            normalize=normalize,
            divide_by=divide_by,
            device=device,
            dtype=dtype,
        )

    def transform(self, shape: Shape) -> Tensor:
        """The normalized transform ``[B, T, H]``: compute it once for a fixed target."""
        result: Tensor = self.layer(shape)
        return result

    def forward(self, shape: Shape, target: Shape | None = None, *, transform: Tensor | None = None) -> Tensor:
        """Distance of ``shape`` from ``target``, or from a given ``transform``.

        Args:
            shape: One or many complexes, or anything :func:`as_complex` understands.
            target: As many as in ``shape``, or one for all of them.
            transform: What :meth:`transform` returned for the target, instead of the target.
        """
        if (target is None) == (transform is None):
            got = "neither" if target is None else "both"
            raise ValueError(f"target or transform must be given, exactly one of them, got {got}.")
        ours = self.transform(shape)
        theirs = self.transform(target) if transform is None else transform
        if theirs.shape[1:] != ours.shape[1:] or len(theirs) not in (1, len(ours)):
            name, hint = ("transform", " Is it the result of transform()?") if target is None else ("target", "")
            raise ValueError(
                f"{name} must give a transform of shape {list(ours.shape)} like the {len(ours)} shapes (or 1 for all of "
                f"them), got {list(theirs.shape)}.{hint}"
            )
        difference = ours - theirs
        if self.norm == "squared":
            distance = difference.square().mean(dim=(1, 2))
        elif self.norm == "absolute":
            distance = difference.abs().mean(dim=(1, 2))
        else:
            distance = difference.abs().amax(dim=(1, 2))
        if self.reduction == "none":
            return distance
        return distance.mean() if self.reduction == "mean" else distance.sum()

    def extra_repr(self) -> str:
        return f"norm={self.norm!r}, reduction={self.reduction!r}"


def edge_lengths(complex: Complex) -> Tensor:
    """``[n]``: the length of every edge.

    >>> edge_lengths(Complex(torch.tensor([[0., 0], [3, 4]]), [torch.tensor([[0], [1]])]))
    tensor([5.])
    """
    tail, head = _edges(complex)
    lengths: Tensor = torch.linalg.vector_norm(complex.points[head] - complex.points[tail], dim=1)
    return lengths


def edge_length_loss(complex: Complex, lengths: Tensor) -> Tensor:
    """Mean squared relative change of the edges from the given ``lengths`` ``[n]``: 0 for none, 1 for edges shrunk to nothing.

    As a regularizer it keeps a mesh or graph from tearing or folding. :func:`edge_lengths` measures the lengths to keep.
    Edges of length 0 do not count.
    """
    now = edge_lengths(complex)
    if lengths.shape != now.shape:
        raise ValueError(f"lengths must have one entry per edge, shape {list(now.shape)}, got {list(lengths.shape)}.")
    measurable = lengths > 0
    change: Tensor = now[measurable] / lengths[measurable] - 1
    return change.square().sum() / max(1, len(change))


def laplacian_loss(complex: Complex) -> Tensor:
    """Roughness of a mesh or graph: distance of vertices from the mean of their neighbors.

    The mean squared distance, relative to the mean squared edge length, so that neither size nor units matter. It is almost 0
    for a flat regular mesh and about 1 for a spike at every vertex. Isolated vertices do not count.

    >>> six = torch.arange(6)
    >>> path = Complex(torch.stack([six.float(), torch.zeros(6)], dim=1), [torch.stack([six[:-1], six[1:]])])
    >>> laplacian_loss(path)  # only the two ends are away from the mean of their neighbors
    tensor(0.3333)
    """
    points = complex.points
    tail, head = _edges(complex)
    ends, neighbors = torch.cat([tail, head]), torch.cat([head, tail])
    degree = points.new_zeros(len(points)).index_add(0, ends, points.new_ones(len(ends)))
    sums = torch.zeros_like(points).index_add(0, ends, points[neighbors])
    connected = degree > 0
    away = points[connected] - sums[connected] / degree[connected, None]
    edges = (points[head] - points[tail]).square().sum(dim=1).mean()
    return away.square().sum(dim=1).mean() / edges.clamp(min=torch.finfo(points.dtype).tiny)


def _edges(complex: Complex) -> tuple[Tensor, Tensor]:
    tail, head = complex.of_dim(1)
    if not len(tail):
        raise ValueError(f"complex must have edges, got {complex!r}. complex.closure() adds those of triangles.")
    return tail, head
