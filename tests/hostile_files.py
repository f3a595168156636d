"""Small hostile files for tests, made by the functions of benchmarks/hostile.py."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "hostile.py"
if not BENCHMARK.exists():
    pytest.skip("benchmarks are not there", allow_module_level=True)
_spec = importlib.util.spec_from_file_location("hostile", BENCHMARK)
hostile = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hostile)

SMALL = (
    "claims.png 60000",
    "pages.tif",
    "accessor.glb",
    "count.glb",
    "cycle.glb",
    "names.npz 6 GB",
    "claims.npy",
    "header.npy",
)
SMALL += ("flipped.npz", "entities.graphml", "face.off", "claims.off", "claims.ply", "claims.stl", "claims.xyz", "claims.bmp")
SMALL += ("claims.gif", "list.ply", "digits.tps", "quotes.csv", "words.obj", "faces.obj", "nested.gml", "nested.gltf")
"""Files of every kind that cannot be read, by their names in the benchmark."""


def write_hostile(folder: Path, names=SMALL) -> list[Path]:
    """Write hostile files and a glTF file whose buffer is a pipe. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [hostile.CASES[name][1](folder) for name in names]
    (folder / "pipe.gltf").write_text(json.dumps(hostile.scene(buffers=[{"uri": "pipe.bin", "byteLength": 36}])))
    os.mkfifo(folder / "pipe.bin")
    return [*paths, folder / "pipe.gltf"]
