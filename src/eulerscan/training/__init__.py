"""Training of classifiers: the loop, its configuration, checkpoints and runs.

trained = train(model, dataset, TrainingConfig(epochs=20, augmentation=Augmentation(rotate=10)))
evaluate(model, dataset, "test").accuracy
"""

from .augmentation import Augmentation
from .choice import auto
from .config import EnsembleConfig, ModelConfig, RunConfig, TrainingConfig
from .loop import Trained, evaluate, predict, train
from .metrics import Metrics
from .runs import load_run

__all__ = [
    "Augmentation",
    "EnsembleConfig",
    "Metrics",
    "ModelConfig",
    "RunConfig",
    "Trained",
    "TrainingConfig",
    "auto",
    "evaluate",
    "load_run",
    "predict",
    "train",
]
