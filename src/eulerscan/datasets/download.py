"""The raw files that data sets are made from: copied from a mirror or downloaded once, read in memory."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import posixpath
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._progress import progress
from .places import cache_folder, mirror_folder, writing

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without an answer
# What parsing a file that is not what it should be may raise.
BROKEN = (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, LookupError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Source:
    """Where a raw file comes from.

    Attributes:
        path: Its place below the cache folder, and below a mirror.
        url: Its address, or ``None`` for what is nowhere to download.
        md5: What the file at that address is known by.
        recipe: How the file is made, where it cannot be downloaded.
    """

    path: str
    url: str | None = None
    md5: str | None = None
    recipe: str = ""


@contextlib.contextmanager
def reading(source: Source) -> Iterator[Path]:
    """The file, for a block that parses it. A file that cannot be parsed is named, and fetched again the next time."""
    path = fetch(source)
    try:
        yield path
    except BROKEN as error:
        then = "Remove it, so that it is fetched again."
        with contextlib.suppress(OSError):  # a folder shared by many may be read-only
            path.unlink()
            then = f"It is removed, so that the next try fetches it again from {mirror_folder() or source.url or 'a mirror'}."
        raise ValueError(f"{path} is broken: {error}. {then}") from error


def fetch(source: Source) -> Path:
    """The file in the cache folder, after copying or downloading it if it is not there."""
    path = cache_folder() / "raw" / source.path
    if path.exists():
        return path
    mirror = mirror_folder()
    if mirror is not None:
        original = mirror / source.path
        if not original.is_file():
            instead = f"Put it there{f' (from {source.url})' if source.url else ''}, or unset EULERSCAN_MIRROR to download it."
            if source.url is None:
                instead = f"Put it there: {source.recipe}"
            raise FileNotFoundError(f"The mirror {mirror} (EULERSCAN_MIRROR) lacks {source.path}. {instead}")
        with writing(path) as partial:
            shutil.copyfile(original, partial)
    elif source.url is None:
        raise FileNotFoundError(
            f"{source.path} cannot be downloaded: {source.recipe} Set EULERSCAN_MIRROR to a folder that holds {source.path}."
        )
    else:
        _download(source.url, path, source.md5, f"Without internet, set EULERSCAN_MIRROR to a folder that holds {source.path}.")
    return path


def members(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Some members of a zip archive, in memory, by name; superfluous slashes in names do not matter."""
    with zipfile.ZipFile(archive) as file:
        stored = {posixpath.normpath(info.filename): info for info in file.infolist()}
        lacking = [name for name in names if name not in stored]
        if lacking:
            raise ValueError(f"the archive lacks {', '.join(lacking)}; it holds {', '.join(sorted(stored)) or 'nothing'}")
        return {name: file.read(stored[name]) for name in names}


def _download(url: str, path: Path, md5: str | None, hint: str) -> None:
    import http.client
    import urllib.error
    import urllib.request

    digest = hashlib.md5(usedforsecurity=False)
    received = 0
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "eulerscan"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            length = int(response.headers.get("Content-Length") or 0)
            with writing(path) as partial, partial.open("wb") as file:
                for chunk in progress(_chunks(response), f"downloading {path.name}", total=-(-length // CHUNK) or None):
                    file.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                if length and received != length:
                    raise ConnectionError(f"only {received} of {length} bytes came")
                if md5 is not None and digest.hexdigest() != md5:
                    raise ConnectionError(f"the file that came is another one: its MD5 sum is {digest.hexdigest()}, not {md5}")
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise ConnectionError(f"Could not download {url}: {error}. {hint}") from error


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        while chunk := response.read(CHUNK):
            yield chunk
    except OSError as error:  # such as a time-out, which is not to be taken for an error of the disk
        raise ConnectionError(str(error)) from error
