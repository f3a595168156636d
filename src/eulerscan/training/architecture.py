"""Which model, as a command line or a file names it."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass

from .. import directions
from ..dividing import DivideBy
from ..nn.models import MODELS, Classifier
from .rng import seeded


@dataclass(frozen=True)
class Architecture:
    """Which model. What is ``None`` is left to the preset, or else to the model's own default.

    Args:
        model: cnn, mlp or deepsets.
        preset: A size of the paper: 4k, 65k, superpixels (cnn, mlp) or modelnet (deepsets).
        num_directions: Number of directions.
        num_thresholds: Number of thresholds in each direction.
        radius: Largest height that is looked at.
        scale: The paper's lambda. By default the sigmoid rises over one step between thresholds; the paper has 200.
        random_directions: Whether the first directions are drawn at random (by the seed) instead of evenly spread.
        learn_directions: Whether directions are learned.
        learn_thresholds: Whether thresholds are learned.
        learn_scale: Whether the scale is learned.
        unit_ball: Whether each shape is centred and scaled to norm 1 first.
        centre: Whether each shape is centred and keeps its size, in place of the unit ball. Give a radius then.
        divide_by: What the transform of a shape is divided by: its number of vertices or simplices, or its peak.
        max_dim: Give it to have vertices, edges and so on apart, up to this dimension: 1 for graphs, 2 for meshes.
        increments: Whether the head sees how much curves grow between thresholds, instead of their values.
        num_points: Give it to thin clouds to so many points: other ones each time in training, else the first.
        channels: Sizes of the convolutions (cnn).
        hidden: Sizes of the hidden layers.
        dropout: Probability of leaving out a value.
        normalise: Whether batch normalisation follows each of these layers (cnn, mlp). The paper has none.
        circular: Whether the first and the last direction are neighbours (cnn).
        num_rings: Number of rings round the third axis that the directions form, each a channel (cnn, in space).
        between: Whether a ReLU follows each convolution (cnn). The published code had none.
    """

    model: str = "cnn"
    preset: str | None = None
    num_directions: int | None = None
    num_thresholds: int | None = None
    radius: float | None = None
    scale: float | None = None
    random_directions: bool = False
    learn_directions: bool | None = None
    learn_thresholds: bool | None = None
    learn_scale: bool | None = None
    unit_ball: bool | None = None
    centre: bool | None = None
    divide_by: DivideBy | None = None
    max_dim: int | None = None
    increments: bool | None = None
    num_points: int | None = None
    channels: tuple[int, ...] | None = None
    hidden: tuple[int, ...] | None = None
    dropout: float | None = None
    normalise: bool | None = None
    circular: bool | None = None
    num_rings: int | None = None
    between: bool | None = None

    def build(self, dim: int, num_classes: int, *, seed: int = 0) -> Classifier:
        """The model with the first weights that belong to ``seed``."""
        if self.random_directions and self.num_rings is not None:
            raise ValueError("num_rings is for directions that form rings: leave out random_directions, or num_rings.")
        ours = ("model", "random_directions")
        options = {name: value for name, value in asdict(self).items() if value is not None and name not in ours}
        model = _model(self.model)
        try:
            with seeded(seed, 0):
                made = model(dim, num_classes, **options)
                if self.random_directions:
                    layer = made.transform
                    layer.initial_directions = directions.random(layer.num_directions, dim)
                    layer.reset_parameters()
        except TypeError as error:
            raise ValueError(f"The model {self.model!r} cannot be made: {error}") from None
        return made


def _model(name: str) -> type[Classifier]:
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=2, cutoff=0.4)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"model must be one of {', '.join(MODELS)}, got {name!r}.{hint}")
    return MODELS[name]
