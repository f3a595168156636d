"""Classifiers of shapes: the transform as the first layer, and a small head on its result.

Each takes whatever :class:`ECTLayer` takes, mixed batches included, and returns logits ``[B, num_classes]``.
``preset`` names a size of the paper; any other argument given beside it has the last word. ``Model.presets`` lists them.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .._validation import positive
from ..complexes.coerce import Shape, as_complex
from ..directions import loop, rings
from ..thinning import thin
from ..variants import derivative
from .ensemble import Committee
from .heads import EndToEnd, Pool, check_rings, check_sizes, connected
from .layers import ECTLayer

__all__ = ["ECTCNN", "ECTMLP", "Classifier", "Committee", "ECTDeepSets"]

Options = dict[str, Any]


class Classifier(nn.Module):
    """What the models share: a transform, then a head.

    Args:
        dim: Dimension of the space that holds the points.
        num_classes: Length of the last axis of the result.
        preset: Name of one of ``presets``.
        increments: Whether the head sees how much each curve grows from one threshold to the next, instead of its values.
            Nothing is lost. Which of the two a network learns better depends on the data: ``results/README.md`` has both cases.
        num_points: Give it to thin clouds to so many points: other ones each time in training, else the first. A curve grows
            with the number of points, so clouds of different sizes should be thinned alike.
        options: Of the head of the model (see there), and of :class:`ECTLayer`. Here shapes go to the unit ball by default.
    """

    presets: ClassVar[Mapping[str, Options]] = {}
    defaults: ClassVar[Options] = {}

    def __init__(
        self,
        dim: int,
        num_classes: int,
        preset: str | None = None,
        *,
        increments: bool = False,
        num_points: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if preset is not None and preset not in self.presets:
            raise ValueError(f"preset of {type(self).__name__} must be one of {', '.join(self.presets)}, got {preset!r}.")
        known = sorted({"increments", "num_points", *self.defaults, *inspect.signature(ECTLayer).parameters} - {"dim"})
        if strange := sorted(set(options) - set(known)):
            raise TypeError(f"{type(self).__name__} has no option {', '.join(strange)}. It has {', '.join(known)}.")
        chosen = {**self.defaults, **(self.presets[preset] if preset is not None else {}), **options}
        head = {name: chosen.pop(name) for name in self.defaults}
        self.increments = increments
        self.num_points = num_points if num_points is None else positive(num_points, "num_points")
        self.transform = self.make_transform(dim, head, unit_ball=chosen.pop("unit_ball", True), **chosen)
        self.head = self.make_head(self.transform, num_classes, **head).to(self.transform.weight)  # dtype and device

    @staticmethod
    def make_transform(dim: int, head: Options, **options: Any) -> ECTLayer:
        """The layer, from its options; a model may choose first directions that suit the options of its ``head``."""
        return ECTLayer(dim, **options)

    @staticmethod
    def make_head(transform: ECTLayer, num_classes: int, **options: Any) -> nn.Module:
        """The module from ``[B, T, H]``, or with ``max_dim`` ``[B, K, T, H]``, to ``[B, num_classes]``."""
        raise NotImplementedError

    @property
    def num_parameters(self) -> int:
        """Numbers that training changes."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]`` of a :class:`Complex` or anything :func:`as_complex` understands."""
        if self.num_points is not None:
            shape = thin(as_complex(shape), self.num_points, at_random=self.training)
        curves = self.transform(shape).to(self.transform.weight.dtype)  # float32 at least, and the head may have less
        if self.increments:
            curves = derivative(curves)
        logits: Tensor = self.head(curves)
        return logits


class ECTMLP(Classifier):
    """The flattened transform, then fully connected layers.

    Presets (parameters in the plane with 10 classes, directions included): ``"4k"`` 16 x 16, hidden 14-14, 3,990;
    ``"65k"`` 32 x 32, hidden 60-50, 65,124; ``"superpixels"`` 32 x 32, hidden 100-100, 113,674.

    Args:
        hidden: Sizes of the hidden layers.
        dropout: Probability of leaving out a value after each hidden layer.
        normalise: Whether batch normalisation follows each hidden layer. The paper has none.

    Example:
        >>> ECTMLP(dim=3, num_classes=10)(torch.rand(8, 100, 3)).shape
        torch.Size([8, 10])
    """

    defaults: ClassVar[Options] = {"hidden": (25, 25), "dropout": 0.0, "normalise": False}
    presets: ClassVar[Mapping[str, Options]] = {
        "4k": {"num_directions": 16, "num_thresholds": 16, "hidden": (14, 14)},
        "65k": {"num_directions": 32, "num_thresholds": 32, "hidden": (60, 50)},
        "superpixels": {"num_directions": 32, "num_thresholds": 32, "hidden": (100, 100)},
    }

    @staticmethod
    def make_head(  # type: ignore[override]
        transform: ECTLayer, num_classes: int, *, hidden: Sequence[int], dropout: float, normalise: bool
    ) -> nn.Module:
        check_sizes(hidden=hidden)
        sizes = (transform.num_channels * transform.num_directions * transform.num_thresholds, *hidden)
        return nn.Sequential(nn.Flatten(), *connected(sizes, dropout, normalise), nn.Linear(sizes[-1], num_classes))


class ECTCNN(Classifier):
    """The transform as an image of directions by thresholds: convolutions with pooling, then fully connected layers.

    With ``max_dim`` the image has a channel for vertices, one for edges, and so on.

    A convolution over directions needs an order of directions that means something: on the circle they have one. With
    ``circular`` the first and the last direction are neighbours, as they are in the plane; in space the directions then start
    on a closed curve (:func:`directions.loop`). Clouds of upright objects are seen better with ``num_rings``: the directions
    then start on so many rings round the third axis (:func:`directions.rings`), convolutions go along the rings, and every
    ring is a channel. Meshes and graphs look different from below: pass twice as many rings,
    ``directions=torch.cat([upper, -upper])``.

    Presets (parameters in the plane with 15 classes): ``"4k"`` 16 x 16, hidden 25-25, 3,945; ``"65k"`` 32 x 32, hidden
    100-50, dropout 0.5, 64,827; ``"superpixels"`` 32 x 32, hidden 100-100, 70,627.

    Args:
        channels: Of the convolutions, two or any other number of them.
        hidden: Sizes of the hidden layers.
        dropout: Probability of leaving out a value after each hidden layer.
        normalise: Whether batch normalisation follows each convolution and hidden layer. The paper has none.
        circular: Whether to close the axis of directions to a circle, with a head that has more inputs for it.
        num_rings: Number of rings that the directions form, each of them closed; it divides the number of directions.
        between: Whether a ReLU follows each convolution. The published code had none.

    Example:
        >>> ECTCNN(dim=2, num_classes=15, preset="4k").num_parameters
        3945
    """

    defaults: ClassVar[Options] = {
        "channels": (8, 16),
        "hidden": (25, 25),
        "dropout": 0.0,
        "normalise": False,
        "circular": False,
        "num_rings": None,
        "between": True,
    }
    presets: ClassVar[Mapping[str, Options]] = {
        "4k": {"num_directions": 16, "num_thresholds": 16, "hidden": (25, 25)},
        "65k": {"num_directions": 32, "num_thresholds": 32, "hidden": (100, 50), "dropout": 0.5},
        "superpixels": {"num_directions": 32, "num_thresholds": 32, "hidden": (100, 100)},
    }

    @staticmethod
    def make_transform(dim: int, head: Options, **options: Any) -> ECTLayer:
        """Convolutions in space begin with directions on rings, or if they are circular on a closed curve.

        So neighbouring rows are neighbouring directions, and the last row is next to the first.
        """
        if options.get("directions") is None:
            n, num_rings = options.get("num_directions", 16), head["num_rings"]
            if num_rings is not None:
                if dim != 3:
                    raise ValueError(f"num_rings is for shapes in space, or for directions of your own; got dimension {dim}.")
                check_rings(num_rings, n)
                options["directions"] = rings(n, num_rings, dtype=torch.float64)
            elif head["circular"] and dim == 3:
                options["directions"] = loop(n, dtype=torch.float64)
        return ECTLayer(dim, **options)

    @staticmethod
    def make_head(  # type: ignore[override]
        transform: ECTLayer,
        num_classes: int,
        *,
        channels: Sequence[int],
        hidden: Sequence[int],
        dropout: float,
        normalise: bool,
        circular: bool,
        num_rings: int | None,
        between: bool,
    ) -> nn.Module:
        check_sizes(channels=channels, hidden=hidden)
        count = 1 if num_rings is None else num_rings
        check_rings(count, transform.num_directions)
        around, width = transform.num_directions // count, transform.num_thresholds
        layers: list[nn.Module] = [nn.Unflatten(-2, (count, around))]
        if transform.max_dim is not None:
            layers = [] if count == 1 else [*layers, nn.Flatten(1, 2)]
        closed, height = circular or num_rings is not None, around
        for before, after in itertools.pairwise((count * transform.num_channels, *channels)):
            if closed:
                layers.append(nn.CircularPad2d((0, 0, 1, 1)))
                height += 2
            layers.append(nn.Conv2d(before, after, 3))
            layers += [nn.BatchNorm2d(after)] if normalise else []
            layers += [nn.ReLU()] if between else []
            layers.append(nn.MaxPool2d(2))
            height, width = (height - 2) // 2, (width - 2) // 2
        if height < 1 or width < 1:
            raise ValueError(
                f"ECTCNN needs more directions{' a ring' if count > 1 else ''} and thresholds for {len(channels)} "
                f"convolutions, got {around} and {transform.num_thresholds}. {3 * 2 ** len(channels) - 2} of each do."
            )
        sizes = (channels[-1] * height * width, *hidden)
        return nn.Sequential(*layers, nn.Flatten(), *connected(sizes, dropout, normalise), nn.Linear(sizes[-1], num_classes))


class ECTDeepSets(Classifier):
    """Each curve embedded by itself, the largest value over all directions kept, then classified.

    The result does not depend on the order of the directions. With ``max_dim`` the curves of a direction are embedded as one.

    Preset: ``"modelnet"`` 128 x 128 in space with 40 classes: 109,480 parameters.

    Args:
        embedding: Sizes of the layers that every curve goes through.
        hidden: Sizes of the hidden layers after pooling.
        dropout: Probability of leaving out a value before each layer after pooling.
        pooling: ``"max"`` or ``"mean"`` over directions.

    Example:
        >>> ECTDeepSets(dim=3, num_classes=40, preset="modelnet").num_parameters
        109480
    """

    defaults: ClassVar[Options] = {"embedding": (64, 64), "hidden": (64,), "dropout": 0.0, "pooling": "max"}
    presets: ClassVar[Mapping[str, Options]] = {
        "modelnet": {
            "num_directions": 128,
            "num_thresholds": 128,
            "embedding": (256,),
            "hidden": (256,),
            "dropout": 0.3,
        },
    }

    @staticmethod
    def make_head(  # type: ignore[override]
        transform: ECTLayer,
        num_classes: int,
        *,
        embedding: Sequence[int],
        hidden: Sequence[int],
        dropout: float,
        pooling: str,
    ) -> nn.Module:
        check_sizes(embedding=embedding, hidden=hidden)
        joined = [] if transform.max_dim is None else [EndToEnd()]
        embed = nn.Sequential(*joined, *connected((transform.num_channels * transform.num_thresholds, *embedding), 0.0))
        sizes = (embedding[-1], *hidden)
        classify = nn.Sequential(nn.Dropout(dropout), *connected(sizes, dropout), nn.Linear(sizes[-1], num_classes))
        return nn.Sequential(embed, Pool(pooling), classify)


MODELS: Mapping[str, type[Classifier]] = {"cnn": ECTCNN, "mlp": ECTMLP, "deepsets": ECTDeepSets}
