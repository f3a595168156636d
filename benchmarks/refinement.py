"""A mesh that is refined in one place: its distance to itself, against that to a shape that is really different.

    make build/peers/pyvista && python benchmarks/refinement.py

The mesh is the ant among the examples of the package pyvista. A fifth of its triangles are cut at their centroids, three times
over, which changes nothing of the surface. The other ant is the same one, bent a little.
"""

from __future__ import annotations

from pathlib import Path

import torch

import eulerscan as es
from eulerscan._tables import aligned
from eulerscan.analysis import distance

ANT = Path(__file__).parents[1] / "build/peers/pyvista/examples/ant.ply"
BENDS = (0.02, 0.05, 0.1)  # of the length of the ant


def refined(mesh: es.Complex, times: int) -> es.Complex:
    """The mesh with the first fifth of its triangles cut at their centroids, so many times."""
    for _ in range(times):
        triangles = mesh.simplices[1].long()
        chosen, rest = triangles.split([triangles.shape[1] // 5, triangles.shape[1] - triangles.shape[1] // 5], dim=1)
        new = len(mesh.points) + torch.arange(chosen.shape[1])
        cut = [torch.stack([chosen[i], chosen[(i + 1) % 3], new]) for i in range(3)]
        points = torch.cat([mesh.points, mesh.points[chosen].mean(dim=0)])
        mesh = es.Complex(points, [torch.cat([*cut, rest], dim=1)]).closure()
    return mesh


def bent(mesh: es.Complex, amount: float) -> es.Complex:
    """The mesh moved sideways along a half wave."""
    low, high = mesh.points.amin(dim=0), mesh.points.amax(dim=0)
    axis = int((high - low).argmax())
    place = (mesh.points[:, axis] - low[axis]) / (high - low)[axis]
    points = mesh.points.clone()
    points[:, (axis + 1) % 3] += amount * (high - low)[axis] * torch.sin(torch.pi * place)
    return mesh.with_points(points)


def main() -> None:
    ant = es.read(ANT).to(torch.float64)
    fine = refined(ant, 3)
    print(f"ant: {ant.counts[0]:,} vertices, refined {fine.counts[0]:,}\n")
    rows = []
    for normalize in ("unit_ball", "vertices"):
        config = es.ECTConfig(64, 64, scale=100.0, normalize=normalize)
        itself, *others = (
            float(distance(*map(config.transform, (ant, one)))) for one in (fine, *(bent(ant, b) for b in BENDS))
        )
        rows.append([normalize, f"{itself:.3g}", *(f"{other:.3g} ({100 * itself / other:.2g} %)" for other in others)])
    print(aligned(["normalize", "to itself, refined", *(f"to the ant bent by {100 * b:.0f} %" for b in BENDS)], rows))


if __name__ == "__main__":
    main()
