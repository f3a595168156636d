"""Assertions for any function of a complex: order invariance, batch independence, rotation, the reference."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .. import rotations
from ..complexes import Complex, Shape, as_complex, collate
from ..functional import ect
from ..kernels import reference

Function = Callable[[Complex], Tensor]


def assert_order_invariant(
    transform: Function,
    shape: Shape,
    *,
    generator: torch.Generator | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert that the order of complexes, vertices, simplices, and of the vertices of a simplex, does not matter.

    Args:
        transform: A function of a complex that returns one row per complex, such as a layer.
        shape: One or many complexes, or anything :func:`as_complex` understands.
        generator: Random numbers for the permutations.
        rtol, atol: As in :func:`torch.testing.assert_close`.
    """
    complex = as_complex(shape)
    shuffled, order = shuffle(complex, generator=generator)
    _assert_close("transform depends on the order", transform(shuffled), transform(complex)[order], rtol, atol)


def assert_batch_independent(
    transform: Function, shape: Shape, *, rtol: float | None = None, atol: float | None = None
) -> None:
    """Assert that the result of a complex does not depend on the others in its batch."""
    complex = as_complex(shape)
    single = torch.cat([transform(complex[b]) for b in range(complex.num_complexes)])
    _assert_close("transform depends on the batch", single, transform(complex), rtol, atol)


def assert_rotation_consistent(
    transform: Callable[[Complex, Tensor], Tensor],
    shape: Shape,
    directions: Tensor,
    *,
    generator: torch.Generator | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert that rotating shape and directions together does not change the result.

    Args:
        transform: A function of a complex and directions ``[T, dim]``.
        shape: One or many complexes, or anything :func:`as_complex` understands.
        directions: ``[T, dim]``.
        generator: Random numbers for the rotation.
        rtol, atol: As in :func:`torch.testing.assert_close`.
    """
    complex = as_complex(shape)
    rotation = rotations.random(1, complex.dim, generator)[0].to(complex.points)
    rotated = transform(complex.with_points(complex.points @ rotation.T), directions @ rotation.T)
    _assert_close("transform depends on the rotation", rotated, transform(complex, directions), rtol, atol)


@torch.no_grad()
def assert_rotation_invariant(
    model: Function,
    shape: Shape,
    *,
    tolerance: float = 1e-3,
    num_rotations: int = 4,
    generator: torch.Generator | None = None,
) -> None:
    """Assert that rotating shapes hardly changes the result of a model.

    Args:
        model: A function of a complex that returns one row per complex, such as a classifier in evaluation mode.
        shape: One or many complexes, or anything :func:`as_complex` understands.
        tolerance: Largest norm of the change of a row, relative to the root mean square of the norms of all rows.
        num_rotations: Number of random rotations to try.
        generator: Random numbers for the rotations.

    Example:
        >>> assert_rotation_invariant(lambda complex: complex.largest_norms()[:, None], torch.rand(2, 9, 3))
    """
    complex = as_complex(shape)
    if not complex.num_complexes:
        raise ValueError("shape must have at least one complex, got none.")
    before = model(complex).double().reshape(complex.num_complexes, -1)
    size = before.norm(dim=1).square().mean().sqrt().clamp(min=torch.finfo(torch.float64).tiny)
    for rotation in rotations.random(num_rotations, complex.dim, generator).to(complex.points):
        after = model(complex.with_points(complex.points @ rotation.T)).double().reshape(complex.num_complexes, -1)
        change = (after - before).norm(dim=1) / size
        if bool((worst := change.max()) <= tolerance):  # not for NaN
            continue
        training = " It is in training mode: call eval() first." if getattr(model, "training", False) else ""
        raise AssertionError(
            f"model depends on the rotation: the result of complex {int(change.argmax())} changes by {worst:.2g}, relative to "
            f"the norms of all, more than the tolerance {tolerance:g}.{training}"
        )


def assert_equals_reference(
    shape: Shape,
    directions: Tensor,
    thresholds: Tensor,
    *,
    scale: float = math.inf,
    transform: Callable[..., Tensor] = ect,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert that a transform and its gradients equal the dense formula of the paper.

    Gradients of points, directions, thresholds and scale are compared if ``scale`` is finite; those of weights, if there are
    any, always.

    Args:
        shape, directions, thresholds, scale: Arguments of the transform.
        transform: A function like :func:`ect`.
        rtol, atol: As in :func:`torch.testing.assert_close`.
    """
    complex = as_complex(shape)
    scale_tensor = complex.points.new_full((), scale)
    got, expected = (
        _values_and_gradients(function, complex, directions, thresholds, scale_tensor) for function in (transform, _dense)
    )
    for name, value in expected.items():
        _assert_close(f"{name} differ from the reference", got[name], value, rtol, atol)


def _dense(complex: Complex, directions: Tensor, thresholds: Tensor, *, scale: Tensor) -> Tensor:
    layout = (complex.packed.simplices, complex.offsets, complex.rows, complex.packed.dims)
    return reference.ect(complex.points, directions, thresholds, scale, complex.packed.weights, *layout)


def _values_and_gradients(
    transform: Callable[..., Tensor], complex: Complex, directions: Tensor, thresholds: Tensor, scale: Tensor
) -> dict[str, Tensor]:
    """The transform, and gradients of a fixed linear combination of its entries."""
    names = ("points", "directions", "thresholds", "scale") if bool(scale.isfinite()) else ()
    tensors = (complex.points, directions, thresholds, scale)
    points, directions, thresholds, scale = inputs = [t.detach().clone().requires_grad_(bool(names)) for t in tensors]
    complex = complex.with_points(points)
    if complex.packed.weights is not None:
        weights = complex.packed.weights.detach().clone().requires_grad_()
        complex = Complex.from_packed(complex.packed._replace(points=points, weights=weights))
        names, inputs = (*names, "weights"), [*(inputs if names else ()), weights]
    value = transform(complex, directions, thresholds, scale=scale)
    results = {"values": value.detach()}
    if names:
        assert value.requires_grad, "gradients differ from the reference: the result does not require grad"
        upstream = torch.linspace(-1, 1, value.numel(), dtype=value.dtype, device=value.device).view_as(value)
        gradients = torch.autograd.grad(value, inputs, upstream, materialize_grads=True)
        results |= {f"gradients of {name}": gradient for name, gradient in zip(names, gradients, strict=True)}
    return results


def _assert_close(message: str, got: Tensor, expected: Tensor, rtol: float | None, atol: float | None) -> None:
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, msg=lambda text: f"{message}: {text}")


def shuffle(complex: Complex, *, generator: torch.Generator | None = None) -> tuple[Complex, Tensor]:
    """Permute complexes, vertices and cells. Returns the result, and the original index ``[B]`` of each complex."""

    def permutation(n: int) -> Tensor:
        return torch.randperm(n, generator=generator).to(complex.device)

    parts = []
    order = permutation(complex.num_complexes)
    for b in order.tolist():
        one = complex[b]
        vertices = permutation(len(one.points))
        inverse = torch.empty_like(vertices)
        inverse[vertices] = torch.arange(len(vertices), device=complex.device)
        columns = [permutation(s.shape[1]) for s in one.simplices]
        simplices = []
        for s, column, (dim, rows) in zip(one.simplices, columns, one.packed.kinds, strict=True):
            # Vertices of other cells stay in place: those of a polygon are listed around its boundary.
            corners = permutation(rows) if rows == dim + 1 else torch.arange(rows)
            simplices.append(inverse[s.long()][corners][:, column])
        weights = one.weights
        if weights is not None:
            weights = tuple(w[p] for w, p in zip(weights, (vertices, *columns), strict=True))
        parts.append(Complex(one.points[vertices], simplices, dims=one.dims, weights=weights, num_complexes=1))
    return collate(parts) if parts else complex, order
