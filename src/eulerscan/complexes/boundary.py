"""The boundary of a shape: what is visible of a solid, and the outline of a region."""

from __future__ import annotations

import torch
from torch import Tensor

from .complex import Complex
from .simplices import faces, groups, unique


def outer_triangles(complex: Complex) -> Tensor:
    """``[n]``: indices of the triangles that are a face of fewer than two tetrahedra; all triangles if there are none.

    >>> tetrahedra = Complex(torch.rand(5, 3), [torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])]).closure()
    >>> len(outer_triangles(tetrahedra)), tetrahedra.counts
    (6, (5, 9, 7, 2))
    """
    triangles, tetrahedra = complex.of_dim(2), complex.of_dim(3)
    if not tetrahedra.numel():
        return torch.arange(triangles.shape[1], device=complex.device)
    return (occurrences(triangles, faces(tetrahedra)) < 2).nonzero().squeeze(1)


def outer_edges(complex: Complex) -> Tensor:
    """``[2, n]``: the edges of fewer than two triangles: the outline of a shape in the plane, and what is not filled.

    >>> square = Complex(torch.rand(4, 2), [torch.tensor([[0, 0], [1, 2], [2, 3]])]).closure()
    >>> outer_edges(square).shape, square.counts
    (torch.Size([2, 4]), (4, 5, 2))
    """
    sides = faces(complex.of_dim(2))
    edges = unique(torch.cat([complex.of_dim(1), sides], dim=1))
    return edges[:, occurrences(edges, sides) < 2]


def outlined(complex: Complex) -> Complex:
    """Regions in the plane as their outlines, which have the same vertices, if all regions of the batch have such.

    >>> square = Complex(torch.rand(4, 2), [torch.tensor([[0, 0], [1, 2], [2, 3]])]).closure()
    >>> outlined(square).counts
    (4, 4)
    """
    outlines = each_outlined(complex)
    return outlines if outlines.max_dim < 2 else complex


def each_outlined(complex: Complex) -> Complex:
    """Each region in the plane as its outline, whatever the others are.

    Other shapes stay as they are, and so do regions with weights, with vertices inside, or without edges on their sides.
    """
    if complex.dim != 2 or complex.rows != (2, 3) or not complex.is_simplicial or complex.weights is not None:
        return complex
    edges, triangles = complex.simplices
    outer, is_inside = outer_edges(complex), torch.ones(len(complex.points), dtype=torch.bool, device=complex.device)
    is_inside[outer.flatten()] = False
    is_region = torch.zeros(complex.num_complexes, dtype=torch.bool, device=complex.device)
    is_region[complex.batch[triangles[0]]] = True
    is_region[complex.batch[is_inside]] = False
    is_region[complex.batch[outer[0, occurrences(outer, edges) == 0]]] = False
    if not bool(is_region.any()):
        return complex
    of_region = is_region[complex.batch]
    levels = [torch.cat([outer[:, of_region[outer[0]]], edges[:, ~of_region[edges[0]]]], dim=1)]
    levels += [rest] if (rest := triangles[:, ~of_region[triangles[0]]]).numel() else []
    return Complex(complex.points, levels, batch=complex.batch, num_complexes=complex.num_complexes)


def occurrences(simplices: Tensor, among: Tensor) -> Tensor:
    """``[n]``: number of occurrences of each simplex ``[k, n]`` among others ``[k, m]``, up to the order of vertices.

    >>> occurrences(torch.tensor([[0, 1], [1, 2]]), torch.tensor([[1, 0, 5], [0, 1, 6]]))
    tensor([2, 0])
    """
    numbers = groups(torch.cat([simplices, among], dim=1).sort(dim=0).values)
    own, others = numbers.split([simplices.shape[1], among.shape[1]])
    return torch.bincount(others, minlength=len(numbers))[own]
