"""Where data sets are kept: the cache folder, and the mirror that may fill it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .._storage import replacing


def cache_folder() -> Path:
    """The folder of raw files and prepared data sets: ``EULERSCAN_DATA``, by default in the user's cache folder."""
    named = os.environ.get("EULERSCAN_DATA")
    folder = Path(named or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "eulerscan").expanduser()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"EULERSCAN_DATA must name a folder for data sets, got the file {folder}.")
    return folder


def mirror_folder() -> Path | None:
    """The folder that stands in for the internet: ``EULERSCAN_MIRROR``, or ``None`` where it is not set."""
    named = os.environ.get("EULERSCAN_MIRROR")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing there"
        raise NotADirectoryError(f"EULERSCAN_MIRROR must name a folder with the raw files of data sets, got {folder}: {what}.")
    return folder


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of ``path`` at the end; a failure names ``path`` and leaves nothing behind."""
    try:
        with replacing(path) as partial:
            yield partial
    except ConnectionError:
        raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"Could not write {path}: {error.strerror or error}. It needs room on the disk and write access; "
            "EULERSCAN_DATA names another folder for data sets",
        ) from error
