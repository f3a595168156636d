"""Graph files, through networkx: GraphML and GML."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .._imports import require
from ..complexes import Complex
from ..convert.networkx import from_networkx
from .formats import File


def read_graph(
    file: File, *, positions: str | Sequence[str] | Mapping[Any, Any] | None = None, dtype: torch.dtype | None = None
) -> Complex:
    """A graph. Option ``positions`` as in :func:`from_networkx`.

    By default the positions are the node attribute ``pos``, a list or text with commas or spaces; or the attributes ``x``,
    ``y`` and optionally ``z``, of the node or of its ``graphics``, as graph editors write them.
    """
    networkx = require("networkx", extra="mesh")
    content = io.BytesIO(file.content)
    try:
        # By id: labels in GML need not be unique.
        graph = networkx.read_graphml(content) if file.format == "graphml" else networkx.read_gml(content, label="id")
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # the parsers raise exceptions of many types
        raise ValueError(f"not a valid {file.format.upper()} file: truncated, corrupted, or in another format.") from error
    if not len(graph):
        raise ValueError("file holds no nodes.")
    return from_networkx(graph, _positions(graph) if positions is None else positions, dtype=dtype)


def _positions(graph: Any) -> Mapping[Any, Any]:
    positions = {}
    for node, attributes in graph.nodes(data=True):
        graphics = attributes.get("graphics")
        coordinates = attributes if "x" in attributes or not isinstance(graphics, Mapping) else graphics
        if "pos" in attributes:
            pos = attributes["pos"]
            positions[node] = pos.strip("()[]").replace(",", " ").split() if isinstance(pos, str) else pos
        elif "x" in coordinates and "y" in coordinates:
            positions[node] = [coordinates[name] for name in ("x", "y", "z") if name in coordinates]
        else:
            raise ValueError(f"nodes must have attributes pos, or x and y, but node {node!r} has {sorted(attributes)}.")
    return positions
