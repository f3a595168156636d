"""The transform as a layer of a network."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from .. import rotations
from .._torch_internals import is_func_active, is_recording
from .._validation import check_bool, check_directions, check_finite, positive
from ..complexes import Complex, Shape, as_complex
from ..complexes.normalize import DivideBy, Normalize
from ..config import ECTConfig
from ..grid import scale_of_step
from ..variants import Variant

SAMPLED = 1000  # vertices whose heights are compared with the thresholds
FEW = 0.1  # share of heights between the thresholds: with fewer, curves are nearly constant


class ECTLayer(nn.Module):
    r"""Differentiable Euler characteristic transform with learnable directions.

    Takes a :class:`Complex` or anything :func:`as_complex` understands, and returns ``[B, T, H]``; with per-dimension
    channels it returns ``[B, K, T, H]`` with ``K = max_dim + 1``.

    **Scale and grid.** The sigmoid of a simplex rises from 12 % to 88 % over a height of ``4 / scale``. By default that is one
    step between thresholds (:func:`grid.scale_of_step`). If the rise is much shorter than a step, only the few vertices close
    to a threshold receive a gradient; if it is much longer, neighboring thresholds say the same. The paper uses 200.

    Args:
        dim: Dimension of the ambient space.
        num_directions: Number of directions, T. Ignored if ``directions`` are given.
        num_thresholds: Number of thresholds, H, evenly spaced in ``[-radius, radius]``.
        radius: Largest height; a little more than the largest norm of a point.
        scale: Steepness of the sigmoid; ``math.inf`` for the exact transform, which has no gradient. Default: the sigmoid
            rises over one step of the grid.
        directions: Initial directions ``[T, dim]``; by default evenly spread (:func:`directions.uniform`).
        learn_directions: Whether the directions are parameters. Default: if the scale is finite.
        on_sphere: Whether directions are normalized to unit length.
        learn_thresholds: Whether the thresholds are parameters. They stay in ascending order.
        learn_scale: Whether the scale is a parameter. It stays positive.
        rotate_directions: Whether to rotate the directions at random in training, for each shape of a batch anew: the same as
            rotating the shapes. Random numbers come from torch's global generator, as in dropout.
        normalize: ``"unit_ball"`` centers each shape at its centroid, which does not depend on the mesh, and scales it to
            largest norm 1; ``"center"`` only centers it; ``"vertices"`` is the unit ball about the mean of the vertices, as in
            the paper; ``None`` keeps the coordinates. On the CPU, the first pass warns if they lie far beyond
            the thresholds.
        divide_by: Divide the transform of each shape by its number of ``"vertices"`` or ``"simplices"`` (vertices included), or
            by its largest absolute value (``"peak"``). It never depends on another shape of the batch.
        variant: ``"ect"``, ``"sect"``, ``"superlevel"`` or ``"channels"`` (see :mod:`eulerscan.variants`).
        derivative: Whether to take the difference of each curve from one threshold to the next (:func:`derivative`).
        max_dim: Dimension of the last channel, with ``variant="channels"``: 1 for graphs, 2 for meshes. Default: ``dim``. The
            alternating sum of the channels, the Euler characteristic, says less than they do. ``torch.compile`` breaks its
            graph for meshes there, since it must know how many simplices there are of each dimension.
        device, dtype: Of directions, thresholds and scale. Shapes and result get this dtype (at least float32).

    Attributes:
        config: The :class:`~eulerscan.ECTConfig` of the layer.

    The state dict has ``weight`` (the directions), ``raw_thresholds`` (in any order) and ``log_scale``, learned or not.

    Example:
        >>> layer = ECTLayer(dim=3, num_directions=32, num_thresholds=24)
        >>> layer(torch.rand(8, 100, 3)).shape
        torch.Size([8, 32, 24])
    """

    weight: Tensor
    raw_thresholds: Tensor
    log_scale: Tensor
    _is_checked = False  # whether the heights of the first shapes were compared with the thresholds

    def __init__(
        self,
        dim: int,
        num_directions: int = 16,
        num_thresholds: int = 16,
        *,
        radius: float = 1.1,
        scale: float | None = None,
        directions: Tensor | None = None,
        learn_directions: bool | None = None,
        on_sphere: bool = True,
        learn_thresholds: bool = False,
        learn_scale: bool = False,
        rotate_directions: bool = False,
        normalize: Normalize | None = None,
        divide_by: DivideBy | None = None,
        variant: Variant = "ect",
        derivative: bool = False,
        max_dim: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        dim = positive(dim, "dim")
        if directions is not None:
            check_directions(directions, dim)
            if not directions.is_meta:
                check_finite(directions, "directions")
            num_directions = len(directions)
        self.dim = dim
        self.config = ECTConfig(
            num_directions=num_directions,
            num_thresholds=num_thresholds,
            radius=radius,
            scale=scale_of_step(num_thresholds, float(radius)) if scale is None else scale,
            variant=variant,
            derivative=derivative,
            normalize=normalize,
            divide_by=divide_by,
            max_dim=max_dim,
        )
        is_exact = math.isinf(self.config.scale)
        learn_directions = not is_exact if learn_directions is None else learn_directions
        learned = {"learn_directions": learn_directions, "learn_thresholds": learn_thresholds, "learn_scale": learn_scale}
        for name, value in {**learned, "on_sphere": on_sphere, "rotate_directions": rotate_directions}.items():
            check_bool(value, name)
            if is_exact and value and name in learned:
                raise ValueError(f"scale must be finite with {name}=True, got inf: the exact transform has no gradient.")
        self.on_sphere = on_sphere
        self.rotate_directions = rotate_directions
        like: dict[str, Any] = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        # For reset_parameters(). A copy, since the caller may modify the tensor.
        if directions is not None:
            directions = directions.detach().to("meta" if directions.is_meta else "cpu", copy=True)
        self.initial_directions = directions
        self._register("weight", torch.empty(num_directions, dim, **like), learn_directions)
        self._register("raw_thresholds", torch.empty(num_thresholds, **like), learn_thresholds)
        self._register("log_scale", torch.empty((), **like), learn_scale)
        self.reset_parameters()

    @classmethod
    def from_config(cls, dim: int, config: ECTConfig, **options: Any) -> ECTLayer:
        """A layer with the settings of a configuration. The options are those of the layer that a configuration lacks."""
        settings = {**vars(config), "radius": config.largest_height}
        return cls(dim, **settings, **options)

    def _register(self, name: str, tensor: Tensor, learn: bool) -> None:
        """A parameter if it is learned, else a buffer: the same key in the state dict either way."""
        if learn:
            self.register_parameter(name, nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Reset directions, thresholds and scale to their initial values."""
        config, initial = self.config, self.initial_directions
        self.weight.copy_(config.directions(self.dim) if initial is None else initial)
        self.raw_thresholds.copy_(config.thresholds())
        self.log_scale.fill_(math.log(config.scale))

    @property
    def num_channels(self) -> int:
        """Number of curves in each direction: K with per-dimension channels, else 1."""
        return self.config.num_channels(self.dim)

    @property
    def dtype(self) -> torch.dtype:
        """Of the transform: that of the directions, or float32 if they are of half precision."""
        return torch.promote_types(self.weight.dtype, torch.float32)

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
        """``[]``, positive: its logarithm is learned."""
        return self.log_scale.exp()

    def forward(self, shape: Shape) -> Tensor:
        """The transform ``[B, T, H]``, or ``[B, K, T, H]`` with per-dimension channels."""
        complex = as_complex(shape)
        complex = complex.to(dtype=torch.promote_types(complex.points.dtype, self.dtype))
        if complex.dim != self.dim:
            raise ValueError(f"shape must have points of dimension {self.dim}, the dim of this layer, got {complex.dim}.")
        directions = self.directions
        if not torch.compiler.is_compiling() and not self._is_checked:  # in this order: programs need not guard the flag
            self._check_heights(complex, directions)
        if self.rotate_directions and self.training:
            with torch.autocast(directions.device.type, enabled=False):
                directions = directions @ rotations.random(complex.num_complexes, self.dim).to(directions)
        return self.config.transform(complex, directions, self.thresholds, scale=self.scale, dtype=self.dtype)

    @torch.no_grad()
    def _check_heights(self, complex: Complex, directions: Tensor) -> None:
        """Warn, once, if most heights lie beyond the thresholds. Not on a GPU, where the host would have to wait."""
        points = complex.points
        if type(points) not in (Tensor, nn.Parameter) or is_recording() or is_func_active():  # no values to read
            return
        self._is_checked = True
        if self.config.in_unit_ball or not points.is_cpu or not self.weight.is_cpu or not len(points):
            return
        if self.config.num_thresholds == 1:  # nothing lies between thresholds
            return
        points = complex.normalized(self.config.normalize).points
        low, high = self.raw_thresholds.aminmax()
        heights = points[:: -(-len(points) // SAMPLED)] @ directions.to(points).T
        share = float(((low <= heights) & (heights <= high)).double().mean())
        if share < FEW:
            warnings.warn(
                f"Only {share:.0%} of the heights of the points lie between the first threshold, {low:g}, and the last, "
                f'{high:g}, so curves are nearly constant. Use normalize="unit_ball", or a larger radius.',
                stacklevel=3,
            )

    def extra_repr(self) -> str:
        learned = {name for name, _ in self.named_parameters(recurse=False)}
        words = {"weight": "directions", "raw_thresholds": "thresholds", "log_scale": "scale"}
        scale = self.config.scale if self.log_scale.is_meta else self.scale.item()
        options = {
            **{"dim": self.dim, **vars(self.config), "scale": float(f"{scale:g}")},  # any scale: training may diverge
            **{"on_sphere": self.on_sphere, "rotate_directions": self.rotate_directions},
            **{f"learn_{word}": name in learned for name, word in words.items()},
        }
        return ", ".join(f"{name}={value!r}" for name, value in options.items())
