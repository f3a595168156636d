"""Fuzzing: mutated files of every readable format, and random complexes against an independent oracle.

    python benchmarks/fuzz.py --files 20000 --complexes 20000 --seed 7
    python benchmarks/fuzz.py --files 20000 --first 12000 --seed 7     # resumes
    python benchmarks/fuzz.py --seed 7 --case file:12345               # one case again
    python benchmarks/fuzz.py --seed 7 --case complex:678

A case follows from the seed and its number alone.

Files: small valid ones are made at run time and mutated by flipped bits, truncation, splices, repeated blocks, edited numbers
and swapped words. Each must be read as a shape, or raise a ``ReadError`` that names the file, within ``--seconds`` and
``--megabytes`` beyond the process. Files that fail are kept in ``--keep``.

Complexes: weighted, empty, unsorted, with ties, in dimensions 1 to 4, with scales from tiny to huge. The transforms of the CPU
kernel and of the portable one, and their derivatives in the thresholds, must equal sums over all simplices, computed here with
integers and NumPy. Exact transforms must be exact.

The exit code is 1 if a case fails.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import logging
import math
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import eulerscan as es
from eulerscan._progress import progress_bar
from eulerscan._tables import aligned
from eulerscan.io import ReadError
from eulerscan.kernels import portable

Rng = np.random.Generator
Array = np.ndarray[Any, Any]
LARGE = 300  # vertices
FILE, COMPLEX = 0, 1  # the two kinds have random numbers of their own

# Files


def valid_files() -> dict[str, bytes]:
    """Small files of every readable format by name, whose extension is that of the format."""
    import networkx
    import trimesh
    from PIL import Image

    mesh = trimesh.creation.icosphere(subdivisions=1)
    points = np.random.default_rng(0).normal(size=(12, 3)).round(4)
    edges = np.stack([np.arange(11), np.arange(1, 12)])
    ring = np.zeros((12, 11), dtype=np.uint8)
    ring[2:9, 2:8] = 255
    ring[4:6, 4:6] = 0
    graph = networkx.cycle_graph(6)
    for node, (x, y, _) in zip(graph, points.tolist(), strict=False):
        graph.nodes[node].update(x=x, y=y)

    def table(separator: str, header: str = "", rows: Array = points) -> bytes:
        lines = [separator.join(map(str, row)) for row in rows.tolist()]
        return "\n".join([*([header] if header else []), *lines, ""]).encode()

    def saved(save: Callable[..., Any], *values: Any, **named: Any) -> bytes:
        buffer = io.BytesIO()
        save(buffer, *values, **named)
        return buffer.getvalue()

    def picture(format: str, **options: Any) -> bytes:
        return saved(Image.fromarray(ring).save, format=format, **options)

    def exported(**options: Any) -> bytes:
        content = mesh.export(**options)
        return content.encode() if isinstance(content, str) else bytes(content)

    gltf = trimesh.exchange.gltf.export_gltf(trimesh.Scene(mesh), embed_buffers=True)
    pages = [Image.fromarray(np.roll(ring, i, 0)) for i in range(3)]
    specimens = [
        b"LM=4\n" + table(" ", rows=points[4 * i : 4 * i + 4, :2]) + b"IMAGE=%d.jpg\nID=%d\n" % (i, i) for i in range(3)
    ]
    wide = "id," + ",".join(f"x{i},y{i}" for i in range(1, 5))
    return {
        **{f"mesh.{format}": exported(file_type=format) for format in ("obj", "ply", "off", "stl", "glb")},
        "ascii.ply": exported(file_type="ply", encoding="ascii"),
        "cloud.ply": bytes(trimesh.PointCloud(points).export(file_type="ply")),
        "ascii.stl": exported(file_type="stl_ascii"),
        "mesh.gltf": gltf["model.gltf"],
        "double.npy": saved(np.save, points),
        "fortran.npy": saved(np.save, np.asfortranarray(points.astype(np.float32))),
        "plain.npz": saved(np.savez, points=points, edges=edges),
        "compressed.npz": saved(np.savez_compressed, points=points, edges=edges),
        "cloud.xyz": table(" "),
        "molecule.xyz": b"3\nwater\nO 0.0 0.0 0.117\nH 0.0 0.757 -0.469\nH 0.0 -0.757 -0.469\n",
        "points.csv": table(","),
        "header.csv": table(",", "x,y,z"),
        "decimal.csv": table(";").replace(b".", b","),
        "wide.csv": table(",", wide, np.column_stack([np.arange(3), points[:, :2].reshape(3, 8)])),
        "points.tsv": table("\t"),
        "points.txt": table("   "),
        "wings.tps": b"".join(specimens),
        "ring.graphml": "\n".join(networkx.generate_graphml(graph)).encode(),
        "ring.gml": "\n".join(networkx.generate_gml(graph)).encode(),
        **{f"ring.{format}": picture(format) for format in ("png", "bmp", "gif", "jpeg")},
        "ring.webp": picture("webp", lossless=True),
        "ring.tiff": picture("tiff"),
        "packed.tif": picture("tiff", compression="tiff_lzw"),
        "volume.tif": saved(pages[0].save, format="tiff", save_all=True, append_images=pages[1:]),
        "smooth.png": saved(Image.fromarray(ring.repeat(6, 0).repeat(6, 1)).save, format="png"),  # large enough for contours
        "color.png": saved(Image.fromarray(np.stack([ring] * 4, axis=2)).save, format="png"),
    }


NUMBERS = [b"0", b"1", b"-1", b"2", b"255", b"65536", b"2147483647", b"2147483648", b"4294967295", b"99999999999", b"1e308",
           b"1e999", b"nan", b"-inf", b"0x10", b"1_0", b"1.5", b".", b"9" * 400]  # fmt: skip
WORDS = [b"", b" ", b"\t" * 300, b"\n", b"\r", b"\0", b",", b";", b'"', b"'", b"#", b"[", b"]", b"{", b"}", b"<", b">", b"/",
         b"=", b"property list uchar int vertex_indices ", b"element face 9 ", b"LM=", b"LM3=9\n", b"node [", b"\xff\xfe",
         b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xe9", b"a" * 5000, b"()" * 500]  # fmt: skip
INTEGERS = [0, 1, 2, 3, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]


def flip_bits(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))


def randomize_bytes(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    start = int(rng.integers(len(data)))
    end = min(len(data), start + int(rng.integers(1, 9)))
    data[start:end] = rng.bytes(end - start)


def truncate(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    del data[rng.integers(len(data)) :]


def cut(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    start = int(rng.integers(len(data)))
    del data[start : start + int(rng.integers(1, 40))]


def repeat(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    start = int(rng.integers(len(data)))
    block = data[start : start + int(rng.integers(1, 200))]
    data[start:start] = block * int(rng.choice([1, 2, 30]))


def splice(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    other = others[rng.integers(len(others))]
    start, end = sorted(rng.integers(len(other) + 1, size=2).tolist())
    at = int(rng.integers(len(data)))
    data[at : at + int(rng.choice([0, end - start]))] = other[start:end]


def edit_number(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    reach = len(data) if rng.random() < 0.3 else 400  # headers are short
    found = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(data[:reach])))
    if found:
        start, end = found[rng.integers(len(found))].span()
        data[start:end] = NUMBERS[rng.integers(len(NUMBERS))]


def edit_integer(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    size, order = int(rng.choice([1, 2, 4, 8])), ("little", "big")[rng.integers(2)]
    reach = len(data) if rng.random() < 0.3 else min(len(data), 200)
    start, value = int(rng.integers(reach)), INTEGERS[rng.integers(len(INTEGERS))]
    data[start : start + size] = (value % 2 ** (8 * size)).to_bytes(size, order)  # type: ignore[arg-type]


def swap_words(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    words = re.split(rb"(\s+|,)", bytes(data))
    i, j = rng.integers(len(words), size=2).tolist()
    words[i], words[j] = words[j], words[i]
    data[:] = b"".join(words)


def insert_word(data: bytearray, rng: Rng, others: list[bytes]) -> None:
    at = int(rng.integers(len(data) if rng.random() < 0.5 else min(len(data), 200)))
    data[at:at] = WORDS[rng.integers(len(WORDS))] * int(rng.choice([1, 1, 1, 50]))


MUTATIONS = (flip_bits, randomize_bytes, truncate, cut, repeat, splice, edit_number, edit_integer, swap_words, insert_word)
WEIGHTS = np.array([3, 2, 0.5, 1, 1, 1, 2, 2, 1, 1]) / 14.5  # most truncated files are errors, whatever the rest


def mutated(seed: int, index: int, originals: dict[str, bytes]) -> tuple[str, bytes]:
    """The name and the content of a case."""
    rng, names = np.random.default_rng([seed, FILE, index]), list(originals)
    name = names[index % len(names)]
    data = bytearray(originals[name])
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3, 6])):
        if data:
            rng.choice(MUTATIONS, p=WEIGHTS)(data, rng, list(originals.values()))
    return name, bytes(data)


class Limits(NamedTuple):
    seconds: float
    megabytes: float


class Overtime(BaseException):
    """Not an ``Exception``, which readers may turn into an error of their own."""


@contextmanager
def alarm(seconds: float) -> Any:
    """Interrupt a block that computes or waits too long. If it does not listen, end the process and show where.

    It computes by the time of the processor, so that a busy machine is no reason.
    """

    def ring(*_: Any) -> None:
        raise Overtime(f"takes longer than {seconds:g} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, 30 * seconds)}
    before = {number: signal.signal(number, ring) for number in timers}
    for timer, after in timers.values():
        signal.setitimer(timer, after)
    faulthandler.dump_traceback_later(60 * seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def read_case(path: Path, limits: Limits) -> tuple[str, str]:
    """What became of a file, "shape", "error" or "failure", and why it failed."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with alarm(limits.seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape = es.read(path)
        answer, reason = "shape", ""
        if not len(shape.points) or not bool(shape.points.isfinite().all()):
            answer, reason = "failure", f"the shape has no points, or points that are not finite: {shape}"
    except ReadError as error:
        answer, reason = "error", ""
        if str(path) not in str(error):
            answer, reason = "failure", f"the error does not name the file: {error}"
    except Overtime as error:
        answer, reason = "failure", str(error)
    except Exception as error:
        answer, reason = "failure", f"{type(error).__name__}: {error}"
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return (answer, reason) if growth <= limits.megabytes else ("failure", f"takes {growth:.0f} MB")


# Complexes


class Case(NamedTuple):
    """A batch of complexes on a lattice, so that all heights are exact: everything is an integer times a power of two."""

    points: Array  # [V, dim], integers
    simplices: list[Array]  # [rows, n]
    batch: Array  # [V], unsorted
    num_complexes: int
    weights: list[Array] | None  # quarters
    directions: Array  # [T, dim], integers
    thresholds: Array  # [H], integers, ascending
    unit: float  # of the points and thresholds
    scale: float
    dtype: torch.dtype


def random_case(seed: int, index: int) -> Case:
    rng = np.random.default_rng([seed, COMPLEX, index])
    dim, num_complexes = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    large = rng.random() < 0.03  # enough vertices to be summed by moments
    sizes = (
        rng.integers(LARGE, 1200, num_complexes)
        if large
        else rng.integers(0, 14, num_complexes) * (rng.random(num_complexes) < 0.85)
    )
    batch = rng.permutation(np.repeat(np.arange(num_complexes), sizes.astype(int)))
    spread = int(rng.choice([1, 2, 6, 30]))  # many ties or few
    points = rng.integers(-spread, spread + 1, (len(batch), dim))
    simplices = []
    for rows in range(2, 2 + int(rng.integers(0, 4))):
        columns = []
        for b in range(num_complexes):
            own = np.flatnonzero(batch == b)
            if len(own) >= rows:
                count = int(rng.integers(0, 2 * len(own)))
                columns += [rng.choice(own, rows, replace=False) for _ in range(min(count, 40))]
        order = rng.permutation(len(columns))
        simplices.append(np.array([columns[i] for i in order], dtype=np.int64).reshape(-1, rows).T)
    counts = [len(points), *(level.shape[1] for level in simplices)]
    weights = [rng.integers(-8, 9, n) / 4 for n in counts] if rng.random() < 0.5 else None
    directions = rng.integers(-3, 4, (int(rng.integers(1, 20)), dim))
    reach = 3 * dim * spread + 2
    thresholds = np.sort(rng.integers(-reach, reach + 1, int(rng.integers(0, 40))))
    dtype = torch.float32 if rng.random() < 0.5 else torch.float64
    if rng.random() < 0.3:  # far from the origin, where rounding is coarse
        far = 2 ** int(rng.integers(8, 16 if dtype == torch.float32 else 44))
        points[:, 0] += far
        directions[:, 0] = 1
        thresholds += far
    unit = 2.0 ** int(rng.integers(-60, 61) if rng.random() < 0.5 else 0)
    # Times the unit, from a flat sigmoid to one much steeper than rounding.
    exponent = rng.choice([rng.uniform(-2, 3), rng.uniform(-12, 25)])
    scale = math.inf if rng.random() < 0.4 else min(1e30, float(10**exponent) / unit)
    return Case(points, simplices, batch, num_complexes, weights, directions, thresholds, unit, scale, dtype)


def levels_of(case: Case) -> list[Array]:
    """The vertices of all simplices ``[n, rows]`` of each dimension."""
    return [np.arange(len(case.points))[:, None], *(level.T for level in case.simplices)]


def expected(case: Case) -> tuple[Array, Array, Array]:
    """The transform ``[B, T, H]``, its derivative in the thresholds, and the sum of all weights ``[B]`` in absolute value."""
    heights = np.zeros((len(case.points), len(case.directions)), dtype=np.int64)
    for v in range(len(case.points)) if len(case.points) < 50 else ():
        for i in range(len(case.directions)):
            heights[v, i] = sum(int(x) * int(d) for x, d in zip(case.points[v], case.directions[i], strict=True))
    if len(case.points) >= 50:
        heights = (case.points[:, None, :] * case.directions[None, :, :]).sum(axis=2)
    shape = (case.num_complexes, len(case.directions), len(case.thresholds))
    result, slope, size = np.zeros(shape), np.zeros(shape), np.zeros(case.num_complexes)
    for k, level in enumerate(levels_of(case)):
        weights = np.ones(len(level)) if case.weights is None else case.weights[k]
        for column, weight in zip(level, weights, strict=True):
            owner = case.batch[column[0]]
            above = case.thresholds - heights[column].max(axis=0)[:, None]  # [T, H], integers
            if math.isinf(case.scale):
                share, steep = (above >= 0).astype(float), np.zeros(above.shape)
            else:
                rate = case.scale * case.unit
                decay = np.exp(-np.abs(rate * above))
                share = np.where(above >= 0, 1 / (1 + decay), decay / (1 + decay))
                steep = case.scale * decay / (1 + decay) ** 2
            result[owner] += (-1) ** (len(column) - 1) * weight * share
            slope[owner] += (-1) ** (len(column) - 1) * weight * steep
            size[owner] += abs(weight)
    return result, slope, size


def transform_case(seed: int, index: int) -> tuple[str, str]:
    """What became of a complex, "exact", "smooth" or "failure", and why it failed."""
    case = random_case(seed, index)
    result, slope, size = expected(case)

    def tensor(values: Array) -> torch.Tensor:
        return torch.tensor(np.asarray(values, dtype=np.float64)).to(case.dtype)

    try:
        complex = es.Complex(
            tensor(case.points * case.unit),
            [torch.tensor(level) for level in case.simplices],
            weights=None if case.weights is None else [tensor(w) for w in case.weights],
            batch=torch.tensor(case.batch),
            num_complexes=case.num_complexes,
        )
        directions, packed = tensor(case.directions), complex.packed
        kernels: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "cpu": lambda thresholds: es.ect(complex, directions, thresholds, scale=case.scale),
            "portable": lambda thresholds: portable.ect(
                packed.points, directions, thresholds, torch.tensor(case.scale, dtype=case.dtype),
                packed.weights, packed.simplices, packed.offsets, list(packed.rows),
            ),
        }  # fmt: skip
        upstream = tensor(np.random.default_rng([seed, COMPLEX, index, 1]).integers(-4, 5, result.shape))
        for name, kernel in kernels.items():
            thresholds = tensor(case.thresholds * case.unit).requires_grad_(not math.isinf(case.scale))
            found = kernel(thresholds)
            # The portable kernel adds in the dtype of the points. So does the CPU kernel, 2048 vertices of a large one:
            # terms of the series of the sigmoid, beyond the first at most a sixteenth of it, which is exact.
            vertices = int(np.bincount(case.batch, minlength=1).max())
            moments = min(vertices, 2048) / 16 if vertices >= LARGE else 0
            steps = sum(map(len, levels_of(case))) if name == "portable" else moments
            _check(f"{name} transform", found, result, size[:, None, None], case, steps)
            if thresholds.requires_grad:
                gradient = torch.autograd.grad(found, thresholds, upstream, materialize_grads=True)[0]
                wanted = (slope * upstream.double().numpy()).sum(axis=(0, 1))
                _check(f"{name} gradient", gradient, wanted, 4 * case.scale * len(directions) * size.sum(), case, steps)
    except Exception as error:
        return "failure", f"{type(error).__name__}: {error}"
    return "exact" if math.isinf(case.scale) else "smooth", ""


def _check(what: str, found: torch.Tensor, wanted: Array, size: Any, case: Case, steps: float) -> None:
    """Exact transforms are exact, since weights are quarters. Others have the rounding of a sum in that many steps."""
    tolerance = (4e-7 if case.dtype == torch.float32 else 1e-13) + steps * torch.finfo(case.dtype).eps / 2
    tolerance = 0.0 if math.isinf(case.scale) else tolerance
    values = found.detach().double().numpy()
    if values.shape != wanted.shape:
        raise AssertionError(f"{what} has shape {values.shape}, expected {wanted.shape}")
    errors = np.abs(values - wanted) - tolerance * size
    if not (errors <= 0).all():  # NaN too
        at = np.unravel_index(np.argmax(np.where(np.isnan(errors), np.inf, errors)), errors.shape)
        raise AssertionError(
            f"{what} is {values[at]!r} at {tuple(map(int, at))}, expected {wanted[at]!r} ({case.dtype}, {case.scale=})"
        )


# Runs


def fuzz_files(numbers: Iterable[int], seed: int, keep: Path, limits: Limits) -> tuple[list[list[Any]], list[str]]:
    """Counts by format, and the failures."""
    originals = valid_files()
    counts: dict[str, Counter[str]] = {name: Counter() for name in originals}
    slowest: dict[str, float] = dict.fromkeys(originals, 0.0)
    failures: list[str] = []
    numbers = list(numbers)
    keep.mkdir(parents=True, exist_ok=True)
    for name, content in originals.items():
        path = keep / name
        path.write_bytes(content)
        es.read(path)  # raises if a file is not valid before it is mutated; compiles what the readers use
        path.unlink()
    with tempfile.TemporaryDirectory(dir=keep) as folder, closing(progress_bar(len(numbers), "files")) as bar:
        for number in numbers:
            name, content = mutated(seed, number, originals)
            path = Path(folder) / f"{number}-{name}"  # there is the case, should the process die
            path.write_bytes(content)
            start = time.process_time()
            answer, reason = read_case(path, limits)
            slowest[name] = max(slowest[name], time.process_time() - start)
            counts[name][answer] += 1
            if answer == "failure":
                path.replace(keep / path.name)
                failures.append(f"--seed {seed} --case file:{number}: {keep / path.name}: {reason}")
            else:
                path.unlink()
            bar.update(1)
    columns = ("shape", "error", "failure")
    rows = [[name, found.total(), *(found[c] for c in columns), f"{slowest[name]:.2f}"] for name, found in counts.items()]
    total = sum(counts.values(), Counter[str]())
    return [*rows, ["all", total.total(), *(total[c] for c in columns), f"{max(slowest.values()):.2f}"]], failures


def fuzz_complexes(numbers: Iterable[int], seed: int) -> tuple[list[list[Any]], list[str]]:
    counts, failures, numbers = Counter[str](), [], list(numbers)
    with closing(progress_bar(len(numbers), "complexes")) as bar:
        for number in numbers:
            answer, reason = transform_case(seed, number)
            counts[answer] += 1
            if answer == "failure":
                failures.append(f"--seed {seed} --case complex:{number}: {reason}")
            bar.update(1)
    return [[counts.total(), counts["exact"], counts["smooth"], counts["failure"]]], failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=0, help="number of mutated files")
    parser.add_argument("--complexes", type=int, default=0, help="number of random complexes")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", help="run one case again: file:NUMBER or complex:NUMBER")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for files that fail")
    parser.add_argument("--seconds", type=float, default=2.0, help="limit of one file")
    parser.add_argument("--megabytes", type=float, default=500.0, help="limit of one file")
    options = parser.parse_args()
    files, complexes = (range(options.first, n) for n in (options.files, options.complexes))
    if options.case:
        kind, _, number = options.case.partition(":")
        only = range(int(number), int(number) + 1)
        files, complexes = (only if kind == name else range(0) for name in ("file", "complex"))
    logging.disable()  # of the libraries that parse
    torch.set_num_threads(1)
    failures: list[str] = []
    if files:
        rows, found = fuzz_files(files, options.seed, options.keep.resolve(), Limits(options.seconds, options.megabytes))
        failures += found
        print(aligned(["file", "cases", "shapes", "errors", "failures", "slowest s"], [row for row in rows if row[1]]), "\n")
    if complexes:
        rows, found = fuzz_complexes(complexes, options.seed)
        failures += found
        print(aligned(["complexes", "exact", "smooth", "failures"], rows), "\n")
    print(json.dumps({"seed": options.seed, "files": len(files), "complexes": len(complexes), "failures": len(failures)}))
    for failure in failures[:100]:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
