"""Classify your own graphs: randomly distorted line drawings of six letters.

    python examples/graphs.py

Every drawing is a Complex of points and edges; all of them together, with their labels, are a Dataset. A network with about
4,000 parameters then tells the letters apart by their Euler characteristic curves alone.
"""

from __future__ import annotations

import argparse

import torch

import eulerscan as es
from eulerscan.datasets import Dataset
from eulerscan.nn.models import ECTCNN
from eulerscan.training import TrainingConfig, evaluate, train

# Corners of a drawing in the square from 0 to 2, and its edges.
LETTERS = {
    "A": ([(0, 0), (0.5, 1), (1, 2), (1.5, 1), (2, 0)], [(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)]),
    "E": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5)]),
    "F": ([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)], [(0, 1), (1, 2), (1, 3), (2, 4)]),
    "H": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [(0, 1), (1, 2), (3, 4), (4, 5), (1, 4)]),
    "K": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)], [(0, 1), (1, 2), (1, 3), (1, 4)]),
    "Z": ([(0, 2), (1, 2), (0, 0), (1, 0)], [(0, 1), (1, 2), (2, 3)]),
}


def drawings(count: int, noise: float, seed: int = 0) -> Dataset:
    """``count`` drawings of every letter, with noise on each corner."""
    generator = torch.Generator().manual_seed(seed)
    shapes, labels = [], []
    for label, (corners, edges) in enumerate(LETTERS.values()):
        for _ in range(count):
            points = torch.tensor(corners, dtype=torch.float32)
            points = points + noise * torch.randn(points.shape, generator=generator)
            shapes.append(es.Complex(points, [torch.tensor(edges).T]))
            labels.append(label)
    order = torch.randperm(len(shapes), generator=generator)
    parts = order.split([6 * len(order) // 10, 2 * len(order) // 10, len(order) - 8 * len(order) // 10])
    splits = dict(zip(("train", "val", "test"), parts, strict=True))
    return Dataset("drawings", es.collate(shapes), torch.tensor(labels), tuple(LETTERS), splits)


def main(count: int = 200, epochs: int = 60, noise: float = 0.2) -> float:
    """Train and test. Returns the accuracy."""
    data = drawings(count, noise)
    pieces = data.shapes.euler_characteristic()
    for label, name in enumerate(data.classes):
        print(f"{name}: vertices - edges = {int(pieces[data.labels == label][0])}")
    torch.manual_seed(0)
    model = ECTCNN.from_preset("4k", dim=2, num_classes=len(data.classes))
    train(model, data, TrainingConfig(epochs=epochs, learning_rate=0.003, schedule="cosine"))
    scores = evaluate(model, data, "test")
    print(f"{model.num_parameters} parameters, {scores.count} new drawings, {100 * scores.accuracy:.1f} % recognized")
    for label, row in enumerate(scores.confusion):
        wrong = {data.classes[i]: int(n) for i, n in enumerate(row) if i != label and n}
        print(f"{data.classes[label]} mistaken for {wrong or 'nothing else'}")
    return scores.accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few drawings and epochs, to see that it works")
    quick = parser.parse_args().quick
    main(count=40, epochs=8) if quick else main()
