"""Evidence: where on the shapes groups differ, compared with permuted labels.

The score of a vertex is built in four steps, the same for the given labels and for every permutation of them:

1. A linear classifier on the exact transform: the difference between the mean transform of the shape's own group and that of
   all others, each entry divided by its variance. (It is the limit of ridge regression for a large penalty.)
2. The derivative of its smooth output in the height of the vertex, direction by direction: the weights at that height, times
   the jump of the curve that belongs to the vertex. The root of the sum of squares over the directions is the score.
3. The mean over the neighbors, twice.
4. Division by the mean over all labelings. Without it, high scores are where the transform is rich, not where groups differ.

The score is linear in the weights before squaring, so all labelings are one matrix product per direction.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._labels import Labels, as_list, numbered
from .._storage import write_text
from .._tables import comma_separated
from ..complexes import Complex, Shape, as_complex
from ..complexes.boundary import outlined
from ..complexes.neighborhoods import adjacent_pairs
from ..config import ECTConfig
from ..grid import scale_of_step
from ..io.colors import write_colored
from ..kernels import operation
from .groups import permuted_labels

CONFIG = ECTConfig(num_directions=100, num_thresholds=30, normalize="center")
MEANING = (
    "How strongly the difference between the groups acts on each vertex, relative to its mean under permuted labels: "
    "1 is chance."
)
"""What a score means, for legends."""

LEVEL = 0.05  # of the p-values of vertices that make a region
SPREAD = 0.5  # added to the standard deviation of an entry of the transform: a constant entry tells nothing
FLOOR = 0.1  # of the mean over a shape, added to the mean of a vertex: a quotient of small numbers is noise
ROUNDING = 1e-5  # scores that differ by less, relatively, are equal: a partition of the shapes has several labelings
AT_ONCE = 1 << 25  # scores of vertices under all labelings


class Region(NamedTuple):
    """A connected set of vertices with p-values of at most 0.05."""

    shape: int  # its index
    vertices: Tensor  # indices in ``shapes.points``
    prominence: float  # mean score of its vertices, relative to the mean score of the shape
    p_value: float  # share of the labelings under which the shape has a region of at least this sum


@dataclass(frozen=True, eq=False)
class Evidence:
    """Where on the shapes groups differ: a number for every vertex, in the order of ``shapes.points``.

    Attributes:
        shapes: The shapes, with the given coordinates.
        groups: Group of each shape.
        scores: ``[V]``: how strongly the difference between the groups acts on a vertex, relative to its mean under permuted
            labels. 1 is chance.
        p_values: ``[V]``: share of all labelings under which the vertex stands out from its shape at least as much, that is,
            its score divided by the mean score of the shape is at least as large. If groups do not differ, 5 % of them are
            at most 0.05.
        q_values: ``[V]``: false discovery rate, estimated by permutation: how many vertices of the shape stand out at least as
            much under permuted labels, divided by how many do. If groups differ somewhere, it does not bound the share of
            vertices outside of the difference: neighbors, and vertices at its height, stand out too.
        null: ``[V]``: the scores under the first permutation of the labels, to look at beside the scores.
        regions: Connected vertices with p-values of at most 0.05, largest sum of scores first.
        permutations, seed: Of the labels.
        smallest_p_value: The smallest p-value that these groups and permutations allow, up to the chance of the latter.
        strata: Block of each shape, or ``None``.
    """

    shapes: Complex
    groups: tuple[Hashable, ...]
    scores: Tensor
    p_values: Tensor
    q_values: Tensor
    null: Tensor
    regions: tuple[Region, ...]
    permutations: int
    seed: int
    smallest_p_value: float
    strata: tuple[Hashable, ...] | None = None

    def __repr__(self) -> str:
        return f"Evidence({len(self.groups)} shapes, {len(set(self.groups))} groups, {self.permutations} permutations)"


def evidence(
    shapes: Shape,
    groups: Labels,
    *,
    permutations: int = 200,
    strata: Labels | None = None,
    seed: int = 0,
    config: ECTConfig = CONFIG,
) -> Evidence:
    """Where on the shapes do groups differ?

    The shapes need no landmarks, no common mesh and no correspondence, but a common orientation. The score of a vertex is high
    where the features that distinguish the shape's own group from the others come from; see :mod:`eulerscan.analysis.evidence`.

    It is a map of association, not of causes: features that always occur together share their evidence, and a vertex beside a
    difference has some, since scores are averaged over neighbors. On a shape that lacks what the other group has, there may
    be nothing to show.

    Args:
        shapes: A :class:`Complex`, or anything :func:`as_complex` understands.
        groups: Group of each shape, ``[B]``: numbers or names.
        permutations: Number of random permutations of the labels.
        strata: Block of each shape, such as the specimen of several scans. If groups differ within blocks, labels are permuted
            within them; if each block belongs to one group, whole blocks are permuted.
        seed: Seed of the permutations.
        config: The grid of the transform, and the normalization: by default shapes are centered and keep their size. The
            transform must be the exact ECT. Without a radius, it is that of the shapes.

    Example:
        >>> circle = torch.linspace(0, 6.28, 60)
        >>> outline = torch.stack([circle.cos(), circle.sin()], dim=1)
        >>> edges = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
        >>> noise = torch.Generator().manual_seed(0)
        >>> shapes = []
        >>> for label in [0, 1] * 10:
        ...     points = outline * torch.normal(1.0, 0.02, (60, 1), generator=noise)
        ...     points[28:32] *= 1.0 - 0.3 * label  # a dent on the left
        ...     shapes.append(Complex(points, [edges]))
        >>> from eulerscan import collate
        >>> found = evidence(collate(shapes), [0, 1] * 10, permutations=50)
        >>> int(found.scores.reshape(20, 60)[1::2].mean(dim=0).argmax()) in range(26, 34)
        True
    """
    complex = _checked_shapes(as_complex(shapes), config)
    names, numbers = _checked_groups(groups, len(complex))
    arrangement = permuted_labels(numbers, permutations, strata, seed)
    labelings = torch.from_numpy(np.concatenate([numbers[None], numbers[arrangement.index]]).T)  # [B, P]

    normalized = outlined(complex).normalized(config.normalize)
    config = replace(config.with_radius_of(normalized), normalize=None)
    directions, thresholds = config.directions(complex.dim).to(normalized.points), config.thresholds().to(normalized.points)
    transforms = config.transform(normalized, directions, thresholds)
    weights = group_weights(transforms, labelings)
    scale = scale_of_step(config.num_thresholds, config.largest_height)

    parts: list[_Part] = []
    for chosen in _chunks(complex, permutations + 1):
        part = normalized.select(chosen)
        raw = labeled_scores(part, labelings[chosen], weights, directions, thresholds, scale)
        parts += _compare(part, raw, [int(i) for i in chosen])
    starts = complex.offsets[0].tolist()
    regions = [
        region._replace(vertices=region.vertices + starts[region.shape])
        for part_of_shape in parts
        for region in part_of_shape.regions
    ]
    scores, p_values, q_values, null = (torch.cat(values) for values in zip(*(part[:4] for part in parts), strict=True))
    return Evidence(
        complex,
        names,
        scores,
        p_values,
        q_values,
        null,
        tuple(regions),
        permutations,
        seed,
        arrangement.smallest_p_value,
        None if strata is None else tuple(as_list(strata)),
    )


def group_weights(transforms: Tensor, labelings: Tensor) -> Tensor:
    """``[K, T, H, P]``: the weights of a linear classifier of each of K groups against the others, for P labelings ``[B, P]``.

    They are the differences of the mean transforms ``[B, T, H]`` of the group and the others, divided by the variance.
    """
    features = transforms.double().flatten(1)
    features = (features - features.mean(dim=0)) / (features.std(dim=0, correction=0) + SPREAD).square()
    found = []
    for group in range(int(labelings.max()) + 1):
        inside = (labelings == group).double()
        contrast = inside / inside.sum(dim=0) - (1 - inside) / (1 - inside).sum(dim=0)
        found.append((features.T @ contrast).reshape(*transforms.shape[1:], -1))
    return torch.stack(found).to(transforms.dtype)


def labeled_scores(
    complex: Complex, labelings: Tensor, weights: Tensor, directions: Tensor, thresholds: Tensor, scale: float
) -> Tensor:
    """``[V, P]``: the root of the sum over directions of the squared derivative of the output in the height of each vertex.

    The output is that of the own group under each labeling ``[B, P]``, with ``weights [K, T, H, P]``, for the transform at
    this scale.
    """
    points, offsets, rows, simplices, own, dims = complex.packed
    groups = range(len(weights) if len(weights) > 2 else 1)  # of two groups, one has the weights of the other times -1
    squares = points.new_zeros(len(groups), len(points), labelings.shape[1])
    block = max(1, AT_ONCE // max(1, len(points)))  # of directions, to save memory
    for start in range(0, len(directions), block):
        chosen = directions[start : start + block]
        heights, coefficients = operation.coefficients(points, chosen, own, simplices, offsets, rows, dims)
        for i, (height, jump) in enumerate(zip(heights.T.contiguous(), coefficients.T.contiguous(), strict=True)):
            vertex = jump.nonzero()[:, 0]
            sigmoid = torch.sigmoid(scale * (thresholds - height[vertex, None]))
            slopes = scale * jump[vertex, None] * sigmoid * (1 - sigmoid)  # [n, H]
            for group in groups:
                squares[group].index_add_(0, vertex, (slopes @ weights[group, start + i]).square_())
    if len(groups) == 1:
        return squares[0].sqrt_()
    return squares.gather(0, labelings[complex.batch][None])[0].sqrt_()


def neighbor_mean(complex: Complex, values: Tensor) -> Tensor:
    """``[V, P]``: the mean of the values ``[V, P]`` over each vertex and the vertices that share an edge with it."""
    edges, loops = adjacent_pairs(complex), torch.arange(len(values)).repeat(2, 1)
    both = torch.cat([loops, edges, edges.flip(0)], dim=1)
    size = (len(values), len(values))
    matrix = torch.sparse_coo_tensor(both, values.new_ones(both.shape[1]), size, check_invariants=False)
    result: Tensor = torch.sparse.mm(matrix, values) / torch.bincount(both[0], minlength=len(values))[:, None]
    return result


class _Part(NamedTuple):
    """The evidence on one shape."""

    scores: Tensor
    p_values: Tensor
    q_values: Tensor
    null: Tensor
    regions: list[Region]


def _compare(complex: Complex, raw: Tensor, indices: list[int]) -> list[_Part]:
    """Compare the first labeling with the others, shape by shape."""
    smooth = neighbor_mean(complex, neighbor_mean(complex, raw))
    return [
        _compare_one(complex[i], smooth[start:end], index)
        for i, (start, end, index) in enumerate(
            zip(complex.offsets[0, :-1].tolist(), complex.offsets[0, 1:].tolist(), indices, strict=True)
        )
    ]


def _compare_one(complex: Complex, values: Tensor, index: int) -> _Part:
    count = values.shape[1]
    mean = values.mean(dim=1, keepdim=True)
    ratios = values / (mean + FLOOR * mean.mean()).clamp(min=torch.finfo(values.dtype).tiny)
    # If groups differ, all vertices at the height of a difference have higher scores than under permuted labels. Where the
    # difference is, they stand out from the shape.
    prominence = ratios / ratios.mean(dim=0).clamp(min=torch.finfo(values.dtype).tiny)
    return _Part(
        ratios[:, 0].contiguous(),
        (prominence >= prominence[:, :1] * (1 - ROUNDING)).sum(dim=1) / count,
        _discovery_rates(prominence[:, 0].contiguous(), prominence[:, 1:]),
        ratios[:, 1].contiguous(),
        _regions(complex, prominence, index),
    )


def _discovery_rates(scores: Tensor, null: Tensor) -> Tensor:
    """``[V]``: among all scores at least as large, the share that permuted labels would give (Tusher et al. 2001)."""
    pooled = torch.from_numpy(np.sort(null.numpy(), axis=None))
    ordered, order = scores.sort(descending=True)
    false = (len(pooled) - torch.searchsorted(pooled, ordered * (1 - ROUNDING))) / null.shape[1]
    ranks = torch.arange(1, len(scores) + 1)
    found = (false / ranks).clamp(max=1).flip(0).cummin(dim=0).values.flip(0)
    return torch.empty_like(found).scatter(0, order, found)


def _regions(complex: Complex, ratios: Tensor, index: int) -> list[Region]:
    """The regions under the first labeling. Their p-values compare with the largest region under every labeling."""
    rank = int(LEVEL * ratios.shape[1] + 1e-9)
    if not rank:
        return []
    least = ratios.topk(rank + 1, dim=1).values[:, -1:] if rank < ratios.shape[1] else torch.zeros_like(ratios[:, :1])
    inside = (ratios * (1 - ROUNDING) > least) & (ratios > 0)  # with ties the p-value may be larger
    vertex, labeling = inside.nonzero(as_tuple=True)
    roots = _components(complex, inside)
    masses = ratios.new_zeros(len(vertex)).index_add(0, roots, ratios[inside])
    largest = ratios.new_zeros(ratios.shape[1]).scatter_reduce(0, labeling, masses, "amax")
    found = []
    for root in roots[labeling == 0].unique().tolist():
        vertices = vertex[roots == root]
        p_value = float((largest >= masses[root] * (1 - ROUNDING)).sum()) / len(largest)
        found.append(Region(index, vertices, float(masses[root]) / len(vertices), p_value))
    return sorted(found, key=lambda region: -region.prominence * len(region.vertices))


def _components(complex: Complex, inside: Tensor) -> Tensor:
    """Connected components of the vertices ``inside [V, P]``, for every labeling: for each True, the index of a common one."""
    numbers = torch.full(inside.shape, -1)
    roots = torch.arange(int(inside.sum()))
    numbers[inside] = roots
    edges = adjacent_pairs(complex)
    edge, labeling = (inside[edges[0]] & inside[edges[1]]).nonzero(as_tuple=True)
    first, second = numbers[edges[:, edge], labeling]
    while bool((roots[first] != roots[second]).any()):
        low = torch.minimum(roots[first], roots[second])
        for end in (first, second):
            roots = roots.scatter_reduce(0, roots[end], low, "amin")
        roots = roots[roots]
    return roots


def _chunks(complex: Complex, num_labelings: int) -> list[Tensor]:
    """Shapes to process at once, as many as fit into memory."""
    sizes = complex.offsets[0].diff() * num_labelings
    group = torch.div(sizes.cumsum(dim=0) - sizes, AT_ONCE, rounding_mode="floor")
    return [(group == number).nonzero()[:, 0] for number in group.unique().tolist()]


def check_exact(config: ECTConfig) -> None:
    """Raise unless it is the exact transform, on any grid and of shapes normalized in any way."""
    if not config.is_plain or math.isfinite(config.scale):
        raise ValueError(
            f"config must be that of the exact transform (only grid, radius and normalize may be set), got {config}."
        )


def _checked_shapes(complex: Complex, config: ECTConfig) -> Complex:
    check_exact(config)
    if config.num_thresholds < 2:
        raise ValueError(f"config must have at least 2 thresholds, got {config.num_thresholds}.")
    sizes = complex.offsets[0].diff()
    if not len(sizes) or not bool(sizes.all()):
        raise ValueError("shapes must have at least one vertex each.")
    dtype = torch.promote_types(complex.points.dtype, torch.float32)
    return complex.detach().to("cpu", dtype)


def _checked_groups(groups: Labels, count: int) -> tuple[tuple[Hashable, ...], np.ndarray[Any, Any]]:
    """The group of each shape, and its number."""
    numbers, kinds = numbered(groups, count, "groups")
    sizes = dict(zip(kinds, np.bincount(numbers).tolist(), strict=True))
    if len(kinds) < 2 or min(sizes.values()) < 2:
        listed = ", ".join(f"{kind} with {size}" for kind, size in sizes.items())
        raise ValueError(f"groups must be at least two, of at least two shapes each, got {listed}.")
    return tuple(kinds[i] for i in numbers), numbers


def color_limits(found: Evidence) -> tuple[float, float]:
    """Ends of a color scale that the maps of all shapes, and their null, share: chance, and nearly the largest score."""
    return 1.0, max(2.0, float(np.quantile(found.scores.numpy(), 0.999)))


def write_evidence(
    found: Evidence, folder: str | os.PathLike[str], names: Sequence[str] | None = None, *, format: str = ".ply"
) -> list[Path]:
    """Write evidence as files: a colored mesh and its null for each shape, and tables of vertices and regions.

    ``NAME.ply`` has the colors of the scores, ``NAME.null.ply`` those of the scores under permuted labels, on the same scale.
    ``vertices.csv`` has a row for every vertex, ``regions.csv`` one for every region, ``legend.txt`` says what they mean.
    Shapes in a space of other dimensions only go to the tables.

    Args:
        found: From :func:`evidence`.
        folder: Made if missing.
        names: Name of each shape, for the files, without extension. Default: its number.
        format: Of the meshes: ``".ply"``, or ``".obj"`` and ``".glb"`` for shapes with triangles.

    Returns:
        The files.
    """
    folder, complex = Path(folder), found.shapes
    names = [f"shape-{i}" for i in range(len(complex))] if names is None else list(names)
    if len(names) != len(complex):
        raise ValueError(f"names must have one name for each of {len(complex)} shapes, got {len(names)}.")
    if len(set(names)) < len(names):
        names = [f"{i}-{name}" for i, name in enumerate(names)]
    low, high = color_limits(found)
    written, starts = [], complex.offsets[0].tolist()
    for i, name in enumerate(names if complex.dim in (2, 3) else ()):
        own, shape = slice(starts[i], starts[i + 1]), complex[i]
        extra = {"p_value": found.p_values[own], "q_value": found.q_values[own]} if format == ".ply" else {}
        for suffix, values, attributes in (("", found.scores, extra), (".null", found.null, {})):
            written.append(folder / f"{name}{suffix}{format}")
            write_colored(shape, written[-1], values[own], low=low, high=high, **attributes)
    axes = list("xyz") if complex.dim <= 3 else [f"x{k}" for k in range(complex.dim)]
    columns = ["shape", "group", "vertex", *axes[: complex.dim], "score", "p_value", "q_value", "null"]
    numbers = torch.stack([found.scores, found.p_values, found.q_values, found.null], dim=1).tolist()
    rows = [
        [names[i], found.groups[i], v - starts[i], *map(_short, point), *map(_short, value)]
        for v, (i, point, value) in enumerate(zip(complex.batch.tolist(), complex.points.tolist(), numbers, strict=True))
    ]
    tables = {"vertices.csv": (columns, rows)}
    regions = []
    for i, vertices, prominence, p_value in found.regions:
        listed = " ".join(map(str, (vertices - starts[i]).tolist()))
        regions.append([names[i], found.groups[i], len(vertices), _short(prominence), _short(p_value), listed])
    tables["regions.csv"] = (["shape", "group", "num_vertices", "prominence", "p_value", "vertices"], regions)
    for name, (header, lines) in tables.items():
        written.append(folder / name)
        write_text(written[-1], comma_separated(header, lines))
    written.append(folder / "legend.txt")
    write_text(written[-1], legend(found) + "\n")
    return written


def legend(found: Evidence) -> str:
    """What the colors of a map mean, and what the null beside it is."""
    low, high = color_limits(found)
    blocks = "" if found.strata is None else " by blocks"
    return (
        f"{MEANING} Gray: {low:g} or less; darkest red: {high:.3g} or more. The null beside it is the same with the labels of "
        f"the shapes permuted once; what it shows is chance. {found.permutations} permutations{blocks}, seed {found.seed}; the "
        f"smallest possible p-value is {found.smallest_p_value:.2g}. {int((found.p_values <= LEVEL).sum())} of "
        f"{len(found.p_values)} vertices have p <= {LEVEL:g}; by chance about {LEVEL * len(found.p_values):.0f} would."
    )


def _short(value: float) -> str:
    return f"{value:.6g}"
