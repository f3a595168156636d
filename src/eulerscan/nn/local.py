"""The local transform as a positional encoding of the nodes of a graph, or of the vertices of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from .._validation import check_choice, positive
from ..complexes import Shape, as_complex
from ..complexes.neighborhoods import given_size
from ..complexes.normalize import Normalize
from ..local import local_ect
from .layers import ECTLayer

Projection = Literal["linear", "conv", "deepsets", "attention"]
"""What turns the transform of a neighborhood into a vector: a linear map; a convolution along the curves; the mean over
directions of an embedding of their curves; or attention between directions, then the mean."""


class LocalECT(nn.Module):
    """Positional encoding by the local transform: a vector for every vertex, from the shape of its neighborhood.

    This is LEAP (local ECT and projection). Put it in front of any network on graphs::

        x = torch.cat([data.x, encode(data)], dim=1)

    With fixed directions, and coordinates that are not learned, the transform never changes. Compute it once with
    :class:`eulerscan.convert.AddLocalECT` or :func:`local_ect`, with the ``scale`` of this module, since their default is
    the exact transform, and call :meth:`project` in each step. ``torch.compile`` breaks its graph at the transform and compiles
    the projection.

    Args:
        dim: Number of coordinates of a vertex.
        out_features: Length of the vectors.
        hops, radius, k: One or several sizes of the neighborhood, as in :func:`neighborhoods`. Default: ``hops=1``. Clouds
            have no edges, so they need ``k`` or ``radius``.
        num_directions, num_thresholds, scale, directions, learn_directions: As in :class:`ECTLayer`. LEAP has scale 128.
        projection: ``"linear"``, ``"conv"``, ``"deepsets"`` or ``"attention"``.
        append_directions: Whether attention also sees the direction of each curve.
        hidden: Width inside the projection; not used by ``"linear"``.
        max_vertices: As in :func:`neighborhoods`.
        normalize: As in :func:`local_ect`.

    Example:
        >>> from eulerscan import Complex
        >>> path = Complex(torch.rand(4, 2), [torch.tensor([[0, 1, 2], [1, 2, 3]])])
        >>> LocalECT(2)(path).shape
        torch.Size([4, 10])
    """

    def __init__(
        self,
        dim: int,
        out_features: int = 10,
        *,
        hops: int | Sequence[int] | None = None,
        radius: float | Sequence[float] | None = None,
        k: int | Sequence[int] | None = None,
        num_directions: int = 16,
        num_thresholds: int = 16,
        scale: float | None = None,
        directions: Tensor | None = None,
        learn_directions: bool | None = None,
        projection: Projection = "linear",
        append_directions: bool = False,
        hidden: int = 32,
        max_vertices: int | None = None,
        normalize: Normalize | None = "vertices",
    ) -> None:
        super().__init__()
        check_choice(projection, "projection", get_args(Projection))
        for name, value in (("out_features", out_features), ("hidden", hidden)):
            positive(value, name)
        if append_directions and projection != "attention":
            raise ValueError(f"append_directions must be False unless projection is 'attention', got {projection!r}.")
        given = given_size(hops, radius, k)
        self.size, self.has_default_size = given or {"hops": 1}, not given
        self.max_vertices, self.normalize, self.append_directions = max_vertices, normalize, append_directions
        self.projection, self.out_features = projection, out_features
        self.layer = ECTLayer(
            dim, num_directions, num_thresholds, scale=scale, directions=directions, learn_directions=learn_directions
        )
        ((_, sizes),) = self.size.items()
        self.num_sizes = len(sizes) if isinstance(sizes, Sequence) else 1
        curves, thresholds = len(self.layer.directions), num_thresholds
        width = self.num_sizes * thresholds + (dim if append_directions else 0)
        if projection == "linear":
            self.embed: nn.Module = nn.Linear(self.num_sizes * curves * thresholds, out_features)
        elif projection == "conv":
            self.embed = nn.Sequential(
                nn.Conv1d(self.num_sizes * curves, hidden, 3, padding=1), nn.ReLU(), nn.Conv1d(hidden, hidden, 3, padding=1)
            )
        else:
            self.embed = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.attention = nn.MultiheadAttention(hidden, 1, batch_first=True) if projection == "attention" else None
        self.head = nn.Identity() if projection == "linear" else nn.Linear(hidden, out_features)

    def transform(self, shape: Shape) -> Tensor:
        """The local transform ``[V, S, T, H]`` of all vertices."""
        if self.has_default_size and isinstance(shape, Tensor | np.ndarray):
            raise ValueError(
                "shape is a cloud, which has no edges: make LocalECT with k, the number of nearest points, or a radius."
            )
        complex = as_complex(shape)
        complex = complex.to(dtype=torch.promote_types(complex.points.dtype, self.layer.dtype))
        if complex.dim != self.layer.dim:
            raise ValueError(f"shape must have points of dimension {self.layer.dim}, the dim of this layer, got {complex.dim}.")
        transform = local_ect(
            complex,
            self.layer.directions,
            self.layer.thresholds,
            **self.size,
            max_vertices=self.max_vertices,
            normalize=self.normalize,
            scale=self.layer.scale,
        )
        return transform.to(self.layer.dtype)

    def project(self, transform: Tensor) -> Tensor:
        """The encoding ``[V, out_features]``, given the local transform ``[V, S, T, H]``."""
        grid = (self.num_sizes, len(self.layer.weight), len(self.layer.raw_thresholds))
        if transform.ndim != 4 or transform.shape[1:] != grid:
            raise ValueError(f"transform must have shape [V, {', '.join(map(str, grid))}], got {list(transform.shape)}.")
        if self.projection == "linear":
            embedded = self.embed(transform.flatten(1))
        elif self.projection == "conv":
            embedded = self.embed(transform.flatten(1, 2)).amax(dim=-1)
        else:
            curves = transform.transpose(1, 2).flatten(2)  # [V, T, S H]
            if self.append_directions:
                curves = torch.cat([curves, self.layer.directions.expand(len(curves), -1, -1)], dim=2)
            embedded = self.embed(curves)
            if self.attention is not None:
                embedded = embedded + self.attention(embedded, embedded, embedded, need_weights=False)[0]
            embedded = embedded.mean(dim=1)
        encoding: Tensor = self.head(embedded)
        return encoding

    def forward(self, shape: Shape) -> Tensor:
        """The encoding ``[V, out_features]``, a row for each vertex."""
        return self.project(self.transform(shape).to(self.layer.weight.dtype))

    def extra_repr(self) -> str:
        options: dict[str, Any] = {**self.size, "projection": self.projection, "out_features": self.out_features}
        options |= {"normalize": self.normalize, "max_vertices": self.max_vertices}
        return ", ".join(f"{name}={value!r}" for name, value in options.items())
