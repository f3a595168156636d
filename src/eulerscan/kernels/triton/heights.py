"""Heights of vertices, and the top vertex of a simplex.

No height is stored. Every kernel computes those that it needs by the same operations in the same order, so that all of them see
the same bits. Multiplications and additions are fused explicitly: a compiler could fuse them in one kernel and not in another.
"""

import triton
import triton.language as tl

MOST_UNROLLED = tl.constexpr(8)  # axes


@triton.jit
def heights(points, directions, sets, vertices, columns, inside, within, stride, DIM: tl.constexpr, SHARED: tl.constexpr):
    """``[v, t]``: heights of the vertices ``[v]`` in the directions ``[t]``, 0 where a mask is False.

    If the heights are given (``DIM == 0``), ``stride`` is the length of a row of ``points``. Otherwise it is the distance from
    the directions of one complex to those of the next; ``sets [v]`` are the complexes, unless all share their directions.
    """
    both = inside[:, None] & within[None, :]
    if DIM == 0:
        height = tl.load(points + vertices[:, None] * stride + columns[None, :], both, 0.0)
    else:
        height = _product(points, directions, sets, vertices, columns, inside, within, stride, 0, DIM, SHARED)
        if DIM <= MOST_UNROLLED:
            for axis in tl.static_range(1, DIM):
                height = _plus_axis(
                    height, points, directions, sets, vertices, columns, inside, within, stride, axis, DIM, SHARED
                )
        else:
            for axis in range(1, DIM):
                height = _plus_axis(
                    height, points, directions, sets, vertices, columns, inside, within, stride, axis, DIM, SHARED
                )
    return height


@triton.jit
def _axis(directions, sets, columns, inside, within, stride, axis, DIM: tl.constexpr, SHARED: tl.constexpr):
    """``[1 or v, t]``: one coordinate of the directions."""
    if SHARED:
        found = tl.load(directions + columns * DIM + axis, within, 0.0)[None, :]
    else:
        both = inside[:, None] & within[None, :]
        found = tl.load(directions + sets[:, None] * stride + columns[None, :] * DIM + axis, both, 0.0)
    return found


@triton.jit
def _product(
    points, directions, sets, vertices, columns, inside, within, stride, axis, DIM: tl.constexpr, SHARED: tl.constexpr
):  # fmt: skip
    position = tl.load(points + vertices * DIM + axis, inside, 0.0)
    return position[:, None] * _axis(directions, sets, columns, inside, within, stride, axis, DIM, SHARED)


@triton.jit
def _plus_axis(
    height, points, directions, sets, vertices, columns, inside, within, stride, axis, DIM: tl.constexpr, SHARED: tl.constexpr
):  # fmt: skip
    position = tl.load(points + vertices * DIM + axis, inside, 0.0)
    direction = _axis(directions, sets, columns, inside, within, stride, axis, DIM, SHARED)
    return tl.fma(tl.broadcast_to(position[:, None], height.shape), tl.broadcast_to(direction, height.shape), height)


@triton.jit
def tops(
    points, directions, sets, simplices, first, count, size, num_points, simplex, inside, columns, within, stride,
    ROWS: tl.constexpr, DIM: tl.constexpr, SHARED: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """``[s, t]``: the highest vertex of simplices ``[s]`` of a level, and ``[s]``: whether all their indices are valid.

    Among equally high vertices it is the one with the largest index, so that the order of the vertices does not matter.
    """
    vertex, valid = _vertex(simplices, first + simplex, size, num_points, inside, INDEX)
    best = heights(points, directions, sets, vertex, columns, inside & valid, within, stride, DIM, SHARED)
    top = tl.broadcast_to(vertex[:, None], best.shape)
    for row in tl.static_range(1, ROWS):
        vertex, known = _vertex(simplices, first + row * count + simplex, size, num_points, inside, INDEX)
        valid = valid & known
        height = heights(points, directions, sets, vertex, columns, inside & known, within, stride, DIM, SHARED)
        above = (height > best) | ((height == best) & (vertex[:, None] > top))
        best = tl.where(above, height, best)
        top = tl.where(above, vertex[:, None], top)
    return top, valid


@triton.jit
def _vertex(simplices, place, size, num_points, inside, INDEX: tl.constexpr):
    """The vertices at some places of the packed simplices, 0 where they are invalid, and whether they are valid."""
    vertex = tl.load(simplices + place, inside & (place < size), -1)
    valid = (vertex >= 0) & (vertex < num_points)
    return tl.where(valid, vertex, 0).to(INDEX), valid
