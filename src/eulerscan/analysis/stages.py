"""Intermediate results of a long computation, kept in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._storage import replacing
from .._version import __version__
from ..complexes import Complex

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
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        except FileNotFoundError:
            found = compute()
        with replacing(path) as partial, partial.open("wb") as output:
            np.savez(output, allow_pickle=False, **found)
        return found
