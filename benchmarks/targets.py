"""Targets for the fitting benchmark: samples of shapes in the unit ball, and real shapes if available."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

import eulerscan as es

MIRROR = Path(os.environ.get("EULERSCAN_MIRROR", Path(__file__).resolve().parents[2] / "shared" / "data"))
MESHES = Path(__file__).resolve().parents[1] / "build" / "peers" / "pyvista" / "examples"


def circle(n: int, generator: torch.Generator, radius: float = 1.0, x: float = 0.0) -> Tensor:
    angle = 2 * math.pi * torch.rand(n, generator=generator)
    return torch.stack([radius * angle.cos() + x, radius * angle.sin()], dim=1)


def two_circles(n: int, generator: torch.Generator) -> Tensor:
    return torch.cat([circle(n // 2, generator, 0.4, -0.5), circle(n - n // 2, generator, 0.4, 0.5)])


def figure_eight(n: int, generator: torch.Generator) -> Tensor:
    """Uniform along the curve (sin t, sin t cos t)."""
    t = torch.linspace(0, 2 * math.pi, 4001)
    curve = torch.stack([t.sin(), t.sin() * t.cos()], dim=1)
    length = torch.cat([torch.zeros(1), curve.diff(dim=0).norm(dim=1).cumsum(dim=0)])
    along = torch.rand(n, generator=generator) * length[-1]
    i = torch.searchsorted(length, along).clamp(1, len(t) - 1)
    part = ((along - length[i - 1]) / (length[i] - length[i - 1]))[:, None]
    return torch.lerp(curve[i - 1], curve[i], part)


def sphere(n: int, generator: torch.Generator) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(n, 3, generator=generator), dim=1)


def torus(n: int, generator: torch.Generator) -> Tensor:
    """Uniform in area, by rejection: the outer half has more of it."""
    around, across, kept = (torch.rand(4 * n, generator=generator) for _ in range(3))
    around, across = 2 * math.pi * around, 2 * math.pi * across
    radius = 0.7 + 0.3 * across.cos()
    points = torch.stack([radius * around.cos(), radius * around.sin(), 0.3 * across.sin()], dim=1)
    return points[kept < radius][:n]


SHAPES = {"circle": circle, "two circles": two_circles, "figure eight": figure_eight, "sphere": sphere, "torus": torus}


class Halves(NamedTuple):
    """A real shape in two random halves: one to fit, and one to measure the error of sampling."""

    name: str
    target: Tensor
    fresh: Tensor


def real_shapes(seed: int) -> Iterator[Halves | str]:
    """An object of ModelNet40 per seed, and the vertices of two meshes; or a message about what is missing."""
    path = MIRROR / "modelnet40" / "test_1024.npz"
    if path.exists():
        with np.load(path) as data:
            index = 500 * seed  # its points are in random order
            name, cloud = str(data["class_names"][data["y"][index]]), data["xyz_i16"][index].astype(np.float32) / 32767
        yield Halves(f"real {name}", *torch.tensor(cloud).chunk(2))
    else:
        yield f"no modelnet40 in {MIRROR}; set EULERSCAN_MIRROR to the folder that has it"
    for name in ("ant", "airplane"):
        path = MESHES / f"{name}.ply"
        if path.exists():
            vertices = es.read(path).points
            order = torch.randperm(len(vertices), generator=torch.Generator().manual_seed(seed))
            yield Halves(f"vertices of the mesh {name}", *vertices[order].chunk(2))
        else:
            yield f"no mesh {name}; run `make fits` or `pip install --no-deps --target build/peers pyvista==0.49.1`"
