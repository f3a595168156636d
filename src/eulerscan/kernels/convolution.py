"""Convolutions of 3 x 3, max pooling of 2 x 2, and a ReLU: a compiled kernel on the CPU, operators of torch elsewhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._torch_internals import is_vmapped
from .dispatch import kernel_for
from .operation import is_traced, needs_rules

MAX_CHANNELS = 32  # of the images: with more, torch is as fast
DTYPES = (torch.float32, torch.float64)


def pooled_convolution(images: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """Convolution of images ``[B, C, H, W]``, then max pooling: ``[B, D, H // 2 - 1, W // 2 - 1]``.

    Args:
        images: ``[B, C, H, W]``.
        weight: ``[D, C, 3, 3]``.
        bias: ``[D]``.
        relu: Whether a ReLU follows.
    """
    call = PooledConvolution.apply if _is_supported(images, weight, bias) else in_torch
    result: Tensor = call(images, weight, bias, relu)
    return result


def in_torch(images: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
    """The definition, which the kernel must equal."""
    pooled = torch.nn.functional.max_pool2d(torch.nn.functional.conv2d(images, weight, bias), 2)
    return pooled.relu() if relu else pooled  # the ReLU of the maximum is the maximum of the ReLUs, of a quarter of the entries


def _is_supported(*tensors: Tensor) -> bool:
    """Whether the kernel can run. What has invalid shapes or types is left to torch, which says so."""
    images, weight, bias = tensors
    plain = all(tensor.is_cpu and tensor.dtype == images.dtype and not is_traced(tensor) for tensor in tensors)
    if not plain or needs_rules() or images.dtype not in DTYPES or images.ndim != 4:
        return False
    count, channels, height, width = images.shape
    fits = weight.shape == (len(bias), channels, 3, 3) and bias.ndim == 1 and min(count, len(bias), channels) > 0
    worthwhile = channels <= MAX_CHANNELS and kernel_for(images.device) == "cpu"
    return fits and worthwhile and min(height, width) >= 4 and not torch.is_autocast_enabled("cpu")


class PooledConvolution(torch.autograd.Function):
    """The kernel, which keeps four bits for each entry of the result. Second derivatives are those of torch."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        kernels, (height, width) = _cpu(), images.shape[2:]
        result = images.new_empty(len(images), len(weight), height // 2 - 1, width // 2 - 1)
        choices = torch.empty(-(-len(images) // kernels.WIDTH), result[0].numel(), kernels.CHOICES, dtype=torch.uint8)
        arrays = _rows(images), height, width, _rows(weight), _rows(bias)[:, 0], relu, _rows(result), choices.numpy()
        _run(kernels.convolve, len(choices), *arrays)
        ctx.save_for_backward(images, weight, bias, choices)
        ctx.relu = relu
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        images, weight, bias, choices = ctx.saved_tensors
        if torch.is_grad_enabled() or is_traced(gradient) or needs_rules() or is_vmapped(gradient):
            return *_gradients_in_torch((images, weight, bias), ctx.relu, gradient, ctx.needs_input_grad[:3]), None
        of_images = torch.empty(images.shape if ctx.needs_input_grad[0] else (len(images), 0), dtype=images.dtype)
        of_weights = np.empty((len(choices), len(weight), weight[0].numel() + 1), _rows(weight).dtype)
        arrays = _rows(images), *images.shape[2:], _rows(weight), choices.numpy(), _rows(gradient)
        _run(_cpu().backpropagate, len(choices), *arrays, _rows(of_images), of_weights)
        total = torch.from_numpy(of_weights.sum(axis=0))  # in the order of the tasks, whatever the number of threads
        return of_images if ctx.needs_input_grad[0] else None, total[:, :-1].reshape(weight.shape), total[:, -1], None


def _gradients_in_torch(
    inputs: tuple[Tensor, Tensor, Tensor], relu: bool, gradient: Tensor, needs: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad():
        images, weight, bias = (tensor.view_as(tensor) for tensor in inputs)  # one may have been computed from another
        needed = [tensor for tensor, need in zip((images, weight, bias), needs, strict=True) if need]
        found = iter(torch.autograd.grad(in_torch(images, weight, bias, relu), needed, gradient, create_graph=create_graph))
    return tuple(next(found) if need else None for need in needs)


def _run(kernel: Any, num_tasks: int, *arguments: Any) -> None:
    threads = _cpu().threads
    threads.run(kernel, threads.num_useful_threads(num_tasks), *arguments)


def _rows(tensor: Tensor) -> NDArray[Any]:
    """``[n, m]``, with one row for each entry of the first axis; the memory is that of the tensor if it is contiguous."""
    array: NDArray[Any] = tensor.detach().resolve_neg().contiguous().view(len(tensor), -1).numpy()
    return array


@cache
def _cpu() -> Any:
    """Import numba on first use, not with the library."""
    from .cpu import convolution

    return convolution
