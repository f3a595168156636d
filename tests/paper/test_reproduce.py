import json
import runpy
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

import eulerscan as es
from eulerscan.cli.main import main
from eulerscan.datasets import Dataset
from eulerscan.nn.models import ECTCNN, Ensemble
from eulerscan.paper import plans as reproducing
from eulerscan.paper import running
from eulerscan.paper.gnn import GNN, GNNS
from eulerscan.paper.plans import PLANS, Run
from eulerscan.paper.published import PUBLISHED
from eulerscan.paper.quirks import as_published
from eulerscan.paper.rendering import render
from eulerscan.paper.svm import SVM
from eulerscan.training import ModelConfig, TrainingConfig, evaluate

RESULTS = Path(__file__).parents[2] / "results"


def plan_of(name: str, seeds: int = 1, published: bool = False) -> list[Run]:
    return list(PLANS[name][0](seeds, published))


@pytest.mark.parametrize("name", PLANS)
def test_every_cell_of_the_paper_is_planned(name):
    planned = {(run.row, run.column) for run in plan_of(name)}
    published = {(row, column) for row, cells in PUBLISHED.get(name, {}).items() for column in cells}
    quoted = {"MLP", "Deep Sets (Zaheer et al.)"}  # competitors that the paper quotes and we do not run
    assert {cell for cell in published if cell[0] not in quoted} <= planned


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("published", [False, True])
def test_no_two_runs_of_a_plan_are_the_same(name, published):
    runs = plan_of(name, 3, published)
    assert len({run.key for run in runs}) == len(runs)


def test_the_parameter_budgets_are_those_of_the_paper():
    budgets = {"ECT+CNN 4K": (3500, 4500), "ECT+CNN 65K": (60000, 66000), "GIN": (8000, 10500)}
    budgets |= {"GAT": (4500, 6500), "GCN": (4500, 6500), "ECT+CNN 15 x 4K": (60000, 66000)}
    for run in plan_of("small-graphs"):
        if isinstance(run.model, SVM):
            continue  # the number of support vectors depends on the data
        dim, classes = (2, 15) if run.column.startswith("letter") else (38, 2)
        parameters = sum(p.numel() for p in run.model.build(dim, classes).parameters()) * (run.members or 1)
        low, high = budgets[run.row.partition(",")[0]]
        assert low <= parameters <= high
    for run in plan_of("superpixels"):
        if run.timing_only:
            assert 90_000 <= sum(p.numel() for p in run.model.build(3, 10).parameters()) <= 110_000


@pytest.mark.parametrize("name", GNNS)
def test_graph_neural_networks_treat_each_graph_independently(name, rng):
    network = GNN(name, 2, 3, hidden=8).eval()
    clouds = [torch.tensor(rng.normal(size=(n, 2)), dtype=torch.float32) for n in (4, 1, 6)]
    graphs = [es.Complex(p, [torch.tensor([[0], [len(p) - 1]])] if len(p) > 1 else []) for p in clouds]
    together = network(es.collate(graphs))
    for graph, logits in zip(graphs, together, strict=True):
        torch.testing.assert_close(network(graph)[0], logits, rtol=1e-4, atol=1e-5)


def test_the_published_code_counted_edges_twice_and_took_one_mean():
    square = es.Complex(torch.tensor([[0.0, 10], [2, 10], [2, 12], [0, 12]]), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])])
    parts = {"train": torch.tensor([0]), "val": torch.tensor([1]), "test": torch.tensor([2])}
    data = Dataset("squares", es.collate([square] * 3), torch.zeros(3, dtype=torch.int64), ("square",), parts)
    quirky = as_published(data)
    assert quirky.shapes.euler_characteristic().tolist() == [-4, -4, -4]
    assert quirky.shapes[0].points.sum().item() == pytest.approx(0, abs=1e-5)
    assert quirky.shapes[0].points.mean(dim=0).abs().min() > 0.5  # a single axis is not centered
    assert quirky.shapes.points.norm(dim=1).max().item() == pytest.approx(1)
    assert set(quirky.splits) == {"train", "test"}


@pytest.fixture
def tiny_plan():
    model = ModelConfig("mlp", num_directions=4, num_thresholds=4, hidden=(4,))
    data = {"num_shapes": 8, "num_points": 20}
    return [Run("ablation", "ECT+MLP", "4", "manifolds", model, TrainingConfig(epochs=2, seed=seed), data) for seed in (0, 1)]


def test_finished_runs_are_skipped_and_an_incomplete_line_is_run_again(tmp_path, tiny_plan, monkeypatch):
    lines = tmp_path / "ablation.jsonl"
    running.run_plan(tiny_plan, lines, work=tmp_path / "work")
    records = running.read(lines)
    assert [record["seed"] for record in records] == [0, 1]
    fields = "experiment dataset model preset seed parameters test_accuracy epochs seconds_per_epoch settings version"
    assert set(fields.split()) <= set(records[0])
    whole = lines.read_text()
    lines.write_text(whole[:-40])
    executed = []
    real = running.execute
    monkeypatch.setattr(running, "execute", lambda run, *rest, **more: executed.append(run) or real(run, *rest, **more))
    assert [record["seed"] for record in running.read(lines)] == [0]
    running.run_plan(tiny_plan, lines, work=tmp_path / "work")
    again = running.read(lines)
    assert executed == [tiny_plan[1]]
    drop = ("seconds", "seconds_per_epoch")
    same = [[{k: v for k, v in record.items() if k not in drop} for record in r] for r in (records, again)]
    assert json.dumps(same[0]) == json.dumps(same[1])
    assert list((tmp_path / "work").iterdir()) == []


def test_the_first_member_of_an_ensemble_is_the_single_model(tmp_path, tiny_plan, monkeypatch):
    alone = running.execute(tiny_plan[1], tmp_path / "alone")
    seen = []
    monkeypatch.setattr(running, "Ensemble", lambda members: seen.extend(members) or Ensemble(members))
    together = running.execute(replace(tiny_plan[1], members=3), tmp_path / "together")
    assert together["key"] != alone["key"]
    assert together["parameters"] == 3 * alone["parameters"]
    dataset = es.datasets.load("manifolds", **tiny_plan[1].data)
    assert 100 * evaluate(seen[0], dataset, "test").accuracy == alone["test_accuracy"]
    assert 100 * evaluate(seen[0], dataset, "val").accuracy == alone["val_accuracy"]
    assert 100 * evaluate(Ensemble(seen), dataset, "test").accuracy == together["test_accuracy"]
    assert not torch.equal(seen[0].head[1].weight, seen[1].head[1].weight)


def test_the_parameters_of_an_svm_are_those_of_its_support_vectors(tiny_plan, tmp_path):
    svm = SVM(num_directions=16, num_thresholds=16, radius=1.2, scale=8.0, cost=3.0)
    data = {"num_shapes": 40, "num_points": 100}
    runs = [replace(run, model=svm, data=data) for run in (*tiny_plan, tiny_plan[0])]
    first, other, again = (running.execute(run, tmp_path) for run in runs)
    assert first["model"] == "svm"
    assert first["key"] == again["key"] != other["key"]
    assert [first[name] for name in ("parameters", "val_accuracy")] == [again[name] for name in ("parameters", "val_accuracy")]
    for line in (first, other):
        # With four classes, a support vector has three coefficients, and each of the six pairs of classes an intercept.
        kept, rest = divmod(line["parameters"] - 6, 16 * 16 + 3)
        assert rest == 0
        assert 4 <= kept <= len(es.datasets.load("manifolds", **data).indices("train"))
        assert line["test_accuracy"] > 80  # a guess is right in one of four cases


def test_each_direction_of_an_svm_sees_one_embedding_and_the_other_coordinates():
    svm = SVM(num_directions=5, num_thresholds=3, radius=1.2, scale=8.0, cost=3.0, embeddings=2)
    directions = svm._directions(8, seed=1)
    assert directions.shape == (10, 8)
    torch.testing.assert_close(directions.norm(dim=1), torch.ones(10))
    for rows, own, other in ((directions[:5], slice(0, 3), slice(3, 6)), (directions[5:], slice(3, 6), slice(0, 3))):
        assert (rows[:, other] == 0).all()
        assert (rows[:, own] != 0).all()
        assert (rows[:, 6:] != 0).all()
    alone = replace(svm, embeddings=None)
    assert torch.equal(alone._directions(5, seed=1)[:, :3], directions[:5, :3])


def test_a_refitted_svm_has_more_to_train_on_and_no_validation_accuracy(tiny_plan, tmp_path):
    data = {"num_shapes": 40, "num_points": 100}
    svm = SVM(
        num_directions=16, num_thresholds=16, radius=1.2, scale=8.0, cost=1e-6
    )  # every training shape is a support vector
    one, whole = (
        running.execute(replace(tiny_plan[0], model=replace(svm, refit=refit), data=data), tmp_path) for refit in (None, True)
    )
    assert one["val_accuracy"] is not None
    assert whole["val_accuracy"] is None
    dataset = es.datasets.load("manifolds", **data)
    for line, count in (
        (one, len(dataset.indices("train"))),
        (whole, len(dataset.indices("train")) + len(dataset.indices("val"))),
    ):
        assert divmod(line["parameters"] - 6, 16 * 16 + 3) == (count, 0)


def test_an_svm_takes_a_sample_of_one_class(tiny_plan, tmp_path):
    svm = SVM(num_directions=2, num_thresholds=3, radius=1.2, scale=8.0, cost=3.0)
    line = running.execute(replace(tiny_plan[0], model=svm, sample=1), tmp_path)
    assert line["parameters"] == 0
    assert line["test_accuracy"] in (0, 100)


def test_tables_show_mean_standard_deviation_and_the_numbers_of_the_paper(tmp_path):
    record = {
        "key": "",
        "experiment": "directions",
        "parameters": 1065,
        "epochs": 10,
        "seconds_per_epoch": 1.5,
        "seconds": 30.0,
    }
    record |= {"version": "0", "machine": {"processor": "abacus", "threads": 2, "python": "3", "torch": "2"}, "column": "mnist"}
    rows = [record | {"row": "ECT+MLP, learnable", "test_accuracy": a} for a in (80.0, 84.0)]
    render("directions", rows, tmp_path)
    table = (tmp_path / "directions.md").read_text()
    assert "82.00 ± 2.83 (2) [81.29 ± 3.39]" in table
    assert "[77.61 ± 7.98]" in table
    assert "abacus" in table
    header, line = (tmp_path / "directions.csv").read_text().splitlines()
    assert (
        dict(zip(header.split(","), line.replace('"ECT+MLP, learnable"', "x").split(","), strict=True))["paper_accuracy"]
        == "81.29"
    )


def test_one_seed_has_no_standard_deviation(tmp_path, tiny_plan):
    lines = tmp_path / "ablation.jsonl"
    running.run_plan(tiny_plan[:1], lines, work=tmp_path / "work")
    render("ablation", running.read(lines), tmp_path)
    assert "±" not in (tmp_path / "ablation.md").read_text().splitlines()[4]


def test_a_sample_is_another_run(tiny_plan, tmp_path):
    """Otherwise a smoke test would replace the real run."""
    run = tiny_plan[0]
    assert run.sampled(4).key != run.key
    assert run.sampled(4).training.epochs == 1
    record = running.execute(run.sampled(4), tmp_path)
    assert record["settings"]["sample"] == 4


@pytest.mark.parametrize("option", ["--seeds", "--sample"])
def test_zero_runs_or_shapes_are_an_error(option, run, tmp_path):
    _, err = run("reproduce", "directions", option, 0, "--results", tmp_path, "--work", tmp_path, status=2)
    assert f"{option} must be at least 1, got 0." in err


def test_lines_with_other_settings_are_not_in_the_table(tmp_path, capsys, monkeypatch, tiny_plan):
    other = [replace(run, training=replace(run.training, batch_size=3)) for run in tiny_plan]
    running.run_plan(other, tmp_path / "ablation.jsonl", work=tmp_path / "work")
    monkeypatch.setitem(reproducing.PLANS, "ablation", (lambda seeds, published: iter(tiny_plan), 2))
    with pytest.raises(SystemExit):
        main(["reproduce", "ablation", "--results", str(tmp_path), "--render-only"])
    assert "no results yet" in capsys.readouterr().out


def test_rows_as_published_stay_in_the_table(tmp_path, capsys):
    lines = "".join(
        json.dumps(record) + "\n"
        for record in running.read(RESULTS / "small-graphs.jsonl")
        if record["column"] == "bzr" and record["row"].startswith("ECT+CNN 4K")
    )
    (tmp_path / "small-graphs.jsonl").write_text(lines, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["reproduce", "small-graphs", "--results", str(tmp_path), "--render-only"])
    out = capsys.readouterr().out
    assert "| ECT+CNN 4K, as published |" in out
    assert "by `eulerscan reproduce small-graphs --as-published`" in out


def test_the_same_preset_with_other_sizes_is_another_run(monkeypatch):
    run = plan_of("small-graphs")[0]
    before = run.key
    monkeypatch.setitem(ECTCNN.presets, "4k", replace(ECTCNN.presets["4k"], head={"hidden": (30, 30)}))
    assert run.key != before


def test_the_committed_results_belong_to_the_plans():
    """A new option must not change the keys of earlier results."""
    for name in PLANS:
        found = {record["key"]: record for record in running.read(RESULTS / f"{name}.jsonl")}
        planned = [run for run in plan_of(name) if isinstance(run.model, ModelConfig) and run.key in found]
        assert planned
        for run in planned:
            settings = found[run.key]["settings"]
            recorded = {name: tuple(value) if isinstance(value, list) else value for name, value in settings["model"].items()}
            assert ModelConfig(**recorded) == run.model  # options that are newer than the record have their defaults
            assert settings["training"] == asdict(run.training)


@pytest.mark.parametrize("name", PLANS)
def test_the_committed_tables_are_rendered_from_the_committed_lines(name, run, tmp_path):
    shutil.copy(RESULTS / f"{name}.jsonl", tmp_path)
    run("reproduce", name, "--results", tmp_path, "--render-only")
    for extension in ("md", "csv"):
        assert (tmp_path / f"{name}.{extension}").read_text() == (RESULTS / f"{name}.{extension}").read_text()


def test_the_committed_table_of_many_splits_is_rendered_from_the_committed_lines():
    benchmark = runpy.run_path(str(RESULTS.parent / "benchmarks" / "small_graphs.py"))
    lines = benchmark["read"](RESULTS / "splits.jsonl")
    assert benchmark["render"](lines) == (RESULTS / "splits.md").read_text()
    assert len({(line["data"], line["duplicates"], line["row"], line["split"]) for line in lines}) == len(lines)


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize("name", PLANS)
def test_a_small_version_of_every_table_runs(name, tmp_path, capsys):
    options = ["--seeds", "1", "--sample", "8", "--results", str(tmp_path / "results"), "--work", str(tmp_path / "work")]
    with pytest.raises(SystemExit) as exit:
        main(["reproduce", name, *options])
    assert exit.value.code == 0
    lines = [json.loads(line) for line in (tmp_path / "results" / f"{name}.jsonl").read_text().splitlines()]
    assert len(lines) == len(plan_of(name))
    assert (tmp_path / "results" / f"{name}.md").read_text() in capsys.readouterr().out
    if name == "ablation":
        assert (tmp_path / "results" / "ablation.pdf").stat().st_size > 1000
