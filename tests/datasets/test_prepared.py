import dataclasses
import errno
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan.datasets import Dataset, prepared, registry
from eulerscan.datasets.registry import Description

MADE: list[int] = []


def make(*, count: int = 4) -> Dataset:
    """A weighted graph or nothing, in turns."""
    MADE.append(count)
    graph = es.Complex(
        torch.tensor([[0.0, -0.0], [1e-40, 3.0], [0.1, 0.2]]),
        [torch.tensor([[0, 1], [1, 2]])],
        weights=(torch.tensor([1.0, 2, 3]), torch.tensor([0.5, 0.25])),
    )
    shapes = es.collate([graph, graph[:0], es.Complex(torch.empty(0, 2))] * count)
    labels = torch.arange(len(shapes)) % 2
    return Dataset("toy", shapes, labels, ("Möbius strip", "-1"), {"train": torch.tensor([1, 0])})


@pytest.fixture
def toy(fresh, monkeypatch):
    MADE.clear()
    description = Description("toy", "what", "size", "origin", make, official=True)
    monkeypatch.setitem(registry._DESCRIPTIONS, "toy", description)
    return description


def equal(one: Dataset, other: Dataset) -> bool:
    def bits(dataset):
        shapes = dataset.shapes
        tensors = [shapes.points, shapes.offsets, shapes.packed.simplices, dataset.labels, *dataset.splits.values()]
        tensors += [] if shapes.packed.weights is None else [shapes.packed.weights]
        return [(t.dtype, t.shape, t.numpy().tobytes()) for t in tensors], shapes.rows, dataset.classes, list(dataset.splits)

    return bits(one) == bits(other)


def test_a_data_set_comes_back_bit_for_bit(toy):
    first = toy.load()
    again = toy.load()
    assert MADE == [4]
    assert equal(first, again)
    assert again.shapes.points.data_ptr() != first.shapes.points.data_ptr()
    assert es.ect(again.shapes, es.directions.circle(3), es.thresholds(4)).shape == (8, 3, 4)


@pytest.mark.parametrize("form", ["points", "graphs", "pixels"])
def test_every_kind_of_complex_comes_back(form, fresh):
    pytest.importorskip("sklearn")
    dataset = es.datasets.load("digits", form=form)
    prepared.save(dataset, {"form": form})
    assert equal(prepared.load("digits", {"form": form}), dataset)


def test_other_options_are_another_file(toy, monkeypatch):
    assert len(toy.load(count=2)) == 4
    assert len(toy.load(count=3)) == 6
    assert MADE == [2, 3]
    assert [file.name.rpartition("-")[0] for file in prepared.files_of("toy")] == ["count=2", "count=3"]
    monkeypatch.setattr(prepared, "FORMAT", prepared.FORMAT + 1)
    toy.load(count=2)
    assert MADE == [2, 3, 2]


@pytest.mark.parametrize("damage", ["empty", "half", "tail", "flipped", "garbage", "another", "lacking", "ranges"])
def test_a_damaged_file_is_prepared_again(toy, damage, recwarn):
    first = toy.load()
    path = toy.file({})
    content = path.read_bytes()
    if damage == "another":
        toy.load(count=2)
        path.write_bytes(toy.file({"count": 2}).read_bytes())
        MADE.pop()
    elif damage in ("lacking", "ranges"):
        with np.load(path) as file:
            arrays = dict(file)
        if damage == "lacking":
            del arrays["offsets"]
        else:
            arrays["simplices"][0] = 1000
        np.savez(path, **arrays)
    else:
        where = content.index(first.shapes.points.numpy().tobytes())
        flipped = content[:where] + bytes([content[where] ^ 1]) + content[where + 1 :]
        path.write_bytes(
            {"empty": b"", "half": content[: len(content) // 2], "tail": content[:-1], "flipped": flipped}.get(
                damage, b"x" * 99
            )
        )
    again = toy.load()
    assert MADE == [4, 4]
    assert equal(first, again)
    toy.load()
    assert MADE == [4, 4]
    assert not recwarn.list


def test_a_full_disk_is_named_and_leaves_no_file(toy, monkeypatch):
    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match=r"Could not write .*toy.*npz: No space left on device.*EULERSCAN_DATA") as caught:
        toy.load()
    assert caught.value.errno == errno.ENOSPC
    assert list(toy.file({}).parent.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(toy, fresh):
    fresh.mkdir()
    (fresh / "prepared").write_text("a file where a folder should be")
    with pytest.raises(OSError, match=r"Could not write .*toy.*npz: "):
        toy.load()


def test_a_read_only_cache_serves_what_it_has(toy, monkeypatch):
    first = toy.load()

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert equal(toy.load(), first)
    with pytest.raises(PermissionError, match=r"Could not write .*count=9.*: Permission denied"):
        toy.load(count=9)


def run(code: str, **options) -> subprocess.Popen:
    script = f"from test_prepared import *\n{textwrap.dedent(code)}"
    return subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent, **options)


def test_a_killed_process_leaves_no_damaged_file(toy):
    code = """
        import time
        savez = np.savez
        def stuck(file, **arrays):
            savez(file, **arrays)
            file.truncate(100)
            file.flush()
            print("half", flush=True)
            time.sleep(100)
        np.savez = stuck
        prepared.save(make(), {"count": 4})
    """
    with run(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        process.kill()
    assert not toy.file({}).exists()
    assert prepared.files_of("toy") == []
    assert equal(toy.load(), make())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes")
def test_a_file_that_grows_too_large_leaves_no_file(toy):
    process = run(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            prepared.save(make(), {"count": 4})
        except OSError as error:
            print(error)
        """,
        stdout=subprocess.PIPE,
        text=True,
    )
    text, _ = process.communicate(timeout=100)
    assert "Could not write" in text
    assert "File too large" in text
    assert list(toy.file({}).parent.iterdir()) == []


def test_two_processes_at_once_get_the_same(toy):
    code = """
        for _ in range(5):
            prepared.save(make(count=50), {"count": 50})
            found = prepared.load("toy", {"count": 50})
            assert found is not None and equal(found, make(count=50))
    """
    processes = [run(code) for _ in range(2)]
    assert [process.wait(timeout=200) for process in processes] == [0, 0]
    assert len(list(toy.file({}).parent.iterdir())) == 1


def test_the_seed_of_a_split_is_not_cached(toy, monkeypatch):
    seeded = dataclasses.replace(toy, official=False, maker=lambda *, count=4: dataclasses.replace(make(count=20), splits={}))
    one, other = seeded.load(seed=0), seeded.load(seed=1)
    assert MADE == [20]
    assert not torch.equal(one.splits["test"], other.splits["test"])
    assert torch.equal(one.splits["test"], seeded.load().splits["test"])


def test_points_in_column_major_order_are_restored(fresh):
    dataset = registry.load("manifolds", num_shapes=4, num_points=32)
    shapes = dataset.shapes.with_points(dataset.shapes.points.T.contiguous().T)
    prepared.save(dataclasses.replace(dataset, name="strided", shapes=shapes), {})
    assert torch.equal(prepared.load("strided", {}).shapes.points, dataset.shapes.points)
