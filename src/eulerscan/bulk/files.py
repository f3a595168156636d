"""Transforms of many shapes in one file: NPZ, CSV and Parquet, the same to the byte in every run."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._imports import require
from .._storage import replacing
from .._tables import quoted
from ..io.walk import Failure
from .settings import Settings

Piece = tuple[list[str], np.ndarray[Any, Any]]
ENDINGS = (".npz", ".csv", ".parquet")
GROUP = 2**22  # numbers in a row group of a Parquet file: 16 MB


class Transforms(NamedTuple):
    """What a file of transforms holds."""

    names: list[str]
    transforms: Tensor  # [N, T, H] or [N, K, T, H]
    settings: Settings


def described(settings: Settings) -> dict[str, Any]:
    """Settings, directions and thresholds, for formats that have no arrays."""
    return {
        "settings": settings.as_dict(),
        "directions": settings.ect.directions(settings.dim).tolist(),
        "thresholds": settings.ect.thresholds().tolist(),
    }


def companion(path: Path) -> Path | None:
    """The file beside a CSV file that holds settings, directions and thresholds."""
    return path.with_suffix(".json") if path.suffix.lower() == ".csv" else None


def write_transforms(path: str | os.PathLike[str], settings: Settings, pieces: Iterable[Piece]) -> None:
    """Write transforms as they come, a piece of names and an array ``[n, T, H]`` at a time. The ending says how.

    The same transforms give the same file, to the byte. Memory does not grow with their number.

    - ``.npz``: ``names [N]``, ``transforms [N, T, H]``, ``directions [T, dim]``, ``thresholds [H]`` and ``settings``, JSON.
    - ``.csv``: a shape a row, its name and then a column for each direction and threshold. A file ``.json`` beside it
      holds settings, directions and thresholds.
    - ``.parquet``: the same columns; the metadata ``eulerscan`` holds what is in that JSON file.
    """
    path = Path(path)
    writers = {".npz": _write_npz, ".csv": _write_csv, ".parquet": write_parquet}
    if path.suffix.lower() not in writers:
        raise ValueError(f"path must end with one of {', '.join(ENDINGS)}, got {path.name!r}.")
    with replacing(path) as partial:
        writers[path.suffix.lower()](partial, settings, pieces)
    beside = companion(path)
    if beside is not None:
        with replacing(beside) as partial:
            partial.write_text(json.dumps(described(settings), indent=1) + "\n", encoding="utf-8")


def load_transforms(path: str | os.PathLike[str]) -> Transforms:
    """Read what :func:`write_transforms` wrote, or the parts that :func:`transform_folder` did.

    Parts of a run that is not finished are an error. Which files a finished one lacks, its ``failures.csv`` says.
    """
    path = Path(path)
    if path.is_dir() or path.suffix.lower() == ".parquet":
        return _load_parquet(_finished_parts(path) if path.is_dir() else [path])
    if path.suffix.lower() == ".csv":
        return _load_csv(path)
    with path.open("rb") as content, _naming(path):
        if not zipfile.is_zipfile(content):
            raise ValueError("it is no NPZ file, or it was cut off")
        content.seek(0)
        with np.load(content, allow_pickle=False) as file:
            if missing := {"names", "transforms", "settings"} - set(file.files):
                raise ValueError(f"it lacks {', '.join(sorted(missing))}")
            settings = Settings.from_dict(json.loads(str(file["settings"])))
            return Transforms(file["names"].tolist(), torch.from_numpy(file["transforms"]), settings)


def holds_transforms(path: Path) -> bool:
    """Whether a file or folder is of `eulerscan transform` rather than one of shapes, as far as ending and first words say."""
    if not path.is_file():
        return load_manifest(path) is not None
    if path.suffix.lower() == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return re.match(r"\W*name\W+(s0_)?d0_t0\b", file.read(32)) is not None
    return path.suffix.lower() in ENDINGS


def load_failures(folder: str | os.PathLike[str]) -> list[Failure]:
    """The files that are in none of the parts that :func:`transform_folder` wrote, and why."""
    with (Path(folder) / "failures.csv").open(newline="", encoding="utf-8") as file:
        return [Failure(Path(name), reason) for name, reason in list(csv.reader(file))[1:]]


def load_manifest(folder: Path) -> dict[str, Any] | None:
    """What :func:`transform_folder` says of the parts in a folder; ``None`` where there is no manifest, or another's."""
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ours = isinstance(found, dict) and found.keys() >= {"fingerprint", "settings", "shards", "files"}
    if not ours or not isinstance(found["settings"], dict) or type(found["files"]) is not int:
        return None
    return found if type(found["shards"]) is int and found["shards"] >= 1 else None


def part_paths(folder: Path, shards: int) -> list[Path]:
    """Where the parts of so many shards are."""
    return [folder / "parts" / f"part-{number:05}.parquet" for number in range(shards)]


def _finished_parts(folder: Path) -> list[Path]:
    manifest = load_manifest(folder)
    if manifest is None:
        raise ValueError(f"{folder} holds no transforms: there is no manifest.json of `eulerscan transform` in it.")
    parts = part_paths(folder, manifest["shards"])
    there = sum(part.exists() for part in parts)
    if there < len(parts) or not (folder / "failures.csv").exists():
        raise ValueError(f"{folder} is not finished: {there} of {len(parts)} parts are there. Run it again to make the rest.")
    return parts


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file is said with its name."""
    try:
        yield
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        # What the system refuses has a number. Without one, pyarrow could not make sense of what it read.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{path} is no file of `eulerscan transform`, or it is damaged: {error}.") from error


def _write_npz(path: Path, settings: Settings, pieces: Iterable[Piece]) -> None:
    names: list[str] = []
    # How many there are is known at the end, and stands at the beginning of an array.
    with tempfile.TemporaryFile(dir=path.parent) as rows:
        for some, values in pieces:
            names += some
            rows.write(np.ascontiguousarray(values, dtype="<f4").tobytes())
        rows.seek(0)
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(names), *settings.shape)}
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in (
                ("names", np.array(names, dtype=np.str_)),
                ("directions", settings.ect.directions(settings.dim).numpy()),
                ("thresholds", settings.ect.thresholds().numpy()),
                ("settings", np.array(json.dumps(settings.as_dict()))),
            ):
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as file:  # a ZipInfo without a date: the same each time
                    np.lib.format.write_array(file, array, allow_pickle=False)
            with archive.open(zipfile.ZipInfo("transforms.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, header)
                shutil.copyfileobj(rows, file, 2**20)


def _write_csv(path: Path, settings: Settings, pieces: Iterable[Piece]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(["name", *settings.columns()]) + "\n")
        for names, values in pieces:
            rows = values.reshape(len(names), len(settings.columns()))  # of no shapes, too
            # For each row alone, so that what stands in it depends on no other.
            whole = ((np.abs(rows) < 2**31) & (rows == np.trunc(rows))).all(axis=1)
            for name, row, integral in zip(names, rows, whole, strict=True):
                numbers = map(str, row.astype(np.int64).tolist()) if integral else (f"{value:.9g}" for value in row.tolist())
                file.write(",".join([quoted(name), *numbers]) + "\n")


def write_parquet(
    path: Path, settings: Settings, pieces: Iterable[Piece], *, more: Callable[[], dict[str, Any]] = lambda: {}
) -> None:
    """Write Parquet. What ``more`` returns once all pieces have come is put into the metadata too."""
    arrow, parquet = require("pyarrow", extra="bulk"), require("pyarrow.parquet", extra="bulk")
    columns = settings.columns()
    schema = arrow.schema([("name", arrow.string()), *((column, arrow.float32()) for column in columns)])
    # Without statistics and dictionaries, which are of no use for so many narrow columns and take more than the numbers.
    options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    with parquet.ParquetWriter(path, schema, **options) as writer:
        for names, values in _gathered(pieces, max(1, GROUP // len(columns))):
            rows = np.ascontiguousarray(values.reshape(len(names), len(columns)).T)
            writer.write_table(arrow.table([arrow.array(names, arrow.string()), *rows], schema=schema), row_group_size=2**30)
        writer.add_key_value_metadata({"eulerscan": json.dumps(described(settings) | more())})


def parquet_metadata(path: Path) -> dict[str, Any]:
    """What :func:`write_parquet` put into the metadata."""
    parquet = require("pyarrow.parquet", extra="bulk")
    with _naming(path):
        metadata = parquet.read_metadata(path).metadata or {}
        if b"eulerscan" not in metadata:
            raise ValueError("it has no metadata of eulerscan")
        found: dict[str, Any] = json.loads(metadata[b"eulerscan"])
        return found


def _load_csv(path: Path) -> Transforms:
    with _naming(path), path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets put a mark in front
        beside = companion(path)
        assert beside is not None
        if not beside.exists():
            raise ValueError(f"{beside.name} with its settings is not beside it")
        settings = Settings.from_dict(json.loads(beside.read_text(encoding="utf-8"))["settings"])
        rows = csv.reader(file)
        if next(rows, None) != ["name", *settings.columns()]:
            raise ValueError(f"its columns are not those of {beside.name}, between commas")
        names: list[str] = []
        values = [np.empty((0, *settings.shape), np.float32)]
        for name, *cells in filter(None, rows):
            numbers = _numbers(cells)
            if len(numbers) != math.prod(settings.shape) or not np.isfinite(numbers).all():
                raise ValueError(f"line {rows.line_num} must hold a name and {math.prod(settings.shape)} numbers")
            names.append(name)
            values.append(numbers.reshape(1, *settings.shape))
    return Transforms(names, torch.from_numpy(np.concatenate(values)), settings)


def _numbers(cells: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """As float32, empty where one of them is no number."""
    try:
        return np.array(cells, np.float64).astype(np.float32)
    except ValueError:
        return np.empty(0, np.float32)


def _load_parquet(files: list[Path]) -> Transforms:
    parquet = require("pyarrow.parquet", extra="bulk")
    metadata = parquet_metadata(files[0])
    with _naming(files[0]):
        settings = Settings.from_dict(metadata["settings"])
    names: list[str] = []
    values = [np.empty((0, *settings.shape), np.float32)]
    for file in files:
        with _naming(file):
            table = parquet.ParquetFile(file).read()
            names += table["name"].to_pylist()
            rows = np.stack([table[column].to_numpy() for column in settings.columns()], axis=1)
            values.append(rows.reshape(-1, *settings.shape))
    return Transforms(names, torch.from_numpy(np.concatenate(values)), settings)


def _gathered(pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
    """The same rows in pieces of ``size``, whatever they came in."""
    names: list[str] = []
    waiting: list[np.ndarray[Any, Any]] = []
    for some, values in pieces:
        names += some
        waiting.append(values)
        while len(names) >= size:
            rows = np.concatenate(waiting)
            yield names[:size], rows[:size]
            names, waiting = names[size:], [rows[size:].copy()]
    if names:
        yield names, np.concatenate(waiting)
