"""Curves of filtrations against the package ``pyect``, and directions of each shape against a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from peers import PEERS, load
from torch import Tensor
from works import DASH, Call, Report, interleaved, meshes, milliseconds

import eulerscan as es

SIDE, NUM_POINTS, NUM_SHAPES = 500, 20_000, 512


class Work(NamedTuple):
    """Two ways to compute the same curves."""

    name: str
    baseline: str
    ours: Callable[[], Tensor]
    theirs: Callable[[], Any]
    to_tensor: Callable[[Any], Tensor]
    floor: float


def run() -> Report:
    report = Report(
        "Filtrations",
        ["work", "baseline", "baseline, ms", "ours, ms", "ours is faster", "floor"],
        notes=[
            "A row is timed only after both gave the same curves; up to 1 % of the entries may differ for pyect, whose bins in "
            "float32 move values that all but lie on a threshold. *From the image* and *from points* include building the "
            "filtration, for which pyect needs gudhi. The loop selects each shape of the batch. `es.ect` computes heights from "
            "two coordinates a point, where the values of 64 filtrations have to be read from memory.",
        ],
    )
    for work in [*_images(report), *_alpha(report), *_per_shape(), *_lower_star()]:
        expected, found = work.to_tensor(work.theirs()), work.ours()
        close = torch.isclose(found.double(), expected.double().reshape(found.shape), rtol=1e-5, atol=1e-4)
        share = float(close.double().mean())
        if share < 0.99:
            report.miss(work.name, f"only {share:.2%} of the entries are equal")
            report.rows.append([work.name, work.baseline, *[DASH] * 4])
            continue
        calls: dict[str, Call] = {"ours": work.ours, "theirs": work.theirs}
        seconds = interleaved(calls)
        ratio = seconds["theirs"] / seconds["ours"]
        times = [milliseconds(seconds[name]) for name in ("theirs", "ours")]
        floor = report.at_least(work.name, ratio, work.floor)
        report.rows.append([work.name, work.baseline, *times, f"{ratio:.2f}x", floor])
    return report


def _peer(report: Report, module: str) -> Any:
    file = PEERS / "pyect" / f"{module}.py"
    if not file.exists():
        report.miss(f"pyect/{module}", "not compared: `make build/peers/pyect`")
        return None
    return load(file)


def _images(report: Report) -> list[Work]:
    peer = _peer(report, "image_ecf")
    if peer is None:
        return []
    works = []
    for name, shape in (
        (f"image ECF, {SIDE} x {SIDE}, from the image", (SIDE, SIDE)),
        ("volume ECF, 60 x 60 x 60", (60, 60, 60)),
    ):
        image = torch.rand(*shape, generator=torch.Generator().manual_seed(0))
        theirs = (peer.Image_ECF_2D if len(shape) == 2 else peer.Image_ECF_3D)(256)
        thresholds = torch.linspace(0, 1, 256)

        def ours(image: Tensor = image, thresholds: Tensor = thresholds) -> Tensor:
            return es.ecc(*es.convert.filtration_from_image(image, pixels="vertices"), thresholds)

        works.append(Work(name, "pyect", ours, lambda theirs=theirs, image=image: theirs(image), torch.Tensor.double, 1))
    return works


def _alpha(report: Report) -> list[Work]:
    general, gudhi = _peer(report, "general_filtrations"), _peer(report, "integrations/gudhi")
    if general is None:
        return []
    points = np.random.default_rng(0).normal(size=(NUM_POINTS, 3))
    small = points[: NUM_POINTS // 10]
    thresholds = torch.linspace(0, 0.5, 256)
    filtration = es.convert.alpha_filtration(torch.tensor(points).float())
    radii = torch.cat(tuple(filtration.values))
    data = [(level[:, None], torch.ones(len(level))) for level in filtration.values]
    grid = torch.linspace(0, float(radii.max()), 256)

    def from_points() -> Tensor:
        values, _ = gudhi.alpha_complex_to_filtration_data(small)
        # At squared radii, and at thresholds of its own: only the last, the Euler characteristic, can be compared.
        return general.compute_wecfs_general(values, 256)[:, -1]

    def ours_from_points() -> Tensor:
        return es.ecc(*es.convert.alpha_filtration(small), torch.cat([thresholds, torch.tensor([1e9])]).double())[0, :, -1]

    return [
        Work(
            f"alpha curve, {len(radii):,} simplices",
            "pyect",
            lambda: es.ecc(*filtration, grid),
            lambda: general.compute_wecfs_general(data, 256),
            lambda result: result,
            1,
        ),
        Work(
            f"alpha curve from {len(small):,} points", "pyect + gudhi", ours_from_points, from_points, lambda result: result, 1
        ),
    ]


def _per_shape() -> list[Work]:
    shapes = meshes(NUM_SHAPES, 75).to(dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    directions = es.directions.random(NUM_SHAPES * 16, 2, generator).view(NUM_SHAPES, 16, 2)
    thresholds = es.thresholds(16)

    def loop(own: Tensor, scale: float) -> Tensor:
        return torch.cat([es.ect(shapes[b], own[b], thresholds, scale=scale) for b in range(NUM_SHAPES)])

    def with_gradients(transform: Callable[[Tensor], Tensor]) -> Callable[[], Tensor]:
        def call() -> Tensor:
            own = directions.clone().requires_grad_()
            return torch.autograd.grad(transform(own).square().sum(), own)[0]

        return call

    name = f"{NUM_SHAPES} shapes of 75 points, 16 directions of their own"
    return [
        Work(
            name, "a loop", lambda: es.ect(shapes, directions, thresholds), lambda: loop(directions, torch.inf), lambda r: r, 20
        ),
        Work(
            f"{name}, with gradients",
            "a loop",
            with_gradients(lambda own: es.ect(shapes, own, thresholds, scale=20.0)),
            with_gradients(lambda own: loop(own, 20.0)),
            lambda r: r,
            20,
        ),
    ]


def _lower_star() -> list[Work]:
    """As fast as the transform with the same number of curves, which computes its heights itself."""
    shape, directions = meshes(1, 100_000).to(dtype=torch.float32), es.directions.circle(64)
    thresholds = es.thresholds(64)
    heights = (shape.points.double() @ directions.double().T).float()
    name = "1 mesh of 100,000 points, 64 lower-star filtrations"
    return [
        Work(
            name,
            "es.ect",
            lambda: es.ecc(shape, heights, thresholds),
            lambda: es.ect(shape, directions, thresholds),
            lambda r: r,
            0.8,
        )
    ]
