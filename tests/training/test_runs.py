import json
import math
import os
import socket
from dataclasses import asdict, replace

import pytest
import torch

from eulerscan import Complex, collate, datasets
from eulerscan._storage import locked
from eulerscan.nn.models import MODELS
from eulerscan.training import EnsembleConfig, ModelConfig, RunConfig, TrainingConfig, evaluate
from eulerscan.training.runs import load_run, start

SMALL = ModelConfig(model="mlp", num_directions=4, num_thresholds=5, hidden=(6,))


@pytest.fixture(scope="module")
def data():
    return datasets.load("manifolds", num_shapes=10, num_points=30)


@pytest.fixture
def config(data):
    return RunConfig.of(data, {"name": "manifolds", "options": {}}, SMALL, TrainingConfig(epochs=2))


def test_a_config_knows_the_dimensions_of_the_training_shapes(data, config):
    assert config.shape_dims == (0,)
    triangle = Complex(torch.eye(3), [torch.tensor([[0], [1], [2]])])
    for split, dims in (("train", (0, 2)), ("test", (0,))):
        where = int(data.splits[split][0])
        mixture = replace(data, shapes=collate([triangle if i == where else data.shapes[i] for i in range(len(data))]))
        assert RunConfig.of(mixture, config.data, SMALL, config.training).shape_dims == dims


def test_a_run_is_read_back_as_it_was(tmp_path, config, data):
    result = start(tmp_path / "run", config, data, progress=False)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "config.json",
        "metrics.jsonl",
        "model.safetensors",
        "result.json",
        "training.safetensors",
    ]
    model, read = load_run(tmp_path / "run")
    assert read == config
    assert not model.training
    scores = evaluate(model, data, "test")
    assert scores.confusion.tolist() == result["confusion"]
    assert 100 * scores.accuracy == result["test_accuracy"]
    assert result["parameters"] == model.num_parameters
    assert json.loads((tmp_path / "run" / "result.json").read_text()) == result


def test_other_data_are_refused(tmp_path, config, data):
    """Even where only the splits differ: test shapes would be among those that were trained on."""
    other = datasets.load("manifolds", num_shapes=10, num_points=30, seed=1)
    with pytest.raises(ValueError, match="is not what the run was trained on"):
        start(tmp_path, config, other, progress=False)


def test_a_finished_run_is_not_done_again(tmp_path, config, data):
    first = start(tmp_path, config, data, progress=False)
    before = (tmp_path / "training.safetensors").stat().st_mtime_ns
    assert start(tmp_path, config, data, resume=True, progress=False) == first
    assert (tmp_path / "training.safetensors").stat().st_mtime_ns == before


def test_nothing_is_overwritten_without_being_asked(tmp_path, config, data):
    start(tmp_path, config, data, progress=False)
    with pytest.raises(FileExistsError, match=r"holds a run.*--resume.*--overwrite"):
        start(tmp_path, config, data, progress=False)
    other = replace(config, training=TrainingConfig(epochs=1, seed=5))
    with pytest.raises(ValueError, match="other settings"):
        start(tmp_path, other, data, resume=True, progress=False)
    assert start(tmp_path, other, data, overwrite=True, progress=False)["seed"] == 5


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_with_other_things_is_left_alone(tmp_path, config, data, overwrite):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not the folder of a run"):
        start(tmp_path, config, data, overwrite=overwrite, progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.fixture
def finished(tmp_path, config, data):
    start(tmp_path, config, data, progress=False)
    return tmp_path


def tamper_config(folder, **changes):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(values | changes))


@pytest.mark.parametrize(
    ("damage", "error", "text"),
    [
        (lambda f: (f / "config.json").unlink(), FileNotFoundError, "config.json is missing: .* not the folder of a run"),
        (lambda f: (f / "model.safetensors").unlink(), FileNotFoundError, "model.safetensors is missing"),
        (lambda f: (f / "config.json").write_text("{"), ValueError, "config.json is damaged"),
        (lambda f: (f / "config.json").write_text("{}"), ValueError, "config.json is damaged"),
        (
            lambda f: tamper_config(f, dim=2),
            ValueError,
            r"layer.weight has shape \[4, 3\] in the file, \[4, 2\]",
        ),
        (
            lambda f: tamper_config(f, data={"folder": "scans", "seed": 0, "strata": 5}),
            ValueError,
            "config.json is damaged.* data.strata must be str .* got 5",
        ),
        (lambda f: (f / "model.safetensors").write_bytes(b"not tensors" * 9), ValueError, "model.safetensors is damaged"),
        (
            lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]),
            ValueError,
            "model.safetensors is damaged",
        ),
        (
            lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-4] + b"\0\0\0\0"),
            ValueError,
            "changed after training",
        ),
    ],
    ids=[
        "no config",
        "no weights",
        "half a config",
        "empty config",
        "other dimension",
        "number for a column",
        "garbage",
        "truncated",
        "tampered",
    ],
)
def test_a_damaged_run_is_named(finished, damage, error, text):
    damage(finished)
    with pytest.raises(error, match=text):
        load_run(finished)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"members": "cnn"}, "model.members must be tuple.*ModelConfig, .* got str 'cnn'"),
        ({"members": []}, "got 0 members"),
        ({"members": [asdict(ModelConfig("svm")), {"members": []}]}, "model.members.1.members is unknown"),
        ({"members": [asdict(ModelConfig("svm")), {"radius": 10**400}]}, "model.members.1.radius must be float, got 1000"),
        ({"temperatures": [math.nan, 1.0]}, r"model.temperatures must be tuple\[float, ...\], got list '\[nan"),
        ({"temperatures": [math.inf, 1.0]}, r"config.json is damaged.*positive temperature.*\(inf, 1.0\)"),
        ({"weights": [10**400, 1.0]}, r"model.weights must be tuple\[float, ...\], got list '\[1000"),
        ({"weights": [0.0, 1.0]}, r"positive temperature and weight.*\(0.0, 1.0\)"),
        ({"weights": [1.0]}, r"got 2 members, .* weights \(1.0,\)"),
    ],
)
def test_a_damaged_configuration_of_an_ensemble_is_named(tmp_path, config, changes, text):
    model = EnsembleConfig((ModelConfig("svm"), ModelConfig("mlp")), (1.0, 2.0), (0.5, 0.25))
    replace(config, model=model).write(tmp_path / "config.json")
    assert RunConfig.read(tmp_path / "config.json").model == model
    tamper_config(tmp_path, model=asdict(model) | changes)
    with pytest.raises(ValueError, match=text):
        load_run(tmp_path)


def test_no_run_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        load_run(tmp_path / "nowhere")


def test_the_first_weights_follow_from_the_seed_alone():
    one, again, other = (SMALL.build(3, 4, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["head.1.weight"], other["head.1.weight"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"model": "cmn"}, "model must be .* got 'cmn'. Did you mean cnn"),
        ({"model": "mlp", "preset": "modelnet"}, "preset of mlp must be .*4k, 65k.* got 'modelnet'"),
        ({"model": "curves", "preset": "4k"}, "preset of curves must be None.* got '4k'"),
        ({"model": "mlp", "circular": True}, "circular must be None for the model 'mlp', got True"),
        ({"num_directions": 0}, "num_directions must be at least 1, got 0"),
        ({"model": "svm", "spectrum": True, "num_directions": -5}, "num_directions must be at least 1, got -5"),
        ({"model": "cnn", "scale": -1.0}, "scale must be positive, got -1"),
        ({"num_rings": 2, "random_directions": True}, "num_rings must be None with random_directions, got 2"),
    ],
)
def test_models_that_cannot_be_built_are_named(options, text):
    with pytest.raises(ValueError, match=text):
        ModelConfig(**options).build(2, 3)


def test_a_model_that_cannot_be_built_removes_nothing(finished, config, data):
    wrong = replace(config, model=ModelConfig(model="cnn", num_directions=3))
    with pytest.raises(ValueError, match="layer must have more directions"):
        start(finished, wrong, data, overwrite=True, progress=False)
    assert load_run(finished)[1] == config


def test_weights_of_other_programs_are_not_overwritten(tmp_path, config, data):
    (tmp_path / "config.json").write_text('{"architectures": ["Llama"]}')
    (tmp_path / "model.safetensors").write_bytes(b"precious")
    with pytest.raises(ValueError, match=r"config.json is damaged"):
        start(tmp_path, config, data, overwrite=True, progress=False)
    assert (tmp_path / "model.safetensors").read_bytes() == b"precious"


def test_a_run_killed_while_it_wrote_its_first_file_can_begin_again(tmp_path, config, data):
    (tmp_path / ".config.json.0123.partial").write_text("{")
    assert start(tmp_path, config, data, progress=False)["epochs"] == 2


def test_a_folder_is_trained_in_by_one_process(finished, config, data, tmp_path):
    for folder in (finished, tmp_path / "new"):
        partial = folder / ".model.safetensors.0123.partial"
        with locked(folder / ".lock"):
            partial.touch()
            for options in ({}, {"resume": True}, {"overwrite": True}):
                with pytest.raises(BlockingIOError, match=rf"in use by process {os.getpid()} on {socket.gethostname()}\."):
                    start(folder, config, data, progress=False, **options)
            assert partial.exists()
    assert start(finished, config, data, resume=True, progress=False)["epochs"] == 2
    assert start(tmp_path / "new", config, data, progress=False)["epochs"] == 2
    assert not list((tmp_path / "new").glob(".*"))


def test_weights_may_be_read_by_whom_the_other_files_may(finished):
    assert len({path.stat().st_mode for path in finished.iterdir()}) == 1


@pytest.mark.parametrize("text", ["", "[]"])
def test_a_damaged_result_is_named(finished, text):
    (finished / "result.json").write_text(text)
    with pytest.raises(ValueError, match=r"result.json is damaged"):
        load_run(finished)


def test_a_checkpoint_without_optimizer_state_is_not_resumed(finished, config, data):
    from safetensors import safe_open
    from safetensors.torch import save_file

    path = finished / "training.safetensors"
    with safe_open(path, framework="pt") as file:
        kept = {name: file.get_tensor(name) for name in file.keys() if name.startswith("model.")}  # noqa: SIM118
        metadata = file.metadata()
    save_file(kept, path, metadata)
    (finished / "result.json").unlink()
    with pytest.raises(ValueError, match="optimizer state does not fit"):
        start(finished, config, data, resume=True, progress=False)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("num_classes", [2, 30])
@pytest.mark.parametrize(
    "config",
    [
        *(ModelConfig(name) for name in MODELS),
        *(ModelConfig(name, preset) for name, model in MODELS.items() for preset in model.presets),
        *(ModelConfig("harmonics", degree=degree, max_dim=2) for degree in (0, 1, 12)),
        ModelConfig("harmonics", degree=8, channels=(3,), hidden=(2,), num_thresholds=8),
        ModelConfig("curves", directed=True, channels=(2, 5), hidden=(3,), num_directions=1),
        ModelConfig("svm", spectrum=True),
        ModelConfig("svm", joint=True, num_directions=32, num_thresholds=64),
        ModelConfig("svm", spectrum=True, num_directions=100),
    ],
)
def test_the_number_of_parameters_is_at_least_its_bound(config, num_classes, dim):
    with torch.device("meta"):
        count = sum(tensor.numel() for tensor in config.build(dim, num_classes).state_dict().values())
    assert 0 < config.least_parameters(dim, num_classes) <= count


def test_the_bound_of_harmonics_grows_with_their_degree():
    least, more = (ModelConfig("harmonics", degree=degree).least_parameters(3, 4) for degree in (6, 10**6))
    assert least == 3 * 561 + 4
    assert more > 10**12


def test_a_run_killed_while_members_of_an_ensemble_are_removed_can_begin_again(tmp_path, config, data, monkeypatch):
    run = replace(config, model=EnsembleConfig((SMALL, SMALL), (1.0, 2.0), (0.5, 0.25)))
    start(tmp_path, run, data, progress=False)
    (tmp_path / "choice.json").write_text("{}")
    other = replace(run, training=TrainingConfig(epochs=1))

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            start(tmp_path, other, data, overwrite=True, progress=False)
    start(tmp_path, other, data, overwrite=True, progress=False)
    assert load_run(tmp_path)[1] == other
    assert not (tmp_path / "choice.json").exists()  # of another choice
