"""Handwritten digits: transforms of weighted images as features of a support vector machine.

    python examples/digits_svm.py           # half a minute of one processor
    python examples/digits_svm.py --quick    # seconds: fewer digits, one setting

The 1,797 digits of scikit-learn are grids of 8 x 8 pixels, each weighing as much as it is bright. Where a stroke lies in the
grid matters, so the shapes are not moved to the unit ball, and the radius is learned.

The variant of the transform and the C of the machine are chosen by cross-validation within the training part of each
fold. Which variants are candidates, and that features are not scaled, was seen on all of the digits before.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import eulerscan as es
from eulerscan.sklearn import ECTTransformer

CHOICES = {"shape__variant": ["ect", "derivative"], "machine__C": [1, 10]}
QUICK = {"shape__variant": ["derivative"], "machine__C": [10]}


def main(*, quick: bool = False, seed: int = 0) -> tuple[np.ndarray, list[dict[str, object]]]:
    """Accuracies in per cent, one for each of five folds (three if quick), and the settings that were chosen there."""
    digits = es.datasets.load("digits", form="pixels")
    count = 600 if quick else len(digits.labels)
    shapes = [digits.shapes[i] for i in range(count)]
    model = Pipeline([("shape", ECTTransformer(32, 16, radius="max", unit_ball=False)), ("machine", SVC())])
    inner, outer = (StratifiedKFold(n, shuffle=True, random_state=seed) for n in (3, 3 if quick else 5))
    search = GridSearchCV(model, QUICK if quick else CHOICES, cv=inner)
    found = cross_validate(search, shapes, digits.labels[:count].numpy(), cv=outer, return_estimator=True)
    return 100 * found["test_score"], [fold.best_params_ for fold in found["estimator"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer digits, one setting")
    accuracies, settings = main(quick=parser.parse_args().quick)
    print(
        f"accuracy {accuracies.mean():.2f} % with a standard deviation of {accuracies.std():.2f} over {len(accuracies)} folds"
    )
    for choice in settings:
        print(", ".join(f"{name.partition('__')[2]} {value}" for name, value in choice.items()))
