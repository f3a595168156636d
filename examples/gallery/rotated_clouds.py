"""
Classify rotated point clouds
=============================

Scans come in any orientation. A network that sees the transform as an image learns the orientation along with the shape.
:class:`~eulerscan.nn.models.ECTCurves` pools over directions, so that the rotation of a cloud hardly matters, and
:class:`~eulerscan.nn.models.ECTHarmonics` is invariant up to rounding.
"""

import torch

import eulerscan as es
from eulerscan import plot
from eulerscan.nn.models import ECTCNN, ECTCurves, ECTHarmonics
from eulerscan.training import TrainingConfig, evaluate, train

# %%
# Clouds of 128 points on spheres, tori, Möbius strips and Klein bottles, each rotated at random.

clouds = es.datasets.load("manifolds", form="points", num_shapes=100, num_points=128)
print(clouds)

# %%
# Three networks. The directions of the pooled curves rotate in training; those of the harmonics are a quadrature.

torch.manual_seed(0)
options = {"dim": 3, "normalize": "unit_ball", "divide_by": "vertices"}
nodes = ECTHarmonics.initial_directions(dim=3, degree=4)
models = {
    "image of curves": ECTCNN(es.ECTLayer(num_directions=32, num_thresholds=32, **options), 4),
    "pooled curves": ECTCurves(es.ECTLayer(num_directions=32, num_thresholds=32, rotate_directions=True, **options), 4),
    "harmonics": ECTHarmonics(
        es.ECTLayer(directions=nodes, num_thresholds=24, learn_directions=False, scale=8.0, **options), 4, degree=4
    ),
}
found = {}
for name, model in models.items():
    train(model, clouds, TrainingConfig(epochs=15, learning_rate=0.003, batch_size=32), progress=False)
    found[name] = 100 * evaluate(model, clouds, "test").accuracy
    print(f"{name}: {found[name]:.1f} % of the test clouds are recognized")

# %%
# One cloud of each class, and the accuracies:

picture = plot.figure(10, 2.6)
for label, name in enumerate(clouds.classes):
    ax = picture.add_subplot(1, 5, label + 1, projection="3d")
    plot.plot_shape(clouds.shapes[int((clouds.labels == label).nonzero()[0])], ax).set_title(name, fontsize=9)
    ax.set_axis_off()
ax = picture.add_subplot(1, 5, 5)
ax.barh(list(found), list(found.values()), color="C0")
ax.invert_yaxis()
ax.tick_params(labelsize=8)
ax.set_xlabel("accuracy in %", fontsize=8)
plot.save(picture, "rotated.png", dpi=110)
