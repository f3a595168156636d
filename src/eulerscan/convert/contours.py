"""Contours of masks: smooth polygons instead of the stairs of pixels.

A contour crosses a *gate* between each pixel of the foreground and a neighbor in the background. The polygon is the shortest
closed path through these gates: the minimum length polygon of the digital shape. It is as smooth as the pixels allow, and
convex for a convex shape. Components and holes are those of the pixels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from .._imports import compiled, require
from ..complexes import Complex

_Array = np.ndarray[Any, Any]

MARGIN = 1e-3  # of a gate, at both ends: contours that share a pixel do not touch
TOLERANCE = 0.5  # pixels from where the level is crossed


class Polygon(NamedTuple):
    """A component of the foreground: its outer contour and its holes, ``[n, 2]`` each, as (row, column)."""

    outer: _Array
    holes: list[_Array]


def polygons(mask: _Array, values: _Array | None = None, level: float = 0.5) -> list[Polygon]:
    """The contours of a mask ``[rows, columns]``. Pixels that share a corner are connected.

    Args:
        mask: The foreground.
        values: The image, ``values > level`` in the foreground, to find where between two pixels the level is crossed. By
            default halfway.
        level: The threshold of the mask.

    Example:
        >>> ring = np.pad(np.zeros((2, 2), dtype=bool), 3, constant_values=True)
        >>> [polygon] = polygons(ring)
        >>> polygon.outer.min(axis=0).round(2).tolist(), polygon.outer.max(axis=0).round(2).tolist(), len(polygon.holes)
        ([-0.0, -0.0], [7.0, 7.0], 1)
    """
    padded = np.zeros((mask.shape[0] + 2, mask.shape[1] + 2), np.uint8)
    padded[1:-1, 1:-1] = mask
    inside, outside, bounds = compiled(_trace)(padded)
    if not len(inside):
        return []
    left, right = inside.astype(np.float64) - 1, outside.astype(np.float64) - 1
    crossing = np.full(len(left), 0.5)
    if values is not None:
        around = np.pad(values, 1, mode="edge").astype(np.float64, copy=False)
        here, there = around[tuple(inside.T)], around[tuple(outside.T)]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (here - level) / (here - there)
        crossing = np.where((found > 0) & (found < 1), found, 0.5)  # at the border of the image it is not known
    steps = right - left
    low = np.clip(crossing - TOLERANCE, MARGIN, 1 - MARGIN)[:, None]
    high = np.clip(crossing + TOLERANCE, MARGIN, 1 - MARGIN)[:, None]
    points, ends, is_hole = compiled(_tighten)(left + low * steps, left + high * steps, bounds)
    rings = [points[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    owner = _components(inside, outside, bounds, is_hole, padded.shape[1])
    found_polygons = {i: Polygon(ring, []) for i, ring in enumerate(rings) if not is_hole[i]}
    for i in np.flatnonzero(is_hole):
        found_polygons[owner[i]].holes.append(rings[i])
    return list(found_polygons.values())


def boundary(shapes: list[Polygon]) -> Complex:
    """The contours as closed polygonal curves."""
    rings = [ring for polygon in shapes for ring in (polygon.outer, *polygon.holes)]
    starts = np.cumsum([0, *map(len, rings)])
    here = np.arange(starts[-1])
    there = here + 1
    there[starts[1:] - 1] = starts[:-1]
    points = torch.from_numpy(np.concatenate([np.empty((0, 2)), *rings])).to(torch.get_default_dtype())
    return Complex(points, [torch.from_numpy(np.stack([here, there]))] if len(here) else [])


def region(shapes: list[Polygon], dtype: torch.dtype | None = None) -> Complex:
    """The filled polygons, triangulated without new vertices."""
    shapely = require("shapely", extra="mesh")
    filled = np.array([shapely.Polygon(polygon.outer, polygon.holes) for polygon in shapes], dtype=object)
    found, owner = shapely.get_coordinates(shapely.constrained_delaunay_triangles(filled), return_index=True)
    corners = np.column_stack([owner, found]).reshape(-1, 4, 3)[:, :3]  # the fourth is the first again
    vertices, triangles = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    points = torch.from_numpy(vertices[:, 1:].copy()).to(dtype or torch.get_default_dtype())
    columns = torch.from_numpy(triangles.reshape(-1, 3).T.copy())
    return Complex(points, [columns] if columns.numel() else []).closure()


def _components(inside: _Array, outside: _Array, bounds: _Array, is_hole: _Array, width: int) -> _Array:
    """``[contours]``: the outer contour around each hole; an outer contour itself.

    Left of the leftmost pixel of a hole is a run of foreground, which begins at another contour of the same component.
    """
    contour = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    sideways = np.flatnonzero(inside[:, 0] == outside[:, 0])  # gates between pixels of one row
    keys = inside[sideways, 0] * width + np.minimum(inside[sideways, 1], outside[sideways, 1])
    order = np.argsort(keys)
    keys, contours = keys[order], contour[sideways][order]
    owner = np.arange(len(bounds) - 1)
    holes = np.flatnonzero(is_hole)
    leftmost = np.full(len(owner), np.iinfo(np.int64).max)
    np.minimum.at(leftmost, contour, outside[:, 1] * (inside[:, 0].max() + 2) + outside[:, 0])
    for i in holes[np.argsort(leftmost[holes])]:
        column, row = divmod(leftmost[i], inside[:, 0].max() + 2)
        before = contours[np.searchsorted(keys, row * width + column - 1) - 1]
        owner[i] = owner[before]
    return owner


def _trace(mask: _Array) -> tuple[_Array, _Array, _Array]:
    """All contours of a padded mask of 0 and 1, with the foreground on the left.

    Returns the pixels ``[n, 2]`` inside and outside of each gate, in order, and where each contour begins and ends. The mask is
    used to mark what was visited.
    """
    size, count = 1024, 0
    gates = np.empty((size, 4), np.int64)
    bounds = np.empty(64, np.int64)
    num_contours = 0
    rows, columns = mask.shape
    for start_row in range(rows):
        for start_column in range(columns - 1):
            # A contour that heads north has the foreground west and the background east of it.
            if mask[start_row, start_column] != 1 or mask[start_row, start_column + 1] & 1:
                continue
            if num_contours + 2 > len(bounds):
                longer = np.empty(2 * len(bounds), np.int64)
                longer[: len(bounds)] = bounds
                bounds = longer
            bounds[num_contours] = count
            num_contours += 1
            up, right = -1, 0  # heading, in rows and columns
            row, column = start_row, start_column  # the pixel on the left
            while True:
                # The pixel on the right is one step to the right of the heading.
                other_row, other_column = row + right, column - up
                if up == -1:
                    if mask[row, column] & 2:
                        break
                    mask[row, column] |= 2
                if count == size:
                    grown = np.empty((2 * size, 4), np.int64)
                    grown[:size] = gates
                    gates, size = grown, 2 * size
                gates[count, 0], gates[count, 1] = row, column
                gates[count, 2], gates[count, 3] = other_row, other_column
                count += 1
                left_ahead = mask[row + up, column + right] & 1
                right_ahead = mask[other_row + up, other_column + right] & 1
                if right_ahead:
                    # Turn right around the pixel on the right, which stays in the background.
                    row, column = other_row + up, other_column + right
                    up, right = right, -up
                elif left_ahead:
                    row, column = row + up, column + right
                else:
                    up, right = -right, up  # turn left around the pixel on the left
    bounds[num_contours] = count
    return gates[:count, :2].copy(), gates[:count, 2:].copy(), bounds[: num_contours + 1].copy()


def _tighten(left: _Array, right: _Array, bounds: _Array) -> tuple[_Array, _Array, _Array]:
    """The shortest closed path through the gates of each contour, by the funnel algorithm.

    Returns the vertices ``[n, 2]`` of all paths, where each ends, and whether it is that of a hole.
    """
    points = np.empty((2 * len(left) + 8, 2))
    ends = np.empty(len(bounds) - 1, np.int64)
    is_hole = np.empty(len(bounds) - 1, np.bool_)
    count = 0
    for contour in range(len(bounds) - 1):
        begin, n = bounds[contour], bounds[contour + 1] - bounds[contour]
        area = 0.0
        for i in range(n):
            j = begin + (i + 1) % n
            i += begin
            x, y = left[i, 1] + right[i, 1], -(left[i, 0] + right[i, 0])
            next_x, next_y = left[j, 1] + right[j, 1], -(left[j, 0] + right[j, 0])
            area += x * next_y - next_x * y
        hole = area < 0
        # The leftmost point on the enclosed side is a vertex of the path.
        side = right if hole else left
        first = begin
        for i in range(begin, begin + n):
            if side[i, 1] < side[first, 1] or (side[i, 1] == side[first, 1] and side[i, 0] < side[first, 0]):
                first = i
        apex_x, apex_y = side[first, 1], -side[first, 0]
        start_x, start_y = apex_x, apex_y
        left_x, left_y, right_x, right_y = apex_x, apex_y, apex_x, apex_y
        left_index, right_index, i, origin = 0, 0, 1, count
        points[count, 0], points[count, 1] = -apex_y, apex_x
        count += 1
        while i <= n:
            if i == n:
                lx, ly, rx, ry = start_x, start_y, start_x, start_y
            else:
                k = begin + (first - begin + i) % n
                lx, ly, rx, ry = left[k, 1], -left[k, 0], right[k, 1], -right[k, 0]
            if (right_x - apex_x) * (ry - apex_y) - (rx - apex_x) * (right_y - apex_y) >= 0:
                closed = right_x == apex_x and right_y == apex_y
                if closed or (left_x - apex_x) * (ry - apex_y) - (rx - apex_x) * (left_y - apex_y) < 0:
                    right_x, right_y, right_index = rx, ry, i
                else:
                    apex_x, apex_y, i = left_x, left_y, left_index + 1
                    points[count, 0], points[count, 1] = -apex_y, apex_x
                    count += 1
                    right_x, right_y, right_index = apex_x, apex_y, left_index
                    continue
            if (left_x - apex_x) * (ly - apex_y) - (lx - apex_x) * (left_y - apex_y) <= 0:
                closed = left_x == apex_x and left_y == apex_y
                if closed or (right_x - apex_x) * (ly - apex_y) - (lx - apex_x) * (right_y - apex_y) > 0:
                    left_x, left_y, left_index = lx, ly, i
                else:
                    apex_x, apex_y, i = right_x, right_y, right_index + 1
                    points[count, 0], points[count, 1] = -apex_y, apex_x
                    count += 1
                    left_x, left_y, left_index = apex_x, apex_y, right_index
                    continue
            i += 1
        if count - origin > 1 and points[count - 1, 0] == points[origin, 0] and points[count - 1, 1] == points[origin, 1]:
            count -= 1  # back at the start
        ends[contour], is_hole[contour] = count, hole
    return points[:count].copy(), ends, is_hole
