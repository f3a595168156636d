"""Graphs and meshes of PyTorch Geometric."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .._imports import require
from .._validation import INTEGERS, check_choice, check_points, positive
from ..complexes import Complex, collate
from ..complexes.simplices import unique
from ..directions import uniform
from ..grid import thresholds
from ..local import local_ect

Edges = Literal["unique", "as_stored"]
_LEVELS = (("edge_index", 2), ("face", 3), ("tetra_index", 4))


def from_pyg(data: Any, *, edges: Edges = "unique") -> Complex:
    """Convert a PyG ``Data`` or ``Batch`` to a :class:`Complex`.

    Vertices have the coordinates ``pos``, or ``x`` if there is no ``pos``. Edges are ``edge_index``, triangles ``face``,
    tetrahedra ``tetra_index [4, n]`` (PyG does not offset a key ``tetra`` when batching). A sparse matrix ``adj_t`` stands for
    ``edge_index`` if there is none. Other attributes are ignored.

    Args:
        data: A ``Data``, a ``Batch``, any object with their attributes, or a list or ``Dataset`` of these. The items of a list
            may have different attributes; PyG's own ``Batch.from_data_list`` drops those that the first item lacks.
        edges: ``"unique"`` counts every simplex once, whatever the directions stored, and adds missing faces.
            ``"as_stored"`` counts every column and adds nothing. An undirected graph then counts its edges twice,
            V - 2E + F, like the published code of the paper. Self-loops are not simplices and are dropped in both cases.

    Example:
        >>> from types import SimpleNamespace as Data
        >>> data = Data(pos=torch.rand(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> from_pyg(data)
        Complex(num_complexes=1, dim=2, points=3, simplices=(2 edges,))
        >>> from_pyg(data, edges="as_stored").euler_characteristic()
        tensor([-1])
    """
    check_choice(edges, "edges", get_args(Edges))
    if isinstance(data, list | tuple) or any(base.__name__ == "Dataset" for base in type(data).__mro__):
        return collate([from_pyg(item, edges=edges) for item in data])
    if type(data).__name__ == "HeteroData":
        raise TypeError("shape must be a homogeneous graph, got HeteroData. Convert it: data.to_homogeneous().")
    points = next((p for p in (getattr(data, "pos", None), getattr(data, "x", None)) if p is not None), None)
    if points is None:
        raise ValueError(
            f"shape is a {type(data).__name__} without pos or x, so its vertices have no coordinates. Add pos, for example by "
            "AddLaplacianEigenvectorPE of PyG."
        )
    check_points(points)
    simplices = [tensor for name, rows in _LEVELS if (tensor := _simplices(data, name, rows)) is not None]
    simplices = [unique(tensor) if edges == "unique" else _without_loops(tensor) for tensor in simplices]
    batch = getattr(data, "batch", None)
    num_complexes = getattr(data, "num_graphs", None) if batch is not None else None
    given = Complex(points, simplices, batch=batch, num_complexes=num_complexes)
    return given.closure() if edges == "unique" and max(given.rows, default=0) > 2 else given


def to_pyg(complex: Complex) -> Any:
    """Convert one complex to a PyG ``Data``, several to a ``Batch``.

    Every ``Data`` has ``pos`` and ``edge_index`` with both directions of every edge, sorted as by PyG's ``coalesce``. If the
    complex has triangles or tetrahedra, it also has ``face`` or ``tetra_index``.

    >>> to_pyg(Complex(torch.rand(3, 2), [torch.tensor([[0, 1], [1, 2]])]))
    Data(edge_index=[2, 4], pos=[3, 2])
    """
    if not complex.num_complexes:
        raise ValueError(f"complex must hold at least one shape, as a Batch of PyG does, got {complex!r}.")
    if complex.weights is not None:
        raise ValueError("complex must be unweighted: PyG has no attribute for the weights of vertices and simplices.")
    if not complex.is_simplicial:
        raise ValueError(f"complex must consist of simplices, like those of PyG, got {complex!r}.")
    if max(complex.rows, default=0) > 4:
        raise ValueError(
            f"complex must have simplices of dimension 3 at most, like PyG, got {max(complex.rows) - 1}-simplices."
        )
    items = list(_items(complex))
    geometric = require("torch_geometric.data", extra="pyg")
    if complex.num_complexes == 1:
        return geometric.Data(**items[0])
    return geometric.Batch.from_data_list([geometric.Data(**item) for item in items])


class AddLocalECT:
    """Transform of PyG: adds the local transform of the nodes to every ``Data``, as a positional encoding.

    Use it like other transforms of PyG, as ``transform=`` or ``pre_transform=`` of a data set, or in ``Compose``.
    Neighborhoods are in the unit ball, whatever the size of the graph.

    Args:
        num_directions, num_thresholds: Grid of the transform: evenly spread directions, heights from -1.1 to 1.1.
        attr_name: Attribute for the result ``[V, S, T, H]``. ``None`` appends ``S T H`` columns to ``x``.
        options: Arguments of :func:`local_ect`, such as ``hops=1``, ``max_vertices=64`` or ``scale=128.0``.

    Example:
        >>> from types import SimpleNamespace as Data
        >>> data = Data(pos=torch.rand(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> AddLocalECT(hops=1)(data).local_ect.shape
        torch.Size([3, 1, 16, 16])
    """

    def __init__(
        self, num_directions: int = 16, num_thresholds: int = 16, *, attr_name: str | None = "local_ect", **options: Any
    ) -> None:
        positive(num_directions, "num_directions")
        positive(num_thresholds, "num_thresholds")
        inspect.signature(local_ect).bind(None, None, None, **options)  # raises here, not in the workers of a data loader
        self.num_directions, self.num_thresholds = num_directions, num_thresholds
        self.attr_name, self.options = attr_name, options

    def __call__(self, data: Any) -> Any:
        complex, result = from_pyg(data), copy.copy(data)
        heights = thresholds(self.num_thresholds).to(complex.points)
        with torch.no_grad():
            found = local_ect(complex, uniform(self.num_directions, complex.dim).to(complex.points), heights, **self.options)
        if self.attr_name is not None:
            setattr(result, self.attr_name, found)
            return result
        x, columns = getattr(data, "x", None), found.flatten(1)
        if x is not None:
            columns = torch.cat([x[:, None] if x.ndim == 1 else x, columns.to(x.dtype)], dim=1)
        result.x = columns
        return result

    def __repr__(self) -> str:
        words = {"num_directions": self.num_directions, "num_thresholds": self.num_thresholds, "attr_name": self.attr_name}
        return f"AddLocalECT({', '.join(f'{name}={value!r}' for name, value in (words | self.options).items())})"


def _items(complex: Complex) -> Iterable[dict[str, Tensor]]:
    """The attributes of each ``Data``. All have the same keys: PyG drops those that the first item lacks."""
    offsets = complex.offsets.tolist()
    levels = dict(zip(complex.rows, zip(offsets[1:], complex.simplices, strict=True), strict=True))
    nothing = ([0] * len(offsets[0]), torch.empty(2, 0, dtype=torch.int64, device=complex.device))
    for i in range(complex.num_complexes):
        start, end = offsets[0][i], offsets[0][i + 1]
        item = {"pos": complex.points[start:end]}
        for name, rows in _LEVELS:
            if rows == 2 or rows in levels:
                bounds, columns = levels.get(rows, nothing)
                item[name] = columns[:, bounds[i] : bounds[i + 1]].long() - start
        item["edge_index"] = _both_directions(item["edge_index"], end - start)
        yield item


def _both_directions(edges: Tensor, num_points: int) -> Tensor:
    both = torch.cat([edges, edges.flip(0)], dim=1)
    return both[:, (both[0] * num_points + both[1]).argsort(stable=True)]


def _without_loops(columns: Tensor) -> Tensor:
    ordered = columns.sort(dim=0).values
    return columns[:, (ordered[1:] != ordered[:-1]).all(dim=0)]


def _simplices(data: Any, name: str, rows: int) -> Tensor | None:
    tensor = getattr(data, name, None)
    if tensor is None and name == "edge_index":
        tensor = _sparse_edges(getattr(data, "adj_t", None))
    if tensor is None:
        return None
    if not isinstance(tensor, Tensor) or tensor.dtype not in INTEGERS:
        got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        raise TypeError(f"{name} must be a torch.Tensor of integers, got {got}.")
    if tensor.ndim != 2 or len(tensor) != rows:
        hint = " Did you pass it transposed?" if tensor.ndim == 2 and tensor.shape[1] == rows else ""
        raise ValueError(f"{name} must have shape [{rows}, count], got {list(tensor.shape)}.{hint}")
    return tensor if tensor.numel() else None


def _sparse_edges(matrix: Any) -> Tensor | None:
    """Edges ``[2, n]`` of the transposed adjacency matrix that ``ToSparseTensor`` of PyG makes, by torch_sparse or by torch."""
    if isinstance(matrix, Tensor):
        indices: Tensor = matrix.to_sparse_coo().coalesce().indices()
        return indices.flip(0)
    if hasattr(matrix, "coo"):
        row, column, _ = matrix.coo()
        return torch.stack([column, row])
    return None
