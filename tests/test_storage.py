import errno
import os
import resource
import socket
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import eulerscan as es
from eulerscan import bulk
from eulerscan._storage import locked, naming, remove_stale, replacing, write_json, write_text
from eulerscan.analysis.pairwise import PairwiseCheckpoint
from eulerscan.training.checkpoints import save_model


@contextmanager
def another_process(code, *arguments):
    """A process that runs the code, prints a line, and is killed when the block ends."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as partial:
        partial.write_text("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert list(path.parent.iterdir()) == [path]


def test_text_and_json_have_the_same_bytes_on_every_system(tmp_path):
    write_text(tmp_path / "a.csv", "ü\n")
    write_json(tmp_path / "a.json", {"a": [1]})
    assert (tmp_path / "a.csv").read_bytes() == b"\xc3\xbc\n"
    assert (tmp_path / "a.json").read_bytes() == b'{\n  "a": [\n    1\n  ]\n}\n'


def test_an_error_half_way_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as partial:
            partial.write_text("half")
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_is_named_as_it_was_given(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()

    def fail():
        with replacing(path) as partial:
            partial.write_text("all of it")

    with pytest.raises(OSError, match="folder") as caught:
        fail()
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("name", [f"part-{'x' * 246}.txt", "\U0001d4d4" * 63], ids=["ascii", "multibyte"])
def test_long_names_can_be_written(name, tmp_path):
    with replacing(tmp_path / name) as partial:
        assert [partial] == list(tmp_path.glob(".*.partial"))
        assert partial.match(".part-*.partial") == name.startswith("part-")
        partial.write_text("all of it")
    assert (tmp_path / name).read_text() == "all of it"


def test_where_nothing_can_be_written_the_writer_is_not_asked(tmp_path):
    path = tmp_path / f"{'x' * 252}.txt"  # too long for a file system

    def fail():
        with replacing(path):
            raise RuntimeError("of the writer")

    with pytest.raises(OSError, match="xxx") as caught:
        fail()
    assert caught.value.filename == str(path)


HALF_WRITTEN = """
    import pathlib, sys, time
    from eulerscan._storage import replacing
    with replacing(pathlib.Path(sys.argv[1])) as partial:
        partial.write_text("half")
        print("ready", flush=True)
        time.sleep(60)
"""


def test_a_process_killed_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with another_process(HALF_WRITTEN, path):
        assert len(list(tmp_path.iterdir())) == 2
    assert path.read_text() == "old"


def test_new_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    with replacing(tmp_path / "ours") as partial:
        partial.write_text("")
    assert os.stat(tmp_path / "ours").st_mode == os.stat(tmp_path / "usual").st_mode


def test_a_library_that_hides_its_files_does_not_hide_ours(tmp_path):
    (tmp_path / "usual").write_text("")
    with replacing(tmp_path / "ours") as partial:
        partial.unlink()
        os.close(os.open(partial, os.O_CREAT | os.O_WRONLY, 0o600))  # as safetensors does
    assert os.stat(tmp_path / "ours").st_mode == os.stat(tmp_path / "usual").st_mode


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named_by_the_file_that_was_written(number, tmp_path):
    path = tmp_path / "file.txt"
    for context in (replacing, naming):
        with pytest.raises(OSError, match="file.txt") as caught, context(path):
            raise OSError(number, os.strerror(number))
        assert caught.value.errno == number
    with pytest.raises(PermissionError, match="other"), naming(path):
        raise PermissionError(errno.EACCES, "denied", "other")
    with pytest.raises(OSError, match="^of reading$"), naming(path):  # perhaps of another file
        raise OSError("of reading")


def write_table(path):
    settings = bulk.Settings(3, es.ECTConfig(32, 32))
    numbers = np.random.default_rng(0).random((20, 32, 32), dtype=np.float32)
    bulk.write_transforms(path, settings, [([str(i) for i in range(20)], numbers)])


WRITERS = {
    "a.npz": write_table,
    "a.csv": write_table,
    "a.parquet": write_table,
    "model.safetensors": lambda path: save_model(torch.nn.Linear(50, 50), path),
    "shape.npz": lambda path: es.io.write(es.Complex(torch.rand(1000, 3)), path),
    "shape.ply": lambda path: es.io.write(es.Complex(torch.rand(1000, 3)), path),
    ".a.pairs": lambda path: [PairwiseCheckpoint(path.with_name("a"), {}).add((i, i), 0.5) for i in range(100)],
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_names_the_file_that_a_full_disk_refuses(name, tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    WRITERS[name](tmp_path / name)  # loads the libraries
    (tmp_path / name).unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limit[1]))
    try:
        with pytest.raises(OSError, match=name) as caught:
            WRITERS[name](tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "partial" not in str(caught.value)
    assert not list(tmp_path.glob(".*.partial"))
    assert not (tmp_path / name).exists() or name == ".a.pairs"


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "file.txt"
    with another_process(HALF_WRITTEN, path):
        remove_stale(tmp_path.glob(".*.partial"))
        assert len(list(tmp_path.iterdir())) == 1
    remove_stale([*tmp_path.glob(".*.partial"), tmp_path / "removed meanwhile"])
    assert list(tmp_path.iterdir()) == []


LOCKED = """
    import pathlib, sys, time
    from eulerscan._storage import locked
    with locked(pathlib.Path(sys.argv[1])):
        print("ready", flush=True)
        time.sleep(60)
"""


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path):
    path = tmp_path / "run" / ".lock"
    with another_process(LOCKED, path) as process:
        named = rf"run is in use by process {process.pid} on {socket.gethostname()}\."
        with pytest.raises(BlockingIOError, match=named), locked(path):
            pass
        process.kill()
        process.wait()
        assert path.exists()  # killed: it could not remove it
        with locked(path):
            assert str(os.getpid()) in path.read_text()
    assert not path.exists()


def test_a_lock_holds_within_a_process_and_ends_with_an_error(tmp_path):
    def fail():
        with locked(tmp_path / ".lock"), pytest.raises(BlockingIOError, match=str(os.getpid())), locked(tmp_path / ".lock"):
            pass
        with locked(tmp_path / ".lock"):
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert list(tmp_path.iterdir()) == []
