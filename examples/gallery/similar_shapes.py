"""
Find similar shapes in a folder
===============================

A folder of mesh files in any formats: which are most similar to this one? Transforms are compared, so meshes need neither
the same vertices nor a correspondence. Sorted over directions, transforms hardly change when a shape is rotated.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
import trimesh

import eulerscan as es
from eulerscan import plot
from eulerscan.analysis import distance_matrix

# %%
# Make a folder with rings, tables and dumbbells of random proportions and orientations. Replace it by your own.

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for number in range(10):
    width, height, thick = rng.uniform((0.8, 0.5, 0.1), (1.6, 1.2, 0.25))
    legs = [trimesh.creation.box((thick, thick, height)).apply_translation((x, y, 0)) for x in (0, width) for y in (0, 1)]
    top = trimesh.creation.box((width + 0.3, 1.3, thick)).apply_translation((width / 2, 0.5, height / 2))
    balls = [trimesh.creation.icosphere(subdivisions=2, radius=height / 2).apply_translation((x, 0, 0)) for x in (0, 2 * width)]
    bar = trimesh.creation.cylinder(thick / 2, segment=((0, 0, 0), (2 * width, 0, 0)))
    meshes = {
        "ring": trimesh.creation.torus(1.0, 2 * thick),
        "table": trimesh.util.concatenate([*legs, top]),
        "dumbbell": trimesh.util.concatenate([*balls, bar]),
    }
    for kind, mesh in meshes.items():
        mesh.apply_transform(trimesh.transformations.random_rotation_matrix(rng.random(3)))
        mesh.export(folder / f"{kind}-{number}.{('ply', 'stl', 'obj')[number % 3]}")

# %%
# Read everything that is a shape, transform, and compare.

paths = es.io.list_shapes(folder).paths
shapes = es.collate([es.read(path) for path in paths])
thresholds = es.thresholds(64)
transforms = es.ect(shapes.normalized("unit_ball"), es.directions.fibonacci(128), thresholds).sort(dim=1).values
distances = distance_matrix(transforms, thresholds=thresholds)

nearest = (distances + 1e9 * torch.eye(len(paths))).argmin(dim=1).tolist()
alike = [paths[i].name.split("-")[0] == paths[j].name.split("-")[0] for i, j in enumerate(nearest)]
print(f"{100 * np.mean(alike):.0f} % of {len(paths)} shapes are nearest to one of the same kind")

# %%
# The nearest shapes of one of each kind:

picture = plot.figure(9, 6)
for row, kind in enumerate(("ring", "table", "dumbbell")):
    query = next(i for i, path in enumerate(paths) if path.name.startswith(f"{kind}-0"))
    for column, index in enumerate(distances[query].argsort()[:5].tolist()):
        ax = picture.add_subplot(3, 5, 5 * row + column + 1, projection="3d")
        plot.plot_shape(shapes[index], ax, color="C1" if column == 0 else "C0")
        ax.set_title(f"{paths[index].name}\n{distances[query, index]:.2f}", fontsize=8)
        ax.set_axis_off()
plot.save(picture, "similar.png", dpi=110)

# %%
# The same from the command line, with a dendrogram of all shapes; ``--align`` finds the best rotation of each pair:
#
# .. code-block:: sh
#
#    eulerscan distances folder/ -o distances.csv --plot tree.png
