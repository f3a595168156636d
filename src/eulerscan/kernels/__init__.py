"""One operation, several implementations, one signature (see :mod:`.layout`).

``eulerscan::ect`` is a torch operation: it traces, compiles and differentiates like torch's own. On the CPU it runs
:mod:`.cpu`, elsewhere :mod:`.portable`; :mod:`.reference` is what both must equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import portable

Gradients = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def ect(
    points: Tensor,
    directions: Tensor,
    thresholds: Tensor,
    scale: Tensor,
    weights: Tensor | None,
    simplices: Tensor,
    offsets: Tensor,
    rows: Sequence[int],
) -> Tensor:
    """Euler characteristic transform ``[B, T, H]``; the arguments are those of :mod:`.layout`."""
    inputs = (points, directions, thresholds, scale, weights, simplices, offsets, rows)
    result: Tensor
    if _traced(points):
        result = torch.ops.eulerscan.ect(*inputs)
    elif _differentiated(inputs[:5]):
        result = EulerCharacteristicTransform.apply(*inputs)  # type: ignore[no-untyped-call]
    else:
        result = _forward(*inputs)
    return result


def _traced(tensor: Tensor) -> bool:
    """Whether a program is being recorded, perhaps with stand-ins for tensors that have no values."""
    recorded = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return recorded or type(tensor) not in (Tensor, torch.nn.Parameter)


def _differentiated(tensors: Sequence[Tensor | None]) -> bool:
    """Whether somebody wants derivatives; forward mode, which there is none of, must not go unnoticed."""
    wanted = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    return wanted or forward_ad._current_level >= 0


def _forward(points: Tensor, directions: Tensor, thresholds: Tensor, scale: Tensor, *layout: Any) -> Tensor:
    # Values are checked where they are read, so in compiled programs too.
    if not scale.item() > 0:
        raise ValueError(f"scale must be positive (math.inf for the exact transform), got {scale.item()}.")
    if points.device.type == "cpu":
        from . import cpu  # numba loads with the first transform, not with the library

        return cpu.ect(points, directions, thresholds, scale, *layout)
    return portable.ect(points, directions, thresholds, scale, *layout)


def _backward(gradient: Tensor, *arguments: Any) -> Gradients:
    if gradient.device.type == "cpu":
        from . import cpu

        return cpu.ect_backward(gradient, *arguments)
    return _portable_backward(gradient, *arguments)


def _portable_backward(gradient: Tensor, *arguments: Any) -> Gradients:
    *inputs, simplices, offsets, rows, needs = arguments
    leaves = [None if t is None else t.detach().requires_grad_(needed) for t, needed in zip(inputs, needs, strict=True)]
    gradients = _differentiate(gradient, leaves, (simplices, offsets, rows), create_graph=False)
    return tuple(gradient.new_empty(0) if g is None else g for g in gradients)  # type: ignore[return-value]


def _differentiate(
    gradient: Tensor, inputs: Sequence[Tensor | None], layout: tuple[Any, ...], *, create_graph: bool
) -> list[Tensor | None]:
    """Gradients through the portable implementation, of those inputs that require them."""
    with torch.enable_grad():
        # Views end the differentiation here: one input may well have been computed from another.
        inputs = [None if tensor is None else tensor.view_as(tensor) for tensor in inputs]
        result = portable.ect(*inputs, *layout)  # type: ignore[arg-type]
        wanted = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
        found = iter(
            torch.autograd.grad(result, wanted, gradient, create_graph=create_graph, materialize_grads=True)
            if result.requires_grad
            else [torch.zeros_like(tensor) for tensor in wanted]
        )
    return [next(found) if tensor is not None and tensor.requires_grad else None for tensor in inputs]


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, rows = inputs
    ctx.save_for_backward(*tensors)
    ctx.rows = rows


def _propagate(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    *inputs, simplices, offsets = ctx.saved_tensors
    layout = (simplices, offsets, ctx.rows)
    traced = _traced(gradient)
    if torch.is_grad_enabled() and not traced:
        # Somebody wants second derivatives: torch's own operations have them.
        return (*_differentiate(gradient, inputs, layout, create_graph=True), None, None, None)
    needs = ctx.needs_input_grad[:5]
    backward = torch.ops.eulerscan.ect_backward if traced else _backward
    gradients = backward(gradient, *inputs, *layout, needs)
    return (*(g if needed else None for g, needed in zip(gradients, needs, strict=True)), None, None, None)


class EulerCharacteristicTransform(torch.autograd.Function):
    """The operation without the dispatcher, whose wrappers in Python take longer than a small batch."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        _save(ctx, inputs, inputs[0])
        return _forward(*inputs)

    backward = staticmethod(_propagate)


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
