"""Graphs from files, through networkx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from .._imports import require
from ..complexes import Complex
from ..convert.networkx import from_networkx


def read_graph(
    path: Path,
    *,
    kind: str,
    positions: str | Sequence[str] | Mapping[Any, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> Complex:
    """A graph of a GraphML or GML file.

    Without ``positions`` the coordinates are the attribute ``pos`` of the nodes, as a list or as text with commas or blanks;
    or ``x``, ``y`` and perhaps ``z``, of the nodes or of the ``graphics`` that editors write.
    """
    networkx = require("networkx", extra="mesh")
    try:
        # By their numbers: labels of GML need not be different.
        graph = networkx.read_graphml(path) if kind == "graphml" else networkx.read_gml(path, label="id")
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # foreign readers raise what they like
        raise ValueError(f"it is no sound {kind.upper()} file: truncated, damaged, or of another kind.") from error
    if not len(graph):
        raise ValueError("it holds no nodes.")
    return from_networkx(graph, _found(graph) if positions is None else positions, dtype=dtype)


def _found(graph: Any) -> Mapping[Any, Any]:
    positions = {}
    for node, attributes in graph.nodes(data=True):
        drawn = attributes.get("graphics")
        where = attributes if "x" in attributes or not isinstance(drawn, Mapping) else drawn
        if "pos" in attributes:
            pos = attributes["pos"]
            positions[node] = pos.strip("()[]").replace(",", " ").split() if isinstance(pos, str) else pos
        elif "x" in where and "y" in where:
            positions[node] = [where[name] for name in ("x", "y", "z") if name in where]
        else:
            raise ValueError(f"its nodes must have coordinates pos, or x and y, but node {node!r} has {sorted(attributes)}.")
    return positions
