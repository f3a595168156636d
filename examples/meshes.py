"""Classify meshes: spheres, tori, Möbius strips and Klein bottles, rotated and dented.

    python examples/meshes.py

The Euler characteristic alone recognizes the spheres (2; all others have 0). The transform, which counts what lies below every
height in every direction, tells the others apart too. Each curve is embedded separately and pooled by a maximum over all
directions, so the order of the directions does not matter, and the rotation of a shape hardly does.
"""

from __future__ import annotations

import argparse

import torch

import eulerscan as es
from eulerscan import datasets
from eulerscan.nn.models import ECTDeepSets
from eulerscan.training import Augmentation, TrainingConfig, evaluate, train


def main(num_shapes: int = 100, epochs: int = 40) -> float:
    """Train and test. Returns the accuracy."""
    data = datasets.load("manifolds", form="meshes", num_shapes=num_shapes)
    print(data)
    print(data.shapes)
    for label, name in enumerate(data.classes):
        values = data.shapes.euler_characteristic()[data.labels == label].unique().tolist()
        print(f"{name}: Euler characteristic {values}")
    torch.manual_seed(0)
    layer = es.ECTLayer(dim=3, num_directions=32, num_thresholds=32, normalize="unit_ball", derivative=True)
    model = ECTDeepSets(layer, num_classes=4)
    config = TrainingConfig(epochs=epochs, learning_rate=0.003, batch_size=32, augmentation=Augmentation(tumble=True))
    trained = train(model, data, config)
    scores = evaluate(model, data, "test")
    print(f"best epoch {trained.best_epoch}, {trained.seconds_per_epoch:.2f} s per epoch, {model.num_parameters} parameters")
    print(f"{100 * scores.accuracy:.1f} % of {scores.count} new meshes recognized; confusion matrix, one row per true class:")
    for name, row in zip(data.classes, scores.confusion.tolist(), strict=True):
        print(f"  {name:<13} {row}")
    return scores.accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few meshes and epochs, to see that it works")
    quick = parser.parse_args().quick
    main(num_shapes=20, epochs=4) if quick else main()
