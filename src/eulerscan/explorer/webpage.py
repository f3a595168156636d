"""Interactive HTML page of one shape: change direction and height, and watch the curve and the counts.

The page is self-contained and makes no network requests. Its template and scripts are in the folder ``page``.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from .. import directions as spheres
from .._storage import write_text
from .._validation import check_choice
from .._version import __version__
from ..analysis.evidence import Evidence, check_exact, legend
from ..analysis.evidence import color_limits as evidence_limits
from ..complexes import Complex, Shape, as_complex, collate
from ..complexes.boundary import occurrences, outer_triangles
from ..complexes.normalize import Normalize
from ..complexes.simplices import faces, name_of
from ..config import ECTConfig
from ..plot.figures import Up
from ..plot.transforms import color_limits, direction_axis, image_directions

MAX_SIMPLICES = 1_000_000
"""Largest number of simplices, vertices included, of a page.

At this size (a closed surface of 330,000 triangles) the file has 17 MB, and headless Chromium on one core of an AMD EPYC takes
11 ms per frame while the height changes, 42 ms while the direction changes and 63 ms while the shape is rotated.
"""

_SCRIPTS = ("colors.js", "sweep.js", "raster.js", "stage.js", "charts.js", "explorer.js")
_MAX_EDGES_ON_SURFACE = 6000  # more would hide it


class ColorMap(NamedTuple):
    """Values of the vertices, shown as colors, and what they are compared with."""

    values: Tensor  # [V]
    null: Tensor  # [V], values by chance
    low: float
    high: float
    sentence: str  # what the colors mean

    @staticmethod
    def of_evidence(found: Evidence, index: int) -> ColorMap:
        """The evidence on one of the shapes."""
        start, end = found.shapes.offsets[0, index : index + 2].tolist()
        low, high = evidence_limits(found)
        return ColorMap(found.scores[start:end], found.null[start:end], low, high, legend(found))

    def describe(self, num_vertices: int) -> dict[str, Any]:
        for name, values in (("values", self.values), ("null", self.null)):
            if values.shape != (num_vertices,) or not bool(torch.isfinite(values).all()):
                raise ValueError(f"{name} of colors must be finite, one for each of {num_vertices} vertices.")
        arrays = {"values": _encode(self.values.cpu(), "float32"), "null": _encode(self.null.cpu(), "float32")}
        return {"low": self.low, "high": self.high, "sentence": self.sentence, **arrays}


def write_page(shape: Shape, path: Path | str, *, name: str, **options: Any) -> None:
    """Write the page of a shape to a file, atomically. Options are those of :func:`page`."""
    write_text(Path(path), page(shape, name=name, **options))


def page(
    shape: Shape,
    *,
    name: str,
    config: ECTConfig = ECTConfig(num_directions=360, num_thresholds=128),  # noqa: B008
    up: Up = "z",
    colors: ColorMap | None = None,
    warps: Mapping[str, Shape] | None = None,
) -> str:
    """HTML page to explore one shape in the plane or in space.

    Args:
        shape: One :class:`Complex`, or anything :func:`as_complex` understands, with at most :data:`MAX_SIMPLICES` simplices.
        name: Name of the shape; any text.
        config: How the shape is transformed. The image has one row per direction, in space on rings about the axis that points
            up, and one column per threshold. The default radius is that of the shape. The page computes the exact transform,
            so only the grid, the radius and ``normalize`` may differ from the defaults.
        up: The axis that points up, in space. No number depends on it.
        colors: Values of the vertices to show as colors, with their null beside them, such as
            :meth:`ColorMap.of_evidence`.
        warps: The shape with its vertices at other places, by name, such as ``warps`` of a
            :class:`~eulerscan.analysis.Comparison`. A slider moves the vertices from one to another, and curve and transform
            follow.

    Example:
        >>> text = page(torch.rand(5, 2), name="five points")
        >>> text[:15], "five points" in text
        ('<!DOCTYPE html>', True)
    """
    name = name.encode("utf-8", "replace").decode()  # file names may contain surrogates
    data = describe(shape, name=name, config=config, up=up, colors=colors, warps=warps)
    folder = resources.files(__package__) / "page"
    parts = {
        "title": html.escape(f"{name} · eulerscan"),
        "sweep": "line" if data["dim"] == 2 else "plane",
        "version": html.escape(__version__),
        "style": (folder / "style.css").read_text(encoding="utf-8"),
        "script": "\n".join((folder / script).read_text(encoding="utf-8") for script in _SCRIPTS),
        # Only "<" can end a script element, whatever the name of the file.
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    }
    # One pass over the template: inserted text is not searched for placeholders.
    pieces = (folder / "page.html").read_text(encoding="utf-8").split("{{")
    return pieces[0] + "".join(parts[key] + rest for key, _, rest in (piece.partition("}}") for piece in pieces[1:]))


@torch.no_grad()
def describe(
    shape: Shape,
    *,
    name: str,
    config: ECTConfig,
    up: Up = "z",
    colors: ColorMap | None = None,
    warps: Mapping[str, Shape] | None = None,
) -> dict[str, Any]:
    """The data of a page, JSON-serializable, with arrays in base64."""
    check_choice(up, "up", get_args(Up))
    check_exact(config)
    normalize, complex = config.normalize, _checked(shape).normalized(config.normalize)
    warped = {name: _warped(other, name, complex).normalized(normalize) for name, other in (warps or {}).items()}
    config = replace(config.with_radius_of(collate([complex, *warped.values()])), normalize=None)
    weights = complex.weights
    directions = image_directions(config.num_directions, complex.dim, up)
    axis = direction_axis(directions, up)
    transforms = config.transform(collate([complex, *warped.values()]), directions)
    levels = [
        {
            "rows": rows,
            "name": name_of(rows - 1, rows),
            "count": level.shape[1],
            "vertices": _encode(level, "uint32"),
            "weights": None if weights is None else _encode(weights[1 + i], "float64"),
        }
        for i, (rows, level) in enumerate(zip(complex.rows, complex.simplices, strict=True))
    ]
    return {
        "name": name,
        "facts": _facts(complex, normalize) + ("" if complex.dim == 2 else f"; drawn with {up} up"),
        "dim": complex.dim,
        "up": up,
        "radius": config.radius,
        "weighted": weights is not None,
        "map": None if colors is None else colors.describe(len(complex.points)),
        "warps": [{"name": name, "points": _encode(other.points, "float64")} for name, other in warped.items()],
        "points": _encode(complex.points, "float64"),
        "weights": None if weights is None else _encode(weights[0], "float64"),
        "levels": levels,
        "drawn": {name: _encode(indices, "uint32") for name, indices in _drawn(complex, colors is not None).items()},
        "circle": _encode(spheres.circle(360, dtype=torch.float64), "float64"),
        "directions": _encode(directions, "float64"),
        "rows": {"ticks": axis.ticks, "labels": axis.tick_labels, "bounds": axis.bounds, "label": axis.label},
        "thresholds": _encode(config.thresholds(), "float64"),
        "transform": _encode(transforms[0], "float32"),
        "limits": color_limits(transforms.float()),  # as the page has them
    }


def _checked(shape: Shape) -> Complex:
    complex = as_complex(shape)
    if complex.num_complexes != 1:
        raise ValueError(f"shape must be one complex, got {complex.num_complexes}. Choose one: shape[0]")
    if complex.dim not in (2, 3):
        raise ValueError(f"shape must be in the plane or in space, got points of dimension {complex.dim}.")
    if not complex.is_simplicial:
        raise ValueError(f"shape must consist of simplices, got {complex!r}.")
    total = sum(complex.counts)
    if not len(complex.points):
        raise ValueError("shape must have at least one point, got none.")
    if total > MAX_SIMPLICES:
        raise ValueError(
            f"shape must have at most {MAX_SIMPLICES:,} simplices, vertices included, for a responsive page, got {total:,}. "
            "Coarsen the mesh or image first."
        )
    return complex.to("cpu", torch.float64)


def _warped(shape: Shape, name: str, original: Complex) -> Complex:
    complex = _checked(shape)
    if complex.points.shape != original.points.shape:
        raise ValueError(
            f"warps must move the {len(original.points)} vertices of shape in dimension {original.dim}, got "
            f"{list(complex.points.shape)} in {name!r}."
        )
    return original.with_points(complex.points)


def _facts(complex: Complex, normalize: Normalize | None) -> str:
    names = ["vertices", *(name_of(rows - 1, rows) for rows in complex.rows)]
    counts = [f"{n:,} {name}" for n, name in zip(complex.counts, names, strict=True)]
    ball = "centered and scaled to the unit ball"
    coordinates = {"unit_ball": ball, "vertices": ball, "center": "centered, in the units of the file"}
    weighted = "" if complex.weights is None else "weighted, "
    space = "the plane" if complex.dim == 2 else "space"
    return f"{', '.join(counts)}; {weighted}in {space}, {coordinates.get(normalize or '', 'in the units of the file')}"


def _drawn(complex: Complex, colored: bool) -> dict[str, Tensor]:
    """Indices of the simplices to draw: those that are no face of a drawn one, and edges and vertices if not too many.

    Of colored regions in the plane, edges are the outline: a vertex inside changes no curve.
    """
    edges, triangles, visible = complex.of_dim(1), complex.of_dim(2), outer_triangles(complex)
    covered = torch.zeros(len(complex.points), dtype=torch.bool)
    covered[complex.packed.simplices.long()] = True
    vertices = torch.arange(len(complex.points))
    if triangles.shape[1]:
        vertices = vertices[~covered]
        if colored and complex.dim == 2:
            outline = (occurrences(edges, faces(triangles)) < 2).nonzero().squeeze(1)
            return {"vertices": vertices, "edges": outline, "triangles": visible}
        if complex.weights is not None or edges.shape[1] > _MAX_EDGES_ON_SURFACE:
            free_edges = (occurrences(edges, faces(triangles)) == 0).nonzero().squeeze(1)
            return {"vertices": vertices, "edges": free_edges, "triangles": visible}
    return {"vertices": vertices, "edges": torch.arange(edges.shape[1]), "triangles": visible}


def _encode(values: Tensor, dtype: str) -> dict[str, str]:
    """Little-endian, as typed arrays of browsers are, in base64."""
    array = values.contiguous().numpy().astype(np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "base64": base64.b64encode(array.tobytes()).decode("ascii")}
