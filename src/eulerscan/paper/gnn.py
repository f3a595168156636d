"""Baselines: graph neural networks of torch_geometric, trained by the same loop and on the same splits as our models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .._imports import require
from .._validation import check_choice
from ..complexes import Shape, as_complex
from ..training.rng import seeded

GNNS: Mapping[str, str] = {"gcn": "GCN", "gat": "GAT", "gin": "GIN", "sage": "GraphSAGE"}
"""Classes of ``torch_geometric.nn``, by the name of the model."""


@dataclass(frozen=True)
class GNNConfig:
    """Configuration of a :class:`GNN`: see there."""

    model: str
    hidden: int
    num_layers: int = 3
    preset: str | None = None

    def build(self, dim: int, num_classes: int, *, seed: int = 0) -> nn.Module:
        """The network, with initial weights drawn from ``seed``."""
        with seeded(seed, 0):
            return GNN(self.model, dim, num_classes, hidden=self.hidden, num_layers=self.num_layers)


class GNN(nn.Module):
    """Message passing, mean over the vertices, then fully connected layers.

    The features of a vertex are its coordinates, with the shape in the unit ball about its vertices.

    Args:
        model: ``"gcn"``, ``"gat"``, ``"gin"`` or ``"sage"``.
        dim: Dimension of the points.
        num_classes: Number of logits.
        hidden: Hidden channels.
        num_layers: Number of message passing layers.
        norm: Normalization between layers, by its name in torch_geometric.
    """

    def __init__(
        self, model: str, dim: int, num_classes: int, *, hidden: int, num_layers: int = 3, norm: str | None = "batch_norm"
    ) -> None:
        super().__init__()
        check_choice(model, "model", tuple(GNNS))
        networks = require("torch_geometric.nn", extra="pyg")
        self.body = getattr(networks, GNNS[model])(dim, hidden, num_layers, norm=norm)
        self.pool = networks.global_mean_pool
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, num_classes))

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]``."""
        complex = as_complex(shape).normalized("vertices")
        edges = complex.of_dim(1)
        both = torch.cat([edges, edges.flip(0)], dim=1)
        features = self.body(complex.points, both)
        logits: Tensor = self.head(self.pool(features, complex.batch, complex.num_complexes))
        return logits
