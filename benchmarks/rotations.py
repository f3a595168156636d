"""Rotated shapes: how much logits change under rotation, and accuracy on ModelNet40 with rotated clouds.

    python benchmarks/rotations.py invariance    # change of logits by number of directions, degree and scale: a minute
    python benchmarks/rotations.py spectra       # change of ECTTransformer(spectrum=True): ten seconds
    python benchmarks/rotations.py modelnet      # trains what results/rotations.jsonl lacks: half an hour a run on one core
    python benchmarks/rotations.py modelnet --heads harmonics --train z --seeds 1 --validate
    python benchmarks/rotations.py table         # prints what results/rotations.jsonl has

*invariance* trains each head for a few steps on surfaces (clouds and meshes of four classes), and rotates them at random.
*modelnet* has clouds of 1,024 points. Those of the training split are rotated about the vertical axis (z) or at random (SO(3)),
each once, and so are those of the test split: a run is tested on both. With ``--validate`` a run is trained on four fifths of
the training split and scored on the rest instead, rotated at random: this is what settings were chosen by. Data are read
from EULERSCAN_MIRROR.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import eulerscan as es
from eulerscan import __version__, rotations
from eulerscan.complexes.principal_axes import principal_frames
from eulerscan.datasets import Dataset, load
from eulerscan.harmonics import degrees, harmonics
from eulerscan.nn import FrameAveraging
from eulerscan.nn.heads import linear_blocks
from eulerscan.nn.models import ECTCurves, ECTHarmonics
from eulerscan.nn.models.harmonics import DegreeConvolution, DegreeNorm, Norms, Product
from eulerscan.sklearn import ECTTransformer
from eulerscan.training import Augmentation, TrainingConfig, evaluate, train

RESULTS = Path(__file__).parents[1] / "results" / "rotations.jsonl"
HEADS = ("harmonics", "harmonics-weighted", "curves", "frames")
SETTINGS = ("z", "so3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("invariance", "spectra", "modelnet", "table"))
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=HEADS)
    parser.add_argument("--train", nargs="+", choices=SETTINGS, default=SETTINGS, help="how training clouds are rotated")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--validate", action="store_true", help="score on a fifth of the training split, not on the test split")
    arguments = parser.parse_args()
    if arguments.part == "invariance":
        print("\n".join(invariance()))
        return
    if arguments.part == "spectra":
        print("\n".join(spectra()))
        return
    if arguments.part == "modelnet":
        for seed in range(arguments.seeds):
            for head in arguments.heads:
                for setting in arguments.train:
                    classify(head, setting, seed, arguments.epochs, arguments.validate)
    print(table())


def invariance() -> Iterator[str]:
    """Mean and largest change of the logits of a shape under eight random rotations, relative to their norm.

    Without principal axes, harmonics are as for shapes whose axes are arbitrary.
    """
    data = {form: load("manifolds", form=form, num_shapes=40, num_points=256) for form in ("points", "meshes")}

    def row(name: str, make: Any, *, rotated: bool = True) -> str:
        cells = []
        for dataset in data.values():
            torch.manual_seed(0)
            model = make(dataset)
            train(model, dataset, TrainingConfig(epochs=2, batch_size=16, learning_rate=3e-3), progress=False)
            function = model.eval() if rotated else nn.Sequential(model.layer, model.head)
            change = relative_change(function, dataset.split("test").shapes)
            cells.append(f"{float(change.mean()):.1e} | {float(change.max()):.1e}")
        return f"| {name} | {' | '.join(cells)} |"

    yield "| head | clouds, mean | largest | meshes, mean | largest |\n|---|---|---|---|---|"
    for count in (16, 32, 64, 128, 256, 512):
        yield row(f"pooled curves, {count} directions", lambda dataset, count=count: pooled(count))
    for degree in (2, 4, 6, 8, 10):
        size = len(ECTHarmonics.initial_directions(3, degree))
        yield row(f"harmonics of degree {degree}, {size} directions", lambda dataset, degree=degree: harmonic(degree, 4))
    for scale in (16.0, math.inf):
        name = "exact transform" if math.isinf(scale) else f"scale {scale:g}"
        yield row(f"harmonics of degree 6, {name}", lambda dataset, scale=scale: harmonic(6, 4, scale=scale))
    yield row("frames of principal axes", lambda dataset: FrameAveraging(pooled(64, directed=True)))
    for guard in (0, 10, 20, 40, 80):
        name = f"harmonics of degree 6, {len(ECTHarmonics.initial_directions(3, 6, guard))} directions, no principal axes"
        yield row(name, lambda dataset, guard=guard: harmonic(6, 4, guard=guard), rotated=False)
    for scale in (4.0, 16.0, 32.0, math.inf):
        name = "exact transform" if math.isinf(scale) else f"scale {scale:g}"
        name = f"harmonics of degree 6, {name}, no principal axes"
        yield row(name, lambda dataset, scale=scale: harmonic(6, 4, scale=scale), rotated=False)


def spectra() -> Iterator[str]:
    """The same for the features of spectra, with the exact transform and by default."""
    yield "| features | clouds, mean | largest | meshes, mean | largest |\n|---|---|---|---|---|"
    for name, options in (("exact transform", {"scale": math.inf}), ("default scale", {})):
        cells = []
        for form in ("points", "meshes"):
            shapes = load("manifolds", form=form, num_shapes=20, num_points=256).shapes
            step = ECTTransformer(spectrum=True, **options).fit(shapes)
            change = relative_change(lambda batch, step=step: torch.from_numpy(step.transform(batch)), shapes)
            cells.append(f"{float(change.mean()):.1e} | {float(change.max()):.1e}")
        yield f"| {name} | {' | '.join(cells)} |"


@torch.no_grad()
def relative_change(model: Callable[[es.Complex], Tensor], shapes: es.Complex) -> Tensor:
    """``[8, B]``: norm of the change of the logits over their norm."""
    before, changes = model(shapes), []
    for rotation in rotations.random(8, 3, torch.Generator().manual_seed(0)).float():
        after = model(shapes.with_points(shapes.points @ rotation.T))
        changes.append((after - before).norm(dim=1) / before.norm(dim=1))
    return torch.stack(changes)


def pooled(num_directions: int, num_classes: int = 4, *, directed: bool = False, **options: Any) -> ECTCurves:
    layer = es.ECTLayer(3, num_directions, 32, normalize="unit_ball", learn_directions=False, **options)
    return ECTCurves(layer, num_classes, directed=directed)


def harmonic(
    degree: int,
    num_classes: int,
    *,
    scale: float = 8.0,
    guard: int = 20,
    num_thresholds: int = 24,
    num_channels: int = 1,
    **head: Any,
) -> ECTHarmonics:
    layer = es.ECTLayer(
        3,
        num_thresholds=num_thresholds,
        scale=scale,
        directions=ECTHarmonics.initial_directions(3, degree, guard),
        learn_directions=False,
        normalize="unit_ball",
        variant="ect" if num_channels == 1 else "channels",
        max_dim=None if num_channels == 1 else num_channels - 1,
    )
    return ECTHarmonics(layer, num_classes, degree=degree, **head)


def classify(head: str, setting: str, seed: int, epochs: int, validate: bool) -> None:
    """Train and test a head, unless the results have it already."""
    key = {"experiment": "rotations", "dataset": "modelnet40", "model": head, "train": setting, "seed": seed}
    key |= {"epochs": epochs, "validated": validate}
    if any(all(run.get(name) == value for name, value in key.items()) for run in runs()):
        return
    torch.manual_seed(seed)
    begin = time.perf_counter()
    dataset, split = load("modelnet40", seed=seed), "val" if validate else "test"
    if not validate:
        splits = {"train": torch.cat([dataset.indices("train"), dataset.indices("val")]), "test": dataset.indices("test")}
        dataset = replace(dataset, splits=splits)
    line = key | TRAINERS[head](head, dataset, setting, split, seed, epochs)
    line |= {"seconds": time.perf_counter() - begin, "threads": torch.get_num_threads(), "version": __version__}
    with RESULTS.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def train_on_clouds(head: str, dataset: Dataset, setting: str, split: str, seed: int, epochs: int) -> dict[str, Any]:
    """Train pooled curves with directions that rotate, by the loop of the library, which resumes."""
    config = TrainingConfig(
        epochs=epochs,
        batch_size=64,
        learning_rate=3e-3,
        schedule="cosine",
        weight_decay=0.05,
        select_by="last",
        augmentation=Augmentation(squeeze=0.15, jitter=0.01),
        seed=seed,
    )
    half = es.directions.half_sphere(48, 3, dtype=torch.float64)
    layer = es.ECTLayer(3, num_thresholds=32, directions=half, scale=20.0, normalize="unit_ball", rotate_directions=True)
    model = ECTCurves(layer, len(dataset.classes), channels=(32, 64, 64))
    folder = Path(tempfile.gettempdir()) / "eulerscan-rotations" / f"{head}-{setting}-{seed}-{epochs}-{split}"
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(model, rotated(dataset, setting, seed), config, folder)
    tests = {name: evaluate(model, rotated(dataset, name, seed + 1000), split).accuracy for name in SETTINGS}
    return {
        "parameters": model.num_parameters,
        **{f"{split}_accuracy_{name}": 100 * accuracy for name, accuracy in tests.items()},
        "train_loss": trained.history[-1]["loss"],
        "seconds_per_epoch": trained.seconds_per_epoch,
        "settings": {"directions": 48, "thresholds": 32, "scale": 20.0, "batch_size": 64, "learning_rate": 3e-3},
    }


def train_on_coefficients(head: str, dataset: Dataset, setting: str, split: str, seed: int, epochs: int) -> dict[str, Any]:
    """Train on coefficients that are computed once: those of an invariant head never change but for a rotation.

    Every training cloud comes as it is, and in a copy that is squeezed and jittered. The curves of a cloud in opposite
    directions are mirror images, so that the thresholds from 0 on are enough.
    """
    degree, scale, copies, batch_size, rate = 6, 10.0, 2, 32, 3e-3
    sizes: dict[str, Any] = {"channels": (16, 32, 128), "hidden": (256,), "dropout": 0.3}
    options = {"scale": scale, "num_thresholds": 12} | sizes
    model, expansion = harmonic(degree, len(dataset.classes), **options), Expansion(degree, scale, torch.linspace(0, 1.1, 12))
    rest = model.head[2:]  # after curves and their coefficients

    def features(shapes: es.Complex, indices: Tensor) -> Tensor:
        """``[M, B, H, C]``: what the first two blocks of the head would give."""
        found = []
        for part in indices.split(128):
            points = unit_clouds(shapes.select(part))
            found.append(expansion(points, torch.ones(*points.shape[:2], 1)))
        return torch.cat(found, dim=1)

    check_expansion(expansion, dataset.shapes.select(torch.arange(4)), scale)
    indices, generator = dataset.indices("train"), torch.Generator().manual_seed(seed)
    known = torch.cat([features(shapes, indices) for shapes in training_copies(dataset, setting, seed, copies)], dim=1)
    labels = dataset.labels[indices].repeat(copies)
    record = optimize(rest, lambda batch: (known[:, batch],), labels, len(indices), epochs, batch_size, rate, generator)
    rest.eval()
    scores = {}
    for name in SETTINGS:
        found = features(rotated(dataset, name, seed + 1000).shapes, dataset.indices(split))
        scores |= score(rest, [(part,) for part in found.split(256, dim=1)], dataset, split, name)
    return {
        "parameters": sum(parameter.numel() for parameter in rest.parameters()),
        **scores,
        **record,
        "settings": {"degree": degree, "copies": copies, "batch_size": batch_size, "learning_rate": rate, **options},
    }


def train_weights(head: str, dataset: Dataset, setting: str, split: str, seed: int, epochs: int) -> dict[str, Any]:
    """Train :class:`WeightedHarmonics`, with a random half of the points of a cloud in every step.

    Neighborhoods are described once for every cloud and a copy that is squeezed and jittered.
    """
    copies, batch_size, rate, count = 2, 32, 2e-3, 512
    indices, generator = dataset.indices("train"), torch.Generator().manual_seed(seed)
    drawn = list(training_copies(dataset, setting, seed, copies))
    clouds = torch.cat([unit_clouds(shapes.select(indices)) for shapes in drawn])
    described = torch.cat([descriptors(shapes.select(indices)) for shapes in drawn])
    known = described[: len(indices) : 20].float()
    network = WeightedHarmonics(len(dataset.classes), known.mean(dim=(0, 1)), known.std(dim=(0, 1)))
    check_expansion(network.expansion, dataset.shapes.select(torch.arange(4)), network.settings["scale"])

    def some(batch: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.randperm(clouds.shape[1], generator=generator)[:count]
        return clouds[batch][:, chosen], described[batch][:, chosen].float()

    labels = dataset.labels[indices].repeat(copies)
    record = optimize(network, some, labels, len(indices), epochs, batch_size, rate, generator)
    network.eval()
    scores = {}
    for name in SETTINGS:
        shapes = rotated(dataset, name, seed + 1000).shapes
        parts = [shapes.select(part) for part in dataset.indices(split).split(64)]
        scores |= score(network, ((unit_clouds(part), descriptors(part).float()) for part in parts), dataset, split, name)
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        **scores,
        **record,
        "settings": {"copies": copies, "batch_size": batch_size, "learning_rate": rate, "points": count, **network.settings},
    }


@torch.no_grad()
def score(
    network: nn.Module, inputs: Iterable[tuple[Tensor, ...]], dataset: Dataset, split: str, setting: str
) -> dict[str, float]:
    """Accuracy in percent on the batches of a split, by its name in the results."""
    guesses = torch.cat([network(*batch).argmax(dim=1) for batch in inputs])
    return {f"{split}_accuracy_{setting}": 100 * float((guesses == dataset.labels[dataset.indices(split)]).double().mean())}


def training_copies(dataset: Dataset, setting: str, seed: int, copies: int) -> Iterator[es.Complex]:
    """The shapes, rotated once; then rotated ones that are squeezed and jittered too."""
    shapes = rotated(dataset, setting, seed).shapes
    yield shapes
    noise, generator = Augmentation(squeeze=0.15, jitter=0.01), torch.Generator().manual_seed(seed)
    for _ in range(copies - 1):
        yield noise(shapes, generator)


def unit_clouds(shapes: es.Complex) -> Tensor:
    """``[B, V, 3]``: clouds of as many points each, in the unit ball."""
    return shapes.normalized("unit_ball").points.view(len(shapes), -1, 3)


def optimize(
    network: nn.Module,
    inputs: Callable[[Tensor], tuple[Tensor, ...]],
    labels: Tensor,
    per_epoch: int,
    epochs: int,
    batch_size: int,
    rate: float,
    generator: torch.Generator,
) -> dict[str, float]:
    """Train on inputs that are given by their indices. Returns the last loss and the seconds of an epoch."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.05)
    steps, seconds, loss = math.ceil(per_epoch / batch_size), [], torch.zeros(())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * steps, pct_start=0.1)
    for _ in range(epochs):
        begin, total = time.perf_counter(), 0.0
        for batch in torch.randint(len(labels), (steps, batch_size), generator=generator):
            loss = nn.functional.cross_entropy(network(*inputs(batch)), labels[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        seconds.append(time.perf_counter() - begin)
        print(f"loss {total / steps:.3f}, {seconds[-1]:.0f} s", flush=True)
    return {"train_loss": total / steps, "seconds_per_epoch": float(torch.tensor(seconds).median())}


def train_on_frames(head: str, dataset: Dataset, setting: str, split: str, seed: int, epochs: int) -> dict[str, Any]:
    """Train on transforms in the four frames of principal axes of each cloud, which are computed once; average the logits."""
    half = es.directions.half_sphere(48, 3, dtype=torch.float64)
    layer = es.ECTLayer(3, num_thresholds=32, directions=half, scale=20.0, normalize="unit_ball", learn_directions=False)
    model = ECTCurves(layer, len(dataset.classes), channels=(32, 64, 64), directed=True)
    signs = torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])

    def curves(shapes: es.Complex, indices: Tensor) -> Tensor:
        """``[4, B, T, H]``"""
        found = []
        for part in indices.split(256):
            complex = shapes.select(part)
            axes = principal_frames(complex).float()[complex.batch]
            points = (complex.points[:, None] @ axes)[:, 0]
            found.append(torch.stack([layer(complex.with_points(points * sign)) for sign in signs]))
        return torch.cat(found, dim=1)

    generator, indices = torch.Generator().manual_seed(seed), dataset.indices("train")
    known = curves(rotated(dataset, setting, seed).shapes, indices)
    record = optimize(
        model.head,
        lambda batch: (known[torch.randint(4, batch.shape, generator=generator), batch],),
        dataset.labels[indices],
        *(len(indices), epochs, 64, 3e-3, generator),
    )
    model.eval()
    scores = {}
    with torch.no_grad():
        for name in SETTINGS:
            found = curves(rotated(dataset, name, seed + 1000).shapes, dataset.indices(split))
            logits = torch.stack([torch.cat([model.head(part) for part in frame.split(256)]) for frame in found]).mean(dim=0)
            right = logits.argmax(dim=1) == dataset.labels[dataset.indices(split)]
            scores[f"{split}_accuracy_{name}"] = 100 * float(right.double().mean())
    settings = {"directions": 48, "thresholds": 32, "scale": 20.0, "batch_size": 64, "learning_rate": 3e-3}
    return {"parameters": sum(p.numel() for p in model.head.parameters()), **scores, **record, "settings": settings}


class Expansion:
    """Coefficients of the smooth transform of clouds in the unit ball, in closed form.

    The curve of a point is a function of its distance r from the origin and of the angle to the direction. So its coefficients
    are harmonics of the point times a function of r (Funk and Hecke), here a polynomial of Chebyshev. This equals the
    projection of the transform on the directions of a quadrature, and is faster for clouds.
    """

    def __init__(self, degree: int, scale: float, thresholds: Tensor, terms: int = 24) -> None:
        self.degree, self.degrees = degree, degrees(degree, 3)
        self.orders = torch.arange(terms)
        angle = math.pi * (self.orders.double() + 0.5) / terms
        radii = (1 + angle.cos()) / 2
        x, weights = (torch.from_numpy(values) for values in np.polynomial.legendre.leggauss(100))
        curves = torch.sigmoid(scale * (thresholds.double()[None, :, None] - radii[:, None, None] * x))  # [R, H, X]
        legendre = torch.stack([torch.special.legendre_polynomial_p(x, n) for n in range(degree + 1)])
        values = torch.einsum("rhx,nx,x->nhr", curves, legendre, weights / 2)
        basis = torch.cos(self.orders[:, None] * angle) * (2 / terms)
        basis[0] /= 2
        self.terms = torch.einsum("nhr,kr->nhk", values, basis).float()[self.degrees]  # [M, H, K]

    def __call__(self, points: Tensor, weights: Tensor) -> Tensor:
        """``[M, B, H, 2 C]``: curves and their differences, of clouds ``[B, V, 3]`` with weights ``[B, V, C]``."""
        radii = points.norm(dim=2)
        units = nn.functional.normalize(points, dim=2)
        values = harmonics(units.flatten(0, 1), self.degree).float().unflatten(0, radii.shape)  # [B, V, M]
        polynomials = torch.cos(self.orders * torch.arccos((2 * radii - 1).clamp(-1, 1))[..., None])
        weighted = (polynomials[..., None] * weights[:, :, None]).flatten(2)  # [B, V, K C]
        moments = (values.transpose(1, 2) @ weighted).unflatten(2, (len(self.orders), -1))  # [B, M, K, C]
        found = torch.einsum("mhk,bmkc->mbhc", self.terms, moments)
        return torch.cat([found, found.diff(dim=2, prepend=torch.zeros_like(found[:, :, :1]))], dim=3)


@torch.no_grad()
def check_expansion(expansion: Expansion, shapes: es.Complex, scale: float) -> None:
    """Raise unless the closed form is what the layer and the first blocks of the head give."""
    model = harmonic(expansion.degree, 2, scale=scale, num_thresholds=12, channels=(4,))
    model.layer.raw_thresholds.copy_(torch.linspace(0, 1.1, 12))
    points = shapes.normalized("unit_ball").points.view(len(shapes), -1, 3)
    wanted, found = model.head[:2](model.layer(shapes)), expansion(points, torch.ones(*points.shape[:2], 1))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-3 * float(wanted[1:].abs().max()))


class WeightedHarmonics(nn.Module):
    """Harmonics of clouds whose points have learned weights, and the features of points that these come from.

    A small network maps the descriptor of the neighborhood of a point, which rotations keep, to features. Weights, linear in
    the features, make as many weighted transforms (WECT), whose harmonics pass through the blocks of :class:`ECTHarmonics`. The
    mean and largest features of a cloud join the norms at the end.

    Args:
        num_classes: Number of logits.
        mean, deviation: Of descriptors, ``[F]``.
    """

    def __init__(self, num_classes: int, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        degree, scale, width, weights, (first, second, third), hidden, dropout = 6, 8.0, 96, 16, (16, 32, 112), 256, 0.3
        self.settings = {"degree": degree, "scale": scale, "width": width, "weights": weights, "dropout": dropout}
        self.settings |= {"channels": (first, second, third), "hidden": hidden, "num_thresholds": 12, "terms": 16}
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation + 1e-3)
        self.points = nn.Sequential(*point_block(len(mean), width), *point_block(width, width))
        self.weights = nn.Linear(width, weights - 1)
        self.expansion = Expansion(degree, scale, torch.linspace(0, 1.1, 12), terms=16)
        blocks: list[nn.Module] = [DegreeNorm(2 * weights, degree, 3)]
        for before, after in ((2 * weights, first), (first, second)):
            blocks += [DegreeConvolution(before, 2 * after, degree, 3), DegreeNorm(2 * after, degree, 3), Product(degree, 3)]
        blocks += [DegreeConvolution(second, third, degree, 3), DegreeNorm(third, degree, 3), Norms(degree, 3)]
        self.harmonics = nn.Sequential(*blocks)
        self.pooled = nn.Sequential(*point_block(width, 128))
        sizes = ((degree + 1) * third + 2 * 128, hidden)
        blocks = [nn.Dropout(dropout), *linear_blocks(sizes, dropout, batch_norm=True), nn.Linear(hidden, num_classes)]
        self.classify = nn.Sequential(*blocks)

    def forward(self, points: Tensor, described: Tensor) -> Tensor:
        """Logits of clouds ``[B, V, 3]`` in the unit ball, with descriptors ``[B, V, F]``."""
        count = points.shape[:2]
        features = self.points(((described - self.mean) / self.deviation).clamp(-6, 6).flatten(0, 1))
        weights = torch.cat([features.new_ones(len(features), 1), self.weights(features)], dim=1).unflatten(0, count)
        norms = self.harmonics(self.expansion(points, weights / count[1] * 1024))  # whatever the number of points
        pooled = self.pooled(features).unflatten(0, count)
        return self.classify(torch.cat([norms, pooled.amax(dim=1), pooled.mean(dim=1)], dim=1))


def point_block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]


@torch.no_grad()
def descriptors(shapes: es.Complex) -> Tensor:
    """``[B, V, F]``, in float16: what rotations keep of the neighborhoods of the points of clouds.

    The distance from the origin. For the 8, 24 and 64 nearest points: their mean distance; how much they form a line, and a
    ball; the cosines of their normal and of their line to the way from the origin; the distance of their mean, and its height.
    For the 24 and 64 nearest, weighted by distance: norms of the harmonics of degree 3 and 4 of their directions, and means of
    the square, the absolute value and the cube of their heights.
    """
    return torch.stack([_described(points) for points in unit_clouds(shapes)]).half()


def _described(points: Tensor, counts: Sequence[int] = (8, 24, 64)) -> Tensor:
    radii = points.norm(dim=1)
    distances, nearest = torch.cdist(points, points).topk(counts[-1] + 1, largest=False)
    distances, near = distances[:, 1:], points[nearest[:, 1:]] - points[:, None]
    directions, outward = nn.functional.normalize(near, dim=2, eps=1e-6), nn.functional.normalize(points, dim=1, eps=1e-6)
    heights = (directions * outward[:, None]).sum(dim=2)
    products = (directions[:, :, :, None] * directions[:, :, None]).flatten(2)
    columns = [radii]
    for count in counts:
        size, mean = distances[:, :count].mean(dim=1).clamp(min=1e-6), near[:, :count].mean(dim=1)
        centered = near[:, :count] - mean[:, None]
        variances, axes = torch.linalg.eigh(centered.transpose(1, 2) @ centered / count)
        low, middle, high = variances.clamp(min=1e-12).sqrt().T
        normal, line = ((axes[:, :, i] * outward).sum(dim=1).abs() for i in (0, 2))
        linear = (high - middle) / high
        columns += [4 * size, linear, low / high, normal, linear * line, mean.norm(dim=1) / size]
        columns.append((mean * outward).sum(dim=1) / size)
    for count in counts[1:]:
        kernel = torch.exp(-(distances[:, :count] / distances[:, count - 1 : count].clamp(min=1e-6)).square())
        kernel = kernel / kernel.sum(dim=1, keepdim=True)
        one, two = directions[:, :count], products[:, :count]
        left, right = ((kernel[:, :, None] * x).transpose(1, 2) for x in (one, two))
        # Sums over pairs of points of powers of their cosine are squared norms of moments.
        second, third, fourth = ((x @ y).square().sum(dim=(1, 2)) for x, y in ((left, one), (left, two), (right, two)))
        first = left.sum(dim=2).square().sum(dim=1)
        powers = (5 * third - 3 * first) / 2, (35 * fourth - 30 * second + 3) / 8  # Legendre polynomials
        columns += [power.clamp(min=0).sqrt() for power in powers]
        height = heights[:, :count]
        columns += [(kernel * power).sum(dim=1) for power in (height.square(), height.abs(), height**3)]
    return torch.stack(columns, dim=1)


def rotated(dataset: Dataset, setting: str, seed: int) -> Dataset:
    """The data set with every shape rotated once: about the third axis, or uniformly at random."""
    augmentation = Augmentation(rotate=180) if setting == "z" else Augmentation(tumble=True)
    return replace(dataset, shapes=augmentation(dataset.shapes, torch.Generator().manual_seed(seed)))


TRAINERS = {
    "harmonics": train_on_coefficients,
    "harmonics-weighted": train_weights,
    "curves": train_on_clouds,
    "frames": train_on_frames,
}


def runs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []


def table() -> str:
    rows = ["| head | parameters | trained | epochs | seeds | tested z | tested SO(3) |", "|---|---|---|---|---|---|---|"]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs():
        if not run["validated"]:
            groups.setdefault((run["model"], run["parameters"], run["train"], run["epochs"]), []).append(run)
    for group, members in groups.items():
        cells = []
        for name in SETTINGS:
            scores = torch.tensor([run[f"test_accuracy_{name}"] for run in members], dtype=torch.float64)
            deviation = f" ± {float(scores.std()):.1f}" if len(scores) > 1 else ""
            cells.append(f"{float(scores.mean()):.1f}{deviation}")
        rows.append(f"| {' | '.join(map(str, group))} | {len(members)} | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
