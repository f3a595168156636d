"""The exact transform against the packages ``ect`` and ``pyect``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from works import DASH, Report, interleaved, meshes, milliseconds

import eulerscan as es

NUM_POINTS, SIZE = 100_000, 64
ENOUGH = 0.99  # of the entries must be equal; float32 rounding moves a vertex that all but lies on a threshold
PEERS = Path(__file__).resolve().parents[1] / "build" / "peers"


class Peer(NamedTuple):
    """A package, ready to transform the mesh."""

    name: str
    calculate: Callable[[], Any]
    to_tensor: Callable[[Any], Tensor]  # [T, H]
    floor: float | None


def run() -> Report:
    report = Report(
        f"Exact, 1 mesh of {NUM_POINTS:,} points, {SIZE}x{SIZE}",
        ["package", "ms", "entries equal to ours", "ours is faster", "floor"],
        notes=[
            "Only the transform is timed, not the building of each package's own complex. A peer is timed only after "
            f"{ENOUGH:.0%} of its entries equalled ours on the same mesh, directions and thresholds. "
            "`ect` turns its complex into arrays in every call of `calculate`; the row with arrays kept leaves that out."
        ],
    )
    complex = meshes(1, NUM_POINTS).to(dtype=torch.float32)
    directions = es.directions.circle(SIZE)
    radius = float(torch.linalg.vector_norm(complex.points, dim=1).max())
    thresholds = es.thresholds(SIZE, radius=radius, dtype=torch.float64)  # those of pyect, which cannot be chosen

    heights = thresholds.float()

    def ours() -> Tensor:
        return es.ect(complex, directions, heights)

    expected = ours()[0]
    peers = _pyect(report, complex, directions) + _ect(report, complex, directions, thresholds)
    shares = {peer.name: _agreement(peer.to_tensor(peer.calculate()), expected) for peer in peers}
    agreeing = {peer.name: peer.calculate for peer in peers if shares[peer.name] >= ENOUGH}
    seconds = interleaved({"ours": ours, **agreeing}, rounds=3)
    report.rows.insert(0, [f"eulerscan {es.__version__}", milliseconds(seconds["ours"]), DASH, DASH, DASH])
    for peer in peers:
        report.rows.append(_row(report, peer, shares[peer.name], seconds))
    return report


def _row(report: Report, peer: Peer, share: float, seconds: dict[str, float]) -> list[str]:
    if peer.name not in seconds:
        report.miss(peer.name, f"only {share:.2%} of its entries equal ours")
        return [peer.name, DASH, f"{share:.2%}", DASH, DASH]
    ratio = seconds[peer.name] / seconds["ours"]
    floor = report.at_least(peer.name, ratio, peer.floor) if peer.floor else DASH
    return [peer.name, milliseconds(seconds[peer.name]), f"{share:.2%}", f"{ratio:.1f}x", floor]


def _agreement(actual: Tensor, expected: Tensor) -> float:
    return float((actual == expected).double().mean()) if actual.shape == expected.shape else 0.0


def _absent(report: Report, package: str, remedy: str) -> list[Peer]:
    report.rows.append([package, *[DASH] * 4])
    report.miss(package, "not compared")
    report.notes.append(f"{package} is not there: {remedy}.")
    return []


def _pyect(report: Report, complex: es.Complex, directions: Tensor) -> list[Peer]:
    file = PEERS / "pyect" / "wect.py"
    if not file.exists():
        return _absent(report, "pyect", "`pip install --no-deps --target build/peers pyect==1.0.1`, or `make bench`")
    transform = load(file).WECT(directions, SIZE)
    levels = [complex.points, *(simplices.T.contiguous().long() for simplices in complex.simplices)]
    data = [(level, torch.ones(len(level))) for level in levels]
    version = next(found.version for found in metadata.distributions(name="pyect", path=[str(PEERS)]))
    return [Peer(f"pyect {version}", lambda: transform(data), lambda result: result, 15)]


def load(file: Path) -> ModuleType:
    """One module of a package: importing all of it needs torchvision."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ect(report: Report, complex: es.Complex, directions: Tensor, thresholds: Tensor) -> list[Peer]:
    try:
        from ect import ECT, Directions
    except ImportError:
        return _absent(report, "ect", "`pip install ect==1.3.0`, or `make bench`")
    transform = ECT(directions=Directions.from_vectors(directions.numpy()), thresholds=thresholds.numpy())
    theirs, kept = _embedded(complex), _embedded(complex)
    arrays = kept._build_incidence_csr()
    kept._build_incidence_csr = lambda: arrays
    name = f"ect {metadata.version('ect')}"

    def to_tensor(result: Any) -> Tensor:
        return torch.tensor(np.asarray(result), dtype=torch.float32)

    return [
        Peer(name, lambda: transform.calculate(theirs), to_tensor, 40),
        Peer(f"{name}, arrays kept", lambda: transform.calculate(kept), to_tensor, None),
    ]


def _embedded(complex: es.Complex) -> Any:
    """The complex as ``ect`` knows it."""
    from ect import EmbeddedComplex

    edges, triangles = (simplices.T.tolist() for simplices in complex.simplices)
    embedded = EmbeddedComplex()
    embedded.add_nodes_from(list(enumerate(complex.points.double().numpy())))
    embedded.add_edges_from(edges)
    # What add_cell does, but that lists all vertices again for every cell.
    embedded.cells[2].extend(tuple(triangle) for triangle in triangles)
    return embedded
