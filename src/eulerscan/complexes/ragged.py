"""Ragged gather: slices of a tensor, concatenated. This is how complexes are selected from a batch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import forward_ad

FEW = 4096  # entries below which indexing beats the start of a compiled loop
PLAIN = (torch.int32, torch.int64, torch.float32, torch.float64)


def ragged_indices(starts: Tensor, sizes: Tensor) -> Tensor:
    """Indices of slices: ``start, start + 1, ..., start + size - 1`` for each slice.

    >>> ragged_indices(torch.tensor([7, 2]), torch.tensor([3, 1]))
    tensor([7, 8, 9, 2])
    """
    ends = sizes.cumsum(dim=0)
    total = int(ends[-1]) if len(ends) else 0
    return torch.arange(total, device=starts.device) + (starts - ends + sizes).repeat_interleave(sizes, output_size=total)


def ragged_gather(values: Tensor, starts: Tensor, sizes: Tensor, shifts: Tensor | None = None) -> Tensor:
    """Concatenate the slices ``values[start : start + size]``, each minus its shift. Differentiable.

    All arguments must be on one device. Starts and sizes are not checked.

    >>> ragged_gather(torch.arange(0, 100, 10), torch.tensor([7, 2]), torch.tensor([3, 1]), torch.tensor([1, 2]))
    tensor([69, 79, 89, 18])
    """
    width = values[:1].numel() if len(values) else 0
    total = int(sizes.sum())
    plain = forward_ad._current_level < 0 and not torch._C._functorch.is_functorch_wrapped_tensor(values)
    simple = (
        plain and values.device.type == "cpu" and values.dtype in PLAIN and values.is_contiguous() and not values.requires_grad
    )
    if not simple or total * width <= FEW or torch.compiler.is_compiling():
        found = values[ragged_indices(starts, sizes)]
        return found if shifts is None else found - shifts.to(values.dtype).repeat_interleave(sizes, output_size=total)
    # One ordered pass over memory, without indices as long as the result, is several times faster.
    result = values.new_empty(total, *values.shape[1:])
    shifts = torch.zeros_like(starts) if shifts is None else shifts
    arrays = (values.view(-1), starts * width, sizes * width, shifts, result.view(-1))
    _compiled()(*(array.numpy() for array in arrays))
    return result


@cache
def _compiled() -> Any:
    from numba import njit  # on first use, not at import

    try:
        return njit(nogil=True, cache=True)(_copy)
    except RuntimeError:  # no writable cache directory
        return njit(nogil=True)(_copy)


def _copy(
    values: NDArray[Any], starts: NDArray[np.int64], sizes: NDArray[np.int64], shifts: NDArray[np.int64], result: NDArray[Any]
) -> None:
    end = 0
    for run in range(len(starts)):
        begin, end = end, end + sizes[run]
        source, target = values[starts[run] : starts[run] + sizes[run]], result[begin:end]
        shift = shifts[run]
        for i in range(len(target)):
            target[i] = source[i] - shift
