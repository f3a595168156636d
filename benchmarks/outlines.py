"""Contours against pixels: does the outline of a mask say more without its stairs?

    EULERSCAN_MIRROR=../shared/data python benchmarks/outlines.py

Cell outlines are drawn as masks, so that their pixels are all that is known of them. Features are exact transforms, classified
by an SVM in stratified 5-fold cross-validation, repeated with five seeds; the standard error is that of the seeds. The majority
class stands beside every accuracy. Then: the largest absolute Euler characteristic of a disc at any size, and time and memory
for a large mask.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import eulerscan as es
from eulerscan.convert import from_image, from_images

CONFIG = es.ECTConfig(num_directions=64, num_thresholds=64)


def cells(size: int) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """650 cell outlines as masks with a longest side of so many pixels, and two labels."""
    folder = Path(os.environ["EULERSCAN_MIRROR"]) / "cells"
    masks = []
    for block in (folder / "cells.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        outline = np.array([line.split() for line in block.strip().splitlines()], dtype=np.float64)
        outline -= outline.min(axis=0)
        outline *= (size - 3) / outline.max()
        canvas = Image.new("L", (size, size))
        ImageDraw.Draw(canvas).polygon([tuple(point + 1) for point in outline], fill=255)
        masks.append(np.asarray(canvas) > 0)
    labels = {
        name: np.array((folder / f"{name}.txt").read_text(encoding="utf-8").split()) for name in ("cell_lines", "treatments")
    }
    return masks, labels


def accuracy(shapes: es.Complex, labels: np.ndarray) -> tuple[float, float]:
    """Mean over seeds of the cross-validated accuracy in per cent, and its standard error."""
    features = CONFIG.transform(shapes.to(torch.float64)).flatten(1).numpy()
    model = make_pipeline(StandardScaler(), PCA(0.98), SVC(C=5))
    means = []
    for seed in range(5):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        means.append(100 * cross_val_score(model, features, labels, cv=folds).mean())
    return statistics.fmean(means), statistics.stdev(means) / len(means) ** 0.5


def disc(size: int) -> np.ndarray:
    row, column = np.mgrid[:size, :size] - (size - 1) / 2
    return (row - 0.3) ** 2 + (column + 0.2) ** 2 <= (size / 2 - 1.5) ** 2


def compare(name: str, shapes: dict[str, es.Complex], labels: np.ndarray) -> None:
    majority = 100 * np.unique(labels, return_counts=True)[1].max() / len(labels)
    row = [f"{name:<28} majority {majority:5.1f}"]
    for outline, batch in shapes.items():
        mean, error = accuracy(batch, labels)
        row.append(f"{outline} {mean:5.1f} ± {error:.1f}")
    print("   ".join(row), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 128, 256], help="pixels along the longest side")
    parser.add_argument("--large", type=int, default=13000, help="side of the large mask")
    arguments = parser.parse_args()
    for size in arguments.sizes:
        masks, labels = cells(size)
        shapes = {o: es.collate([from_image(m, outline=o) for m in masks]) for o in ("pixels", "contour")}
        for label, values in labels.items():
            compare(f"cells, {label}, {size} px", shapes, values)
    digits = load_digits()
    images = (255 * digits.images / 16).astype(np.uint8)
    shapes = {o: from_images(images, outline=o) for o in ("pixels", "contour")}
    compare("digits, 8 px", shapes, digits.target)
    print("\nlargest absolute Euler characteristic of a disc in 720 directions")
    for size in (16, 32, 64, 128, 256, 512, 1024):
        found = []
        for outline in ("pixels", "contour"):
            shape = from_image(disc(size), outline=outline).to(torch.float64)
            found.append(f"{outline} {int(es.ECTConfig(720, 512).transform(shape).abs().max())}")
        print(f"{size:>6} px  {'   '.join(found)}")
    print("\ntime and memory")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for outline in ("pixels", "contour"):
        mask = np.ones((arguments.large, arguments.large), dtype=bool)
        start = time.perf_counter()
        shape = from_image(mask, outline=outline)
        CONFIG.transform(shape)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"mask of {arguments.large} x {arguments.large}, {outline}: {seconds:.1f} s, {(peak - before) / 1e6:.2f} GB more")


if __name__ == "__main__":
    main()
