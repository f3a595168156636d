"""Speed of training: one epoch on the superpixel graphs, and where its time goes.

Run with the extra ``pyg`` and the dependency group ``bench`` installed, and the raw files in a mirror:

    EULERSCAN_MIRROR=../shared/data python benchmarks/training.py

The model is that of the paper for MNIST superpixels (ECT+CNN, 32 x 32, hidden 100, batch size 256). The baseline is the same
model with the dense formula, on batches of torch_geometric's DataLoader. It runs a few batches, since an epoch would take many
minutes. Both must give the same logits first. Run nothing else on the machine meanwhile. The exit code is 1 if a floor is
missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from loading import BATCH, _as_pyg
from torch import Tensor, nn
from works import Report

import eulerscan as es
from eulerscan import datasets
from eulerscan.nn.models import ECTCNN
from eulerscan.training import TrainingConfig, train

DENSE_BATCHES = 4
PARTS_BATCHES = 40


class Dense(nn.Module):
    """The same model with one sigmoid for every simplex, direction and threshold, on a batch of torch_geometric."""

    def __init__(self, model: ECTCNN) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Any) -> Tensor:
        layer = self.model.layer
        points = es.as_complex(batch).normalized("unit_ball").points
        heights = points @ layer.directions.T
        vertices = torch.sigmoid(layer.scale * (layer.thresholds - heights[:, :, None]))
        tops = heights[batch.edge_index].amax(dim=0)
        edges = torch.sigmoid(layer.scale * (layer.thresholds - tops[:, :, None]))
        curves = vertices.new_zeros(batch.num_graphs, len(layer.directions), len(layer.thresholds))
        curves = curves.index_add(0, batch.batch, vertices)
        curves = curves.index_add(0, batch.batch[batch.edge_index[0]], edges, alpha=-1)
        logits: Tensor = self.model.head(curves)
        return logits


def main() -> int:
    dataset = datasets.load("mnist-superpixels")
    report = Report("One epoch on 55,000 superpixel graphs (ECT+CNN, 32 x 32)", ["", "s/epoch", "ms/batch"])
    batches = -(-len(dataset.splits["train"]) // BATCH)
    loader = _as_pyg(dataset)
    model = ECTCNN.from_preset("superpixels", dim=dataset.shapes.dim, num_classes=10)
    _agree(model, dataset, next(iter(loader(False))))

    config = TrainingConfig(epochs=3, batch_size=BATCH)
    alone = datasets.Dataset(dataset.name, dataset.shapes, dataset.labels, dataset.classes, {"train": dataset.splits["train"]})
    epochs = [record["seconds"] for record in train(model, alone, config, progress=False).history]
    ours = statistics.median(epochs)
    dense_model = Dense(ECTCNN.from_preset("superpixels", dim=dataset.shapes.dim, num_classes=10))
    dense = batches * _seconds_per_batch(dense_model, loader(True))
    report.rows += [[name, f"{s:.2f}", f"{1e3 * s / batches:.1f}"] for name, s in (("eulerscan", ours), ("dense, PyG", dense))]
    report.notes += [
        f"Ratio: {dense / ours:.0f}x ({report.at_least('an epoch of training', dense / ours, 40)}); the dense epoch is "
        f"{batches} times the mean of {DENSE_BATCHES} batches.",
        "The paper reports 4.5 s per epoch on an RTX 3070 Ti.",
    ]
    print(f"{report.markdown()}\n\n{parts(dataset).markdown()}")
    return 1 if report.missed else 0


def _agree(model: ECTCNN, dataset: datasets.Dataset, batch: Any) -> None:
    shapes, _ = next(iter(dataset.loader("train", batch_size=BATCH)))
    with torch.no_grad():
        torch.testing.assert_close(model(shapes), Dense(model)(batch), rtol=1e-3, atol=1e-3)


def _seconds_per_batch(model: nn.Module, loader: Any) -> float:
    optimizer = torch.optim.AdamW(model.parameters())
    times, start = [], time.perf_counter()
    for _, batch in zip(range(1 + DENSE_BATCHES), loader, strict=False):
        loss = nn.functional.cross_entropy(model(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
    return statistics.fmean(times[1:])


def parts(dataset: datasets.Dataset) -> Report:
    """Time the parts of a training step."""
    model = ECTCNN.from_preset("superpixels", dim=dataset.shapes.dim, num_classes=10)
    optimizer = torch.optim.AdamW(model.parameters())
    layer = model.layer
    layer.config = replace(layer.config, normalize=None)  # timed separately
    seconds: dict[str, float] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
        return result

    order = dataset.splits["train"][torch.randperm(len(dataset.splits["train"]))]
    for i, indices in enumerate(order.split(BATCH)[: 5 + PARTS_BATCHES]):
        if i == 5:
            seconds.clear()
        shapes, labels = timed("assembling the batch", lambda at=indices: dataset.__getitems__(at))
        ball = timed("unit ball", lambda of=shapes: of.normalized("unit_ball"))
        curves = timed("transform, forward", lambda of=ball: layer(of))
        cut = curves.detach().requires_grad_()
        loss = timed("head, forward", lambda x=cut, y=labels: nn.functional.cross_entropy(model.head(x), y))
        optimizer.zero_grad()
        timed("head, backward", loss.backward)
        timed("transform, backward", lambda of=curves, gradient=cut: of.backward(gradient.grad))
        timed("optimizer", optimizer.step)
    total = sum(seconds.values())
    report = Report("Parts of a training step", ["part", "ms", "share"])
    report.rows += [[name, f"{1e3 * s / PARTS_BATCHES:.2f}", f"{100 * s / total:.0f} %"] for name, s in seconds.items()]
    return report


if __name__ == "__main__":
    sys.exit(main())
