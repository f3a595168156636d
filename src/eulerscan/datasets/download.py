"""Raw files of data sets: copied from a mirror or downloaded once, and kept in the cache folder."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import posixpath
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .._progress import progress
from ..io.cache import cache_folder, writing

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without an answer
# Raised by parsers of damaged files.
BROKEN = (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, LookupError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Source:
    """Where a raw file comes from.

    Attributes:
        path: Path below the cache folder, and below a mirror.
        url: URL, or ``None`` if the file cannot be downloaded.
        md5: Checksum of the file.
        recipe: How to make a file that cannot be downloaded.
    """

    path: str
    url: str | None = None
    md5: str | None = None
    recipe: str = ""


@contextlib.contextmanager
def reading(source: Source) -> Iterator[Path]:
    """Fetch a file, for a block that parses it. If parsing fails, the file is removed, so that it is fetched again."""
    path = fetch(source)
    try:
        yield path
    except BROKEN as error:
        remedy = "Remove it, so that it is fetched again."
        with contextlib.suppress(OSError):  # a shared folder may be read-only
            path.unlink()
            remedy = f"It was removed. The next attempt fetches it again from {mirror_folder() or source.url or 'a mirror'}."
        raise ValueError(f"{path} is damaged: {error}. {remedy}") from error


def fetch(source: Source) -> Path:
    """The file in the cache folder, copied from the mirror or downloaded if it is not there yet."""
    path = cache_folder() / "raw" / source.path
    if path.exists():
        return path
    mirror = mirror_folder()
    if mirror is not None:
        original = mirror / source.path
        if not original.is_file():
            remedy = f"Add it ({source.url}), or unset EULERSCAN_MIRROR to download it."
            if source.url is None:
                remedy = f"Add it: {source.recipe}"
            raise FileNotFoundError(f"EULERSCAN_MIRROR={mirror} has no file {source.path}. {remedy}")
        with writing(path) as partial:
            shutil.copyfile(original, partial)
    elif source.url is None:
        raise FileNotFoundError(
            f"{source.path} cannot be downloaded: {source.recipe} Set EULERSCAN_MIRROR to a folder that holds {source.path}."
        )
    else:
        try:
            content = _download(source.url, source.md5)
        except OSError as error:
            hint = f"Without internet access, set EULERSCAN_MIRROR to a folder that holds {source.path}."
            raise ConnectionError(f"Could not download {source.url}: {error}. {hint}") from error
        with writing(path) as partial:
            partial.write_bytes(content)
    return path


def mirror_folder() -> Path | None:
    """A folder with the raw files, used instead of downloads: ``EULERSCAN_MIRROR``, or ``None`` if it is not set."""
    given = os.environ.get("EULERSCAN_MIRROR")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        what = "which is a file" if folder.exists() else "which does not exist"
        raise NotADirectoryError(f"EULERSCAN_MIRROR must be a folder with the raw files of data sets, got {folder}, {what}.")
    return folder


def _download(url: str, md5: str | None) -> bytes:
    """The content of a file of a few megabytes, as all of ours are."""
    import http.client
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "eulerscan"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            length = int(response.headers.get("Content-Length") or 0)
            chunks = iter(lambda: response.read(CHUNK), b"")
            name = posixpath.basename(url)
            content = b"".join(progress(chunks, f"downloading {name}", total=-(-length // CHUNK) or None))
    except http.client.HTTPException as error:  # such as a malformed response
        raise ConnectionError(repr(error)) from error
    if length and len(content) != length:
        raise ConnectionError(f"received {len(content)} of {length} bytes")
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 is not None and digest != md5:
        raise ConnectionError(f"the MD5 checksum is {digest}, expected {md5}")
    return content


def members(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Members of a zip archive, in memory, by normalized name."""
    with zipfile.ZipFile(archive) as file:
        stored = {posixpath.normpath(info.filename): info for info in file.infolist()}
        missing = [name for name in names if name not in stored]
        if missing:
            raise ValueError(f"the archive has no member {', '.join(missing)}; it holds {', '.join(sorted(stored)) or 'none'}")
        return {name: file.read(stored[name]) for name in names}
