"""
Classify rotated point clouds
=============================

Scans come in any orientation. A network that sees the transform as an image learns the orientation along with the shape.
:class:`~eulerscan.nn.models.ECTCurves` reads every curve with the same convolutions and takes mean, standard deviation and maximum
over directions, so that the rotation of a cloud hardly matters. Random rotations in training (``tumble``) do the rest.
"""

import torch

import eulerscan as es
from eulerscan import plot
from eulerscan.nn.models import ECTCNN, ECTCurves
from eulerscan.training import Augmentation, TrainingConfig, evaluate, train

# %%
# Clouds of 128 points on spheres, tori, Möbius strips and Klein bottles, each rotated at random.

clouds = es.datasets.load("manifolds", form="points", num_shapes=100, num_points=128)
print(clouds)


def layer() -> es.ECTLayer:
    """The same transform for both networks."""
    return es.ECTLayer(dim=3, num_directions=32, num_thresholds=32, normalize="unit_ball", divide_by="vertices")


found = {}
for name, head, augmentation in (
    ("image of curves", ECTCNN, Augmentation()),
    ("pooled curves", ECTCurves, Augmentation()),
    ("pooled curves,\nrotated in training", ECTCurves, Augmentation(tumble=True)),
):
    torch.manual_seed(0)
    model = head(layer(), num_classes=4)
    config = TrainingConfig(epochs=20, learning_rate=0.003, batch_size=32, augmentation=augmentation)
    train(model, clouds, config, progress=False)
    found[name] = 100 * evaluate(model, clouds, "test").accuracy
    print(f"{name.replace(chr(10), ' ')}: {found[name]:.1f} % of the test clouds are recognized")

# %%
# One cloud of each class, and the accuracies:

picture = plot.figure(10, 3.2)
for label, name in enumerate(clouds.classes):
    ax = picture.add_subplot(1, 5, label + 1, projection="3d")
    plot.plot_shape(clouds.shapes[int((clouds.labels == label).nonzero()[0])], ax).set_title(name, fontsize=9)
    ax.set_axis_off()
ax = picture.add_subplot(1, 5, 5)
ax.barh(list(found), list(found.values()), color="C0")
ax.invert_yaxis()
ax.tick_params(labelsize=7)
ax.set_xlabel("accuracy in %", fontsize=8)
plot.save(picture, "rotated.png", dpi=110)
