"""Intermediate results of a long computation, kept in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..complexes import Complex
from ..io.cache import load_npz, save_npz

_Array = np.ndarray[Any, Any]


class Stages:
    """Intermediate results, each computed once for the same inputs."""

    def __init__(self, folder: Path | None, shapes: Complex, *inputs: Any) -> None:
        self.folder = folder
        digest = hashlib.sha256(shapes.points.numpy().tobytes())
        for values in (*shapes.simplices, *(shapes.weights or ())):
            digest.update(values.numpy().tobytes())
        digest.update(json.dumps([__version__, shapes.packed.kinds, shapes.offsets.tolist(), inputs], default=str).encode())
        self.key = digest.hexdigest()[:16]

    def __call__(self, name: str, compute: Callable[[], dict[str, _Array]]) -> dict[str, _Array]:
        if self.folder is None:
            return compute()
        path = self.folder / f"{name}-{self.key}.npz"
        try:
            return load_npz(path)
        except FileNotFoundError:
            found = compute()
        save_npz(path, found)
        return found
