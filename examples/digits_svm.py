"""Classify handwritten digits with an SVM on the transforms of weighted images.

    python examples/digits_svm.py            # half a minute on one core
    python examples/digits_svm.py --quick    # seconds: fewer digits, one setting

The 1,797 digits of scikit-learn are grids of 8 x 8 pixels, weighted by brightness. The position of a stroke in the grid
matters, so shapes are not normalized, and the radius is learned.

Whether to take the derivative, and the C of the SVM, are chosen by cross-validation within the training part of each fold. The
candidates, and not to scale features, were chosen earlier on all of the digits.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import eulerscan as es
from eulerscan.sklearn import ECTTransformer

GRID = {"ect__derivative": [False, True], "svm__C": [1, 10]}
QUICK = {"ect__derivative": [True], "svm__C": [10]}


def main(*, quick: bool = False, seed: int = 0) -> tuple[np.ndarray, list[dict[str, object]]]:
    """Accuracy in percent of each of five folds (three if quick), and the settings chosen there."""
    digits = es.datasets.load("digits", form="pixels")
    count = 600 if quick else len(digits.labels)
    shapes = [digits.shapes[i] for i in range(count)]
    model = Pipeline([("ect", ECTTransformer(32, 16, radius="max", normalize=None)), ("svm", SVC())])
    inner, outer = (StratifiedKFold(n, shuffle=True, random_state=seed) for n in (3, 3 if quick else 5))
    search = GridSearchCV(model, QUICK if quick else GRID, cv=inner)
    found = cross_validate(search, shapes, digits.labels[:count].numpy(), cv=outer, return_estimator=True)
    return 100 * found["test_score"], [fold.best_params_ for fold in found["estimator"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer digits, one setting")
    accuracies, settings = main(quick=parser.parse_args().quick)
    print(f"accuracy {accuracies.mean():.2f} ± {accuracies.std():.2f} % over {len(accuracies)} folds")
    for choice in settings:
        print(", ".join(f"{name.partition('__')[2]} {value}" for name, value in choice.items()))
