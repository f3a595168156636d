"""Files of transforms: NPZ, CSV and Parquet. Equal transforms give equal files, to the byte."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._imports import require
from .._limits import check_bytes
from .._storage import replacing, write_json
from .._tables import quoted, unescaped
from ..io.arrays import load_arrays
from ..io.errors import describe_error
from .manifest import finished_parts, load_manifest
from .settings import Settings

FORMATS = (".npz", ".csv", ".parquet")
"""The file extensions that :func:`write_transforms` supports."""

_Array = np.ndarray[Any, Any]
Write = Callable[[list[str], list[str], _Array], None]  # names and groups of shapes, transforms [n, T, H] or [n, K, T, H]
Finish = Callable[[dict[str, Any]], None]  # settings, directions, thresholds and further metadata
ROW_GROUP = 2**22  # numbers in a row group of a Parquet file: 16 MB


class Transforms(NamedTuple):
    """The transforms in a file."""

    names: list[str]
    transforms: Tensor  # [N, T, H] or [N, K, T, H]
    settings: Settings
    groups: list[str]  # of the shapes: their subfolders, or labels from a table; empty for shapes without one


@contextmanager
def open_output(path: Path, settings: Settings, metadata: dict[str, Any] | None = None) -> Iterator[Write]:
    """A function that appends transforms to a new file, in the format of its extension.

    Memory does not grow with their number. The file appears at the end, and not at all if the block raises.

    Args:
        path: The file: .npz, .csv or .parquet.
        settings: How the transforms were made.
        metadata: Added to the metadata of a Parquet file when the block ends.
    """
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"path must end with one of {', '.join(FORMATS)}, got {path.name!r}.")
    about = {
        "settings": settings.as_dict(),
        "directions": settings.ect.directions(settings.known_dim).tolist(),
        "thresholds": settings.ect.thresholds().tolist(),
    }
    with replacing(path) as partial, _OPEN[path.suffix.lower()](partial, settings) as (write, finish):
        yield write
        finish(about | (metadata or {}))
    for companion in output_paths(path)[1:]:
        write_json(companion, about)


def write_transforms(path: str | os.PathLike[str], settings: Settings, pieces: Iterable[tuple[list[str], _Array]]) -> None:
    """Write transforms to a file, in the format of its extension.

    Equal transforms give equal files, to the byte. Memory does not grow with the number of pieces.

    - ``.npz``: ``names [N]``, ``groups [N]``, ``transforms [N, T, H]``, ``directions [T, dim]``, ``thresholds [H]``, and
      ``settings`` as JSON.
    - ``.csv``: one shape per row, its name and group followed by a column for each direction and threshold. A ``.json`` file
      beside it holds settings, directions and thresholds. A name that a spreadsheet would run as a formula, since it begins
      with ``=``, ``+``, ``-`` or ``@``, has an apostrophe in front, which :func:`load_transforms` removes.
    - ``.parquet``: the same columns. The metadata ``eulerscan`` holds the content of that JSON file. Checksums of the pages, of
      the metadata and of the whole table are verified when it is loaded.

    Args:
        path: The file.
        settings: How the transforms were made.
        pieces: Names of some shapes and their transforms ``[n, T, H]``. Their groups are the folders in the names.
    """
    with open_output(Path(path), settings) as write:
        for names, transforms in pieces:
            write(names, [name.rpartition("/")[0] for name in names], transforms)


def load_transforms(path: str | os.PathLike[str]) -> Transforms:
    """Read the output of ``eulerscan transform``: a file, or a folder of parts.

    The parts of an unfinished run are an error. ``failures.csv`` lists the files that a finished one lacks.
    """
    path = Path(path)
    if path.is_dir() or path.suffix.lower() == ".parquet":
        return _load_parquet(finished_parts(path) if path.is_dir() else [path])
    return _load_csv(path) if path.suffix.lower() == ".csv" else _load_npz(path)


def holds_transforms(path: Path) -> bool:
    """Whether a file or folder is an output of ``eulerscan transform``, by its extension and first bytes."""
    if not path.is_file():
        return load_manifest(path) is not None
    if path.suffix.lower() == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return re.match(r"\W*name\W+group\W+(s0_)?d0_t0\b", file.read(40)) is not None
    return path.suffix.lower() in FORMATS


def output_paths(path: Path) -> tuple[Path, ...]:
    """The output itself, and the JSON file beside a CSV file."""
    return (path, path.with_suffix(".json")) if path.suffix.lower() == ".csv" else (path,)


def parquet_metadata(path: Path) -> dict[str, Any]:
    """Settings, directions, thresholds and further metadata of a Parquet file."""
    parquet = require("pyarrow.parquet", extra="bulk")
    with _named_errors(path):
        metadata = parquet.read_metadata(path).metadata or {}
        if b"eulerscan" not in metadata:
            raise ValueError("it has no metadata of eulerscan")
        if _checksums(metadata)[0] != zlib.crc32(metadata[b"eulerscan"]):
            raise ValueError("its metadata do not match their checksum")
        found: dict[str, Any] = json.loads(metadata[b"eulerscan"])
        return found


@contextmanager
def _npz(path: Path, settings: Settings) -> Iterator[tuple[Write, Finish]]:
    all_names: list[str] = []
    all_groups: list[str] = []
    # The header of an array holds its length, which is known at the end.
    with tempfile.TemporaryFile(dir=path.parent) as rows:

        def write(names: list[str], groups: list[str], transforms: _Array) -> None:
            all_names.extend(names)
            all_groups.extend(groups)
            rows.write(np.ascontiguousarray(transforms, dtype="<f4").tobytes())

        def finish(about: dict[str, Any]) -> None:
            rows.seek(0)
            header = {"descr": "<f4", "fortran_order": False, "shape": (len(all_names), *settings.shape)}
            with zipfile.ZipFile(path, "w") as archive:
                for name, array in (
                    ("names", np.array(all_names, dtype=np.str_)),
                    ("groups", np.array(all_groups, dtype=np.str_)),
                    ("directions", np.array(about["directions"])),
                    ("thresholds", np.array(about["thresholds"])),
                    ("settings", np.array(json.dumps(about["settings"]))),
                ):
                    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as file:  # without a date
                        np.lib.format.write_array(file, array, allow_pickle=False)
                with archive.open(zipfile.ZipInfo("transforms.npy"), "w", force_zip64=True) as file:
                    np.lib.format.write_array_header_1_0(file, header)
                    shutil.copyfileobj(rows, file, 2**20)

        yield write, finish


@contextmanager
def _csv(path: Path, settings: Settings) -> Iterator[tuple[Write, Finish]]:
    columns = settings.columns()
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(["name", "group", *columns]) + "\n")

        def write(names: list[str], groups: list[str], transforms: _Array) -> None:
            rows = transforms.reshape(len(names), len(columns))
            # Decided for each row by itself, so that it does not depend on the others.
            whole = ((np.abs(rows) < 2**31) & (rows == np.trunc(rows))).all(axis=1)
            for name, group, row, integral in zip(names, groups, rows, whole, strict=True):
                numbers = map(str, row.astype(np.int64).tolist()) if integral else (f"{value:.9g}" for value in row.tolist())
                file.write(",".join([quoted(name), quoted(group), *numbers]) + "\n")

        yield write, lambda about: None


@contextmanager
def _parquet(path: Path, settings: Settings) -> Iterator[tuple[Write, Finish]]:
    arrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
    columns = settings.columns()
    size = max(1, ROW_GROUP // len(columns))
    schema = arrow.schema(
        [("name", arrow.string()), ("group", arrow.string()), *((column, arrow.float32()) for column in columns)]
    )
    # Statistics and dictionaries of that many narrow columns would take more space than the numbers.
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "write_page_checksum": True}
    with parquet.ParquetWriter(path, schema, **options) as writer:
        pending_names: list[tuple[str, str]] = []  # with their groups
        pending: list[_Array] = []
        checksum = 0

        def write(names: list[str], groups: list[str], transforms: _Array) -> None:
            pending_names.extend(zip(names, groups, strict=True))
            pending.append(transforms.reshape(len(names), len(columns)))
            while len(pending_names) >= size:
                write_group(size)

        def write_group(count: int) -> None:
            nonlocal checksum
            rows = np.concatenate(pending)
            names, numbers = pending_names[:count], np.ascontiguousarray(rows[:count].T)
            checksum = _checksum(names, rows[:count], checksum)
            texts = [arrow.array(column, arrow.string()) for column in zip(*names, strict=True)]
            writer.write_table(arrow.table([*texts, *numbers], schema=schema), row_group_size=2**30)
            pending_names[:], pending[:] = pending_names[count:], [rows[count:].copy()]

        def finish(about: dict[str, Any]) -> None:
            if pending_names:
                write_group(len(pending_names))
            text = json.dumps(about)
            checksums = f"{zlib.crc32(text.encode()):08x} {checksum:08x}"
            writer.add_key_value_metadata({"eulerscan": text, "eulerscan.crc32": checksums})

        yield write, finish


def _checksum(names: Iterable[tuple[str, str]], rows: _Array, start: int = 0) -> int:
    """Of the rows of a table, one after another. Checksums of pages do not cover which column a page belongs to."""
    for texts, row in zip(names, np.ascontiguousarray(rows, dtype="<f4"), strict=True):
        start = zlib.crc32(row, zlib.crc32("\0".join((*texts, "")).encode(), start))
    return start


def _checksums(metadata: dict[bytes, bytes]) -> tuple[int, int]:
    """Of the metadata and of the table."""
    if b"eulerscan.crc32" not in metadata:
        raise ValueError("it has no checksums")
    own, table = metadata[b"eulerscan.crc32"].split()
    return int(own, 16), int(table, 16)


_OPEN: dict[str, Callable[[Path, Settings], AbstractContextManager[tuple[Write, Finish]]]] = {
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """Errors about the content of a file name the file."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:  # the parsers raise errors of many types
        # Errors of the system have a number; pyarrow raises an OSError without one for content that it cannot parse.
        # Seeking to a place that a damaged archive names is an invalid argument.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        reason = describe_error(error).removesuffix(".")
        raise ValueError(f"{path} is not an output of `eulerscan transform`, or it is damaged: {reason}.") from error


def _load_npz(path: Path) -> Transforms:
    with path.open("rb") as content, _named_errors(path):
        if not zipfile.is_zipfile(content):
            raise ValueError("not an NPZ file, or truncated")
        arrays = load_arrays(content, _check_names, _check_array)
        settings, names = Settings.from_dict(json.loads(str(arrays["settings"]))), arrays["names"].tolist()
        if len(arrays["groups"]) != len(names):
            raise ValueError(f"groups must have one entry per name, {len(names)}, got {len(arrays['groups'])}")
        if arrays["transforms"].shape != (len(names), *settings.shape):
            raise ValueError(
                f"transforms must have shape {[len(names), *settings.shape]}, as names and settings say, "
                f"got {list(arrays['transforms'].shape)}"
            )
        return Transforms(names, torch.from_numpy(arrays["transforms"]), settings, arrays["groups"].tolist())


def _check_names(names: Collection[str]) -> None:
    if missing := {"names", "groups", "transforms", "settings"} - set(names):
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    if unknown := set(names) - {"names", "groups", "transforms", "settings", "directions", "thresholds"}:
        raise ValueError(f"it has unknown arrays, such as {min(unknown)[:30]!r}")


def _check_array(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    kind, axes = {"names": ("U", (1,)), "groups": ("U", (1,)), "settings": ("U", (0,)), "transforms": ("f", (3, 4))}.get(
        name, ("f", (1, 2))
    )
    if dtype.kind != kind or len(shape) not in axes:
        raise ValueError(f"{name} must not have shape {list(shape)} of {dtype}")


def _load_csv(path: Path) -> Transforms:
    with _named_errors(path), path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a byte order mark
        _, companion = output_paths(path)
        if not companion.exists():
            raise ValueError(f"{companion.name} with its settings is missing")
        settings = Settings.from_dict(json.loads(companion.read_text(encoding="utf-8"))["settings"])
        rows = csv.reader(file)
        header = next(rows, [])
        # The number is compared first: settings may claim more columns than memory can hold.
        if len(header) != 2 + math.prod(settings.shape) or header != ["name", "group", *settings.columns()]:
            raise ValueError(f"its columns, separated by commas, are not those of {companion.name}")
        names: list[str] = []
        groups: list[str] = []
        values = [np.empty((0, *settings.shape), np.float32)]
        for name, *cells in filter(None, rows):
            numbers = _parse_numbers(cells[1:])
            if len(numbers) != math.prod(settings.shape) or not np.isfinite(numbers).all():
                raise ValueError(f"line {rows.line_num} must hold a name, a group and {math.prod(settings.shape)} numbers")
            names.append(unescaped(name))
            groups.append(unescaped(cells[0]))
            values.append(numbers.reshape(1, *settings.shape))
    return Transforms(names, torch.from_numpy(np.concatenate(values)), settings, groups)


def _parse_numbers(cells: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The numbers in a row; an empty array if a cell is not a number."""
    try:
        return np.array(cells, np.float64).astype(np.float32)
    except ValueError:
        return np.empty(0, np.float32)


def _load_parquet(files: list[Path]) -> Transforms:
    parquet = require("pyarrow.parquet", extra="bulk")
    metadata = parquet_metadata(files[0])
    with _named_errors(files[0]):
        settings = Settings.from_dict(metadata["settings"])
    names: list[tuple[str, str]] = []
    values: list[_Array] = []
    for file in files:
        with _named_errors(file):
            opened = parquet.ParquetFile(file, page_checksum_verification=True)
            num_rows, num_columns = opened.metadata.num_rows, opened.metadata.num_columns
            if num_columns != 2 + math.prod(settings.shape):
                raise ValueError(f"it has {num_columns} columns, but its settings need {2 + math.prod(settings.shape)}")
            check_bytes(3 * 4 * num_rows * num_columns, f"a table of {num_rows} rows and {num_columns} columns")
            table = opened.read()
            own_names = [*zip(table["name"].to_pylist(), table["group"].to_pylist(), strict=True)]
            names += own_names
            rows = np.stack([table[column].to_numpy() for column in settings.columns()], axis=1)
            if _checksums(opened.metadata.metadata)[1] != _checksum(own_names, rows):
                raise ValueError("its content does not match its checksum")
            values.append(rows.reshape(-1, *settings.shape))
    shapes, groups = zip(*names, strict=True) if names else ((), ())
    return Transforms([*shapes], torch.from_numpy(np.concatenate(values)), settings, [*groups])
