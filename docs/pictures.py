"""Pictures of the documentation, drawn by the library itself.

    python docs/pictures.py FOLDER [NAME ...]

Every build draws them, so they always show the current code. Two are committed for the README, and one for each data set, since
not every build has their files: ``python docs/pictures.py docs/_static sweep transform data-cells`` updates them.
"""

from __future__ import annotations

import itertools
import math
import pathlib
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath

import eulerscan as es
from eulerscan import plot
from eulerscan.fitting import fit_points
from eulerscan.plot.figures import CATEGORICAL
from eulerscan.plot.fits import Recorder

LIT, DARK = "#e8743b", "0.35"


def letter(text: str) -> es.Complex:
    """A letter as a mesh in the unit ball: a Delaunay triangulation of points on and inside its outline."""
    # Curves become polygons with an accuracy of about one unit, so the letter starts large.
    outline = TextPath((0, 0), text, size=200, prop=FontProperties(family="DejaVu Sans", weight="bold"))
    polygons = [polygon / 200 for polygon in outline.to_polygons()]
    rims = np.concatenate([_along(polygon, 0.02) for polygon in polygons])
    x, y = np.meshgrid(*(np.arange(rims[:, axis].min(), rims[:, axis].max(), 0.035) for axis in range(2)))
    lattice = np.stack([x.ravel(), y.ravel()], axis=1)
    far = np.linalg.norm(lattice[:, None] - rims, axis=2).min(axis=1) > 0.02
    points = np.concatenate([rims, lattice[far & _inside(polygons, lattice)]])
    mesh = es.convert.delaunay(points, merge=True)
    columns = mesh.simplices[1].long()
    corners = mesh.points[columns]  # [3, n, 2]
    # Three points on a straight part of the outline give a triangle only by rounding.
    flat = torch.linalg.det(corners[1:].sub(corners[0]).movedim(0, 1)).abs() < 1e-6
    kept = columns[:, torch.from_numpy(_inside(polygons, corners.mean(dim=0).numpy())) & ~flat]
    used, numbers = torch.unique(kept, return_inverse=True)
    return es.Complex(mesh.points[used].float(), [numbers]).closure().normalized("unit_ball")


def _along(polygon: np.ndarray, step: float) -> np.ndarray:
    """Points along a closed polygon, with at most this spacing."""
    pieces = []
    for start, end in itertools.pairwise(polygon):
        parts = max(1, math.ceil(np.linalg.norm(end - start) / step))
        pieces.append(start + (end - start) * (np.arange(parts) / parts)[:, None])
    return np.concatenate(pieces)


def _inside(polygons: list[np.ndarray], points: np.ndarray) -> np.ndarray:
    """Whether points lie inside an odd number of outlines, so that holes stay empty."""
    return np.sum([Path(polygon).contains_points(points) for polygon in polygons], axis=0) % 2 == 1


def filled(shape: es.Complex) -> es.Complex:
    """The triangles of a mesh without their edges."""
    return es.Complex(shape.points, shape.simplices[1:])


def below(shape: es.Complex, direction: torch.Tensor, height: float) -> es.Complex:
    """The part of a mesh at or below a height."""
    heights = shape.points @ direction
    kept = [columns[:, heights[columns.long()].amax(dim=0) <= height] for columns in shape.simplices]
    vertices = (heights <= height).nonzero().squeeze(1)
    number = torch.zeros(len(heights), dtype=torch.int64)
    number[vertices] = torch.arange(len(vertices))
    return es.Complex(shape.points[vertices], [number[columns.long()] for columns in kept])


def sweep() -> Figure:
    """A letter swept upward: the part below four heights, and the Euler characteristic curve."""
    shape, up = letter("R"), torch.tensor([[0.0, 1.0]])
    thresholds = es.thresholds(221)
    curve = es.ect(shape, up, thresholds)[0, 0]
    figure = plot.figure(9, 5.2)
    grid = figure.add_gridspec(2, 4, height_ratios=[1.25, 1])
    stops = [-0.5, -0.05, 0.25, 0.7]
    for column, height in enumerate(stops):
        axes = figure.add_subplot(grid[0, column])
        part = below(shape, up[0], height)
        plot.plot_shape(filled(shape), axes, color="0.6")
        plot.plot_shape(filled(part), axes, color=LIT)
        axes.collections[-1].set_alpha(0.9)
        axes.set_title(f"height {height:g}\nEuler characteristic {int(part.euler_characteristic())}", fontsize=10)
        axes.axhline(height, color=DARK, linewidth=1, linestyle="--")
        axes.set(xlim=(-1.05, 1.05), ylim=(-1.1, 1.1), xticks=[], yticks=[])
        axes.set_frame_on(False)
    axes = figure.add_subplot(grid[1, :])
    axes.step(thresholds, curve, where="post", color=LIT)
    for height in stops:
        axes.axvline(height, color=DARK, linewidth=0.8, linestyle="--")
    axes.set(xlabel="height of the line", ylabel="Euler characteristic", xlim=(-1.1, 1.1), yticks=[0, 1, 2], ylim=(-0.3, 2.4))
    return figure


def transform() -> Figure:
    """A letter, some of its curves, and the transform in 64 directions as an image."""
    shape, directions, thresholds = letter("R"), es.directions.circle(64), es.thresholds(128)
    values = es.ect(shape, directions, thresholds)[0]
    figure = plot.figure(10.5, 3.4)
    first, second, third = figure.subplots(1, 3, width_ratios=[1, 1.2, 1.5])
    plot.plot_shape(filled(shape), first)
    for angle in range(0, 64, 8):
        x, y = (1.12 * directions[angle]).tolist()
        first.annotate("", (1.28 * x, 1.28 * y), (x, y), arrowprops={"arrowstyle": "->", "color": DARK})
    first.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), xticks=[], yticks=[], title="a shape, and directions")
    first.set_frame_on(False)
    plot.plot_curves(values[::8], thresholds, second).set_title("a curve for each direction")
    plot.plot_transform(values, third, thresholds=thresholds).set_title("the transform: all curves")
    return figure


def letters() -> Figure:
    """Three letters and their transforms, with the same color limits."""
    directions, thresholds = es.directions.circle(64), es.thresholds(96)
    figure = plot.figure(9, 4.6)
    grid = figure.add_gridspec(2, 3, height_ratios=[1, 1.2])
    shapes = [letter(text) for text in "ABC"]
    transforms = [es.ect(shape, directions, thresholds)[0] for shape in shapes]
    limits = plot.color_limits(*transforms)
    for column, (shape, transform) in enumerate(zip(shapes, transforms, strict=True)):
        axes = plot.plot_shape(filled(shape), figure.add_subplot(grid[0, column]))
        axes.set(xticks=[], yticks=[])
        axes.set_frame_on(False)
        plot.plot_transform(transform, figure.add_subplot(grid[1, column]), thresholds=thresholds, limits=limits)
    return figure


def smooth() -> Figure:
    """One curve, exact and at three scales."""
    shape, up, thresholds = letter("R"), torch.tensor([[0.0, 1.0]]), es.thresholds(400)
    figure = plot.figure(7, 3)
    axes = figure.add_subplot()
    axes.step(thresholds, es.ect(shape, up, thresholds)[0, 0], where="post", color=DARK, label="exact (scale ∞)", linewidth=1.5)
    for scale, color in ((100.0, "C0"), (30.0, "C1"), (8.0, "C2")):
        axes.plot(thresholds, es.ect(shape, up, thresholds, scale=scale)[0, 0], color=color, label=f"scale {scale:g}")
    axes.set(xlabel="threshold", ylabel="Euler characteristic", xlim=(-1.1, 1.1))
    axes.legend()
    return figure


def spheres() -> Figure:
    """Directions in the plane and in space."""
    figure = plot.figure(9, 3.4)
    for column, (directions, title) in enumerate(
        (
            (es.directions.circle(16), "circle(16)"),
            (es.directions.fibonacci(64), "fibonacci(64)"),
            (es.directions.half_sphere(32, 3), "half_sphere(32, 3)"),
        )
    ):
        axes = figure.add_subplot(1, 3, 1 + column, projection="3d" if directions.shape[1] == 3 else None)
        plot.plot_directions(directions, axes).set_title(title, family="monospace", fontsize=10)
    return figure


def collapse() -> Figure:
    """A mesh, and the coefficient of each vertex in one direction: almost all are zero."""
    generator = torch.Generator().manual_seed(1)
    angle = 2 * math.pi * torch.rand(160, generator=generator)
    radius = 0.55 + 0.45 * torch.rand(160, generator=generator)
    ring = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    mesh = es.convert.alpha_complex(ring, 0.2)
    heights = mesh.points[:, 1]
    coefficients = torch.ones(len(heights))
    for columns in mesh.simplices:
        top = columns.long().gather(0, heights[columns.long()].argmax(dim=0)[None])[0]
        coefficients.index_add_(0, top, torch.full((len(top),), -1.0 if len(columns) == 2 else 1.0))
    figure = plot.figure(6, 5)
    axes = plot.plot_shape(mesh, figure.add_subplot(), color="0.6")
    plain = coefficients == 0
    axes.scatter(*mesh.points[plain].T, s=8, color="0.5", label=f"0 (at {int(plain.sum())})")
    for value, color in ((1, "C0"), (-1, LIT), (-2, "C3")):
        chosen = coefficients == value
        if bool(chosen.any()):
            axes.scatter(*mesh.points[chosen].T, s=45, color=color, label=f"{value:+d} (at {int(chosen.sum())})", zorder=3)
    axes.annotate("", (1.2, 0.5), (1.2, -0.5), arrowprops={"arrowstyle": "->", "color": DARK})
    axes.set(xlim=(-1.1, 1.3), xticks=[], yticks=[])
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=4, frameon=False, fontsize=9)
    axes.set_frame_on(False)
    return figure


def scales() -> Figure:
    """Sigmoids on a grid of 16 thresholds at a scale that is too soft, right, and too sharp; and the gradients of vertices."""
    points = torch.linspace(-1, 1, 40)[:, None].requires_grad_()
    thresholds = es.thresholds(16)
    step = float(thresholds[1] - thresholds[0])
    figure = plot.figure(9, 4.4)
    for column, (steps, title) in enumerate(((6.0, "rises over 6 steps"), (1.0, "over 1 step"), (0.15, "over 0.15 steps"))):
        curve = es.ect(points, torch.ones(1, 1), thresholds, scale=4 / (steps * step))[0, 0]
        (gradient,) = torch.autograd.grad(curve.sum(), points)
        top, bottom = figure.add_subplot(2, 3, 1 + column), figure.add_subplot(2, 3, 4 + column)
        fine = torch.linspace(-1.1, 1.1, 400)
        for threshold in thresholds[::3]:
            top.plot(fine, torch.sigmoid(4 / (steps * step) * (threshold - fine)), color="C0", linewidth=1)
        top.set(title=title, ylabel="weight at a threshold" if column == 0 else "", xlim=(-1.1, 1.1))
        bottom.stem(points.detach()[:, 0], -gradient[:, 0], basefmt=" ", linefmt=LIT, markerfmt=".")
        bottom.set(xlabel="height of a vertex", ylabel="magnitude of its gradient" if column == 0 else "", xlim=(-1.1, 1.1))
    return figure


def fit() -> Figure:
    """A point cloud fitted to the letter R."""
    target = letter("R").points
    generator = torch.Generator().manual_seed(0)
    recorder = Recorder(every=1)
    found = fit_points(target, num_points=150, steps=160, generator=generator, callback=recorder, progress=False)
    states = recorder.best(found)
    figure = plot.figure(10, 2.8)
    for column, step in enumerate((0, 10, 40, 160)):
        axes = figure.add_subplot(1, 4, 1 + column)
        plot.plot_shape(target, axes, color="0.85", size=14)
        plot.plot_shape(states[min(step, len(states) - 1)].points, axes, color="C3", size=7)
        axes.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], title=f"after {step} steps")
        axes.set_frame_on(False)
    return figure


def strip(name: str, count: int = 6) -> Figure:
    """A few shapes of a data set, in the colors of their classes."""
    data = es.datasets.load(name)
    per_class = -(-count // len(data.classes))
    chosen = [i for label in range(len(data.classes)) for i in (data.labels == label).nonzero().squeeze(1)[:per_class].tolist()]
    figure = plot.figure(1.1 * count, 1.15)
    for column in range(count):
        index = chosen[round(column * (len(chosen) - 1) / (count - 1))]
        shape = data.shapes[index].normalized("unit_ball")
        axes = figure.add_subplot(1, count, 1 + column, projection="3d" if shape.dim == 3 else None)
        color = CATEGORICAL[int(data.labels[index]) % 6]
        plot.plot_shape(shape, axes, color=color, size=3 if shape.simplices else 5)
        axes.set(xlim=(-1, 1), ylim=(-1, 1))
        axes.set_axis_off()
    return figure


DATA = {f"data-{name}": partial(strip, name) for name in es.datasets.names()}
PICTURES: dict[str, Callable[[], Figure]] = {
    "sweep": sweep,
    "transform": transform,
    "letters": letters,
    "smooth": smooth,
    "directions": spheres,
    "collapse": collapse,
    "scales": scales,
    "fit": fit,
}


def draw(folder: pathlib.Path, *names: str) -> None:
    """Draw the named pictures, or all, to a folder."""
    for name in names or PICTURES:
        plot.save((PICTURES | DATA)[name](), folder / f"{name}.png", dpi=130)


if __name__ == "__main__":
    draw(pathlib.Path(sys.argv[1]), *sys.argv[2:])
