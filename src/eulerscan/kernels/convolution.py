"""Convolutions of the heads: compiled kernels on the CPU, operators of torch elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import conv2d, max_pool2d

from .._torch_internals import is_vmapped
from .dispatch import kernel_for
from .operation import is_traced, needs_rules

MAX_CHANNELS = 32  # of images or curves: with more, torch is as fast
MAX_TASKS = 16  # for gradients of weights, which have a copy for each
DTYPES = (torch.float32, torch.float64)


def pooled_convolution(images: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """Convolution of images ``[B, C, H, W]``, then max pooling: ``[B, D, H // 2 - 1, W // 2 - 1]``.

    Args:
        images: ``[B, C, H, W]``.
        weight: ``[D, C, 3, 3]``.
        bias: ``[D]``.
        relu: Whether a ReLU follows.
    """
    fits = _is_supported(images, weight, bias, kernel=(3, 3)) and min(images.shape[2:]) >= 4
    call = PooledConvolution.apply if fits and bias.shape == weight.shape[:1] else pooled_in_torch
    result: Tensor = call(images, weight, bias, relu)
    return result


def curve_convolution(curves: Tensor, weight: Tensor) -> Tensor:
    """Convolution of curves ``[B, C, T, H]`` by four weights, with a stride of two: ``[B, D, T, H // 2]``.

    A zero is added on either side of a curve.

    Args:
        curves: ``[B, C, T, H]``.
        weight: ``[D, C, 1, 4]``.
    """
    fits = _is_supported(curves, weight, kernel=(1, 4)) and curves.shape[3] >= 2
    call = CurveConvolution.apply if fits else curves_in_torch
    result: Tensor = call(curves, weight)
    return result


def pooled_in_torch(images: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """The definition, which the kernel must equal."""
    pooled = max_pool2d(conv2d(images, weight, bias), 2)
    return pooled.relu() if relu else pooled  # the ReLU of the maximum is the maximum of the ReLUs, of a quarter of the entries


def curves_in_torch(curves: Tensor, weight: Tensor) -> Tensor:
    """The definition, which the kernel must equal. A stride, since pooling instead would take three times as long."""
    return conv2d(curves, weight, stride=(1, 2), padding=(0, 1))


def _is_supported(inputs: Tensor, *weights: Tensor, kernel: tuple[int, int]) -> bool:
    """Whether the kernel can run. What has invalid shapes or types is left to torch, which says so."""
    tensors = (inputs, *weights)
    plain = all(tensor.is_cpu and tensor.dtype == inputs.dtype and not is_traced(tensor) for tensor in tensors)
    if not plain or needs_rules() or inputs.dtype not in DTYPES or inputs.ndim != 4 or weights[0].ndim != 4:
        return False
    fits = weights[0].shape[1:] == (inputs.shape[1], *kernel) and min(*inputs.shape, len(weights[0])) > 0
    return (
        fits and inputs.shape[1] <= MAX_CHANNELS and kernel_for(inputs.device) == "cpu" and not torch.is_autocast_enabled("cpu")
    )


class PooledConvolution(torch.autograd.Function):
    """The kernel, which keeps four bits for each entry of the result. Second derivatives are those of torch."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        kernels, (height, width) = _cpu(), images.shape[2:]
        result = images.new_empty(len(images), len(weight), height // 2 - 1, width // 2 - 1)
        choices = torch.empty(-(-len(images) // kernels.WIDTH), result[0].numel(), kernels.CHOICES, dtype=torch.uint8)
        arrays = _matrix(images), height, width, _matrix(weight), _matrix(bias)[:, 0], relu, _matrix(result), choices.numpy()
        _run(kernels.convolve, len(choices), *arrays)
        ctx.save_for_backward(images, weight, bias, choices)
        ctx.relu = relu
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        images, weight, bias, choices = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if _is_differentiated_again(gradient):
            definition = partial(pooled_in_torch, relu=ctx.relu)
            return *_in_torch(definition, (images, weight, bias), gradient, needs), None
        of_images = torch.empty(images.shape if needs[0] else (len(images), 0), dtype=images.dtype)
        of_weights = np.empty((len(choices), len(weight), weight[0].numel() + 1), _matrix(weight).dtype)
        arrays = _matrix(images), *images.shape[2:], _matrix(weight), choices.numpy(), _matrix(gradient)
        _run(_cpu().backpropagate, len(choices), *arrays, _matrix(of_images), of_weights)
        total = torch.from_numpy(of_weights.sum(axis=0))  # in the order of the tasks, whatever the number of threads
        return of_images if needs[0] else None, total[:, :-1].reshape(weight.shape), total[:, -1], None


class CurveConvolution(torch.autograd.Function):
    """The kernel. Second derivatives are those of torch."""

    @staticmethod
    def forward(ctx: Any, curves: Tensor, weight: Tensor) -> Tensor:
        count, _, num_directions, length = curves.shape
        result = curves.new_empty(count, len(weight), num_directions, length // 2)
        _run(_cpu().convolve_curves, count, _matrix(curves, 3), num_directions, _matrix(weight), _matrix(result, 3))
        ctx.save_for_backward(curves, weight)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        curves, weight = ctx.saved_tensors
        if _is_differentiated_again(gradient):
            return _in_torch(curves_in_torch, (curves, weight), gradient, ctx.needs_input_grad)
        of_curves = torch.empty(curves.shape if ctx.needs_input_grad[0] else (0, *curves.shape[1:]), dtype=curves.dtype)
        of_weights = np.empty((min(len(curves), MAX_TASKS), len(weight), weight[0].numel()), _matrix(weight).dtype)
        arrays = len(curves), _matrix(curves, 3), curves.shape[2], _matrix(weight), _matrix(gradient, 3), _matrix(of_curves, 3)
        _run(_cpu().backpropagate_curves, len(of_weights), *arrays, of_weights)
        total = torch.from_numpy(of_weights.sum(axis=0)).view(weight.shape)
        return of_curves if ctx.needs_input_grad[0] else None, total


def _is_differentiated_again(gradient: Tensor) -> bool:
    """Whether the backward pass is recorded, traced or vectorized."""
    return torch.is_grad_enabled() or is_traced(gradient) or needs_rules() or is_vmapped(gradient)


def _in_torch(
    definition: Callable[..., Tensor], inputs: tuple[Tensor, ...], gradient: Tensor, needs: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Gradients by operators of torch, ``None`` where not needed."""
    needs = needs[: len(inputs)]
    needed = [tensor for tensor, need in zip(inputs, needs, strict=True) if need]
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        found = iter(torch.autograd.grad(definition(*inputs), needed, gradient, create_graph=create_graph))
    return tuple(next(found) if need else None for need in needs)


def _run(kernel: Any, num_tasks: int, *arguments: Any) -> None:
    threads = _cpu().threads
    threads.run(kernel, threads.num_useful_threads(num_tasks), *arguments)


def _matrix(tensor: Tensor, row_axes: int = 1) -> NDArray[Any]:
    """``[n, m]``, with a row for each entry of the first axes. The memory is that of the tensor if it is contiguous."""
    rows = tensor.shape[:row_axes].numel()
    array: NDArray[Any] = tensor.detach().resolve_neg().contiguous().view(rows, tensor.shape[row_axes:].numel()).numpy()
    return array


@cache
def _cpu() -> Any:
    """Import numba on first use, not with the library."""
    from .cpu import convolution

    return convolution
