"""
A million files on a cluster
============================

``eulerscan transform`` divides a folder of files into shards. Each shard becomes one Parquet file.
Writes are atomic: after a crash or a time limit, run the same command again, and only unfinished shards are computed.

.. code-block:: sh

   eulerscan transform million/ -o out/ --shards 1000                                     # all cores of one machine
   eulerscan transform million/ -o out/ --shards 1000 --scheduler tcp://node7:8786        # workers of a dask cluster

Here the same happens in Python, with 200 files, an interruption, and a file that is no mesh.
"""

import tempfile
from pathlib import Path

import numpy as np
import trimesh

import eulerscan as es
from eulerscan import bulk, plot
from eulerscan.analysis import pca

folder, output = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
ball = trimesh.creation.icosphere(subdivisions=2)
for number in range(199):
    mesh = ball.copy()
    mesh.vertices *= rng.uniform(0.3, 1.0, 3) * (1 + 0.1 * np.sin(rng.uniform(2, 9) * ball.vertices[:, :1]))
    mesh.export(folder / f"{number:03}.ply")
(folder / "damaged.ply").write_text("ply\nno mesh at all\n", encoding="utf-8")

# %%
# Transform in ten shards. ``processes=4`` or ``scheduler="tcp://..."`` distributes the work; the parts are the same, to
# the byte.

settings = bulk.Settings(ect=es.ECTConfig(num_directions=32, num_thresholds=32))
report = bulk.transform_folder(es.io.list_shapes(folder), settings, output, shards=10)
print(f"{report.num_shapes} shapes; could not be read: {[failure.path.name for failure in report.failures]}")

# %%
# A part is lost, as after a crash. The next call computes only what is missing.

(output / "parts" / "part-00003.parquet").unlink()
before = {part.name: part.stat().st_mtime_ns for part in (output / "parts").iterdir()}
bulk.transform_folder(es.io.list_shapes(folder), settings, output)
changed = [part.name for part in (output / "parts").iterdir() if before.get(part.name) != part.stat().st_mtime_ns]
print(f"computed again: {changed}")

# %%
# Load all parts, and look at the shapes in the plane of their principal components.

transforms = bulk.load_transforms(output)
print(f"{len(transforms.names)} transforms of shape {list(transforms.transforms.shape[1:])}")
scores = pca(transforms.transforms).scores

picture = plot.figure(7, 3.4)
ax = picture.add_subplot(1, 2, 1)
ax.scatter(*scores[:, :2].T, s=12)
ax.set(xlabel="axis 1", ylabel="axis 2")
ax = picture.add_subplot(1, 2, 2, projection="3d")
plot.plot_shape(es.read(folder / "000.ply"), ax, size=0).set_axis_off()
plot.save(picture, "cluster.png", dpi=110)
