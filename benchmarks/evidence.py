"""Evidence against the truth: does `evidence` find the vertices in which groups were made to differ?

    python benchmarks/evidence.py                      # 45 runs of each scenario; resumes, prints the table
    python benchmarks/evidence.py --runs 3 --seed 1000 # other seeds, for trials
    python benchmarks/evidence.py --render             # the table of the finished runs
    python benchmarks/evidence.py --figure evidence.png
    python benchmarks/evidence.py --time

The simulation is that of SINATRA (Wang et al., Annals of Applied Statistics 2021): a sphere of 642 vertices, each multiplied by
N(1, 0.035). 50 sites are spread over the sphere; the region of a site is its 10 nearest vertices. Each of two classes has u
causal regions of its own, multiplied by 0.55 and moved by one N(0, 0.1), and both share v regions, 1.35 times the sphere plus
one N(0, 0.1), the same in both shapes of a pair. 50 shapes a class. A run has three parts:

    bumps     as described
    dents     shared regions are 0.55 times the sphere, as the causal ones are
    permuted  bumps with permuted labels: nothing is to be found

For each: the AUC over all vertices of a shape (causal for its class or not), the same for the scores under the first
permutation (`null`), the AUC of causal against shared vertices alone, and the share of vertices with p <= 0.05 or q <= 0.05
(discovered), all averaged over the shapes. Vertices beside a causal region count as others.

`bumps` also has the deletion test: a linear classifier is trained on half of the shapes and tested on the other half, on which
the vertices with the highest scores are moved back to the sphere, or as many random ones, single or in patches. The evidence of
the test half comes from all shapes, the classifier does not know them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import eulerscan as es
from eulerscan import __version__
from eulerscan.analysis.evidence import Evidence, evidence

RESULTS = Path(__file__).parents[1] / "results" / "evidence.jsonl"
SCENARIOS = ((1, 2), (3, 6), (5, 10))
SINATRA = {(1, 2): 0.90, (3, 6): 0.78, (5, 10): 0.73}  # published, over all vertices
REGION, NOISE, DENT, BUMP, MOVE, SITES, PAIRS = 10, 0.035, 0.55, 1.35, 0.1, 50, 50
DELETED = (0, 10, 20, 40, 80, 160)
PERMUTED = (("permuted", "auc"), ("permuted", "auc_null"), ("bumps", "auc_null"))
HEADER = """## Where groups differ, on simulated shapes

`python benchmarks/evidence.py` repeats the simulation of SINATRA: two classes of 50 noisy spheres of 642 vertices, each with
u causal regions of its own and v regions that both share. Columns are (u, v). Means over runs ± standard error, 200
permutations.

"""
Array = np.ndarray[Any, Any]


class Simulation(NamedTuple):
    shapes: es.Complex
    labels: Array  # [N]
    causal: Array  # [2, V]: of each class
    shared: Array  # [V], without vertices that are causal for either class
    sphere: Array  # [V, 3]


def icosphere() -> tuple[Array, Array]:
    import trimesh

    mesh = trimesh.creation.icosphere(subdivisions=3)
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def simulate(num_causal: int, num_shared: int, seed: int, *, dents: bool = False, pairs: int = PAIRS) -> Simulation:
    """Shapes of both classes in turn. The sites, and all that is random, depend on the seed."""
    rng = np.random.default_rng((seed, num_causal, num_shared))
    sphere, faces = icosphere()
    sites = es.directions.fibonacci(SITES, dtype=torch.float64).numpy()
    regions = np.linalg.norm(sites[:, None] - sphere, axis=2).argsort(axis=1)[:, :REGION]
    chosen = regions[rng.permutation(SITES)[: 2 * num_causal + num_shared]]
    own, common = chosen[: 2 * num_causal].reshape(2, num_causal, REGION), chosen[2 * num_causal :]
    clouds = []
    for _ in range(pairs):
        moves = rng.normal(0, MOVE, len(common))
        for label in (0, 1):
            points = sphere * rng.normal(1, NOISE, (len(sphere), 1))
            for region in own[label]:
                points[region] = DENT * points[region] + rng.normal(0, MOVE)
            for region, move in zip(common, moves, strict=True):
                points[region] = (DENT if dents else BUMP) * sphere[region] + move
            clouds.append(points)
    causal, shared = np.zeros((2, len(sphere)), dtype=bool), np.zeros(len(sphere), dtype=bool)
    for label in (0, 1):
        causal[label, own[label].ravel()] = True
    shared[common.ravel()] = True
    mesh = es.Complex(torch.from_numpy(sphere).float(), [torch.from_numpy(faces.T.copy())]).closure()
    shapes = es.collate([mesh.with_points(torch.from_numpy(points).float()) for points in clouds])
    return Simulation(shapes, np.tile([0, 1], pairs), causal, shared & ~causal.any(axis=0), sphere)


def auc(scores: Array, positive: Array) -> float:
    from scipy.stats import rankdata

    count = positive.sum()
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(scores) - count)))


def measure(found: Evidence, simulation: Simulation) -> dict[str, float]:
    """Averages over the shapes, whose classes are the true ones."""
    scores, null, p_values, q_values = (
        x.reshape(len(simulation.labels), -1).numpy() for x in (found.scores, found.null, found.p_values, found.q_values)
    )
    overall, against, discovered, false, significant, beside = [], [], [], [], [], []
    for score, p, q, label in zip(scores, p_values, q_values, simulation.labels, strict=True):
        causal = simulation.causal[label]
        overall.append(auc(score, causal))
        both = causal | simulation.shared
        against.append(auc(score[both], causal[both]))
        significant.append(float((p[causal] <= 0.05).mean()))
        beside.append(float((p[~causal] <= 0.05).mean()))
        discovered.append(float((q[causal] <= 0.05).mean()))
        false.append(float((q[~causal] <= 0.05).mean()))
    regions = [region for region in found.regions if region.p_value <= 0.05]
    return {
        "auc": statistics.fmean(overall),
        "auc_null": statistics.fmean(auc(*pair) for pair in zip(null, simulation.causal[simulation.labels], strict=True)),
        "auc_causal_shared": statistics.fmean(against),
        "p_below_005": float((p_values <= 0.05).mean()),
        "causal_p_below_005": statistics.fmean(significant),
        "others_p_below_005": statistics.fmean(beside),
        "causal_discovered": statistics.fmean(discovered),
        "others_discovered": statistics.fmean(false),
        "shapes_with_region": len({region.shape for region in regions}) / len(simulation.labels),
    }


def deletion(found: Evidence, simulation: Simulation, seed: int) -> dict[str, list[float]]:
    """Accuracy on held-out shapes after so many vertices were moved back to the sphere (``DELETED``)."""
    from sklearn.linear_model import RidgeClassifier

    rng = np.random.default_rng(seed)
    config = es.ECTConfig(100, 30, radius=1.8, normalize=None)
    pairs = rng.permutation(len(simulation.labels) // 2)
    train, test = (np.concatenate([2 * half, 2 * half + 1]) for half in np.array_split(pairs, 2))
    model = RidgeClassifier(alpha=1e3)
    model.fit(config.transform(simulation.shapes.select(train.tolist())).flatten(1).numpy(), simulation.labels[train])
    scores = found.scores.reshape(len(simulation.labels), -1).numpy()
    shapes = simulation.shapes.select(test.tolist())
    sphere = simulation.sphere
    accuracies: dict[str, list[float]] = {"top": [], "random": [], "patch": []}
    for way, values in accuracies.items():
        for count in DELETED:
            points = shapes.points.reshape(len(test), -1, 3).clone()
            for i, shape in enumerate(test):
                if way == "top":
                    order = scores[shape].argsort()[::-1]
                elif way == "random":
                    order = rng.permutation(len(sphere))
                else:
                    order = np.linalg.norm(sphere - sphere[rng.integers(len(sphere))], axis=1).argsort()
                chosen = torch.from_numpy(order[:count].copy())
                points[i, chosen] = torch.from_numpy(sphere).float()[chosen]
            features = config.transform(shapes.with_points(points.reshape(-1, 3))).flatten(1).numpy()
            values.append(float(model.score(features, simulation.labels[test])))
    return accuracies


def run(scenario: tuple[int, int], seed: int, permutations: int) -> dict[str, Any]:
    start = time.perf_counter()
    result: dict[str, Any] = {"experiment": "evidence", "scenario": list(scenario), "seed": seed, "version": __version__}
    result["settings"] = {"permutations": permutations}
    bumps = simulate(*scenario, seed)
    before = time.perf_counter()
    found = evidence(bumps.shapes, bumps.labels, permutations=permutations, seed=seed)
    result["seconds_evidence"] = round(time.perf_counter() - before, 2)
    result["bumps"] = measure(found, bumps)
    result["deletion"] = deletion(found, bumps, seed)
    permuted = np.random.default_rng((seed, 1)).permutation(bumps.labels)
    result["permuted"] = measure(evidence(bumps.shapes, permuted, permutations=permutations, seed=seed), bumps)
    dents = simulate(*scenario, seed, dents=True)
    result["dents"] = measure(evidence(dents.shapes, dents.labels, permutations=permutations, seed=seed), dents)
    return result | {"seconds": round(time.perf_counter() - start, 1)}


def finished(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()] if path.exists() else []


def render(path: Path) -> None:
    """Print the table, and write it beside the runs: means over the runs, and their standard errors."""
    runs = finished(path)
    lines = ["| | " + " | ".join(f"({u}, {v})" for u, v in SCENARIOS) + " |", "|---|" + "---|" * len(SCENARIOS)]

    def row(name: str, value: Callable[[list[dict[str, Any]], tuple[int, int]], str]) -> None:
        cells = []
        for scenario in SCENARIOS:
            mine = [run for run in runs if run["scenario"] == list(scenario)]
            cells.append(value(mine, scenario) if mine else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")

    def mean(part: str, name: str, factor: float = 1, digits: int = 3) -> Callable[..., str]:
        return lambda mine, _: _mean([factor * run[part][name] for run in mine], digits)

    def chance(mine: list[dict[str, Any]], _: tuple[int, int]) -> str:
        return _mean([run[part][name] for run in mine for part, name in PERMUTED])

    row("runs", lambda mine, _: str(len(mine)))
    row("SINATRA, AUC over all vertices (published)", lambda _, scenario: f"{SINATRA[scenario]:.2f}")
    row("AUC over all vertices", mean("bumps", "auc"))
    row("AUC, causal against shared vertices", mean("bumps", "auc_causal_shared"))
    row("AUC over all vertices, shared regions are dents too", mean("dents", "auc"))
    row("AUC over all vertices, permuted labels, three draws a run", chance)
    row("vertices with p ≤ 0.05, permuted labels, %", mean("permuted", "p_below_005", 100, 1))
    row("causal vertices with p ≤ 0.05, %", mean("bumps", "causal_p_below_005", 100, 1))
    row("other vertices with p ≤ 0.05, %", mean("bumps", "others_p_below_005", 100, 1))
    row("causal vertices with q ≤ 0.05, %", mean("bumps", "causal_discovered", 100, 1))
    row("other vertices with q ≤ 0.05, %", mean("bumps", "others_discovered", 100, 1))
    row("of the vertices with q ≤ 0.05, not causal, %", lambda mine, _: _mean([100 * wrong(run) for run in mine], 1))
    for way, name in (("top", "with the highest scores"), ("random", "at random"), ("patch", "in a random patch")):
        for i, count in enumerate(DELETED):
            if count in (0, 20, 80, 160) and (count or way == "top"):
                label = f"accuracy, {count} vertices {name} flattened, %" if count else "accuracy of the classifier, %"
                row(label, lambda mine, _, way=way, i=i: _mean([100 * run["deletion"][way][i] for run in mine], 1))  # type: ignore[misc]
    text = "\n".join(lines)
    print(text)
    path.with_suffix(".md").write_text(HEADER + text + "\n", encoding="utf-8")


def wrong(run: dict[str, Any]) -> float:
    """Share of the vertices with q <= 0.05 that are not causal, for regions that do not overlap."""
    causal = REGION * run["scenario"][0]
    right, false = causal * run["bumps"]["causal_discovered"], (642 - causal) * run["bumps"]["others_discovered"]
    return false / max(right + false, 1e-9)


def _mean(values: list[float], digits: int = 3) -> str:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.fmean(values):.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=45, help="runs of each scenario")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run")
    parser.add_argument("--permutations", type=int, default=200)
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only print the table")
    parser.add_argument("--time", action="store_true", help="only time 100 spheres with 200 permutations")
    parser.add_argument("--figure", type=Path, help="only draw one run")
    arguments = parser.parse_args()
    if arguments.time:
        simulation = simulate(3, 6, 0)
        for _ in range(2):
            start = time.perf_counter()
            evidence(simulation.shapes, simulation.labels, permutations=arguments.permutations)
            print(
                f"{len(simulation.shapes)} spheres, {arguments.permutations} permutations: {time.perf_counter() - start:.2f} s"
            )
        return
    if arguments.figure:
        from eulerscan.plot import draw_evidence, save

        simulation = simulate(3, 6, arguments.seed)
        found = evidence(simulation.shapes, simulation.labels, permutations=arguments.permutations, seed=arguments.seed)
        truth = torch.from_numpy(simulation.causal[simulation.labels].ravel())
        save(draw_evidence(found, shapes=(0, 1), truth=truth), arguments.figure)
        return
    if not arguments.render:
        done = {(tuple(run["scenario"]), run["seed"]) for run in finished(arguments.output)}
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            for scenario in SCENARIOS:
                if (scenario, seed) not in done:
                    line = json.dumps(run(scenario, seed, arguments.permutations))
                    with arguments.output.open("a", encoding="utf-8") as file:
                        file.write(line + "\n")
    render(arguments.output)


if __name__ == "__main__":
    main()
