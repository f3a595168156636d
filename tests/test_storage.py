import os
import subprocess
import sys
import textwrap

import pytest

from eulerscan._storage import replacing


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as partial:
        partial.write_text("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert list(path.parent.iterdir()) == [path]


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


def test_where_nothing_can_be_written_the_writer_is_not_asked(tmp_path):
    path = tmp_path / f"{'x' * 240}.txt"  # too long with what is added to it

    def fail():
        with replacing(path):
            raise RuntimeError("of the writer")

    with pytest.raises(OSError, match="xxx") as caught:
        fail()
    assert caught.value.filename == str(path)


def test_a_process_killed_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    code = f"""
        import pathlib, sys, time
        from eulerscan._storage import replacing
        with replacing(pathlib.Path({str(path)!r})) as partial:
            partial.write_text("half")
            print("written", flush=True)
            time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert path.read_text() == "old"


def test_new_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    with replacing(tmp_path / "ours") as partial:
        partial.write_text("")
    assert os.stat(tmp_path / "ours").st_mode == os.stat(tmp_path / "usual").st_mode
