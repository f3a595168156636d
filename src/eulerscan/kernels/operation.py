"""The transform as a torch operator with several implementations, all with the signature of :mod:`.layout`.

``eulerscan::ect`` traces, compiles and differentiates like the operators of torch. It runs :mod:`.cpu` on the CPU,
:mod:`.triton` on GPUs and :mod:`.portable` elsewhere (:mod:`.dispatch`); all must equal :mod:`.reference`. The operator has no
rules for forward mode and torch.func, so there :func:`ect` calls the portable implementation, and under vmap the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from .._torch_internals import apply_directly, is_forward_mode, is_func_active, is_recording, is_vmapped, is_wrapped
from .._validation import ascending_error
from . import portable, reference
from .dispatch import forced, has_triton, kernel_for
from .layout import heights_of, levels

if TYPE_CHECKING:
    from .cpu import problem as cpu
    from .triton import problem as gpu

Gradients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
PLAIN_TYPES = (Tensor, torch.nn.Parameter)  # subclasses may be fake tensors without values


def ect(
    points: Tensor,
    directions: Tensor | None,
    thresholds: Tensor,
    scale: Tensor | float,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
) -> Tensor:
    """Euler characteristic transform ``[B, T, H]``. The arguments are those of :mod:`.layout`; the scale may be a float."""
    layout = (simplices, offsets, rows, dims)
    result: Tensor
    if is_traced(points):
        if needs_rules():  # the dispatcher would drop tangents silently
            raise NotImplementedError("A compiled or traced transform supports neither torch.func nor forward mode (jvp).")
        result = torch.ops.eulerscan.ect(points, directions, thresholds, _as_tensor(scale, points), weights, *layout)
    elif needs_rules():
        result = _in_torch(points, directions, thresholds, scale, weights, layout)
    elif _needs_gradients(points, directions, thresholds, scale, weights):
        result = _apply(points, directions, thresholds, scale, weights, layout)
    else:
        result = _prepare(points, directions, thresholds, scale, weights, *layout).transform()
    return result


def coefficients(
    points: Tensor,
    directions: Tensor | None,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
    dims: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """Heights and coefficients ``[V, T]`` of the vertices.

    A coefficient is the jump of the exact curve at the height of its vertex.
    """
    layout = (simplices, offsets, rows, dims)
    if points.is_cpu:
        found: tuple[Tensor, Tensor] = _cpu().coefficients(points, directions, weights, *layout)
        return found
    heights = heights_of(points, directions, offsets)
    return heights, portable.collapse(heights, list(levels(weights, *layout, num_points=len(points))))


def is_immediate(*tensors: Tensor) -> bool:
    """Whether the CPU kernel transforms these tensors now: there is nothing to record or to differentiate."""
    plain = all(tensor.is_cpu and not is_traced(tensor) for tensor in tensors) and not needs_rules()
    return plain and not _needs_gradients(*tensors) and kernel_for(tensors[0].device) == "cpu"


def count(levels: Sequence[Tensor], signs: Sequence[int], offsets: Tensor, thresholds: Tensor) -> Tensor:
    """Exact curves ``[P, H]`` in integers of the values of cells, for :func:`is_immediate` tensors: see :mod:`.cpu.problem`."""
    found: Tensor = _cpu().count(levels, signs, offsets, thresholds)
    return found


def is_traced(tensor: Tensor) -> bool:
    """Whether a program is being recorded, possibly with fake tensors that have no values."""
    return torch.compiler.is_compiling() or is_recording() or type(tensor) not in PLAIN_TYPES


def _needs_gradients(*inputs: Tensor | float | None) -> bool:
    """Whether gradients are needed."""
    if torch.is_grad_enabled():
        for tensor in inputs:  # a generator would take longer than the checks
            if getattr(tensor, "requires_grad", False):
                return True
    return False


def needs_rules() -> bool:
    """Whether forward mode or torch.func is active, which need rules for every operator."""
    return is_func_active() or is_forward_mode()


def _in_torch(*inputs: Any) -> Tensor:
    """By operators of torch, which have rules for torch.func; under vmap by the reference, which reads no values."""
    points, directions, thresholds, scale, weights, layout = inputs
    scale = _as_tensor(scale, points)
    if is_vmapped(scale):  # its value cannot be read, so it is assumed to be finite
        points, thresholds, scale = points * scale, thresholds * scale, _as_tensor(1.0, points)
    elif scale.is_cpu:
        _check_scale(scale.item())
    if not is_vmapped(thresholds):
        _check_thresholds(thresholds)
    tensors = (points, directions, thresholds, scale, weights)
    mapped = any(tensor is not None and is_vmapped(tensor) for tensor in tensors)
    result: Tensor = (reference if mapped else portable).ect(*tensors, *layout)
    return result


def _as_tensor(scale: Tensor | float, points: Tensor) -> Tensor:
    return scale if isinstance(scale, Tensor) else torch.full((), scale, dtype=points.dtype, device=points.device)


def _forward(*inputs: Any) -> Tensor:
    return _prepare(*inputs).transform()


def _backward(gradient: Tensor, *arguments: Any) -> Gradients:
    """Gradients as the operator returns them: empty where not needed."""
    inputs, needs, dims = arguments[:8], arguments[8], arguments[9:]  # the dispatcher leaves out what is None by default
    gradients = _prepare(*inputs, *dims).differentiate(gradient, needs)
    return tuple(gradient.new_empty(0) if g is None else g for g in gradients)  # type: ignore[return-value]


def _prepare(
    points: Tensor, directions: Tensor | None, thresholds: Tensor, scale: Tensor | float, *others: Any, keep: bool = False
) -> cpu.Problem | gpu.Problem | portable.Problem | ReferenceProblem:
    """The checked problem for the device of the points, for one pass or, with ``keep``, for forward and backward."""
    kernel = "cpu" if points.is_cpu and forced.kernel is None else kernel_for(points.device)
    if kernel == "cpu":
        value = float(scale.item() if isinstance(scale, Tensor) else scale)  # the dtype the kernels are compiled for
        _check_scale(value)
        problem: cpu.Problem = _cpu().prepare(points, directions, thresholds, value, *others, keep=keep)
        return problem
    if not isinstance(scale, Tensor) or scale.is_cpu:  # on another device, an invalid scale gives NaN
        _check_scale(scale.item() if isinstance(scale, Tensor) else scale)
    _check_thresholds(thresholds)
    inputs = (points, directions, thresholds, _as_tensor(scale, points), *others)
    if kernel == "triton":
        on_gpu: gpu.Problem = _triton().Problem(*inputs)
        return on_gpu
    return portable.Problem(inputs) if kernel == "portable" else ReferenceProblem(inputs)


class ReferenceProblem(NamedTuple):
    """Both passes by the reference, for comparisons."""

    inputs: tuple[Any, ...]

    def transform(self) -> Tensor:
        """``[B, T, H]``."""
        with torch.no_grad():
            return reference.ect(*self.inputs)

    def differentiate(self, gradient: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        """Gradients of points, directions, thresholds, scale and weights, ``None`` where not needed."""
        tensors = zip(self.inputs[:5], needs, strict=True)
        leaves = [None if t is None else t.detach().requires_grad_(needed) for t, needed in tensors]
        return portable.differentiate(gradient, leaves, self.inputs[5:], create_graph=False, transform=reference.ect)

    @property
    def is_current(self) -> bool:
        """Always: torch manages the memory."""
        return True


def _check_scale(value: float) -> None:
    """Checked where the value is read, so that compiled programs check it too."""
    if not value > 0:
        raise ValueError(f"scale must be positive (math.inf for the exact transform), got {value}.")


def _check_thresholds(thresholds: Tensor) -> None:
    """On the CPU, where the kernel of its own checks them while it runs. Elsewhere the host would wait: the result is NaN."""
    if thresholds.is_cpu and (not bool(torch.isfinite(thresholds).all()) or bool((thresholds[1:] < thresholds[:-1]).any())):
        raise ascending_error(thresholds)


@cache
def _cpu() -> Any:
    """Import numba with the first transform, not with the library."""
    from .cpu import problem

    return problem


@cache
def _triton() -> Any:
    """Import triton with the first transform on a GPU."""
    from .triton import problem

    return problem


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor | None = None) -> None:
    points, directions, thresholds, scale, *others, rows, dims = inputs
    ctx.rows, ctx.dims, ctx.problem, ctx.plain_scale = rows, dims, None, None
    if not isinstance(scale, Tensor):
        ctx.plain_scale, scale = scale, None  # only tensors can be saved
    ctx.save_for_backward(points, directions, thresholds, scale, *others)


def _gradients(ctx: Any, gradient: Tensor) -> Sequence[Tensor | None]:
    """Gradients of points, directions, thresholds, scale and weights."""
    points, directions, thresholds, scale, weights, simplices, offsets = (
        ctx.saved_tensors
    )  # raises if one was modified in place
    scale = ctx.plain_scale if scale is None else scale
    layout, needs = (simplices, offsets, ctx.rows, ctx.dims), ctx.needs_input_grad[:5]
    traced, problem = is_traced(gradient), ctx.problem
    ctx.problem = None  # free it after one pass, as torch frees saved tensors: the graph may live longer
    if not traced and not torch.is_grad_enabled() and not needs_rules() and not is_vmapped(gradient):
        if problem is None or not problem.is_current:
            problem = _prepare(points, directions, thresholds, scale, weights, *layout)
        return problem.differentiate(gradient, needs)  # type: ignore[no-any-return]
    inputs = (points, directions, thresholds, _as_tensor(scale, points), weights)
    if traced:
        *others, dims = layout
        found = torch.ops.eulerscan.ect_backward(gradient, *inputs, *others, needs, dims)
        return [g if needed else None for g, needed in zip(found, needs, strict=True)]
    if is_wrapped(gradient) and not is_vmapped(gradient):
        raise NotImplementedError(
            "To differentiate a gradient by torch.func, call the transform inside the transformed function."
        )
    # Second derivatives, or vmapped gradients: by operators of torch.
    return portable.differentiate(gradient, inputs, layout, create_graph=torch.is_grad_enabled())


class EulerCharacteristicTransform(torch.autograd.Function):
    """The operator without the dispatcher, whose Python wrappers take longer than a small batch."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, layout = inputs  # one argument for the layout, since each argument costs time
        _save(ctx, (*tensors, *layout))
        problem = ctx.problem = _prepare(*tensors, *layout, keep=True)
        return problem.transform()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return (*_gradients(ctx, gradient), None)


_apply: Callable[..., Tensor] = apply_directly(EulerCharacteristicTransform)


def _propagate(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    return (*_gradients(ctx, gradient), None, None, None, None)


def _fake(points: Tensor, directions: Tensor | None, thresholds: Tensor, *others: Any) -> Tensor:
    offsets = others[3]
    num_directions = points.shape[1] if directions is None else directions.shape[-2]
    return points.new_empty(offsets.shape[1] - 1, num_directions, thresholds.shape[0])


def _fake_backward(gradient: Tensor, *arguments: Any) -> Gradients:
    inputs, needs = arguments[:5], arguments[8]
    return tuple(  # type: ignore[return-value]
        gradient.new_empty(t.shape if needed and t is not None else 0) for t, needed in zip(inputs, needs, strict=True)
    )


_ARGUMENTS = (
    "Tensor points, Tensor? directions, Tensor thresholds, Tensor scale, Tensor? weights, "
    "Tensor simplices, Tensor offsets, int[] rows"
)
_GRADIENTS = "(Tensor, Tensor, Tensor, Tensor, Tensor)"
# A CUDA graph can record the Triton kernels. Others may read values, so torch.compile must leave them out of its graphs.
_CAPTURED = has_triton() and forced.kernel in (None, "triton")
_TAGS = () if _CAPTURED else tuple(tag for tag in [getattr(torch.Tag, "cudagraph_unsafe", None)] if tag is not None)
torch.library.define("eulerscan::ect", f"({_ARGUMENTS}, int[]? dims=None) -> Tensor", tags=_TAGS)
torch.library.impl("eulerscan::ect", "default", _forward)
torch.library.register_fake("eulerscan::ect", _fake)
torch.library.register_autograd("eulerscan::ect", _propagate, setup_context=_save)
torch.library.define(
    "eulerscan::ect_backward",
    f"(Tensor gradient, {_ARGUMENTS}, bool[] needs, int[]? dims=None) -> {_GRADIENTS}",
    tags=_TAGS,
)
torch.library.impl("eulerscan::ect_backward", "default", _backward)
torch.library.register_fake("eulerscan::ect_backward", _fake_backward)
