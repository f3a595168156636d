"""What tests share: seeds, dtypes, where raw files are, and a cache folder that is not the user's."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# `make test` draws the same examples in every run, so that a failure is seen again. `pytest --hypothesis-profile=random`
# draws new ones, and more of them.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("random", deadline=None, max_examples=400)
settings.load_profile("repeatable")

collect_ignore = ["accelerated.py", "pretend.py"]  # which register a device that would stay

LONG = ("test_accelerator.py", "test_reproduce.py", "test_docs.py", "test_readme.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: at the end, one process would work on them alone."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _threads():
    """A test, or a package that it calls, may leave torch with more threads. In each of two processes they would wait for
    each other: training is thirty times slower."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture
def poisoned_memory():
    """Uninitialised memory holds NaN, so that reading it cannot go unnoticed."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


BESIDE = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _cache_folder(tmp_path_factory):
    """One for all workers of a run, who prepare the same data sets at the same time."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EULERSCAN_DATA", str(shared / "eulerscan-data"))
        yield


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache folder, and no mirror."""
    folder = tmp_path / "data"
    monkeypatch.setenv("EULERSCAN_DATA", str(folder))
    monkeypatch.delenv("EULERSCAN_MIRROR", raising=False)
    return folder


@pytest.fixture
def mirror(monkeypatch):
    """The folder of raw files."""
    folder = Path(os.environ.get("EULERSCAN_MIRROR") or BESIDE)
    if not folder.is_dir():
        pytest.skip("no raw files: EULERSCAN_MIRROR is not set and ../shared/data is not there")
    monkeypatch.setenv("EULERSCAN_MIRROR", str(folder))
    return folder


@pytest.fixture
def run(capsys):
    """Run a command line, check its exit code, and give what it wrote to standard output and standard error."""
    from eulerscan.cli.main import main

    def call(*arguments, status: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert exit.value.code == status, err
        return out, err

    return call
