"""One page to explore a shape in a browser: turn the direction, move the height, and see what counts.

The page holds all it needs and asks the network for nothing. Its parts are in the folder ``page``; what they show is put
together here.
"""

from __future__ import annotations

import base64
import html
import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import directions as spheres
from .._storage import replacing
from .._version import __version__
from ..complexes import Complex, Shape, as_complex
from ..complexes.boundary import occurrences, outer_triangles
from ..complexes.normalize import Normalize
from ..complexes.simplices import NAMES, faces
from ..config import ECTConfig

MOST_SIMPLICES = 1_000_000
"""Vertices, edges, triangles and so on of a shape that a page takes.

At so many (a closed surface of 330,000 triangles) the file has 17 MB, and headless Chromium on one core of an AMD EPYC takes
11 ms for a frame while the height moves, 42 ms while the direction turns and 63 ms while the shape itself is turned.
"""

_SCRIPTS = ("colours.js", "sweep.js", "raster.js", "stage.js", "charts.js", "explorer.js")
_FEW_EDGES = 6000  # more lines on a surface than that would hide it


def write_page(shape: Shape, path: Path | str, *, name: str, **options: Any) -> None:
    """Write the page of a shape to a file, whole or not at all. The options are those of :func:`page`."""
    text = page(shape, name=name, **options)
    with replacing(Path(path)) as partial:
        partial.write_text(text, encoding="utf-8")


def page(
    shape: Shape,
    *,
    name: str,
    config: ECTConfig = ECTConfig(num_directions=360, num_thresholds=128),  # noqa: B008
) -> str:
    """A page of HTML to explore one shape in the plane or in space.

    Args:
        shape: One :class:`Complex`, or anything :func:`as_complex` understands, of at most :data:`MOST_SIMPLICES` simplices.
        name: What it is called; any text.
        config: How the shape is transformed: a row of the image for each direction, a column for each threshold. Without a
            radius, it is that of the shape. The page sweeps the exact transform, so only the grid and ``normalize`` may differ
            from the defaults.

    Example:
        >>> text = page(torch.rand(5, 2), name="five points")
        >>> text[:15], "five points" in text
        ('<!DOCTYPE html>', True)
    """
    name = name.encode("utf-8", "replace").decode()  # names of files may be no text
    data = describe(shape, name=name, config=config)
    folder = resources.files(__package__) / "page"
    parts = {
        "title": html.escape(f"{name} · eulerscan"),
        "version": html.escape(__version__),
        "style": (folder / "style.css").read_text(encoding="utf-8"),
        "script": "\n".join((folder / script).read_text(encoding="utf-8") for script in _SCRIPTS),
        # Within a script nothing but "<" can end it, whatever a file is called.
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    }
    # One pass over the template: what is put in is not looked at again.
    pieces = (folder / "page.html").read_text(encoding="utf-8").split("{{")
    return pieces[0] + "".join(parts[key] + rest for key, _, rest in (piece.partition("}}") for piece in pieces[1:]))


@torch.no_grad()
def describe(shape: Shape, *, name: str, config: ECTConfig) -> dict[str, Any]:
    """What the page knows of a shape, ready for JSON; arrays in base64."""
    if config != ECTConfig(config.num_directions, config.num_thresholds, config.radius, normalize=config.normalize):
        raise ValueError(f"config must be that of the exact transform, which the page sweeps, got {config}.")
    normalize, complex = config.normalize, _checked(shape).normalized(config.normalize)
    config = replace(config.with_radius_of(complex), normalize=None)
    weights = complex.weights
    levels = [
        {
            "rows": rows,
            "name": NAMES.get(rows, f"{rows - 1}-simplices"),
            "count": level.shape[1],
            "vertices": _encode(level, "uint32"),
            "weights": None if weights is None else _encode(weights[1 + i], "float64"),
        }
        for i, (rows, level) in enumerate(zip(complex.rows, complex.simplices, strict=True))
    ]
    return {
        "name": name,
        "facts": _facts(complex, normalize),
        "dim": complex.dim,
        "radius": config.radius,
        "weighted": weights is not None,
        "points": _encode(complex.points, "float64"),
        "weights": None if weights is None else _encode(weights[0], "float64"),
        "levels": levels,
        "drawn": {kind: _encode(indices, "uint32") for kind, indices in _drawn(complex).items()},
        "circle": _encode(spheres.circle(360, dtype=torch.float64), "float64"),
        "directions": _encode(config.directions(complex.dim), "float64"),
        "thresholds": _encode(config.thresholds(), "float64"),
        "transform": _encode(config.transform(complex)[0], "float32"),
    }


def _checked(shape: Shape) -> Complex:
    complex = as_complex(shape)
    if complex.num_complexes != 1:
        raise ValueError(f"shape must be one complex to be explored, got {complex.num_complexes}. Choose one: shape[0]")
    if complex.dim not in (2, 3):
        raise ValueError(f"shape must lie in the plane or in space to be explored, got points of dimension {complex.dim}.")
    total = sum(complex.counts)
    if not len(complex.points):
        raise ValueError("shape must have at least one point to be explored, got none.")
    if total > MOST_SIMPLICES:
        raise ValueError(
            f"shape must have at most {MOST_SIMPLICES:,} simplices, vertices included, for a page that stays fluid, got "
            f"{total:,}. Make the mesh or image coarser first."
        )
    return complex.to("cpu", torch.float64)


def _facts(complex: Complex, normalize: Normalize | None) -> str:
    kinds = [NAMES.get(rows, f"{rows - 1}-simplices") for rows in complex.rows]
    counts = [f"{n:,} {kind}" for n, kind in zip(complex.counts, ["vertices", *kinds], strict=True)]
    places = {"unit_ball": "centered and scaled to the unit ball", "center": "centered, in the units of the file"}
    place = places.get(normalize or "", "in the units of the file")
    weighted = "" if complex.weights is None else "weighted, "
    return f"{', '.join(counts)}; {weighted}in {'the plane' if complex.dim == 2 else 'space'}, {place}"


def _drawn(complex: Complex) -> dict[str, Tensor]:
    """Numbers of the simplices that are drawn: what nothing larger covers, and edges and vertices where that stays clear."""
    levels = dict(zip(complex.rows, complex.simplices, strict=True))
    none = torch.empty(2, 0, dtype=torch.int64)
    edges, triangles = levels.get(2, none).long(), levels.get(3, none.new_empty(3, 0)).long()
    seen = outer_triangles(complex)
    covered = torch.zeros(len(complex.points), dtype=torch.bool)
    for level in levels.values():
        covered[level.flatten().long()] = True
    vertices = torch.arange(len(complex.points))
    if triangles.shape[1]:
        vertices = vertices[~covered]
        if complex.weights is not None or edges.shape[1] > _FEW_EDGES:
            edge_numbers = (occurrences(edges, faces(triangles)) == 0).nonzero().squeeze(1)
            return {"vertices": vertices, "edges": edge_numbers, "triangles": seen}
    return {"vertices": vertices, "edges": torch.arange(edges.shape[1]), "triangles": seen}


def _encode(values: Tensor, kind: str) -> dict[str, str]:
    """Little-endian, as every browser's machine is, and in base64."""
    array = values.contiguous().numpy().astype(np.dtype(kind).newbyteorder("<"))
    return {"kind": kind, "base64": base64.b64encode(array.tobytes()).decode("ascii")}
