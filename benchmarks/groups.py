"""Tests and classification of groups of shapes, on real and simulated data.

    EULERSCAN_MIRROR=... python benchmarks/groups.py [level] [power] [classification] [time] [examples] [--output results]

- ``level``: share of p-values at most 0.05 where groups do not differ: 1,000 draws of permuted labels of real shapes (mouse
  vertebrae, a sample of the cells), and of simulated outlines. It must be 5 ± 1 %, and p-values uniform (Kolmogorov-Smirnov).
- ``power``: the same where they do, for growing differences.
- ``classification``: accuracy of ``eulerscan compare`` with its defaults, and of elliptic Fourier descriptors (12 harmonics,
  relative to the first) with a support vector machine (StandardScaler, SVC(C=5)), in the same folds; with sizes and joined.
- ``time``: 650 cells to a finished report, 999 permutations.
- ``examples``: reports of gorilla skulls by sex, kept in the output folder, and of apes, of which the table of pairs is kept.

Writes groups.md and groups.jsonl to the output folder.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eulerscan as es
from eulerscan._tables import markdown
from eulerscan.analysis import comparison
from eulerscan.analysis.classification import classify, num_repeats
from eulerscan.analysis.distances import distance_matrix
from eulerscan.analysis.groups import distance_regression, energy_test, permanova, permdisp
from eulerscan.complexes.extent import centroid_sizes
from eulerscan.convert import from_outline

HARMONICS = 12
TESTS = {
    "PERMANOVA": lambda d, g, **o: permanova(d, g, **o).p_value,
    "energy": lambda d, g, **o: energy_test(d, g, **o).p_value,
    "PERMDISP": lambda d, g, **o: permdisp(d, g, **o).test.p_value,
    "regression": lambda d, g, **o: distance_regression(d, np.asarray(g, dtype=float), **o).p_value,
}


def mirror() -> Path:
    folder = os.environ.get("EULERSCAN_MIRROR")
    if not folder:
        raise SystemExit("Set EULERSCAN_MIRROR to the folder with cells/ and morphometrics/.")
    return Path(folder)


def outlines() -> dict[str, tuple[list[np.ndarray], np.ndarray]]:
    """The outlines and groups of each data set."""
    cells = es.datasets.load("cells")
    shapes = [cells.shapes[i].points.double().numpy() for i in range(len(cells.shapes))]
    line = np.array(cells.classes)[cells.labels.numpy()]
    drug = es.datasets.load("cells", label="treatment")
    folder = mirror() / "morphometrics"
    with np.load(folder / "mice_outlines.npz") as mice:
        vertebrae, kinds = list(mice["outlines"].astype(float)), mice["group"]
    rows = np.genfromtxt(folder / "mosquito_wings.csv", delimiter=",", skip_header=1)
    genus = np.genfromtxt(folder / "mosquito_wings_groups.csv", delimiter=",", skip_header=1, dtype=str)[:, 1]
    wings = [rows[rows[:, 0] == i][:, 2:] for i in range(len(genus))]
    kept = [i for i, name in enumerate(genus) if Counter(genus)[name] > 1]
    return {
        "cells, line": (shapes, line),
        "cells, treatment": (shapes, np.array(drug.classes)[drug.labels.numpy()]),
        "mouse vertebrae": (vertebrae, kinds),
        "mosquito wings": ([wings[i] for i in kept], genus[kept]),
    }


def fourier(outline: np.ndarray) -> np.ndarray:
    """Elliptic Fourier descriptors ``[HARMONICS, 4]`` of a closed polygon (Kuhl and Giardina 1982)."""
    closed = np.concatenate([outline, outline[:1]])
    steps = np.diff(closed, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    steps, lengths = steps[lengths > 0], lengths[lengths > 0]
    phase = 2 * np.pi * np.concatenate([[0], np.cumsum(lengths)]) / lengths.sum()
    order = np.arange(1, HARMONICS + 1)[:, None]
    waves = [np.diff(wave(order * phase), axis=1) for wave in (np.cos, np.sin)]
    rates = (steps / lengths[:, None]).T
    columns = [(wave * rate).sum(axis=1) for rate in rates for wave in waves]
    return np.stack(columns, axis=1) * lengths.sum() / (2 * np.pi**2 * order**2)


def rotated(descriptors: np.ndarray) -> np.ndarray:
    """The same with the first ellipse along the first axis, and the start of the outline at its tip."""
    a, b, c, d = descriptors[0]
    shift = np.arctan2(2 * (a * b + c * d), a * a - b * b + c * c - d * d) / 2
    found = np.empty_like(descriptors)
    for i, row in enumerate(descriptors):
        angle = (i + 1) * shift
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        found[i] = (row.reshape(2, 2) @ turn).ravel()
    tilt = np.arctan2(found[0, 2], found[0, 0])
    turn = np.array([[np.cos(tilt), np.sin(tilt)], [-np.sin(tilt), np.cos(tilt)]])
    return np.stack([(turn @ row.reshape(2, 2)).ravel() for row in found])


def svm(features: np.ndarray, labels: np.ndarray, repeats: int) -> float:
    """Accuracy in the folds of :func:`classify`."""
    correct = []
    for seed in range(repeats):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(labels, labels):
            model = make_pipeline(StandardScaler(), SVC(C=5)).fit(features[train], labels[train])
            correct.append(model.predict(features[test]) == labels[test])
    return float(np.concatenate(correct).mean())


def classification() -> tuple[list[str], list[list[str]], list[dict]]:
    rows, records = [], []
    for name, (curves, labels) in outlines().items():
        shapes = from_outline([torch.from_numpy(np.ascontiguousarray(curve)) for curve in curves])
        repeats = max(3, num_repeats(len(labels)))
        plain = [fourier(curve) for curve in curves]
        size = centroid_sizes(shapes).log().numpy()[:, None]
        kinds = {
            "EFD": np.array([(d / np.linalg.norm(d[0])).ravel() for d in plain]),
            "EFD, normalized for rotation": np.array([(rotated(d) / np.linalg.norm(d[0])).ravel() for d in plain]),
            "EFD, amplitudes": np.array([np.linalg.norm(d, axis=1)[1:] / np.linalg.norm(d[0]) for d in plain]),
        }
        record = {"data": name, "shapes": len(labels), "groups": len(set(labels)), "repeats": repeats}
        record |= {kind: svm(features, labels, repeats) for kind, features in kinds.items()}
        best = max(kinds, key=lambda kind: record[kind])
        record["EFD, best of three, and size"] = max(svm(np.hstack([f, size]), labels, repeats) for f in kinds.values())
        config = comparison._checked_config(shapes, list(labels), comparison.CONFIG, [])
        features = comparison._features(shapes, config, None)
        candidates = comparison._candidates(features, shapes.dim, use_size=True)
        joined = comparison._balanced(features, shapes.dim) | {"size": size, "EFD": kinds[best]}
        candidates["shape, size and EFD"] = [(*one, "EFD") for one in candidates["shape and size"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = classify(joined, labels, candidates, repeats=repeats)
        record |= {f"compare: {what}": result.accuracy for what, result in found.items()}
        both = found["shape and size"]
        shrunk = (both.accuracy * len(labels) + 2) / (len(labels) + 4)  # Agresti and Coull: not 0 if all are correct
        record |= {"standard error": (shrunk * (1 - shrunk) / (len(labels) + 4)) ** 0.5, "majority": both.majority}
        records.append(record)
        print(json.dumps(record), flush=True)
    header = [key for key in records[0] if key not in ("repeats",)]
    for record in records:
        rows.append([f"{record[key]:.3f}" if isinstance(record[key], float) else str(record[key]) for key in header])
    return header, rows, records


def matrices(rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Distances of shapes for null draws, and numbers of groups, unequal."""
    found = {}
    for name, (curves, _) in outlines().items():
        if name not in ("cells, line", "mouse vertebrae"):
            continue
        chosen = rng.choice(len(curves), min(60, len(curves)), replace=False)
        transforms = comparison.CONFIG.transform(
            from_outline([torch.from_numpy(np.ascontiguousarray(curves[i])) for i in chosen])
        )
        labels = np.repeat([0, 1, 2], [len(chosen) // 2, len(chosen) // 3, len(chosen) - len(chosen) // 2 - len(chosen) // 3])
        found[name.partition(",")[0]] = (distance_matrix(transforms).numpy(), labels)
    return found


def simulated(rng: np.random.Generator, count: int, effect: float = 0.0, spread: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Distances of transforms of random outlines in two groups, which differ in width, or in how much they vary."""
    labels = np.repeat([0, 1], [count // 2, count - count // 2])
    angle = 2 * np.pi * np.arange(30) / 30
    waves = np.stack([wave(k * angle) for k in (2, 3, 4) for wave in (np.cos, np.sin)])
    noise = 0.06 * rng.normal(size=(count, 6)) * (1 + spread * labels[:, None])
    radius = 1 + noise @ waves + effect * labels[:, None] * np.cos(2 * angle)
    points = radius[:, :, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    config = es.ECTConfig(num_directions=16, num_thresholds=24)
    return distance_matrix(config.transform(from_outline(torch.from_numpy(points)))).numpy(), labels


def level(draws: int) -> tuple[list[str], list[list[str]], list[dict]]:
    from scipy.stats import kstest

    rng, records = np.random.default_rng(0), []
    sources = matrices(rng)
    for name in (*sources, "simulated"):
        p = {test: np.empty(draws) for test in TESTS}
        for i in range(draws):
            if name == "simulated":
                matrix, labels = simulated(rng, 30)
                drawn = rng.normal(size=30)
            else:
                matrix, labels = sources[name]
                drawn = rng.normal(size=len(labels))
                labels = rng.permutation(labels)
            for test, function in TESTS.items():
                p[test][i] = function(matrix, drawn if test == "regression" else labels, permutations=199, seed=i)
        for test, values in p.items():
            uniform = kstest(
                values - rng.uniform(0, 1 / 200, size=draws), "uniform"
            ).pvalue  # p-values are multiples of 1 / 200
            records.append(
                {"data": name, "test": test, "draws": draws, "level": float((values <= 0.05).mean()), "KS p": float(uniform)}
            )
            print(json.dumps(records[-1]), flush=True)
    rows = [[r["data"], r["test"], str(r["draws"]), f"{100 * r['level']:.1f} %", f"{r['KS p']:.2f}"] for r in records]
    return ["shapes", "test", "null draws", "p at most 0.05", "uniform (KS p)"], rows, records


def power(draws: int) -> tuple[list[str], list[list[str]], list[dict]]:
    rng, records = np.random.default_rng(1), []
    for what, values in {"means": (0.0, 0.02, 0.04, 0.08), "spread": (0.5, 1.0)}.items():
        for value in values:
            found = {test: 0 for test in TESTS if test != "regression"}
            for i in range(draws):
                matrix, labels = simulated(rng, 40, **{"effect" if what == "means" else "spread": value})
                for test in found:
                    found[test] += TESTS[test](matrix, labels, permutations=99, seed=i) <= 0.05
            records.append({"differ in": what, "by": value, "draws": draws} | {test: n / draws for test, n in found.items()})
            print(json.dumps(records[-1]), flush=True)
    header = list(records[0])
    return header, [[f"{r[k]:.2f}" if isinstance(r[k], float) else str(r[k]) for k in header] for r in records], records


def timing() -> tuple[list[str], list[list[str]], list[dict]]:
    import subprocess
    import sys

    cells = es.datasets.load("cells", label="treatment")
    with tempfile.TemporaryDirectory() as folder:
        for i, label in enumerate(cells.labels.tolist()):
            path = Path(folder) / "cells" / cells.classes[label]
            path.mkdir(parents=True, exist_ok=True)
            np.savetxt(path / f"{i:03}.csv", cells.shapes[i].points.numpy(), delimiter=",", fmt="%g")
        command = [sys.executable, "-m", "eulerscan", "compare", f"{folder}/cells", "--data", "outline=true", "--no-cache"]
        load, start = os.getloadavg()[0], time.perf_counter()
        subprocess.run([*command, "-o", f"{folder}/out", "--quiet"], check=True)
        seconds = time.perf_counter() - start
    record = {"data": "650 cells, 3 treatments", "permutations": 999, "seconds": seconds, "cores": os.cpu_count()}
    record["load"] = load
    print(json.dumps(record))
    return (
        ["data", "permutations", "cores", "load", "seconds"],
        [[record["data"], "999", str(record["cores"]), f"{load:.1f}", f"{seconds:.0f}"]],
        [record],
    )


def examples(output: Path) -> tuple[list[str], list[list[str]], list[dict]]:
    """Skulls by eight landmarks in the plane, joined in their order around the skull."""
    import csv
    import shutil
    import subprocess
    import sys

    around = [3, 2, 1, 7, 6, 5, 0, 4]
    folder = mirror() / "morphometrics"
    header = ["name", "group", *(f"{axis}{i}" for i in range(1, 9) for axis in "xy")]
    gorillas = list(csv.reader((folder / "gorillas.csv").read_text("utf-8").splitlines()))[1:]
    skulls = {"gorillas": [(row[1], np.array(row[2:], dtype=float).reshape(8, 2)) for row in gorillas]}
    with np.load(folder / "apes.npz") as apes:
        skulls["apes"] = [(str(group), points) for group, points in zip(apes["group"], apes["landmarks"], strict=True)]
    rows, records = [], []
    with tempfile.TemporaryDirectory() as work:
        for name, shapes in skulls.items():
            lines = [[f"{i:03}", group, *points[around].ravel()] for i, (group, points) in enumerate(shapes)]
            text = "\n".join(",".join(map(str, line)) for line in [header, *lines])
            (Path(work) / f"{name}.csv").write_text(text, encoding="utf-8")
            options = f"--table {name}.csv --label group --data outline=true --align best --overwrite -o {name}"
            options += " --where" * (name == "gorillas")
            command = [sys.executable, "-m", "eulerscan", "compare", f"{name}.csv", *options.split(), "--quiet"]
            subprocess.run(command, check=True, cwd=work)
            results = json.loads((Path(work) / name / "results.json").read_text("utf-8"))
            for pair in results["pairwise"]:
                figures = [f"{pair[key]:.3g}" for key in ("p_value", "q_value", "r2", "z", "d")]
                rows.append([name, " / ".join(pair["groups"]), " / ".join(map(str, pair["sizes"])), *figures])
            kept = ("permanova", "energy", "permdisp", "size", "pairwise")
            accuracy = {what: found["accuracy"] for what, found in results["classifications"].items()}
            records.append({"data": name, "accuracy": accuracy} | {key: results[key] for key in kept})
            print(json.dumps(records[-1]))
        target = output / "gorillas"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(work) / "gorillas" / "report.html", target / "report.html")
        for figure in ("groups.png", "means.png"):
            shutil.copy(Path(work) / "gorillas" / "figures" / figure, target / figure)
    return ["skulls", "groups", "shapes", "p", "q", "R²", "z", "d"], rows, records


PARTS = {"level": level, "power": power, "classification": classification, "time": timing, "examples": examples}

TEXTS = {
    "level": "Share of p-values at most 0.05 where groups do not differ, with 199 permutations. It must be 5 %, up to chance.",
    "power": "Share of p-values at most 0.05 for two groups of 20 simulated outlines that differ in width or in spread.",
    "classification": "Accuracy of elliptic Fourier descriptors (EFD) and of `eulerscan compare`, in the same folds. The "
    "standard error is that of shape and size. Features and settings of `compare` were chosen on these data sets, so its "
    "accuracy here is somewhat optimistic, although what it chooses within a fold is not.",
    "time": "`eulerscan compare` from files to the finished report. Load: programs that ran on the cores before it started.",
    "examples": "Pairs of groups of skulls, by eight landmarks, rotated to their mean.",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=Path("results"))
    options = parser.parse_args()
    args = {"level": (options.draws,), "power": (max(1, options.draws // 5),), "examples": (options.output,)}
    store = options.output / "groups.jsonl"
    kept = [json.loads(line) for line in store.read_text("utf-8").splitlines()] if store.exists() else []
    for part in options.parts or PARTS:
        header, rows, records = PARTS[part](*args.get(part, ()))
        kept = [record for record in kept if record["part"] != part]
        kept += [{"part": part, "header": header, "rows": rows, "records": records, "version": es.__version__}]
        store.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
        print(markdown(header, rows))
    kept.sort(key=lambda record: list(PARTS).index(record["part"]))
    sections = [f"{TEXTS[r['part']]}\n\n{markdown(r['header'], r['rows'])}\n" for r in kept]
    title = "## Groups of shapes\n\nWritten by `python benchmarks/groups.py`.\n\n"
    (options.output / "groups.md").write_text(title + "\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
