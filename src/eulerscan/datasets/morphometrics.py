"""Landmarks and outlines of bones, wings and fossils: classic data of morphometrics."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import torch

from ..complexes import Complex, collate
from ..convert.outlines import from_outline
from .dataset import Dataset
from .download import Source, reading

_Array = np.ndarray[Any, Any]

KTCH = "https://raw.githubusercontent.com/noshita/ktch/main/ktch/datasets/data"
R_SHAPES = "write it from the data of the R package shapes (CRAN, GPL-2), as docs/data.md describes."
SKULL = [3, 2, 1, 7, 6, 5, 0, 4]  # the eight landmarks in their order around the skull
SPECIES = {
    "gorf": "gorilla, female",
    "gorm": "gorilla, male",
    "panf": "chimpanzee, female",
    "panm": "chimpanzee, male",
    "pongof": "orangutan, female",
    "pongom": "orangutan, male",
}
# Stages and series by which the table of the trilobites gives ages.
PERIODS = {
    "Cambrian": "guzhangian paibian jiangshanian stage furongian",
    "Ordovician": "tremadocian floian dapingian darriwilian sandbian katian hirnantian",
    "Silurian": "rhuddanian aeronian telychian llandovery sheinwoodian homerian wenlock gorstian ludfordian ludlow pridoli",
    "Devonian": "lochkovian pragian emsian eifelian givetian frasnian famennian devonian",
    "Carboniferous": "tournaisian tournasian visean serpukhovian mississippian gzhelian",
}


def wings(name: str = "wings", *, filled: bool = False) -> Dataset:
    """126 outlines of mosquito wings of 100 points each, by the abbreviated genus: AE (57), CX (25), PS (12), AN (11), ...

    The data are those of ``ktch.datasets.load_outline_mosquito_wings`` (Rohlf and Archie 1984). Three genera have one wing.

    Args:
        filled: Whether wings are filled with triangles, or closed curves.
    """
    folder = f"{KTCH}/outline_mosquito_wings"
    points = _table(
        Source(
            "morphometrics/mosquito_wings.csv",
            f"{folder}/data_outline_mosquito_wings.csv",
            "4ade18cdf1994f965fd2cc148fdf4145",
        ),
        12600,
    )
    genera = _table(
        Source(
            "morphometrics/mosquito_wings_groups.csv",
            f"{folder}/meta_outline_mosquito_wings.csv",
            "e27b7e0902010ff6733a9d6639b9488c",
        ),
        126,
    )
    outlines = np.array([[row["x"], row["y"]] for row in points], dtype=np.float32).reshape(126, 100, 2)
    return _outlines(name, outlines, [row["genus"] for row in genera], filled)


def trilobites(name: str = "trilobites") -> Dataset:
    """Head shields of 296 trilobites by geological period: 16 landmarks, and four curves of 12 or 20 points each.

    The data are those of ``ktch.datasets.load_landmark_trilobite_cephala``. Four specimens of unknown age are left out, and
    landmarks that are missing in 15 specimens. Units differ between specimens: compare shapes, not sizes.
    """
    folder = f"{KTCH}/landmark_trilobite_cephala"
    table = _table(
        Source(
            "morphometrics/trilobites.csv",
            f"{folder}/meta_landmark_trilobite_cephala.csv",
            "5f18b3af82ec03eed5a8d165c1415e5d",
        ),
        300,
    )
    tps = Source(
        "morphometrics/trilobites.tps", f"{folder}/data_landmark_trilobite_cephala.tps", "94540bea15e9db6f54bfa8651ce76e90"
    )
    with reading(tps) as path:
        shapes = [_cephalon(block) for block in path.read_text("utf-8").split("LM=16\n")[1:]]
        if len(shapes) != len(table):
            raise ValueError(f"it must hold {len(table)} specimens, got {len(shapes)}")
    ages = [_period(row["min_age"]) for row in table]
    kept = [i for i, age in enumerate(ages) if age is not None]
    labels = torch.tensor([list(PERIODS).index(str(ages[i])) for i in kept])
    return Dataset(name, collate([shapes[i] for i in kept]), labels, tuple(PERIODS))


def gorillas(name: str = "gorillas", *, filled: bool = False) -> Dataset:
    """Skulls of 30 female and 29 male gorillas from the side: eight landmarks, joined around the skull.

    The data are ``gorf.dat`` and ``gorm.dat`` of the R package shapes (Dryden and Mardia 2016).

    Args:
        filled: Whether skulls are filled with triangles, or closed curves.
    """
    rows = _table(Source("morphometrics/gorillas.csv", recipe=R_SHAPES), 59)
    points = np.array([[[row[f"x{i}"], row[f"y{i}"]] for i in range(1, 9)] for row in rows], dtype=np.float32)
    return _outlines(name, points[:, SKULL], [row["sex"] for row in rows], filled)


def apes(name: str = "apes", *, filled: bool = False) -> Dataset:
    """Skulls of 167 gorillas, chimpanzees and orangutans by species and sex: eight landmarks, joined around the skull.

    The data are ``apes`` of the R package shapes (Dryden and Mardia 2016).

    Args:
        filled: Whether skulls are filled with triangles, or closed curves.
    """
    points, groups = _arrays("apes", "landmarks", (167, 8, 2))
    return _outlines(name, points[:, SKULL], [SPECIES[group] for group in groups], filled)


def vertebrae(name: str = "vertebrae") -> Dataset:
    """76 outlines of vertebrae of mice (T2) of 60 points each: controls (30), and bred for large (23) or small weight (23).

    The data are ``mice`` of the R package shapes (Dryden and Mardia 2016). Some outlines cross themselves.
    """
    points, groups = _arrays("mice_outlines", "outlines", (76, 60, 2))
    kinds = {"c": "control", "l": "large", "s": "small"}
    return _outlines(name, points, [kinds[group] for group in groups], filled=False)


def macaques(name: str = "macaques") -> Dataset:
    """Skulls of nine female and nine male macaques: clouds of seven landmarks in space.

    The data are ``macaques`` of the R package shapes (Dryden and Mardia 2016).
    """
    points, groups = _arrays("macaques", "landmarks", (18, 7, 3))
    kinds = {"f": "female", "m": "male"}
    labels, classes = _labels([kinds[group] for group in groups])
    return Dataset(name, collate([Complex(torch.from_numpy(one)) for one in points]), labels, classes)


def _table(source: Source, count: int) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with reading(source) as path:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
        if len(rows) != count:
            raise ValueError(f"it must hold {count} rows, got {len(rows)}")
    return rows


def _arrays(file: str, key: str, shape: tuple[int, ...]) -> tuple[_Array, list[str]]:
    """The coordinates and the groups in an NPZ file."""
    with reading(Source(f"morphometrics/{file}.npz", recipe=R_SHAPES)) as path, np.load(path, allow_pickle=False) as arrays:
        points, groups = arrays[key].astype(np.float32), arrays["group"].tolist()
        if points.shape != shape or len(groups) != shape[0]:
            raise ValueError(f"it must hold {key} of shape {shape} and as many groups, got {points.shape} and {len(groups)}")
    return points, groups


def _outlines(name: str, points: _Array, groups: list[str], filled: bool) -> Dataset:
    labels, classes = _labels(groups)
    shapes: Complex = from_outline(torch.from_numpy(np.ascontiguousarray(points)), filled=filled)
    return Dataset(name, shapes, labels, classes)


def _labels(groups: list[str]) -> tuple[torch.Tensor, tuple[str, ...]]:
    classes = sorted(set(groups))
    return torch.tensor([classes.index(group) for group in groups]), tuple(classes)


def _cephalon(block: str) -> Complex:
    """The landmarks, as far as they are known, and the curves of one specimen of a TPS file."""
    lines = block.splitlines()
    points: list[list[float]] = []
    starts: list[int] = []
    for line in lines:
        if line.startswith("POINTS="):
            starts.append(len(points))
        elif "=" not in line and "nan" not in line.lower():
            points.append([float(number) for number in line.split()])
    if not starts:
        raise ValueError("a specimen must have curves, after lines such as POINTS=12, got none")
    before = torch.tensor([i for i in range(starts[0], len(points) - 1) if i + 1 not in starts])
    return Complex(torch.tensor(points), [torch.stack([before, before + 1])])


def _period(age: str) -> str | None:
    """The geological period of a stage or series."""
    words = age.lower().split()
    return next((period for period, stages in PERIODS.items() if set(words) & set(stages.split())), None)
