"""Numbers of the paper: accuracy in percent, mean and standard deviation, by experiment, row and column."""

from __future__ import annotations

SMALL_GRAPHS = ("bzr", "cox2", "dhfr", "letter-low", "letter-med", "letter-high")

Numbers = dict[str, dict[str, tuple[float, float]]]


def _small(*pairs: tuple[float, float]) -> dict[str, tuple[float, float]]:
    return dict(zip(SMALL_GRAPHS, pairs, strict=True))


PUBLISHED: dict[str, Numbers] = {
    "directions": {
        "ECT+MLP, fixed": {"mnist": (77.61, 7.98)},
        "ECT+MLP, learnable": {"mnist": (81.29, 3.39)},
    },
    "superpixels": {
        "ECT+CNN, graphs": {"accuracy": (93.00, 0.80)},
        "ECT+MLP, meshes": {"accuracy": (97.20, 0.10)},
        "GAT": {"accuracy": (95.54, 0.21)},
        "GCN": {"accuracy": (90.71, 0.22)},
        "GIN": {"accuracy": (96.49, 0.14)},
        "GraphSAGE": {"accuracy": (97.31, 0.10)},
        "MLP": {"accuracy": (95.34, 0.14)},
    },
    "small-graphs": {
        "GAT": _small((80.25, 1.95), (79.23, 2.58), (72.76, 3.20), (90.04, 2.23), (63.69, 5.97), (43.73, 4.13)),
        "GCN": _small((80.49, 2.37), (79.44, 1.78), (76.73, 3.83), (81.38, 1.57), (62.00, 2.07), (43.06, 1.67)),
        "GIN": _small((81.73, 4.89), (77.94, 2.41), (64.69, 8.26), (85.00, 0.60), (67.07, 2.47), (50.93, 3.47)),
        "ECT+CNN 4K": _small((81.79, 3.19), (70.40, 0.90), (67.93, 4.97), (91.51, 2.08), (76.22, 4.76), (63.82, 6.04)),
        "ECT+CNN 65K": _small((84.30, 6.10), (74.60, 4.50), (72.90, 1.60), (96.80, 1.20), (86.30, 2.00), (85.40, 1.30)),
    },
    "modelnet": {
        "ECT+Deep Sets": {"100 points": (74.0, 0.5), "1000 points": (77.1, 0.4)},
        "Deep Sets (Zaheer et al.)": {"100 points": (82.0, 2.0), "1000 points": (87.0, 2.0)},
    },
}

SECONDS: dict[str, float] = {
    "ECT+CNN, graphs": 4.50,
    "ECT+MLP, meshes": 10.80,
    "GAT": 42.26,
    "GCN": 83.41,
    "GIN": 39.22,
    "GraphSAGE": 113.12,
    "MLP": 22.74,
}
"""Published seconds per epoch on MNIST superpixels: ECT rows on an RTX 3070 Ti, the others on a GTX 1080 Ti."""
