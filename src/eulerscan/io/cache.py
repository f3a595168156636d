"""Reading many files once: the cache folder holds their shapes in NPZ files."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._devices import as_numpy
from .._progress import Bar
from .._storage import replacing
from .._version import __version__
from ..complexes import Complex, collate
from ..complexes.packed import Packed
from .batch import Batch, read_many
from .landmarks import containing_file
from .walk import Failure, reason

FILES = 256  # in one entry
MAX_BYTES = 2**31  # of cached shapes; the entries that were used least recently are removed
WORTH_SECONDS = 0.2  # what is read faster is not cached
DAMAGED = (zipfile.BadZipFile, EOFError, KeyError, IndexError, TypeError, ValueError, NotImplementedError)

_Arrays = Mapping[str, np.ndarray[Any, Any]]

logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """The folder of raw files, prepared data sets and shapes: ``EULERSCAN_DATA``, or ``eulerscan`` in the user's cache."""
    given = os.environ.get("EULERSCAN_DATA")
    folder = Path(given or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "eulerscan").expanduser()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"EULERSCAN_DATA must be a folder, got the file {folder}.")
    return folder


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Atomic write to the cache folder (:func:`replacing`), with an error that names ``path`` and the remedy."""
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        raise OSError(
            error.errno,
            f"Could not write {path}: {error.strerror or error}. Check free space and write access, or set EULERSCAN_DATA to "
            "another folder",
        ) from error


def save_npz(path: Path, arrays: _Arrays, *, write: Callable[[Path], AbstractContextManager[Path]] = replacing) -> None:
    """Write arrays to an uncompressed NPZ file, atomically; with ``write=writing`` in the cache folder."""
    with write(path) as partial, partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **{name: np.asarray(array, order="C") for name, array in arrays.items()})


def load_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an NPZ file. A damaged one raises one of ``DAMAGED``."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def to_arrays(complex: Complex) -> dict[str, np.ndarray[Any, Any]]:
    """The packed form of a complex as arrays, bfloat16 as float32."""
    points, offsets, rows, simplices, weights, dims = complex.packed
    arrays = {"points": as_numpy(points), "offsets": as_numpy(offsets), "rows": np.array(rows, dtype=np.int64)}
    arrays["simplices"] = as_numpy(simplices)
    arrays |= {} if dims is None else {"dims": np.array(dims, dtype=np.int64)}
    return arrays if weights is None else arrays | {"weights": as_numpy(weights)}


def from_arrays(arrays: _Arrays) -> Complex:
    """The complex in the arrays of :func:`to_arrays`. They are checked, since kernels check no bounds."""
    tensors = {name: torch.from_numpy(arrays[name]) for name in ("points", "offsets", "rows", "simplices")}
    weights = torch.from_numpy(arrays["weights"]) if "weights" in arrays else None
    rows = tuple(tensors["rows"].tolist())
    dims = tuple(arrays["dims"].tolist()) if "dims" in arrays else None
    packed = Packed(tensors["points"], tensors["offsets"], rows, tensors["simplices"], weights, dims)
    _check(packed)
    return Complex.from_packed(packed)


def read_all(
    paths: Sequence[Path], *, cache: bool = True, progress: Bar | None = None, **options: Any
) -> tuple[dict[int, Batch], list[Failure]]:
    """Read many files, from the cache folder if they were read before with the same options.

    An entry of the cache holds the shapes of up to 256 files. Its key consists of their paths, sizes and modification times,
    the options, and the version of eulerscan. A cache that cannot be written is no error.

    Args:
        paths: The files, or specimens in them.
        cache: Whether to use the cache folder.
        progress: A progress bar over the files.
        options: Options of :func:`eulerscan.read`.

    Returns:
        The shapes by ambient dimension, and the files that could not be read.
    """
    parts: dict[int, list[Batch]] = {}
    errors: dict[int, Exception] = {}
    for start in range(0, len(paths), FILES):
        chunk = paths[start : start + FILES]
        batches, failed = _read_cached(chunk, options) if cache else read_many(chunk, **options)
        for dim, batch in batches.items():
            parts.setdefault(dim, []).append(Batch([start + i for i in batch.positions], batch.complex))
        errors |= {start + i: error for i, error in failed.items()}
        if progress is not None:
            progress.update(len(chunk))
    for error in errors.values():
        if not parts and not isinstance(error, ValueError | OSError):  # not the fault of the files: an unknown option, say
            raise error
    joined = {dim: _joined(batches) for dim, batches in parts.items()}
    return joined, [Failure(paths[i], reason(error, paths[i])) for i, error in errors.items()]


def _joined(batches: Sequence[Batch]) -> Batch:
    """One batch, with the shapes in the order of their files."""
    positions = [i for batch in batches for i in batch.positions]
    complex = batches[0].complex if len(batches) == 1 else collate([batch.complex for batch in batches])
    order = sorted(range(len(positions)), key=positions.__getitem__)
    return Batch(sorted(positions), complex if sorted(positions) == positions else complex.select(order))


def _read_cached(paths: Sequence[Path], options: Mapping[str, Any]) -> tuple[dict[int, Batch], dict[int, Exception]]:
    """As :func:`read_many`. Files that could not be read are not cached, and tried again."""
    path = _entry(paths, options)
    cached = _load(path) if path is not None else {}
    missing = sorted(set(range(len(paths))).difference(*(batch.positions for batch in cached.values())))
    start = time.perf_counter()
    batches, errors = read_many([paths[i] for i in missing], **options)
    if cached and not batches:
        return cached, {missing[i]: error for i, error in errors.items()}
    if cached:  # a missing dependency has been installed since
        batches, errors = read_many(paths, **options)
    if path is not None and batches and time.perf_counter() - start >= WORTH_SECONDS:
        with suppress(OSError):
            _save(path, batches)
    return batches, errors


def _entry(paths: Sequence[Path], options: Mapping[str, Any]) -> Path | None:
    """The file in the cache folder for these files and options. ``None`` if their state cannot be told."""
    key: list[Any] = [
        __version__,
        {name: str(value) for name, value in sorted(options.items())},
        str(torch.get_default_dtype()),
    ]
    for path in paths:
        file = containing_file(path)
        if file.suffix.lower() == ".gltf":  # its coordinates are in other files
            return None
        try:
            state = file.stat()
        except OSError:
            return None
        key.append((os.path.abspath(path), state.st_size, state.st_mtime_ns))
    return cache_folder() / "shapes" / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.npz"


def _load(path: Path) -> dict[int, Batch]:
    try:
        arrays = load_npz(path)
        with suppress(OSError):
            os.utime(path)  # the time of its last use
        batches = {}
        for dim in arrays["dims"].tolist():
            prefix = f"{dim} "
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            batch = Batch(own.pop("positions").tolist(), from_arrays(own))
            if batch.complex.num_complexes != len(batch.positions) or batch.complex.dim != dim:
                raise ValueError("the number or dimension of its shapes is wrong")
            batches[dim] = batch
        return batches
    except OSError:
        return {}
    except DAMAGED as error:
        logger.info("%s is damaged (%s), so the files are read again.", path, error)
        return {}


def _save(path: Path, batches: Mapping[int, Batch]) -> None:
    arrays = {"dims": np.array(list(batches), dtype=np.int64)}
    for dim, batch in batches.items():
        stored = to_arrays(batch.complex) | {"positions": np.array(batch.positions, dtype=np.int64)}
        arrays |= {f"{dim} {name}": array for name, array in stored.items()}
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_BYTES // 4:
        return
    save_npz(path, arrays)
    entries = sorted(((entry.stat(), entry) for entry in path.parent.glob("[!.]*.npz")), key=lambda found: -found[0].st_mtime)
    total = 0
    for state, entry in entries:
        total += state.st_size
        if total > MAX_BYTES:
            entry.unlink(missing_ok=True)


def _check(packed: Packed) -> None:
    """Check that the tensors are consistent, as far as that is fast."""
    points, offsets, rows, simplices, weights, dims = packed
    counts = offsets[:, -1].tolist()
    entries = sum(r * n for r, n in zip(rows, counts[1:], strict=True))
    consistent = (
        points.ndim == 2
        and counts[0] == len(points)
        and bool((offsets[:, 0] == 0).all())
        and bool((offsets.diff(dim=1) >= 0).all())
        and (dims is None or len(dims) == len(rows))
        and simplices.shape == (entries,)
        and (entries == 0 or _within(simplices, len(points)))
        and bool(torch.isfinite(points).all())
        and (weights is None or (weights.shape == (sum(counts),) and bool(torch.isfinite(weights).all())))
    )
    if not consistent:
        raise ValueError("its tensors are inconsistent")


def _within(indices: Tensor, count: int) -> bool:
    low, high = indices.aminmax()
    return int(low) >= 0 and int(high) < count
