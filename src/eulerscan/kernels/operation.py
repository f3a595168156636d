"""One operation, several implementations, one signature (see :mod:`.layout`).

``eulerscan::ect`` is a torch operation: it traces, compiles and differentiates like torch's own. On the CPU it runs
:mod:`.cpu`, elsewhere :mod:`.portable`; :mod:`.reference` is what both must equal. For forward mode and torch.func, which an
operation has no rules for, :func:`ect` calls these two itself: the portable one, and under vmap the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._validation import is_mapped
from . import portable, reference

if TYPE_CHECKING:
    from .cpu import problem as cpu

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
        if _ruled():  # the dispatcher would drop tangents without a word
            raise NotImplementedError("A compiled or traced transform has no rules for torch.func or forward mode (jvp).")
        result = torch.ops.eulerscan.ect(points, directions, thresholds, _as_tensor(scale, points), weights, *layout)
    elif _ruled():
        result = _by_rules(points, directions, thresholds, scale, weights, layout)
    elif _differentiated(points, directions, thresholds, scale, weights):
        result = _apply(points, directions, thresholds, scale, weights, layout)
    else:
        result = _prepare(points, directions, thresholds, scale, weights, *layout).transform()
    return result


def _traced(tensor: Tensor) -> bool:
    """Whether a program is being recorded, perhaps with stand-ins for tensors that have no values."""
    recorded = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return recorded or torch._C._len_torch_dispatch_stack() > 0 or type(tensor) not in ORDINARY


def _differentiated(*inputs: Tensor | float | None) -> bool:
    """Whether somebody wants derivatives."""
    if torch.is_grad_enabled():
        for tensor in inputs:  # a generator would take longer than the tests
            if isinstance(tensor, Tensor) and tensor.requires_grad:
                return True
    return False


def _ruled() -> bool:
    """Whether torch's rules for forward mode or for transforms of torch.func must be applied."""
    active: bool = torch._C._are_functorch_transforms_active()
    return active or forward_ad._current_level >= 0


def _by_rules(*inputs: Any) -> Tensor:
    """In torch's own operations, which have such rules; where vmap hides values from all, as the reference has it."""
    points, directions, thresholds, scale, weights, layout = inputs
    scale = _as_tensor(scale, points)
    if is_mapped(scale):  # whether it is infinite cannot be asked, so it is taken for finite
        points, thresholds, scale = points * scale, thresholds * scale, _as_tensor(1.0, points)
    else:
        _check_scale(scale.item())
    tensors = (points, directions, thresholds, scale, weights)
    mapped = any(tensor is not None and is_mapped(tensor) for tensor in tensors)
    result: Tensor = (reference if mapped else portable).ect(*tensors, *layout)
    return result


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
    value = float(scale.item() if isinstance(scale, Tensor) else scale)  # kernels are compiled for that
    _check_scale(value)
    if points.is_cpu:
        return _on_cpu()(points, directions, thresholds, value, *others, keep=keep)
    return portable.Problem((points, directions, thresholds, _as_tensor(scale, points), *others))


def _check_scale(value: float) -> None:
    """Values are checked where they are read, so in compiled programs too."""
    if not value > 0:
        raise ValueError(f"scale must be positive (math.inf for the exact transform), got {value}.")


@cache
def _on_cpu() -> Callable[..., cpu.Problem]:
    """numba loads with the first transform, not with the library."""
    from .cpu import problem as cpu

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
    if not traced and not torch.is_grad_enabled() and not _ruled() and not is_mapped(gradient):
        if problem is None or not problem.is_current:
            problem = _prepare(points, directions, thresholds, scale, weights, *layout)
        return problem.differentiate(gradient, needs)  # type: ignore[no-any-return]
    inputs = (points, directions, thresholds, _as_tensor(scale, points), weights)
    if traced:
        found = torch.ops.eulerscan.ect_backward(gradient, *inputs, *layout, needs)
        return [g if needed else None for g, needed in zip(found, needs, strict=True)]
    if torch._C._functorch.is_functorch_wrapped_tensor(gradient) and not is_mapped(gradient):
        raise NotImplementedError("Derivatives of gradients need the transform inside the function given to torch.func.")
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
