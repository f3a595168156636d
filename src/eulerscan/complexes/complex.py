"""Simplicial complexes, one or many in a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NoReturn, get_args

import torch
from torch import Tensor

from .._devices import has_float64
from .._validation import (
    check_batch,
    check_choice,
    check_floating,
    check_points,
    check_simplices,
    check_vertex_weights,
    check_weights,
    positive,
)
from ..kernels.layout import counts_of, owners, signs_of, split_simplices, split_weights
from . import simplices as simplex
from .normalize import Normalize, largest_norms, normalized
from .packed import Packed, join, offsets_of, pack, take

Extend = Literal["max", "min", "mean"]
"""The weight of a simplex, given the weights of its vertices."""


class Complex:
    """One or many embedded simplicial complexes: point clouds, graphs, meshes, or a mixture.

    A batch of complexes is a complex. It is validated when it is made and immutable: it shares memory with the given tensors
    where possible, so do not modify them in place.

    Every column of ``simplices`` counts once. An edge stored in both directions counts twice (:func:`as_complex` removes such
    duplicates), and faces that are not listed do not count (:meth:`closure` adds them).

    Cells that are not simplices, such as squares, cubes, polygons and hyperedges, are columns of vertices with a dimension of
    their own, ``dims``. A cell counts -1 if its dimension is odd, else 1, and is as high as its highest vertex.

    Args:
        points: Coordinates of the vertices, ``[V, dim]``, floating point.
        simplices: Integer tensors ``[k + 1, n]``, one for each dimension k >= 1 that occurs, a simplex a
            column: edges ``[2, n]``, triangles ``[3, n]``, tetrahedra ``[4, n]``. With ``dims``, cells ``[any, n]``.
        dims: Dimension of the cells in each entry of ``simplices``, such as ``(1, 2)`` for edges ``[2, n]`` and squares
            ``[4, m]``. Vertices of a 2-cell are listed around its boundary. ``None``: all are simplices.
        weights: One number a simplex: ``(of vertices [V], of simplices[0], of simplices[1], ...)``, each ``None`` for all
            ones. ``None`` is the unweighted complex.
        batch: The complex that each vertex belongs to, ``[V]``, in any order. ``None``: all belong to one.
        num_complexes: Number of complexes, needed if the last ones have no vertex.

    Attributes:
        packed: The tensors as the kernels take them (:class:`~eulerscan.complexes.packed.Packed`).

    Example:
        >>> points = torch.tensor([[0., 0], [1, 0], [1, 1], [0, 1]])
        >>> square = Complex(points, [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])])  # four edges
        >>> square
        Complex(num_complexes=1, dim=2, points=4, simplices=(4 edges,))
        >>> square.euler_characteristic()
        tensor([0])
        >>> filled = Complex(points, [*square.simplices, torch.tensor([[0], [1], [2], [3]])], dims=(1, 2))  # and a 2-cell
        >>> filled.euler_characteristic()
        tensor([1])
    """

    packed: Packed
    _counts: tuple[int, ...] | None  # where they are known without a look at a device

    def __init__(
        self,
        points: Tensor,
        simplices: Iterable[Tensor] = (),
        *,
        dims: Sequence[int] | None = None,
        weights: Sequence[Tensor | None] | None = None,
        batch: Tensor | None = None,
        num_complexes: int | None = None,
    ) -> None:
        check_points(points)
        batch, num_complexes = check_batch(batch, num_complexes, points)
        tensors = check_simplices(simplices, points, batch, dims)
        weights = check_weights(weights, points, tensors)
        object.__setattr__(self, "packed", pack(points, tensors, weights, batch, num_complexes, dims))
        object.__setattr__(self, "_counts", None)
        if not points.is_cpu:
            object.__setattr__(self, "_counts", self.counts)

    @classmethod
    def from_packed(cls, packed: Packed, counts: tuple[int, ...] | None = None) -> Complex:
        """A complex from packed tensors, without validation. They must come from a validated complex.

        Args:
            packed: The tensors.
            counts: Its :attr:`counts` if they are known: the host would wait for a GPU to tell.
        """
        complex = cls.__new__(cls)
        object.__setattr__(complex, "packed", packed)
        object.__setattr__(complex, "_counts", counts)
        return complex

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: a Complex is immutable. with_points() makes another one.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} cannot be deleted: a Complex is immutable.")

    @property
    def points(self) -> Tensor:
        """``[V, dim]``: coordinates, complex after complex (in the given order, if ``batch`` was ascending)."""
        return self.packed.points

    @property
    def offsets(self) -> Tensor:
        """``[1 + L, B + 1]``: where the vertices, and the simplices of each level, of each complex begin and end."""
        return self.packed.offsets

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of vertices of a simplex, for each of the L levels. A level is the simplices of one dimension."""
        return self.packed.rows

    @property
    def dims(self) -> tuple[int, ...]:
        """Dimension of the cells of each of the L levels: ``rows - 1`` for simplices."""
        return tuple(dim for dim, _ in self.packed.kinds)

    @property
    def is_simplicial(self) -> bool:
        """Whether all cells are simplices."""
        return self.packed.dims is None

    @property
    def num_complexes(self) -> int:
        """B: number of complexes, including empty ones."""
        return self.offsets.shape[1] - 1

    @property
    def dim(self) -> int:
        """Dimension of the ambient space."""
        return self.points.shape[1]

    @property
    def batch(self) -> Tensor:
        """``[V]``: the complex that each vertex belongs to, ascending."""
        return owners(self.offsets[0], self.points.shape[0])

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of vertices, then of simplices in each level."""
        if self._counts and len(self.rows) > 1:  # else they are known from shapes, also in compiled programs
            return self._counts
        return tuple(counts_of(self.points.shape[0], self.packed.simplices, self.offsets, self.rows))

    @property
    def max_dim(self) -> int:
        """Largest dimension of a simplex: 0 for point clouds, 1 for graphs, 2 for triangle meshes."""
        return max([0, *(dim for dim, count in zip(self.dims, self.counts[1:], strict=True) if count)])

    @property
    def simplices(self) -> tuple[Tensor, ...]:
        """The simplices of each dimension that occurs, ascending, ``[k + 1, n]``; other cells by their number of vertices."""
        return split_simplices(self.packed.simplices, self.rows, self.counts[1:])

    def of_dim(self, dim: int) -> Tensor:
        """The simplices of one dimension, ``[dim + 1, n]`` in int64: edges for 1, triangles for 2. Other cells are left out.

        >>> path = Complex(torch.rand(3, 2), [torch.tensor([[0, 1], [1, 2]])])
        >>> path.of_dim(1), path.of_dim(2).shape
        (tensor([[0, 1],
                [1, 2]]), torch.Size([3, 0]))
        """
        kind, kinds = (positive(dim, "dim"), dim + 1), self.packed.kinds
        found = self.simplices[kinds.index(kind)] if kind in kinds else self.packed.simplices.new_empty(dim + 1, 0)
        return found.long()

    @property
    def weights(self) -> tuple[Tensor, ...] | None:
        """Weights of the vertices, then of the simplices of each level; ``None`` for an unweighted complex."""
        return None if self.packed.weights is None else split_weights(self.packed.weights, self.counts)

    def __len__(self) -> int:
        return self.num_complexes

    def __getitem__(self, indices: Any) -> Complex:
        return self.select(indices)

    def __repr__(self) -> str:
        counts = self.counts
        levels = [f"{n} {simplex.name_of(*kind)}" for kind, n in zip(self.packed.kinds, counts[1:], strict=True)]
        simplices = f", simplices=({', '.join(levels)}{',' * (len(levels) == 1)})" if levels else ""
        weighted = ", weighted" if self.packed.weights is not None else ""
        return f"Complex(num_complexes={self.num_complexes}, dim={self.dim}, points={counts[0]}{simplices}{weighted})"

    def select(self, indices: Tensor | Sequence[int] | slice | int) -> Complex:
        """Select complexes, in the given order, with repetition.

        Args:
            indices: Indices of complexes, negative ones from the end; a boolean mask ``[B]``; a slice; or one index.
        """
        return self._take(self._positions(indices))

    def _take(self, positions: Tensor) -> Complex:
        """The complexes at validated positions."""
        return Complex.from_packed(take(self.packed, positions))

    def _positions(self, indices: Tensor | Sequence[int] | slice | int) -> Tensor:
        """The argument of :meth:`select`, validated, as non-negative indices."""
        device, count = self.offsets.device, self.num_complexes
        if isinstance(indices, slice):
            return torch.tensor(range(count)[indices], dtype=torch.int64, device=device)
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

        Only the shape is checked, since fitting and training call this in every step.
        """
        check_floating(points, "points")
        shape, (count, _) = points.shape, self.points.shape
        if len(shape) != 2 or shape[0] != count or shape[1] == 0:
            raise ValueError(f"points must have shape [{count}, dim] here, got {list(shape)}.")
        if points.device != self.device:
            raise ValueError(f"points must be on {self.device} like the rest of the complex, got {points.device}.")
        return Complex.from_packed(self.packed._replace(points=points), self._counts)

    @property
    def device(self) -> torch.device:
        """Device of all tensors."""
        return self.points.device

    def to(
        self,
        device: torch.device | torch.dtype | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        non_blocking: bool = False,
    ) -> Complex:
        """Move to another device, or convert coordinates and weights to another dtype, as ``Tensor.to`` does.

        On devices without float64 (Apple GPUs) they become float32. With ``non_blocking``, copies from :meth:`pin_memory` to a
        GPU run beside what the host does next.
        """
        if isinstance(device, torch.dtype):
            device, dtype = None, device
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype must be floating point, got {dtype}.")
        if dtype is None and device is not None and not has_float64(torch.device(device)):
            dtype = torch.float32 if self.points.dtype == torch.float64 else None
        weights = self.packed.weights
        if device is None and dtype == self.points.dtype and (weights is None or weights.dtype == dtype):
            return self  # every forward pass of a layer asks
        packed = self.packed.map(
            lambda x: x.to(device=device, dtype=dtype, non_blocking=non_blocking),
            lambda x: x.to(device=device, non_blocking=non_blocking),  # indices keep their dtype
        )
        leaves_cpu = self.points.is_cpu and not packed.points.is_cpu  # the last chance to count without waiting for a device
        return Complex.from_packed(packed, self.counts if leaves_cpu else self._counts)

    def cpu(self) -> Complex:
        """Move to the CPU."""
        return self.to("cpu")

    def cuda(self, device: torch.device | str | int | None = None, *, non_blocking: bool = False) -> Complex:
        """Move to a GPU, the current one by default."""
        target = torch.device("cuda", device) if isinstance(device, int) else device
        return self.to("cuda" if target is None else target, non_blocking=non_blocking)

    def pin_memory(self) -> Complex:
        """A copy in pinned memory, for ``DataLoader(pin_memory=True)``."""
        return Complex.from_packed(self.packed.map(Tensor.pin_memory), self._counts)

    def detach(self) -> Complex:
        """The same complex, through which no gradients flow to points and weights."""
        return Complex.from_packed(self.packed.map(Tensor.detach), self._counts)

    def normalized(self, normalize: Normalize | None = "unit_ball") -> Complex:
        """Each complex moved to the unit ball, or only centered; no complex depends on another one of the batch.

        Args:
            normalize: ``"unit_ball"`` moves the centroid to the origin and scales the largest norm to 1. The centroid is that
                of the shape, not of its vertices: by length for graphs, by area for meshes, by volume for solids, so that it
                does not depend on the mesh. ``"center"`` keeps the size. ``"vertices"`` is the unit ball about the mean of the
                vertices, as in the paper. ``None`` returns the complex as it is. Weights do not count. A single point, or
                coincident points, go to 0.

        Example:
            >>> pair = Complex(torch.tensor([[5.0, 1.0], [9.0, 1.0]]))
            >>> pair.normalized("unit_ball").points.tolist()
            [[-1.0, 0.0], [1.0, 0.0]]
            >>> pair.normalized("center").points.tolist()
            [[-2.0, 0.0], [2.0, 0.0]]
        """
        if normalize is None:
            return self
        simplices = () if normalize == "vertices" else self.simplices  # by which the centroid is weighted
        points = normalized(self.packed, self.batch, simplices, normalize)
        return Complex.from_packed(self.packed._replace(points=points), self._counts)

    def largest_norms(self) -> Tensor:
        """``[B]``: norm of the vertex farthest from the origin, 0 for an empty complex."""
        return largest_norms(self.points, self.batch, self.num_complexes)

    def with_weights(self, weights: Any, extend: Extend = "max") -> Complex:
        """The same complex with other weights.

        Args:
            weights: Of the vertices, ``[V]`` in the order of ``self.points``. Or a tuple or list, as in :attr:`weights`: of
                vertices, then of the simplices of each level, ``None`` for all ones.
            extend: The weight of a simplex, given those of its vertices: their ``"max"``, as for images, their ``"min"`` or
                their ``"mean"``. Ignored with a tuple or list.
        """
        check_choice(extend, "extend", get_args(Extend))
        levels: Sequence[Tensor] | None
        if isinstance(weights, tuple | list) and weights and all(w is None or getattr(w, "ndim", 0) for w in weights):
            levels = check_weights(weights, self.points, self.simplices)
        else:
            weights = check_vertex_weights(weights, self.points)
            name = {"max": "amax", "min": "amin", "mean": "mean"}[extend]
            levels = [weights, *(getattr(weights[columns], name)(dim=0) for columns in self.simplices)]
        return Complex.from_packed(self.packed._replace(weights=None if levels is None else torch.cat(levels)), self._counts)

    def subsample(self, num_points: int, *, generator: torch.Generator | None = None) -> Complex:
        """At most ``num_points`` points of each cloud, without replacement: the first ones, or random ones.

        Args:
            num_points: Clouds with fewer points stay as they are.
            generator: Draws the points; ``None`` takes the first ones.

        Example:
            >>> clouds = Complex(torch.tensor([[1.0], [2.0], [3.0], [4.0]]), batch=torch.tensor([0, 0, 0, 1]))
            >>> clouds.subsample(2).points.flatten()
            tensor([1., 2., 4.])
        """
        positive(num_points, "num_points")
        if self.max_dim > 0:
            raise ValueError(f"num_points subsamples point clouds, but the complex has {self.max_dim}-simplices: {self!r}.")
        batch, count = self.batch, len(self.points)
        order = torch.arange(count, device=self.device)
        rank = order - self.offsets[0][batch]
        if generator is not None:
            shuffled = torch.randperm(count, generator=generator, device=generator.device).to(self.device)
            order = shuffled[batch[shuffled].argsort(stable=True)]  # random within each cloud
        kept = order[rank < num_points].sort().values
        offsets = offsets_of(self.offsets.diff().clamp(max=num_points)[:1])
        weights = self.packed.weights
        return Complex.from_packed(
            Packed(self.points[kept], offsets, (), self.packed.simplices[:0], None if weights is None else weights[kept])
        )

    def euler_characteristic(self) -> Tensor:
        """``[B]``: vertices - edges + triangles - ...; for a weighted complex the same sum of weights."""
        signs = torch.tensor([1, *signs_of(self.rows, self.packed.dims)], device=self.offsets.device)
        weights = self.weights
        if weights is None:
            return (signs[:, None] * self.offsets.diff(dim=1)).sum(dim=0)
        result = weights[0].new_zeros(self.num_complexes)
        for sign, weight, offset in zip(signs, weights, self.offsets, strict=True):
            result = result.index_add(0, owners(offset, len(weight)), sign * weight)
        return result

    def closure(self) -> Complex:
        """The complex with all missing faces added: those of simplices, and the sides of polygons."""
        if self.packed.weights is not None:
            raise ValueError("closure() cannot know the weights of new faces. Call it before with_weights().")
        levels = dict(zip(self.packed.kinds, self.simplices, strict=True))
        # From the largest dimension down, so that added faces get their own faces.
        for dim in range(max(self.dims, default=0), 1, -1):
            present = levels.get((dim - 1, dim), self.packed.simplices.new_empty(dim, 0))
            found = [self._faces(kind, columns) for kind, columns in levels.items() if kind[0] == dim]
            added = simplex.missing(torch.cat(found, dim=1), present) if found else present[:, :0]
            levels[dim - 1, dim] = torch.cat([present, added.to(present.dtype)], dim=1)
        dims = [dim for dim, _ in levels]
        return Complex.from_packed(pack(self.points, tuple(levels.values()), None, self.batch, self.num_complexes, dims))

    @staticmethod
    def _faces(kind: tuple[int, int], columns: Tensor) -> Tensor:
        """The faces of the cells of one level, simplices of one dimension less."""
        dim, rows = kind
        if rows == dim + 1:
            return simplex.faces(columns)
        if dim != 2:
            raise ValueError(f"closure() knows the faces of simplices and polygons, got {simplex.name_of(*kind)}. List them.")
        return simplex.sides(columns)


def collate(complexes: Sequence[Complex]) -> Complex:
    """Concatenate complexes to a batch. Each may be a batch itself; clouds, graphs and meshes may be mixed.

    Also the ``collate_fn`` of a ``DataLoader`` over complexes: ``DataLoader(items, collate_fn=es.collate)``.

    >>> cloud = Complex(torch.rand(5, 2))
    >>> graph = Complex(torch.rand(3, 2), [torch.tensor([[0, 1], [1, 2]])])
    >>> collate([cloud, graph])
    Complex(num_complexes=2, dim=2, points=8, simplices=(2 edges,))
    """
    complexes = list(complexes)
    if not complexes:
        raise ValueError("complexes must not be empty: an empty list has no dimension.")
    for i, item in enumerate(complexes):
        if not isinstance(item, Complex):
            raise TypeError(f"complexes[{i}] must be a Complex, got {type(item).__name__}. as_complex() makes one.")
        if item.dim != complexes[0].dim or item.points.device != complexes[0].points.device:
            raise ValueError(
                f"complexes[{i}] has points of dimension {item.dim} on {item.points.device}, complexes[0] of dimension "
                f"{complexes[0].dim} on {complexes[0].points.device}: all must agree."
            )
    return Complex.from_packed(join([item.packed for item in complexes]))
