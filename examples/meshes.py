"""Classify meshes: spheres, tori, Möbius strips and Klein bottles, turned and dented.

    python examples/meshes.py

The Euler characteristic itself knows the spheres (2, all others have 0). The transform, which counts what lies below every
height in every direction, knows the others too. Each curve is embedded by itself and the largest values over all directions are
kept, so that it does not matter in which order the directions are, nor much how a shape is turned.
"""

from __future__ import annotations

import argparse

import torch

from eulerscan import datasets
from eulerscan.nn.models import ECTDeepSets
from eulerscan.training.augmentation import Augmentation
from eulerscan.training.loop import Training, evaluate, train


def main(num_shapes: int = 100, epochs: int = 40) -> float:
    """Train and test; returns the accuracy."""
    data = datasets.load("manifolds", form="meshes", num_shapes=num_shapes)
    print(data)
    print(data.shapes)
    for label, name in enumerate(data.classes):
        values = data.shapes.euler_characteristic()[data.labels == label].unique().tolist()
        print(f"{name}: Euler characteristic {values}")
    torch.manual_seed(0)
    model = ECTDeepSets(dim=3, num_classes=4, num_directions=32, num_thresholds=32, derivative=True)
    settings = Training(epochs=epochs, learning_rate=0.003, batch_size=32, augmentation=Augmentation(tumble=True))
    trained = train(model, data, settings)
    scores = evaluate(model, data, "test")
    print(f"best epoch {trained.best_epoch}, {trained.seconds_per_epoch:.2f} s an epoch, {model.num_parameters} parameters")
    print(f"{100 * scores.accuracy:.1f} % of {scores.count} new meshes recognised; a row for each true class:")
    for name, row in zip(data.classes, scores.confusion.tolist(), strict=True):
        print(f"  {name:<13} {row}")
    return scores.accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few meshes and epochs, to see that it works")
    quick = parser.parse_args().quick
    main(num_shapes=20, epochs=4) if quick else main()
