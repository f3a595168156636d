"""Atomic writes, and files that one process writes at a time."""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if sys.platform != "win32":
    import fcntl

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of writing, so the file that is written may be named


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write to a temporary file beside ``path``, which replaces it when the block ends.

    If the block raises, or its process is killed, ``path`` stays as it was. Of two processes that write at the same time, the
    last one wins. Permissions are those of any new file, whatever the block does to the temporary one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name has at most 255 bytes, and a character at most four.
    partial = path.with_name(f".{path.name[:50]}.{uuid.uuid4().hex}.partial")
    with naming(path, partial):
        with suppress(FileNotFoundError):
            path.lstat()  # raises if the name is too long, which that of the temporary file is not
        file = partial.open("xb")  # raises an OSError if the folder is not writable; libraries may raise anything
        try:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            with suppress(OSError):
                _lock(file)  # so that `remove_stale` knows that it is in use
            if sys.platform == "win32":
                file.close()  # an open file could not be replaced
            yield partial
            with partial.open("rb+") as written:
                os.fsync(written.fileno())
            partial.chmod(mode)  # some libraries make a file of their own that nobody else can read
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
            file.close()


def write_text(path: Path, text: str) -> None:
    """Write a text file, atomically, in UTF-8 and with the line ends of ``text``."""
    with replacing(path) as partial:
        partial.write_bytes(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, atomically."""
    write_text(path, json.dumps(value, indent=2) + "\n")


@contextmanager
def naming(path: Path, partial: Path | None = None) -> Iterator[None]:
    """Name ``path`` in errors of a full disk, which name no file, and in those about its temporary file."""
    try:
        yield
    except OSError as error:
        if (error.filename is None and error.errno in FULL) or (partial is not None and error.filename == str(partial)):
            error.filename = str(path)
        raise


def remove_stale(partials: Iterable[Path]) -> None:
    """Remove temporary files that killed processes left. Those that a process still writes stay."""
    for partial in partials:
        with suppress(OSError), partial.open("rb+") as file:  # in use, removed meanwhile, or no way to know
            _lock(file)
            partial.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file during the block; an error names the process and host that holds it already.

    A lock ends with its process, so that of a killed one is taken over. File systems without locks are used without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a+", encoding="utf-8") as file:
            try:
                _lock(file)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                raise BlockingIOError(f"{path.parent} is in use by {holder}. Wait for it, or choose another folder.") from None
            except OSError:
                pass
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue  # removed by the process that held it before
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            try:
                yield
            finally:
                with suppress(PermissionError):  # Windows cannot remove an open file
                    path.unlink(missing_ok=True)  # while it is locked
            return


def _lock(file: IO[Any]) -> None:
    """Lock a file until it is closed. ``BlockingIOError`` if another process has it, other ``OSError`` without locks."""
    if sys.platform == "win32":
        raise OSError("Windows has no such locks")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
