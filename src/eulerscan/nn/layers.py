"""The transform as a layer of a network."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from .. import directions as spheres
from .._validation import check_radius, positive
from ..complexes.coerce import Shape, as_complex
from ..complexes.normalize import placed
from ..dividing import DivideBy, check_divide_by, divided
from ..functional import ect
from ..functional import thresholds as even_thresholds
from ..variants import channels


class ECTLayer(nn.Module):
    r"""Differentiable Euler characteristic transform with learnable directions.

    Takes a :class:`Complex` or anything :func:`as_complex` understands, and returns ``[B, T, H]``; with ``max_dim`` it is
    ``[B, K, T, H]`` with ``K = max_dim + 1``.

    **Scale and grid.** The sigmoid of a simplex rises from 12 % to 88 % over a height of ``4 / scale``. What matters is how
    that compares with the step of the grid: where the rise is much shorter than a step, only the few vertices
    close to a threshold receive a gradient; where it is much longer, neighbouring thresholds say the same. By default the
    rise takes one step, ``scale = 4 / step`` with ``step = 2 radius / (num_thresholds - 1)``. Give ``scale_in_steps``
    to make it take another number of steps, or ``scale`` for the number itself (the paper uses 200).

    Args:
        dim: Dimension of the space that holds the points.
        num_directions: T. Not needed if ``directions`` are given.
        num_thresholds: H, evenly spaced in ``[-radius, radius]``.
        radius: Largest height that is looked at; a little more than the norm of the furthest point.
        scale: Steepness of the sigmoid; ``math.inf`` for the exact transform, through which no gradient passes.
        scale_in_steps: Height over which the sigmoid rises, in steps of the grid. Not together with ``scale``.
        directions: Initial directions ``[T, dim]``; by default evenly spread (:func:`directions.uniform`).
        learn_directions: Whether training changes the directions.
        on_sphere: Whether the directions are kept at unit length.
        learn_thresholds: Whether training changes the thresholds. They stay in ascending order.
        learn_scale: Whether training changes the scale. It stays positive.
        unit_ball: Whether to centre each shape and scale it to the unit ball first.
        centre: Whether to centre each shape and keep its size, in place of ``unit_ball``.
        divide_by: What the transform of each shape is divided by: its number of ``"vertices"`` or of ``"simplices"``, vertices
            included, its largest absolute value (``"peak"``), or ``None`` for nothing. Never by anything of another shape
            in the batch.
        max_dim: Give it to have vertices, edges, triangles and so on apart (:func:`channels`), up to simplices of this
            dimension: 1 for graphs, 2 for meshes. Their alternating sum, the Euler characteristic, says less than they do.
            ``torch.compile`` breaks its graph for meshes there, since it must know how many there are of each.
        device, dtype: Of the directions, thresholds and scale. Shapes are converted to this dtype, and so is the result
            (float32 at least).

    The state holds ``weight`` (the directions), ``raw_thresholds`` (in any order) and ``log_scale``, learned or not.

    Example:
        >>> layer = ECTLayer(dim=3, num_directions=32, num_thresholds=24)
        >>> layer(torch.rand(8, 100, 3)).shape
        torch.Size([8, 32, 24])
    """

    weight: Tensor
    raw_thresholds: Tensor
    log_scale: Tensor

    def __init__(
        self,
        dim: int,
        num_directions: int = 16,
        num_thresholds: int = 16,
        *,
        radius: float = 1.1,
        scale: float | None = None,
        scale_in_steps: float | None = None,
        directions: Tensor | None = None,
        learn_directions: bool = True,
        on_sphere: bool = True,
        learn_thresholds: bool = False,
        learn_scale: bool = False,
        unit_ball: bool = False,
        centre: bool = False,
        divide_by: DivideBy | None = None,
        max_dim: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if directions is not None:
            _check_directions(directions, dim)
        check_divide_by(divide_by)
        for name, count in (("dim", dim), ("num_directions", num_directions), ("num_thresholds", num_thresholds)):
            positive(count, name)
        if max_dim is not None and (isinstance(max_dim, bool) or not isinstance(max_dim, int)):
            raise TypeError(f"max_dim must be an int, got {type(max_dim).__name__}.")
        if max_dim is not None and max_dim < 0:
            raise ValueError(f"max_dim must be at least 0, got {max_dim}.")
        self.dim = dim
        self.num_directions = num_directions if directions is None else len(directions)
        self.num_thresholds = num_thresholds
        self.radius = radius
        self.on_sphere = on_sphere
        self.unit_ball = unit_ball and not centre
        self.centre = centre
        self.divide_by = divide_by
        self.max_dim = max_dim
        self.initial_scale = _initial_scale(scale, scale_in_steps, num_thresholds, radius)
        if learn_scale and math.isinf(self.initial_scale):
            raise ValueError("learn_scale needs a finite scale to begin with, got inf.")
        like: dict[str, Any] = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        # For reset_parameters(); a copy, since the caller's tensor may change.
        self.initial_directions = None if directions is None else directions.detach().to("cpu", copy=True)
        self._hold("weight", torch.empty(self.num_directions, dim, **like), learn_directions)
        self._hold("raw_thresholds", torch.empty(num_thresholds, **like), learn_thresholds)
        self._hold("log_scale", torch.empty((), **like), learn_scale)
        self.reset_parameters()

    def _hold(self, name: str, tensor: Tensor, learn: bool) -> None:
        """A parameter if it is learned, else a buffer: the same key in the state either way."""
        if learn:
            self.register_parameter(name, nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Go back to the directions, thresholds and scale of the beginning."""
        initial = self.initial_directions
        self.weight.copy_(spheres.uniform(self.num_directions, self.dim, dtype=torch.float64) if initial is None else initial)
        self.raw_thresholds.copy_(even_thresholds(self.num_thresholds, self.radius, dtype=torch.float64))
        self.log_scale.fill_(math.log(self.initial_scale))

    @property
    def num_channels(self) -> int:
        """How many curves each direction has: K, or 1 without ``max_dim``."""
        return 1 if self.max_dim is None else 1 + self.max_dim

    @property
    def directions(self) -> Tensor:
        """``[T, dim]``, of unit length if ``on_sphere``."""
        return nn.functional.normalize(self.weight, dim=-1) if self.on_sphere else self.weight

    @property
    def thresholds(self) -> Tensor:
        """``[H]``, ascending: sorted anew, since training may let two of them pass each other."""
        return self.raw_thresholds.sort().values

    @property
    def scale(self) -> Tensor:
        """``[]``, positive: its logarithm is what is learned."""
        return self.log_scale.exp()

    def forward(self, shape: Shape) -> Tensor:
        """The transform ``[B, T, H]``, or with ``max_dim`` ``[B, K, T, H]``, of anything :func:`as_complex` understands."""
        complex = as_complex(shape).to(dtype=torch.promote_types(self.weight.dtype, torch.float32))
        if complex.dim != self.dim:
            raise ValueError(
                f"shape must have points of dimension {self.dim}, which this layer was made for, got {complex.dim}."
            )
        complex = placed(complex, unit_ball=self.unit_ball, centre=self.centre)
        grid = (self.directions, self.thresholds)
        if self.max_dim is None:
            transform = ect(complex, *grid, scale=self.scale)
        else:
            transform = channels(complex, *grid, scale=self.scale, max_dim=self.max_dim)
        return divided(transform, complex, self.divide_by)

    def extra_repr(self) -> str:
        learned = [name for name, _ in self.named_parameters(recurse=False)]
        words = {"weight": "directions", "raw_thresholds": "thresholds", "log_scale": "scale"}
        options = "".join(f", learn_{word}={name in learned}" for name, word in words.items())
        scale = self.initial_scale if self.log_scale.is_meta else self.scale.item()
        return (
            f"dim={self.dim}, num_directions={self.num_directions}, num_thresholds={self.num_thresholds}, "
            f"radius={self.radius}, scale={scale:g}, on_sphere={self.on_sphere}{options}, "
            f"unit_ball={self.unit_ball}, centre={self.centre}, divide_by={self.divide_by!r}, max_dim={self.max_dim}"
        )


def _check_directions(directions: Tensor, dim: int) -> None:
    if not isinstance(directions, Tensor) or not directions.is_floating_point():
        got = directions.dtype if isinstance(directions, Tensor) else type(directions).__name__
        raise TypeError(f"directions must be a torch.Tensor of floating point, got {got}.")
    if directions.ndim != 2 or directions.shape[1] != dim or not len(directions):
        raise ValueError(f"directions must have shape [T, {dim}] for dim={dim}, got {list(directions.shape)}.")
    if not bool(torch.isfinite(directions).all()):
        raise ValueError(f"directions must be finite, got {directions[~torch.isfinite(directions)][0].item()}.")


def _initial_scale(scale: float | None, in_steps: float | None, num_thresholds: int, radius: float) -> float:
    check_radius(radius)
    if scale is not None and in_steps is not None:
        raise ValueError(f"scale and scale_in_steps say the same thing twice, got {scale} and {in_steps}. Give one.")
    name, value = ("scale", scale) if scale is not None else ("scale_in_steps", 1.0 if in_steps is None else in_steps)
    if isinstance(value, bool) or not isinstance(value, Real | float | int):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    if not value > 0:  # NaN too
        raise ValueError(f"{name} must be positive, got {value}.")
    step = 2 * radius / max(1, num_thresholds - 1)
    return float(value) if scale is not None else 4 / (value * step)
