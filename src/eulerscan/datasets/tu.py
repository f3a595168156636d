"""Graphs of the TUDataset collection: letters and molecules."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from .._imports import require
from ..complexes import Complex
from ..complexes.simplices import unique
from ..rotations import principal_axes
from .dataset import Dataset
from .download import Source, members, reading

# The URLs of torch_geometric.datasets.TUDataset.
ORIGINAL = "https://www.chrsmrrs.com/graphkerneldatasets"
CLEANED = "https://raw.githubusercontent.com/nd7141/graph_datasets/master/datasets"
MD5 = {
    "TUDataset/Letter-low.zip": "739520298b93d1f078c0f2d7bf4eb9c4",
    "TUDataset/Letter-med.zip": "08f71585102b5882f9318d2e8289e3fc",
    "TUDataset/Letter-high.zip": "bf3bf19bf90152dab4df6b951b5ec2e6",
    "TUDataset/BZR.zip": "48e5a8772fdc6d05cbd73fdfee376ec6",
    "TUDataset/COX2.zip": "ed1e9bdfaa9c9741efb116a5eb92ce92",
    "TUDataset/DHFR.zip": "82070250fba2e366d720adb79b900bc1",
    "TUDataset/cleaned/BZR.zip": "c5a88cb00abc6737625796559576fff9",
    "TUDataset/cleaned/COX2.zip": "a617a8cdaa60e5669b668e58eff2badc",
    "TUDataset/cleaned/DHFR.zip": "7a57690fa40157188ff344a30041e079",
}
# In the order of their class numbers, from the readme in each archive.
LETTERS = {"letter-low": "KNLZTXFVYWHAIEM", "letter-med": "ZNXTWAMKLEHFVIY", "letter-high": "NHMAWYIFVTXZKEL"}
ANGSTROMS = 5.0  # unit of the distances from planes


def letters(name: str) -> Dataset:
    """Capital letters drawn with straight lines and low, medium or high distortion: graphs in the plane.

    Args:
        name: ``letter-low``, ``letter-med`` or ``letter-high``.
    """
    points, edges, batch, labels = _read(name.capitalize(), cleaned=False, atoms=False)
    return Dataset(name, Complex(points, [edges], batch=batch, num_complexes=len(labels)), labels, tuple(LETTERS[name]))


def molecules(
    name: str, *, cleaned: bool = False, atoms: bool = False, unit_ball: bool = False, planes: bool = False
) -> Dataset:
    """Molecules as graphs in space, with two classes by their activity.

    Args:
        name: ``bzr``, ``cox2`` or ``dhfr``.
        cleaned: Remove isomorphic duplicates, like the code of the paper.
        atoms: Append the one-hot encoded element to the coordinates, with one column for every atomic number up to the largest
            one: 38 columns in all for the cleaned sets.
        unit_ball: Normalize the coordinates of each molecule to the unit ball, so that they do not outweigh the elements.
        planes: Replace the coordinates by the distances from the three principal planes of the molecule, in units of 5 Å. They
            do not outweigh the elements either, and are invariant under rotation and reflection. With ``unit_ball`` they come
            after the coordinates in the unit ball.
    """
    points, edges, batch, labels = _read(name.upper(), cleaned=cleaned, atoms=atoms)
    shapes = Complex(points, [edges], batch=batch, num_complexes=len(labels))
    if unit_ball or planes:
        bare = Complex(shapes.points[:, :3], batch=shapes.batch, num_complexes=len(labels))  # centered at the mean of the atoms
        coordinates = [bare.normalized("unit_ball").points] if unit_ball else []
        coordinates += [_from_planes(bare) / ANGSTROMS] if planes else []
        shapes = shapes.with_points(torch.cat([*coordinates, shapes.points[:, 3:]], dim=1))
    return Dataset(name, shapes, labels, ("-1", "1"))


def _from_planes(shapes: Complex) -> Tensor:
    """Distances of the vertices from the planes through the center, normal to the principal axes; smallest variance first."""
    batch, points = shapes.batch, shapes.with_points(shapes.points.double()).normalized("center").points
    _, axes = principal_axes(points, batch, len(shapes))
    distances: Tensor = (points[:, None, :] @ axes[batch]).squeeze(1).abs().to(shapes.points)
    return distances


def source(stem: str, *, cleaned: bool) -> Source:
    path = f"TUDataset/{'cleaned/' if cleaned else ''}{stem}.zip"
    return Source(path, f"{CLEANED if cleaned else ORIGINAL}/{stem}.zip", MD5.get(path))


def _read(stem: str, *, cleaned: bool, atoms: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points, unique edges, graph of each point, class of each graph."""
    io = require("torch_geometric.io", extra="pyg")
    parts = ["A", "graph_indicator", "graph_labels", "node_attributes", *(["node_labels"] if atoms else [])]
    files = [f"{stem}_{part}.txt" for part in parts]
    with reading(source(stem, cleaned=cleaned)) as archive, tempfile.TemporaryDirectory() as folder:
        for file, content in zip(files, members(archive, [f"{stem}/{file}" for file in files]).values(), strict=True):
            (Path(folder) / file).write_bytes(content)
        data, slices, _ = io.read_tu_data(folder, stem)
    sizes = slices["x"].diff()
    batch = torch.arange(len(sizes)).repeat_interleave(sizes)
    # Edges are relative to the nodes of their graph. Trailing graphs without edges have no slice.
    counts = slices["edge_index"].diff()
    starts = slices["x"][: len(counts)].repeat_interleave(counts)
    return data.x, unique(data.edge_index + starts), batch, data.y
