"""Files in, transforms out: the command ``eulerscan transform`` against a Python loop over the package ``ect``.

Run with the extras ``cli``, ``mesh`` and ``bulk``, the package ``ect`` and the dependency group ``bench`` installed:

    python benchmarks/bulk.py
    python benchmarks/bulk.py --files 2000 --subdivisions 3

It writes 10,000 PLY files, spheres of 162 vertices with bumps (642 with three subdivisions), to a temporary folder. The loop
reads each file with trimesh, makes the complex of ``ect`` of it and transforms it; as that takes minutes, it is timed on a
sample and multiplied. A second loop fills the cells by hand, for which ``add_faces_from`` takes long. The command is timed as a
person waits for it, from the start of Python to the last part, with one process for each core; the loops are timed
without the start of Python. Both make the same transforms, which is checked on the sample. Then: memory at its peak for a tenth
of the files and for all, a damaged file among a thousand, and a second run. Nothing else should run on the machine meanwhile.
The exit code is 1 if a floor was missed.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
import trimesh
from works import Report

import eulerscan as es
from eulerscan.bulk import load_transforms

SIZE, SAMPLE, SHARDS = 32, 200, 16
CORES = os.cpu_count() or 1


class Run(NamedTuple):
    """What a command took."""

    seconds: float
    megabytes: float  # of the command and its processes together, at the peak
    status: int
    errors: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000, help="how many")
    parser.add_argument("--subdivisions", type=int, default=2, help="of the spheres: 2 for 162 vertices, 3 for 642")
    arguments = parser.parse_args()
    count = arguments.files
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_meshes(folder / "all", count, arguments.subdivisions)
        reports = [speed(folder, count, 10 * 4**arguments.subdivisions + 2), memory(folder, count), damaged(folder)]
    missed = [miss for report in reports for miss in report.missed]
    print("Every floor was reached." if not missed else "Missed:\n" + "\n".join(f"- {miss}" for miss in missed))
    return 1 if missed else 0


def write_meshes(folder: Path, count: int, subdivisions: int) -> None:
    rng = np.random.default_rng(0)
    folder.mkdir()
    sphere = trimesh.creation.icosphere(subdivisions=subdivisions)
    for i in range(count):
        bumps = 1 + 0.3 * rng.random((len(sphere.vertices), 1))
        mesh = trimesh.Trimesh(sphere.vertices * bumps, sphere.faces, process=False)
        (folder / f"{i:06}.ply").write_bytes(mesh.export(file_type="ply"))


def command(*arguments: object) -> Run:
    """Run ``eulerscan transform`` in a process of its own, and watch it."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "eulerscan", "transform", *map(str, arguments), "--quiet"], stderr=subprocess.PIPE, text=True
    )
    peak = [0.0]
    watch = threading.Thread(target=_watch, args=(psutil.Process(process.pid), peak))
    watch.start()
    _, errors = process.communicate()
    seconds = time.perf_counter() - begin
    watch.join()
    return Run(seconds, peak[0], process.returncode, errors)


def _watch(process: psutil.Process, peak: list[float]) -> None:
    while True:
        try:
            family = [process, *process.children(recursive=True)]
            peak[0] = max(peak[0], sum(member.memory_info().rss for member in family) / 1e6)
            if process.status() == psutil.STATUS_ZOMBIE:
                return
        except psutil.NoSuchProcess:
            if not process.is_running():
                return
        time.sleep(0.05)


def ect_loop(paths: list[Path], directions: Any, thresholds: Any, *, by_hand: bool = False) -> list[Any]:
    """What one writes who has ``ect`` and ``trimesh``: read, center and scale, make a complex, transform."""
    from ect import ECT, Directions, EmbeddedComplex

    transform = ECT(directions=Directions.from_vectors(directions), thresholds=thresholds)
    found = []
    for path in paths:
        mesh = trimesh.load(path, process=False)
        points = mesh.vertices - mesh.centroid  # by area, as the command does
        points = points / np.linalg.norm(points, axis=1).max()
        embedded = EmbeddedComplex()
        embedded.add_nodes_from(list(enumerate(points)))
        embedded.add_edges_from(mesh.edges_unique.tolist())
        if by_hand:
            embedded.cells[2].extend(tuple(triangle) for triangle in mesh.faces.tolist())
        else:
            embedded.add_faces_from(mesh.faces.tolist())
        found.append(np.asarray(transform.calculate(embedded)))
    return found


def speed(folder: Path, count: int, vertices: int) -> Report:
    report = Report(
        f"{count:,} meshes of {vertices} vertices, {SIZE} directions x {SIZE} thresholds, files in, tables out",
        ["", "s", "meshes/s", "ratio", "floor"],
    )
    output = folder / "out"
    small = folder / "small"
    small.mkdir()
    for path in sorted((folder / "all").iterdir())[:50]:
        (small / path.name).symlink_to(path)
    command(small, "-o", folder / "first.npz")  # compiles what is to be compiled: once on a machine
    ours = command(folder / "all", "-o", output, "--shards", SHARDS)
    made = load_transforms(output)
    grid = made.settings.ect.directions(3).numpy(), made.settings.ect.thresholds().numpy()
    paths = [folder / "all" / name for name in made.names[:: max(1, count // SAMPLE)]][:SAMPLE]
    ect_loop(paths[:2], *grid)
    begin = time.perf_counter()
    theirs = ect_loop(paths, *grid)
    middle = time.perf_counter()
    ect_loop(paths, *grid, by_hand=True)
    loop, by_hand = ((seconds * count / len(paths)) for seconds in (middle - begin, time.perf_counter() - middle))
    chosen = made.transforms[:: max(1, count // SAMPLE)][:SAMPLE].numpy()
    share = float((np.stack(theirs) == chosen).mean())
    if ours.status != 0 or len(made.names) != count or share < 0.9999:
        report.miss("transforms", f"only {share:.4%} equal those of ect, {len(made.names)} of {count} files: not compared")
    again = command(folder / "all", "-o", output)
    alone = command(folder / "all", "-o", folder / "alone.npz")
    working = max(1e-3, ours.seconds - again.seconds)
    for name, seconds, floor in (
        (f"loop over ect, from {len(paths)} files", loop, None),
        ("the same, cells filled by hand", by_hand, None),
        (f"eulerscan transform, {CORES} processes", ours.seconds, 20),
        ("the same, less a second run, which does nothing", working, None),
        ("eulerscan transform, one process, one NPZ file", alone.seconds, None),
        ("second run", again.seconds, None),
    ):
        ratio = loop / seconds
        judged = report.at_least("transform", ratio, floor) if floor else ""
        report.rows.append([name, f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{ratio:.1f}x", judged])
    report.notes += [
        f"{share:.4%} of the entries of {len(paths)} meshes equal those of ect; seconds include the start of Python."
    ]
    print(f"{report.markdown()}\n", flush=True)
    return report


def memory(folder: Path, count: int) -> Report:
    report = Report("Memory at its peak, one process", ["files", "to", "MB", "floor"])
    tenth = folder / "tenth"
    tenth.mkdir()
    for path in sorted((folder / "all").iterdir())[: count // 10]:
        (tenth / path.name).symlink_to(path)
    for kind, options in (("parts", ["--processes", 1]), ("NPZ", []), ("CSV", [])):
        ending = "" if kind == "parts" else f".{kind.lower()}"
        few = command(tenth, "-o", folder / f"few-{kind}{ending}", *options)
        many = command(folder / "all", "-o", folder / f"many-{kind}{ending}", *options)
        grown = many.megabytes / few.megabytes
        floor = report.below(f"memory of {kind} from a tenth to all files", grown, 1.15, "times as much")
        report.rows += [
            [f"{count // 10:,}", kind, f"{few.megabytes:.0f}", ""],
            [f"{count:,}", kind, f"{many.megabytes:.0f}", floor],
        ]
    print(f"{report.markdown()}\n", flush=True)
    return report


def damaged(folder: Path) -> Report:
    report = Report("A damaged file among a thousand", ["", "found"])
    some = folder / "some"
    some.mkdir()
    for path in sorted((folder / "all").iterdir())[:999]:
        (some / path.name).symlink_to(path)
    whole = (folder / "all" / "000500.ply").read_bytes()
    (some / "damaged.ply").write_bytes(whole[: len(whole) // 2])
    run = command(some, "-o", folder / "some-out", "--shards", 4)
    listed = list(csv.reader((folder / "some-out" / "failures.csv").read_text().splitlines()))[1:]
    if run.status != 1 or [row[0] for row in listed] != ["damaged.ply"]:
        report.miss("a damaged file", f"exit code {run.status}, failures {listed}")
    report.rows += [["exit code", str(run.status)], ["failures.csv", "; ".join(": ".join(row) for row in listed)]]
    print(f"{report.markdown()}\n", flush=True)
    return report


if __name__ == "__main__":
    print(f"eulerscan {es.__version__}, torch {torch.__version__}, {CORES} cores\n")
    sys.exit(main())
