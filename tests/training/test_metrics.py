import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from eulerscan.training.metrics import Metrics, confusion


@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    labels, predicted = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    scores = Metrics(confusion(torch.tensor(labels), torch.tensor(predicted), 4), loss=0.0)
    assert scores.confusion.tolist() == sk.confusion_matrix(labels, predicted).tolist()
    assert scores.accuracy == pytest.approx(sk.accuracy_score(labels, predicted))
    assert scores.balanced_accuracy == pytest.approx(sk.balanced_accuracy_score(labels, predicted))
    assert scores.macro_f1 == pytest.approx(sk.f1_score(labels, predicted, average="macro"))


def test_classes_that_never_occur_count_for_nothing():
    scores = Metrics(torch.tensor([[2, 0, 0], [1, 1, 0], [0, 0, 0]]), loss=0.0)
    assert scores.balanced_accuracy == pytest.approx(0.75)
    assert scores.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_nothing_predicted_is_no_division_by_zero():
    scores = Metrics(torch.zeros(3, 3, dtype=torch.int64), loss=0.0)
    assert (scores.accuracy, scores.balanced_accuracy, scores.macro_f1) == (0.0, 0.0, 0.0)
