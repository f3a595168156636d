"""Folders of files: reading them, reading them again, and the memory that silhouettes take.

    python benchmarks/folders.py

Meshes are written in each format, and read one by one with ``es.read`` and with trimesh. Then a folder of 380 meshes and one of
1,400 silhouettes are loaded as ``eulerscan train`` loads them: without a cache, and from it. Last, ``eulerscan transform`` runs
on the silhouettes in a process of its own, whose memory is compared with the same command on one of them. Run nothing else
meanwhile. The exit code is 1 if a floor is missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from PIL import Image, ImageDraw
from works import Report

import eulerscan as es
from eulerscan.datasets.folder import load_folder

PEAK = (
    "import resource, runpy, sys; sys.argv[0] = 'eulerscan'\n"
    "try: runpy.run_module('eulerscan', run_name='__main__')\n"
    "except SystemExit as exit: status = exit.code or 0\n"
    "print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3); sys.exit(status)"
)


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def mesh(seed: int) -> trimesh.Trimesh:
    """A bumpy sphere of 2,562 vertices."""
    rng = np.random.default_rng(seed)
    ball = trimesh.creation.icosphere(4)
    waves = rng.normal(size=(6, 3))
    ball.vertices *= 1 + 0.1 * np.cos(3 * ball.vertices @ waves.T).sum(axis=1, keepdims=True) / 6
    return ball


def silhouette(seed: int) -> Image.Image:
    """A smooth closed curve with some lobes, filled, of 256 x 256 pixels."""
    rng = np.random.default_rng(seed)
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    radius = 90 + sum(rng.normal(0, 18 / k) * np.cos(k * angle + rng.uniform(0, 6)) for k in range(1, 8))
    curve = 128 + np.clip(radius, 10, 120)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    canvas = Image.new("L", (256, 256))
    ImageDraw.Draw(canvas).polygon([tuple(point) for point in curve], fill=255)
    return canvas


def peak(folder: Path, output: Path) -> float:
    """Peak memory of ``eulerscan transform`` in MB."""
    command = [sys.executable, "-c", PEAK, "transform", str(folder), "-o", str(output), "--overwrite", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split("PEAK")[1])


def formats(folder: Path) -> Report:
    report = Report("Reading a mesh of 2,562 vertices", ["format", "es.read, ms", "trimesh.load, ms", "ratio", "floor"])
    for extension in ("off", "obj", "ply", "stl"):
        path = folder / f"mesh.{extension}"
        mesh(0).export(path)
        es.read(path)  # compiles
        ours = statistics.median(seconds(lambda at=path: es.read(at)) for _ in range(9))
        theirs = statistics.median(seconds(lambda at=path: trimesh.load(at)) for _ in range(5))
        floor = report.at_least(extension, theirs / ours, 1) if extension in ("off", "obj") else ""
        report.rows.append([extension.upper(), f"{1e3 * ours:.1f}", f"{1e3 * theirs:.1f}", f"{theirs / ours:.1f}x", floor])
    return report


def caching(folder: Path) -> Report:
    report = Report("Loading a folder", ["folder", "without cache, s", "first time, s", "second time, s", "floor"])
    for name in ("380 meshes", "1,400 silhouettes"):
        plain, first, again = (seconds(lambda at=folder / name, c=c: load_folder(at, cache=c)) for c in (False, True, True))
        report.rows.append([name, f"{plain:.2f}", f"{first:.2f}", f"{again:.2f}", report.below(name, again, 2, "s")])
    report.notes.append(
        "Meshes are OFF files of 2,562 vertices in 19 classes, silhouettes PNG files of 256 x 256 in 70 classes."
    )
    return report


def memory(folder: Path) -> Report:
    report = Report("Peak memory of eulerscan transform", ["silhouettes", "MB", "more", "floor"])
    (folder / "one").mkdir()
    silhouette(0).save(folder / "one" / "0.png")
    few, many = peak(folder / "one", folder / "one.npz"), peak(folder / "1,400 silhouettes", folder / "many.npz")
    report.rows = [["1", f"{few:.0f}", "", ""], ["1,400", f"{many:.0f}", f"{many - few:.0f}"]]
    report.rows[1] = [*report.rows[1], report.below("1,400 silhouettes", many - few, 300, "MB")]
    return report


def main() -> int:
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        os.environ["EULERSCAN_DATA"] = f"{place}/cache"
        folder = Path(place)
        for number in range(380):
            path = folder / "380 meshes" / f"class-{number % 19}" / f"{number}.off"
            path.parent.mkdir(parents=True, exist_ok=True)
            mesh(number).export(path)
        for number in range(1400):
            path = folder / "1,400 silhouettes" / f"class-{number % 70}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            silhouette(number).save(path)
        for section in (formats, caching, memory):
            report = section(folder)
            print(report.markdown(), end="\n\n", flush=True)
            missed += report.missed
    print("\n".join(missed) or "Every floor was reached.")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
