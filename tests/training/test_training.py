"""Circles and arcs: shapes whose only difference is the Euler characteristic."""

import json
import math
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan.datasets import Dataset
from eulerscan.nn.models import ECTMLP, ECTSVM
from eulerscan.training import Augmentation, TrainingConfig, evaluate, predict, train
from eulerscan.training.config import EnsembleConfig, ModelConfig, _from_json
from eulerscan.training.loop import _class_weights, _learning_rate, _order
from eulerscan.training.rng import generator as generator_of
from eulerscan.training.rng import seeded

QUICK = TrainingConfig(epochs=4, batch_size=7, learning_rate=0.01)


def polygons(count: int = 40, *, rare: int = 1) -> Dataset:
    """Polygons of many sizes, closed ones and, ``rare`` times as often, ones that lack an edge."""
    generator = torch.Generator().manual_seed(0)
    shapes, labels = [], []
    for i in range(count):
        n, closed = 5 + i % 6, i % (1 + rare) == 0
        edges = torch.stack([torch.arange(n), torch.arange(1, n + 1) % n])[:, : n if closed else n - 1]
        points = es.directions.circle(n) + 0.05 * torch.randn(n, 2, generator=generator)
        shapes.append(es.Complex(points, [edges]))
        labels.append(int(closed))
    order = torch.randperm(count, generator=generator)
    parts = {"train": order[: count // 2], "val": order[count // 2 : 3 * count // 4], "test": order[3 * count // 4 :]}
    return Dataset("polygons", es.collate(shapes), torch.tensor(labels), ("open", "closed"), parts)


def model(seed: int = 0, dtype: torch.dtype | None = None, **options) -> ECTMLP:
    with seeded(seed, 0):
        layer = es.ECTLayer(2, 5, 6, normalize="unit_ball", dtype=dtype)
        return ECTMLP(layer, 2, hidden=(8,), **options)


def weights_of(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in module.state_dict().values()])


def test_closed_polygons_are_told_from_open_ones():
    made, data = model(), polygons(80)
    trained = train(made, data, TrainingConfig(epochs=60, learning_rate=0.02), progress=False)
    assert evaluate(made, data, "test").accuracy >= 0.95
    assert trained.history[-1]["loss"] < 0.2 < trained.history[0]["loss"]


def test_scores_are_those_of_the_logits_passed_to_on_batch():
    made, data, seen = model(), polygons(), []
    scores = evaluate(made, data, "train", batch_size=6, on_batch=lambda indices, logits: seen.append((indices, logits)))
    indices, logits = (torch.cat(parts) for parts in zip(*seen, strict=True))
    assert torch.equal(indices, data.splits["train"])
    torch.testing.assert_close(logits, made(data.shapes[indices]).detach())
    assert float((logits.argmax(dim=1) == data.labels[indices]).float().mean()) == pytest.approx(scores.accuracy)


def test_a_seed_determines_every_bit_and_another_seed_another_result():
    data, results = polygons(), []
    for seed in (1, 1, 2):
        made = model(dropout=0.2)
        train(made, data, replace(QUICK, seed=seed, augmentation=Augmentation(rotate=90, jitter=0.01)), progress=False)
        results.append(weights_of(made))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_dropout_and_augmentation_have_random_numbers_of_their_own():
    with seeded(3, 1, 2, 0):
        dropout = torch.rand(4)
    assert not torch.equal(dropout, torch.rand(4, generator=generator_of(3, 1, 1, 0)))
    with seeded(3, 1, 2, 0):
        assert torch.equal(dropout, torch.rand(4))


def test_training_with_other_settings_is_not_resumed(tmp_path):
    train(model(), polygons(), QUICK, tmp_path, progress=False)
    with pytest.raises(ValueError, match=r"other settings \(learning_rate\)"):
        train(model(), polygons(), replace(QUICK, learning_rate=0.5), tmp_path, progress=False)


def test_training_of_another_model_or_on_other_data_is_not_resumed(tmp_path):
    data = polygons()
    train(model(), data, QUICK, str(tmp_path), progress=False)
    train(model(), data, QUICK, str(tmp_path), progress=False)
    moved = replace(data, shapes=data.shapes.normalized("vertices"))
    relabeled = replace(data, labels=data.labels.flip(0))
    rewired = replace(
        data, shapes=es.Complex.from_packed(data.shapes.packed._replace(simplices=data.shapes.packed.simplices.flip(0)))
    )
    for other in (moved, relabeled, rewired):
        with pytest.raises(ValueError, match="another model or on other data"):
            train(model(), other, QUICK, tmp_path, progress=False)
    fixed, smaller = model(), ECTMLP(es.ECTLayer(2, 4, 6), 2, hidden=(8,))
    fixed.layer.requires_grad_(False)
    for refused in (smaller, fixed):
        before = {name: tensor.clone() for name, tensor in refused.state_dict().items()}
        with pytest.raises(ValueError, match="another model or on other data"):
            train(refused, data, QUICK, tmp_path, progress=False)
        assert all(torch.equal(tensor, before[name]) for name, tensor in refused.state_dict().items())
    other_layer = ECTMLP(es.ECTLayer(2, 5, 6, normalize="vertices"), 2, hidden=(8,))
    with pytest.raises(ValueError, match="another model or on other data"):
        train(other_layer, data, QUICK, tmp_path, progress=False)


def test_arguments_are_checked():
    data = polygons()
    three = replace(data, classes=(*data.classes, "none"))
    with pytest.raises(ValueError, match=rf"logits \[B, {len(three.classes)}\], one for each class of polygons, got shape"):
        train(model(), three, QUICK, progress=False)
    with pytest.raises(ValueError, match="one for each class of polygons"):
        evaluate(model(), three, "train")
    for call in (predict, evaluate):
        with pytest.raises(TypeError, match="Dataset, got list.*For the logits of shapes call the model"):
            call(model(), [torch.rand(4, 2)])


@pytest.mark.parametrize(("options", "resumes"), [({}, True), ({"squeeze": 0.0, "twist": 1.0}, False)])
def test_checkpoints_from_before_an_option_existed_are_resumed(tmp_path, monkeypatch, options, resumes):
    shorter = replace(QUICK, epochs=2)
    with monkeypatch.context() as patch:
        older = {name: value for name, value in asdict(shorter.augmentation).items() if name != "squeeze"} | options
        patch.setattr("eulerscan.training.checkpoints.asdict", lambda config: {**asdict(config), "augmentation": older})
        train(model(), polygons(), shorter, tmp_path, progress=False)
    if resumes:
        assert len(train(model(), polygons(), shorter, tmp_path, progress=False).history) == 2
    else:
        with pytest.raises(ValueError, match="other settings"):
            train(model(), polygons(), shorter, tmp_path, progress=False)


def test_a_split_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="split must be .* got 'tset'"):
        evaluate(model(), polygons(), "tset")
    data = polygons()
    empty = replace(data, splits={"train": torch.empty(0, dtype=torch.int64)})
    with pytest.raises(ValueError, match="training split of polygons must not be empty"):
        train(model(), empty, QUICK, progress=False)


def test_other_dtypes_and_fixed_parameters_are_trained_and_resumed(tmp_path):
    def fixed():
        made = model(dtype=torch.float64)
        made.layer.weight.requires_grad_(False)
        return made

    first, data = fixed(), polygons()
    train(first, data, replace(QUICK, balance="weights"), tmp_path, progress=False)
    second = fixed()
    train(second, data, replace(QUICK, balance="weights"), tmp_path, progress=False)
    assert torch.equal(weights_of(first), weights_of(second))
    assert torch.equal(first.layer.weight, fixed().layer.weight)
    assert not torch.equal(weights_of(first), weights_of(fixed()))


def test_training_leaves_the_random_numbers_of_others_alone():
    before = torch.random.get_rng_state()
    train(model(dropout=0.5), polygons(), replace(QUICK, epochs=1), progress=False)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("stop_after", [1, 3])
def test_interrupted_training_resumes_to_the_same_bits(tmp_path, stop_after):
    settings = replace(QUICK, schedule="cosine", augmentation=Augmentation(stretch=0.1))
    unbroken = model(dropout=0.3)
    whole = train(unbroken, polygons(), settings, progress=False)

    def stop(record):
        if record["epoch"] == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(model(dropout=0.3), polygons(), settings, tmp_path, on_epoch=stop, progress=False)
    with (tmp_path / "metrics.jsonl").open("a") as lines:
        lines.write('{"epoch": 99}\n')  # as if it had been killed after a line and before its checkpoint
    resumed = model(seed=5, dropout=0.3)
    rest = train(resumed, polygons(), settings, tmp_path, progress=False)
    assert torch.equal(weights_of(resumed), weights_of(unbroken))
    assert rest.best_epoch == whole.best_epoch
    without_time = [[{**record, "seconds": 0} for record in trained.history] for trained in (whole, rest)]
    assert without_time[0] == without_time[1]
    assert [json.loads(line)["epoch"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [1, 2, 3, 4]


def test_the_epoch_that_is_best_on_the_validation_split_is_kept(tmp_path):
    data, made = polygons(), model()
    trained = train(made, data, replace(QUICK, epochs=12, learning_rate=0.1), tmp_path, progress=False)
    scores = [(record["val_accuracy"], -record["val_loss"]) for record in trained.history]
    assert trained.best_epoch == 1 + scores.index(max(scores))
    assert evaluate(made, data, "val").summary("val_").items() <= trained.history[trained.best_epoch - 1].items()
    memory = model()
    train(memory, data, replace(QUICK, epochs=12, learning_rate=0.1), progress=False)
    assert torch.equal(weights_of(memory), weights_of(made))


def test_the_last_epoch_is_kept_with_select_by_last():
    made, data = model(), polygons()
    trained = train(made, data, replace(QUICK, epochs=6, learning_rate=0.3, select_by="last"), progress=False)
    scores = [(record["val_accuracy"], -record["val_loss"]) for record in trained.history]
    assert 1 + scores.index(max(scores)) < trained.best_epoch == 6
    assert evaluate(made, data, "val").summary("val_").items() <= trained.history[-1].items()


def test_without_a_validation_split_the_last_epoch_is_kept():
    data = polygons()
    alone = Dataset(data.name, data.shapes, data.labels, data.classes, {"train": data.splits["train"]})
    assert train(model(), alone, QUICK, progress=False).best_epoch == 4


def test_training_stops_when_validation_no_longer_improves():
    settings = replace(QUICK, epochs=50, patience=3, learning_rate=1e-12)
    trained = train(model(), polygons(), settings, progress=False)
    assert len(trained.history) == trained.best_epoch + 3


def test_test_shapes_are_never_used():
    data = polygons()
    broken = data.shapes.points.clone()
    for index in data.splits["test"].tolist():
        first, last = data.shapes.offsets[0, index : index + 2].tolist()
        broken[first:last] = math.nan
    spoilt = replace(data, shapes=data.shapes.with_points(broken))
    one, other = model(), model()
    train(one, data, QUICK, progress=False)
    train(other, spoilt, QUICK, progress=False)
    assert torch.equal(weights_of(one), weights_of(other))


def test_rare_classes_weigh_more_or_come_more_often():
    data = polygons(60, rare=4)
    share = float(data.labels[data.splits["train"]].float().mean())
    weights = _class_weights(data, replace(QUICK, balance="weights"))
    torch.testing.assert_close(weights, torch.tensor([0.5 / (1 - share), 0.5 / share]))
    drawn = torch.cat([_order(data, replace(QUICK, balance="sampling"), epoch) for epoch in range(40)])
    assert set(drawn.tolist()) <= set(data.splits["train"].tolist())
    assert float(data.labels[drawn].float().mean()) == pytest.approx(0.5, abs=0.05)
    assert _class_weights(data, QUICK).tolist() == [1, 1]


def clouds() -> Dataset:
    """Point clouds with 12 points each, whose only coordinate is their position in the cloud."""
    shapes = es.as_complex(torch.arange(12.0).repeat(20, 1)[..., None])
    splits = {"train": torch.arange(10), "val": torch.arange(10, 15), "test": torch.arange(15, 20)}
    return Dataset("clouds", shapes, torch.arange(20) % 2, ("even", "odd"), splits)


class Recorder(torch.nn.Module):
    """A classifier that keeps the points it was given, for training and for evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(2))
        self.seen: dict[bool, list[list[float]]] = {True: [], False: []}

    def forward(self, shape: es.Complex) -> torch.Tensor:
        self.seen[self.training] += [shape[i].points.flatten().tolist() for i in range(len(shape))]
        return self.bias.expand(len(shape), 2)


def test_clouds_are_subsampled_at_random_in_each_epoch_and_to_the_first_points_otherwise():
    runs = []
    for seed in (0, 0, 1):
        made = Recorder()
        train(made, clouds(), TrainingConfig(epochs=2, num_points=5, seed=seed), progress=False)
        evaluate(made, clouds(), "test", num_points=5)
        assert made.seen[False] == [[0.0, 1.0, 2.0, 3.0, 4.0]] * (2 * 5 + 5)
        assert {len(set(points)) for points in made.seen[True]} == {5}
        assert len({tuple(points) for points in made.seen[True]}) > 15  # of 20: other points for every cloud and epoch
        runs.append(made.seen[True])
    assert runs[0] == runs[1] != runs[2]


def test_graphs_are_not_subsampled():
    with pytest.raises(ValueError, match="num_points"):
        train(model(), polygons(), replace(QUICK, num_points=3), progress=False)


def test_every_epoch_sees_every_training_shape_once_in_another_order():
    data = polygons()
    one, other = (_order(data, QUICK, epoch) for epoch in (1, 2))
    assert sorted(one.tolist()) == sorted(other.tolist()) == sorted(data.splits["train"].tolist())
    assert one.tolist() != other.tolist()


def test_the_cosine_falls_from_the_learning_rate_to_zero():
    settings = replace(QUICK, schedule="cosine", epochs=10)
    rates = [_learning_rate(settings, epochs) for epochs in (0, 5, 10)]
    assert rates == pytest.approx([0.01, 0.005, 0])
    assert _learning_rate(QUICK, 3) == 0.01


def test_a_step_is_no_longer_than_the_clip_allows():
    """Adam does not see the length of a gradient, plain descent does: the norm is what clip_grad_norm_ left."""
    made, data = model(), polygons()
    train(made, data, replace(QUICK, epochs=1, clip=1e-3), progress=False)
    norm = torch.linalg.vector_norm(torch.stack([parameter.grad.norm() for parameter in made.parameters()]))
    assert norm <= 1.001e-3


def test_a_loss_that_is_not_finite_is_an_error():
    data = polygons()
    spoilt = replace(data, shapes=data.shapes.with_points(data.shapes.points * math.nan))
    with pytest.raises(FloatingPointError, match="loss is nan in epoch 1"):
        train(model(), spoilt, QUICK, progress=False)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epochs": 0}, "epochs must be .* got 0"),
        ({"batch_size": 0}, "batch_size must be .* got 0"),
        ({"num_points": 0}, "num_points must be .* got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be .* got 0"),
        ({"learning_rate": math.nan}, "learning_rate must be .* got nan"),
        ({"clip": -1.0}, "clip must be .* got -1"),
        ({"patience": -1}, "patience must be .* got -1"),
        ({"seed": -1}, "seed must be .* got -1"),
        ({"weight_decay": math.inf}, "weight_decay must be .* got inf"),
        ({"select_by": "first"}, "select_by must be .*balanced_accuracy.* got 'first'"),
        ({"schedule": "step"}, "schedule must be .*cosine.* got 'step'"),
        ({"balance": "x"}, "balance must be .*sampling.* got 'x'"),
        ({"patience": 3, "select_by": "last"}, "patience must be 0 with select_by='last'.* got 3"),
    ],
)
def test_invalid_settings_are_named(options, text):
    with pytest.raises(ValueError, match=text):
        TrainingConfig(**options)


def test_numbers_of_numpy_become_those_of_json():
    one = np.int64(1)
    for config in (
        TrainingConfig(epochs=one, batch_size=one, patience=one, seed=one, clip=np.float32(2), learning_rate=np.float32(0.5)),
        TrainingConfig(augmentation=Augmentation(rotate=one, jitter=np.float32(0.5), tumble=np.True_)),
        ModelConfig(num_directions=one, radius=np.float32(2), hidden=(one, 2), circular=np.True_),
        EnsembleConfig((ModelConfig(max_dim=one),), temperatures=(np.float32(1),), weights=(np.float64(1),)),
    ):
        values = json.loads(json.dumps(asdict(config)))
        assert _from_json(type(config), values, "") == config


TWO_PROCESSES = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import torch
import eulerscan as es
from eulerscan.training import distributed
from eulerscan.training import evaluate, train
from test_training import TOGETHER, model, polygons, weights_of

torch.set_num_threads(1)
with distributed.process_group():
    made = model()
    if distributed.rank():
        for parameter in made.parameters():
            parameter.data.zero_()  # those of the first process count
    normalized = model(batch_norm=True)
    trained = train(normalized, polygons(), TOGETHER, progress=False)
    best = trained.history[trained.best_epoch - 1]
    losses = (best["val_loss"], evaluate(normalized, polygons(), "val").loss)
    train(made, polygons(), TOGETHER, progress=False)
    scores = evaluate(made, polygons(), "test")
    gradients = [parameter.grad for parameter in made.parameters()]
    found = (weights_of(made), gradients, scores.confusion, scores.loss, weights_of(normalized), losses)
    torch.save(found, sys.argv[1] + str(distributed.rank()))
threads = [name.read_text() for name in Path("/proc/self/task").glob("*/comm")]  # none where there is no such folder
assert not any("gloo" in name for name in threads), threads
"""
# 20 shapes in batches of 7: shares of 4 and 3, and at the end 3 and 3; 7 epochs are 21 steps.
TOGETHER = TrainingConfig(epochs=7, batch_size=7, learning_rate=0.01, clip=0.0, balance="weights")


def test_two_processes_compute_what_one_does(tmp_path):
    script = tmp_path / "together.py"
    script.write_text(TWO_PROCESSES.format(tests=str(Path(__file__).parent)))
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        script,
        tmp_path / "rank",
    ]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    ranks = [torch.load(tmp_path / f"rank{rank}", weights_only=True) for rank in range(2)]
    assert torch.equal(ranks[0][0], ranks[1][0])
    assert torch.equal(ranks[0][4], ranks[1][4])  # running means too
    assert ranks[0][5][0] == ranks[0][5][1] == ranks[1][5][1]  # the epoch was judged as it was kept
    alone, data = model(), polygons()
    train(alone, data, TOGETHER, progress=False)
    torch.testing.assert_close(ranks[0][0], weights_of(alone), rtol=1e-4, atol=1e-5)
    for together, parameter in zip(ranks[0][1], alone.parameters(), strict=True):
        torch.testing.assert_close(together, parameter.grad, rtol=1e-3, atol=1e-5)
    scores = evaluate(alone, data, "test")
    assert torch.equal(ranks[0][2], scores.confusion)
    assert ranks[1][3] == pytest.approx(scores.loss, rel=1e-4)


class WithSpare(torch.nn.Module):
    """A model with a parameter that has no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.spare = model(), torch.nn.Parameter(torch.zeros(3))

    def forward(self, shapes):
        return self.used(shapes)


def test_training_resumes_with_a_parameter_that_is_not_used(tmp_path):
    data, few = polygons(), replace(QUICK, epochs=2)

    def stop(epoch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(WithSpare(), data, few, tmp_path, on_epoch=stop, progress=False)
    assert len(train(WithSpare(), data, few, tmp_path, progress=False).history) == 2


def test_a_model_without_parameters_is_evaluated_and_stays_in_its_mode():
    class Constant(torch.nn.Module):
        def forward(self, shapes):
            return torch.tensor([[0.0, 1.0]]).expand(len(shapes), 2)

    data, constant = polygons(), Constant()
    assert evaluate(constant, data, "test").accuracy == float((data.labels[data.indices("test")] == 1).double().mean())

    def stop(*_):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        evaluate(constant, data, "test", batch_size=2, on_batch=stop)
    assert constant.training


@pytest.mark.parametrize("make", [lambda layer: ECTMLP(layer, 2, dropout=0.9), lambda layer: ECTSVM(layer, 2)])
def test_a_trained_model_is_in_evaluation_mode(make):
    """Its predictions are those that ``evaluate`` scores, without dropout."""
    made, data = make(es.ECTLayer(2, 5, 6, normalize="unit_ball")), polygons()
    train(made, data, QUICK, progress=False)
    assert not any(module.training for module in made.modules())
    assert torch.equal(made(data.shapes), made(data.shapes))
