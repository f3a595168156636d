"""Graphs of networkx with node positions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .._validation import check_points
from ..complexes import Complex
from ..complexes.simplices import unique


def from_networkx(
    graph: Any,
    positions: str | Sequence[str] | Mapping[Any, Any] = "pos",
    *,
    dtype: torch.dtype | None = None,
) -> Complex:
    """Convert a networkx graph to a :class:`Complex`. Vertices are in the order of the nodes.

    Parallel edges and edges in both directions count once. Self-loops are dropped. Complexes of the package ``ect`` keep their
    faces and other cells.

    Args:
        graph: Any networkx graph, directed or undirected, multigraph or not; or an ``EmbeddedComplex`` of the package ``ect``,
            with ``positions=graph.position_dict``.
        positions: Node positions: the node attribute that holds the coordinates; the names of several attributes with one
            coordinate each, such as ``("x", "y")``; or a mapping from nodes to coordinates, such as a networkx layout.
        dtype: Of the coordinates. Default: ``torch.get_default_dtype()``.

    Example:
        >>> import networkx as nx
        >>> graph = nx.cycle_graph(5)
        >>> from_networkx(graph, nx.circular_layout(graph)).euler_characteristic()
        tensor([0])
    """
    nodes = list(graph.nodes)
    rows = [_position(graph, node, positions) for node in nodes]
    sizes = {len(row) for row in rows}
    if len(sizes) > 1:
        odd, count = next((node, len(row)) for node, row in zip(nodes, rows, strict=True) if len(row) != len(rows[0]))
        raise ValueError(
            f"positions must all have the same dimension, got {len(rows[0])} coordinates for node {nodes[0]!r} and {count} for "
            f"node {odd!r}."
        )
    # An empty graph has no dimension: assume the plane.
    points = torch.from_numpy(np.stack(rows) if rows else np.empty((0, 2))).to(dtype or torch.get_default_dtype())
    check_points(points)
    index = {node: i for i, node in enumerate(nodes)}
    pairs = [[index[a], index[b]] for a, b in graph.edges()]
    cells = _cells(graph, index)
    edges = unique(torch.tensor([*pairs, *cells.pop((1, 2), [])], dtype=torch.int64).reshape(-1, 2).T)
    levels = {(1, 2): edges} if edges.numel() else {}
    levels |= {kind: torch.tensor(columns).T for kind, columns in sorted(cells.items())}
    return Complex(points, levels.values(), dims=[dim for dim, _ in levels])


def _cells(graph: Any, index: Mapping[Hashable, int]) -> dict[tuple[int, int], list[tuple[int, ...]]]:
    """The cells of a complex of the package ``ect`` by dimension and number of vertices, each once. No other graph has any."""
    found: dict[tuple[int, int], dict[frozenset[int], tuple[int, ...]]] = {}
    if not (hasattr(graph, "cells") and hasattr(graph, "node_list")):
        return {}
    for dim, cells in graph.cells.items():
        for cell in cells if dim > 0 else ():  # nodes are vertices already
            columns = tuple(index[graph.node_list[i]] for i in cell)
            found.setdefault((dim, len(columns)), {}).setdefault(frozenset(columns), columns)
    return {kind: list(cells.values()) for kind, cells in found.items()}


def _position(graph: Any, node: Hashable, positions: str | Sequence[str] | Mapping[Any, Any]) -> np.ndarray[Any, Any]:
    attributes = graph.nodes[node]
    try:
        if isinstance(positions, Mapping):
            value = positions[node]
        elif isinstance(positions, str):
            value = attributes[positions]
        else:
            value = [attributes[name] for name in positions]
    except KeyError as error:
        found = "no entry in positions" if isinstance(positions, Mapping) else f"no attribute {error}"
        raise ValueError(f"positions must have coordinates for every node, but node {node!r} has {found}.") from None
    try:
        row = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        row = np.empty(0)
    if row.ndim != 1 or not len(row):
        raise ValueError(f"positions must be coordinates, got {value!r} for node {node!r}.")
    return row
