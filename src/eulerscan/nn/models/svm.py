"""A support vector machine on the transform."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from ..._imports import require
from ..._validation import positive
from ...complexes import Shape
from ...variants import direction_spectrum, power_spectrum
from ..layers import ECTLayer
from .classifier import Classifier


class ECTSVM(Classifier):
    """A support vector machine (SVM) with a radial kernel on the roots of the transform.

    It is fitted by scikit-learn, in seconds for a few thousand shapes, and strong for few of them. Once fitted, it is a module
    like the others, without scikit-learn.

    Args:
        layer: The transform. It is not trained.
        num_classes: Number of logits: votes of the pairwise classifiers.
        cost: Penalty of training shapes on the wrong side, C of scikit-learn.
        spectrum: Whether to take the norms of the harmonics over directions, which change little if a shape is rotated: in the
            plane magnitudes of Fourier coefficients, in space the root of :func:`~eulerscan.variants.power_spectrum`. The
            layer then needs the directions of a :func:`~eulerscan.directions.quadrature` there.

    Example:
        >>> model = ECTSVM(ECTLayer(dim=2, normalize="unit_ball"), num_classes=2)
        >>> clouds = torch.rand(20, 9, 2) * torch.tensor([1.0, 0.1]).where(torch.arange(20)[:, None, None] < 10, torch.ones(2))
        >>> model.fit(clouds, (torch.arange(20) >= 10).long()).num_support > 0
        True
        >>> model(clouds[:2]).argmax(dim=1)
        tensor([0, 0])
    """

    def __init__(self, layer: ECTLayer, num_classes: int, *, cost: float = 10.0, spectrum: bool = False) -> None:
        if not cost > 0:
            raise ValueError(f"cost must be positive, got {cost}.")
        if spectrum and layer.dim not in (2, 3):
            raise ValueError(f"spectrum must be False unless shapes are in the plane or in space, got dim={layer.dim}.")
        super().__init__(layer.requires_grad_(False), PairwiseSVM(layer, positive(num_classes, "num_classes"), spectrum))
        self.cost = cost

    @property
    def num_support(self) -> int:
        """Number of support vectors."""
        return len(self.head.support)  # type: ignore[arg-type]

    @torch.no_grad()
    def fit(self, shape: Shape, labels: Tensor) -> ECTSVM:
        """Fit the SVM to shapes and their classes ``[B]``, int64. Every class must occur."""
        assert isinstance(self.head, PairwiseSVM)
        self.head.fit(self.layer(shape).to(self.layer.weight.dtype), labels, self.cost)
        return self

    def resize(self, num_support: int) -> None:
        """Make room for this many support vectors, to load a state dict."""
        assert isinstance(self.head, PairwiseSVM)
        self.head.resize(num_support)


class PairwiseSVM(nn.Module):
    """Centered and scaled features, a radial kernel, a classifier for each pair of classes. Its parameters are not trained."""

    directions: Tensor
    mean: Tensor
    deviation: Tensor
    gamma: Tensor
    support: Tensor
    coefficients: Tensor
    intercepts: Tensor

    def __init__(self, layer: ECTLayer, num_classes: int, spectrum: bool) -> None:
        super().__init__()
        directions, thresholds = layer.config.num_directions, layer.config.num_thresholds
        self.num_classes, self.spectrum = num_classes, spectrum
        rows = directions
        if spectrum:
            rows = directions // 2 + 1 if layer.dim == 2 else power_spectrum(layer.directions, layer.directions).shape[0]
        self.register_buffer("directions", layer.directions.detach(), persistent=False)
        self.num_features = layer.num_channels * thresholds * rows
        pairs = max(1, num_classes * (num_classes - 1) // 2)
        frozen = {"mean": torch.zeros(self.num_features), "intercepts": torch.zeros(pairs)}
        frozen |= {"deviation": torch.ones(self.num_features), "gamma": torch.ones(())}
        for name, initial in frozen.items():
            self.register_parameter(name, nn.Parameter(initial, requires_grad=False))
        self.resize(0)

    def resize(self, num_support: int) -> None:
        like, pairs = self.intercepts, len(self.intercepts)
        self.support = nn.Parameter(like.new_zeros(num_support, self.num_features), requires_grad=False)
        self.coefficients = nn.Parameter(like.new_zeros(num_support, pairs), requires_grad=False)

    def features(self, curves: Tensor) -> Tensor:
        """``[B, F]``, not standardized yet: roots with signs, so that a shape of many pieces or holes does not outweigh all."""
        curves = _root(curves)
        if self.spectrum:
            plane = self.directions.shape[1] == 2
            curves = direction_spectrum(curves) if plane else _root(power_spectrum(curves, self.directions))
        return curves.flatten(1)

    def fit(self, curves: Tensor, labels: Tensor, cost: float) -> None:
        svm = require("sklearn.svm", extra="sklearn")
        features = self.features(curves)
        found = labels.unique()
        if len(found) != self.num_classes or len(labels) != len(features):
            raise ValueError(
                f"labels must have an entry for each of {len(features)} shapes and hold every class from 0 to "
                f"{self.num_classes - 1}, got {len(labels)} entries with {len(found)} classes."
            )
        self.mean.copy_(features.mean(dim=0))
        # The common deviation is added: where curves hardly vary, their own would only magnify noise.
        variance = (features - self.mean).square().mean(dim=0)
        deviation = variance.sqrt() + variance.mean().sqrt()
        self.deviation.copy_(deviation.where(deviation > 0, torch.ones_like(deviation)))
        standardized = (features - self.mean) / self.deviation
        fitted = svm.SVC(C=cost, decision_function_shape="ovo").fit(standardized.cpu().double().numpy(), labels.cpu().numpy())
        self.resize(len(fitted.support_))
        self.support.copy_(standardized[torch.from_numpy(fitted.support_).long()])
        self.gamma.fill_(float(fitted._gamma))
        bounds = [0, *itertools.accumulate(fitted.n_support_.tolist())]
        dual = torch.from_numpy(fitted.dual_coef_).to(self.coefficients)
        for pair, (i, j) in enumerate(itertools.combinations(range(self.num_classes), 2)):
            own, other = slice(bounds[i], bounds[i + 1]), slice(bounds[j], bounds[j + 1])
            self.coefficients[own, pair] = dual[j - 1, own]
            self.coefficients[other, pair] = dual[i, other]
        self.intercepts.copy_(torch.from_numpy(fitted.intercept_))
        if self.num_classes == 2:  # for which scikit-learn has the other sign
            self.coefficients.neg_()
            self.intercepts.neg_()

    def forward(self, curves: Tensor) -> Tensor:
        """Votes ``[B, num_classes]`` of the classifiers; their decisions break ties."""
        standardized = (self.features(curves) - self.mean) / self.deviation
        kernel = torch.exp(-self.gamma * torch.cdist(standardized, self.support).square())
        decisions = kernel @ self.coefficients + self.intercepts
        first, second = torch.triu_indices(self.num_classes, self.num_classes, offset=1, device=decisions.device)
        won = (decisions > 0).to(decisions)
        empty = decisions.new_zeros(len(decisions), self.num_classes)
        votes = empty.index_add(1, first, won).index_add(1, second, 1 - won)
        margin = empty.index_add(1, first, decisions).index_add(1, second, -decisions)
        return votes + margin / (3 * (margin.abs() + 1))


def _root(values: Tensor) -> Tensor:
    """Square roots with the signs of the values. The gradient at zero, which would be infinite, is zero."""
    return values.sign() * values.where(values != 0, torch.ones_like(values)).abs().sqrt()
