"""Make a folder of mesh files to try the commands on: boxes, balls and rings, each in a subfolder.

python examples/shapes.py [FOLDER] [--count 12]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import trimesh


def make_shapes(folder: Path, count: int) -> None:
    """``count`` shapes of each kind with random proportions, as PLY, STL and OBJ."""
    rng = np.random.default_rng(0)
    kinds = {
        "boxes": lambda: trimesh.creation.box(rng.uniform(0.5, 1.5, 3)).subdivide().subdivide(),
        "balls": lambda: trimesh.creation.icosphere(subdivisions=2).apply_scale(rng.uniform(0.5, 1.5, 3)),
        "rings": lambda: trimesh.creation.torus(1.0, rng.uniform(0.2, 0.5)),
    }
    for kind, make in kinds.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            make().export(folder / kind / f"{number}.{('ply', 'stl', 'obj')[number % 3]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("shapes"), help="output folder")
    parser.add_argument("--count", type=int, default=12, help="number of shapes of each kind")
    arguments = parser.parse_args()
    make_shapes(arguments.folder, arguments.count)
    print(f"{3 * arguments.count} files in {arguments.folder}")
