"""The local transform: speed against a loop over the nodes, and accuracy as a positional encoding (LEAP, ICLR 2026).

    python benchmarks/local.py speed                    # 50,000 nodes, 1 hop, 16 x 16, forward and backward: a minute
    python benchmarks/local.py graphs letter-low        # trains what results/local.jsonl lacks; also letter-med, letter-high,
                                                        # fingerprint, triads; all if none is named
    python benchmarks/local.py nodes                    # node classification beside the features alone
    python benchmarks/local.py table                    # prints what results/local.jsonl has

*speed* builds one subgraph a node with ``k_hop_subgraph`` of PyG and transforms it by the dense formula of dect, for a sample
of the nodes, and checks that both give the same numbers. *graphs* has five stratified folds; a tenth of the training graphs
chooses the epoch. Fingerprint and the sets of *nodes* are read from the mirror (EULERSCAN_MIRROR).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import eulerscan as es
from eulerscan import __version__, datasets
from eulerscan.nn import LocalECT

RESULTS = Path(__file__).parents[1] / "results" / "local.jsonl"
GRAPHS = ("letter-low", "letter-med", "letter-high", "fingerprint", "triads")
NODES = ("minesweeper", "cora", "texas", "cornell", "wisconsin")
LEAP = {"letter-low": 98.0, "letter-med": 88.5, "letter-high": 81.6, "fingerprint": 55.7, "triads": 100.0}
MODELS, ENCODINGS, FOLDS = ("none", "gcn", "gat"), ("none", "local"), 5
EPOCHS, BATCH, HIDDEN, LAYERS, SCALE = 30, 64, 64, 2, 128.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("speed", "graphs", "nodes", "table"))
    parser.add_argument("sets", nargs="*", help="data sets; all if none is named")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--encodings", nargs="+", choices=ENCODINGS, default=ENCODINGS)
    parser.add_argument("--nodes", type=int, default=50_000, help="of the graph whose transform is timed")
    parser.add_argument("--sample", type=int, default=200, help="nodes that the loop is timed for")
    arguments = parser.parse_args()
    if arguments.part == "speed":
        speed(arguments.nodes, arguments.sample)
    elif arguments.part == "graphs":
        for name in arguments.sets or GRAPHS:
            classify_graphs(name, arguments.models, arguments.encodings)
    elif arguments.part == "nodes":
        classify_nodes(arguments.sets or NODES)
    if arguments.part != "speed":
        print(table())


def speed(count: int, sample: int) -> None:
    """Times of the whole graph, and of the loop for a sample of its nodes."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(count, (2, 4 * count), generator=generator)
    edges = torch.unique(edges[:, edges[0] != edges[1]].sort(dim=0).values, dim=1)
    points = torch.randn(count, 3, generator=generator)
    directions, thresholds = es.directions.uniform(16, 3), es.thresholds(16, 1.0)

    def ours(nodes: Tensor | None = None, *, backward: bool = True) -> tuple[Tensor, Tensor]:
        own, learned = points.clone().requires_grad_(backward), directions.clone().requires_grad_(backward)
        found = es.local_ect(es.Complex(own, [edges]), learned, thresholds, hops=1, scale=SCALE, nodes=nodes)
        if backward:
            found.square().sum().backward()
        return found.detach()[:, 0], learned.grad if backward else learned

    ours(torch.arange(10))  # compiles
    alone = {name: best(lambda backward=backward: ours(backward=backward), 5) for name, backward in PASSES.items()}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    from torch_geometric.utils import k_hop_subgraph, to_undirected

    both = to_undirected(edges)
    nodes = torch.randperm(count, generator=generator)[:sample]

    def loop(*, backward: bool = True) -> tuple[Tensor, Tensor]:
        learned, results = directions.clone().requires_grad_(backward), []
        for node in nodes.tolist():
            subset, inside, _, _ = k_hop_subgraph(node, 1, both, relabel_nodes=True, num_nodes=count)
            own = points[subset].requires_grad_(backward)
            ball = own - own.mean(dim=0)
            heights = ball / ball.norm(dim=1).amax() @ learned.T
            inside = inside[:, inside[0] < inside[1]]
            curves = torch.sigmoid(SCALE * (thresholds[:, None, None] - heights)).sum(dim=1)
            curves = curves - torch.sigmoid(SCALE * (thresholds[:, None, None] - heights[inside].amax(dim=0))).sum(dim=1)
            if backward:
                curves.square().sum().backward()
            results.append(curves.detach().T)
        return torch.stack(results), learned.grad if backward else learned

    for one, other in zip(ours(nodes), loop(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-3 * max(1.0, other.abs().max().item()))
    print(f"{count:,} nodes, {edges.shape[1]:,} edges, 1 hop, 16 x 16; peak memory of the process {memory:.2f} GB")
    print(f"| | loop, {sample} nodes | loop, all nodes | eulerscan | times faster | by processor time |")
    print("|---|---|---|---|---|---|")
    for name, backward in PASSES.items():
        wall, busy = best(lambda backward=backward: loop(backward=backward), 2)
        wall, busy, part = wall * count / sample, busy * count / sample, wall
        own_wall, own_busy = alone[name]
        print(f"| {name} | {part:.2f} s | {wall:.0f} s | {own_wall:.2f} s | {wall / own_wall:.0f} | {busy / own_busy:.0f} |")


PASSES = {"forward": False, "forward and backward": True}


def best(function: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Shortest time of some calls, on the clock and of the processor."""
    times = []
    for _ in range(repeats):
        wall, busy = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - wall, time.process_time() - busy))
    return min(wall for wall, _ in times), min(busy for _, busy in times)


def load(name: str) -> tuple[es.Complex, Tensor]:
    """Graphs and their classes."""
    if name == "triads":
        return triads()
    if name == "fingerprint":
        from eulerscan.datasets.tu import _read

        points, edges, batch, labels = _read("Fingerprint", cleaned=False, atoms=False)
        return es.Complex(points, [edges], batch=batch, num_complexes=len(labels)), labels
    data = datasets.load(name)
    return data.shapes, data.labels


def triads(count: int = 1000) -> tuple[es.Complex, Tensor]:
    """Three nodes at random places with 0 to 3 edges, whose number is the class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=count)
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    edges = np.concatenate([3 * i + pairs[rng.permutation(3)[:n]] for i, n in enumerate(labels)])
    points = torch.tensor(rng.normal(size=(3 * count, 2)), dtype=torch.float32)
    batch = torch.arange(count).repeat_interleave(3)
    return es.Complex(points, [torch.tensor(edges).T], batch=batch, num_complexes=count), torch.tensor(labels)


class Network(nn.Module):
    """The encoding appended to the coordinates, then layers with or without message passing, then pooling over nodes."""

    def __init__(self, dim: int, num_classes: int, model: str, encoding: str) -> None:
        super().__init__()
        self.dim, self.model = dim, model
        self.encode = LocalECT(dim, projection="conv", scale=SCALE, learn_directions=False) if encoding == "local" else None
        sizes = [dim + (10 if self.encode is not None else 0), *[HIDDEN] * LAYERS]
        self.layers = nn.ModuleList(self._layer(model, *pair) for pair in itertools.pairwise(sizes))
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in range(LAYERS))
        self.head = nn.Sequential(
            nn.Linear(3 * HIDDEN * LAYERS, HIDDEN), nn.ReLU(), nn.Dropout(0.3), nn.Linear(HIDDEN, num_classes)
        )

    @staticmethod
    def _layer(model: str, size: int, hidden: int) -> nn.Module:
        if model == "none":
            return nn.Linear(size, hidden)
        from torch_geometric.nn import GATConv, GCNConv

        return GCNConv(size, hidden) if model == "gcn" else GATConv(size, hidden // 4, heads=4)

    def forward(self, graphs: es.Complex) -> Tensor:
        """``graphs`` have the local transform, flattened, in further columns of their points."""
        values, batch, count = graphs.points[:, : self.dim], graphs.batch, len(graphs)
        if self.encode is not None:
            grid = graphs.points[:, self.dim :].reshape(len(values), 1, 16, 16)
            values = torch.cat([values, self.encode.project(grid)], dim=1)
        edges = graphs.simplices[0].long()
        both = torch.cat([edges, edges.flip(0)], dim=1)
        pooled = []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            values = torch.relu(norm(layer(values) if self.model == "none" else layer(values, both)))
            total = values.new_zeros(count, HIDDEN).index_add(0, batch, values)
            largest = values.new_zeros(count, HIDDEN).scatter_reduce(0, batch[:, None].expand_as(values), values, "amax")
            pooled += [total, total / graphs.offsets[0].diff().clamp(min=1)[:, None], largest]
        return self.head(torch.cat(pooled, dim=1))


def classify_graphs(name: str, models: Sequence[str], encodings: Sequence[str]) -> None:
    graphs, labels = load(name)
    fold_of = folds(labels)
    for encoding in encodings:
        shapes = graphs
        if encoding == "local":
            grid = (es.directions.uniform(16, graphs.dim), es.thresholds(16))
            found = es.local_ect(graphs, *grid, hops=1, scale=SCALE)
            shapes = graphs.with_points(torch.cat([graphs.points, found.flatten(1)], dim=1))
        for model in models:
            for fold in range(FOLDS):
                key = {"part": "graphs", "dataset": name, "model": model, "encoding": encoding, "fold": fold}
                key |= {"epochs": EPOCHS, "hidden": HIDDEN, "layers": LAYERS, "scale": SCALE}
                if any(key.items() <= line.items() for line in lines()):
                    continue
                start = time.perf_counter()
                accuracy = train(Network(graphs.dim, int(labels.max()) + 1, model, encoding), shapes, labels, fold_of, fold)
                write(key | {"accuracy": accuracy, "seconds": time.perf_counter() - start})


def folds(labels: Tensor) -> Tensor:
    """The fold of each graph, stratified."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    order = order[labels[order].argsort(stable=True)]
    fold = torch.empty_like(labels)
    fold[order] = torch.arange(len(labels)) % FOLDS
    return fold


def train(network: Network, shapes: es.Complex, labels: Tensor, fold_of: Tensor, fold: int) -> float:
    """Test accuracy in per cent, at the epoch that is best on validation."""
    generator = torch.Generator().manual_seed(fold)
    test, rest = (fold_of == fold).nonzero().flatten(), (fold_of != fold).nonzero().flatten()
    rest = rest[torch.randperm(len(rest), generator=generator)]
    validation, training = rest[: len(rest) // 10], rest[len(rest) // 10 :]
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-3)
    steps = EPOCHS * math.ceil(len(training) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    best_score, result = -1.0, 0.0
    for _ in range(EPOCHS):
        network.train()
        for part in training[torch.randperm(len(training), generator=generator)].split(BATCH):
            loss = nn.functional.cross_entropy(network(shapes[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        network.eval()
        with torch.no_grad():
            scores = [float((network(shapes[part]).argmax(1) == labels[part]).float().mean()) for part in (validation, test)]
        if scores[0] >= best_score:
            best_score, result = scores[0], 100 * scores[1]
    return result


def classify_nodes(names: Sequence[str]) -> None:
    """Logistic regression on the features, and on the features with the local transform, over the public splits.

    Columns of the transform are standardized, and together weigh as much as one feature; C is chosen on validation nodes.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler

    for name in names:
        with np.load(Path(os.environ["EULERSCAN_MIRROR"]) / "nodes" / f"{name}.npz") as file:
            data = dict(file)
        features, labels = data["node_features"], data["node_labels"]
        graph = es.Complex(torch.from_numpy(features), [torch.from_numpy(data["edges"]).T.contiguous()])
        directions = es.directions.random(16, graph.dim, torch.Generator().manual_seed(0))
        local = es.local_ect(graph, directions, es.thresholds(16), hops=1, scale=SCALE, max_vertices=128).flatten(1).numpy()
        local = StandardScaler().fit_transform(local) / math.sqrt(local.shape[1])

        def score(classifier: Any, values: Any, mask: Any, name: str = name, labels: Any = labels) -> float:
            if name == "minesweeper":  # whose classes are unbalanced: area under the ROC curve
                return 100 * roc_auc_score(labels[mask], classifier.predict_proba(values[mask])[:, 1])
            return 100 * classifier.score(values[mask], labels[mask])

        inputs = {"features": features, "features and local transform": np.hstack([features, local])}
        for what, values in inputs.items():
            key = {"part": "nodes", "dataset": name, "model": what}
            if any(key.items() <= line.items() for line in lines()):
                continue
            start, scores = time.perf_counter(), []
            for train, validation, test in zip(data["train_masks"], data["val_masks"], data["test_masks"], strict=True):
                tried = [LogisticRegression(C=c, max_iter=300).fit(values[train], labels[train]) for c in (0.1, 1, 10, 100)]
                best = max(tried, key=lambda classifier: score(classifier, values, validation))
                scores.append(score(best, values, test))
            write(key | {"scores": scores, "seconds": time.perf_counter() - start})


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []


def write(line: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line | {"version": __version__}) + "\n")


def table() -> str:
    """What was measured: mean and standard deviation over folds or splits."""
    found, text = lines(), [f"| | {' | '.join(GRAPHS)} |", f"|---|{'---|' * len(GRAPHS)}"]
    text.append(f"| LEAP, best of all models (published) | {' | '.join(f'{LEAP[name]}' for name in GRAPHS)} |")
    for encoding in ENCODINGS:
        for model in MODELS:
            cells = []
            for name in GRAPHS:
                key = {"part": "graphs", "dataset": name, "model": model, "encoding": encoding}
                scores = [line["accuracy"] for line in found if key.items() <= line.items()]
                cells.append(f"{np.mean(scores):.1f} ± {np.std(scores):.1f} ({len(scores)})" if scores else "–")
            words = f"{'no message passing' if model == 'none' else model.upper()}{', local ECT' * (encoding == 'local')}"
            text.append(f"| {words} | {' | '.join(cells)} |")
    text += ["", "| logistic regression on | " + " | ".join(NODES) + " |", f"|---|{'---|' * len(NODES)}"]
    for what in ("features", "features and local transform"):
        cells = []
        for name in NODES:
            key = {"part": "nodes", "dataset": name, "model": what}
            scores = [score for line in found if key.items() <= line.items() for score in line["scores"]]
            cells.append(f"{np.mean(scores):.1f} ± {np.std(scores):.1f}" if scores else "–")
        text.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(text)


if __name__ == "__main__":
    main()
