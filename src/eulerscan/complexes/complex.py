"""The noun of the library: one or many embedded simplicial complexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._validation import check_batch, check_points, check_simplices, check_weights
from ..kernels.layout import owners, split_simplices, split_weights
from . import simplices as simplex
from .packed import join, pack, take


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Complex:
    """One or many embedded simplicial complexes: point clouds, graphs, meshes, or a mixture.

    A batch of complexes is a complex. It is checked when it is made; its tensors are those that were given where possible, not
    copies, so do not change them in place.

    Every column of ``simplices`` counts once: an edge stored in both directions counts twice (:func:`as_complex` removes such
    copies), and faces that are not listed do not count (:meth:`closure` adds them).

    Args:
        points: Coordinates of the vertices, ``[V, dim]``, floating point.
        simplices: Integer tensors ``[k + 1, n]``, one for each dimension k >= 1 that occurs, a simplex a
            column: edges ``[2, n]``, triangles ``[3, n]``, tetrahedra ``[4, n]``.
        weights: One number a simplex: ``(of vertices [V], of simplices[0], of simplices[1], ...)``, each ``None`` for all
            ones. ``None`` is the unweighted complex.
        batch: Which complex each vertex belongs to, ``[V]``, in any order. ``None``: all belong to one.
        num_complexes: How many complexes there are, for those at the end without a vertex.

    Attributes:
        points: The coordinates, complex after complex (the given order, if ``batch`` ascends).
        rows: Vertices of a simplex, for each of the L levels: a level is the simplices of one dimension.
        offsets: ``[1 + L, B + 1]``: complex ``b`` has the vertices ``offsets[0, b] : offsets[0, b + 1]`` and the simplices
            ``offsets[i, b] : offsets[i, b + 1]`` of level ``i``, counted from 1.
        packed_simplices, packed_weights: All levels in one vector, as the kernels take them.

    Example:
        >>> points = torch.tensor([[0., 0], [1, 0], [1, 1], [0, 1]])
        >>> square = Complex(points, [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])])  # four edges
        >>> square
        Complex(num_complexes=1, dim=2, points=4, simplices=(4 edges,))
        >>> square.euler_characteristic()
        tensor([0])
    """

    points: Tensor
    offsets: Tensor
    rows: tuple[int, ...]
    packed_simplices: Tensor
    packed_weights: Tensor | None

    def __init__(
        self,
        points: Tensor,
        simplices: Iterable[Tensor] = (),
        *,
        weights: Sequence[Tensor | None] | None = None,
        batch: Tensor | None = None,
        num_complexes: int | None = None,
    ) -> None:
        check_points(points)
        batch, num_complexes = check_batch(batch, num_complexes, points)
        tensors = check_simplices(simplices, points, batch)
        weights = check_weights(weights, points, tensors)
        self._set(*pack(points, tensors, weights, batch, num_complexes))

    def _set(
        self,
        points: Tensor,
        offsets: Tensor,
        rows: tuple[int, ...],
        packed_simplices: Tensor,
        packed_weights: Tensor | None,
    ) -> None:
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "packed_simplices", packed_simplices)
        object.__setattr__(self, "packed_weights", packed_weights)

    @classmethod
    def _make(cls, *fields: Any) -> Complex:
        """A complex from parts of a checked one, not checked again."""
        complex = cls.__new__(cls)
        complex._set(*fields)
        return complex

    @property
    def num_complexes(self) -> int:
        """B: how many complexes there are, empty ones included."""
        return self.offsets.shape[1] - 1

    @property
    def dim(self) -> int:
        """Dimension of the space that holds the points."""
        return self.points.shape[1]

    @property
    def batch(self) -> Tensor:
        """``[V]``: the complex that each vertex belongs to, ascending."""
        return owners(self.offsets[0], len(self.points))

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of vertices, then of simplices in each level."""
        if len(self.rows) < 2:  # the shapes say it, which compiled programs may ask for, and no device is waited for
            return (self.points.shape[0], *(self.packed_simplices.shape[0] // rows for rows in self.rows))
        return tuple(self.offsets[:, -1].tolist())

    @property
    def max_dim(self) -> int:
        """The largest dimension of its simplices: 0 for points alone, 1 for graphs, 2 for meshes of triangles."""
        return max([0, *(rows - 1 for rows, count in zip(self.rows, self.counts[1:], strict=True) if count)])

    @property
    def simplices(self) -> tuple[Tensor, ...]:
        """The simplices of each dimension that occurs, ascending, ``[k + 1, n]``."""
        return split_simplices(self.packed_simplices, self.rows, self.counts[1:])

    @property
    def weights(self) -> tuple[Tensor, ...] | None:
        """The weights of the vertices, then of the simplices in each level; ``None`` where all are one."""
        return None if self.packed_weights is None else split_weights(self.packed_weights, self.counts)

    def __len__(self) -> int:
        return self.num_complexes

    def __getitem__(self, indices: Any) -> Complex:
        return self.select(indices)

    def __repr__(self) -> str:
        counts = self.counts
        levels = [f"{n} {simplex.NAMES.get(r, f'{r - 1}-simplices')}" for r, n in zip(self.rows, counts[1:], strict=True)]
        simplices = f", simplices=({', '.join(levels)}{',' * (len(levels) == 1)})" if levels else ""
        weighted = ", weighted" if self.packed_weights is not None else ""
        return f"Complex(num_complexes={self.num_complexes}, dim={self.dim}, points={counts[0]}{simplices}{weighted})"

    def select(self, indices: Tensor | Sequence[int] | slice | int) -> Complex:
        """Some of the complexes, in the given order, as often as they are named.

        Args:
            indices: Numbers of complexes, negative ones from the end; a mask ``[B]``; a slice; or one number.
        """
        return self._take(self._positions(indices))

    def _take(self, chosen: Tensor) -> Complex:
        """The complexes with these numbers, which are checked."""
        return Complex._make(*take(self, chosen))

    def _positions(self, indices: Tensor | Sequence[int] | slice | int) -> Tensor:
        """What :meth:`select` takes, checked, as numbers of complexes from 0 on."""
        device, count = self.offsets.device, self.num_complexes
        if isinstance(indices, slice):
            return torch.arange(count, device=device)[indices]
        positions = torch.as_tensor(indices, device=device)
        if positions.dtype == torch.bool:
            if positions.shape != (count,):
                raise IndexError(f"indices is a mask, so it needs shape [{count}], got {list(positions.shape)}.")
            return positions.nonzero().squeeze(1)
        if positions.numel() == 0:
            return torch.empty(0, dtype=torch.int64, device=device)
        if positions.is_floating_point() or positions.ndim > 1:
            raise TypeError(
                f"indices must be integers [n], a mask or a slice, got {positions.dtype} of shape {list(positions.shape)}."
            )
        positions = positions.reshape(-1).long()
        low, high = (int(end) for end in positions.aminmax())
        if low < -count or high >= count:
            raise IndexError(f"indices must name one of {count} complexes, got {low if low < -count else high}.")
        return positions if low >= 0 else torch.where(positions < 0, positions + count, positions)

    def with_points(self, points: Tensor) -> Complex:
        """The same connectivity with other coordinates ``[V, any dim]``, in the order of ``self.points``.

        Nothing but the shape is checked: this is what fitting and training call in every step.
        """
        if not isinstance(points, Tensor) or not points.is_floating_point():
            got = points.dtype if isinstance(points, Tensor) else type(points).__name__
            raise TypeError(f"points must be a torch.Tensor of floating point, got {got}.")
        shape, (count, _) = points.shape, self.points.shape
        if len(shape) != 2 or shape[0] != count or shape[1] == 0:
            raise ValueError(f"points must have shape [{count}, dim] here, got {list(shape)}.")
        if points.device != self.device:
            raise ValueError(f"points must be on {self.device} like the rest of the complex, got {points.device}.")
        return Complex._make(points, self.offsets, self.rows, self.packed_simplices, self.packed_weights)

    @property
    def device(self) -> torch.device:
        """Where all of its tensors are."""
        return self.points.device

    def to(self, device: torch.device | torch.dtype | str | None = None, dtype: torch.dtype | None = None) -> Complex:
        """A complex on another device, or with coordinates and weights of another dtype; one of the two may stand alone."""
        if isinstance(device, torch.dtype):
            device, dtype = None, device
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype must be floating point, got {dtype}.")
        weights = self.packed_weights
        return Complex._make(
            self.points.to(device=device, dtype=dtype),
            self.offsets.to(device=device),
            self.rows,
            self.packed_simplices.to(device=device),
            None if weights is None else weights.to(device=device, dtype=dtype),
        )

    def pin_memory(self) -> Complex:
        """The complex in memory that an accelerator copies from faster: what ``DataLoader(pin_memory=True)`` calls."""
        weights = self.packed_weights
        return Complex._make(
            self.points.pin_memory(),
            self.offsets.pin_memory(),
            self.rows,
            self.packed_simplices.pin_memory(),
            None if weights is None else weights.pin_memory(),
        )

    def centred(self) -> Complex:
        """Each complex moved so that the mean of its points is at the origin. Its size stays.

        It depends on no other complex of the batch. A single point and coincident points go to 0.
        """
        batch = self.batch
        # Relative to one of its own points a coincident complex is exactly zero, whatever its place.
        points = self.points - self.points[self.offsets[0, batch]]
        wide = torch.promote_types(points.dtype, torch.float32)  # a sum in half precision would overflow
        sums = points.new_zeros(self.num_complexes, self.dim, dtype=wide).index_add(0, batch, points.to(wide))
        sizes = self.offsets[0].diff().clamp(min=1).unsqueeze(1)
        return self.with_points(points - (sums / sizes).to(points.dtype)[batch])

    def unit_ball(self) -> Complex:
        """Each complex centred at the mean of its points and scaled to largest norm 1.

        It depends on no other complex of the batch. A single point and coincident points go to 0.
        """
        points, batch = self.centred().points, self.batch
        # Twice: a norm of very large or very small coordinates would overflow or vanish.
        points = points / self._largest(points.abs().amax(dim=1))[batch, None]
        points = points / self._largest(torch.linalg.vector_norm(points, dim=1))[batch, None]
        return self.with_points(points)

    def _largest(self, values: Tensor) -> Tensor:
        """``[B]``: the largest of the non-negative values ``[V]`` of each complex, 1 where that is 0."""
        largest = values.new_zeros(self.num_complexes).scatter_reduce(0, self.batch, values, "amax")
        return torch.where(largest > 0, largest, 1.0)

    def euler_characteristic(self) -> Tensor:
        """``[B]``: vertices - edges + triangles - ...; the same sum of weights for a weighted complex."""
        # An odd number of vertices is an even dimension, which counts with a plus.
        signs = torch.tensor([1, *(1 if r % 2 else -1 for r in self.rows)], device=self.offsets.device)
        weights = self.weights
        if weights is None:
            return (signs[:, None] * self.offsets.diff(dim=1)).sum(dim=0)
        result = weights[0].new_zeros(self.num_complexes)
        for sign, weight, offset in zip(signs, weights, self.offsets, strict=True):
            result = result.index_add(0, owners(offset, len(weight)), sign * weight)
        return result

    def closure(self) -> Complex:
        """The complex with the faces that its simplices lack. What is there already stays as it is."""
        if self.packed_weights is not None:
            raise ValueError("closure() cannot know the weights of the faces that it adds. Close the complex, then weigh it.")
        levels = dict(zip(self.rows, self.simplices, strict=True))
        # From the largest dimension down, so that faces that were added bring their own.
        for rows in range(max(levels, default=0), 2, -1):
            present = levels.get(rows - 1, self.packed_simplices.new_empty(rows - 1, 0))
            added = simplex.missing(simplex.faces(levels[rows]), present)
            levels[rows - 1] = torch.cat([present, added.to(present.dtype)], dim=1)
        return Complex(self.points, levels.values(), batch=self.batch, num_complexes=self.num_complexes)


def collate(complexes: Sequence[Complex]) -> Complex:
    """Many complexes as one, in the given order; each may hold several, and any kinds may be mixed.

    Also what a ``DataLoader`` over a list of complexes needs: ``DataLoader(items, collate_fn=es.collate)``.

    >>> cloud = Complex(torch.rand(5, 2))
    >>> graph = Complex(torch.rand(3, 2), [torch.tensor([[0, 1], [1, 2]])])
    >>> collate([cloud, graph])
    Complex(num_complexes=2, dim=2, points=8, simplices=(2 edges,))
    """
    complexes = list(complexes)
    if not complexes:
        raise ValueError("complexes must hold at least one Complex: an empty list has no dimension of space.")
    for i, item in enumerate(complexes):
        if not isinstance(item, Complex):
            raise TypeError(f"complexes[{i}] must be a Complex, got {type(item).__name__}. as_complex() makes one.")
        if item.dim != complexes[0].dim or item.points.device != complexes[0].points.device:
            raise ValueError(
                f"complexes[{i}] has points of dimension {item.dim} on {item.points.device}, complexes[0] of dimension "
                f"{complexes[0].dim} on {complexes[0].points.device}: all must agree."
            )
    return Complex._make(*join(complexes))
