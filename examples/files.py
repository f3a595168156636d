"""Analyze a folder of mesh files: a table of transforms, and the nearest neighbor of every shape.

    python examples/files.py [FOLDER] [--output FOLDER]

Without a folder it makes one: boxes, balls and rings of random proportions and rotations, in three formats. The same without
Python: eulerscan transform, distances and plot.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import trimesh

import eulerscan as es
from eulerscan.analysis import distance_matrix
from eulerscan.io import list_shapes


def make_files(folder: Path, count: int) -> None:
    """``count`` shapes of each kind, as PLY, STL and OFF."""
    rng = np.random.default_rng(0)
    kinds = {
        "box": lambda: trimesh.creation.box(rng.uniform(0.5, 1.5, 3)).subdivide().subdivide(),
        "ball": lambda: trimesh.creation.icosphere(subdivisions=2, radius=rng.uniform(0.5, 1.5)),
        "ring": lambda: trimesh.creation.torus(1.0, rng.uniform(0.2, 0.5)),
    }
    for kind, make in kinds.items():
        for number in range(count):
            mesh = make()
            mesh.apply_transform(trimesh.transformations.random_rotation_matrix(rng.random(3)))
            mesh.export(folder / f"{kind}-{number}.{('ply', 'stl', 'off')[number % 3]}")


def main(folder: Path, output: Path) -> float:
    """Read, transform, compare. Returns the fraction of shapes whose nearest neighbor is of the same kind."""
    paths = list_shapes(folder).paths
    shapes = es.collate([es.read(path) for path in paths])
    print(f"{len(paths)} files: {shapes}")
    print(f"Euler characteristics: {sorted(set(shapes.euler_characteristic().tolist()))}")

    # Values sorted over directions at every height hardly change when a shape is rotated.
    transforms = es.ect(shapes.normalized("unit_ball"), es.directions.fibonacci(128), es.thresholds(64)).sort(dim=1).values
    output.mkdir(parents=True, exist_ok=True)
    table = np.column_stack([[path.name for path in paths], transforms.flatten(1).int().numpy()])
    np.savetxt(output / "transforms.csv", table, fmt="%s", delimiter=",")

    distances = distance_matrix(transforms, thresholds=es.thresholds(64))
    distances.fill_diagonal_(float("inf"))
    nearest = distances.argmin(dim=1).tolist()
    for i, j in enumerate(nearest[:9]):
        print(f"  {paths[i].name:<12} is nearest to {paths[j].name:<12} distance {distances[i, j]:.3f}")
    alike = [paths[i].name.split("-")[0] == paths[j].name.split("-")[0] for i, j in enumerate(nearest)]
    print(f"{100 * np.mean(alike):.0f} % of the shapes have a nearest neighbor of the same kind; the table is in {output}")
    return float(np.mean(alike))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of mesh, point, graph or image files")
    parser.add_argument("--output", type=Path, default=Path("runs/files"), help="folder for the table")
    parser.add_argument("--quick", action="store_true", help="a few files, to see that it works")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        if options.folder is None:
            make_files(Path(made), count=3 if options.quick else 20)
        main(options.folder or Path(made), options.output)
