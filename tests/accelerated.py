"""The public API on a pretend accelerator: a JSON line for each case. Does it agree with the CPU, where would the host wait?

Run in a process of its own: python accelerated.py portable|triton
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "kernels"))

import pretend
import torch

import eulerscan as es
from eulerscan import _devices, analysis, convert, testing, training
from eulerscan.datasets import Dataset
from eulerscan.kernels import dispatch
from eulerscan.nn import FrameAveraging, losses, models
from eulerscan.training.augmentation import Augmentation
from eulerscan.training.choice import candidates, choose
from eulerscan.variants import channels, power_spectrum, sect, superlevel, wect

chance = torch.Generator().manual_seed(0)
POINTS = torch.randn(24, 3, generator=chance) * 0.4
EDGES = torch.tensor([[i, (i + 1) % 8] for i in range(8)] + [[8 + i, 8 + (i + 3) % 16] for i in range(16)]).T.contiguous()
TRIANGLES = torch.tensor([[0, 1, 2], [1, 2, 3], [2, 3, 4], [9, 10, 11], [10, 11, 12]]).T.contiguous()
BATCH = torch.tensor([0] * 8 + [1] * 16)
GRAPH = es.Complex(POINTS, [EDGES], batch=BATCH)
MESH = es.Complex(POINTS, [TRIANGLES], batch=BATCH).closure()
HEAVY = es.Complex(POINTS, [EDGES], weights=[torch.rand(24, generator=chance), torch.rand(24, generator=chance)], batch=BATCH)
CLOUDS = torch.rand(4, 10, 3, generator=chance)
NODES = es.directions.quadrature(6).directions
DIRECTIONS, THRESHOLDS = es.directions.fibonacci(6), es.thresholds(7)
LABELS = torch.tensor([0, 1] * 8)


def gradients(module, shape):
    result = module(shape)
    if result.requires_grad:
        result.square().sum().backward()
    return [result, *(p.grad for p in module.parameters() if p.grad is not None)]


def model(name):
    torch.manual_seed(0)
    return getattr(models, name)(es.ECTLayer(3, 16, 16), 5)


def layer(**options):
    return es.ECTLayer(3, 6, 7, learn_thresholds=True, learn_scale=True, **options)


class Autocast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = layer()

    def forward(self, shape):
        with torch.autocast(self.layer.weight.device.type, dtype=torch.bfloat16):
            result = self.layer(shape)
        assert result.dtype == torch.float32
        return result


class Curves(torch.nn.Module):
    """Curves of values that are learned."""

    def __init__(self):
        super().__init__()
        self.values = torch.nn.Parameter(POINTS[:, :2].clone())
        self.register_buffer("thresholds", THRESHOLDS)

    def forward(self, shape):
        return es.ecc(shape, self.values, self.thresholds, scale=20.0)


class Loss(torch.nn.Module):
    """A loss of the points themselves."""

    def __init__(self):
        super().__init__()
        self.points = torch.nn.Parameter(POINTS + 0.1)
        self.loss = losses.ECTLoss(3, 8, 8)

    def forward(self, graph):
        return self.loss(graph.with_points(self.points), graph)


# A module and its shape: neither pass may make the host wait for the device.
MODULES = {
    "clouds": (layer, CLOUDS),
    "graphs": (layer, GRAPH),
    "meshes": (lambda: layer(normalize="unit_ball", divide_by="peak"), MESH),
    "channels": (lambda: layer(variant="channels", max_dim=2), MESH),
    "superlevel": (lambda: layer(variant="superlevel", derivative=True), GRAPH),
    "weighted": (lambda: layer(normalize="center", divide_by="simplices"), HEAVY),
    "exact": (lambda: es.ECTLayer(3, 6, 7, scale=math.inf, learn_directions=False), MESH),
    "autocast": (Autocast, CLOUDS),
    "CNN": (lambda: model("ECTCNN"), GRAPH),
    "MLP": (lambda: model("ECTMLP"), GRAPH),
    "deep sets": (lambda: model("ECTDeepSets"), GRAPH),
    "loss": (Loss, GRAPH),
    "filtration": (Curves, MESH),
}


def clouds():
    """A data set of two classes, on the CPU as data sets are."""
    shapes = es.collate([es.Complex(torch.rand(9, 3, generator=torch.Generator().manual_seed(n)) - 0.5) for n in range(16)])
    splits = {"train": torch.arange(10), "val": torch.arange(10, 13), "test": torch.arange(13, 16)}
    return Dataset("clouds", shapes, LABELS, ("a", "b"), splits)


def trained(net, device):
    """Weights and losses of a network after two epochs, or of an SVM that is fitted."""
    config = training.TrainingConfig(epochs=2, batch_size=4, augmentation=Augmentation(jitter=0.01), clip=1.0)
    history = training.train(net.to(device), clouds(), config, progress=False).history
    return [*net.parameters(), torch.tensor([[epoch["loss"], epoch["val_loss"]] for epoch in history])]


def perceptron():
    torch.manual_seed(0)
    return models.ECTMLP(es.ECTLayer(3, 6, 7), 2, hidden=(8,))


def chosen(device):
    """Classes by the classifier that is chosen for a data set among an SVM and a network, from the run that is saved."""
    dataset = clouds()
    tried = candidates(dataset, training.ModelConfig(num_directions=6), training.TrainingConfig(epochs=1))[1:4:2]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        choose(run, dataset, {"name": "clouds", "options": {}}, tried, device=torch.device(device))
        net = training.load_run(run)[0].to(device)
    return net(dataset.shapes.to(device)).argmax(dim=1)


def second_derivative(points, graph, directions, thresholds):
    energy = es.ect(graph.with_points(points), directions, thresholds, scale=9.0).square().sum()
    (slope,) = torch.autograd.grad(energy, points, create_graph=True)
    return torch.autograd.grad(slope.square().sum(), points)[0]


def classified(move):
    """Logits of an ensemble of three SVMs."""
    layer = es.ECTLayer(3, num_thresholds=7, directions=NODES)
    svms = [move(models.ECTSVM(layer, 2, **options)) for options in ({}, {"spectrum": True}, {"joint": True})]
    return models.Ensemble([svm.fit(move(MESH), move(torch.tensor([0, 1]))) for svm in svms])(move(MESH))


def made(move):
    return es.Complex(move(POINTS), [move(level) for level in MESH.simplices], batch=move(BATCH))


# move(x) is x on the device.
CALLS = {
    "ect exact": lambda move, device: es.ect(move(GRAPH), move(DIRECTIONS), move(THRESHOLDS)),
    "mesh made on the device": lambda move, device: es.ect(made(move), move(DIRECTIONS), move(THRESHOLDS)),
    "ect weighted": lambda move, device: es.ect(move(HEAVY), move(DIRECTIONS), move(THRESHOLDS), scale=20.0),
    "ect of own directions": lambda move, device: es.ect(
        move(MESH), move(torch.stack([DIRECTIONS, -DIRECTIONS])), move(THRESHOLDS), scale=20.0
    ),
    "ecc": lambda move, device: es.ecc(move(MESH), move(POINTS[:, :2]), move(THRESHOLDS), scale=20.0),
    "critical": lambda move, device: es.critical(move(MESH), move(DIRECTIONS)).curves(move(THRESHOLDS)),
    "channels": lambda move, device: channels(move(MESH), move(DIRECTIONS), move(THRESHOLDS), scale=9.0),
    "sect": lambda move, device: sect(move(MESH), move(DIRECTIONS), move(THRESHOLDS), scale=9.0),
    "superlevel": lambda move, device: superlevel(move(MESH), move(DIRECTIONS), move(THRESHOLDS), scale=9.0),
    "wect": lambda move, device: wect(move(MESH), move(DIRECTIONS), move(THRESHOLDS), weights=move(POINTS[:, 0]), scale=9.0),
    "Complex": lambda move, device: es.Complex(move(POINTS), [move(EDGES)], batch=move(BATCH)),
    "Complex, unordered batch": lambda move, device: es.Complex(move(POINTS), batch=move(BATCH.flip(0))),
    "delaunay": lambda move, device: convert.delaunay(move(POINTS)),
    "alpha complex": lambda move, device: convert.alpha_complex(move(POINTS), 0.5),
    "alpha filtration": lambda move, device: es.ecc(*convert.alpha_filtration(move(POINTS)), move(THRESHOLDS)),
    "outline": lambda move, device: convert.from_outline(move(CLOUDS)),
    "outline, repeated point": lambda move, device: convert.from_outline(move(POINTS[[0, 1, 2, 0]])),
    "outline, filled": lambda move, device: convert.from_outline(move(POINTS[:3, :2]), filled=True),
    "closure": lambda move, device: es.Complex(move(POINTS), [move(TRIANGLES)], batch=move(BATCH)).closure(),
    "collate": lambda move, device: es.collate([move(GRAPH), move(MESH)]),
    "select": lambda move, device: move(GRAPH)[[1, 0, 1]],
    "normalized": lambda move, device: move(MESH).normalized(),
    "euler_characteristic": lambda move, device: move(MESH).euler_characteristic(),
    "euler_characteristic, weighted": lambda move, device: move(HEAVY).euler_characteristic(),
    "subsample": lambda move, device: es.as_complex(move(CLOUDS)).subsample(4),
    "distance": lambda move, device: analysis.distances.distance(
        es.ect(move(GRAPH), move(DIRECTIONS), move(THRESHOLDS)), es.ect(move(MESH), move(DIRECTIONS), move(THRESHOLDS))
    ),
    "second derivative": lambda move, device: second_derivative(
        move(POINTS).clone().requires_grad_(), move(GRAPH), move(DIRECTIONS), move(THRESHOLDS)
    ),
    "order invariance": lambda move, device: (
        testing.assert_order_invariant(move(es.ECTLayer(3, 6, 7)), move(MESH)) or move(MESH)
    ),
    "oriented by principal axes": lambda move, device: analysis.oriented(move(MESH), "pca"),
    "pca": lambda move, device: analysis.pca(move(CLOUDS)).scores,
    "training": lambda move, device: trained(perceptron(), device),
    "training of an SVM": lambda move, device: trained(models.ECTSVM(es.ECTLayer(3, 6, 7), 2), device),
    "choice of a model": lambda move, device: chosen(device),
    "SVM": lambda move, device: classified(move),
    "to the CPU": lambda move, device: move(move(GRAPH).cpu()),
}


# On a device without float64.
NARROW = {
    "sect": CALLS["sect"],
    "normalized": CALLS["normalized"],
    "power spectrum": lambda move, device: power_spectrum(
        es.ect(move(MESH), move(NODES), move(THRESHOLDS), scale=9.0), move(NODES)
    ),
    "SVM": lambda move, device: classified(move),
    "frames": lambda move, device: move(FrameAveraging(es.ECTLayer(3, 6, 7))).eval()(move(MESH)),
}


def same(found, expected):
    if isinstance(found, torch.Tensor):
        if found.shape != expected.shape or not found.numel():
            return found.shape == expected.shape
        difference = (found.detach().cpu().double() - expected.detach().double()).abs().max()
        return bool(difference <= 2e-5 * expected.detach().double().abs().max().clamp(min=1.0))
    parts = [value.packed if isinstance(value, es.Complex) else value for value in (found, expected)]
    return all(same(a, b) for a, b in zip(*parts, strict=True) if isinstance(a, (torch.Tensor, es.Complex)))


def compare(module, call):
    """What a module or a call gives on the CPU and on the device, and where the host would wait."""
    if module is None:
        expected = call(lambda value: value, "cpu")
        pretend.waits.clear()
        found = call(lambda value: value.to(pretend.NAME), pretend.NAME)
    else:
        make, shape = module
        expected = gradients(make(), shape)
        on_device, shape = make().to(pretend.NAME), shape.to(pretend.NAME)
        pretend.waits.clear()
        found = gradients(on_device, shape)
    waits = [f"{count} x {op} at {line}" for (op, line), count in pretend.waits.items()]
    first = found if isinstance(found, (torch.Tensor, es.Complex)) else found[0]
    return {"waits": waits, "agrees": same(found, expected), "device": first.device.type}


def main(kernel: str) -> None:
    torch.set_num_threads(1)
    if kernel == "triton":
        pretend.interpret_triton()
    cases = {**{f"module: {name}": (case, None) for name, case in MODULES.items()}, **{n: (None, c) for n, c in CALLS.items()}}
    cases |= {f"no float64: {name}": (None, call) for name, call in NARROW.items()} if kernel == "portable" else {}
    for name, case in cases.items():
        row = {"name": name}
        if name.startswith("no float64"):
            pretend.float64 = False
            _devices.WITHOUT_FLOAT64.add(pretend.NAME)
        try:
            with dispatch.use(kernel):
                row |= compare(*case)
        except Exception as error:  # of one case: the others go on
            frames = [f for f in traceback.extract_tb(error.__traceback__) if "/eulerscan/" in f.filename]
            lines = [f"{Path(f.filename).name}:{f.lineno}" for f in frames[-4:]]
            row["error"] = f"{type(error).__name__}: {str(error).splitlines()[0]} at {' > '.join(lines)}"
        print(json.dumps(row), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
