"""One operation, several implementations, one signature (see :mod:`.layout`).

``eulerscan::ect`` is a torch operation: it traces, compiles and differentiates like torch's own. On the CPU it runs
:mod:`.cpu`, elsewhere and in forward mode :mod:`.portable`; :mod:`.reference` is what both must equal, and serves under vmap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import portable, reference

if TYPE_CHECKING:
    from . import cpu

Gradients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
ORDINARY = (Tensor, torch.nn.Parameter)  # other types may be stand-ins without values


def ect(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor | float,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
) -> Tensor:
    """Euler characteristic transform ``[B, T, H]``; the arguments are those of :mod:`.layout`, the scale may be a number."""
    layout = (simplices, offsets, rows)
    result: Tensor
    if _traced(points):
        if forward_ad._current_level >= 0:  # the dispatcher would drop tangents without a word
            raise NotImplementedError("A compiled or traced transform has no derivatives in forward mode (jvp). Use backward.")
        result = torch.ops.eulerscan.ect(points, directions, thresholds, _as_tensor(scale, points), weights, *layout)
    elif forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        result = _by_rules(points, directions, thresholds, scale, weights, layout)
    elif _differentiated(points, directions, thresholds, scale, weights):
        result = _apply(points, directions, thresholds, scale, weights, layout)
    else:
        result = _prepare(points, directions, thresholds, scale, weights, *layout).transform()
    return result


def _traced(tensor: Tensor) -> bool:
    """Whether a program is being recorded, perhaps with stand-ins for tensors that have no values."""
    recorded = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return recorded or type(tensor) not in ORDINARY


def _differentiated(*inputs: Tensor | float | None) -> bool:
    """Whether somebody wants derivatives."""
    if torch.is_grad_enabled():
        for tensor in inputs:  # a generator would take longer than the tests
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                return True
    return False


def _by_rules(*inputs: Any) -> Tensor:
    """In torch's own operations, which have rules for forward mode and for the transforms of torch.func."""
    points, directions, thresholds, scale, weights, layout = inputs
    _value_of(scale)
    tensors = (points, directions, thresholds, _as_tensor(scale, points), weights)
    result: Tensor = (reference if any(map(_is_mapped, tensors)) else portable).ect(*tensors, *layout)
    return result


def _is_mapped(tensor: Tensor | None) -> bool:
    """Whether vmap hides one of the axes, so that nobody may look at the values."""
    while tensor is not None and torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        if torch._C._functorch.is_batchedtensor(tensor):
            return True
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor is not None and torch._C._functorch.is_legacy_batchedtensor(tensor)


def _as_tensor(scale: Tensor | float, points: Tensor) -> Tensor:
    return scale if isinstance(scale, Tensor) else torch.full((), scale, dtype=points.dtype, device=points.device)


def _forward(*inputs: Any) -> Tensor:
    return _prepare(*inputs).transform()


def _backward(gradient: Tensor, *arguments: Any) -> Gradients:
    """As the operation has it: empty where not needed."""
    *inputs, needs = arguments
    gradients = _prepare(*inputs).differentiate(gradient, needs)
    return tuple(gradient.new_empty(0) if g is None else g for g in gradients)  # type: ignore[return-value]


def _prepare(
    points: Tensor, directions: Tensor, thresholds: Tensor, scale: Tensor | float, *others: Any, keep: bool = False
) -> cpu.Problem | portable.Problem:
    """The problem, checked and ready for one pass, or with ``keep`` for both, in the implementation for its device."""
    value = _value_of(scale)
    if points.is_cpu:
        return _on_cpu()(points, directions, thresholds, value, *others, keep=keep)
    return portable.Problem((points, directions, thresholds, _as_tensor(scale, points), *others))


def _value_of(scale: Tensor | float) -> float:
    """Values are checked where they are read, so in compiled programs too."""
    value = float(scale.item() if isinstance(scale, Tensor) else scale)  # kernels are compiled for that
    if not value > 0:
        raise ValueError(f"scale must be positive (math.inf for the exact transform), got {value}.")
    return value


@cache
def _on_cpu() -> Callable[..., cpu.Problem]:
    """numba loads with the first transform, not with the library."""
    from . import cpu

    return cpu.prepare


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor | None = None) -> None:
    points, directions, thresholds, scale, *others, rows = inputs
    ctx.rows, ctx.problem, ctx.plain_scale = rows, None, None
    if not isinstance(scale, Tensor):
        ctx.plain_scale, scale = scale, None  # only tensors can be saved
    ctx.save_for_backward(points, directions, thresholds, scale, *others)


def _gradients(ctx: Any, gradient: Tensor) -> Sequence[Tensor | None]:
    """Of points, directions, thresholds, scale and weights."""
    points, directions, thresholds, scale, weights, simplices, offsets = ctx.saved_tensors  # raises if one was changed
    scale = ctx.plain_scale if scale is None else scale
    layout, needs = (simplices, offsets, ctx.rows), ctx.needs_input_grad[:5]
    traced, problem = _traced(gradient), ctx.problem
    ctx.problem = None  # torch frees what it saved after one pass too, though the result may live on
    if not traced and not torch.is_grad_enabled() and not _is_mapped(gradient):
        if problem is None or not problem.is_current:
            problem = _prepare(points, directions, thresholds, scale, weights, *layout)
        return problem.differentiate(gradient, needs)  # type: ignore[no-any-return]
    inputs = (points, directions, thresholds, _as_tensor(scale, points), weights)
    if traced:
        found = torch.ops.eulerscan.ect_backward(gradient, *inputs, *layout, needs)
        return [g if needed else None for g, needed in zip(found, needs, strict=True)]
    # Somebody wants second derivatives, or those of many gradients at once: torch's own operations have them.
    return portable.differentiate(gradient, inputs, layout, create_graph=torch.is_grad_enabled())


class EulerCharacteristicTransform(torch.autograd.Function):
    """The operation without the dispatcher, whose wrappers in Python take longer than a small batch."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, layout = inputs  # the layout is one of them, since each takes its time
        _save(ctx, (*tensors, *layout))
        problem = ctx.problem = _prepare(*tensors, *layout, keep=True)
        return problem.transform()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return (*_gradients(ctx, gradient), None)


# Without what ``apply`` prepares for torch.func.
_apply: Callable[..., Tensor] = super(torch.autograd.Function, EulerCharacteristicTransform).apply


def _propagate(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    return (*_gradients(ctx, gradient), None, None, None)


def _fake(points: Tensor, directions: Tensor, thresholds: Tensor, *others: Any) -> Tensor:
    offsets = others[-2]
    return points.new_empty(offsets.shape[1] - 1, directions.shape[0], thresholds.shape[0])


def _fake_backward(gradient: Tensor, *arguments: Any) -> Gradients:
    inputs, needs = arguments[:5], arguments[-1]
    return tuple(  # type: ignore[return-value]
        gradient.new_empty(t.shape if needed and t is not None else 0) for t, needed in zip(inputs, needs, strict=True)
    )


_ARGUMENTS = (
    "Tensor points, Tensor directions, Tensor thresholds, Tensor scale, Tensor? weights, "
    "Tensor simplices, Tensor offsets, int[] rows"
)
_GRADIENTS = "(Tensor, Tensor, Tensor, Tensor, Tensor)"
torch.library.define("eulerscan::ect", f"({_ARGUMENTS}) -> Tensor")
torch.library.impl("eulerscan::ect", "default", _forward)
torch.library.register_fake("eulerscan::ect", _fake)
torch.library.register_autograd("eulerscan::ect", _propagate, setup_context=_save)
torch.library.define("eulerscan::ect_backward", f"(Tensor gradient, {_ARGUMENTS}, bool[] needs) -> {_GRADIENTS}")
torch.library.impl("eulerscan::ect_backward", "default", _backward)
torch.library.register_fake("eulerscan::ect_backward", _fake_backward)
