"""Landmarks from TPS files, as tpsDig writes them: one specimen after the other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PureWindowsPath
from typing import Any

import numpy as np

from .naming import choose_names

_ENTRY = re.compile(r"\s*([A-Za-z]\w*)\s*=\s*(.*?)\s*")
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,3}$")  # of an image: that of Sp. 1 is none
_DIMS = {"LM": 2, "LM3": 3}

_Array = np.ndarray[Any, Any]
_Lines = Iterator[tuple[int, str]]  # their numbers in the file, and they


@dataclass
class _Entry:
    """What a file says of one specimen."""

    line: int  # where it begins
    points: list[list[float]]
    about: dict[str, str] = field(default_factory=dict)  # IMAGE, ID and so on
    scale: float | None = None


def tps_specimens(text: str) -> dict[str, _Array]:
    """The landmarks ``[V, dim]`` of each specimen: ``LM=`` says how many there are, and a line for each of them follows.

    ``LM3=`` is in space. ``SCALE=`` multiplies the coordinates. ``IMAGE=``, without its ending, is the name, or ``ID=`` where
    several have the same image. Curves, outlines and all the rest are left out.
    """
    lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    found: list[_Entry] = []
    first, foreign = "", True  # how the first specimen begins; whether lines are none of ours, such as points of curves
    for number, line in lines:
        match = _ENTRY.fullmatch(line)
        if match is None:
            if foreign:
                continue
            count = len(found[-1].points)
            raise ValueError(f"line {number} must be no landmark, since {count} were announced, got {_shown(line)}.")
        key, value = match[1].upper(), match[2]
        foreign = key not in _DIMS
        if not foreign:
            first = first or key
            if key != first:
                raise ValueError(f"line {number} must begin a specimen with {first}= like those before, got {_shown(line)}.")
            found.append(_Entry(number, _landmarks(lines, number, line, value, _DIMS[key])))
        elif found and key == "SCALE":
            found[-1].scale = _scale(number, line, value)
        elif found:
            found[-1].about.setdefault(key, value)
    if not found:
        raise ValueError("it holds no landmarks: there is no line LM= or LM3=.")
    _check_scales(found)
    images = [PureWindowsPath(entry.about.get("IMAGE", "")).name for entry in found]  # it takes slashes of both kinds
    ids = [entry.about.get("ID", "") for entry in found]
    names = choose_names([_ENDING.sub("", image) for image in images], ids, count=len(found))
    return {name: np.array(entry.points) * (entry.scale or 1.0) for name, entry in zip(names, found, strict=True)}


def _landmarks(lines: _Lines, begin: int, head: str, value: str, dim: int) -> list[list[float]]:
    """So many lines of coordinates as the head of a specimen says."""
    if not value.isdecimal():
        raise ValueError(f"line {begin} must say how many landmarks there are, got {_shown(head)}.")
    if int(value) == 0:
        raise ValueError(
            f"line {begin} must announce landmarks, got none. Points of curves are not read: tpsUtil makes landmarks of them."
        )
    points = []
    for i in range(int(value)):
        number, line = next(lines, (None, ""))
        what = f"landmark {i + 1} of the {value} that line {begin} announces"
        if number is None:
            raise ValueError(f"it ends before {what}.")
        point = [_number(cell) for cell in line.split()]
        if len(point) != dim or None in point:
            missing = " Landmarks must be there in every specimen." if "na" in line.lower().split() else ""
            raise ValueError(f"line {number} must hold {dim} coordinates, {what}, got {_shown(line)}.{missing}")
        points.append([coordinate for coordinate in point if coordinate is not None])
    return points


def _scale(number: int, line: str, value: str) -> float:
    scale = _number(value)
    if scale is None or scale <= 0:
        raise ValueError(f"line {number} must hold a positive scale, got {_shown(line)}.")
    return scale


def _check_scales(found: list[_Entry]) -> None:
    """Sizes can be compared if all specimens have a scale, or none."""
    lines = [entry.line for entry in found if entry.scale is None]
    if 0 < len(lines) < len(found):
        raise ValueError(f"SCALE= must be there for every specimen or for none, got none for that of line {lines[0]}.")


def _number(cell: str) -> float | None:
    """Decimals have a point, or a comma as in some countries."""
    try:
        number = float(cell.replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in cell else None


def _shown(line: str) -> str:
    return repr(re.sub(r"[^ -~]", "?", line.strip()[:30]))
