"""Configuration of a run: the model, the training, and the data."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import math
import sys
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import torch

from .. import directions
from .._storage import write_json
from .._validation import check_choice, integer, number, plain, positive, positive_number, set_fields
from .._version import __version__
from ..complexes.extent import top_dims
from ..complexes.normalize import DivideBy, Normalize
from ..datasets import Dataset
from ..grid import soft_scale
from ..harmonics import GUARD, quadrature_degree
from ..nn.layers import ECTLayer
from ..nn.models import ECTCNN, MODELS, Classifier, ECTHarmonics, Ensemble
from ..nn.models.classifier import Preset
from ..nn.models.ensemble import Calibration
from .augmentation import Augmentation
from .rng import seeded

Schedule = Literal["constant", "cosine"]
SelectBy = Literal["accuracy", "balanced_accuracy", "macro_f1", "loss", "last"]
Balance = Literal["none", "weights", "sampling"]

_LAYER = ("scale", "learn_directions", "learn_thresholds", "learn_scale", "rotate_directions")
_HEAD = (
    "channels",
    "hidden",
    "dropout",
    "batch_norm",
    "circular",
    "num_rings",
    "conv_activation",
    "directed",
    "degree",
    "cost",
    "spectrum",
    "joint",
)


def default_grid(model: str, dim: int) -> tuple[int, int]:
    """Numbers of directions and of thresholds of a model without a preset, for shapes of a dimension."""
    if model not in ("curves", "svm"):
        return 16, 16
    return (32, 64 if model == "svm" else 32) if dim == 2 else (64, 32)


@dataclass(frozen=True)
class ModelConfig:
    """Configuration of the model. An option that is ``None`` is taken from the preset, else it is the default of the model.

    Args:
        model: curves (convolutions along curves), svm, cnn, mlp, deepsets or harmonics (invariant to rotation).
        preset: A size of the paper: 4k, 65k, superpixels (cnn, mlp) or modelnet (deepsets).
        num_directions: Number of directions. Default: 16; curves and svm have 32 in the plane, else 64.
        num_thresholds: Number of thresholds in each direction. Default: 16; curves has 32, svm 64 in the plane, else 32.
        radius: Largest height.
        scale: Steepness of the sigmoid; the paper uses 200. Default: it rises over one step between thresholds.
        random_directions: Start from random directions, drawn from the seed, instead of evenly spread ones.
        learn_directions: Learn the directions. Default: yes, but not for svm, harmonics and the automatic choice.
        learn_thresholds: Learn the thresholds. Default: no.
        learn_scale: Learn the scale. Default: no.
        rotate_directions: Rotate the directions at random in training, for each shape anew. Default: no.
        normalize: unit_ball centers each shape and scales it so that its farthest vertex has norm 1; vertices does the same
            about the mean of the vertices, as in the paper; center keeps the size, none the coordinates. Give a radius with
            center or none.
        divide_by: Divide the transform of each shape by its number of vertices or simplices, or by its peak.
        max_dim: Count vertices, edges and so on in separate channels, up to this dimension: 1 for graphs, 2 for meshes.
        derivative: Give the head the difference of each curve from one threshold to the next, instead of its values.
        channels: Output channels of the convolutions (cnn).
        hidden: Sizes of the hidden layers.
        dropout: Dropout probability.
        batch_norm: Add batch normalization (cnn, mlp). Default: no, as in the paper.
        circular: Pad the axis of directions circularly (cnn). Default: no.
        num_rings: Number of rings around the third axis that the directions form, each a channel (cnn, in space).
        conv_activation: Add a ReLU after each convolution (cnn). Default: yes. The published code had none.
        degree: Largest degree of the harmonics over directions, which decides the directions (harmonics). Default: 6.
        directed: Let the network know the direction of each curve, for shapes whose orientation matters (curves). Default: no.
        cost: Penalty of shapes on the wrong side (svm). Default: 10.
        spectrum: Use the norms of harmonics over directions, which rotations change little, the less the softer the scale
            and the more directions (svm). In space there are a few directions more than asked for. Default: 561 there.
        joint: Join the transform with the smooth transform, with the length, area or volume below each height, with what
            rotations keep of these, and with size, for shapes without weights and in the same units (svm). With spectrum, only
            what rotations keep, and size. Size is left out if nearest neighbors are right more often without. Default: no.
    """

    model: str = "cnn"
    preset: str | None = None
    num_directions: int | None = None
    num_thresholds: int | None = None
    radius: float = 1.1
    scale: float | None = None
    random_directions: bool = False
    learn_directions: bool | None = None
    learn_thresholds: bool | None = None
    learn_scale: bool | None = None
    rotate_directions: bool | None = None
    normalize: Normalize | None = "unit_ball"
    divide_by: DivideBy | None = None
    max_dim: int | None = None
    derivative: bool = False
    channels: tuple[int, ...] | None = None
    hidden: tuple[int, ...] | None = None
    dropout: float | None = None
    batch_norm: bool | None = None
    circular: bool | None = None
    num_rings: int | None = None
    conv_activation: bool | None = None
    degree: int | None = None
    directed: bool | None = None
    cost: float | None = None
    spectrum: bool | None = None
    joint: bool | None = None

    def __post_init__(self) -> None:
        set_fields(self, **plain(vars(self)))

    def check(self) -> None:
        """Raise for options that no data can make valid."""
        if self.model not in MODELS:
            near = difflib.get_close_matches(self.model, MODELS, n=2, cutoff=0.4)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}.{hint}")
        cls = MODELS[self.model]
        if self.preset is not None and self.preset not in cls.presets:
            choices = f"one of {', '.join(cls.presets)}" if cls.presets else "None, since the paper has no such model"
            raise ValueError(f"preset of {self.model} must be {choices}, got {self.preset!r}.")
        if cls is ECTHarmonics:
            for name in ("num_directions", "random_directions", "learn_directions"):
                if value := getattr(self, name):
                    raise ValueError(f"{name} must not be given for harmonics, whose degree decides, got {value}.")
        for name in ("spectrum", "joint"):
            if self.random_directions and getattr(self, name):
                raise ValueError(
                    f"random_directions must be False with {name}, which needs evenly spread directions, got True."
                )
        for name in ("derivative", "max_dim", "rotate_directions"):
            if self.joint and getattr(self, name):
                raise ValueError(
                    f"{name} must not be given with joint, which joins features of its own, got {getattr(self, name)}."
                )
        if self.random_directions and self.num_rings is not None:
            raise ValueError(f"num_rings must be None with random_directions, got {self.num_rings}.")
        options, known = self._given(_HEAD), inspect.signature(cls).parameters
        if unknown := [name for name in options if name not in known]:
            raise ValueError(f"{unknown[0]} must be None for the model {self.model!r}, got {options[unknown[0]]!r}.")

    def build(self, dim: int, num_classes: int, *, seed: int = 0) -> Classifier:
        """The model, with initial weights drawn from ``seed``."""
        self.check()
        cls, options = MODELS[self.model], self._given(_HEAD)
        preset = Preset(*default_grid(self.model, dim)) if self.preset is None else cls.presets[self.preset]
        num_directions = preset.num_directions if self.num_directions is None else self.num_directions
        num_thresholds = preset.num_thresholds if self.num_thresholds is None else self.num_thresholds
        ordered, layer_options = None, self._given(_LAYER)
        if cls is ECTHarmonics:
            ordered = ECTHarmonics.initial_directions(dim, **self._given(("degree",)))
            layer_options = {"scale": soft_scale(self.radius), "learn_directions": False, **layer_options}
        elif self.spectrum and dim == 3:
            ordered = directions.quadrature(self._spectrum_degree, dtype=torch.float64).directions
        if cls is ECTCNN and (self.circular or self.num_rings):
            ordered = ECTCNN.initial_directions(dim, num_directions, circular=bool(self.circular), num_rings=self.num_rings)
        make: Callable[..., Classifier] = cls
        with seeded(seed, 0):
            layer = ECTLayer(
                dim,
                num_directions,
                num_thresholds,
                radius=self.radius,
                directions=ordered,
                normalize=self.normalize,
                divide_by=self.divide_by,
                variant="ect" if self.max_dim is None else "channels",
                derivative=self.derivative,
                max_dim=self.max_dim,
                **layer_options,
            )
            model = make(layer, num_classes, **{**preset.head, **options})
            if self.random_directions:
                layer.initial_directions = directions.random(num_directions, dim)
                layer.reset_parameters()
        return model

    def least_parameters(self, dim: int, num_classes: int) -> int:
        """A lower bound of the number of parameters, found without building the model."""
        cls = MODELS[self.model]
        preset = Preset(*default_grid(self.model, dim)) if self.preset is None else cls.presets[self.preset]
        defaults = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
        head = {**defaults, **preset.head, **self._given(_HEAD)}
        num_directions = self.num_directions or preset.num_directions
        if cls is ECTHarmonics:
            num_directions = directions.quadrature_size(2 * head["degree"] + GUARD, dim)
        elif self.spectrum and dim == 3:
            num_directions = directions.quadrature_size(self._spectrum_degree, dim)
        hidden: tuple[int, ...] = head.get("hidden") or ()
        return num_directions * dim + sum(a * b for a, b in pairwise(hidden)) + num_classes

    @property
    def _spectrum_degree(self) -> int:
        """The degree of the quadrature for a spectrum in space: by default with a guard."""
        if self.num_directions is None:
            return 12 + GUARD
        return quadrature_degree(positive(self.num_directions, "num_directions"), 3)

    def _given(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class EnsembleConfig:
    """Configuration of an ensemble: what its members are, and how much each is trusted.

    Args:
        members: Configurations of the models.
        temperatures: What the logits of each are divided by.
        weights: Weights of their probabilities.
    """

    members: tuple[ModelConfig, ...]
    temperatures: tuple[float, ...]
    weights: tuple[float, ...]

    model: ClassVar[str] = "ensemble"
    preset: ClassVar[None] = None

    def __post_init__(self) -> None:
        set_fields(self, **plain(vars(self)))

    @property
    def max_dim(self) -> int | None:
        return self.members[0].max_dim

    @property
    def joint(self) -> bool:
        return any(member.joint for member in self.members)

    def check(self) -> None:
        """Raise for options that no data can make valid."""
        sizes = {len(values) for values in (self.members, self.temperatures, self.weights)}
        if not self.members or len(sizes) > 1 or not all(0 < x < math.inf for x in (*self.temperatures, *self.weights)):
            raise ValueError(
                f"members must have a positive temperature and weight each, got {len(self.members)} members, temperatures "
                f"{self.temperatures} and weights {self.weights}."
            )
        for member in self.members:
            member.check()

    def build(self, dim: int, num_classes: int, *, seed: int = 0) -> Ensemble:
        """The ensemble, with initial weights of each member drawn from ``seed``."""
        calibrations = [Calibration(*pair) for pair in zip(self.temperatures, self.weights, strict=True)]
        return Ensemble([member.build(dim, num_classes, seed=seed) for member in self.members], calibrations)

    def least_parameters(self, dim: int, num_classes: int) -> int:
        """A lower bound of the number of parameters, found without building the models."""
        return sum(member.least_parameters(dim, num_classes) for member in self.members)


@dataclass(frozen=True)
class TrainingConfig:
    """Configuration of the training.

    Args:
        epochs: Largest number of passes over the training split.
        batch_size: Shapes in a batch, over all processes together.
        learning_rate: Learning rate of AdamW.
        schedule: Keep the learning rate constant, or anneal it to zero along a cosine.
        weight_decay: Weight decay of AdamW.
        clip: Clip the gradient to this norm. 0 disables clipping.
        patience: Stop after this many epochs without a better validation score. 0 disables early stopping.
        select_by: Validation score that selects the epoch to keep; the loss breaks ties. last keeps the last epoch: with a few
            dozen validation shapes, the best score may be luck.
        balance: For imbalanced classes: weight the loss by inverse class frequency (weights), or draw rare classes more
            often (sampling). SVMs weight errors in both cases.
        num_points: Subsample point clouds to this many points: random ones in each epoch of training, the first ones for
            validation, test and prediction. Curves grow with the number of points, so give clouds of different sizes the same
            number.
        augmentation: Random changes of the training shapes, in every epoch. SVMs see the shapes as they are.
        seed: Seed of order, augmentation, dropout and subsampling; of initial weights too, unless the model is given.
    """

    epochs: int = 100
    batch_size: int = 64
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    clip: float = 5.0
    patience: int = 0
    select_by: SelectBy = "accuracy"
    balance: Balance = "none"
    num_points: int | None = None
    augmentation: Augmentation = field(default_factory=Augmentation)
    seed: int = 0

    def __post_init__(self) -> None:
        set_fields(self, **plain(vars(self)))
        for name, least in (("epochs", 1), ("batch_size", 1), ("num_points", 1), ("patience", 0), ("seed", 0)):
            if name != "num_points" or self.num_points is not None:
                integer(getattr(self, name), name, least=least)
        for name in ("clip", "weight_decay"):
            number(getattr(self, name), name, least=0, finite=True)
        positive_number(self.learning_rate, "learning_rate", finite=True)
        check_choice(self.schedule, "schedule", get_args(Schedule))
        check_choice(self.select_by, "select_by", get_args(SelectBy))
        check_choice(self.balance, "balance", get_args(Balance))
        if self.patience and self.select_by == "last":
            raise ValueError(f"patience must be 0 with select_by='last', which waits for no score, got {self.patience}.")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingConfig:
        """The inverse of ``dataclasses.asdict``. Missing options get their defaults."""
        return cls(**{**values, "augmentation": Augmentation(**values["augmentation"])})


@dataclass(frozen=True)
class RunConfig:
    """Everything that determines a run. It is stored as ``config.json``.

    Attributes:
        data: Source of the shapes: ``{"name": ..., "options": {...}}`` for a data set, or ``{"folder": ..., "seed": ...,
            "options": {...}}``.
        dim: Dimension of the points.
        classes: Names of the classes.
        fingerprint: Identifies the data: see :func:`fingerprint`.
        shape_dims: Dimensions that occur among the training shapes: (0,) for clouds, (2,) for meshes, both for a mixture.
    """

    data: dict[str, Any]
    dim: int
    classes: tuple[str, ...]
    fingerprint: str
    shape_dims: tuple[int, ...]
    model: ModelConfig | EnsembleConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    version: str = __version__

    def __post_init__(self) -> None:
        set_fields(self, **plain(vars(self)))

    @classmethod
    def of(
        cls, dataset: Dataset, source: dict[str, Any], model: ModelConfig | EnsembleConfig, training: TrainingConfig
    ) -> RunConfig:
        """The configuration of a run on ``dataset``, which was loaded from ``source``."""
        shape_dims = tuple(top_dims(dataset.shapes[dataset.indices("train")]).unique().tolist())
        return cls(source, dataset.shapes.dim, dataset.classes, fingerprint(dataset), shape_dims, model, training)

    def write(self, path: Path) -> None:
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> RunConfig:
        if not path.is_file():
            runs = sorted(folder.name for kind in ("seed", "fold") for folder in path.parent.glob(f"{kind}-*"))
            hint = f" It contains the runs {', '.join(runs)}." if runs else ""
            raise FileNotFoundError(f"{path} is missing: {path.parent} is not the folder of a run.{hint}")
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            config: RunConfig = _from_json(cls, values, "")
            config.model.check()
            positive(config.dim, "dim")
            _from_json(_Source, {key: value for key, value in config.data.items() if key in _Source.__annotations__}, "data.")
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).removesuffix(".")
            raise ValueError(f"{path} is damaged, or from another version of eulerscan: {reason}.") from None
        return replace(config, data={"options": {}, **config.data})

    def same_run(self, other: RunConfig) -> bool:
        """Whether the two give the same result: they differ in the version at most."""
        one, two = ({**asdict(config), "version": ""} for config in (self, other))
        return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)

    def check_data(self, dataset: Dataset) -> None:
        """Raise unless ``dataset`` is what the run was configured for."""
        found = (dataset.shapes.dim, dataset.classes, fingerprint(dataset))
        if found != (self.dim, self.classes, self.fingerprint):
            raise ValueError(
                f"{dataset.name} is not what the run was trained on: its shapes, classes or splits have changed, so test "
                "shapes may have been trained on. Train again, or use predict."
            )


@dataclass(frozen=True)
class _Source:
    """The keys of :attr:`RunConfig.data`."""

    name: str | None = None
    folder: str | None = None
    seed: int | None = None
    table: str | None = None
    label: str | None = None
    strata: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name is None and (self.folder is None or self.seed is None):
            raise ValueError("data must have a name, or a folder and a seed.")


def _from_json(cls: Any, values: Any, prefix: str) -> Any:
    """A dataclass from its values in JSON. Errors name the key."""
    if not isinstance(values, dict):
        raise ValueError(f"{prefix.removesuffix('.') or 'it'} must be a JSON object, got {_shown(values)}.")
    hints = get_type_hints(cls)
    if unknown := sorted(set(values) - set(hints)):
        raise ValueError(f"{prefix}{unknown[0]} is unknown.")
    arguments = {}
    for item in fields(cls):
        name, hint = item.name, hints[item.name]
        if name not in values:
            if item.default is MISSING and item.default_factory is MISSING:
                raise ValueError(f"{prefix}{name} is missing.")
            continue
        value = values[name]
        if hint == ModelConfig | EnsembleConfig:
            hint = EnsembleConfig if isinstance(value, dict) and "members" in value else ModelConfig
        if is_dataclass(hint):
            value = _from_json(hint, value, f"{prefix}{name}.")
        elif hint == tuple[ModelConfig, ...] and isinstance(value, list):
            value = [_from_json(ModelConfig, item, f"{prefix}{name}.{number}.") for number, item in enumerate(value)]
        elif not _fits(value, hint) or (value == math.inf and name != "scale"):
            kind = hint.__name__ if isinstance(hint, type) else hint
            raise ValueError(f"{prefix}{name} must be {kind}, got {_shown(value)}.")
        arguments[name] = tuple(value) if isinstance(value, list) else value
    return cls(**arguments)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from JSON has a type."""
    choices = get_args(hint)
    if get_origin(hint) is Literal:
        return value in choices
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_fits(item, choices[0]) for item in value)
    if get_origin(hint) is dict:
        return isinstance(value, dict)
    if choices:
        return any(_fits(value, choice) for choice in choices)
    if hint is float:
        return type(value) in (int, float) and (value == math.inf or abs(value) <= sys.float_info.max)  # no NaN, no 10**400
    return type(value) is hint


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | None) else f"{type(value).__name__} {str(value)[:40]!r}"


def fingerprint(dataset: Dataset) -> str:
    """A hash of the sizes of the shapes, the labels and the splits.

    A file added to a folder changes its split: shapes may move from training to test.
    """
    digest = hashlib.sha256()
    for tensor in (dataset.shapes.offsets, dataset.labels, *dataset.splits.values()):
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
