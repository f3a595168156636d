"""Fit shapes to each other by their transforms alone: no points are matched.

    python examples/fitting.py [--output FOLDER]

Three fits: a few points in place of many; a cloud found from nothing but its transform, as if seen by a tomograph; and a sphere
bent into an egg, its triangles kept. With --output the shapes are written there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import eulerscan as es
from eulerscan.fitting import Fit, Transform, fit_points
from eulerscan.testing import sphere


def spiral(num_points: int) -> torch.Tensor:
    """Points along a spiral in the plane."""
    turn = torch.linspace(0.5, 3.0, num_points) * 2 * torch.pi
    return torch.stack([turn * turn.cos(), turn * turn.sin()], dim=1) / 20


def distance(points: torch.Tensor, target: torch.Tensor) -> float:
    """Mean distance from the points to the nearest points of the target."""
    return float(torch.cdist(points, target).amin(dim=1).mean())


def main(steps: int = 600, folder: Path | None = None) -> dict[str, Fit]:
    """All three fits, by name."""
    chance = torch.Generator().manual_seed(0)
    many = spiral(400)

    sparse = fit_points(many, num_points=60, steps=steps, generator=chance)
    print(f"sparse: 60 points for 400, on average {distance(sparse.shape.points, many):.3f} away from one of them")

    seen = Transform.of(many, es.directions.circle(64), es.thresholds(64, radius=1.2))
    found = fit_points(seen, steps=steps, generator=chance)
    away = distance(found.shape.points, many)
    print(f"found: {len(found.shape.points)} points from {seen.values.numel()} numbers, {away:.3f} away")

    ball = sphere(2, dtype=torch.float32).complex
    wanted = ball.with_points(ball.points * torch.tensor([0.7, 0.7, 1.0]))
    egg = fit_points(wanted, start=ball, steps=steps)
    size = (egg.shape.points.amax(dim=0) - egg.shape.points.amin(dim=0)).tolist()
    print(f"egg: a ball of diameter 2 is now {size[0]:.2f} x {size[1]:.2f} x {size[2]:.2f}, wanted 1.40 x 1.40 x 2.00")

    fits = {"sparse": sparse, "found": found, "egg": egg}
    for name, fit in fits.items():
        print(f"{name}: {100 * fit.loss / fit.start_loss:.3f} % of the first difference is left after {len(fit.history)} steps")
        if folder is not None:
            es.io.write(fit.shape, folder / f"{name}.ply")
    return fits


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder for the fitted shapes")
    parser.add_argument("--quick", action="store_true", help="few steps, to see that it works")
    options = parser.parse_args()
    main(steps=60 if options.quick else 600, folder=options.output)
