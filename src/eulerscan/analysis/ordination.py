"""Ordination: shapes as points in a plane, by principal components of transforms or multidimensional scaling of distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from .._validation import positive

_Array = np.ndarray[Any, Any]
Matrix = TypeVar("Matrix", Tensor, _Array)


@dataclass(frozen=True, eq=False)
class Ordination:
    """Coordinates of shapes in few dimensions.

    Attributes:
        scores: ``[N, K]``: the coordinates of each shape.
        explained: ``[K]``: the share of the variation along each axis.
        mean: The mean transform, for :func:`pca`.
        components: ``[K, ...]``: the transform along each axis, of unit length, for :func:`pca`.
    """

    scores: Tensor
    explained: Tensor
    mean: Tensor | None = None
    components: Tensor | None = None

    def transform_at(self, scores: Tensor) -> Tensor:
        """The transform at coordinates ``[K]`` of the plane; missing coordinates are 0."""
        if self.mean is None or self.components is None:
            raise ValueError("only an ordination by pca() has transforms at every place, got one by mds().")
        along: Tensor = torch.tensordot(scores.to(self.mean), self.components[: len(scores)], dims=1)
        return self.mean + along


def pca(transforms: Tensor, num_components: int = 10) -> Ordination:
    """Principal components of transforms ``[N, ...]``, of shapes or of vertices.

    The sign of an axis makes its largest score positive. There are fewer axes if the transforms span fewer dimensions, but
    at least one.

    Example:
        >>> found = pca(torch.tensor([[0.0, 1.0], [1.0, 1.0], [5.0, 1.0]]), 1)
        >>> found.scores.T.round(), found.explained
        (tensor([[-2., -1.,  3.]]), tensor([1.]))
    """
    positive(num_components, "num_components")
    if not transforms.numel():
        raise ValueError(f"transforms must not be empty, got shape {list(transforms.shape)}.")
    rows = transforms.flatten(1).double()
    mean = rows.mean(dim=0)
    rows = rows - mean
    few = len(rows) < rows.shape[1]  # the smaller matrix of inner products has the same eigenvalues
    values, vectors = torch.linalg.eigh(rows @ rows.T if few else rows.T @ rows)
    values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
    rank = int((values > values[0] * len(values) * torch.finfo(values.dtype).eps).sum())
    kept = max(1, min(num_components, rank))
    total, values, vectors = values.sum(), values[:kept], vectors[:, :kept]
    lengths = values.sqrt()
    scores = vectors * lengths if few else rows @ vectors
    components = (vectors.T @ rows) / torch.where(lengths > 0, lengths, 1.0)[:, None] if few else vectors.T
    signs = _signs(scores)
    explained = values / torch.where(total > 0, total, 1.0)
    along = (components * signs[:, None]).view(-1, *transforms.shape[1:])
    found = (scores * signs, explained, mean.view(transforms.shape[1:]), along)
    return Ordination(*(part.to(_floating(transforms)) for part in found))


def mds(distances: Tensor | _Array, num_components: int = 10) -> Ordination:
    """Classical multidimensional scaling (principal coordinates) of distances ``[N, N]``.

    For Euclidean distances these are the principal components. Distances that are not Euclidean have axes of negative
    variance, which are left out.

    Example:
        >>> places = torch.tensor([0.0, 1.0, 5.0])
        >>> mds((places[:, None] - places).abs(), 1).scores.T.round()
        tensor([[-2., -1.,  3.]])
    """
    positive(num_components, "num_components")
    matrix = torch.as_tensor(distances)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(f"distances must be a square matrix [N, N] with N at least 2, got {list(matrix.shape)}.")
    values, vectors = torch.linalg.eigh(gower_matrix(matrix.double()))
    values, vectors = values.flip(0), vectors.flip(1)
    kept = min(num_components, len(matrix) - 1)
    total = values.clamp(min=0).sum()
    scores = vectors[:, :kept] * values[:kept].clamp(min=0).sqrt()
    explained = values[:kept].clamp(min=0) / torch.where(total > 0, total, 1.0)
    return Ordination(*(part.to(_floating(matrix)) for part in (scores * _signs(scores), explained)))


def gower_matrix(distances: Matrix) -> Matrix:
    """The inner products of centered points with these distances."""
    squares = distances**2
    products: Matrix = -(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()) / 2
    return products


def _floating(values: Tensor) -> torch.dtype:
    """The dtype of results: that of the values, unless they are integers."""
    return values.dtype if values.is_floating_point() else torch.get_default_dtype()


def _signs(scores: Tensor) -> Tensor:
    """``[K]``: signs that make the score of largest magnitude on each axis positive."""
    largest = scores.gather(0, scores.abs().argmax(dim=0, keepdim=True))[0]
    return torch.where(largest < 0, -1.0, 1.0)
