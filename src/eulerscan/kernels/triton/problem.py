"""The fast algorithm on a GPU: from tensors to kernels, and back.

No kernel makes the host wait: grids come from shapes, while the scale and the number of simplices of each level are read on
the device. So a CUDA graph can record both passes. All sums have a fixed order or are sums of integers, so that every run
gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from ..layout import check_inputs, signs_of
from ..portable import SATURATION
from . import backward, collapse, forward

MAX_ENTRIES = 1 << 26  # of an intermediate tensor; directions are processed in blocks of that size
MAX_INT32 = 2**31 - 2**16  # room for the last tile
MAX_DIRECTIONS = 1 << 15  # of a block: CUDA limits the second axis of a grid
# Registers of kernels of one warp. Without a limit, NVIDIA's assembler spills a few to fit more warps.
MAX_REGISTERS = {torch.float32: 128, torch.float64: 255}


class Tiles(NamedTuple):
    """What one program works on. The numbers were chosen by the code that they compile to: see ``benchmarks/gpu_model.py``."""

    chunk: int = 512  # vertices whose curves are summed in registers
    vertices: int = 32
    directions: int = 1  # of one warp: 8 instructions a sigmoid
    thresholds: int = 32
    simplices: int = 512  # times directions
    weights: int = 1024


TILES = Tiles()


class Problem:
    """The checked arguments of both passes. Coefficients that fit in one block are kept for the second one."""

    def __init__(
        self,
        points: Tensor,
        directions: Tensor | None,
        thresholds: Tensor,
        scale: Tensor,
        weights: Tensor | None,
        simplices: Tensor,
        offsets: Tensor,
        rows: Sequence[int],
        dims: Sequence[int] | None = None,
    ) -> None:
        check_inputs(points, directions, thresholds, weights, simplices, offsets, rows, dims)
        self.points, self.thresholds, self.simplices, self.offsets = map(_plain, (points, thresholds, simplices, offsets))
        self.directions = None if directions is None else _plain(directions)
        self.weights = None if weights is None else _plain(weights)
        self.scale = scale.detach().to(points).reshape(1)
        self.rows, self.signs = tuple(rows), signs_of(rows, dims)
        self.num_points, self.num_complexes = len(points), offsets.shape[1] - 1
        self.num_directions = points.shape[1] if directions is None else directions.shape[-2]
        self.num_thresholds = len(thresholds)
        self.dim = 0 if directions is None else points.shape[1]
        self.shared = directions is None or directions.ndim == 2
        self.saturation = SATURATION[points.dtype]
        self.steps, self.searches = self.num_complexes.bit_length(), self.num_thresholds.bit_length()
        longest = max(len(simplices) + len(points), self.points.numel(), 0 if directions is None else directions.numel())
        self.is_long = simplices.dtype == torch.int64 or longest >= MAX_INT32
        self.tiles = TILES
        limit = {} if torch.version.hip else {"maxnreg": MAX_REGISTERS[points.dtype]}  # AMD's compiler has no such option
        self.one_warp = {"num_warps": 1, **limit}
        self.kept: Coefficients | None = None
        self.fixed: tuple[Tensor, Tensor] | None = None

    @property
    def is_current(self) -> bool:
        """Always: torch manages the memory."""
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the transform."""
        return self.num_complexes, self.num_directions, self.num_thresholds

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        with self._device():
            return self._curves(forward.VALUES, keep=True)

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        if gradient.shape != self.shape or gradient.dtype != self.points.dtype or gradient.device != self.points.device:
            raise ValueError(
                "gradient must have the shape, dtype and device of the transform, "
                f"got {list(gradient.shape)}, {gradient.dtype} on {gradient.device}."
            )
        gradient = _plain(gradient)
        of_points, of_directions, of_thresholds, of_scale, of_weights = needs
        found: list[Tensor | None] = [None] * 5
        with self._device():
            if of_points or (of_directions and self.directions is not None):
                found[0], found[1] = self._height_gradients(gradient, of_points, of_directions)
            if of_thresholds:
                slopes = self._curves(forward.THRESHOLD_SLOPES)
                found[2] = (gradient * slopes).sum(dim=(0, 1), dtype=torch.float64).to(gradient.dtype)
            if of_scale:
                slopes = self._curves(forward.SCALE_SLOPES)
                found[3] = (gradient * slopes).sum(dtype=torch.float64).to(gradient.dtype)
            if of_weights and self.weights is not None:
                found[4] = self._weight_gradients(gradient, self.weights)
        return [g if needed else None for g, needed in zip(found, needs, strict=True)]

    def _device(self) -> AbstractContextManager[Any]:
        """Kernels are launched on the current device."""
        return torch.cuda.device(self.points.device) if self.points.is_cuda else nullcontext()

    def _blocks(self) -> Iterator[Block]:
        """Directions in blocks, so that memory is bounded."""
        chunks = self.num_points // self.tiles.chunk + self.num_complexes
        largest = max(1, self.num_points, chunks * self.num_thresholds)
        size = max(1, min(MAX_DIRECTIONS, MAX_ENTRIES // largest))
        for start in range(0, self.num_directions, size):
            count = min(size, self.num_directions - start)
            if self.directions is None:
                yield Block(start, count, self.points[:, start:], self.points, self.num_directions)
            else:
                stride = 0 if self.shared else self.num_directions * self.dim
                yield Block(start, count, self.points, self.directions[..., start:, :], stride)

    def _curves(self, mode: Any, keep: bool = False) -> Tensor:
        """``[B, T, H]``: the transform, or its derivatives in thresholds or scale."""
        count, directions, thresholds = self.shape
        result = self.points.new_empty(self.shape)
        if not result.numel():
            return result
        tiles, num_chunks = self.tiles, self.num_points // self.tiles.chunk + count
        wide, high = _tile(tiles.directions, directions), _tile(tiles.thresholds, thresholds, least=2)
        for block in self._blocks():
            made = self._coefficients(block, keep)
            parts = self.points.new_empty(num_chunks, block.width, thresholds)
            forward.chunk_curves[num_chunks, triton.cdiv(block.width, wide), triton.cdiv(thresholds, high)](
                block.points, block.directions, self.thresholds, self.scale, made.sums, made.weights, made.units, self.offsets,
                parts, self.num_points, count, block.width, thresholds, block.stride, self.steps, DIM=self.dim, KIND=made.kind,
                MODE=mode.value, SATURATION=self.saturation, CHUNK=tiles.chunk, BV=tiles.vertices, BT=wide, BH=high,
                **self.one_warp,
            )  # fmt: skip
            values = mode.value == forward.VALUES.value
            self._sum_chunks(parts, tiles.chunk, result[:, block.start :], thresholds, made.status if values else None, values)
        return result

    def _sum_chunks(
        self, parts: Tensor, size: int, result: Tensor, row: int, status: Tensor | None = None, checked: bool = False
    ) -> None:
        """The sums over the chunks of each complex; one row of the result per direction."""
        width = parts.shape[1] * row
        wide = _tile(256, width)
        blocks = triton.cdiv(width, wide)
        forward.sum_chunks[(self.num_complexes * blocks,)](
            parts, self.offsets, self.thresholds, self.scale, self.offsets if status is None else status, result,
            self.num_points, self.num_thresholds, width, self.num_directions * row, blocks, CHECKED=checked,
            FLAGGED=status is not None, CHUNK=size, BC=8, BN=wide, num_warps=4,
        )  # fmt: skip

    def _coefficients(self, block: Block, keep: bool = False) -> Coefficients:
        """The coefficients in some directions; kept after the forward pass, if they are those in all directions."""
        if not self.simplices.numel():
            unused = self.points if self.weights is None else self.weights
            kind = collapse.ONE if self.weights is None else collapse.WEIGHT
            return Coefficients(kind.value, self.offsets, unused, self.offsets, None)
        if self.kept is not None:
            return self.kept
        weights, units = (self.points, self.offsets) if self.weights is None else self._fixed(self.weights)
        weighted = self.weights is not None
        dtype = torch.int64 if weighted else torch.int32
        size = self.num_points * block.width
        buffer = torch.zeros(size + 1, dtype=dtype, device=self.points.device)
        sums, status = buffer[:size], buffer[size:]
        wide = _tile(32, block.width)
        deep = max(8, self.tiles.simplices // wide)
        for level, (rows, sign) in enumerate(zip(self.rows, self.signs, strict=True), start=1):
            most = self.simplices.numel() // rows
            if most:
                collapse.collapse[triton.cdiv(most, deep), triton.cdiv(block.width, wide)](
                    block.points, block.directions, self.simplices, self.offsets, weights if weighted else sums, sums, status,
                    self.num_points, self.simplices.numel(), len(weights) if weighted else 0, block.width, self.num_complexes,
                    block.stride, self.steps, ROWS=self.rows, LEVEL=level, SIGN=sign, DIM=self.dim, SHARED=self.shared,
                    WEIGHTED=weighted, LONG=self.is_long, BS=deep, BT=wide, num_warps=4,
                )  # fmt: skip
        kind = collapse.FIXED if weighted else collapse.COUNT
        made = Coefficients(kind.value, sums, weights, units, status)
        if keep and block.width == self.num_directions:
            self.kept = made
        return made

    def _fixed(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The weights in fixed point, and the unit of each complex."""
        if self.fixed is None:
            count, number, levels, size = self.num_complexes, len(weights), len(self.rows), self.tiles.weights
            exponents = torch.zeros(count, dtype=torch.int32, device=weights.device)
            units = torch.empty(count, dtype=torch.float64, device=weights.device)
            fixed = torch.empty(number, dtype=torch.int64, device=weights.device)
            if number and count:
                grid, common = (triton.cdiv(number, size),), (number, count, self.steps)
                collapse.largest_exponents[grid](weights, self.offsets, exponents, *common, LEVELS=levels, BW=size)
                collapse.units_of[(triton.cdiv(count, 128),)](exponents, self.offsets, units, count, LEVELS=levels, BB=128)
                collapse.quantize[grid](weights, self.offsets, units, fixed, *common, LEVELS=levels, BW=size)
            self.fixed = fixed, units
        return self.fixed

    def _height_gradients(self, gradient: Tensor, of_points: bool, of_directions: bool) -> tuple[Tensor, Tensor | None]:
        """Gradients of points and directions."""
        of_points, of_directions = of_points or self.directions is None, of_directions and self.directions is not None
        of_point = torch.empty_like(self.points) if of_points else self.points
        of_direction = torch.empty_like(self.directions) if self.directions is not None and of_directions else None
        count, _, thresholds = self.shape
        size = self.tiles.vertices
        if not (self.num_points and count and self.num_directions):
            return of_point.zero_() if of_points else of_point, None if of_direction is None else of_direction.zero_()
        num_chunks, wide = self.num_points // size + count, _tile(self.tiles.directions, self.num_directions)
        for block in self._blocks():
            made = self._coefficients(block)
            parts = self.points.new_empty(num_chunks, block.width, self.dim) if of_directions else self.points
            target = of_point[:, block.start :] if self.directions is None else of_point
            backward.height_gradients[(num_chunks,)](
                block.points, block.directions, self.thresholds, self.scale, made.sums, made.weights, made.units, self.offsets,
                gradient[:, block.start :], target, parts, self.num_points, count, block.width, thresholds, block.stride,
                self.num_directions * thresholds, self.steps, self.searches, DIM=self.dim, AXES=_tile(1 << 30, self.dim),
                KIND=made.kind, SATURATION=self.saturation, OF_POINTS=of_points, OF_DIRECTIONS=of_directions,
                ADD=block.start > 0, BV=size, BT=wide, **self.one_warp,
            )  # fmt: skip
            if of_direction is not None:
                if self.shared:
                    of_direction[block.start : block.start + block.width] = parts.sum(dim=0, dtype=torch.float64)
                else:
                    self._sum_chunks(parts, size, of_direction[:, block.start :], self.dim)
        return of_point, of_direction

    def _weight_gradients(self, gradient: Tensor, weights: Tensor) -> Tensor:
        """The gradient of the weights."""
        count, _, thresholds = self.shape
        found = torch.zeros_like(weights)
        size, curve_stride = self.tiles.vertices, self.num_directions * thresholds
        if not (self.num_points and count and self.num_directions and thresholds):
            return found
        for block in self._blocks():
            suffixes = self.points.new_empty(count * block.width, thresholds + 1)
            upstream, rows = gradient[:, block.start :], count * block.width
            backward.suffix_sums[(triton.cdiv(rows, 32),)](
                upstream, suffixes, rows, block.width, thresholds, curve_stride, BR=32, num_warps=1
            )
            pulled, wide = self.points.new_empty(self.num_points, block.width), _tile(self.tiles.directions, block.width)
            backward.coefficient_gradients[self.num_points // size + count, triton.cdiv(block.width, wide)](
                block.points, block.directions, self.thresholds, self.scale, self.offsets, upstream, suffixes, pulled,
                self.num_points, count, block.width, thresholds, block.stride, curve_stride, self.steps, self.searches,
                DIM=self.dim, SATURATION=self.saturation, BV=size, BT=wide, **self.one_warp,
            )  # fmt: skip
            wide = _tile(32, block.width)
            for level, (vertices, sign) in enumerate(zip((1, *self.rows), (1, *self.signs), strict=True)):
                most = self.num_points if level == 0 else self.simplices.numel() // vertices
                if most:
                    backward.weight_gradients[(triton.cdiv(most, 16),)](
                        block.points, block.directions, self.simplices, self.offsets, pulled, found, self.num_points,
                        self.simplices.numel(), len(weights), block.width, count, block.stride, self.steps, ROWS=self.rows,
                        LEVEL=level, SIGN=sign, DIM=self.dim, SHARED=self.shared, ADD=block.start > 0, LONG=self.is_long,
                        BS=16, BT=wide, num_warps=4,
                    )  # fmt: skip
        return found


class Block(NamedTuple):
    """Some of the directions."""

    start: int
    width: int  # their number
    points: Tensor  # where the heights of the first direction are, if they are given
    directions: Tensor  # from the first direction on
    stride: int  # from one complex, or one row of given heights, to the next


class Coefficients(NamedTuple):
    """Coefficients ``[V, T]`` of the vertices: see :mod:`.collapse`. What a kind does not need is any tensor."""

    kind: int
    sums: Tensor
    weights: Tensor
    units: Tensor
    status: Tensor | None


def _plain(tensor: Tensor) -> Tensor:
    """The tensor as contiguous memory, without a lazy negation."""
    return tensor.detach().resolve_neg().contiguous()


def _tile(most: int, count: int, least: int = 1) -> int:
    """A power of two that holds so many, but not more than ``most``."""
    power: int = triton.next_power_of_2(max(1, count))
    return max(least, min(most, power))
