"""Principal axes of complexes, and coordinates along them."""

from __future__ import annotations

import torch
from torch import Tensor

from .._devices import has_float64
from .complex import Complex
from .normalize import mass_means

EQUAL = 1e-5  # difference of second moments, relative to the largest, that may be rounding of float32 coordinates


def principal_frames(complex: Complex) -> Tensor:
    """``[B, dim, dim]``: rotations whose columns are the principal axes, by ascending second moment, in float64.

    The first derivative is exact. Where two moments are equal the axes are arbitrary, and count as constants.
    """
    moments = second_moments(complex)
    with torch.no_grad():
        finite = moments.isfinite().all(dim=2, keepdim=True).all(dim=1, keepdim=True)  # NaN stays in its complex
        squares, axes = torch.linalg.eigh(torch.where(finite, moments, torch.eye(complex.dim).to(moments)))
        axes = torch.cat([axes[:, :, :1] * torch.linalg.det(axes).sign()[:, None, None], axes[:, :, 1:]], dim=2)
        gaps = squares[:, None, :] - squares[:, :, None]
        clear = gaps.abs() > EQUAL * squares[:, -1:, None]
        inverse = torch.where(clear, 1 / torch.where(clear, gaps, 1.0), 0.0)
    along = axes.mT @ moments @ axes  # its off-diagonal entries are zero, and their derivatives turn the axes
    return axes + axes @ (inverse * (along - along.detach()))


def along_axes(complex: Complex, axes: Tensor) -> Complex:
    """The coordinates along the axes of each complex, the columns of ``[B, dim, dim]``, at least in float32."""
    points = complex.points.to(torch.promote_types(complex.points.dtype, torch.float32))
    # Not a matrix product, which would round under autocast, and to TF32 on a GPU.
    return complex.with_points((points.unsqueeze(2) * axes.to(points)[complex.batch]).sum(dim=1))


def second_moments(complex: Complex) -> Tensor:
    """``[B, dim, dim]``: mean of the products of coordinates over each complex in its unit ball, in float64.

    As for the centroid, the mean is over length, area or volume, so that it does not depend on the mesh, or over points.
    """
    complex = (complex if has_float64(complex.device) else complex.cpu()).to(dtype=torch.float64).normalized("unit_ball")
    points, sizes = complex.points, complex.offsets[0].diff().clamp(min=1)
    products = points[:, :, None] * points[:, None, :]
    of_points = products.new_zeros(len(sizes), *products.shape[1:]).index_add(0, complex.batch, products) / sizes.view(-1, 1, 1)
    if not complex.simplices:
        return of_points
    found, has_mass = mass_means(complex.packed, complex.simplices, _second_moment)
    return torch.where(has_mass.view(-1, 1, 1), found, of_points)


def _second_moment(corners: Tensor) -> Tensor:
    """``[n, dim, dim]``: mean of the products of coordinates over each simplex with the vertices ``[k + 1, n, dim]``."""
    size, rows = len(corners), torch.cat([corners, corners.sum(dim=0, keepdim=True)]).transpose(0, 1)  # [n, k + 2, dim]
    products: Tensor = rows.mT @ rows
    return products / (size * (size + 1))
