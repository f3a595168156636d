"""Transforms of many shapes in one file: NPZ, CSV and Parquet, the same to the byte in every run."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..atomic import replacing
from ..extras import require
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
        "directions": settings.directions.tolist(),
        "thresholds": settings.thresholds.tolist(),
    }


def companion(path: Path) -> Path | None:
    """The file beside a CSV file that holds settings, directions and thresholds."""
    return path.with_suffix(".json") if path.suffix.lower() == ".csv" else None


def write_transforms(path: Path, settings: Settings, pieces: Iterable[Piece]) -> None:
    """Write transforms as they come, a piece of names and an array ``[n, T, H]`` at a time. The ending says how.

    The same transforms give the same file, to the byte. Memory does not grow with their number.

    - ``.npz``: ``names [N]``, ``transforms [N, T, H]``, ``directions [T, dim]``, ``thresholds [H]`` and ``settings``, JSON.
    - ``.csv``: a shape a row, its name and then a column for each direction and threshold. A file ``.json`` beside it
      holds settings, directions and thresholds.
    - ``.parquet``: the same columns; the metadata ``eulerscan`` holds what is in that JSON file.
    """
    writers = {".npz": _write_npz, ".csv": _write_csv, ".parquet": write_parquet}
    if path.suffix.lower() not in writers:
        raise ValueError(f"path must end with one of {', '.join(ENDINGS)}, got {path.name!r}.")
    with replacing(path) as partial:
        writers[path.suffix.lower()](partial, settings, pieces)
    beside = companion(path)
    if beside is not None:
        with replacing(beside) as partial:
            partial.write_text(json.dumps(described(settings), indent=1) + "\n", encoding="utf-8")


def load_transforms(path: Path) -> Transforms:
    """Read what :func:`write_transforms` wrote as NPZ or Parquet, or the parts that ``eulerscan transform --shards`` did."""
    if path.is_dir() or path.suffix.lower() == ".parquet":
        return _load_parquet(sorted(path.glob("parts/*.parquet")) if path.is_dir() else [path], path)
    with np.load(path, allow_pickle=False) as file:
        if missing := {"names", "transforms", "settings"} - set(file.files):
            raise ValueError(f"{path} is no file of `eulerscan transform`: it lacks {', '.join(sorted(missing))}.")
        settings = Settings.from_dict(json.loads(str(file["settings"])))
        return Transforms(file["names"].tolist(), torch.from_numpy(file["transforms"]), settings)


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
                ("directions", settings.directions.numpy()),
                ("thresholds", settings.thresholds.numpy()),
                ("settings", np.array(json.dumps(settings.as_dict()))),
            ):
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as file:  # a ZipInfo without a date: the same each time
                    np.lib.format.write_array(file, array, allow_pickle=False)
            with archive.open(zipfile.ZipInfo("transforms.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, header)
                shutil.copyfileobj(rows, file, 2**20)


def _write_csv(path: Path, settings: Settings, pieces: Iterable[Piece]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", *settings.columns()])
        for names, values in pieces:
            rows = values.reshape(len(names), -1)
            whole = bool((np.abs(rows) < 2**31).all()) and bool((rows == np.trunc(rows)).all())
            numbers: list[list[Any]]
            numbers = rows.astype(np.int64).tolist() if whole else [[f"{value:.9g}" for value in row] for row in rows.tolist()]
            writer.writerows([name, *row] for name, row in zip(names, numbers, strict=True))


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
            rows = np.ascontiguousarray(values.reshape(len(names), -1).T)
            writer.write_table(arrow.table([arrow.array(names, arrow.string()), *rows], schema=schema), row_group_size=2**30)
        writer.add_key_value_metadata({"eulerscan": json.dumps(described(settings) | more())})


def parquet_metadata(path: Path) -> dict[str, Any]:
    """What :func:`write_parquet` put into the metadata."""
    metadata = require("pyarrow.parquet", extra="bulk").read_metadata(path).metadata or {}
    if b"eulerscan" not in metadata:
        raise ValueError(f"{path} is no file of `eulerscan transform`: it has no metadata of that name.")
    found: dict[str, Any] = json.loads(metadata[b"eulerscan"])
    return found


def _load_parquet(files: list[Path], path: Path) -> Transforms:
    if not files:
        raise ValueError(f"{path} holds no parts/*.parquet that `eulerscan transform --shards` would have written.")
    parquet = require("pyarrow.parquet", extra="bulk")
    settings = Settings.from_dict(parquet_metadata(files[0])["settings"])
    names: list[str] = []
    values = [np.empty((0, *settings.shape), np.float32)]
    for file in files:
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
