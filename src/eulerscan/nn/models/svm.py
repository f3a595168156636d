"""A support vector machine on the transform."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..._imports import require
from ..._labels import Labels, numbered
from ..._validation import positive, positive_number
from ...complexes import Shape, as_complex
from ...complexes.boundary import each_outlined, outlined
from ...complexes.extent import centroid_sizes, measure_weighted
from ...functional import ect
from ...variants import direction_spectrum, power_spectrum, rotation_invariant, smoothed
from ..layers import ECTLayer
from .classifier import Classifier, is_ahead


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
        joint: Whether to join several features: the transform; the smooth transform (SECT); the length, area or volume of the
            shape below each height; of all three what rotations keep, if directions are evenly spread
            (:func:`~eulerscan.variants.rotation_invariant`); and the size of the shape, which normalization removes, unless
            the nearest neighbors of the shapes to fit are of the same class more often without it, by more than a standard
            error. Regions in the plane are seen by their outlines if all to fit have such. With ``spectrum``, only the spectra
            of the three, and the size. For shapes without weights, all in the same units.

    Example:
        >>> model = ECTSVM(ECTLayer(dim=2, normalize="unit_ball"), num_classes=2)
        >>> clouds = torch.rand(20, 9, 2) * torch.tensor([1.0, 0.1]).where(torch.arange(20)[:, None, None] < 10, torch.ones(2))
        >>> model.fit(clouds, (torch.arange(20) >= 10).long()).num_support > 0
        True
        >>> model(clouds[:2]).argmax(dim=1)
        tensor([0, 0])
    """

    head: PairwiseSVM
    outlines: Tensor  # whether regions are seen by their outlines, which fit decides

    def __init__(
        self, layer: ECTLayer, num_classes: int, *, cost: float = 10.0, spectrum: bool = False, joint: bool = False
    ) -> None:
        positive_number(cost, "cost")
        if spectrum and layer.dim not in (2, 3):
            raise ValueError(f"spectrum must be False unless shapes are in the plane or in space, got dim={layer.dim}.")
        config = layer.config
        others = {"derivative": config.derivative, "rotate_directions": layer.rotate_directions}
        others[f"variant {config.variant!r}"] = config.variant != "ect"
        if joint and (given := [name for name, value in others.items() if value]):
            raise ValueError(f"joint must be False with {given[0]}, got True.")
        curves = torch.zeros(config.shape(layer.dim), device=layer.weight.device)
        blocks = [_spectrum(curves, layer.directions.detach()) if spectrum else curves]
        if joint:
            blocks = [*blocks * 3, *([] if spectrum else [rotation_invariant(curves, layer.dim)] * 3), curves[0, 0]]
        sizes = [block.numel() for block in blocks]
        super().__init__(layer.requires_grad_(False), PairwiseSVM(sizes, positive(num_classes, "num_classes")))
        self.cost, self.spectrum, self.joint = cost, spectrum, joint
        self.register_buffer("outlines", torch.zeros((), dtype=torch.bool, device=layer.weight.device))

    @property
    def num_support(self) -> int:
        """Number of support vectors."""
        return len(self.head.support)

    @property
    def sees_size(self) -> bool:
        """Whether size counts: that of joint features may have been left out by the fit."""
        return self.joint and bool(self.head.deviation[-1].isfinite())

    def features(self, shape: Shape) -> Tensor:
        """``[B, F]``, not standardized yet: roots with signs, so that a shape of many pieces or holes does not outweigh all.

        Joint features have the roots of the transform and of all spectra, of which few are much larger than the others.
        """
        complex, layer = as_complex(shape), self.layer
        if self.joint and (complex.weights is not None or not complex.is_simplicial):
            found = "weights" if complex.weights is not None else "cells that are no simplices"
            raise ValueError(f"shape must be simplicial and have no weights for joint features, got {found}.")
        complex = each_outlined(complex) if self.joint and self.outlines else complex
        curves = layer(complex)
        if not self.joint:
            curves = _root(curves)
            return (_spectrum(curves, layer.directions) if self.spectrum else curves).flatten(1).to(layer.weight.dtype)
        complex = complex.to(curves.device, torch.promote_types(complex.points.dtype, curves.dtype))
        measured = measure_weighted(complex.normalized(layer.config.normalize).to(dtype=curves.dtype))
        below = torch.zeros_like(curves)  # of points
        if measured is not None:
            below = ect(measured, layer.directions, layer.thresholds, scale=layer.scale).to(curves)
        size = _root(centroid_sizes(complex))[:, None].to(curves)
        blocks = [_root(curves), smoothed(curves, layer.thresholds), below]
        if self.spectrum:
            blocks = [_root(_spectrum(block, layer.directions)) for block in blocks]
        elif layer.dim == 2:
            blocks += [_root(direction_spectrum(block)) for block in blocks]
        else:
            blocks += [rotation_invariant(block, layer.dim) for block in blocks]
        blocks.append(size)
        return torch.cat([block.flatten(1) for block in blocks], dim=1).to(layer.weight.dtype)

    def forward(self, shape: Shape) -> Tensor:
        """Logits ``[B, num_classes]`` of a :class:`Complex` or anything :func:`as_complex` understands."""
        if not self.num_support:
            raise RuntimeError("ECTSVM must be fitted before it classifies: call fit, training.train or load_state_dict.")
        votes: Tensor = self.head(self.features(shape))
        return votes

    @torch.no_grad()
    def fit(self, shape: Shape, labels: Tensor, *, balanced: bool = False, strata: Labels | None = None) -> ECTSVM:
        """Fit the SVM to shapes and their classes ``[B]``, int64. A class that does not occur is never predicted.

        Args:
            balanced: Whether errors cost more in rare classes, in inverse proportion to their sizes.
            strata: Blocks, one for each shape, such as the specimen of several scans. Whether size counts is not decided by
                neighbors in the same block.
        """
        complex = as_complex(shape)
        self.outlines.fill_(self.joint and outlined(complex) is not complex)
        self.head.fit(self.features(complex), labels, self.cost, balanced=balanced, optional=self.joint, strata=strata)
        return self

    def resize(self, num_support: int) -> None:
        """Make room for this many support vectors, to load a state dict."""
        self.head.resize(num_support)


class PairwiseSVM(nn.Module):
    """Centered and scaled features, a radial kernel, a classifier for each pair of classes. Its parameters are not trained.

    Args:
        blocks: Numbers of features. Those of a block are scaled together, and blocks count alike.
        num_classes: Number of classes.
    """

    mean: Tensor
    deviation: Tensor
    gamma: Tensor
    support: Tensor
    coefficients: Tensor
    intercepts: Tensor

    def __init__(self, blocks: Sequence[int], num_classes: int) -> None:
        super().__init__()
        self.blocks, self.num_classes = list(blocks), num_classes
        count = sum(blocks)
        pairs = max(1, num_classes * (num_classes - 1) // 2)
        frozen = {"mean": torch.zeros(count), "intercepts": torch.zeros(pairs)}
        frozen |= {"deviation": torch.ones(count), "gamma": torch.ones(())}
        for name, initial in frozen.items():
            self.register_parameter(name, nn.Parameter(initial, requires_grad=False))
        self.resize(0)
        self.register_load_state_dict_pre_hook(_make_room)  # type: ignore[no-untyped-call]

    def resize(self, num_support: int) -> None:
        like, pairs = self.intercepts, len(self.intercepts)
        self.support = nn.Parameter(like.new_zeros(num_support, len(self.mean)), requires_grad=False)
        self.coefficients = nn.Parameter(like.new_zeros(num_support, pairs), requires_grad=False)

    def fit(
        self,
        features: Tensor,
        labels: Tensor,
        cost: float,
        *,
        balanced: bool = False,
        optional: bool = False,
        strata: Labels | None = None,
    ) -> None:
        """Fit to features ``[B, F]`` and classes ``[B]``. An optional last block that disturbs is divided by infinity."""
        svm = require("sklearn.svm", extra="sklearn")
        present = labels.unique().tolist()
        if len(present) < 2 or not set(present) <= set(range(self.num_classes)) or len(labels) != len(features):
            raise ValueError(
                f"labels must have an entry for each of {len(features)} shapes and hold at least two of the classes from 0 to "
                f"{self.num_classes - 1}, got {len(labels)} entries with the classes {', '.join(map(str, present)) or 'none'}."
            )
        self.mean.copy_(features.mean(dim=0))
        variances = (features - self.mean).square().mean(dim=0).split(self.blocks)
        self.deviation.copy_(torch.cat([_deviations(variance) for variance in variances]))
        standardized = (features - self.mean) / self.deviation
        if optional and _disturbs(standardized, self.blocks[-1], labels, strata):
            self.deviation[-self.blocks[-1] :] = math.inf
            standardized = (features - self.mean) / self.deviation
        rows = standardized.cpu().double()
        gamma = 1 / (float(rows.square().sum(dim=1).mean()) or 1.0)  # "scale" of scikit-learn
        # Given the kernel, scikit-learn need not compute it entry by entry.
        kernel = require("sklearn.metrics.pairwise", extra="sklearn").rbf_kernel(rows.numpy(), gamma=gamma)
        weight = "balanced" if balanced else None
        classifier = svm.SVC(C=cost, kernel="precomputed", decision_function_shape="ovo", class_weight=weight)
        fitted = classifier.fit(kernel, labels.cpu().numpy())
        self.resize(len(fitted.support_))
        self.support.copy_(standardized[torch.from_numpy(fitted.support_).long()])
        self.gamma.fill_(gamma)
        bounds = [0, *itertools.accumulate(fitted.n_support_.tolist())]
        dual = torch.from_numpy(fitted.dual_coef_).to(self.coefficients)
        sign = -1 if len(present) == 2 else 1  # scikit-learn's own, for two classes
        pairs = {pair: number for number, pair in enumerate(itertools.combinations(range(self.num_classes), 2))}
        for (i, j), pair in pairs.items():  # a class without shapes loses to every other one
            self.intercepts[pair] = (i in present) - (j in present)
        for (i, j), intercept in zip(itertools.combinations(range(len(present)), 2), fitted.intercept_, strict=True):
            pair, own, other = pairs[present[i], present[j]], slice(*bounds[i : i + 2]), slice(*bounds[j : j + 2])
            self.coefficients[own, pair] = sign * dual[j - 1, own]
            self.coefficients[other, pair] = sign * dual[i, other]
            self.intercepts[pair] = sign * intercept

    def forward(self, features: Tensor) -> Tensor:
        """Votes ``[B, num_classes]`` of the classifiers; their decisions break ties."""
        standardized = (features - self.mean) / self.deviation
        single = torch.promote_types(standardized.dtype, torch.float32)  # there are no distances in half precision
        distances = torch.cdist(standardized.to(single), self.support.to(single)).to(standardized)
        kernel = torch.exp(-self.gamma * distances.square())
        decisions = kernel @ self.coefficients + self.intercepts
        first, second = torch.triu_indices(self.num_classes, self.num_classes, offset=1, device=decisions.device)
        won = (decisions > 0).to(decisions)
        empty = decisions.new_zeros(len(decisions), self.num_classes)
        votes = empty.index_add(1, first, won).index_add(1, second, 1 - won)
        margin = empty.index_add(1, first, decisions).index_add(1, second, -decisions)
        return votes + margin / (3 * (margin.abs() + 1))


def _make_room(module: PairwiseSVM, state: Mapping[str, Tensor], prefix: str, *_: Any) -> None:
    """Resize an SVM to the state dict that is loaded: its number of support vectors is known only after fitting."""
    support = state.get(f"{prefix}support")
    if support is not None and f"{prefix}coefficients" in state and support.ndim and len(support) != len(module.support):
        module.resize(len(support))


def _spectrum(curves: Tensor, directions: Tensor) -> Tensor:
    """Norms of the harmonics over directions, of curves ``[..., T, H]``."""
    return direction_spectrum(curves) if directions.shape[1] == 2 else _root(power_spectrum(curves, directions))


def _deviations(variance: Tensor) -> Tensor:
    """What the features of a block are divided by, given their variances: afterwards these sum to 1, so blocks count alike.

    The common deviation is added: where curves hardly vary, their own would only magnify noise.
    """
    deviation = variance.sqrt() + variance.mean().sqrt()
    deviation = deviation.where(deviation > 0, torch.ones_like(deviation))
    total = (variance / deviation.square()).sum().sqrt()
    return deviation * total.where(total > 0, torch.ones_like(total))


def _disturbs(features: Tensor, last: int, labels: Tensor, strata: Labels | None = None) -> bool:
    """Whether nearest neighbors are of the same class more often, by more than a standard error, without the last features.

    Neighbors are of other blocks, if there are any.
    """
    own, features = labels.to(features.device), features.to(torch.promote_types(features.dtype, torch.float32))
    count = len(features)
    blocks = torch.from_numpy(numbered(range(count) if strata is None else strata, count, "strata")[0]).to(features.device)
    same = blocks[:, None] == blocks
    without = torch.cdist(features[:, :-last], features[:, :-last]).masked_fill(same, math.inf)
    whole = without.hypot(torch.cdist(features[:, -last:], features[:, -last:]))
    right, right_without = (own[distances.argmin(dim=1)] == own for distances in (whole, without))
    return is_ahead(right_without, right, strata)


def _root(values: Tensor) -> Tensor:
    """Square roots with the signs of the values. The gradient at zero, which would be infinite, is zero."""
    return values.sign() * values.where(values != 0, torch.ones_like(values)).abs().sqrt()
