"""Quality of shapes: what disturbs a comparison of form, such as specks, holes, stairs of pixels, units or orientation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from .. import rotations
from ..complexes import Complex
from ..complexes.boundary import occurrences
from ..complexes.normalize import segment_max
from ..complexes.simplices import faces

FEW_STAIRS = 100  # edges of an outline that are too few to matter
FEW_POINTS = 20  # along a curve: fewer may be landmarks in order
NEAR = 0.25  # mean distance of points that follow one another, relative to that of points half of the way round
SPECKLED = 3.0  # between most Euler characteristics: digits and letters differ by two
OUTLIER = 8.0  # times the median absolute deviation


def remarks(complex: Complex, names: Sequence[str] | None = None, *, orientation: bool = True) -> list[str]:
    """What one should know about shapes before comparing them, in sentences. Most important first; often none.

    Args:
        complex: One or many shapes.
        names: Names of the shapes, to point at some. Default: their numbers.
        orientation: Whether the orientation of the shapes is compared too.

    Example:
        >>> from eulerscan.complexes import collate
        >>> edge, points = Complex(torch.eye(2), [torch.tensor([[0], [1]])]), Complex(torch.rand(30, 2))
        >>> remarks(collate([edge] * 5 + [points]), names=["a", "b", "c", "d", "e", "f"])
        ['f has Euler characteristic 30, most have 1: many more pieces. Remove specks, or read only the largest piece.']
    """
    found = [
        _frames(complex, names),
        _topology(complex, names),
        _stairs(complex),
        _curves(complex),
        _units(complex, names),
        _orientation(complex) if orientation else None,
        _meshes(complex, names),
    ]
    return [remark for remark in found if remark is not None]


def unusual_topology(euler: Tensor) -> list[int]:
    """Shapes whose Euler characteristic ``[B]`` is far from that of most others, the farthest first."""
    if len(euler) < 3:
        return []
    deviation = euler.double() - euler.double().median()
    typical = max(float(deviation.abs().median()), 0.5)
    far = (deviation.abs() > OUTLIER * typical).nonzero().flatten().tolist()
    return sorted(far, key=lambda i: -abs(float(deviation[i]))) if len(far) <= len(euler) // 4 else []


def describe_topology(euler: Tensor, names: Sequence[str]) -> str | None:
    """A sentence about shapes with many more pieces or holes than the others; ``None`` if there are none."""
    unusual = unusual_topology(euler)
    if not unusual:
        return None
    first, most = int(euler[unusual[0]]), int(euler.median())
    others = f" (and {len(unusual) - 1} more like it)" if len(unusual) > 1 else ""
    what = "pieces. Remove specks, or read only the largest piece" if first > most else "holes. Fill them, if they are noise"
    return f"{names[unusual[0]]} has Euler characteristic {first}, most have {most}: many more {what}{others}."


def _frames(complex: Complex, names: Sequence[str] | None) -> str | None:
    """Images with a light background: the frame around a shape, a region with a hole that reaches all corners of its box."""
    if complex.dim != 2 or complex.max_dim != 2:
        return None
    points, batch = complex.points, complex.batch
    empty, rows = points.new_zeros(complex.num_complexes, 2), batch[:, None].expand(-1, 2)
    ends = [empty.scatter_reduce(0, rows, points, how, include_self=False) for how in ("amin", "amax")]
    near = 0.02 * (ends[1] - ends[0])[batch]
    framed = complex.euler_characteristic() < 1
    for x, y in itertools.product(ends, ends):
        corner = torch.stack([x[:, 0], y[:, 1]], dim=1)
        reached = ((points - corner[batch]).abs() <= near).all(dim=1)
        framed &= torch.zeros_like(framed).index_put((batch[reached],), framed.new_ones(()))
    if not 0 < int(framed.sum()) <= complex.num_complexes // 2:  # if most are, they look like that
        return None
    found = [names[i] if names else f"shape {i}" for i in framed.nonzero().flatten().tolist()]
    others = f" and {len(found) - 1} more fill their images" if len(found) > 1 else " fills its image"
    return f"{found[0]}{others} but for a hole: is the background light? Read such images with invert=true."


def _topology(complex: Complex, names: Sequence[str] | None) -> str | None:
    counts = complex.offsets[0].diff()
    if complex.max_dim == 0 and int(counts.min()) < int(counts.max()):
        return None  # clouds of different sizes: see divide_by
    euler = complex.euler_characteristic()
    remark = describe_topology(euler, names or [f"shape {i}" for i in range(complex.num_complexes)])
    if remark is not None or complex.dim != 2 or complex.max_dim != 2:
        return remark
    low, high = euler.double().quantile(euler.new_tensor([0.1, 0.9], dtype=torch.float64)).tolist()
    if high - low < SPECKLED:
        return None
    return (
        f"Euler characteristics range from {int(euler.min())} to {int(euler.max())}: shapes differ in their number of pieces "
        "or holes, which outweighs their outlines. If these are noise, read images with min_size=9, largest_component=true or "
        "fill_holes=true."
    )


def _stairs(complex: Complex) -> str | None:
    """Regions of pixels: most edges of the boundary are parallel to an axis."""
    triangles = complex.of_dim(2)
    if complex.dim != 2 or complex.max_dim != 2 or not triangles.numel():
        return None
    edges = _boundary(triangles)
    if edges.shape[1] < FEW_STAIRS * complex.num_complexes:
        return None
    vectors = (complex.points[edges[1]] - complex.points[edges[0]]).abs()
    straight = float((vectors.amin(dim=1) < 1e-6 * vectors.amax(dim=1)).double().mean())
    if straight < 0.9:
        return None
    return (
        f"{straight:.0%} of the outline is parallel to an axis: stairs of pixels, which outweigh the shape in diagonal "
        "directions. Read images with outline=contour."
    )


def _curves(complex: Complex) -> str | None:
    """Clouds in the plane, most of whose points seem to follow one another along a closed curve."""
    counts, starts = complex.offsets[0].diff(), complex.offsets[0][:-1]
    if complex.dim != 2 or complex.max_dim != 0 or not len(counts) or int(counts.min()) < FEW_POINTS:
        return None
    points, batch, place = complex.points, complex.batch, torch.arange(len(complex.points)) - starts[complex.batch]

    def distances(ahead: Tensor) -> Tensor:
        found: Tensor = torch.linalg.vector_norm(points[starts[batch] + (place + ahead[batch]) % counts[batch]] - points, dim=1)
        return found

    def means(values: Tensor) -> Tensor:
        return torch.zeros(len(counts), dtype=points.dtype).index_add(0, batch, values) / counts

    steps, last = distances(torch.ones_like(counts)), starts + counts - 1
    others = steps.index_fill(0, last, 0)
    is_closed = steps[last] <= segment_max(others, batch, len(counts))
    is_curve = is_closed & (means(steps) < NEAR * means(distances(counts // 2)))
    if float(is_curve.double().mean()) < 0.9:
        return None
    return "The points of the shapes seem to follow closed curves. If they are outlines, read them with outline=true."


def _units(complex: Complex, names: Sequence[str] | None) -> str | None:
    sizes = complex.normalized("center").largest_norms()
    small, large = float(sizes.min()), float(sizes.max())
    if small <= 0 or large < 100 * small:
        return None
    low, high = (names[int(i)] if names else f"shape {int(i)}" for i in (sizes.argmin(), sizes.argmax()))
    return f"{high} is {large / small:.0f} times as large as {low}: are their units the same?"


def _orientation(complex: Complex) -> str | None:
    """Whether the longest axes of elongated shapes point in all directions."""
    if complex.num_complexes < 5 or complex.dim not in (2, 3):
        return None
    points = complex.normalized("center").points
    squares, axes = rotations.principal_axes(points, complex.batch, complex.num_complexes)
    longest = axes[(squares[:, -1] > 1.5 * squares[:, -2]), :, -1]
    if len(longest) < max(5, complex.num_complexes // 2):
        return None
    aligned = float(torch.linalg.eigvalsh((longest[:, :, None] * longest[:, None, :]).mean(dim=0))[-1])
    if aligned > (1 + 1 / complex.dim) / 2:
        return None
    return (
        "The shapes are elongated, and their longest axes point in all directions. Unless that matters, align them, "
        "as eulerscan compare does with --align best."
    )


def _meshes(complex: Complex, names: Sequence[str] | None) -> str | None:
    """Surfaces with a boundary, or with triangles without area."""
    triangles = complex.of_dim(2)
    if complex.dim != 3 or complex.max_dim != 2 or not triangles.numel():
        return None
    corners = complex.points[triangles]
    area = torch.linalg.vector_norm(torch.linalg.cross(corners[1] - corners[0], corners[2] - corners[0]), dim=1)
    largest = (corners - corners.roll(1, dims=0)).square().sum(dim=-1).amax(dim=0)  # square of the longest side
    thin = float((area <= 1e-6 * largest).double().mean())
    open_edges = complex.batch[_boundary(triangles)[0]].unique()
    parts = []
    if len(open_edges):
        first = int(open_edges[0])
        example = names[first] if names else f"shape {first}"
        count = "1 mesh has" if len(open_edges) == 1 else f"{len(open_edges)} meshes have"
        parts.append(f"{count} open edges ({example}): gaps count as holes")
    if thin > 0.01:
        parts.append(f"{thin:.0%} of the triangles are degenerate")
    return f"{'; '.join(parts)}." if parts else None


def _boundary(triangles: Tensor) -> Tensor:
    """Edges ``[2, n]`` of exactly one triangle."""
    sides = faces(triangles)
    return sides[:, occurrences(sides, sides) == 1]
