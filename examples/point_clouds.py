"""Classify point clouds from very few directions, and see which directions are worth having.

    python examples/point_clouds.py

The bright pixels of a handwritten digit are a cloud. Of a cloud, opposite directions see the same, so directions spread over
half of the circle tell more than as many over all of it. The last column lets the network turn its directions while it
learns: the first experiment of the paper, on data that need no download.
"""

from __future__ import annotations

import argparse

import torch

import eulerscan as es
from eulerscan.nn.models import ECTMLP
from eulerscan.training.loop import Training, evaluate, train


def accuracy(directions: torch.Tensor, *, learn: bool, epochs: int, seeds: int) -> float:
    """Per cent of new digits recognised from these directions, mean over the seeds."""
    data = es.datasets.load("digits", form="points")
    scores = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = ECTMLP(
            2, 10, directions=directions, learn_directions=learn, num_thresholds=32, hidden=(64, 64), derivative=True
        )
        train(model, data, Training(epochs=epochs, learning_rate=0.003, seed=seed), progress=False)
        scores.append(100 * evaluate(model, data, "test").accuracy)
    return sum(scores) / seeds


def main(counts: tuple[int, ...] = (2, 4, 8), epochs: int = 25, seeds: int = 2) -> dict[int, list[float]]:
    """A table of accuracies, and the same by number of directions."""
    print("directions   whole circle   half circle   half circle, learned   (% of new digits recognised)")
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
