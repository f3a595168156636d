"""Classify point clouds from very few directions, and see which directions are worth having.

    python examples/point_clouds.py

The bright pixels of a handwritten digit are a point cloud. Opposite directions see the same of a cloud, so directions on half
of the circle say more than the same number on all of it. In the last column the network also learns its directions: the
first experiment of the paper, on data that needs no download.
"""

from __future__ import annotations

import argparse

import torch

import eulerscan as es
from eulerscan.nn.models import ECTMLP
from eulerscan.training import TrainingConfig, evaluate, train


def accuracy(directions: torch.Tensor, *, learn: bool, epochs: int, seeds: int) -> float:
    """Mean test accuracy in percent over the seeds."""
    data = es.datasets.load("digits", form="points")
    scores = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        options = {"learn_directions": learn, "normalize": "unit_ball", "derivative": True}
        layer = es.ECTLayer(2, directions=directions, num_thresholds=32, **options)
        model = ECTMLP(layer, num_classes=10, hidden=(64, 64))
        train(model, data, TrainingConfig(epochs=epochs, learning_rate=0.003, seed=seed), progress=False)
        scores.append(100 * evaluate(model, data, "test").accuracy)
    return sum(scores) / seeds


def main(counts: tuple[int, ...] = (2, 4, 8), epochs: int = 25, seeds: int = 2) -> dict[int, list[float]]:
    """Print a table of accuracies, and return it by number of directions."""
    print("directions   whole circle   half circle   half circle, learned   (% of new digits recognized)")
    found = {}
    for count in counts:
        whole, half = es.directions.circle(count), es.directions.half_sphere(count, 2)
        options = {"epochs": epochs, "seeds": seeds}
        found[count] = [
            accuracy(whole, learn=False, **options),
            accuracy(half, learn=False, **options),
            accuracy(half, learn=True, **options),
        ]
        print("{:>10} {:>14.1f} {:>13.1f} {:>22.1f}".format(count, *found[count]), flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one row, one seed, few epochs, to see that it works")
    quick = parser.parse_args().quick
    main(counts=(4,), epochs=2, seeds=1) if quick else main()
