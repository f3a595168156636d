"""Fit shapes to each other by their transforms alone: no points are matched.

    python examples/fitting.py [--output FOLDER]

Three fits: a few points that replace many; a point cloud reconstructed from its transform alone, as in tomography; and a sphere
mesh deformed into an egg. With --output the shapes are written to a folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import eulerscan as es
from eulerscan.fitting import Fit, TransformTarget, fit_points
from eulerscan.testing import sphere


def spiral(num_points: int) -> torch.Tensor:
    """Points along a spiral in the plane."""
    angle = torch.linspace(0.5, 3.0, num_points) * 2 * torch.pi
    return torch.stack([angle * angle.cos(), angle * angle.sin()], dim=1) / 20


def distance(points: torch.Tensor, target: torch.Tensor) -> float:
    """Mean distance from each point to the nearest point of the target."""
    return float(torch.cdist(points, target).amin(dim=1).mean())


def main(steps: int = 600, folder: Path | None = None) -> dict[str, Fit]:
    """Run all three fits."""
    generator = torch.Generator().manual_seed(0)
    many = spiral(400)

    sparse = fit_points(many, num_points=60, steps=steps, generator=generator)
    print(f"sparse: 60 points for 400, mean distance {distance(sparse.shape.points, many):.3f}")

    transform = TransformTarget.of(many, es.directions.circle(64), es.thresholds(64, radius=1.2))
    found = fit_points(transform, steps=steps, generator=generator)
    mean = distance(found.shape.points, many)
    print(f"found: {len(found.shape.points)} points from {transform.values.numel()} numbers, mean distance {mean:.3f}")

    ball = sphere(2, dtype=torch.float32).complex
    target = ball.with_points(ball.points * torch.tensor([0.7, 0.7, 1.0]))
    egg = fit_points(target, start=ball, steps=steps)
    size = (egg.shape.points.amax(dim=0) - egg.shape.points.amin(dim=0)).tolist()
    print(f"egg: a ball of diameter 2 is now {size[0]:.2f} x {size[1]:.2f} x {size[2]:.2f}, target 1.40 x 1.40 x 2.00")

    fits = {"sparse": sparse, "found": found, "egg": egg}
    for name, fit in fits.items():
        print(f"{name}: {100 * fit.loss / fit.start_loss:.3f} % of the initial loss remains after {len(fit.history)} steps")
        if folder is not None:
            es.io.write(fit.shape, folder / f"{name}.ply")
    return fits


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder for the fitted shapes")
    parser.add_argument("--quick", action="store_true", help="few steps, to check that it works")
    options = parser.parse_args()
    main(steps=60 if options.quick else 600, folder=options.output)
