"""The competitors: graph neural networks of torch_geometric that take what our models take.

So they are trained by the same loop, on the same splits, and chosen on the same validation shapes.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .._imports import require
from ..complexes import Shape, as_complex

KINDS: Mapping[str, str] = {"gcn": "GCN", "gat": "GAT", "gin": "GIN", "sage": "GraphSAGE"}


class GraphNetwork(nn.Module):
    """Message passing, mean over the vertices, then fully connected layers.

    The features of a vertex are its coordinates, with the shape in the unit ball.

    Args:
        kind: ``"gcn"``, ``"gat"``, ``"gin"`` or ``"sage"``.
        dim: Dimension of the points.
        num_classes: Length of the last axis of the result.
        hidden: Channels of the layers.
        num_layers: Rounds of message passing.
        norm: Name of a normalisation between layers, as in torch_geometric.
    """

    def __init__(
        self, kind: str, dim: int, num_classes: int, *, hidden: int, num_layers: int = 3, norm: str | None = "batch_norm"
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
        networks = require("torch_geometric.nn", extra="pyg")
        self.kind = kind
        self.body = getattr(networks, KINDS[kind])(dim, hidden, num_layers, norm=norm)
        self.pool = networks.global_mean_pool
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))

    def forward(self, shape: Shape) -> Tensor:
        complex = as_complex(shape).normalized("unit_ball")
        edges = next((s.long() for s in complex.simplices if len(s) == 2), torch.empty(2, 0, dtype=torch.int64))
        both = torch.cat([edges, edges.flip(0)], dim=1)
        features = self.body(complex.points, both)
        logits: Tensor = self.head(self.pool(features, complex.batch, complex.num_complexes))
        return logits
