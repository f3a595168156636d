import gzip
import hashlib
import http.server
import threading
import zipfile

import pytest

from eulerscan.datasets import download, load, mnist
from eulerscan.datasets.download import Source
from eulerscan.io import cache

CONTENT = bytes(range(256)) * 3000
STALLED = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unknown-length":
            self.send_header("Content-Length", str(len(CONTENT) + (self.path == "/short")))
        self.end_headers()
        self.wfile.write(CONTENT[:1000] if self.path == "/stalled" else CONTENT)
        if self.path == "/stalled":
            self.wfile.flush()
            STALLED.wait(20)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def filled(tmp_path, monkeypatch, fresh):
    """A mirror with one file."""
    folder = tmp_path / "mirror"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "file").write_bytes(CONTENT)
    monkeypatch.setenv("EULERSCAN_MIRROR", str(folder))
    return folder


def left(folder):
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


@pytest.mark.parametrize("path", ["file", "unknown-length"])
def test_a_file_is_downloaded_once(server, fresh, path):
    source = Source("sub/file", f"{server}/{path}", hashlib.md5(CONTENT).hexdigest())
    found = download.fetch(source)
    assert found == fresh / "raw" / "sub" / "file"
    assert found.read_bytes() == CONTENT
    assert download.fetch(Source("sub/file", "http://127.0.0.1:9/nobody-answers")) == found


def test_an_address_may_name_a_local_file(fresh, tmp_path):
    (tmp_path / "origin").write_bytes(CONTENT)
    assert download.fetch(Source("file", (tmp_path / "origin").as_uri())).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "md5", "text"),
    [
        ("missing", None, "HTTP Error 404"),
        ("short", None, "received 768000 of 768001 bytes"),
        ("file", "0" * 32, "the MD5 checksum is"),
    ],
)
def test_a_failed_download_is_named_and_leaves_nothing(server, fresh, path, md5, text):
    with pytest.raises(ConnectionError, match=f"Could not download {server}/{path}: {text}.* set EULERSCAN_MIRROR .*sub/file"):
        download.fetch(Source("sub/file", f"{server}/{path}", md5))
    assert left(fresh) == []


def test_a_stalled_connection_times_out(server, fresh, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    with pytest.raises(ConnectionError, match=f"Could not download {server}/stalled: timed out"):
        download.fetch(Source("sub/file", f"{server}/stalled"))
    STALLED.set()
    assert left(fresh) == []


def test_a_refused_connection_is_named(fresh):
    with pytest.raises(ConnectionError, match=r"Could not download http://127.0.0.1:9/x: .*refused"):
        download.fetch(Source("x", "http://127.0.0.1:9/x"))


def test_a_mirror_comes_before_the_internet(filled, fresh):
    found = download.fetch(Source("sub/file", "http://127.0.0.1:9/nobody-answers"))
    assert found.read_bytes() == CONTENT
    assert fresh in found.parents


def test_a_mirror_that_lacks_a_file_is_named(filled, fresh):
    with pytest.raises(FileNotFoundError, match=rf"EULERSCAN_MIRROR={filled} has no file a/b.zip. .*http"):
        download.fetch(Source("a/b.zip", "http://127.0.0.1:9/b.zip"))
    with pytest.raises(FileNotFoundError, match=r"no file mnist_superpixels/train.npz.* SLIC superpixels"):
        load("mnist-superpixels")
    assert left(fresh) == []


@pytest.mark.parametrize(("name", "text"), [("mnist-superpixels", "SLIC superpixels"), ("modelnet40", "Princeton")])
def test_a_file_without_a_url_says_how_it_is_made(fresh, name, text):
    with pytest.raises(
        FileNotFoundError, match=f"cannot be downloaded: .*{text}.* Set EULERSCAN_MIRROR to a folder that holds"
    ):
        load(name)


def test_a_mirror_that_is_not_a_folder_is_named(filled, monkeypatch):
    for path, what in ((filled / "sub" / "file", "is a file"), (filled / "nothing", "does not exist")):
        monkeypatch.setenv("EULERSCAN_MIRROR", str(path))
        with pytest.raises(NotADirectoryError, match=f"EULERSCAN_MIRROR must be a folder .* got {path}, which {what}"):
            download.fetch(Source("other"))


def test_the_cache_folder_is_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.setenv("EULERSCAN_DATA", "~/there")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / "there"
    monkeypatch.delenv("EULERSCAN_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg" / "eulerscan"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_folder() == tmp_path / ".cache" / "eulerscan"
    (tmp_path / "there").write_text("")
    monkeypatch.setenv("EULERSCAN_DATA", "~/there")
    with pytest.raises(NotADirectoryError, match="EULERSCAN_DATA must be a folder, got .*there"):
        cache.cache_folder()


def test_members_of_an_archive_are_found_by_normalized_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("A//A_x.txt", b"one")
        file.writestr("A/./A_y.txt", b"two")
    assert download.members(tmp_path / "a.zip", ["A/A_x.txt", "A/A_y.txt"]) == {"A/A_x.txt": b"one", "A/A_y.txt": b"two"}
    with pytest.raises(ValueError, match=r"no member A/B.txt, C; it holds A/A_x.txt, A/A_y.txt"):
        download.members(tmp_path / "a.zip", ["A/B.txt", "A/A_x.txt", "C"])


def damaged_archive(folder, kind):
    path = folder / "TUDataset" / "Letter-low.zip"
    path.parent.mkdir()
    members = dict.fromkeys(("A", "graph_indicator", "graph_labels", "node_attributes"), b"1\n")
    members["A"] = b"1, 1\n"
    if kind == "lacking":
        del members["graph_labels"]
    elif kind == "text":
        members["node_attributes"] = b"no number at all\n"
    with zipfile.ZipFile(path, "w") as file:
        for part, content in members.items():
            file.writestr(f"Letter-low//Letter-low_{part}.txt", content)
    content = path.read_bytes()
    path.write_bytes({"truncated": content[:-40], "empty": b"", "garbage": b"PK" + CONTENT}.get(kind, content))


@pytest.mark.parametrize("kind", ["lacking", "text", "truncated", "empty", "garbage"])
def test_a_damaged_archive_is_named_and_fetched_again(filled, fresh, kind):
    pytest.importorskip("torch_geometric")
    damaged_archive(filled, kind)
    text = "the archive has no member Letter-low/Letter-low_graph_labels.txt" if kind == "lacking" else ""
    with pytest.raises(ValueError, match=f"raw/TUDataset/Letter-low.zip is damaged: {text}.* removed") as caught:
        load("letter-low")
    assert str(filled) in str(caught.value)
    assert left(fresh) == []


@pytest.mark.parametrize("kind", ["truncated", "garbage", "empty", "short", "another"])
def test_a_damaged_compressed_file_is_named_and_fetched_again(filled, fresh, kind):
    good = gzip.compress(bytes.fromhex("00000801 0000ea60") + bytes(60000))
    files = {
        "truncated": good[:50],
        "garbage": CONTENT,
        "empty": b"",
        "short": gzip.compress(gzip.decompress(good)[:-1]),
        "another": gzip.compress(b"something else"),
    }
    file = filled / "mnist" / "train-labels-idx1-ubyte.gz"
    file.parent.mkdir()
    file.write_bytes(files[kind])
    with pytest.raises(ValueError, match=r"raw/mnist/train-labels-idx1-ubyte.gz is damaged: .* removed"):
        mnist._read(file.name, (60000,))
    assert left(fresh) == []
    file.write_bytes(good)
    assert len(mnist._read(file.name, (60000,))) == 60000


def test_a_full_disk_while_copying_is_named(filled, fresh, monkeypatch):
    def full(source, target):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(OSError, match=r"Could not write .*raw/sub/file: No space left"):
        download.fetch(Source("sub/file"))
    assert left(fresh) == []
