"""Attribution: how much each vertex of a shape contributes to the output of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from .._validation import check_choice, positive
from ..complexes import Complex, Shape, as_complex
from ..complexes.normalize import divided
from ..functional import ect
from ..kernels import operation
from ..nn import ECTLayer
from ..nn.models import Classifier, Ensemble
from ..variants import derivative

Method = Literal["gradient", "integrated_gradients", "additive"]
LINEAR = {torch.float32: 1e-3, torch.float64: 1e-6}  # largest relative error of a split that counts as exact
AT_ONCE = 1 << 24  # entries of an intermediate tensor


@dataclass(frozen=True, eq=False)
class Attribution:
    """A number for every vertex.

    Attributes:
        shapes: The shapes as the layer normalizes them; of :class:`~eulerscan.nn.models.ECTHarmonics` along their principal
            axes, which count as constants.
        scores: ``[V]``, in the order of ``shapes.points``.
        outputs: ``[B]``, the output of the model that was attributed.
        baselines: ``[B]``, the output that no vertex accounts for: for integrated gradients that of the shape shrunk to a
            point, for the additive split that of an empty shape. ``None`` for gradients.
    """

    shapes: Complex
    scores: Tensor
    outputs: Tensor
    baselines: Tensor | None = None

    @property
    def completeness_error(self) -> Tensor | None:
        """``[B]``: what the scores of a shape lack to add up to its output minus its baseline. ``None`` for gradients."""
        return None if self.baselines is None else self.outputs - self.baselines - _sums(self.scores, self.shapes)

    @property
    def simplex_scores(self) -> tuple[Tensor, ...]:
        """For each level of ``shapes.simplices``, ``[n]``: the mean score of the vertices of each edge, triangle, ..."""
        return tuple(self.scores[columns].mean(dim=0) for columns in self.shapes.simplices)


def attribute(
    model: nn.Module,
    shapes: Shape,
    target: int | Tensor | None = None,
    *,
    method: Method = "gradient",
    max_steps: int = 1024,
) -> Attribution:
    """Attribute an output of a model to the vertices of its input.

    The model is evaluated as it is used for prediction (``model.eval()``), and its parameters get no gradients.

    - ``"gradient"``: the norm of the gradient in the coordinates of each vertex, that is, how fast the output changes if the
      vertex moves. It says nothing about removing the vertex.
    - ``"integrated_gradients"``: the gradient integrated while the shape grows from its center to its size. The scores of a
      shape add up to its output minus that of the shape shrunk to a point, up to an error of integration, which is returned.
    - ``"additive"``: the exact split, for heads that are linear in the transform. Every jump of every curve belongs to one
      vertex, so the output minus that of an empty shape is a sum over vertices. It needs no gradient in the coordinates, so
      the scale may be ``inf``.

    A high score is not a cause. :func:`evidence` asks where groups differ, and compares with permuted labels.

    Args:
        model: A module with one :class:`ECTLayer`, which maps shapes to outputs ``[B, num_outputs]`` or ``[B]``. The layer gets
            the coordinates as they are, and nothing else of the model depends on them.
        shapes: A :class:`Complex`, or anything :func:`as_complex` understands.
        target: Index of the output, or one for each shape, ``[B]``. ``None`` for a model with a single output.
        method: See above.
        max_steps: Largest number of steps of the integral. Steps are doubled until the error is below 1e-6 of the output.

    Example:
        >>> model = nn.Sequential(ECTLayer(2, 8, 8), nn.Flatten(), nn.Linear(64, 3))
        >>> found = attribute(model, torch.rand(5, 20, 2), target=1, method="additive")
        >>> found.scores.shape
        torch.Size([100])
        >>> bool(found.completeness_error.abs().max() < 1e-4)
        True
    """
    check_choice(method, "method", get_args(Method))
    positive(max_steps, "max_steps")
    layer = _layer(model)
    if method != "additive" and bool(torch.isinf(layer.scale)):
        raise ValueError(
            f"scale of the layer must be finite for method={method!r}: at scale=inf every gradient in the coordinates is zero. "
            "Use method='additive' for linear heads, or a layer with a finite scale."
        )
    given = as_complex(shapes)
    holders = [module for module in model.modules() if isinstance(module, Classifier) and module.layer is layer]
    complex = holders[0].oriented(given) if holders else given
    complex = complex.to(layer.weight.device, torch.promote_types(complex.points.dtype, layer.dtype))
    complex = complex.normalized(layer.config.normalize).to(dtype=layer.dtype)
    problem = _Problem(model, layer, given, complex, target)
    with _evaluating(model):
        problem.check()
        if method == "integrated_gradients":
            return _by_integral(problem, max_steps)
        return _by_gradient(problem) if method == "gradient" else _by_sum(problem)


@dataclass(frozen=True)
class _Problem:
    """A model as a function of the points, and of the transform."""

    model: nn.Module
    layer: ECTLayer
    given: Complex
    complex: Complex  # normalized
    target: int | Tensor | None

    def curves(self, points: Tensor) -> Tensor:
        """What the layer returns for other coordinates of the normalized shapes."""
        config = replace(self.layer.config, normalize=None)
        grid = (self.layer.directions, self.layer.thresholds)
        return config.transform(self.complex.with_points(points), *grid, scale=self.layer.scale)

    def output(self, curves: Tensor) -> Tensor:
        """``[B]``: the chosen output of the model if its layer returns these curves."""
        handle = self.layer.register_forward_hook(lambda *_: curves)
        try:
            return _chosen(self.model(self.given), self.target, len(self.given))
        finally:
            handle.remove()

    @torch.enable_grad()
    def check(self) -> None:
        """Raise if the layer gets other coordinates than the model, or if the output depends on them past the layer."""
        points = self.given.points.detach().requires_grad_()
        problem = replace(self, given=self.given.with_points(points))
        expected = _chosen(self.model(problem.given), self.target, len(self.given))
        found = problem.output(self.curves(self.complex.points.detach()))
        past = found.requires_grad and torch.autograd.grad(found.sum(), points, allow_unused=True)[0] is not None
        error = torch.linalg.vector_norm(found - expected)
        if past or bool(error > torch.finfo(error.dtype).eps ** 0.5 * torch.linalg.vector_norm(expected)):
            raise ValueError(
                "model must pass the coordinates of the shapes to its ECTLayer as they are, and use them nowhere else, got "
                f"{type(self.model).__name__}, which {'uses them beside it' if past else 'changes them before'}."
            )

    def gradient(self, points: Tensor) -> Tensor:
        """``[V, dim]``. Shapes do not depend on each other, so one pass serves all."""
        with torch.enable_grad():
            points = points.detach().requires_grad_()
            return torch.autograd.grad(self.output(self.curves(points)).sum(), points)[0]


def _by_gradient(problem: _Problem) -> Attribution:
    points = problem.complex.points.detach()
    scores = torch.linalg.vector_norm(problem.gradient(points), dim=1)
    with torch.no_grad():
        return Attribution(problem.complex, scores, problem.output(problem.curves(points)))


def _by_integral(problem: _Problem, max_steps: int) -> Attribution:
    """The Gauss-Legendre rule on [0, 1]: the order of heights is the same at every size, so the integrand has no kinks."""
    points = problem.complex.points.detach()
    with torch.no_grad():
        outputs = problem.output(problem.curves(points))
        baselines = problem.output(problem.curves(torch.zeros_like(points)))
    steps = min(32, max_steps)
    while True:
        total = torch.zeros_like(points)
        nodes, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]
        for node, weight in zip((nodes + 1).tolist(), weights.tolist(), strict=True):
            total += 0.5 * weight * problem.gradient(0.5 * node * points)
        found = Attribution(problem.complex, (total * points).sum(dim=1), outputs, baselines)
        error = found.completeness_error
        assert error is not None
        small = 1e-6 * (outputs - baselines).abs().clamp(min=torch.finfo(points.dtype).eps)
        if bool((error.abs() <= small).all()) or steps == max_steps:
            return found
        steps = min(2 * steps, max_steps)


@torch.no_grad()
def _by_sum(problem: _Problem) -> Attribution:
    layer, complex = problem.layer, problem.complex
    config = layer.config
    if config.variant != "ect" or config.divide_by == "peak":
        raise ValueError(
            "method='additive' needs a layer with variant='ect' that is not divided by its peak, "
            f"got variant={config.variant!r} and divide_by={config.divide_by!r}."
        )
    curves = ect(complex, layer.directions, layer.thresholds, scale=layer.scale)

    def output(curves: Tensor) -> Tensor:
        curves = derivative(curves) if config.derivative else curves
        return problem.output(divided(curves, complex.offsets, config.divide_by))

    with torch.enable_grad():
        leaf = curves.detach().requires_grad_()
        outputs = output(leaf)
        weights = torch.autograd.grad(outputs.sum(), leaf)[0]
    scores = additive_split(complex, layer.directions, layer.thresholds, weights, scale=layer.scale)
    found = Attribution(complex, scores, outputs.detach(), output(torch.zeros_like(curves)))
    error = found.completeness_error
    assert error is not None
    magnitude = _sums(scores.abs(), complex) + found.outputs.abs()
    if bool((error.abs() > LINEAR[scores.dtype] * magnitude).any()):
        raise ValueError(
            "method='additive' needs a model that is linear in the transform, such as a layer, nn.Flatten and nn.Linear: the "
            f"scores of a shape miss its output by {float(error.abs().max()):.3g}. Use 'gradient' or 'integrated_gradients'."
        )
    return found


def additive_split(
    complex: Complex, directions: Tensor, thresholds: Tensor, weights: Tensor, *, scale: float | Tensor
) -> Tensor:
    """``[V]``: the part of each vertex in the sum of the transform times ``weights [B, T, H]``, exactly.

    In each direction every simplex belongs to its highest vertex.
    """
    points, offsets, rows, simplices, own, dims = complex.packed
    points = points.detach()
    directions, thresholds, weights = (x.detach().to(points.dtype) for x in (directions, thresholds, weights))
    result = points.new_zeros(len(points))
    block = max(1, AT_ONCE // max(1, len(points) * len(thresholds)))
    for start in range(0, len(directions), block):
        chosen = slice(start, start + block)
        layout = (simplices, offsets, rows, dims)
        heights, coefficients = operation.coefficients(points, directions[chosen], own, *layout)  # [V, T] each
        above = thresholds - heights.unsqueeze(-1)  # [V, T, H]
        exact = bool(torch.isinf(torch.as_tensor(scale)))
        counted = (above >= 0).to(points.dtype) if exact else torch.sigmoid(scale * above)
        read = (counted * weights[complex.batch][:, chosen]).sum(dim=-1)
        result += (coefficients * read).sum(dim=1)
    return result


def _layer(model: nn.Module) -> ECTLayer:
    found = [module for module in model.modules() if isinstance(module, ECTLayer)]
    if len(found) != 1:
        hint = " Attribute one member, such as model.members[0]." if isinstance(model, Ensemble) else ""
        raise ValueError(f"model must have one ECTLayer, got {len(found)}.{hint}")
    return found[0]


def _chosen(outputs: Any, target: int | Tensor | None, count: int) -> Tensor:
    if not isinstance(outputs, Tensor) or outputs.ndim not in (1, 2) or len(outputs) != count:
        got = list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(f"model must return outputs [{count}, num_outputs] or [{count}], got {got}.")
    table: Tensor = outputs.reshape(count, -1)
    if target is None:
        if table.shape[1] != 1:
            raise ValueError(f"target must be one of the {table.shape[1]} outputs of the model, got None.")
        return table[:, 0]
    indices = torch.as_tensor(target, device=table.device)
    if indices.dtype == torch.bool or indices.is_floating_point() or indices.shape not in ((), (count,)):
        raise ValueError(f"target must be an int, or integers [{count}], got {target!r}.")
    if bool(((indices < 0) | (indices >= table.shape[1])).any()):
        raise IndexError(f"target must be from 0 to {table.shape[1] - 1}, the outputs of the model, got {target!r}.")
    return table.gather(1, indices.long().expand(count)[:, None])[:, 0]


def _sums(values: Tensor, shapes: Complex) -> Tensor:
    """``[B]``: sum over the vertices of each shape."""
    return values.new_zeros(len(shapes)).index_add(0, shapes.batch, values)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode, where batch normalization does not mix shapes."""
    training = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in training.items():
            module.training = mode
