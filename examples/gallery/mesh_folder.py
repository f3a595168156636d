"""
Classify meshes by folder
=========================

Every subfolder is a class. :func:`~eulerscan.training.auto` trains SVMs on the transform and networks, and keeps
their ensemble, or one that is better on validation shapes. ``eulerscan train --folder meshes/`` does the same from the
command line.
"""

import tempfile
from pathlib import Path

import eulerscan as es
from eulerscan import plot
from eulerscan.datasets.folder import load_folder
from eulerscan.training import TrainingConfig, auto, evaluate

# %%
# Make a folder with a subfolder for each of four surfaces: spheres, tori, Möbius strips and Klein bottles, dented and rotated.

folder = Path(tempfile.mkdtemp()) / "surfaces"
surfaces = es.datasets.load("manifolds", form="meshes", num_shapes=40, num_points=200)
for number in range(len(surfaces)):
    shape, label = surfaces[number]
    es.io.write(shape, folder / surfaces.classes[label].replace(" ", "-") / f"{number}.ply")

# %%
# Load it. A fifth of each class is for test, and a fifth of the rest for validation.

data, unreadable = load_folder(folder, cache=False)
print(data, f"{len(unreadable)} files could not be read")

# %%
# Train, and test on shapes that were not seen.

model = auto(data, training=TrainingConfig(epochs=15), progress=False)
scores = evaluate(model, data, "test")
print(f"{type(model).__name__}: {100 * scores.accuracy:.0f} % of {scores.count} new meshes are recognized")

picture = plot.figure(9, 4)
axes = picture.add_subplot(1, 2, 1, projection="3d")
plot.plot_shape(data.shapes[int(data.indices("test")[-1])], axes).set_axis_off()
plot.plot_confusion(scores.confusion, data.classes, picture.add_subplot(1, 2, 2))
plot.save(picture, "confusion.png", dpi=110)
