"""Filtrations: a value for every cell, so that no cell appears before its faces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from .._validation import as_tensor, is_finite
from ..kernels import operation
from ..kernels.layout import signs_of
from .complex import Complex
from .packed import Packed, ragged_indices
from .simplices import groups, name_of

Monotone = Literal["check", "repair", "assume"]
"""What to do about cells that appear before one of their faces: raise an error, move them, or not look."""

MAX_SUBSETS = 128  # of the vertices of a cell that are looked up among its faces; beyond, only its vertices are compared
LANES = 8  # of the CPU kernel
MAX_PARTS, MIN_PART = 64, 1 << 14  # parts that one complex is split into, so that they stay in the cache, and cells of a part
MAX_TASKS = 16  # the same where parts are only for the threads


class Values(tuple[Tensor, ...]):
    """Values of the vertices, then of the cells of each level, known to be finite and monotone: nothing reads them again."""


class Filtration(NamedTuple):
    """A complex and the values of its vertices and cells, for ``es.ecc(*filtration, thresholds)``."""

    shape: Complex
    values: Values


def check_values(values: Any, complex: Complex, name: str, count: int, what: str) -> Tensor:
    """Values ``[count, T]`` of vertices or cells, given as ``[count]`` or ``[count, T]``, in float32 at least. Not read."""
    values = as_tensor(values, name)
    if not values.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {values.dtype}. Use {name}.float().")
    if values.device != complex.device:
        raise ValueError(f"{name} must be on {complex.device} like the points, got {values.device}.")
    if values.ndim not in (1, 2) or len(values) != count:
        transposed = values.ndim == 2 and values.shape[1] == count
        hint = " Did you pass it transposed?" if transposed else ""
        raise ValueError(f"{name} must have one row a {what}, shape [{count}] or [{count}, T], got {list(values.shape)}.{hint}")
    columns: Tensor = values[:, None] if values.ndim == 1 else values
    # The largest number of half precision would be a value like others to the kernels.
    return columns.to(torch.promote_types(columns.dtype, torch.float32))


def check_numbers(columns: Tensor, name: str) -> Tensor:
    """The values ``[n, T]``, infinite ones replaced by the largest number. NaN raises an error.

    On a GPU the host would have to wait, and a compiled program cannot tell: there infinite values go to the kernel as they
    are, and NaN makes its curve NaN.
    """
    if not columns.is_cpu or torch.compiler.is_compiling() or is_finite(columns):
        return columns
    if bool(columns.isnan().any()):
        row = int(columns.isnan().any(dim=1).nonzero()[0, 0])
        raise ValueError(f"{name} must be numbers, got nan at row {row}.")
    return columns.clamp(torch.finfo(columns.dtype).min, torch.finfo(columns.dtype).max)


def check_levels(values: Sequence[Any], complex: Complex) -> list[Tensor]:
    """Values ``[n, T]`` of the vertices, then of the cells of each level."""
    counts = complex.counts
    if len(values) != len(counts):
        raise ValueError(
            f"values must have an entry for the vertices and one for each level of cells, {len(counts)} in all, got "
            f"{len(values)}. For values of the vertices alone pass a tensor."
        )
    names = ["vertex", *(f"cell ({name_of(*kind)})" for kind in complex.packed.kinds)]
    levels = [
        check_values(level, complex, f"values[{i}]", count, name)
        for i, (level, count, name) in enumerate(zip(values, counts, names, strict=True))
    ]
    if not isinstance(values, Values):
        levels = [check_numbers(level, f"values[{i}]") for i, level in enumerate(levels)]
    widths = {level.shape[1] for level in levels}
    if len(widths) > 1:
        raise ValueError(f"values must have equally many columns in every entry, got {[level.shape[1] for level in levels]}.")
    return levels


def monotone_values(complex: Complex, levels: list[Tensor], monotone: Monotone, *, superlevel: bool = False) -> list[Tensor]:
    """The values of every level, checked or repaired: none is below that of a face (above, if ``superlevel``).

    A cell is compared with its vertices and with the listed faces of one dimension less. Repaired, it gets the largest of its
    own value and those of its faces.
    """
    if monotone == "assume":
        return levels
    levels = [-level for level in levels] if superlevel else list(levels)
    for i, columns in enumerate(complex.simplices, start=1):
        bound = torch.full_like(levels[i], -math.inf)
        for place, faces in _faces(complex, i):  # place: the level of the faces [n], -1 where there is none
            found = levels[place][faces.clamp(min=0)]
            bound = torch.maximum(bound, torch.where((faces >= 0)[:, None], found, -math.inf))
        if monotone == "repair":
            levels[i] = torch.maximum(levels[i], bound)
        elif bool((levels[i] < bound).any()):
            cell, column = (int(n) for n in (levels[i] < bound).nonzero()[0])
            sign, order = (-1, "at most") if superlevel else (1, "at least")
            raise ValueError(
                f"values must be monotone: {order} {sign * bound[cell, column].item():g}, the value of a face, for the cell "
                f"{columns[:, cell].tolist()}, got {sign * levels[i][cell, column].item():g} in values[{i}] at row {cell}. "
                'monotone="repair" moves such cells to the value of the face.'
            )
    return [-level for level in levels] if superlevel else levels


def _faces(complex: Complex, level: int) -> Iterator[tuple[int, Tensor]]:
    """For the cells of a level, which level some of their faces are in, and the index of a face of each cell, -1 for none."""
    columns, (dim, rows) = complex.simplices[level - 1].long(), complex.packed.kinds[level - 1]
    for row in columns:
        yield 0, row
    for place, (other_dim, other_rows) in enumerate(complex.packed.kinds, start=1):
        if other_dim == dim - 1 and other_rows < rows and math.comb(rows, other_rows) <= MAX_SUBSETS:
            present = complex.simplices[place - 1].long()
            subsets = [columns[list(subset)] for subset in itertools.combinations(range(rows), other_rows)]
            for found in _positions(present, torch.cat(subsets, dim=1)).chunk(len(subsets)):
                yield place, found


def _positions(present: Tensor, columns: Tensor) -> Tensor:
    """``[n]``: index of each column among those present, up to the order of vertices; -1 if it is not there."""
    if not columns.shape[1]:
        return columns.new_empty(0)
    group = groups(torch.cat([present, columns], dim=1).sort(dim=0).values)
    own, others = group.split([present.shape[1], columns.shape[1]])
    position = torch.full((len(group),), -1, dtype=torch.int64, device=columns.device)
    position[own] = torch.arange(len(own), device=columns.device)
    return position[others]


class Cloud(NamedTuple):
    """The cells of a filtration as points, whose heights are the values of the cells. See :func:`cells_as_points`."""

    packed: Packed  # of B * parts clouds, points [rows, fold * T]
    parts: int  # that a complex was split into
    fold: int  # cells in a row

    def curves(self, transform: Tensor) -> Tensor:
        """The curves ``[B, T, H]`` of the complexes, given those of the clouds ``[B * parts, fold * T, H]``."""
        clouds, columns, height = transform.shape
        if self.parts == self.fold == 1:
            return transform
        shape = (clouds // self.parts, self.parts, self.fold, columns // self.fold, height)
        return transform.reshape(shape).sum(dim=(1, 2))


def _num_parts(complex: Complex, most: int) -> int:
    """Only one complex is split: several keep all threads busy."""
    return max(1, min(most, sum(complex.counts) // MIN_PART)) if complex.num_complexes == 1 else 1


def count_cells(complex: Complex, levels: list[Tensor], thresholds: Tensor) -> Tensor:
    """The exact curves ``[B, 1, H]`` of a complex without weights, whose cells have the values ``[n, 1]`` of each level."""
    parts, offsets = _num_parts(complex, MAX_TASKS), complex.offsets
    if parts > 1:
        offsets = torch.tensor([[i * n // parts for i in range(parts + 1)] for n in complex.counts])
    signs = [1, *signs_of(complex.rows, complex.packed.dims)]
    found = operation.count([level[:, 0] for level in levels], signs, offsets, thresholds)
    return found.view(complex.num_complexes, parts, len(thresholds)).sum(dim=1, keepdim=True).to(thresholds.dtype)


def _rows(level: Tensor, fold: int) -> tuple[Tensor, Tensor]:
    """The cells ``[n, T]`` of a level, side by side ``[n / fold, fold * T]``: whole rows, without a copy, and the rest.

    The last row is filled up with cells that never appear.
    """
    end, width, never = len(level) // fold * fold, level.shape[1], torch.finfo(level.dtype).max
    rest = torch.nn.functional.pad(level[end:], (0, 0, 0, -len(level) % fold), value=never)
    return level[:end].reshape(end // fold, fold * width), rest.reshape(len(rest) // fold, fold * width)


def cells_as_points(complex: Complex, levels: list[Tensor], *, exact: bool) -> Cloud:
    """Clouds with the curves of a filtration: every cell is a point, and its weight has the sign of the cell.

    Parts of a cloud are clouds whose curves add up. So one complex is split into parts, to be transformed by several threads,
    and if it has no weights into the lanes of the CPU kernel: several cells of one level, side by side in a row. Curves of
    parts are larger than their sum, and must be added in float64 unless they are integers.
    """
    packed, width, signs = complex.packed, levels[0].shape[1], [1, *signs_of(complex.rows, complex.packed.dims)]
    counts, total = [len(level) for level in levels], sum(len(level) for level in levels)
    parts, fold, order = _num_parts(complex, MAX_PARTS), 1, None
    if complex.num_complexes == 1:
        fold = max(1, LANES // max(1, width)) if packed.weights is None else 1
        if not (exact and packed.weights is None and total < 2**24):
            levels = [level.double() for level in levels]
        levels = [rows for level in levels for rows in _rows(level, fold)]
        counts = [-(-n // fold) for n in counts]
        offsets = torch.tensor([[i * sum(counts) // parts for i in range(parts + 1)]], device=complex.device)
    else:
        # From level after level to complex after complex.
        begins = torch.tensor([0, *itertools.accumulate(counts)][:-1], device=complex.device)
        starts, sizes = complex.offsets[:, :-1] + begins[:, None], complex.offsets.diff(dim=1)
        order, offsets = ragged_indices(starts.T.reshape(-1), sizes.T.reshape(-1)), complex.offsets.sum(dim=0)[None]
    values = torch.cat(levels)
    weights = torch.cat([values.new_full((count,), sign) for count, sign in zip(counts, signs, strict=True)])
    weights = weights if packed.weights is None else weights * packed.weights.to(weights.dtype)
    if order is not None:
        values, weights = values[order], weights[order]
    return Cloud(Packed(values, offsets, (), packed.simplices[:0], weights), parts, fold)
