"""Choosing a classifier by the data."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import eulerscan as es
from eulerscan.datasets import load
from eulerscan.datasets.source import split_source
from eulerscan.datasets.splits import fold, stratified
from eulerscan.nn.models import ECTSVM, Ensemble
from eulerscan.nn.models.ensemble import Calibration, calibrate
from eulerscan.training import Augmentation, ModelConfig, RunConfig, TrainingConfig, loop, train
from eulerscan.training.choice import (
    ANY_ORIENTATION,
    AUGMENTATION,
    Candidate,
    _decide,
    _is_orientation_free,
    auto,
    candidates,
    choose,
    majority,
)
from eulerscan.training.config import EnsembleConfig
from eulerscan.training.runs import load_run, start

SOURCE = {"name": "manifolds", "options": {"num_shapes": 40, "num_points": 30}}


@pytest.fixture(scope="module")
def clouds():
    return load("manifolds", **SOURCE["options"])


def small(dataset):
    """Quick candidates."""
    return candidates(dataset, ModelConfig(num_directions=8, num_thresholds=16), TrainingConfig(epochs=2, seed=3))


def test_candidates_follow_from_the_data_and_keep_what_is_given(clouds, monkeypatch):
    found = small(clouds)
    assert [name for name, *_ in found] == ["svm", "svm-derivative", "svm-spectrum", "curves", "curves-invariant"]
    assert all((model.num_directions, model.num_thresholds) == (8, 16) for _, model, *_ in found)
    assert all((training.epochs, training.seed, training.batch_size) == (2, 3, 16) for _, _, training, _ in found)
    assert {model.divide_by for _, model, *_ in found} == {None}
    assert {training.augmentation for _, _, training, _ in found} == {AUGMENTATION}
    vertices = int(clouds.shapes.offsets[0].diff()[clouds.indices("train")].sum())
    for most, augmentation in ((2 * vertices, AUGMENTATION), (2 * vertices - 1, Augmentation())):  # of two epochs
        monkeypatch.setattr("eulerscan.training.choice.MOST_AUGMENTED", most)
        assert {training.augmentation for _, _, training, _ in small(clouds)} == {augmentation}
    own = Augmentation(jitter=0.1)
    assert {training.augmentation for _, _, training, _ in candidates(clouds, None, TrainingConfig(augmentation=own))} == {own}
    letters = candidates(replace(clouds, shapes=clouds.shapes.with_points(clouds.shapes.points)))
    assert letters[0].model.num_directions == 64
    flat = clouds.shapes.select(torch.arange(len(clouds)))
    plane = replace(clouds, shapes=type(flat)(flat.points[:, :2], batch=flat.batch))
    names = ["svm", "svm-derivative", "svm-spectrum", "curves", "curves-invariant"]
    assert [name for name, *_ in candidates(plane)] == names
    outlines = es.collate([es.convert.from_outline(points) for points in flat.points[:, :2].view(len(clouds), -1, 2)])
    names[3:3] = ["svm-joint", "svm-joint-spectrum"]
    assert [name for name, *_ in candidates(replace(clouds, shapes=outlines))] == names
    others = ({"derivative": True}, {"max_dim": 1}, {"random_directions": True}, {"rotate_directions": True}, {"cost": 3.0})
    for given in (ModelConfig(**options) for options in others):
        found = candidates(replace(clouds, shapes=outlines), given)
        assert ("svm-joint" in [name for name, *_ in found]) == (given.cost is not None)
        for _, model, *_ in found:
            model.build(2, 4)


def test_every_candidate_is_a_run_and_its_scores_are_listed(clouds, tmp_path):
    choice = choose(tmp_path / "seed-3", clouds, SOURCE, small(clouds))
    assert list(choice.scores) == [*(candidate.name for candidate in small(clouds)), "ensemble"]
    assert json.loads((tmp_path / "seed-3" / "choice.json").read_text()) == choice._asdict()
    for candidate in small(clouds):
        model, config = load_run(tmp_path / "candidates" / f"seed-3-{candidate.name}")
        assert config == RunConfig.of(clouds, SOURCE, candidate.model, candidate.training)
        for split, name in (("val", "validation"), ("test", "test")):
            assert 100 * loop.evaluate(model, clouds, split).accuracy == pytest.approx(choice.scores[candidate.name][name])


def bars(angles):
    """Bars at these angles in degrees in the plane: of one class thinner, of the other thicker, alternating."""
    turns = es.rotations.in_plane(torch.deg2rad(torch.as_tensor(angles, dtype=torch.float32)))
    corners = torch.tensor([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])
    labels = torch.arange(len(turns)) % 2
    height = torch.where(labels == 0, 0.3, 0.34) + 0.02 * torch.rand(len(turns), generator=torch.Generator().manual_seed(0))
    outlines = [
        es.convert.from_outline((corners * torch.tensor([1.0, h])) @ turn.T) for turn, h in zip(turns, height, strict=True)
    ]
    return es.collate(outlines), labels


def collection(shapes, labels):
    return es.datasets.Dataset("bars", shapes, labels, ("first", "second"), stratified(labels, seed=0))


def test_networks_see_any_orientation_where_the_svm_on_spectra_is_ahead(tmp_path):
    angles = 360 * torch.rand(80, generator=torch.Generator().manual_seed(1))
    turned = collection(*bars(angles))  # thinner or thicker, at any angle
    shapes = bars(angles % 40 + 90 * (torch.arange(80) // 2 % 2))[0]
    upright = collection(shapes, torch.arange(80) // 2 % 2)  # lying or standing
    for name, data, wanted in (("turned", turned, ANY_ORIENTATION), ("upright", upright, AUGMENTATION)):
        choice = choose(tmp_path / name / "seed-3", data, {"name": name, "options": {}}, small(data))
        ahead = choice.scores["svm-spectrum"]["validation"] > choice.scores["svm"]["validation"]
        assert ahead == (wanted == ANY_ORIENTATION)
        for network in ("curves", "curves-invariant"):
            config = RunConfig.read(tmp_path / name / "candidates" / f"seed-3-{network}" / "config.json")
            assert config.training.augmentation == wanted
        assert RunConfig.read(tmp_path / name / "seed-3" / "config.json").training.augmentation == wanted
        assert any("svm-spectrum, which rotations" in reason for reason in choice.reasons) == ahead


@pytest.mark.parametrize("given", [Augmentation(jitter=0.1), AUGMENTATION, ANY_ORIENTATION])
def test_an_augmentation_that_is_given_stays(given, tmp_path):
    turned = collection(*bars(360 * torch.rand(80, generator=torch.Generator().manual_seed(1))))
    tried = candidates(turned, ModelConfig(num_directions=8), TrainingConfig(epochs=1, augmentation=given))
    choice = choose(tmp_path / "seed-3", turned, {"name": "bars", "options": {}}, tried)
    config = RunConfig.read(tmp_path / "candidates" / "seed-3-curves" / "config.json")
    assert config.training.augmentation == given
    assert not any("svm-spectrum, which rotations" in reason for reason in choice.reasons)


def test_a_classifier_no_better_than_the_largest_class_says_so(clouds, tmp_path):
    shuffled = clouds.labels[torch.randperm(len(clouds), generator=torch.Generator().manual_seed(0))]
    for name, labels, tells in (
        ("shapes", clouds.labels, True),
        ("blocks", clouds.labels, False),
        ("shuffled", shuffled, False),
    ):
        splits = stratified(labels, seed=0)
        block_of = {int(number): split for split, numbers in splits.items() for number in numbers}
        strata = [block_of[number] for number in range(len(clouds))] if name == "blocks" else ()  # one for validation
        data = replace(clouds, labels=labels, splits=splits, strata=strata)
        choice = choose(tmp_path / name / "seed-3", data, SOURCE, small(data))
        said = [reason for reason in choice.reasons if "is not above the largest class alone, 25.0 %" in reason]
        assert [reason.split()[0] for reason in said] == ([] if tells else [choice.kept])
    balanced = [one._replace(training=replace(one.training, balance="weights")) for one in small(data)]
    assert not any("largest class" in reason for reason in choose(tmp_path / "balanced", data, SOURCE, balanced).reasons)


def test_orientation_is_free_where_the_svm_on_spectra_is_better_by_a_standard_error():
    labels = torch.arange(12) % 2

    def logits(*wrong):
        guesses = labels.clone()
        guesses[list(wrong)] = 1 - guesses[list(wrong)]
        return torch.nn.functional.one_hot(guesses, 2).float()

    pairs = [f"{i // 2}" for i in range(12)]
    few, some, none = logits(0), logits(0, 2, 4), logits()
    for found, strata, wanted in (
        ({}, None, False),
        ({"svm": some, "svm-derivative": some, "svm-spectrum": none}, None, True),
        ({"svm": some, "svm-derivative": few, "svm-spectrum": none}, None, False),  # one shape is a standard error
        ({"svm": some, "svm-derivative": logits(1, 3, 5, 7), "svm-spectrum": few}, None, True),  # by 2 of 2, by 3 of 5
        ({"svm": some, "svm-derivative": logits(1, 3, 5), "svm-spectrum": few}, None, False),  # by 2 of 4
        ({"svm": logits(0, 1, 2), "svm-spectrum": none}, None, True),
        ({"svm": logits(0, 1), "svm-spectrum": none}, pairs, False),  # of one block
        ({"svm": some, "svm-spectrum": none, "svm-joint": none, "curves": none}, None, True),
        ({"svm": few, "svm-joint": none}, None, False),
    ):
        assert _is_orientation_free(found, labels, strata) == wanted


def test_an_ensemble_is_a_run_whose_members_are_trained_again(clouds, tmp_path):
    tried = [candidate for candidate in small(clouds) if candidate.name in ("svm-derivative", "curves")]
    choice = choose(tmp_path / "seed-3", clouds, SOURCE, tried)
    assert choice.kept == "ensemble"
    model, config = load_run(tmp_path / "seed-3")
    places = {candidate.model: load_run(tmp_path / "candidates" / f"seed-3-{candidate.name}")[0] for candidate in tried}
    labels = clouds.labels[clouds.splits["val"]]
    members = [places[member] for member in config.model.members]
    scores = [choice.scores[candidate.name]["validation"] for candidate in tried]
    assert config.model.members[0] == tried[scores.index(max(scores))].model  # the best one is first
    calibrations = [calibrate(loop.predict(member, clouds, "val"), labels) for member in members]
    assert [*map(Calibration, config.model.temperatures, config.model.weights)] == calibrations
    before = loop.evaluate(Ensemble(members, calibrations), clouds, "test")
    assert 100 * before.accuracy == pytest.approx(choice.scores["ensemble"]["test"])
    whole = split_source(clouds, config.data)
    assert not len(whole.splits["val"])
    svm = next(number for number, member in enumerate(config.model.members) if member.model == "svm")
    both = clouds.shapes[whole.splits["train"]], clouds.labels[whole.splits["train"]]
    again = config.model.members[svm].build(3, 4).fit(*both)
    assert torch.equal(model.members[svm].head.support, again.head.support)
    assert json.loads((tmp_path / "seed-3" / "result.json").read_text())["model"] == "ensemble"


def test_training_of_an_ensemble_resumes_to_the_bit_and_is_overwritten_as_a_whole(clouds, tmp_path, monkeypatch):
    member = ModelConfig(model="curves", num_directions=8, num_thresholds=16, learn_directions=False)
    config = EnsembleConfig((member, replace(member, directed=True)), (1.0, 0.5), (0.2, 0.8))
    run = RunConfig.of(clouds, SOURCE, config, TrainingConfig(epochs=2))
    start(tmp_path / "one", run, clouds)
    whole, epoch, done = loop._epoch, loop._epoch, []

    def killed(*arguments):
        if len(done) == 3:  # in the last epoch of the second member
            raise KeyboardInterrupt
        done.append(1)
        return epoch(*arguments)

    monkeypatch.setattr(loop, "_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path / "two", run, clouds)
    monkeypatch.setattr(loop, "_epoch", whole)
    start(tmp_path / "two", run, clouds, resume=True)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]
    start(tmp_path / "two", replace(run, training=TrainingConfig(epochs=1)), clouds, overwrite=True)
    assert load_run(tmp_path / "two")[1].training.epochs == 1


def test_a_candidate_is_kept_alone_if_it_is_better_by_more_than_a_standard_error():
    names = ["good", *(f"bad-{number}" for number in range(60))]
    tried = [Candidate(name, ModelConfig(model="svm"), TrainingConfig()) for name in names]
    labels = torch.arange(100) % 2
    right = torch.eye(2)[labels]
    often = torch.where(torch.arange(100)[:, None] < 97, right, 1 - right)  # sixty against one, where they are wrong

    def logits(part):
        return {"val": {name: (right if name == "good" else often)[part] for name in names}}

    assert _decide(tried, logits(slice(None)), labels).name == "good"
    few = slice(91, 98)  # one shape of seven is no proof
    assert _decide(tried, logits(few), labels[few]).name == "ensemble"
    assert _decide(tried[:1], {"val": {"good": 1 - right}}, labels).name == "good"
    scans = [f"s{max(0, i - 96)}" for i in range(100)]  # each shape that the ensemble gets wrong is a block of its own
    assert _decide(tried, logits(slice(None)), labels, scans).name == "good"
    assert _decide(tried, logits(slice(None)), labels, ["s"] * 97 + ["t"] * 3).name == "ensemble"  # one block is no proof


def test_the_one_that_is_kept_is_trained_again_on_validation_shapes(clouds, tmp_path):
    svm = [candidate for candidate in small(clouds) if candidate.name == "svm"]
    choice = choose(tmp_path / "seed-3", clouds, SOURCE, svm)
    model, config = load_run(tmp_path / "seed-3")
    whole = split_source(clouds, config.data)
    both = torch.cat([clouds.splits["train"], clouds.splits["val"]])
    assert torch.equal(whole.splits["train"], both.sort().values)
    assert not len(whole.splits["val"])
    assert torch.equal(whole.splits["test"], clouds.splits["test"])
    again = svm[0].model.build(3, 4).fit(clouds.shapes[whole.splits["train"]], clouds.labels[whole.splits["train"]])
    assert torch.equal(model.head.support, again.head.support)
    assert any("together" in reason for reason in choice.reasons)
    selecting = [candidate._replace(training=replace(candidate.training, select_by="accuracy")) for candidate in svm]
    choose(tmp_path / "seed-4", clouds, SOURCE, selecting)
    assert "refit" not in load_run(tmp_path / "seed-4")[1].data


def test_a_budget_shortens_networks_and_is_kept_when_resumed(clouds, tmp_path, monkeypatch):
    names = ["svm", "curves", "curves-invariant"]
    tried = [replace_epochs(candidate, 10) for candidate in small(clouds) if candidate.name in names]
    # A clock that stands still, and half a second for every epoch: what is left is shared with the last training.
    monkeypatch.setattr("eulerscan.training.choice.time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr("eulerscan.training.choice.train", lambda *_, **__: SimpleNamespace(seconds_per_epoch=0.5))
    choice = choose(tmp_path / "seed-3", clouds, SOURCE, tried, budget=6.0)
    assert list(choice.scores) == [*names, "ensemble"]
    places = [tmp_path / "candidates" / f"seed-3-{name}" / "config.json" for name in names[1:]]
    assert [RunConfig.read(place).training.epochs for place in places] == [3, 4]  # 6 s / 4 and 6 s / 3
    monkeypatch.setattr("eulerscan.training.runs.train", None)  # nothing is trained again
    assert choose(tmp_path / "seed-3", clouds, SOURCE, tried, budget=6.0, resume=True) == choice


def test_networks_that_a_budget_gives_too_few_epochs_are_left_out(clouds, tmp_path, monkeypatch):
    tried = [replace_epochs(candidate, 100) for candidate in small(clouds) if candidate.name in ("svm", "curves")]
    monkeypatch.setattr("eulerscan.training.choice.time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr("eulerscan.training.choice.train", lambda *_, **__: SimpleNamespace(seconds_per_epoch=0.5))
    choice = choose(tmp_path / "seed-3", clouds, SOURCE, tried, budget=6.0)  # 6 of 100 epochs
    assert list(choice.scores) == ["svm"]


def test_what_a_budget_left_out_stays_out_when_resumed(clouds, tmp_path, monkeypatch):
    tried = [candidate for candidate in small(clouds) if candidate.name in ("svm", "curves")]
    with monkeypatch.context() as patch:
        patch.setattr("eulerscan.training.choice._within", lambda candidate, *_: candidate if candidate.name == "svm" else None)
        choice = choose(tmp_path / "seed-3", clouds, SOURCE, tried, budget=1.0)
    assert list(choice.scores) == ["svm"]
    assert choose(tmp_path / "seed-3", clouds, SOURCE, tried, budget=600.0, resume=True) == choice


def test_other_epochs_are_not_ignored_silently(clouds, tmp_path):
    network = [candidate for candidate in small(clouds) if candidate.name == "curves"]
    choose(tmp_path / "seed-3", clouds, SOURCE, [replace_epochs(network[0], 1)])
    shutil.rmtree(tmp_path / "seed-3")
    with pytest.raises(ValueError, match="seed-3-curves holds a run with other settings"):
        choose(tmp_path / "seed-3", clouds, SOURCE, [replace_epochs(network[0], 2)])
    svm = small(clouds)[0]
    choose(tmp_path / "seed-4", clouds, SOURCE, [svm, network[0]])
    with pytest.raises(ValueError, match="seed-4-svm holds a run with other settings"):  # no budget shortens an SVM
        choose(tmp_path / "seed-4", clouds, SOURCE, [replace_epochs(svm, 9), replace_epochs(network[0], 9)], resume=True)


def test_the_choice_is_kept_when_resumed_on_a_processor_that_rounds_otherwise(clouds, tmp_path, monkeypatch):
    tried = [candidate for candidate in small(clouds) if candidate.name.startswith("svm")]
    choice = choose(tmp_path / "seed-3", clouds, SOURCE, tried)
    assert choice.kept == "ensemble"
    config = (tmp_path / "seed-3" / "config.json").read_bytes()
    monkeypatch.setattr(
        "eulerscan.training.choice.calibrate", lambda *found: Calibration(1.0, 1.001 * calibrate(*found).weight)
    )
    monkeypatch.setattr("eulerscan.training.runs.train", None)  # nothing is trained again
    assert choose(tmp_path / "seed-3", clouds, SOURCE, tried, resume=True).kept == "ensemble"
    assert (tmp_path / "seed-3" / "config.json").read_bytes() == config


def test_orientation_is_kept_when_resumed_on_a_processor_that_rounds_otherwise(tmp_path, monkeypatch):
    turned, source = (
        collection(*bars(360 * torch.rand(80, generator=torch.Generator().manual_seed(1)))),
        {"name": "bars", "options": {}},
    )
    tried = [candidate for candidate in small(turned) if candidate.name in ("svm", "svm-spectrum", "curves")]
    choice = choose(tmp_path / "seed-3", turned, source, tried)
    place = tmp_path / "candidates" / "seed-3-curves" / "config.json"
    config = place.read_bytes()
    assert RunConfig.read(place).training.augmentation == ANY_ORIENTATION
    monkeypatch.setattr("eulerscan.training.choice._is_orientation_free", lambda *_: False)
    with monkeypatch.context() as patch:
        patch.setattr("eulerscan.training.runs.train", None)  # nothing is trained again
        assert choose(tmp_path / "seed-3", turned, source, tried, resume=True) == choice
    assert place.read_bytes() == config
    # A network that was not trained yet follows the one that was, whichever comes first.
    for missing in ("curves-invariant", "curves"):
        shutil.rmtree(tmp_path / "seed-3")
        shutil.rmtree(tmp_path / "candidates" / f"seed-3-{missing}", ignore_errors=True)
        names = ("svm", "svm-spectrum", "curves", "curves-invariant")
        choose(tmp_path / "seed-3", turned, source, [one for one in small(turned) if one.name in names], resume=True)
        other = RunConfig.read(tmp_path / "candidates" / f"seed-3-{missing}" / "config.json")
        assert other.training.augmentation == ANY_ORIENTATION


def test_overwriting_does_not_keep_the_epochs_of_another_budget(clouds, tmp_path):
    network = [candidate for candidate in small(clouds) if candidate.name == "curves"]
    choose(tmp_path / "seed-3", clouds, SOURCE, [replace_epochs(network[0], 1)])
    choose(tmp_path / "seed-3", clouds, SOURCE, [replace_epochs(network[0], 2)], budget=600.0, overwrite=True)
    assert load_run(tmp_path / "seed-3")[1].training.epochs == 2


def test_what_is_tried_must_not_be_given(clouds):
    for options in ({"spectrum": True}, {"joint": True}):
        with pytest.raises(
            ValueError, match="must not be given unless the model is svm: the automatic choice tries it, got True"
        ):
            candidates(clouds, ModelConfig(**options))


def test_a_run_on_joint_features_is_loaded_as_it_was(tmp_path):
    source = {"name": "digits", "options": {"form": "meshes"}}
    data = load("digits", form="meshes")
    data = replace(data, splits={name: indices[:60] for name, indices in data.splits.items()})
    config = ModelConfig("svm", joint=True, num_directions=8, num_thresholds=12)
    start(tmp_path / "run", RunConfig.of(data, source, config, TrainingConfig()), data, progress=False)
    model, _ = load_run(tmp_path / "run")
    again = config.build(2, len(data.classes)).fit(data.shapes[data.indices("train")], data.labels[data.indices("train")])
    assert isinstance(model, ECTSVM)
    test = data.shapes[data.indices("test")]
    assert torch.equal(model(test), again(test))


def test_candidates_with_random_directions_have_no_spectrum(clouds):
    found = candidates(clouds, ModelConfig(random_directions=True, num_thresholds=16))
    assert all(model.build(3, 4) is not None for _, model, *_ in found)
    assert "svm-spectrum" not in [name for name, *_ in found]


def replace_epochs(candidate, epochs):
    return candidate._replace(training=replace(candidate.training, epochs=epochs))


def test_finished_candidates_are_not_repeated(clouds, tmp_path, monkeypatch):
    tried = [candidate for candidate in small(clouds) if candidate.name in ("svm", "curves")]
    first = choose(tmp_path / "seed-3", clouds, SOURCE, tried)

    def fail(*args, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr("eulerscan.training.runs.train", fail)
    assert choose(tmp_path / "seed-3", clouds, SOURCE, tried, resume=True) == first
    with pytest.raises(FileExistsError, match="already holds a run"):
        choose(tmp_path / "seed-3", clouds, SOURCE, tried)


def test_an_svm_is_a_run_like_the_others(clouds, tmp_path):
    config = ModelConfig(model="svm", num_directions=8, num_thresholds=16)
    model = config.build(3, 4)
    trained = train(model, clouds, TrainingConfig(), tmp_path)
    assert isinstance(model, ECTSVM)
    assert trained.history[0]["val_accuracy"] > 50
    assert (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("augmentation", [Augmentation(), Augmentation(jitter=0.01)], ids=["as they are", "augmented"])
@pytest.mark.parametrize("name", ["curves", "cnn"])
def test_fixed_transforms_give_the_same_weights_and_validation_to_the_bit(clouds, name, augmentation, monkeypatch):
    """Those of validation shapes are fixed even if training shapes are not."""
    config = TrainingConfig(epochs=3, batch_size=16, augmentation=augmentation)
    outcomes = []
    for most in (0, 2**28):
        monkeypatch.setattr(loop, "MOST_FIXED", most)
        model = ModelConfig(model=name, num_directions=16, num_thresholds=16, learn_directions=False).build(3, 4)
        histories = []
        calls = layer_calls(
            model, monkeypatch, lambda one=model, found=histories: found.append(train(one, clouds, config).history)
        )
        losses = [(epoch["loss"], epoch["val_loss"]) for epoch in histories[0]]
        outcomes.append((len(calls), model.state_dict(), losses))
    (many, one, first), (few, two, second) = outcomes
    assert few < many
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert first == second


def test_a_classifier_of_python_is_saved_as_a_run(clouds, tmp_path):
    options = ModelConfig(num_directions=16, num_thresholds=8)
    made = es.models.auto(clouds, options, TrainingConfig(epochs=1), folder=str(tmp_path / "run"), progress=False)
    loaded, config = load_run(tmp_path / "run")
    assert config.classes == clouds.classes
    assert not loaded.training
    shapes = clouds.shapes[:5]
    assert torch.equal(loaded(shapes), made(shapes))
    config.check_data(split_source(clouds, config.data))  # as evaluate does
    with pytest.raises(FileExistsError, match="already holds a run"):
        es.models.auto(clouds, folder=tmp_path / "run")


def test_a_choice_needs_validation_shapes(clouds, tmp_path):
    without = replace(clouds, splits={name: clouds.splits[name] for name in ("train", "test")})
    with pytest.raises(ValueError, match="validation split of manifolds must not be empty"):
        choose(tmp_path / "seed-3", without, SOURCE, small(without))
    with pytest.raises(ValueError, match="validation split of manifolds must not be empty"):
        auto(without)


def test_directions_that_are_rotated_are_not_computed_once(clouds):
    config = ModelConfig(model="curves", num_directions=8, num_thresholds=16, learn_directions=False, rotate_directions=True)
    model = config.build(3, 4)
    assert loop._fixed_transforms(model, clouds, TrainingConfig(), ["train", "val"]) is None


def layer_calls(model, monkeypatch, call):
    """How often the layer transforms shapes."""
    calls = []
    hook = model.layer.register_forward_hook(lambda *_: calls.append(1))
    call()
    hook.remove()
    return calls


def test_folds_test_every_shape_once(clouds):
    splits = [fold(clouds.labels, number, 5, seed=1) for number in range(5)]
    assert torch.equal(torch.cat([split["test"] for split in splits]).sort().values, torch.arange(len(clouds)))
    for split in splits:
        assert len(torch.cat([*split.values()]).unique()) == len(clouds)
        assert torch.bincount(clouds.labels[split["test"]]).tolist() == [8] * 4
    with pytest.raises(ValueError, match="number must be from 0 to 4"):
        fold(clouds.labels, 5, 5)
    with pytest.raises(ValueError, match="num_folds must be at most 3, .*got 4"):
        fold(torch.zeros(3, dtype=torch.int64), 0, 4)


def test_the_majority_is_that_of_the_training_shapes(clouds):
    labels = torch.tensor([0] * 6 + [1] * 4 + [0] + [1] * 4)
    splits = {"train": torch.arange(10), "test": torch.arange(10, 15)}
    dataset = replace(clouds.select(torch.arange(15)), labels=labels, splits=splits)
    assert majority(dataset) == 20.0  # the first class, of which the test split has one
