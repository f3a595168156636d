"""Configuration of a run: which model."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import directions
from ..complexes.normalize import DivideBy, Normalize
from ..nn.layers import ECTLayer
from ..nn.models import ECTCNN, MODELS, Classifier
from .rng import seeded

_LAYER = ("scale", "learn_directions", "learn_thresholds", "learn_scale")
_HEADS = {
    "cnn": ("channels", "hidden", "dropout", "batch_norm", "circular", "num_rings", "conv_activation"),
    "mlp": ("hidden", "dropout", "batch_norm"),
    "deepsets": ("hidden", "dropout"),
}


@dataclass(frozen=True)
class ModelConfig:
    """Which model. Options that are ``None`` are left to the preset, or else to the default of the model.

    Args:
        model: cnn, mlp or deepsets.
        preset: A size of the paper: 4k, 65k, superpixels (cnn, mlp) or modelnet (deepsets).
        num_directions: Number of directions.
        num_thresholds: Number of thresholds in each direction.
        radius: Largest height.
        scale: The paper's lambda. By default the sigmoid rises over one step between thresholds; the paper has 200.
        random_directions: Draw the initial directions at random (by the seed) instead of evenly spread.
        learn_directions: Learn the directions.
        learn_thresholds: Learn the thresholds.
        learn_scale: Learn the scale.
        normalize: unit_ball centers each shape and scales it to norm 1, center keeps its size, None keeps its coordinates. Give
            a radius unless it is unit_ball.
        divide_by: Divide the transform of each shape by its number of vertices or simplices, or by its peak.
        max_dim: Count vertices, edges and so on in separate channels, up to this dimension: 1 for graphs, 2 for meshes.
        derivative: Give the head the difference of each curve from one threshold to the next, instead of its values.
        channels: Output channels of the convolutions (cnn).
        hidden: Sizes of the hidden layers.
        dropout: Dropout probability.
        batch_norm: Add batch normalization (cnn, mlp). The paper has none.
        circular: Pad the axis of directions circularly (cnn).
        num_rings: Number of rings around the third axis that the directions form, each a channel (cnn, in space).
        conv_activation: Add a ReLU after each convolution (cnn). The published code had none.
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

    def build(self, dim: int, num_classes: int, *, seed: int = 0) -> Classifier:
        """The model, initialized by ``seed``."""
        if self.model not in MODELS:
            near = difflib.get_close_matches(self.model, MODELS, n=2, cutoff=0.4)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}.{hint}")
        cls = MODELS[self.model]
        if self.preset is not None and self.preset not in cls.presets:
            raise ValueError(f"preset of {self.model} must be one of {', '.join(cls.presets)}, got {self.preset!r}.")
        if self.random_directions and self.num_rings is not None:
            raise ValueError(f"num_rings must be None with random_directions, got {self.num_rings}.")
        known = _HEADS[self.model]
        for option in (name for name in _HEADS["cnn"] if name not in known and getattr(self, name) is not None):
            raise ValueError(f"{option} must be None for the model {self.model!r}, which has no such option.")
        preset = None if self.preset is None else cls.presets[self.preset]
        head = dict(preset.head if preset else {}) | self._given(known)
        num_directions = self.num_directions or (preset.num_directions if preset else 16)
        num_thresholds = self.num_thresholds or (preset.num_thresholds if preset else 16)
        first = None
        if cls is ECTCNN and (self.circular or self.num_rings):
            first = ECTCNN.initial_directions(dim, num_directions, circular=bool(self.circular), num_rings=self.num_rings)
        make: Callable[..., Classifier] = cls
        with seeded(seed, 0):
            layer = ECTLayer(
                dim,
                num_directions,
                num_thresholds,
                radius=self.radius,
                directions=first,
                normalize=self.normalize,
                divide_by=self.divide_by,
                variant="ect" if self.max_dim is None else "channels",
                derivative=self.derivative,
                max_dim=self.max_dim,
                **self._given(_LAYER),
            )
            made = make(layer, num_classes, **head)
            if self.random_directions:
                layer.initial_directions = directions.random(num_directions, dim)
                layer.reset_parameters()
        return made

    def _given(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}
